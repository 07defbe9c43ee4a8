"""A session from its first step to its end: figures, bounds, what a step leaves behind, and what closing returns."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any, cast

import pytest

from support.fake_cluster import FakeCluster, Gate, ScriptedWorker, fake_device
from support.graph_text import parse_text
from support.moments import started
from tenfold_core import errors
from tenfold_protos import config_pb2
from tenfold_services.interfaces import ExecOptions, RunGraphResult, RunRequest
from tenfold_services.master import master_session
from tenfold_services.master.limits import MasterLimits
from tenfold_services.master.master_session import CLOSED_BY_CLIENT, MasterSession
from tenfold_services.master.peer_use import PeerUse

from .sessions import FAST, MASTER, NO_OPTIONS, OTHER, OTHER_FULL, PS, PS_FULL, OpenSession, X, session

if TYPE_CHECKING:
    from tenfold_services.master.master import Master


def session_of(opened: OpenSession) -> MasterSession:
    return opened.master._sessions[opened.handle]


class Clock:
    """In place of the module's `time`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(master_session, "time", self)

    def monotonic(self) -> float:
        return self.now


class Local:
    """In place of the steps that callers run by themselves."""

    def __init__(self) -> None:
        self.steps = 0
        self.running: set[int] = set()
        self.graphs: dict[str, Any] = {}
        self.offered: list[tuple[Any, Any]] = []
        self.stopped: list[errors.OpError] = []
        self.awaited = 0

    def offer(self, graph: Any, explain: Any) -> None:
        self.offered.append((graph, explain))

    def interrupt(self, error: errors.OpError) -> None:
        self.stopped.append(error)

    async def idle(self) -> None:
        self.awaited += 1


class Callers:
    """In place of CallerSteps."""

    def __init__(self) -> None:
        self.opened: list[tuple[Any, ...]] = []
        self.local = Local()

    def open(self, *arguments: Any) -> Local:
        self.opened.append(arguments)
        return self.local


async def with_callers(**session_config: Any) -> tuple[FakeCluster, Master, Callers, OpenSession]:
    """A session at a master whose process may run steps by itself."""
    cluster, callers = FakeCluster(MASTER, PS, OTHER), Callers()
    master = cluster.master(FAST)
    master._env = dataclasses.replace(master._env, caller_steps=cast("Any", callers))
    handle = await session(cluster, master, **session_config)
    return cluster, master, callers, OpenSession(cluster, master, handle)


def options_of(worker: ScriptedWorker) -> list[ExecOptions]:
    """The options of the worker's runs from now on, as they come."""
    found: list[ExecOptions] = []
    real = worker.run_graph

    async def run_graph(request: RunRequest) -> RunGraphResult:
        found.append(request.options)
        return await real(request)

    worker.run_graph = run_graph  # type: ignore[method-assign]
    return found


# -- figures -----------------------------------------------------------------------------------------------------------


async def test_a_session_tells_its_age_its_steps_and_its_speed(
    opened: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    own = session_of(opened)
    own._created = own.last_used = own._active = 1000.0
    assert own._measured[1] == 0
    own._measured = (1000.0, own._measured[1])
    own.client = "ipv4:127.0.0.1:7"
    clock.now = 1000.5
    told = own.as_status()
    assert told == {
        "handle": opened.handle,
        "client": "ipv4:127.0.0.1:7",
        "age": 0.5,
        "idle": 0.5,
        "steps": 0,
        "steps_per_second": None,
        "running": 0,
    }
    for _ in range(3):
        await opened.run(X, ("z",))
    own.last_used = 1000.5
    clock.now = 1000.75
    told = own.as_status()
    assert (told["steps"], told["steps_per_second"], told["idle"]) == (3, None, 0.0), "measured over a second at least"
    clock.now = 1001.0
    assert own.as_status()["steps_per_second"] == 3.0
    await opened.run(X, ("z",))
    own.last_used, clock.now = 1001.0, 1005.0
    assert own.as_status()["steps_per_second"] == 0.25
    assert own.as_status()["steps_per_second"] == 0.25
    clock.now = 1006.5
    told = own.as_status()
    assert (told["steps"], told["steps_per_second"], told["idle"]) == (4, 0.0, 1.5)
    own.last_used = 1006.0
    assert own.as_status()["idle"] == 0.5
    own.last_used = 1007.0
    assert own.as_status()["idle"] == 0.0


async def test_steps_on_callers_threads_count_as_the_others(
    opened: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, local = Clock(monkeypatch), Local()
    own = session_of(opened)
    own._measured, own.last_used, own._active = (1000.0, 0), 1000.0, 1000.0
    own._local = cast("Any", local)
    local.steps, local.running = 5, {1, 2}
    await opened.run(X, ("z",))
    own.last_used, clock.now = 1000.0, 1002.0
    told = own.as_status()
    assert (told["steps"], told["running"], told["steps_per_second"], told["idle"]) == (6, 2, 3.0, 0.0)
    local.running.clear()
    clock.now = 1004.0
    assert own.as_status()["idle"] == 2.0
    clock.now = 1005.0
    local.steps = 6
    assert own.as_status()["idle"] == 0.0, "one was run meanwhile"
    local.running = {7}
    clock.now = 1009.0
    assert own.as_status()["idle"] == 0.0, "one runs"


async def test_a_session_is_used_while_steps_run(opened: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    own = session_of(opened)
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    step = await started(opened.run(X, ("z",)))
    await gate.entered.wait()
    clock = Clock(monkeypatch)
    own.last_used, clock.now = 900.0, 1000.0
    assert own.unused_since() == 1000.0
    assert own.as_status()["running"] == 1
    gate.release()
    await step
    own.last_used = 950.0
    assert own.unused_since() == 950.0

    class Graph:
        used = False

    local, graph = Local(), Graph()
    local.graphs = {"other": Graph(), "one": graph}
    own._local = cast("Any", local)
    assert own.unused_since() == 950.0
    graph.used = True
    assert own.unused_since() == 1000.0


async def test_a_session_has_the_time_of_its_configuration() -> None:
    cluster = FakeCluster(MASTER, PS, OTHER)
    master = cluster.master()
    handle = await session(cluster, master, operation_timeout_in_ms=1234)
    assert master._sessions[handle].timeout_in_ms == 1234
    await master.stop()


# -- steps -------------------------------------------------------------------------------------------------------------


async def test_values_come_in_the_order_of_the_fetches_and_the_step_is_forgotten(opened: OpenSession) -> None:
    worker, asked = opened.cluster[MASTER], options_of(opened.cluster[MASTER])

    await opened.run(X, ("z", "y"), ("init",))
    ((_, step_id, feeds, keys),) = worker.called("run_graph")
    assert sorted(key.split(";")[3] for key in keys) == ["y:0", "z:0"]
    assert [float(value) for value in feeds.values()] == [3.0]
    assert 0 < step_id < 1 << 56
    assert asked == [ExecOptions()]
    position = {key.split(";")[3]: float(number) for number, key in enumerate(keys)}
    for fetches in (("z", "y"), ("y:0", "z"), ("y", "z", "y:0")):
        values = await opened.run(X, fetches, ("init",))
        assert [float(value) for value in values] == [position[f"{name[:1]}:0"] for name in fetches]
    steps = [call[1] for call in worker.called("run_graph")]
    assert len(set(steps)) == 4, "each step has a number of its own"
    # our own worker forgets before the answer, the others in the background
    assert [call[0] for call in worker.called("cleanup_graph")] == steps
    ps = opened.cluster[PS]
    await session_of(opened)._cleaning.settled(10)
    assert [call[0] for call in ps.called("cleanup_graph")] == steps
    assert opened.cluster[OTHER].called("cleanup_graph") == []


async def test_a_failed_step_is_forgotten_everywhere(opened: OpenSession) -> None:
    opened.cluster[PS].reply("run_graph", errors.invalid_argument("wrong"))
    with pytest.raises(errors.InvalidArgumentError, match=f"From {PS_FULL}"):
        await opened.run(X, ("y",))
    own = session_of(opened)
    await own._cleaning.settled(10)
    for task in (MASTER, PS):
        assert len(opened.cluster[task].called("cleanup_graph")) == 1
    assert own._idle.is_set()
    assert not own._running


async def test_a_step_that_is_given_up_is_forgotten_everywhere(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[PS].reply("run_graph", gate)
    step = await started(opened.run(X, ("y",)))
    await gate.entered.wait()
    assert not session_of(opened)._idle.is_set()
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    await session_of(opened)._cleaning.settled(10)
    for task in (MASTER, PS):
        assert len(opened.cluster[task].called("cleanup_graph")) == 1
    assert session_of(opened)._idle.is_set()


@pytest.mark.parametrize(("limit", "waits"), [(0, True), (1, False)])
async def test_a_step_waits_for_its_clean_up_where_too_many_are_under_way(limit: int, waits: bool) -> None:
    cluster = FakeCluster(MASTER, PS, OTHER)
    master = cluster.master(dataclasses.replace(FAST, background_calls=limit, cleanup_seconds=30.0))
    opened = OpenSession(cluster, master, await session(cluster, master))
    gate = Gate()
    cluster[PS].reply("cleanup_graph", gate)
    step = await started(opened.run(X, ("y",)))
    await gate.entered.wait()
    await started(asyncio.sleep(0))
    assert step.done() != waits
    gate.release()
    await step
    await master.stop()


async def test_a_clean_up_has_its_time(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[PS].reply("cleanup_graph", gate)
    await opened.run(X, ("y",))
    await gate.cancelled.wait()


async def test_the_steps_of_one_peer_are_bounded() -> None:
    cluster = FakeCluster(MASTER)
    master = cluster.master(MasterLimits(running_steps_per_peer=2))
    handle = await session(cluster, master, "a = NoOp()")
    own = master._sessions[handle]
    peer = own.peer = PeerUse("somebody at 10.0.0.7", sessions=1, steps=1)
    gate = Gate()
    cluster[MASTER].reply("run_graph", gate)
    step = await started(master.run_step(handle, {}, [], ["a"], NO_OPTIONS))
    await gate.entered.wait()
    assert peer.steps == 2
    with pytest.raises(
        errors.ResourceExhaustedError, match=r"The sessions of somebody at 10.0.0.7 run 2 steps at once"
    ):
        await master.run_step(handle, {}, [], ["a"], NO_OPTIONS)
    gate.release()
    await step
    assert peer.steps == 1
    cluster[MASTER].reply("run_graph", errors.aborted("lost"))
    with pytest.raises(errors.AbortedError):
        await master.run_step(handle, {}, [], ["a"], NO_OPTIONS)
    assert peer.steps == 1
    own.peer = None
    await master.stop()


async def test_a_graph_in_use_is_kept_and_afterwards_not(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    step = await started(opened.run(X, ("z",)))
    await gate.entered.wait()
    (graph,) = session_of(opened)._client_graphs.runs.graphs
    assert graph.users > 0
    gate.release()
    await step
    assert graph.users == 0
    opened.cluster[MASTER].reply("run_graph", errors.aborted("lost"))
    with pytest.raises(errors.AbortedError):
        await opened.run(X, ("z",))
    assert graph.users == 0


async def test_making_the_graph_takes_from_the_time_of_the_step(opened: OpenSession) -> None:
    register, run = Gate(), Gate()
    opened.cluster[MASTER].reply("register_graph", register)
    step = await started(opened.run(X, ("z",), timeout_in_ms=60_000))
    await register.entered.wait()
    asked: list[tuple[Any, ...]] = []
    real = master_session.StepRunner.run

    async def noted(self: Any, seconds: float | None, waited: float) -> Any:
        asked.append((seconds, waited))
        return await real(self, seconds, waited)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(master_session.StepRunner, "run", noted)
        register.release()
        await step
        await opened.run(X, ("z",), timeout_in_ms=60_000)
        await opened.run(X, ("z",))
    (first, second, third) = asked
    assert first[0] == second[0] == 60.0
    assert 0 < first[1] < 60
    assert second[1] == 0.0, "the graph was there"
    assert third == (None, 0.0)
    assert not run.entered.is_set()


async def test_statistics_and_graphs_come_where_they_are_asked_for(opened: OpenSession) -> None:
    asked = options_of(opened.cluster[MASTER])
    options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)
    values, metadata = await opened.master.run_step(opened.handle, X, ["z"], [], options)
    assert len(values) == 1
    assert [one.record_timeline for one in asked] == [True]
    assert not metadata.partition_graphs
    options = config_pb2.RunOptions(output_partition_graphs=True)
    _, metadata = await opened.master.run_step(opened.handle, X, ["z"], [], options)
    assert len(metadata.partition_graphs) == 1


async def test_costs_are_recorded_when_they_are_due() -> None:
    cluster = FakeCluster(MASTER, PS, OTHER)
    master = cluster.master(FAST)
    graph_options = config_pb2.GraphOptions(build_cost_model=2, build_cost_model_after=1)
    handle = await session(cluster, master, graph_options=graph_options)
    opened, asked = OpenSession(cluster, master, handle), options_of(cluster[MASTER])
    for _ in range(5):
        await opened.run(X, ("z",))
    assert [one.record_timeline for one in asked] == [True, False, True, False, True]
    (graph,) = master._sessions[handle]._client_graphs.runs.graphs
    assert graph.runs == 5
    await master.stop()


async def test_each_task_of_a_step_is_told_and_only_our_own_is_waited_for(opened: OpenSession) -> None:
    own, gate = session_of(opened), Gate()
    await opened.run(X, ("y", "remote"))
    await own._cleaning.settled(10)
    told = [len(opened.cluster[task].called("cleanup_graph")) for task in (MASTER, PS, OTHER)]
    assert told == [1, 1, 1]
    opened.cluster[PS].reply("cleanup_graph", gate)
    await opened.run({}, (), ("init",))
    assert not gate.cancelled.is_set(), "the answer came before another task has forgotten the step"
    gate.release()
    await own._cleaning.settled(10)


async def test_options_that_no_step_can_have_are_refused(opened: OpenSession) -> None:
    options = config_pb2.RunOptions()
    options.debug_options.debug_tensor_watch_opts.add(node_name="z", debug_urls=["file:///tmp/x"])
    with pytest.raises(errors.UnimplementedError, match="debugger"):
        await opened.master.run_step(opened.handle, X, ["z"], [], options)
    assert opened.cluster[MASTER].called("register_graph") == []


@pytest.mark.parametrize("is_open", [True, False])
async def test_links_for_what_is_pushed_are_arranged_where_they_are_gone(
    opened: OpenSession, monkeypatch: pytest.MonkeyPatch, is_open: bool
) -> None:
    own = session_of(opened)
    await opened.run(X, ("z",))
    (graph,) = own._client_graphs.runs.graphs
    arranged: list[Any] = []

    class Pushes:
        forgetful = frozenset(graph.tasks)

        def __init__(self) -> None:
            self.is_open, self.plans = is_open, cast("dict[str, Any]", {})

        def own_first(self) -> bool:
            return False

    graph.pushes = cast("Any", Pushes())

    async def arrange(these: Any) -> None:
        arranged.append(these)

    monkeypatch.setattr(own._client_graphs, "arrange_pushes", arrange)
    cleaned = len(opened.cluster[MASTER].called("cleanup_graph"))
    assert len(await opened.run(X, ("z",))) == 1
    assert arranged == [graph] * (not is_open)
    assert len(opened.cluster[MASTER].called("cleanup_graph")) == cleaned, "its tasks forget by themselves"

    async def closing(these: Any) -> None:
        own._closed = errors.failed_precondition("Session is closed.")

    monkeypatch.setattr(own._client_graphs, "arrange_pushes", closing)
    if not is_open:
        with pytest.raises(errors.FailedPreconditionError, match="Session is closed"):
            await opened.run(X, ("z",))
        assert len(opened.cluster[MASTER].called("run_graph")) == 2
        own._closed = None
    graph.pushes = None


async def test_a_part_that_does_not_stop_in_time_is_the_session_s_to_end(opened: OpenSession) -> None:
    hold = asyncio.Event()

    async def stubborn(*arguments: Any) -> RunGraphResult:
        while not hold.is_set():
            try:
                await hold.wait()
            except asyncio.CancelledError:
                continue
        return RunGraphResult()

    opened.cluster[PS].run_graph = stubborn  # type: ignore[method-assign]
    opened.cluster[MASTER].reply("run_graph", errors.invalid_argument("wrong"))
    with pytest.raises(errors.InvalidArgumentError, match="wrong"):
        await opened.run(X, ("y",))
    own = session_of(opened)
    assert len(own._tasks) == 1
    hold.set()
    await own._tasks.settled(10)


# -- steps that callers run --------------------------------------------------------------------------------------------


async def test_a_graph_is_offered_once_after_its_first_step() -> None:
    cluster, master, callers, opened = await with_callers(operation_timeout_in_ms=4000)
    cluster[MASTER].reply("run_graph", errors.aborted("lost"))
    with pytest.raises(errors.AbortedError):
        await opened.run(X, ("z",))
    assert callers.opened == [], "not what has never run to its end"
    for _ in range(2):
        await opened.run(X, ("z",))
    await opened.run(X, ("y",))
    own = master._sessions[opened.handle]
    assert callers.opened == [(opened.handle, 4.0, own._client_graphs.runs)]
    assert [graph.signature.fetches for graph, _ in callers.local.offered] == [("z:0",), ("y:0",)]
    _, explain = callers.local.offered[1]
    cluster[PS].reply("get_status", [fake_device(PS_FULL, incarnation=99)])
    error = await explain(errors.unavailable("it hung up"))
    assert PS_FULL in error.message
    await master.close_session(opened.handle)
    assert [error.message for error in callers.local.stopped] == [CLOSED_BY_CLIENT]
    assert callers.local.awaited == 1
    await master.stop()


async def test_a_session_that_builds_costs_offers_nothing() -> None:
    graph_options = config_pb2.GraphOptions(build_cost_model=1)
    _, master, callers, opened = await with_callers(graph_options=graph_options)
    await opened.run(X, ("z",))
    assert callers.opened == []
    await master.stop()


# -- partial runs and callables ----------------------------------------------------------------------------------------


async def test_partial_runs_of_the_same_names_share_a_graph(opened: OpenSession) -> None:
    handles = [await opened.master.partial_run_setup(opened.handle, ["x"], ["z", "remote"], []) for _ in range(2)]
    assert len(set(handles)) == 2
    assert len(opened.cluster[MASTER].called("register_graph")) == 1
    await opened.run(X, ("z", "remote"))
    assert len(opened.cluster[MASTER].called("register_graph")) == 2, "of a run as a whole it is another one"
    values, metadata = await opened.master.run_step(
        opened.handle, X, ["z"], (), NO_OPTIONS, partial_run_handle=handles[0]
    )
    assert len(values) == 1
    assert metadata == config_pb2.RunMetadata()


async def test_a_released_callable_s_graph_goes(opened: OpenSession) -> None:
    options = config_pb2.CallableOptions(feed=["x:0"], fetch=["z:0"])
    handle = await opened.master.make_callable(opened.handle, options)
    own = session_of(opened)
    own.release_callable(handle + 7)
    own.release_callable(handle)
    own.release_callable(handle)
    await own._tasks.settled(10)
    assert len(opened.cluster[MASTER].called("deregister_graph")) == 1


async def test_a_caller_that_gives_up_a_callable_leaves_the_session_open(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("register_graph", gate)
    options = config_pb2.CallableOptions(feed=["x:0"], fetch=["z:0"])
    making = await started(session_of(opened).make_callable(options))
    await gate.entered.wait()
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    assert len(await opened.run(X, ("z",))) == 1


# -- the end -----------------------------------------------------------------------------------------------------------


async def test_closing_tells_which_tasks_were_out_of_reach(opened: OpenSession) -> None:
    own = session_of(opened)
    opened.cluster[OTHER].reply("delete_worker_session", errors.unavailable("gone"))
    assert await own.close("for a reason") == [OTHER_FULL]
    assert await own.close() == [], "once"
    assert len(opened.cluster[PS].called("delete_worker_session")) == 1


async def test_a_closed_session_refuses_everything(opened: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    own = session_of(opened)
    handle = await own.make_callable(config_pb2.CallableOptions(feed=["x:0"], fetch=["z:0"]))
    await own.close()
    with pytest.raises(errors.InvalidArgumentError):
        own._callables.find(handle, 1)

    async def asked(*arguments: Any) -> Any:
        raise AssertionError("a closed session has begun something")

    monkeypatch.setattr(own.graph, "grown", asked)
    monkeypatch.setattr(own._client_graphs, "build", asked)
    monkeypatch.setattr(own._client_graphs, "register", asked)
    calls: list[Any] = [
        own.run_step(X, ["z"], [], NO_OPTIONS),
        own.extend(parse_text("more = NoOp()"), 0),
        own.partial_run_setup(["x"], ["z"], []),
        own.make_callable(config_pb2.CallableOptions(fetch=["z"])),
    ]
    for call in calls:
        with pytest.raises(errors.FailedPreconditionError, match="Session is closed"):
            await call
    with pytest.raises(errors.FailedPreconditionError, match="Session is closed"):
        own.callable(0, 0)
    assert own.as_status()["steps"] == 0


async def test_what_was_begun_before_the_end_does_not_go_on_after_it(
    opened: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session ends while a graph grows, or is made."""
    own = session_of(opened)
    await opened.run(X, ("z",))
    (graph,) = own._client_graphs.runs.graphs
    grown = await own.graph.grown(parse_text("more = NoOp()"), 0)

    def ends_with(result: Any) -> Any:
        async def call(*arguments: Any) -> Any:
            own._closed = errors.failed_precondition("Session is closed.")
            return result

        return call

    monkeypatch.setattr(own.graph, "grown", ends_with(grown))
    monkeypatch.setattr(own._client_graphs, "build", ends_with(graph))
    monkeypatch.setattr(own._client_graphs, "register", ends_with(graph))
    for call in (
        lambda: own.extend(parse_text("more = NoOp()"), 0),
        lambda: own.run_step(X, ["y"], [], NO_OPTIONS),
        lambda: own.partial_run_setup(["x"], ["z"], []),
        lambda: own.make_callable(config_pb2.CallableOptions(feed=["x:0"], fetch=["z:0"])),
    ):
        own._closed = None
        with pytest.raises(errors.FailedPreconditionError, match="Session is closed"):
            await cast("Any", call())
    own._closed = None
    assert own.graph.version == 0
    assert len(opened.cluster[MASTER].called("run_graph")) == 1


async def test_an_error_of_a_session_that_ends_asks_no_task(opened: OpenSession) -> None:
    own = session_of(opened)
    await opened.run(X, ("y",))
    asked = len(opened.cluster[PS].called("get_status"))

    async def lost(*arguments: Any) -> RunGraphResult:
        own._closed = errors.failed_precondition("Session is closed.")
        raise errors.unavailable("it hung up")

    opened.cluster[PS].run_graph = lost  # type: ignore[method-assign]
    with pytest.raises(errors.UnavailableError, match="it hung up"):
        await opened.run(X, ("y",))
    assert len(opened.cluster[PS].called("get_status")) == asked
    own._closed = None


async def test_closing_waits_a_while_for_clean_ups_and_then_cancels_them() -> None:
    cluster = FakeCluster(MASTER, PS, OTHER)
    master = cluster.master(dataclasses.replace(FAST, cleanup_seconds=30.0, abort_seconds=30.0))
    opened = OpenSession(cluster, master, await session(cluster, master))
    gate, deleting = Gate(), Gate()
    cluster[PS].reply("cleanup_graph", gate)
    cluster[PS].reply("delete_worker_session", deleting)
    await opened.run(X, ("y",))
    own = session_of(opened)
    closing = await started(own.close())
    await deleting.entered.wait()
    deleting.release()
    await started(own._cleaning.settled(0))
    assert not closing.done()
    assert not gate.cancelled.is_set()
    gate.release()
    await closing
    assert not gate.cancelled.is_set()

    opened.handle = await session(cluster, master)
    own = session_of(opened)
    own._limits = dataclasses.replace(own._limits, abort_seconds=0.01)
    stuck = Gate()
    cluster[PS].reply("cleanup_graph", stuck)
    await opened.run(X, ("y",))
    await stuck.entered.wait()
    await own.close()
    assert stuck.cancelled.is_set()
    await master.stop()


async def test_what_is_being_registered_is_cancelled_before_the_workers_sessions_end(opened: OpenSession) -> None:
    registering, deleting = Gate(), Gate()
    opened.cluster[MASTER].reply("register_graph", registering)
    opened.cluster[PS].reply("delete_worker_session", deleting)
    step = await started(opened.run(X, ("z",)))
    await registering.entered.wait()
    closing = await started(session_of(opened).close())
    await deleting.entered.wait()
    await started(asyncio.sleep(0))
    assert registering.cancelled.is_set()
    deleting.release()
    await closing
    with pytest.raises(errors.FailedPreconditionError, match="Session is closed"):
        await step


async def test_closing_interrupts_running_steps_and_partial_runs_with_the_reason(opened: OpenSession) -> None:
    gates = [Gate(), Gate()]
    opened.cluster[MASTER].reply("run_graph", *gates)
    step = await started(opened.run(X, ("z",)))
    await gates[0].entered.wait()
    run = await opened.master.partial_run_setup(opened.handle, ["x"], ["z", "remote"], [])
    part = await started(opened.master.run_step(opened.handle, X, ["z"], (), NO_OPTIONS, partial_run_handle=run))
    await gates[1].entered.wait()
    await session_of(opened).close("the master stops")
    for call in (step, part):
        with pytest.raises(errors.CancelledError, match="the master stops"):
            await call


async def test_a_session_that_brought_its_cluster_leaves_it(opened: OpenSession) -> None:
    own, left = session_of(opened), []

    async def leave() -> None:
        left.append(1)

    own._env = dataclasses.replace(own._env, leave=leave)
    opened.cluster[OTHER].reply("delete_worker_session", errors.unavailable("gone"))
    assert await own.close() == [], "the cluster went, and nobody is to be told again"
    assert left == [1]


async def test_a_step_that_does_not_stop_is_not_waited_for_without_end(
    opened: OpenSession, caplog: pytest.LogCaptureFixture
) -> None:
    own = session_of(opened)
    own._limits = dataclasses.replace(own._limits, close_seconds=0.01)
    own._idle.clear()
    await own.close()
    assert f"Session {opened.handle}: 0 steps did not stop in time" in caplog.text
    own._idle.set()
