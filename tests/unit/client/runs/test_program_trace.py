"""Traces that a program is told to make: what is sent, when, and what becomes of a service that refuses it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

import pytest

import tenfold as tf
from tenfold.control.run_answers import TraceOrder
from tenfold.runs.program_report import Place
from tenfold.runs.program_trace import ProgramTracer
from tenfold.session import step_tracing
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold.control import ControlClient

PLACE = Place("run-1", "worker", 0)


class Service:
    """Takes uploads."""

    def __init__(self, refusal: errors.OpError | None = None) -> None:
        self.refusal = refusal
        self.taken: list[tuple[Any, ...]] = []

    def upload_trace(self, run: str, trace: str, job: str, index: int, found: Any, *, timeout: float) -> None:
        self.taken.append((run, trace, job, index, [list(step.fetch) for step in found.step], found.note))
        if self.refusal is not None:
            raise self.refusal


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.constant(1.0, name="one")
        yield session


def order(name: str, seconds: float = 20.0) -> TraceOrder:
    return TraceOrder.from_json({"id": name, "steps": 1, "seconds": seconds, "max_bytes": 100_000})


def client(service: Service) -> ControlClient:
    return cast("ControlClient", service)


def test_a_trace_is_sent_once_its_steps_have_run(session: tf.Session) -> None:
    tracer, service = ProgramTracer(), Service()
    tracer.order(PLACE, order("a"))
    session.run("one:0")

    tracer.settle(client(service), 0.2, threading.Event())
    tracer.settle(client(service), 0.0, threading.Event())

    assert service.taken == [("run-1", "a", "worker", 0, [["one:0"]], "")]
    assert step_tracing.current is None


def test_an_order_that_is_told_again_is_carried_out_once(session: tf.Session) -> None:
    tracer, service = ProgramTracer(), Service()
    for _ in range(2):
        tracer.order(PLACE, order("a"))
        session.run("one:0")
        tracer.send(client(service))
    tracer.order(PLACE, None)

    assert len(service.taken) == 1


def test_when_its_time_is_over_what_there_is_is_sent() -> None:
    tracer, service = ProgramTracer(), Service()
    tracer.order(PLACE, order("a", seconds=0.0))

    tracer.settle(client(service), 5.0, _ended_after(service))

    assert service.taken == [("run-1", "a", "worker", 0, [], "0 of 1 steps ended in time")]


def test_a_program_that_ends_sends_what_it_has(session: tf.Session) -> None:
    tracer, service, ending = ProgramTracer(), Service(), threading.Event()
    tracer.order(PLACE, order("a"))
    ending.set()

    tracer.settle(client(service), 60.0, ending)
    tracer.send(client(service), 1.0)

    assert service.taken == [("run-1", "a", "worker", 0, [], "0 of 1 steps ended in time")]


def test_a_service_that_refuses_is_no_error_of_the_program(session: tf.Session) -> None:
    tracer = ProgramTracer()
    tracer.order(PLACE, order("a"))

    tracer.send(client(Service(errors.NotFoundError(None, None, "it is over"))))

    assert step_tracing.current is None


def _ended_after(service: Service) -> threading.Event:
    """Set once something was sent, so that nothing is waited for after that."""

    class Ending(threading.Event):
        def is_set(self) -> bool:
            return bool(service.taken)

        def wait(self, timeout: float | None = None) -> bool:
            return True

    return Ending()
