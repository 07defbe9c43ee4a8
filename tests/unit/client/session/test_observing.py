"""What a session's steps leave for who reports on them: counts, scalars, the global step; nothing where nobody does."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.contrib import slim
from tenfold.contrib.learn.monitors import RunHookAdapterForMonitors, StopAtStep
from tenfold.estimator.hooks import _StopAtCheckpointStepHook
from tenfold.session import last_step, observing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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


def variable_step(use_resource: bool) -> Any:
    with tf.variable_scope("", use_resource=use_resource):
        return tf.train.get_or_create_global_step()


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("closes", [False, True])
@pytest.mark.parametrize("look_at", [None, 0, 3, 6])
def test_the_last_step_of_a_program_is_exact(
    graph: tf.Graph, observer: observing.StepObserver, use_resource: bool, closes: bool, look_at: int | None
) -> None:
    """However it fetches the step, before or after its update, and whenever somebody has looked before."""
    step = variable_step(use_resource)
    loss = tf.multiply(tf.cast(step, tf.float32), 1.0, name="loss")
    with tf.control_dependencies([loss]):
        train = tf.assign_add(step, 1)
    graph.finalize()
    sess = tf.Session()
    sess.run(step.initializer)
    for at in range(7):
        sess.run([loss, train] if at < 5 else train.op)
        if at == look_at:
            observer.collect()
    before = graph.version
    if closes:
        sess.close()
    else:
        last_step.note_open_sessions()
        sess.close()
    found = observer.collect(last=True)

    assert found.points[-1].step == 7
    assert found.steps == 8, "what is read at the end does not count"
    assert graph.version == before
    assert [point.values["loss"] for point in found.points if point.values][-1:] == [4.0]
    assert observer.collect(last=True).points == []


def test_a_session_that_was_behind_tells_nothing(graph: tf.Graph, observer: observing.StepObserver) -> None:
    step = variable_step(False)
    for last in (600, 300):
        with tf.Session() as sess:
            sess.run(step.initializer)
            sess.run(tf.assign(step, last))
        found = observer.collect(last=True)
        assert [point.step for point in found.points] == ([600] if last == 600 else [])


def test_a_session_whose_step_cannot_be_read_closes_all_the_same(
    graph: tf.Graph, observer: observing.StepObserver
) -> None:
    variable_step(False)
    with tf.Session() as sess:
        sess.run(tf.no_op())

    assert observer.collect(last=True).points == []
    assert list(observer.sessions) == []


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


def monitored(*hooks: Any) -> None:
    train = tf.assign_add(tf.train.get_or_create_global_step(), 1)
    with tf.train.MonitoredTrainingSession(hooks=list(hooks)) as sess:
        for _ in range(2):
            sess.run(train)


def of_slim() -> None:
    with tf.control_dependencies([tf.assign_add(tf.train.get_or_create_global_step(), 1)]):
        slim.learning.train(tf.constant(1.0), None, number_of_steps=3, log_every_n_steps=0)


@pytest.mark.parametrize(
    ("train", "end"),
    [
        (lambda: monitored(), None),
        (lambda: monitored(tf.train.StopAtStepHook(last_step=5)), 5),
        (lambda: monitored(tf.train.StopAtStepHook(last_step=5), tf.train.StopAtStepHook(num_steps=7)), 7),
        (lambda: monitored(_StopAtCheckpointStepHook("nowhere", 9)), 9),
        (lambda: monitored(RunHookAdapterForMonitors([StopAtStep(num_steps=4)])), 4),
        (of_slim, 3),
    ],
    ids=["none", "a step", "the newest", "an estimator's worker", "a monitor", "slim"],
)
def test_a_training_tells_where_it_stops(
    graph: tf.Graph, observer: observing.StepObserver, train: Callable[[], None], end: int | None
) -> None:
    train()

    assert observer.collect().stops_at == end


def test_what_is_no_step_is_no_end(observer: observing.StepObserver) -> None:
    observer.note_stop(np.int64(8))
    for odd in (None, "many", math.inf, math.nan, -1, 1 << 63):
        observer.note_stop(odd)

    assert observer.stops_at == 8


#: Feeds by placeholder's shape → the batch that they tell.
BATCHES = {
    "images and labels": ({"x": ([None, 4], (32, 4)), "y": ([None], (32,))}, 32),
    "a scalar beside": ({"x": ([None, 4], (8, 4)), "rate": ([], ())}, 8),
    "sizes that differ": ({"x": ([None, 4], (32, 4)), "y": ([None], (16,))}, None),
    "a fixed size": ({"x": ([32, 4], (32, 4))}, None),
    "time may come first": ({"x": ([None, None, 4], (7, 32, 4))}, None),
    "nothing is known": ({"x": (None, (32, 4))}, None),
}


@pytest.mark.parametrize(("feeds", "batch"), BATCHES.values(), ids=BATCHES)
def test_examples_are_counted_where_the_feeds_agree(
    graph: tf.Graph, observer: observing.StepObserver, feeds: dict[str, Any], batch: int | None
) -> None:
    holders = {tf.placeholder(tf.float32, shape, name=name): value for name, (shape, value) in feeds.items()}
    total = tf.add_n([tf.reduce_sum(each) for each in holders])
    fed = {each: np.ones(shape, np.float32) for each, shape in holders.items()}
    with tf.Session() as sess:
        other = tf.constant(1.0)
        sess.run(other)
        for _ in range(3):
            sess.run(total, fed)
        plain = observer.collect()
        sess.run(total, fed, options=tf.RunOptions())
        with_options = observer.collect()
        sess.run(other)
        without_feeds = observer.collect()

    # the busiest combination of fetches since the last look, and no other
    assert (plain.recent, plain.examples) == (3, None if batch is None else 3 * batch)
    assert (with_options.recent, with_options.examples) == (1, batch)
    assert (without_feeds.recent, without_feeds.examples) == (1, None)


def test_a_summary_may_say_how_many_examples_there_are(observer: observing.StepObserver) -> None:
    observer.note_scalars(1, {"average_examples_per_sec": 5.0, "global_step/sec": 2.0})
    observer.note_scalars(2, {"images/sec": 7.0})

    assert observer.collect().examples_per_second == 7.0


def test_hooks_log_numbers_that_are_no_floating_scalars(graph: tf.Graph, observer: observing.StepObserver) -> None:
    train = tf.assign_add(tf.train.get_or_create_global_step(), 1)
    loss, right = tf.constant(0.5, name="loss"), tf.constant(7, name="right")
    unknown = tf.placeholder_with_default(0.25, None, name="unknown")
    hooks = [
        tf.train.LoggingTensorHook({"hits": right, "cost": loss, "open": unknown, "text": tf.constant("a")}, 1),
        tf.train.NanTensorHook(loss),
        tf.train.StopAtStepHook(num_steps=1),
    ]
    with tf.train.MonitoredTrainingSession(hooks=hooks) as sess:
        while not sess.should_stop():
            sess.run(train)

    seen = {name: value for point in observer.collect().points for name, value in point.values.items()}
    assert seen == {"hits": 7.0, "loss": 0.5, "open": 0.25}


def test_a_supervisor_tells_its_step_and_its_checkpoints(
    graph: tf.Graph, observer: observing.StepObserver, tmp_path: Path
) -> None:
    step = tf.train.get_or_create_global_step()
    loss = tf.constant(0.5, name="loss")
    train = tf.assign_add(step, 1)
    supervisor = tf.train.Supervisor(logdir=str(tmp_path), global_step=step, save_model_secs=0, summary_op=None)
    with supervisor.managed_session() as sess:
        for _ in range(3):
            sess.run([train, loss, step])
        supervisor.saver.save(sess, supervisor.save_path, global_step=step)

    found = observer.collect()
    assert [(point.values, point.step is not None) for point in found.points if "loss" in point.values] == [
        ({"loss": 0.5}, True)
    ]
    assert [each.path for each in found.checkpoints] == [f"{tmp_path}/model.ckpt-3"]


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
