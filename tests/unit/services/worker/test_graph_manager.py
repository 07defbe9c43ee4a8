"""The graphs and steps of a task without a server: what starts, what is refused, asked elsewhere, told, and ended."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from support.moments import PATIENCE, started
from support.parts import PartBuilder
from tenfold_core import dtypes, errors, telemetry
from tenfold_core.rendezvous_key import make_key
from tenfold_protos.cluster_pb2 import ClusterDef
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_services import step_spans
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.interfaces import RunRequest
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.worker import graph_manager
from tenfold_services.worker.run_policy import RunPolicy
from tenfold_services.worker.waits import wait_texts
from tenfold_services.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_services.worker.graph_run import GraphRun

F32 = dtypes.float32
TASK, PS = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0"


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker(TASK, limits=replace(DEFAULT_LIMITS, inline_nanoseconds=10**12, idle_step_seconds=10))
    yield made
    made.close()


class Graph:
    """r + 1 at the worker, where r comes from the ps."""

    def __init__(self, worker: Worker, session: str = "") -> None:
        self.worker, self.session = worker, session
        device = worker.devices[0]
        self.part = PartBuilder(device.name, device.incarnation)
        self.key = self.part.recv("r", F32, f"{PS}/device:CPU:0", 5)
        self.part.const("one", 1.0)
        self.part.node("Add", "y", ["r", "one"], T=F32)
        self.fetch = self.part.fetch("y")
        self.answers: list[tuple[Any, Any]] = []
        self.over = asyncio.Event()
        self.handle = ""

    async def register(self) -> Graph:
        self.handle = await self.worker.register_graph(self.session, self.part.graph_def, ConfigProto())
        return self

    @property
    def plan(self) -> ExchangePlan:
        return ExchangePlan(self.session, self.handle, expected=(self.key,))

    def start(self, step: int, plan: ExchangePlan | None = None) -> GraphRun:
        def done(result: Any, error: Any) -> None:
            self.answers.append((result, error))
            self.over.set()

        push: Any = None if plan is None else (lambda *_: None)
        return self.worker.start_run(RunRequest(self.session, self.handle, step, {}, [self.fetch]), done, plan, push)

    async def is_short(self) -> Graph:
        """After a run, what it took is known."""
        self.worker.pushed(1, self.key, np.float32(1), False)
        self.start(1, self.plan)
        async with asyncio.timeout(PATIENCE):
            await self.over.wait()
        return self


@pytest.fixture
async def graph(worker: Worker) -> Graph:
    return await Graph(worker).register()


async def test_a_run_is_counted_and_its_step_known(worker: Worker, graph: Graph) -> None:
    graph.start(7)

    assert (worker.running, len(worker.steps), worker.step_count.steps) == (1, 1, 1)
    worker.abort_steps(errors.aborted("over"))
    assert (worker.running, len(worker.steps)) == (0, 1)


async def test_what_keeps_a_run_from_starting_is_raised(worker: Worker, graph: Graph) -> None:
    graph.handle, known = "unknown", graph.handle
    with pytest.raises(errors.AbortedError, match="Graph handle is not found: unknown"):
        graph.start(7)
    graph.handle, graph.session = known, "none"
    with pytest.raises(errors.AbortedError, match="Session handle is not found: none"):
        graph.start(7)
    graph.session = ""
    worker.steps.finish(7)
    with pytest.raises(errors.AbortedError, match="Step 7 is over"):
        graph.start(7)
    gone = errors.unavailable("the server is going")
    worker.refuse(gone)
    with pytest.raises(errors.UnavailableError, match="the server is going"):
        graph.start(8)
    assert (worker.running, worker.step_count.steps, graph.answers) == (0, 0, [])


async def test_a_step_with_a_plan_is_forgotten_at_its_end_and_another_is_not(worker: Worker, graph: Graph) -> None:
    await graph.is_short()
    assert len(worker.steps) == 0
    worker.pushed(2, graph.key, np.float32(1), False)
    graph.over.clear()
    plan = graph.plan
    run = worker.start_run(RunRequest("", graph.handle, 2, {}, []), lambda *_: graph.over.set(), plan, None)
    async with asyncio.timeout(PATIENCE):
        await graph.over.wait()

    assert run.ended
    assert len(worker.steps) == 1


# -- at once -----------------------------------------------------------------------------------------------------------


async def test_a_run_at_once_counts_as_a_step_and_leaves_none(worker: Worker, graph: Graph) -> None:
    await graph.is_short()
    brought = {graph.key: (np.float32(4), False)}

    found = worker.run_at_once(9, {}, brought, graph.plan, lambda *_: None)

    assert found is not None
    assert found.values[graph.fetch] == 5
    assert worker.step_count.steps == 2
    assert len(worker.steps) == 0


async def test_a_run_that_lacks_a_tensor_or_whose_step_is_known_is_started_instead(
    worker: Worker, graph: Graph
) -> None:
    await graph.is_short()
    brought = {graph.key: (np.float32(4), False)}

    assert worker.run_at_once(9, {}, {}, graph.plan, lambda *_: None) is None
    worker.pushed(9, "something", 1, False)
    assert worker.run_at_once(9, {}, brought, graph.plan, lambda *_: None) is None
    assert worker.step_count.steps == 1


async def test_what_fails_at_once_is_explained(worker: Worker, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    await graph.is_short()
    brought = {graph.key: (np.float32(4), False)}

    def breaks(*_: Any) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(graph_manager, "run_at_once", breaks)
    with pytest.raises(errors.InternalError, match=f"{TASK}: KeyError: 'a bug'") as raised:
        worker.run_at_once(9, {}, brought, graph.plan, lambda *_: None)
    assert isinstance(raised.value.__cause__, KeyError)
    known = errors.aborted("known")
    monkeypatch.setattr(graph_manager, "run_at_once", lambda *_: (_ for _ in ()).throw(known))
    with pytest.raises(errors.AbortedError) as aborted:
        worker.run_at_once(9, {}, brought, graph.plan, lambda *_: None)
    assert aborted.value is known
    worker.refuse(errors.unavailable("the server is going"))
    with pytest.raises(errors.UnavailableError):
        worker.run_at_once(9, {}, brought, graph.plan, lambda *_: None)


async def test_which_graphs_run_inline(worker: Worker, graph: Graph) -> None:
    assert not worker.runs_inline("", graph.handle)
    await graph.is_short()
    assert worker.runs_inline("", graph.handle)
    assert not worker.runs_inline("", "unknown")
    assert not worker.runs_inline("none", graph.handle)
    program = worker.program("", graph.handle)
    program.policy = RunPolicy(1, sized_by_values=False, loops=False)
    assert not worker.runs_inline("", graph.handle)


# -- tensors -----------------------------------------------------------------------------------------------------------


async def test_a_pushed_tensor_makes_its_step_unless_that_is_over(worker: Worker, graph: Graph) -> None:
    worker.pushed(3, graph.key, 1, True)
    assert len(worker.steps) == 1
    assert worker.steps.get(3, 0.0)._sent == {graph.key: (1, True)}
    worker.steps.finish(3)
    worker.pushed(3, graph.key, 1, False)
    assert len(worker.steps) == 0


async def test_a_tensor_that_comes_twice_ends_its_step_and_one_that_was_ended_takes_none(worker: Worker) -> None:
    worker.pushed(3, "a", 1, False)
    worker.pushed(3, "a", 1, False)
    error = worker.steps.get(3, 0.0).error
    assert isinstance(error, errors.InternalError)
    worker.pushed(3, "b", 1, False)
    assert worker.steps.get(3, 0.0).error is error
    assert not worker.steps.get(3, 0.0)._sent


async def test_a_lost_producer_ends_what_waits_for_it_now_and_is_remembered(worker: Worker, graph: Graph) -> None:
    graph.start(3, graph.plan)
    lost = errors.unavailable("gone")
    worker.producer_lost(PS, lost)
    ((_, error),) = graph.answers
    assert (type(error), error.message) == (type(lost), "gone")

    began: list[Any] = []
    worker._lost.began = began.append  # type: ignore[method-assign]
    run = graph.start(4, graph.plan)
    assert began == [run]
    worker._lost.recent.clear()
    graph.start(5, graph.plan)
    assert began == [run]
    worker.abort_steps(errors.aborted("over"))


class Peers:
    """The workers of other tasks: each answers what it was asked."""

    def worker(self, task: str) -> Any:
        async def recv_tensor(step_id: int, key: str) -> tuple[Any, bool]:
            return np.float32([step_id]), key == "dead"

        assert task == PS
        return SimpleNamespace(recv_tensor=recv_tensor)


async def test_another_task_is_asked_and_what_came_is_noted_for_who_wants_to_know(worker: Worker, graph: Graph) -> None:
    with pytest.raises(errors.NotFoundError) as raised:
        await worker.recv_remote(PS, 3, graph.key)
    assert raised.value.message == f"{TASK} knows no other task; {PS} was asked for {graph.key}."
    worker.workers = cast("Any", Peers())

    value, is_dead = await worker.recv_remote(PS, 3, "dead")
    assert (value.tolist(), is_dead) == ([3.0], True)
    worker.transfers.enabled = True
    value, is_dead = await worker.recv_remote(PS, 4, graph.key)
    assert (value.tolist(), is_dead) == ([4.0], False)

    assert not worker.transfers.take(3).dev_stats
    (device,) = worker.transfers.take(4).dev_stats
    assert [entry.timeline_label.partition("]")[0] for entry in device.node_stats] == ["[4B"]


async def test_a_key_is_one_of_our_devices_in_this_life(worker: Worker) -> None:
    device = worker.devices[0]
    guest, tasks = worker.join(ClusterDef(), "/job:guest/replica:0/task:3")
    worker._check_key(make_key(device.name, device.incarnation, f"{PS}/device:CPU:0", "x"))
    guests = guest.devices[0]
    worker._check_key(make_key(guests.name, guests.incarnation, f"{PS}/device:CPU:0", "x"))

    key = make_key(f"{PS}/device:CPU:0", 5, device.name, "x")
    with pytest.raises(errors.InvalidArgumentError) as raised:
        worker._check_key(key)
    assert raised.value.message == (
        f"{TASK} was asked for a tensor of {PS}/device:CPU:0; its devices are {device.name}. The key was {key!r}."
    )
    with pytest.raises(errors.AbortedError) as aborted:
        worker._check_key(make_key(device.name, 5, f"{PS}/device:CPU:0", "x"))
    assert aborted.value.message.startswith(
        f"RecvTensor expects a different device incarnation: 5 vs. {device.incarnation}. "
        f'Your worker job ("{TASK}") was probably restarted. Check your worker job'
    )
    await worker.leave(guest, tasks)


# -- what there is, and the end ----------------------------------------------------------------------------------------


async def test_idle_steps_are_swept(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(graph_manager, "time", SimpleNamespace(monotonic=lambda: now[0]))
    worker.pushed(3, "a", 1, False)
    assert worker.steps.sweep(109.0) == 0
    assert worker.steps.sweep(111.0) == 1
    assert len(worker.steps) == 0


async def test_the_resources_of_all_sessions_and_guests(worker: Worker) -> None:
    await worker.create_worker_session("own", None, True, ("", 0))
    guest, tasks = worker.join(ClusterDef(), "/job:guest/replica:0/task:3")
    await guest.create_worker_session("theirs", None, True, ("", 0))

    found = worker.every_resources()

    assert {id(each) for each in found} == {
        id(worker.resources), id(worker._sessions.get("own").resources), id(guest._sessions.get("theirs").resources)
    }  # fmt: skip
    await worker.leave(guest, tasks)


async def test_a_session_says_what_its_own_steps_wait_for(worker: Worker) -> None:
    guest, tasks = worker.join(ClusterDef(), "/job:guest/replica:0/task:3")
    for place, handle in ((worker, "s"), (worker, "t"), (guest, "s")):
        await place.create_worker_session(handle, None, False, ("", 0))
    graphs = [await Graph(worker, session).register() for session in ("s", "t", "")]
    for step, graph in enumerate(graphs):
        graph.start(step, graph.plan)
    at_guest = await Graph(guest, "s").register()
    at_guest.start(9, at_guest.plan)
    text = f"a tensor of {PS} (edge_r) at"

    def waits(handle: str) -> list[str]:
        return wait_texts(each for each in worker.step_runs() if each.session == handle)

    assert waits("s") == [f"{text} {TASK}", f"{text} /job:guest/replica:0/task:3"]
    assert waits("t") == [f"{text} {TASK}"]
    assert waits("none") == []
    worker.abort_steps(errors.aborted("over"))
    assert waits("s") == []
    assert at_guest.answers[0][1].message == "over"
    await worker.leave(guest, tasks)


async def test_each_step_that_is_aborted_has_an_error_of_its_own(worker: Worker, graph: Graph) -> None:
    error = errors.aborted("over")
    runs = [graph.start(step, graph.plan) for step in (3, 4)]
    parts = [cast("Any", run.part_run) for run in runs]

    worker.abort_steps(error)

    found = [told for _, told in graph.answers]
    assert [(each.code, each.message) for each in found] == [(error.code, "over")] * 2
    assert found[0] is not found[1]
    assert all(part.stop for part in parts)


async def test_who_waits_for_the_end_of_runs_is_told_when_the_last_one_ends(worker: Worker) -> None:
    await worker.drained()
    worker.running += 1
    worker.running += 1
    first, second = await started(worker.drained()), await started(worker.drained())
    worker.over()
    await asyncio.sleep(0)
    assert not first.done()
    worker.over()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(first, second)
    assert worker.running == 0
    worker.running += 1
    third = await started(worker.drained())
    assert not third.done()
    worker.over()
    await third


def test_the_tasks_incarnation_is_its_first_devices(worker: Worker) -> None:
    assert worker.incarnation == worker.devices[0].incarnation != 0


def test_a_guest_shares_what_its_home_has(worker: Worker) -> None:
    guest, _ = worker.join(ClusterDef(), "/job:guest/replica:0/task:3")
    for name in ("steps", "transfers", "step_count", "pools", "arrivals", "resources", "limits", "pool", "_fusion"):
        assert getattr(guest, name) is getattr(worker, name), name
    assert guest._sessions is not worker._sessions
    gone = errors.unavailable("the server is going")
    worker.refuse(gone)
    assert worker.join(ClusterDef(), "/job:late/replica:0/task:0")[0]._refusal is gone
    assert guest._refusal is gone


# -- spans -------------------------------------------------------------------------------------------------------------


class Spans:
    """What is opened for a step, noted of it, and ended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened: list[Any] = []
        self.noted: list[Any] = []
        self.ended: list[Any] = []
        monkeypatch.setattr(telemetry, "tracer", object())
        monkeypatch.setattr(telemetry, "end", lambda span, error: self.ended.append((span, error)))
        monkeypatch.setattr(step_spans, "part", self._part)
        monkeypatch.setattr(step_spans, "noting", lambda span, push: (self.noted.append((span, push)), push)[1])
        monkeypatch.setattr(step_spans, "ending", self._ending)

    def _part(self, *of: Any) -> Any:
        self.opened.append(of)
        return "span"

    def _ending(self, span: Any, done: Any) -> Any:
        return lambda result, error: (self.ended.append((span, error)), done(result, error))


async def test_a_run_at_once_has_a_span_that_ends_with_it(
    worker: Worker, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    await graph.is_short()
    spans, brought = Spans(monkeypatch), {graph.key: (np.float32(4), False)}

    def push(*_: Any) -> None:
        """Nothing goes out."""

    assert worker.run_at_once(9, {}, brought, graph.plan, push) is not None
    assert spans.opened == [(TASK, "", 9)]
    assert spans.noted == [("span", push)]
    assert spans.ended == [("span", None)]

    assert worker.run_at_once(9, {}, {}, graph.plan, push) is None
    assert len(spans.ended) == 1
    worker.refuse(errors.unavailable("the server is going"))
    with pytest.raises(errors.UnavailableError) as raised:
        worker.run_at_once(10, {}, brought, graph.plan, push)
    assert spans.ended[1:] == [("span", raised.value)]


async def test_a_run_that_is_started_has_a_span_that_ends_with_it_or_with_what_kept_it(
    worker: Worker, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = Spans(monkeypatch)
    graph.start(7)
    assert (spans.opened, spans.noted, spans.ended) == ([(TASK, "", 7)], [], [])
    worker.abort_steps(errors.aborted("over"))
    ((span, error),) = spans.ended
    assert (span, error.message) == ("span", "over")

    graph.start(8, graph.plan)
    assert [span for span, _ in spans.noted] == ["span"]
    worker.abort_steps(errors.aborted("over"))
    worker.refuse(errors.unavailable("the server is going"))
    with pytest.raises(errors.UnavailableError) as raised:
        graph.start(9)
    assert spans.ended[-1] == ("span", raised.value)
    assert len(spans.ended) == 3
