"""What a program answers when it is asked why nothing goes on: its steps, its server's waits, its threads."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import tenfold as tf
from tenfold.runs import program_why
from tenfold.runs.program_report import OfRun, Place, ProgramReporter
from tenfold_core import errors

if TYPE_CHECKING:
    import pytest

    from tenfold_protos.why_pb2 import TaskAnswer

W0 = "/job:worker/replica:0/task:0"
PATIENCE = 60.0


class Service:
    """Takes answers, or refuses them."""

    def __init__(self, error: errors.OpError | None = None) -> None:
        self.error = error
        self.came: list[tuple[Any, ...]] = []

    def answer_why(self, *given: Any, timeout: float) -> None:
        self.came.append(given)
        if self.error is not None:
            raise self.error


def while_waiting(session: Any, fetch: Any, end: Any) -> TaskAnswer:
    """The answer once the step is seen to wait; `end` lets it go on."""
    thread = threading.Thread(target=session.run, args=(fetch,), daemon=True)
    thread.start()
    found = program_why.answer(W0)
    turns = 0
    while not found.wait and thread.is_alive() and turns < 100_000:
        found, turns = program_why.answer(W0), turns + 1
    session.run(end)
    thread.join(PATIENCE)
    assert not thread.is_alive()
    return found


def test_a_step_that_waits_is_told_with_its_queue_and_who_fills_it() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.FIFOQueue(3, tf.float32, [[]], name="work_of_why")
        put, got = queue.enqueue(1.0, name="put"), queue.dequeue(name="get")
        session.run([put, got])
        found = while_waiting(session, got, put)

    (wait,) = [each for each in found.wait if each.node == "get"]
    assert (found.task, wait.kind, wait.resource, wait.have, wait.need) == (W0, "elements", "work_of_why", 0, 1)
    assert wait.op.startswith("QueueDequeue")
    assert wait.seconds >= 0
    assert {(use.node, use.gives) for use in found.use} >= {("put", True), ("get", False)}
    assert ["get:0"] in [list(step.name) for step in found.client_step]
    assert "run" in [thread.doing for thread in found.thread]
    assert found.pid


def test_an_answer_that_is_refused_does_no_harm() -> None:
    service: Any = Service(errors.not_found("nobody waits"))
    program_why.send(service, Place("run-1", "worker", 0), "why-1")
    (given,) = service.came
    assert given[:4] == ("run-1", "why-1", "worker", 0)
    assert given[4].task == W0


def test_a_question_is_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(program_why, "send", lambda client, place, asked: sent.append(asked))
    place = Place("run-1", "worker", 0)
    reporter = ProgramReporter(OfRun(place), "http://none", lambda: None)
    client: Any = SimpleNamespace()
    for asked in ("why-1", "why-1", "why-2"):
        reporter._answer(client, place, asked)
    assert sent == ["why-1", "why-2"]
