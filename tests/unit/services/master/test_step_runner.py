"""Steps of the master against scripted workers: what travels, what is registered, and requests that come twice."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.fake_cluster import FakeCluster, Gate
from support.moments import PATIENCE, started
from tenfold_core import errors
from tenfold_protos import config_pb2
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.interfaces import DEFAULT_EXEC_OPTIONS, RunGraphResult
from tenfold_services.master.limits import MasterLimits
from tenfold_services.master.step_runner import StepRunner

from .sessions import MASTER, NO_OPTIONS, OTHER, PS, OpenSession, X, session

# -- steps -------------------------------------------------------------------------------------------------------------


async def test_a_step_contacts_only_the_tasks_it_needs(opened: OpenSession) -> None:
    assert await opened.run(X, ("z:0",)) == [np.float32(0)]

    assert len(opened.cluster[MASTER].called("run_graph")) == 1
    assert not opened.cluster[PS].called("run_graph")
    assert not opened.cluster[OTHER].called("register_graph")


async def test_feeds_and_fetches_travel_by_rendezvous_key(opened: OpenSession) -> None:
    values = await opened.run({"x": np.float32(3)}, ("z", "y:0", "z:0"))

    (_, step_id, feeds, fetches) = opened.cluster[MASTER].called("run_graph")[0]
    device = "/job:worker/replica:0/task:0/device:CPU:0"
    assert 0 < step_id < 1 << 56
    assert feeds == {f"{device};{1:016x};{device};x:0;0:0": np.float32(3)}
    assert sorted(key.split(";")[3] for key in fetches) == ["y:0", "z:0"]
    # The same tensor asked for twice is fetched once and returned twice.
    assert values[0] == values[2] != values[1]
    assert opened.cluster[PS].called("run_graph")[0][1:] == (step_id, {}, [])


async def test_a_graph_is_registered_once_for_each_signature(opened: OpenSession) -> None:
    await opened.run({"x": 1.0}, ("z", "y"))
    await opened.run({"x:0": 2.0}, ("y:0", "z:0"))

    assert len(opened.cluster[MASTER].called("register_graph")) == 1
    assert len(opened.cluster[MASTER].called("run_graph")) == 2


async def test_runs_that_come_while_the_graph_is_registered_share_it(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[PS].reply("register_graph", gate)
    first = asyncio.create_task(opened.run(targets=("init",)))
    await gate.entered.wait()
    second = await started(opened.run(targets=("init",)))

    first.cancel()
    gate.release()
    await second

    assert len(opened.cluster[PS].called("register_graph")) == 1


async def test_numbers_of_new_nodes_are_not_used_again(opened: OpenSession) -> None:
    await opened.run(X, ("y",))
    await opened.run(X, ("y", "read"))

    names = [
        {node.name for node in graph.node if node.op in ("_Send", "_Recv") and "_S" in node.name}
        for graph in opened.cluster[PS].graphs.values()
    ]
    assert len(names) == 2
    assert not names[0] & names[1]


async def test_the_step_is_forgotten_everywhere(opened: OpenSession) -> None:
    await opened.run(X, ("y",))
    await opened.master.close_session(opened.handle)

    step_id = opened.cluster[PS].called("run_graph")[0][1]
    assert opened.cluster[MASTER].called("cleanup_graph") == [(step_id,)]
    assert opened.cluster[PS].called("cleanup_graph") == [(step_id,)]


async def test_old_client_graphs_make_room() -> None:
    cluster = FakeCluster(MASTER)
    master = cluster.master(MasterLimits(client_graphs=2))
    handle = await session(cluster, master, "a = NoOp()\nb = NoOp()\nc = NoOp()")

    gate = Gate()
    cluster[MASTER].reply("deregister_graph", gate)
    for target in ("a", "b", "a", "c", "a"):
        await master.run_step(handle, {}, [], [target], NO_OPTIONS)
    await gate.entered.wait()
    gate.release()

    assert len(cluster[MASTER].called("register_graph")) == 3
    assert [handle for _, handle in cluster[MASTER].called("deregister_graph")] == ["/job:worker/replica:0/task:0#1"]
    await master.stop()


async def test_partition_graphs_are_returned_on_demand(opened: OpenSession) -> None:
    _, metadata = await opened.master.run_step(
        opened.handle, X, ["y:0"], [], config_pb2.RunOptions(output_partition_graphs=True)
    )

    registered = [next(iter(opened.cluster[task].graphs.values())) for task in (MASTER, PS)]
    assert sorted(g.SerializeToString(deterministic=True) for g in metadata.partition_graphs) == sorted(
        g.SerializeToString(deterministic=True) for g in registered
    )


async def test_a_fetch_without_a_value_is_an_error(opened: OpenSession) -> None:
    from tenfold_services.interfaces import RunGraphResult

    opened.cluster[MASTER].reply("run_graph", RunGraphResult({}))

    with pytest.raises(errors.InvalidArgumentError, match=r"The tensor returned for z:0 was not valid\."):
        await opened.run(X, ("z",))


# -- a request that comes twice ----------------------------------------------------------------------------------------


async def test_a_request_that_comes_again_gets_the_first_answer(opened: OpenSession) -> None:
    first = await opened.run(X, ("z",), request_id=7)

    assert await opened.run(X, ("z",), request_id=7) is first
    assert len(opened.cluster[MASTER].called("run_graph")) == 1


async def test_a_request_that_comes_again_waits_for_the_first(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    first = asyncio.create_task(opened.run(X, ("z",), request_id=7))
    await gate.entered.wait()
    again = await started(opened.run(X, ("z",), request_id=7))

    gate.release()

    assert await again == await first
    assert len(opened.cluster[MASTER].called("run_graph")) == 1


async def test_a_request_whose_first_caller_went_away_is_not_run_again(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    first = asyncio.create_task(opened.run(X, ("z",), request_id=7))
    await gate.entered.wait()
    first.cancel()

    with pytest.raises(errors.AbortedError, match="received twice"):
        await opened.run(X, ("z",), request_id=7)


# -- a step without a session: its deadline, and who ended it ----------------------------------------------------------

TASK = "/job:worker/replica:0/task:0"
CLOSED = errors.cancelled("The session was closed.")


class Endless:
    """A worker whose part never ends by itself."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()

    async def run_graph(self, *_: Any) -> Any:
        self.entered.set()
        await asyncio.Event().wait()


def step(worker: Endless) -> StepRunner:
    part = SimpleNamespace(task=TASK, worker=worker, handle="h", feed_keys={}, fetch_keys={})
    graph: Any = SimpleNamespace(parts=[part], tasks=[TASK], pushes=None)
    about: Any = SimpleNamespace(handle="session", limits=MasterLimits(abort_seconds=0.05))
    return StepRunner(graph, 1, about, {}, DEFAULT_EXEC_OPTIONS)


@pytest.mark.parametrize("waited", [3600.0, 7200.0])
async def test_what_was_waited_before_counts(waited: float) -> None:
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(errors.DeadlineExceededError, match=f"within 3600000 ms; still pending on {TASK}"):
            await step(Endless()).run(3600.0, waited)


async def begun() -> tuple[StepRunner, asyncio.Task[Any]]:
    worker = Endless()
    runner = step(worker)
    task = asyncio.create_task(runner.run(None))
    async with asyncio.timeout(PATIENCE):
        await worker.entered.wait()
    return runner, task


async def test_a_step_that_its_session_ends_raises_the_reason() -> None:
    runner, task = await begun()

    runner.interrupt(CLOSED)
    runner.interrupt(errors.internal("the first reason counts"))

    with pytest.raises(errors.CancelledError) as caught:
        await task
    assert caught.value is CLOSED
    assert task.cancelling() == 0


@pytest.mark.parametrize("with_reason", [True, False])
async def test_a_step_whose_caller_is_cancelled_is_cancelled(with_reason: bool) -> None:
    runner, task = await begun()

    if with_reason:
        runner.interrupt(CLOSED)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_a_step_that_was_ended_before_does_not_begin() -> None:
    worker = Endless()
    runner = step(worker)
    runner.interrupt(CLOSED)

    with pytest.raises(errors.CancelledError, match="closed"):
        await runner.run(None)
    assert not worker.entered.is_set()


# -- parts that push ---------------------------------------------------------------------------------------------------

OWN, FAR, NEAR = TASK, "/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1"


class Running:
    """A part that was started with its plan."""

    def __init__(self, done: Any) -> None:
        self.done, self.cancelled = done, 0

    def cancel(self) -> None:
        self.cancelled += 1


class Pushing:
    """Workers and an arrangement by which all that the parts send is pushed; says what was started, in order."""

    def __init__(self, own_first: bool = False, sends: tuple[tuple[str, str], ...] = ()) -> None:
        self.started: list[tuple[Any, ...]] = []
        self.pushed: list[tuple[Any, ...]] = []
        self.running: dict[str, Running] = {}
        self.errors: dict[str, errors.OpError] = {}
        self.own_task, self.sends = OWN, sends
        self.forgetful = frozenset((OWN, FAR))
        self._own_first = own_first
        self.plans = {
            OWN: ExchangePlan("h", "graph of ours", fetches=("fetch y",)),
            FAR: ExchangePlan("h", "graph of far", brought=("w>f", "w>f2")),
        }
        self.local = SimpleNamespace(start_run=self._start_run)
        self.workers = {FAR: SimpleNamespace(start_plan=self._start_plan, push=self._push_to(FAR))}

    def own_first(self) -> bool:
        return self._own_first

    def _push_to(self, task: str) -> Any:
        return lambda step_id, tensors: self.pushed.append((task, step_id, tensors))

    def _begin(self, task: str, done: Any, *about: Any) -> Running:
        self.started.append((task, *about))
        if task in self.errors:
            raise self.errors[task]
        running = self.running[task] = Running(done)
        return running

    def _start_plan(self, plan: Any, step_id: int, brought: Any, options: Any, done: Any) -> Running:
        return self._begin(FAR, done, plan, step_id, brought, options)

    def _start_run(self, request: Any, done: Any, plan: Any, push: Any) -> Running:
        running = self._begin(OWN, done, *request, plan)
        for task, key in self.sends:
            push(task, request.step_id, [(key, 1.0, False)])
        self.push = push
        return running

    def end(self, task: str, values: Any = None, error: errors.OpError | None = None) -> None:
        self.running[task].done(None if error is not None else RunGraphResult(values or {}), error)


def pushing_step(pushes: Pushing, near: Any = None) -> StepRunner:
    parts = [SimpleNamespace(task=FAR, worker=None, handle="graph of far", feed_keys={}, fetch_keys={})]
    if near is not None:
        parts.append(SimpleNamespace(task=NEAR, worker=near, handle="n", feed_keys={}, fetch_keys={}))
    parts.append(
        SimpleNamespace(
            task=OWN, worker=None, handle="graph of ours", feed_keys={"x:0": "feed x"}, fetch_keys={"y:0": "fetch y"}
        )
    )
    graph: Any = SimpleNamespace(parts=parts, tasks=[part.task for part in parts], pushes=pushes)
    about: Any = SimpleNamespace(handle="h", limits=MasterLimits(abort_seconds=0.05))
    return StepRunner(graph, 77, about, {"x:0": 3.0, "unused": 4.0}, DEFAULT_EXEC_OPTIONS)


OWN_STARTED = (OWN, "h", "graph of ours", 77, {"feed x": 3.0}, ("fetch y",), DEFAULT_EXEC_OPTIONS)


async def test_parts_with_a_plan_are_started_by_it() -> None:
    pushes = Pushing(sends=((FAR, "w>f"),))
    runner = pushing_step(pushes)
    step = await started(runner.run(None))

    assert pushes.started == [
        (FAR, pushes.plans[FAR], 77, [], DEFAULT_EXEC_OPTIONS),
        (*OWN_STARTED, pushes.plans[OWN]),
    ]
    assert pushes.pushed == [(FAR, 77, [("w>f", 1.0, False)])], "it was called before"
    pushes.end(FAR)
    assert not step.done()
    pushes.end(OWN, {"fetch y": 5.0})
    assert await step == {"y:0": 5.0}
    assert runner.unforgotten == []
    assert runner.unfinished_calls == []


async def test_what_our_part_sends_first_goes_with_the_calls() -> None:
    pushes = Pushing(own_first=True, sends=((FAR, "w>f"), (FAR, "w>f2")))
    step = await started(pushing_step(pushes).run(None))

    assert pushes.started == [
        (*OWN_STARTED, pushes.plans[OWN]),
        (FAR, pushes.plans[FAR], 77, [(0, 1.0, False), (1, 1.0, False)], DEFAULT_EXEC_OPTIONS),
    ]
    assert pushes.pushed == []
    pushes.push(FAR, 77, [("later", 2.0, False)])
    assert pushes.pushed == [(FAR, 77, [("later", 2.0, False)])]
    for task in (FAR, OWN):
        pushes.end(task, {"fetch y": 5.0})
    await step


async def test_a_part_without_a_plan_is_called_and_told_to_forget() -> None:
    near = Endless()
    pushes = Pushing()
    runner = pushing_step(pushes, near)
    step = await started(runner.run(None))
    async with asyncio.timeout(PATIENCE):
        await near.entered.wait()
    assert [part.task for part in runner.unforgotten] == [NEAR]

    pushes.end(FAR, error=errors.invalid_argument("wrong"))
    assert pushes.running[OWN].cancelled == 1
    pushes.end(OWN, error=errors.cancelled("as told"))

    with pytest.raises(errors.InvalidArgumentError, match=f"From {FAR}:\nwrong"):
        await step


@pytest.mark.parametrize("own_first", [False, True])
async def test_a_part_that_cannot_be_started_keeps_the_others_from_it(own_first: bool) -> None:
    pushes = Pushing(own_first)
    first, other = (OWN, FAR) if own_first else (FAR, OWN)
    pushes.errors[first] = errors.unavailable("no link")

    with pytest.raises(errors.UnavailableError, match=f"From {first}:\nno link"):
        await pushing_step(pushes).run(None)

    assert [task for task, *_ in pushes.started] == [first]
    assert other not in pushes.running


async def test_what_ends_after_the_step_changes_nothing() -> None:
    pushes = Pushing()
    runner = pushing_step(pushes)
    step = await started(runner.run(0.01))
    with pytest.raises(errors.DeadlineExceededError, match=f"within 10 ms; still pending on {FAR}, {OWN}"):
        await step
    assert [running.cancelled for running in pushes.running.values()] == [1, 1]
    pushes.end(OWN, {"fetch y": 5.0})
    assert runner.results == {}


async def test_a_value_that_a_worker_does_not_give_is_named() -> None:
    pushes = Pushing()
    step = await started(pushing_step(pushes).run(None))
    for task in (FAR, OWN):
        pushes.end(task)
    with pytest.raises(errors.InvalidArgumentError, match=r"The tensor returned for y:0 was not valid\."):
        await step


async def test_a_call_that_is_cancelled_by_somebody_else_is_an_error() -> None:
    class Cancelled(Endless):
        async def run_graph(self, *_: Any) -> Any:
            raise asyncio.CancelledError

    pushes = Pushing()
    step = await started(pushing_step(pushes, Cancelled()).run(None))
    await started(asyncio.sleep(0))
    await started(asyncio.sleep(0))
    for task in (FAR, OWN):
        pushes.end(task, {"fetch y": 5.0})
    with pytest.raises(errors.CancelledError, match=f"The call to {NEAR} was cancelled, though not by its step"):
        await step


async def test_the_traces_of_all_parts_are_those_of_the_step() -> None:
    pushes = Pushing()
    runner = pushing_step(pushes)
    step = await started(runner.run(None))
    stats: Any = ["of far"]
    pushes.running[FAR].done(RunGraphResult({}, stats), None)
    pushes.end(OWN, {"fetch y": 5.0})
    await step
    assert runner.step_stats() == [stats]


async def test_a_step_of_one_part_is_awaited_where_it_is() -> None:
    class Quick:
        def __init__(self) -> None:
            self.asked: list[Any] = []
            self.task: Any = None

        async def run_graph(self, request: Any) -> RunGraphResult:
            self.asked.append(request)
            self.task = asyncio.current_task()
            return RunGraphResult({"k": 5.0})

    worker = Quick()
    part = SimpleNamespace(task=TASK, worker=worker, handle="g", feed_keys={"x": "feed"}, fetch_keys={"y": "k"})
    graph: Any = SimpleNamespace(parts=[part], tasks=[TASK], pushes=None)
    about: Any = SimpleNamespace(handle="h", limits=MasterLimits())
    runner = StepRunner(graph, 1, about, {"x": 3.0}, DEFAULT_EXEC_OPTIONS)

    assert await runner.run(None) == {"y": 5.0}

    assert worker.asked == [("h", "g", 1, {"feed": 3.0}, ["k"], DEFAULT_EXEC_OPTIONS)]
    assert worker.task is asyncio.current_task()
    assert runner.unforgotten == [part]
    assert runner.unfinished_calls == []


@pytest.mark.parametrize("in_place", [True, False])
async def test_a_defect_of_a_worker_names_it_and_is_logged(in_place: bool, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Endless):
        async def run_graph(self, *_: Any) -> Any:
            raise ZeroDivisionError("by nought")

    with pytest.raises(errors.InternalError) as caught:
        await step(Broken()).run(None if in_place else PATIENCE)

    assert caught.value.message == f"From {TASK}:\nZeroDivisionError: by nought"
    (record,) = caplog.records
    assert record.message == f"Step 1 on {TASK} failed with an unexpected exception"
    assert record.exc_info is not None
