"""Steps of a session that callers of this process run by themselves: which, until when, and how they end."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from support.moments import started
from support.programs import TASK, Sums, numbers, sums
from tenfold_core import errors
from tenfold_services.master import caller_cluster_steps, caller_own_steps, caller_steps
from tenfold_services.master.arrangement import Part
from tenfold_services.master.caller_own_steps import CallerDirectStep, CallerWaitingStep
from tenfold_services.master.caller_steps import CallerSteps, SessionSteps
from tenfold_services.master.client_graph import ClientGraph, RunSignature
from tenfold_services.master.run_table import RunTable
from tenfold_services.worker.direct_call import DirectCall
from tenfold_services.worker.waits import StepRun

if TYPE_CHECKING:
    from tenfold_services.worker.loaded_program import LoadedProgram


@dataclass
class OwnWorker:
    """The master's own worker, as far as local steps know it."""

    programs: dict[str, LoadedProgram] = field(default_factory=dict)

    def program(self, session_handle: str, graph_handle: str) -> LoadedProgram:
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
    monkeypatch.setattr("tenfold_services.master.caller_own_steps.perf_counter_ns", lambda: next(clock))
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
    assert found.program.compiled.generated is not None
    (region,) = found.program.compiled.generated.functions
    assert region is not None

    def held(*arguments: Any) -> None:
        entered.set()
        assert gate.wait(20)
        region(*arguments)

    found.program.compiled.generated.functions[0] = held
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


# -- what a step counts, and how it fails ------------------------------------------------------------------------------


def step_of(steps: CallerSteps, handle: str = "h") -> CallerDirectStep:
    found = steps.find(handle, ("x", "y"), ("plus", "minus"), ())
    assert isinstance(found, CallerDirectStep)
    return found


async def test_steps_are_counted_over_sessions_and_after_them() -> None:
    steps = CallerSteps(TASK)
    assert steps.steps == 0
    session = opened(steps, client_graph(sums()))
    assert session.graphs != {}
    assert not session.watched
    assert not next(iter(session.graphs.values())).used
    for _ in range(3):
        step_of(steps).run(numbers(1, 2))
    assert (session.steps, steps.steps) == (3, 3)
    assert next(iter(session.graphs.values())).used
    assert session.running == set()

    runs = RunTable()
    found = sums()
    graph = client_graph(found)
    runs.put(graph)
    other = steps.open("other", 0.5, runs)
    other.offer(graph, none)
    assert step_of(steps, "other").run(numbers(1, 2)) is None, "nobody knows how long it takes"
    assert (other.steps, steps.steps) == (0, 3)
    found.program.policy.nanoseconds = 4e6
    assert step_of(steps, "other").run(numbers(1, 2)) is not None
    assert (other.steps, steps.steps) == (1, 4)

    steps.forget("h")
    assert steps.steps == 4
    steps.forget("h")
    steps.forget("nobody")
    other.interrupt(errors.cancelled("over"))
    assert steps.steps == 4, "what was counted stays counted once the sessions are gone"
    assert steps.find("other", ("x", "y"), ("plus", "minus"), ()) is None


async def test_names_that_no_step_is_known_by_find_none() -> None:
    steps = CallerSteps(TASK)
    runs = RunTable()
    graph = client_graph(sums())
    runs.put(graph)
    session = steps.open("h", None, runs)
    assert session.graphs == {}
    assert steps.find("h", ("x", "y"), ("plus", "minus"), ()) is None, "it was not offered"
    session.offer(graph, none)
    assert list(session.graphs) == [graph.signature]
    assert step_of(steps) is not None
    assert steps.find("h", ("x", "y"), ("plus",), ()) is None


def failing(found: Sums, error: Exception) -> None:
    """Lets the program's only function raise."""
    assert found.program.compiled.generated is not None

    def fail(*arguments: Any) -> None:
        raise error

    found.program.compiled.generated.functions[0] = fail


async def test_an_error_comes_with_the_task_and_a_defect_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    steps, found = CallerSteps(TASK), sums()
    session = opened(steps, client_graph(found))
    step = step_of(steps)
    for error, kind, text, logged in (
        (errors.invalid_argument("wrong"), errors.InvalidArgumentError, f"From {TASK}:\nwrong", False),
        (errors.internal("broken"), errors.InternalError, f"From {TASK}:\nbroken", True),
        (ZeroDivisionError("by nought"), errors.InternalError, f"From {TASK}:\n{TASK}: ZeroDivisionError: by", True),
    ):
        failing(found, error)
        caplog.clear()
        with pytest.raises(kind) as caught:
            step.run(numbers(1, 2))
        assert caught.value.message.startswith(text)
        assert bool(caplog.records) == logged
        assert session.running == set()
    assert session.steps == 3


async def test_a_step_of_a_session_that_ends_fails_with_its_reason() -> None:
    steps, found = CallerSteps(TASK), sums()
    session = opened(steps, client_graph(found))
    step = step_of(steps)
    assert found.program.compiled.generated is not None

    def interrupted(*arguments: Any) -> None:
        session.interrupt(errors.aborted("the session was closed"))
        raise errors.invalid_argument("and this came of it")

    found.program.compiled.generated.functions[0] = interrupted
    with pytest.raises(errors.AbortedError) as caught:
        step.run(numbers(1, 2))
    assert caught.value.message == "the session was closed"
    assert caught.value is not session.stop[0], "each step raises an error of its own"
    assert step.run(numbers(1, 2)) is None


async def test_steps_that_wait_are_interrupted_and_told() -> None:
    steps = CallerSteps(TASK)
    session = steps.open("h", None, RunTable())

    class Waiting:
        part_run = None

        def __init__(self) -> None:
            self.interrupted = 0

        def interrupt(self) -> None:
            self.interrupted += 1

    runs = [Waiting(), Waiting()]
    session.linked.update(runs)
    session.refuse()
    assert [run.interrupted for run in runs] == [0, 0]
    session.interrupt(errors.aborted("over"))
    assert [run.interrupted for run in runs] == [1, 1]


async def test_steps_that_may_wait_are_told_with_their_parts_and_those_of_others() -> None:
    steps = CallerSteps(TASK)
    session = steps.open("h", None, RunTable())

    class Linked:
        step_id = 3

        def __init__(self, part_run: Any) -> None:
            self.part_run = part_run

        def pending_tasks(self) -> tuple[str, ...]:
            return ("/job:other/task:0",)

    session.linked.update([Linked("one"), Linked(None)])  # type: ignore[arg-type]
    found = sorted(steps.step_runs(), key=lambda each: each.run is None)
    assert found == [StepRun(TASK, run, 3, "h", TASK, parts=("/job:other/task:0",)) for run in ("one", None)]  # type: ignore[arg-type]


async def test_a_watched_session_is_told_of_each_end_and_survives_the_loop() -> None:
    steps = CallerSteps(TASK)
    session = opened(steps, client_graph(sums()))
    step = step_of(steps)
    await session.idle()
    assert session.watched
    told: list[int] = []
    session.tell_watcher = lambda: told.append(1)  # type: ignore[method-assign]
    step.run(numbers(1, 2))
    assert told == [1]
    step.end()
    assert step.run(numbers(1, 2)) is None
    assert told == [1, 1], "also of one that did not run"
    del session.tell_watcher  # type: ignore[method-assign]

    class Ended:
        def call_soon_threadsafe(self, call: Any) -> None:
            raise RuntimeError("Event loop is closed")

    session._loop = cast("Any", Ended())
    session.tell_watcher()


async def test_a_step_is_among_those_that_run_while_it_does() -> None:
    steps, found = CallerSteps(TASK), sums()
    session = opened(steps, client_graph(found))
    step = step_of(steps)
    assert not step.may_wait
    assert found.program.compiled.generated is not None
    function, seen = found.program.compiled.generated.functions[0], []
    assert function is not None

    def looking(*arguments: Any) -> None:
        seen.append(set(session.running))
        function(*arguments)

    found.program.compiled.generated.functions[0] = looking
    step.run(numbers(1, 2))
    step.run(numbers(1, 2))
    assert seen == [{0}, {1}]


async def test_a_defect_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    steps, found = CallerSteps(TASK), sums()
    opened(steps, client_graph(found))
    without, with_cause = errors.internal("broken"), errors.internal("broken")
    with_cause.__cause__ = cause = ZeroDivisionError("by nought")
    for error, told in ((without, without), (with_cause, cause)):
        failing(found, error)
        caplog.clear()
        with pytest.raises(errors.InternalError):
            step_of(steps).run(numbers(1, 2))
        (record,) = caplog.records
        assert record.exc_info is not None
        assert record.exc_info[1] is told


async def test_an_interrupted_session_is_forgotten() -> None:
    steps = CallerSteps(TASK)
    session = opened(steps, client_graph(sums()))
    session.interrupt(errors.cancelled("over"))
    assert steps._sessions == {}


async def test_drained_waits_for_every_session() -> None:
    steps = CallerSteps(TASK)
    sessions = [steps.open(handle, None, RunTable()) for handle in "ab"]
    for session in sessions:
        session.running.add(1)
    drained = await started(steps.drained())
    for session in sessions:
        assert not drained.done()
        session.running.clear()
        session.tell_watcher()
        await started(asyncio.sleep(0))
    await drained


async def test_idle_waits_for_every_step() -> None:
    steps = CallerSteps(TASK)
    session = opened(steps, client_graph(sums()))
    session.running.update((100, 101))
    idle = await started(session.idle())
    for number in (100, 101):
        assert not idle.done()
        session.running.discard(number)
        session.tell_watcher()
        await started(asyncio.sleep(0))
    await idle


async def test_a_run_is_timed_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, found = CallerSteps(TASK), sums()
    opened(steps, client_graph(found))
    step, policy = step_of(steps), found.program.policy
    clock = iter((1000, 1300))
    monkeypatch.setattr(caller_own_steps, "clock", lambda: next(clock))
    noted: list[tuple[int, Any]] = []
    monkeypatch.setattr(type(policy), "times_next", lambda self: len(noted) == 0)
    monkeypatch.setattr(type(policy), "note", lambda self, spent, shapes=(): noted.append((spent, shapes)))
    feeds = numbers(3, 5)
    for _ in range(2):
        assert [v.tolist() for v in step.run_timed(feeds) or ()] == [[8.0], [-2.0]]
    assert noted == [(300, (DirectCall(found.program, [found.x, found.y], [found.plus, found.minus]).shapes(feeds),))]
    step.end()
    assert not step.is_short(feeds)


@pytest.mark.parametrize(("took", "kept"), [(5_000_000, True), (5_000_001, False), (500_000_000, False)])
async def test_a_step_that_comes_near_its_deadline_has_the_next_one_watched(
    monkeypatch: pytest.MonkeyPatch, took: int, kept: bool
) -> None:
    steps, found = CallerSteps(TASK), sums()
    opened(steps, client_graph(found), 0.5)
    step, policy = step_of(steps), found.program.policy
    policy.nanoseconds = 4e6
    clock = iter((100, 100 + took))
    monkeypatch.setattr(caller_own_steps, "perf_counter_ns", lambda: next(clock))
    assert step.run(numbers(1, 2)) is not None, "in time to the tick"
    assert policy.nanoseconds == (4e6 if kept else None)


# -- what is taken -----------------------------------------------------------------------------------------------------


@dataclass
class Pushes:
    """In place of a plan of what is pushed between tasks."""


def pushed_graph() -> ClientGraph:
    graph = client_graph(sums())
    graph.pushes = cast("Any", Pushes())
    return graph


@pytest.mark.parametrize(("seconds", "taken"), [(None, True), (5.0, True), (4.99, False)])
async def test_a_graph_over_tasks_is_taken_where_there_are_lines_and_time(
    monkeypatch: pytest.MonkeyPatch, seconds: float | None, taken: bool
) -> None:
    made: list[tuple[Any, ...]] = []
    linked: Any = object()
    monkeypatch.setattr(caller_cluster_steps, "cluster_graph", lambda *arguments: made.append(arguments) or linked)
    lines: Any = object()
    steps = CallerSteps(TASK, lines)
    session, graph = steps.open("h", seconds, RunTable()), pushed_graph()
    session.offer(graph, none)
    assert (graph.local is linked) == taken
    assert made == [(session, graph, lines, none)] * taken


async def test_a_graph_over_tasks_of_which_some_edge_is_not_pushed_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller_cluster_steps, "cluster_graph", lambda *arguments: None)
    graph = pushed_graph()
    CallerSteps(TASK, cast("Any", object())).open("h", None, RunTable()).offer(graph, none)
    assert graph.local is None, "and it is not taken for one part of ours either"


async def test_a_graph_with_pushes_but_without_lines_may_still_be_one_part_of_ours() -> None:
    graph = pushed_graph()
    CallerSteps(TASK).open("h", None, RunTable()).offer(graph, none)
    assert graph.local is not None
    assert graph.local._kind is CallerDirectStep
    refused = CallerSteps(TASK, cast("Any", object()))
    refused.refuse()
    graph = pushed_graph()
    refused.open("h", None, RunTable()).offer(graph, none)
    assert graph.local is None


@pytest.mark.parametrize(("seconds", "waits", "taken"), [(None, True, True), (9.0, True, False), (None, False, False)])
async def test_a_program_that_waits_for_kernels_alone_is_taken_without_a_deadline(
    monkeypatch: pytest.MonkeyPatch, seconds: float | None, waits: bool, taken: bool
) -> None:
    monkeypatch.setattr(caller_steps, "is_callable", lambda program: False)
    monkeypatch.setattr(caller_steps, "waits_for_kernels_only", lambda program: waits)
    graph = client_graph(sums())
    CallerSteps(TASK).open("h", seconds, RunTable()).offer(graph, none)
    assert (graph.local and graph.local._kind) == (CallerWaitingStep if taken else None)
