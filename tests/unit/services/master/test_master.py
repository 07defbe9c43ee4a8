"""The master: which sessions it admits, to whom they are open, requests that come twice, and what it says of itself."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from support.fake_cluster import FakeCluster, Gate, fake_device
from support.graph_text import parse_text
from support.moments import PATIENCE, started
from tenfold_core import errors
from tenfold_core.access import audit
from tenfold_core.access.gate import Caller
from tenfold_core.access.roles import Role
from tenfold_protos import config_pb2
from tenfold_services.master import master as module
from tenfold_services.master.limits import MasterLimits

from .sessions import FAST, MASTER, NO_OPTIONS, OTHER, OTHER_FULL, PS, PS_FULL, OpenSession, config, session

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_services.master.master import Master

FULL = "/job:worker/replica:0/task:0"
RUNS = Caller(Role.RUN, "token ci")
GUEST = Caller(Role.RUN_UNTRUSTED, "token guest")
STRANGER = Caller(Role.RUN_UNTRUSTED, "token stranger")
HERE = "ipv4:10.0.0.7:4711"


def alone(limits: MasterLimits = FAST, **more: Any) -> tuple[FakeCluster, Master]:
    """A master without other tasks, with more in its env."""
    cluster = FakeCluster(MASTER)
    master = cluster.master(limits)
    master._env = dataclasses.replace(master._env, **more)
    return cluster, master


async def create(master: Master, caller: Caller | None = None, client: str = "", **options: Any) -> str:
    graph, more = parse_text(options.pop("text", "a = NoOp()")), {} if caller is None else {"caller": caller}
    handle, _ = await master.create_session(graph, config(**options), client=client, **more)
    return handle


# -- sessions that are admitted ----------------------------------------------------------------------------------------


async def test_a_master_that_stops_admits_nobody() -> None:
    _, master = alone()
    await create(master)
    await master.stop()
    assert master.open_sessions == []
    with pytest.raises(errors.UnavailableError, match=f"The master of {FULL} is shutting down"):
        await create(master)


async def test_a_master_that_stops_meanwhile_ends_what_it_has_opened() -> None:
    cluster, master = alone()
    gate = Gate()
    cluster[MASTER].reply("create_worker_session", gate)
    opening = await started(create(master))
    async with asyncio.timeout(PATIENCE):
        await gate.entered.wait()
    stopping = await started(master.stop())
    gate.release()
    with pytest.raises(errors.UnavailableError, match="is shutting down"):
        await opening
    await stopping
    await master._closing.settled()
    assert len(cluster[MASTER].called("delete_worker_session")) == 1


async def test_options_of_the_server_are_the_defaults() -> None:
    default = config_pb2.ConfigProto(operation_timeout_in_ms=1000, isolate_session_state=True)
    _, master = alone(default_config=default)
    handle = await create(master, operation_timeout_in_ms=2000)
    found = master._sessions[handle].env.config
    assert (found.operation_timeout_in_ms, found.isolate_session_state) == (2000, True)
    assert default.operation_timeout_in_ms == 1000
    await master.stop()


async def test_sessions_that_are_being_created_count() -> None:
    cluster, master = alone(MasterLimits(sessions=1, create_session_seconds=PATIENCE))
    gate = Gate()
    cluster[MASTER].reply("get_status", gate)
    first = await started(create(master))
    with pytest.raises(errors.ResourceExhaustedError, match=f"The master of {FULL} has 0 sessions open; 1 is"):
        await create(master)
    gate.release()
    await first
    await master.stop()
    assert master._creating == 0


async def test_the_sessions_of_one_peer_are_bounded_and_counted() -> None:
    cluster, master = alone(MasterLimits(sessions_per_peer=1))
    first = await create(master, RUNS, HERE)
    peer = master._sessions[first].peer
    assert peer is not None
    assert (peer.name, peer.sessions) == ("token ci at 10.0.0.7", 1)
    with pytest.raises(
        errors.ResourceExhaustedError, match=f"token ci at 10.0.0.7 has 1 sessions open at the master of {FULL}; 1 is"
    ):
        await create(master, RUNS, "ipv4:10.0.0.7:4712")
    for client in ("ipv4:10.0.0.8:1", "", ""):
        await create(master, RUNS, client)
    await master.close_session(first)
    cluster[MASTER].reply("create_worker_session", errors.internal("no"))
    with pytest.raises(errors.InternalError):
        await create(master, RUNS, HERE)
    assert peer.sessions == 0, "what fails is not counted"
    await create(master, RUNS, HERE)
    await master.stop()


@pytest.mark.parametrize("of_peer", [False, True])
async def test_a_session_that_was_unused_for_longest_makes_room(
    of_peer: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[Any] = []
    monkeypatch.setattr(audit, "done", lambda *about, **more: done.append((about, more)))
    limits = {"sessions_per_peer": 2} if of_peer else {"sessions": 3}
    _, master = alone(dataclasses.replace(FAST, idle_session_seconds=100.0, **limits))
    now = 1000.0
    monkeypatch.setattr(module.MasterSession, "unused_since", lambda self: self.last_used)
    other = await create(master, RUNS, "ipv4:10.0.0.9:1")
    older, newer = [await create(master, RUNS, HERE) for _ in range(2)]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    for handle, used in ((other, 950.0 if not of_peer else 1.0), (older, 899.0), (newer, 900.0)):
        master._sessions[handle].last_used = used

    third = await create(master, RUNS, HERE)

    assert [each.handle for each in master.open_sessions] == [other, newer, third]
    assert f"Session {older} is closed to make room: it was not used for long." in caplog.messages
    assert done == [((audit.ITSELF, "end session"), {"session": older, "reason": "another one needed its place"})]
    master._sessions[third].last_used = 1000.0
    with pytest.raises(errors.ResourceExhaustedError):
        await create(master, RUNS, HERE)  # `newer` was used a hundred seconds ago, and not longer
    await master.stop()


# -- clusters of their own ---------------------------------------------------------------------------------------------


def a_cluster() -> Any:
    made = config_pb2.ConfigProto()
    made.cluster_def.job.add(name="worker").tasks[0] = "here:1"
    return made.cluster_def


@pytest.mark.parametrize("fails", [False, True])
async def test_a_session_joins_a_cluster_that_it_brings(fails: bool) -> None:
    cluster, master = alone()
    left: list[str] = []
    joined: list[Any] = []

    async def leave() -> None:
        left.append("left")

    def join(cluster_def: Any, task: str) -> Any:
        joined.append((cluster_def, task))
        return dataclasses.replace(master._env, join=None, leave=leave, server_def=lambda task: f"server of {task}")

    master._env = dataclasses.replace(master._env, join=cast("Any", join))
    if fails:
        cluster[MASTER].reply("create_worker_session", errors.internal("no"))
        with pytest.raises(errors.InternalError):
            await master.create_session(parse_text("a = NoOp()"), config(cluster_def=a_cluster()), "here:1")
        assert left[:1] == ["left"]
    else:
        await master.create_session(parse_text("a = NoOp()"), config(cluster_def=a_cluster()), "here:1")
        assert left == []
    assert joined == [(a_cluster(), FULL)]
    await master.stop()
    assert "left" in left


async def test_a_master_that_joins_none_says_so() -> None:
    _, master = alone()
    with pytest.raises(errors.UnimplementedError, match=r"ConfigProto\.cluster_def is not served here"):
        await master.create_session(parse_text("a = NoOp()"), config(cluster_def=a_cluster()), "here:1")
    assert master.open_sessions == []


class Finished:
    """In place of FinishedTasks: what is known grows with each look."""

    def __init__(self, *known: dict[str, int]) -> None:
        self._known = list(known)
        self.lost: frozenset[str] = frozenset()

    @property
    def known(self) -> dict[str, int]:
        return self._known.pop(0) if len(self._known) > 1 else self._known[0]

    def __contains__(self, task: str) -> bool:
        return False

    def answered(self, task: str, incarnation: int) -> None: ...


@pytest.mark.parametrize(
    ("known", "attempts", "fails"),
    [
        pytest.param([{}], 2, False, id="once more, also unheard"),
        pytest.param([{}], 2, True, id="not twice more"),
        pytest.param([{}, {PS_FULL: 1}, {PS_FULL: 1}], 2, True, id="known before the second attempt"),
        pytest.param([{}, {}, {PS_FULL: 1}], 3, False, id="heard during the second attempt"),
    ],
)
async def test_a_task_that_finished_between_two_calls_is_no_reason_to_fail(
    known: list[dict[str, int]], attempts: int, fails: bool
) -> None:
    cluster, master = alone(finished=Finished(*known))
    cluster[MASTER].reply("create_worker_session", *[errors.unavailable("it is gone")] * (attempts - (not fails)))
    if fails:
        with pytest.raises(errors.UnavailableError, match="it is gone"):
            await create(master)
    else:
        await create(master)
    assert len(cluster[MASTER].called("create_worker_session")) == attempts
    await master.stop()
    cluster.check_consumed()


@pytest.mark.parametrize("error", [errors.unavailable("gone"), errors.aborted("no")])
async def test_other_failures_are_not_tried_again(error: errors.OpError) -> None:
    finished = None if error.code == errors.UNAVAILABLE else Finished({})
    cluster, master = alone(finished=finished)
    cluster[MASTER].reply("create_worker_session", error)
    with pytest.raises(type(error)):
        await create(master)
    assert len(cluster[MASTER].called("create_worker_session")) == 1
    await master.stop()


# -- who may use a session ---------------------------------------------------------------------------------------------


async def test_nobody_uses_a_session_of_this_process_over_the_network() -> None:
    _, master = alone()
    handle = await create(master)
    with pytest.raises(
        errors.PermissionDeniedError, match=f"Session {handle} was opened within the process of its task"
    ):
        master.check_caller(handle, RUNS)
    master.check_caller("nobody", RUNS)
    master.check_reader(handle, RUNS)
    await master.stop()


async def test_who_may_run_uses_what_others_opened_over_the_network() -> None:
    _, master = alone()
    handle = await create(master, RUNS, HERE)
    other = Caller(Role.RUN, "token other")
    master.check_caller(handle, other)
    master.check_reader(handle, other)
    assert master._sessions[handle].untrusted_functions is None
    assert master._sessions[handle].owner == RUNS.principal
    with pytest.raises(
        errors.PermissionDeniedError, match=f"Session {handle} was not opened by the role run:untrusted"
    ):
        master.check_caller(handle, GUEST)
    await master.stop()


async def test_who_may_only_compute_uses_what_it_opened() -> None:
    _, master = alone()
    handle = await create(master, GUEST, HERE, text="x = Placeholder() dtype=float")
    opened = master._sessions[handle]
    assert (opened.untrusted_functions, opened.env.config.isolate_session_state) == (frozenset(), True)
    master.check_caller(handle, GUEST)
    master.check_reader(handle, GUEST)
    for check in (master.check_caller, master.check_reader):
        with pytest.raises(errors.PermissionDeniedError, match=f"Session {handle} was opened by another caller than"):
            check(handle, STRANGER)
    with pytest.raises(errors.PermissionDeniedError, match="Session nobody was not opened by the role run:untrusted"):
        master.check_caller("nobody", GUEST)
    master.check_reader("nobody", GUEST)
    await master.stop()


async def test_graphs_of_who_may_only_compute_are_checked() -> None:
    _, master = alone()
    with pytest.raises(errors.PermissionDeniedError, match="is a ReadFile"):
        await create(master, GUEST, HERE, text="n = Const() dtype=string value='x'\nr = ReadFile(n)")
    assert master.open_sessions == []
    handle = await create(master, GUEST, HERE, text="x = Placeholder() dtype=float")
    bad = parse_text("n = Const() dtype=string value='x'\nr = ReadFile(n)")
    with pytest.raises(errors.PermissionDeniedError, match="is a ReadFile"):
        await master.extend_session(handle, bad, 0)
    assert master._sessions[handle].graph.version == 0
    more = parse_text("y = Placeholder() dtype=float")
    more.library.function.add().signature.name = "double"
    assert await master.extend_session(handle, more, 0) == 1
    assert master._sessions[handle].untrusted_functions == {"double"}
    await master.stop()


async def test_large_graphs_are_worked_on_in_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Pool:
        async def run(self, owner: str, work: Callable[[], Any]) -> Any:
            asked.append(owner)
            return work()

    _, master = alone(graph_pool=Pool())
    await create(master, GUEST, HERE, text="x = Placeholder() dtype=float")
    assert asked == []
    monkeypatch.setattr(module, "is_small", lambda graph_def: False)
    handle = await create(master, GUEST, HERE, text="x = Placeholder() dtype=float")
    assert asked == ["", ""], "which ops it has, and which tasks it names"
    assert len(handle) == 16
    await master.stop()


# -- steps -------------------------------------------------------------------------------------------------------------


class Step:
    """In place of what runs on its caller's thread."""

    def __init__(self, answer: Any, short: bool = True) -> None:
        self.answer, self.short = answer, short
        self.ran: list[Any] = []

    def is_short(self, feeds: Any) -> bool:
        return self.short

    def run_timed(self, feeds: Any) -> Any:
        self.ran.append(feeds)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def with_step(step: Step | None, **options: Any) -> tuple[Master, str, list[Any]]:
    asked: list[Any] = []
    _, master = alone()
    handle = await create(master, **options)
    callers = SimpleNamespace(find=lambda *names: asked.append(names) or step)
    master._env = dataclasses.replace(master._env, caller_steps=cast("Any", callers))
    return master, handle, asked


async def test_a_short_step_is_run_at_once_and_remembered() -> None:
    value = np.float32([1, 2])
    value.flags.writeable = False
    step = Step([value])
    master, handle, asked = await with_step(step)

    found = master.run_at_once(handle, {"x:0": 5}, ["y"], ["init"], 7)

    assert asked == [(handle, ("x:0",), ("y",), ("init",))]
    assert step.ran == [[5]]
    assert found is not None
    assert found[0] is not value, "a variable's value may change"
    assert found[0].tolist() == [1.0, 2.0]
    assert master.run_at_once(handle, {"x:0": 5}, ["y"], ["init"], 7) is None, "it is not run twice"
    values, _ = await master.run_step(handle, {"x:0": 5}, ["y"], ["init"], NO_OPTIONS, 7)
    assert values[0] is found[0]
    assert master.run_at_once(handle, {"x:0": 5}, ["y"], [], 0) is not None
    assert master.run_at_once(handle, {"x:0": 5}, ["y"], [], 0) is not None
    assert len(step.ran) == 3
    await master.stop()


async def test_an_error_at_once_is_remembered() -> None:
    master, handle, _ = await with_step(Step(errors.invalid_argument("wrong")))
    for request_id in (7, 0):
        with pytest.raises(errors.InvalidArgumentError, match="wrong"):
            master.run_at_once(handle, {}, ["y"], [], request_id)
    with pytest.raises(errors.InvalidArgumentError, match="wrong"):
        await master.run_step(handle, {}, ["y"], [], NO_OPTIONS, 7)
    await master.stop()


@pytest.mark.parametrize(
    ("step", "milliseconds"), [(None, 0), (Step([], short=False), 0), (Step(None), 0), (Step([]), 1), (Step([]), 1233)]
)
async def test_what_is_not_run_at_once_is_left_to_the_scheduled_path(step: Step | None, milliseconds: int) -> None:
    master, handle, _ = await with_step(step)
    assert master.run_at_once(handle, {}, [], [], 7, milliseconds) is None
    assert master.run_at_once("nobody", {}, [], [], 7) is None
    assert not master._requests.knows((handle, 7), "")
    await master.stop()


@pytest.mark.parametrize(("milliseconds", "runs"), [(0, True), (4000, True), (3999, False)])
async def test_a_step_with_the_time_of_its_session_is_run_at_once(milliseconds: int, runs: bool) -> None:
    master, handle, _ = await with_step(Step([]), operation_timeout_in_ms=4000)
    assert (master.run_at_once(handle, {}, [], [], 0, milliseconds) == []) == runs
    await master.stop()


async def test_without_callers_of_this_process_no_step_is_found(opened: OpenSession) -> None:
    assert opened.master.find_step(opened.handle, (), (), ()) is None


async def test_a_callable_is_made_and_run_once_for_each_number(opened: OpenSession) -> None:
    options = config_pb2.CallableOptions(feed=["x:0"], fetch=["z:0"])
    first = await opened.master.make_callable(opened.handle, options, 5)
    assert await opened.master.make_callable(opened.handle, options, 5) == first
    assert await opened.master.make_callable(opened.handle, options, 6) == first + 1
    answers = [await opened.master.run_callable(opened.handle, first, [np.float32(3)], number) for number in (1, 1, 0)]
    assert answers[0][0] is answers[1][0]
    assert len(opened.cluster[MASTER].called("run_graph")) == 2
    assert len(opened.cluster[MASTER].called("register_graph")) == 2
    await opened.master.release_callable(opened.handle, first)
    with pytest.raises(errors.InvalidArgumentError, match="released"):
        await opened.master.run_callable(opened.handle, first, [np.float32(3)])


async def test_a_partial_run_is_set_up_once_for_each_number(opened: OpenSession) -> None:
    first = await opened.master.partial_run_setup(opened.handle, ["x"], ["z"], [], 5)
    assert await opened.master.partial_run_setup(opened.handle, ["x"], ["z"], [], 5) == first
    assert await opened.master.partial_run_setup(opened.handle, ["x"], ["z"], []) != first


async def test_an_answer_keeps_so_many_bytes(opened: OpenSession) -> None:
    strings = np.array([b"abc", "x"], object)
    answer: Any = ([np.zeros(2, np.float32), strings, 5.0], None)
    assert opened.master._requests._size_of(answer) == 8 + strings.nbytes + 3
    await opened.master.partial_run_setup(opened.handle, ["x"], ["z"], [], 5)
    assert opened.master._setups._bytes == 100


# -- figures and the end -----------------------------------------------------------------------------------------------


async def test_sessions_used_last_are_told_first(opened: OpenSession) -> None:
    second = await create(opened.master)
    opened.master._sessions[opened.handle].last_used -= 1000
    opened.master._sessions[opened.handle]._active -= 1000
    assert [each["handle"] for each in opened.master.session_statuses(5)] == [second, opened.handle]
    assert [each["handle"] for each in opened.master.session_statuses(1)] == [second]
    assert opened.master.session_statuses(0) == []


async def test_asking_for_something_counts_as_use(opened: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 5.0))
    await opened.master.release_callable(opened.handle, 1)
    assert opened.master._sessions[opened.handle].last_used == 5.0


async def test_the_other_tasks_and_their_addresses(opened: OpenSession) -> None:
    cluster = opened.cluster
    address = cluster.address
    cluster.address = lambda task: None if task == PS_FULL else address(task)  # type: ignore[method-assign, assignment, return-value]
    assert opened.master.other_tasks() == {PS_FULL: "", OTHER_FULL: address(OTHER_FULL)}


@pytest.mark.parametrize("answer", [errors.unavailable("gone"), TimeoutError(), Gate()])
async def test_devices_of_the_cluster_are_those_of_who_answers(answer: Any) -> None:
    cluster = FakeCluster(MASTER, PS, OTHER)
    cluster[PS].reply("get_status", answer)
    cluster[OTHER].devices.append(fake_device(OTHER, "GPU"))
    master = cluster.master(FAST)
    found = [device.name.removeprefix("/job:worker/replica:0") for device in await master.list_devices("")]
    assert found == ["/task:0/device:CPU:0", "/task:1/device:CPU:0", "/task:1/device:GPU:0"]


async def test_a_defect_of_a_task_is_no_silence() -> None:
    cluster = FakeCluster(MASTER, PS)
    cluster[PS].reply("get_status", ZeroDivisionError("by nought"))
    with pytest.raises(ZeroDivisionError):
        await cluster.master(FAST).list_devices("")


async def test_a_task_that_cannot_be_cleared_is_named(opened: OpenSession, caplog: pytest.LogCaptureFixture) -> None:
    opened.cluster[PS].reply("cleanup_all", errors.internal("busy"))
    opened.cluster[OTHER].reply("cleanup_all", Gate())
    await opened.master.reset(["c"])
    assert sorted(record.message for record in caplog.records if record.message.startswith("Reset")) == [
        f"Reset: {PS_FULL} could not be cleared: busy",
        f"Reset: {OTHER_FULL} could not be cleared: no answer in time",
    ]


@pytest.mark.parametrize("method", ["placement", "close_session"])
async def test_an_unknown_session_may_be_one_of_another_life(opened: OpenSession, method: str) -> None:
    with pytest.raises(
        errors.AbortedError, match=r"^Session gone is not found\. Possibly, this master has restarted\.$"
    ):
        await getattr(opened.master, method)("gone")


async def test_stopping_tells_the_sessions_why_and_never_raises(
    opened: OpenSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[Any] = []
    monkeypatch.setattr(audit, "done", lambda *about, **more: done.append(more))

    async def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(opened.master._left, "close", broken)
    await opened.master.stop()
    reason = "Step was cancelled because the server is shutting down."
    assert done == [{"session": opened.handle, "reason": reason}]
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.message == f"Stopping the master of {FULL}"


async def test_tasks_that_were_out_of_reach_are_asked_again(opened: OpenSession) -> None:
    opened.cluster[PS].reply("delete_worker_session", errors.unavailable("gone"))
    await opened.master.close_session(opened.handle)
    assert list(opened.master._left._left) == [PS_FULL]
    assert list(opened.master._left._left[PS_FULL]) == [opened.handle]


async def test_devices_of_a_session(opened: OpenSession) -> None:
    found = await opened.master.list_devices(opened.handle)
    assert [device.name.partition("/device")[0] for device in found] == [FULL, PS_FULL, OTHER_FULL]
    assert await session(opened.cluster, opened.master, "a = NoOp()") != opened.handle
