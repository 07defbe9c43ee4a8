"""Supervisor: a session restored or initialised, services beside it, and everything stopped together."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 20.0


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def model() -> tuple[tf.Tensor, tf.Tensor]:
    """(train op, global step); one summary."""
    step = tf.train.create_global_step()
    value = tf.get_variable("value", initializer=1.0)
    tf.summary.scalar("seen", value)
    return tf.train.GradientDescentOptimizer(0.5).minimize(tf.square(value), global_step=step), step


def events(folder: Path) -> list[tf.Event]:
    return [event for path in tf.gfile.Glob(f"{folder}/events.*") for event in tf.train.summary_iterator(path)]


def test_it_initialises_saves_and_restores(tmp_path: Path) -> None:
    train, step = model()
    # no service that saves: its first checkpoint, of step 0, might be the last to be written
    supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0, save_model_secs=0)
    with supervisor.managed_session() as session:
        for _ in range(3):
            session.run(train)
        supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
    assert tf.train.latest_checkpoint(str(tmp_path)) == f"{tmp_path}/model.ckpt-3"

    again = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0, save_model_secs=0)
    with again.managed_session() as session:
        assert session.run(step) == 3

    statuses = [event.session_log.status for event in events(tmp_path) if event.HasField("session_log")]
    assert statuses.count(tf.SessionLog.START) == 2
    assert statuses.count(tf.SessionLog.STOP) == 2
    assert (tmp_path / "graph.pbtxt").exists()


def test_the_services_write_summaries_the_rate_and_checkpoints(tmp_path: Path) -> None:
    train, _ = model()
    supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_summaries_secs=0.01, save_model_secs=0.01)
    with supervisor.managed_session() as session:
        deadline = time.monotonic() + PATIENCE
        tags: set[str] = set()
        while not {"seen", "global_step/sec"} <= tags or tf.train.latest_checkpoint(str(tmp_path)) is None:
            session.run(train)
            # flushing waits for the writer's thread
            supervisor.summary_writer.flush()
            tags = {value.tag for event in events(tmp_path) for value in event.summary.value}
            assert time.monotonic() < deadline, (tags, list(tmp_path.iterdir()))
    assert not [thread for thread in threading.enumerate() if isinstance(thread, tf.train.LooperThread)]


def test_an_error_of_the_block_is_raised_after_all_was_stopped(tmp_path: Path) -> None:
    model()
    supervisor = tf.train.Supervisor(logdir=str(tmp_path))
    rounds = threading.Event()
    used: list[Any] = []

    def block() -> None:
        with supervisor.managed_session() as session:
            used.extend([session, supervisor.loop(0.001, rounds.set)])
            assert rounds.wait(PATIENCE)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        block()
    assert not used[1].is_alive()
    with pytest.raises(RuntimeError, match="closed"):
        used[0].run(supervisor.global_step)


def test_an_error_of_a_thread_ends_the_block() -> None:
    model()
    supervisor = tf.train.Supervisor()

    def fail() -> None:
        raise ValueError("in a thread")

    def block() -> None:
        with supervisor.managed_session():
            supervisor.loop(None, fail)
            supervisor.wait_for_stop()

    with pytest.raises(ValueError, match="in a thread"):
        block()


def test_the_end_of_the_input_is_an_end_like_any_other() -> None:
    model()
    supervisor = tf.train.Supervisor()
    with supervisor.managed_session():
        raise tf.errors.OutOfRangeError(None, None, "end")
    assert supervisor.should_stop()


def test_a_session_that_cannot_be_had_is_the_error() -> None:
    tf.get_variable("value", initializer=1.0)
    supervisor = tf.train.Supervisor(init_op=None, local_init_op=None)
    with pytest.raises(RuntimeError, match="Model is not initialized"), supervisor.managed_session():
        pytest.fail("there is no session")


def test_queue_runners_and_init_fn_are_run() -> None:
    queue = tf.FIFOQueue(1, tf.int32, shapes=())
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(7)]))
    fed = tf.placeholder(tf.float32, ())
    value = tf.get_variable("value", initializer=fed)
    seen = []
    supervisor = tf.train.Supervisor(init_feed_dict={fed: 2.0}, init_fn=seen.append)
    dequeue = None
    assert supervisor.ready_op is not None
    with supervisor.managed_session() as session:
        dequeue = session.graph.get_operations()[0]
        assert session.run(value) == 2.0
        assert seen == [session]
    assert dequeue.type == "FIFOQueueV2"


def test_a_worker_waits_for_the_chief_and_wants_devices() -> None:
    tf.get_variable("value", initializer=1.0)
    with pytest.raises(ValueError, match="When using replicas, all Variables must have their device set"):
        tf.train.Supervisor(is_chief=False)


def test_a_worker_has_no_services_and_times_out() -> None:
    with tf.device("/job:localhost/task:0"):
        tf.get_variable("value", initializer=1.0)
    worker = tf.train.Supervisor(is_chief=False, logdir="/nowhere", recovery_wait_secs=0.01)
    assert (worker.save_path, worker.summary_writer) == (None, None)
    with tf.Session() as session, pytest.raises(RuntimeError, match="Only chief supervisor"):
        worker.start_standard_services(session)
    with pytest.raises(tf.errors.DeadlineExceededError):
        worker.prepare_or_wait_for_session(max_wait_secs=0.05)
    with tf.Session() as session, pytest.raises(RuntimeError, match="requires a summary writer"):
        worker.summary_computed(session, b"")


def test_basic_train_loop_starts_again_after_an_aborted_step() -> None:
    train, _ = model()
    supervisor = tf.train.Supervisor()
    calls = []

    def step(session: tf.Session, word: str, *, last: int) -> None:
        calls.append((word, session.run(train)))
        if len(calls) == 1:
            raise tf.errors.AbortedError(None, None, "a server restarted")
        if len(calls) == last:
            supervisor.request_stop()

    tf.train.basic_train_loop(supervisor, step, args=("x",), kwargs={"last": 3})
    assert len(calls) == 3
