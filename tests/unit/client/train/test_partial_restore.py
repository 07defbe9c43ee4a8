"""A Saver with a PartialRestoreSaverBuilder: what the checkpoint has is restored, what it lacks begins anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from tenfold.ops.saveable_objects import SaveableObject, SaveSpec
from tenfold.train.partial_restore import PartialRestoreSaverBuilder
from tenfold.train.work_queue import WorkQueue

if TYPE_CHECKING:
    from pathlib import Path


def test_what_the_checkpoint_lacks_begins_anew(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        old = tf.get_variable("old", initializer=3.0)
        table = tf.get_embedding_variable("table", 2, initializer=tf.constant_initializer(3.0))
        session.run(tf.global_variables_initializer())
        session.run(tf.nn.embedding_lookup(table, tf.constant([7], tf.int64)))
        tf.train.Saver().save(session, str(tmp_path / "model"))

    with tf.Graph().as_default():
        old = tf.get_variable("old", initializer=0.0)
        new = tf.get_variable("new", initializer=5.0)
        table, more = (
            tf.get_embedding_variable(name, 2, initializer=tf.constant_initializer(4.0)) for name in ("table", "more")
        )
        step = tf.train.get_or_create_global_step()
        take = WorkQueue(["a", "b"], shuffle=False).take()
        rows = [tf.nn.embedding_lookup(each, tf.constant([7], tf.int64)) for each in (table, more)]
        saver = tf.train.Saver(builder=PartialRestoreSaverBuilder(str(tmp_path)))
        scaffold = tf.train.Scaffold(saver=saver)
        with tf.train.MonitoredTrainingSession(
            scaffold=scaffold, checkpoint_dir=str(tmp_path), save_checkpoint_steps=None, save_checkpoint_secs=None
        ) as session:
            assert session.run([old, new, step, take]) == [3, 5, 0, b"a"]
            assert [each.tolist() for each in session.run(rows)] == [[[3, 3]], [[4, 4]]]


def test_nothing_is_lacking_without_a_checkpoint(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        var = tf.get_variable("v", initializer=2.0)
        saver = tf.train.Saver([var], builder=PartialRestoreSaverBuilder(str(tmp_path)))
        session.run(var.initializer)
        path = saver.save(session, str(tmp_path / "model"))
        session.run(var.assign(1.0))
        saver.restore(session, path)

        assert session.run(var) == 2


def test_what_cannot_begin_anew_is_named(tmp_path: Path) -> None:
    class Stateless(SaveableObject):
        pass

    with tf.Graph().as_default(), tf.Session() as session:
        var = tf.get_variable("v", initializer=2.0)
        session.run(var.initializer)
        tf.train.Saver([var]).save(session, str(tmp_path / "model"))
        value = tf.constant(1.0)
        other = Stateless(value, [SaveSpec(value, "", "other")], "other")
        with pytest.raises(TypeError, match="other is not in the checkpoint, and has no initializer"):
            tf.train.Saver([var, other], builder=PartialRestoreSaverBuilder(str(tmp_path)))
        with pytest.raises(ValueError, match="a `builder` of one's own is not supported"):
            tf.train.Saver([var], builder=object())
