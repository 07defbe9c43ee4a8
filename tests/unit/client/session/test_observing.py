"""What a session's steps leave for who reports on them: counts, scalars, the global step; nothing where nobody does."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from tenfold.session import observing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def observer(monkeypatch: pytest.MonkeyPatch) -> observing.StepObserver:
    made = observing.StepObserver()
    monkeypatch.setattr(observing, "observer", made)
    return made


@pytest.fixture
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def test_scalars_and_the_global_step_of_a_plain_loop(graph: tf.Graph, observer: observing.StepObserver) -> None:
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [], name="x")
    loss = tf.multiply(x, 2.0, name="loss")
    image = tf.zeros([4], name="image")
    train = tf.assign_add(step, 1)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for at in range(5):
            sess.run([loss, step, image, train], {x: at})
        first = observer.collect()
        sess.run([loss, step, image, train], {x: float("nan")})
        second = observer.collect()
        third = observer.collect()

    assert (first.steps, second.steps, third.steps) == (6, 7, 7)
    # one point a look: the first step after it
    (point,) = first.points
    # the step before or after its own update
    assert (point.values, point.step in (0, 1)) == ({"loss": 0.0}, True)
    (point,) = second.points
    assert (math.isnan(point.values["loss"]), point.step in (5, 6)) == (True, True)
    assert third.points == []


def test_a_monitored_session_tells_its_step_its_summaries_and_its_checkpoints(
    graph: tf.Graph, observer: observing.StepObserver, tmp_path: Path
) -> None:
    train = tf.assign_add(tf.train.get_or_create_global_step(), 1)
    tf.summary.scalar("accuracy", tf.constant(0.5))
    folder = str(tmp_path)
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=folder, save_summaries_steps=2, hooks=[tf.train.StopAtStepHook(num_steps=4)]
    ) as sess:
        while not sess.should_stop():
            sess.run(train)

    found = observer.collect()

    assert [point.values["accuracy"] for point in found.points if "accuracy" in point.values] == [0.5, 0.5]
    assert max(point.step or 0 for point in found.points) >= 2
    assert [each.path.rpartition("-")[2] for each in found.checkpoints] == ["0", "4"]
    assert found.logdirs == [folder]
    assert observer.collect().logdirs == []


def test_folders_of_event_files_are_told_once_by_their_whole_path(
    graph: tf.Graph, observer: observing.StepObserver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("logs", "./logs", "other"):
        tf.summary.FileWriter(folder).close()
    tf.contrib.summary.create_file_writer("on_the_task")

    assert observer.collect().logdirs == [str(tmp_path / name) for name in ("logs", "other", "on_the_task")]


def test_what_is_no_floating_scalar_is_left_alone(graph: tf.Graph, observer: observing.StepObserver) -> None:
    with tf.Session() as sess:
        sess.run([tf.constant(3), tf.constant("a"), tf.constant([1.0]), tf.constant(1.5, name="kept")])

    (point,) = observer.collect().points
    assert (point.values, point.step) == ({"kept": 1.5}, None)


def test_there_is_a_bound_on_what_is_watched(graph: tf.Graph, observer: observing.StepObserver) -> None:
    x = tf.constant(1.0)
    with tf.Session() as sess:
        for _ in range(observing._WATCHES + 10):
            sess.run(tf.identity(x))
        for at in range(observing._NOTES + 10):
            observer.note_scalars(at, {"a": 1.0})

    found = observer.collect()
    assert found.steps == observing._WATCHES
    assert len(found.points) == observing._WATCHES + observing._NOTES


def test_nothing_is_watched_where_nobody_reports(graph: tf.Graph) -> None:
    assert observing.observer is None
    with tf.Session() as sess:
        assert sess.run(tf.constant(2.0)) == 2.0
