"""Tracing the next steps of this process: which are taken, what the program sees of it, and what nobody pays for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from tenfold.session import step_tracing
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold.session.step_tracing import StepTracer

MIB = 1 << 20


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [], name="x")
        tf.negative(x, name="y")
        tf.check_numerics(x, "bad", name="checked")
        with tf.Session() as session:
            yield session


def started(steps: int = 1, max_bytes: int = MIB) -> StepTracer:
    return step_tracing.start(steps, 20.0, max_bytes)


def fetched(tracer: StepTracer) -> list[list[str]]:
    return [list(step.fetch) for step in tracer.result().step]


def test_the_next_steps_are_traced_and_no_more(session: tf.Session) -> None:
    session.run("y:0", {"x:0": 1.0})
    session.run("y:0", {"x:0": 1.0})
    tracer = started(steps=2)

    values = [session.run("y:0", {"x:0": float(each)}) for each in range(4)]

    assert values == [0.0, -1.0, -2.0, -3.0]
    assert tracer.done.is_set()
    assert fetched(tracer) == [["y:0"], ["y:0"]]
    names = {node.node_name for device in tracer.result().step[0].step_stats.dev_stats for node in device.node_stats}
    assert "y" in names
    assert tracer.result().note == ""


def test_a_prepared_step_is_dropped_and_prepared_again(session: tf.Session) -> None:
    run = session.make_callable("y:0", ["x:0"])
    for _ in range(3):
        run(1.0)
    tracer = started()

    assert [run(2.0), run(3.0), run(4.0)] == [-2.0, -3.0, -4.0]

    assert fetched(tracer) == [["y:0"]]
    (call,) = session._calls._by_key.values()
    assert call.step is not None


def test_the_program_does_not_see_what_it_did_not_ask_for(session: tf.Session) -> None:
    started()
    metadata = config_pb2.RunMetadata()

    session.run("y:0", {"x:0": 1.0}, options=config_pb2.RunOptions(), run_metadata=metadata)

    assert not metadata.step_stats.dev_stats


def test_the_program_sees_what_it_asked_for(session: tf.Session) -> None:
    tracer = started()
    metadata = config_pb2.RunMetadata()
    options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)

    session.run("y:0", {"x:0": 1.0}, options=options, run_metadata=metadata)

    assert metadata.step_stats.dev_stats
    assert tracer.result().step[0].step_stats.dev_stats


def test_a_failing_step_is_traced_with_its_error(session: tf.Session) -> None:
    tracer = started()

    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run("checked:0", {"x:0": float("nan")})

    (step,) = tracer.result().step
    assert step.error.startswith("InvalidArgumentError: ")
    assert "bad : Tensor had NaN" in step.error
    assert step.begin_nanos < step.end_nanos
    assert tracer.done.is_set()


def test_steps_that_fill_queues_are_traced_but_do_not_count(session: tf.Session) -> None:
    tracer = started()
    beside = threading.Thread(target=session.run, args=("x:0", {"x:0": 1.0}), name="QueueRunnerThread-q-enqueue")
    beside.start()
    beside.join(20)

    assert not tracer.done.is_set()
    session.run("y:0", {"x:0": 1.0})

    assert tracer.done.is_set()
    assert ["y:0"] in fetched(tracer)


def test_a_trace_has_a_bound(session: tf.Session) -> None:
    tracer = started(steps=2, max_bytes=200)

    session.run("y:0", {"x:0": 1.0})
    session.run("y:0", {"x:0": 1.0})

    found = tracer.result()
    assert [step.HasField("step_stats") for step in found.step] == [False, False]
    assert found.note == "2 steps without their nodes: a trace takes 200 bytes"


def test_after_the_stop_nothing_is_traced(session: tf.Session) -> None:
    tracer = started()
    step_tracing.stop(tracer)

    session.run("y:0", {"x:0": 1.0})

    assert fetched(tracer) == []
    assert tracer.result().note == "0 of 1 steps ended in time"


def test_when_its_time_is_over_nothing_is_traced(session: tf.Session) -> None:
    tracer = step_tracing.start(1, 0.0, MIB)

    session.run("y:0", {"x:0": 1.0})

    assert tracer.is_over
    assert not step_tracing.is_wanted()
    assert fetched(tracer) == []
