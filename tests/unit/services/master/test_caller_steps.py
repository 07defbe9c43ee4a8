"""Steps of a session that callers of this process run by themselves: which, until when, and how they end."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.programs import TASK, Sums, numbers, sums
from tenfold_core import errors
from tenfold_services.master.caller_steps import CallerSteps, SessionSteps
from tenfold_services.master.client_graph import ClientGraph, Part, RunSignature
from tenfold_services.master.run_table import RunTable

if TYPE_CHECKING:
    from tenfold_services.worker.program import Program


@dataclass
class OwnWorker:
    """The master's own worker, as far as local steps know it."""

    programs: dict[str, Program] = field(default_factory=dict)

    def program(self, session_handle: str, graph_handle: str) -> Program:
        return self.programs[graph_handle]


def none(error: errors.OpError) -> Any:
    """Tells nothing more about an error."""
    raise AssertionError(error)


def client_graph(found: Sums, task: str = TASK, worker: Any = None) -> ClientGraph:
    fetches = {"plus:0": found.plus, "minus:0": found.minus}
    part = Part(task, {"x:0": found.x, "y:0": found.y}, fetches, handle="g")
    part.worker = worker if worker is not None else OwnWorker({"g": found.program})  # type: ignore[assignment]
    signature = RunSignature(("x:0", "y:0"), ("minus:0", "plus:0"), ())
    return ClientGraph(signature, None, 0, 0, [part])  # type: ignore[arg-type]


def opened(steps: CallerSteps, graph: ClientGraph, seconds: float | None = None) -> SessionSteps:
    """A session that knows the graph and has offered it."""
    runs = RunTable()
    runs.put(graph)
    session = steps.open("h", seconds, runs)
    session.offer(graph, none)
    return session


async def test_a_step_is_found_by_the_names_as_the_client_writes_them() -> None:
    steps = CallerSteps(TASK)
    opened(steps, client_graph(sums()))

    step = steps.find("h", ("y:0", "x"), ("plus", "minus:0", "plus:0"), ())

    assert step is not None
    assert [v.tolist() for v in step.run(numbers(3, 5)) or ()] == [[8.0], [2.0], [8.0]]
    assert steps.find("h", ("y:0", "x"), ("plus", "minus:0", "plus:0"), ()) is step
    assert steps.find("h", ("x",), ("plus", "minus"), ()) is None
    assert steps.find("nobody", ("x", "y"), ("plus", "minus"), ()) is None


async def test_only_what_is_all_ours_is_taken() -> None:
    steps = CallerSteps(TASK)
    session = steps.open("h", None, RunTable())
    far, foreign = client_graph(sums(), task="/job:ps/replica:0/task:0"), client_graph(sums(), worker=object())
    two = client_graph(sums())
    two.parts *= 2

    for graph in (far, foreign, two):
        session.offer(graph, none)
        assert graph.local is None


async def test_short_is_what_the_last_runs_were() -> None:
    steps, found = CallerSteps(TASK), sums()
    opened(steps, client_graph(found))
    step = steps.find("h", ("x", "y"), ("plus", "minus"), ())
    assert step is not None

    assert not step.is_short(numbers(1, 2))
    assert step.run_timed(numbers(1, 2)) is not None
    assert found.program.policy.nanoseconds is not None
    found.program.policy.nanoseconds = 10.0
    assert step.is_short(numbers(1, 2))
    assert not step.is_short([np.ones(1000, np.float32), numbers(2)[0]])
    found.program.policy.nanoseconds = 1e9
    assert not step.is_short(numbers(1, 2))


async def test_a_deadline_is_watched_by_others_unless_it_is_far(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, found = CallerSteps(TASK), sums()
    opened(steps, client_graph(found), 0.5)
    step = steps.find("h", ("x", "y"), ("plus", "minus"), ())
    assert step is not None

    assert step.run(numbers(1, 2)) is None
    found.program.policy.nanoseconds = 6e6
    assert step.run(numbers(1, 2)) is None
    found.program.policy.nanoseconds = 4e6
    assert step.run(numbers(1, 2)) is not None

    clock = iter((0, 700_000_000))
    monkeypatch.setattr("tenfold_services.master.caller_steps.perf_counter_ns", lambda: next(clock))
    with pytest.raises(errors.DeadlineExceededError, match="within 500 ms; it took 700 ms"):
        step.run(numbers(1, 2))
    assert step.run(numbers(1, 2)) is None


async def test_a_dropped_graph_is_not_run_and_its_program_is_freed() -> None:
    steps, found = CallerSteps(TASK), sums()
    graph = client_graph(found)
    session = opened(steps, graph)
    step = steps.find("h", ("x", "y"), ("plus", "minus"), ())
    assert step is not None
    program = weakref.ref(found.program)
    del found

    session.runs.forget(graph)
    assert graph.local is not None
    graph.local.end()
    del graph

    assert step.run(numbers(1, 2)) is None
    assert steps.find("h", ("x", "y"), ("plus", "minus"), ()) is None
    del step
    gc.collect()
    assert program() is None


async def test_an_interrupted_session() -> None:
    steps = CallerSteps(TASK)
    session = opened(steps, client_graph(sums()))
    step = steps.find("h", ("x", "y"), ("plus", "minus"), ())
    assert step is not None

    session.interrupt(errors.CancelledError(None, None, "because"))

    assert step.run(numbers(1, 2)) is None
    assert steps.find("h", ("x", "y"), ("plus", "minus"), ()) is None
    await session.idle()


async def test_refusing_waits_for_the_steps_of_all_sessions() -> None:
    steps, found = CallerSteps(TASK), sums()
    entered, gate = threading.Event(), threading.Event()
    assert found.program.generated is not None
    (region,) = found.program.generated.functions
    assert region is not None

    def held(*arguments: Any) -> None:
        entered.set()
        assert gate.wait(20)
        region(*arguments)

    found.program.generated.functions[0] = held
    session = opened(steps, client_graph(found))
    step = steps.find("h", ("x", "y"), ("plus", "minus"), ())
    assert step is not None
    running = asyncio.get_running_loop().run_in_executor(None, step.run, numbers(1, 2))
    await asyncio.to_thread(entered.wait, 20)

    steps.refuse()
    drained = asyncio.create_task(steps.drained())
    assert step.run(numbers(1, 2)) is None
    assert not drained.done()
    gate.set()

    await asyncio.wait_for(drained, 20)
    assert [v.tolist() for v in await running or ()] == [[3.0], [-1.0]]
    late = client_graph(sums())
    session.offer(late, none)
    assert late.local is None
