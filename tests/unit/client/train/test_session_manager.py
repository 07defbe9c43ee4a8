"""SessionManager and Scaffold: made ready by a checkpoint, by init ops, or by another process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def manager(**arguments: object) -> tf.train.SessionManager:
    arguments.setdefault("ready_op", tf.report_uninitialized_variables())
    return tf.train.SessionManager(recovery_wait_secs=0.01, **arguments)  # type: ignore[arg-type]


def test_init_op_feeds_and_init_fn() -> None:
    fed = tf.placeholder(tf.float32, ())
    value = tf.get_variable("value", initializer=fed)
    seen = []
    with manager().prepare_session(
        "", init_op=tf.global_variables_initializer(), init_feed_dict={fed: 3.0}, init_fn=seen.append
    ) as session:
        assert session.run(value) == 3.0
    assert len(seen) == 1


def test_nothing_to_initialise_with_and_what_does_not_suffice() -> None:
    one, _ = tf.get_variable("one", initializer=1.0), tf.get_variable("two", initializer=2.0)
    with pytest.raises(RuntimeError, match="no init_op or init_fn or local_init_op was given"):
        manager().prepare_session("")
    with pytest.raises(RuntimeError, match=r"Init operations did not make model ready.*Variables not initialized: two"):
        manager().prepare_session("", init_op=one.initializer)
    with pytest.raises(ValueError, match="you must also pass a local_init_op"):
        manager(ready_for_local_init_op=tf.report_uninitialized_variables())


def test_a_checkpoint_wins_over_the_init_op(tmp_path: Path) -> None:
    value = tf.get_variable("value", initializer=1.0)
    change = value.assign(5.0)
    saver = tf.train.Saver()
    init = tf.global_variables_initializer()
    sessions = manager()
    with sessions.prepare_session("", init_op=init, saver=saver, checkpoint_dir=str(tmp_path)) as session:
        session.run(change)
        path = saver.save(session, str(tmp_path / "model"), global_step=1)
    with sessions.prepare_session("", init_op=init, saver=saver, checkpoint_dir=str(tmp_path)) as session:
        assert session.run(value) == 5.0
    with sessions.prepare_session("", init_op=init, saver=saver, checkpoint_filename_with_path=path) as session:
        assert session.run(value) == 5.0
    with pytest.raises(ValueError, match="Can not provide both checkpoint_dir and checkpoint_filename_with_path"):
        sessions.prepare_session("", saver=saver, checkpoint_dir="a", checkpoint_filename_with_path="b")


def test_recover_says_whether_a_checkpoint_made_it_ready(tmp_path: Path) -> None:
    value = tf.get_variable("value", initializer=1.0)
    saver = tf.train.Saver([value])
    sessions = manager()
    session, ready = sessions.recover_session("", saver=saver, checkpoint_dir=str(tmp_path))
    assert not ready
    session.run(value.initializer)
    saver.save(session, str(tmp_path / "model"))
    session.close()
    session, ready = sessions.recover_session("", saver=saver, checkpoint_dir=str(tmp_path))
    assert ready
    assert session.run(value) == 1.0
    session.close()
    tf.get_variable("unsaved", initializer=2.0)
    session, ready = manager().recover_session("", saver=saver, checkpoint_dir=str(tmp_path))
    session.close()
    assert not ready


def test_waiting_for_a_checkpoint_that_does_not_come(tmp_path: Path) -> None:
    value = tf.get_variable("value", initializer=1.0)
    session = manager().prepare_session(
        "",
        init_op=value.initializer,
        saver=tf.train.Saver(),
        checkpoint_dir=str(tmp_path),
        wait_for_checkpoint=True,
        max_wait_secs=0.05,
    )
    assert session.run(value) == 1.0
    session.close()


def test_waiting_for_somebody_else() -> None:
    value = tf.get_variable("value", initializer=1.0)
    server = tf.train.Server.create_local_server()
    try:
        with pytest.raises(tf.errors.DeadlineExceededError, match=r"Session was not ready after waiting 0\.05 secs"):
            manager().wait_for_session(server.target, max_wait_secs=0.05)
        with tf.Session(server.target) as chief:
            chief.run(value.initializer)
            with manager().wait_for_session(server.target, max_wait_secs=20) as worker:
                assert worker.run(value) == 1.0
    finally:
        server.stop(0.0)


def test_local_init_waits_for_what_it_needs() -> None:
    value = tf.get_variable("value", initializer=2.0)
    local = tf.Variable(value.read_value() * 2, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    sessions = tf.train.SessionManager(
        ready_op=tf.report_uninitialized_variables(),
        ready_for_local_init_op=tf.report_uninitialized_variables(tf.global_variables()),
        local_init_op=local.initializer,
        recovery_wait_secs=0.01,
    )
    with sessions.prepare_session("", init_op=value.initializer) as session:
        assert session.run(local) == 4.0
    with pytest.raises(RuntimeError, match=r"ready for local_init.*Variables not initialized: value"):
        sessions.prepare_session("", init_op=tf.no_op())


class TestScaffold:
    def test_what_is_missing_is_made_once_and_the_graph_closed(self, graph: tf.Graph) -> None:
        tf.get_variable("value", initializer=1.0)
        tf.summary.scalar("one", tf.constant(1.0))
        scaffold = tf.train.Scaffold().finalize()
        again = tf.train.Scaffold().finalize()
        assert graph.finalized
        for name in ("init_op", "ready_op", "ready_for_local_init_op", "local_init_op", "summary_op", "saver"):
            assert getattr(scaffold, name) is not None, name
            assert getattr(again, name) is getattr(scaffold, name), name

    def test_what_is_given_is_kept_and_copied(self) -> None:
        init, seen = tf.no_op(name="mine"), []
        tf.get_variable("value", initializer=1.0)
        first = tf.train.Scaffold(init_op=init, init_fn=lambda scaffold, session: seen.append((scaffold, session)))
        second = tf.train.Scaffold(local_init_op=init, copy_from_scaffold=first).finalize()
        assert (second.init_op, second.local_init_op) == (init, init)
        assert second.init_fn is not None
        second.init_fn("session")
        assert seen == [(second, "session")]
        with pytest.raises(TypeError, match="copy_from_scaffold is not a Scaffold instance"):
            tf.train.Scaffold(copy_from_scaffold=1)  # type: ignore[arg-type]

    def test_two_savers_are_one_too_many(self) -> None:
        value = tf.get_variable("value", initializer=np.float32(1))
        for _ in range(2):
            tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver([value]))
        with pytest.raises(RuntimeError, match="More than one item in collection savers"):
            tf.train.Scaffold().finalize()
