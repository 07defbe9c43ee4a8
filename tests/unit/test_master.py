"""The master against scripted workers: no sockets, no kernels, no sleeping."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.fake_cluster import FakeCluster, Gate, fake_device
from tenfold.framework import errors
from tenfold_protos import config_pb2
from tenfold_services.graph.text import parse_text
from tenfold_services.interfaces import MasterInterface
from tenfold_services.master.limits import MasterLimits

if TYPE_CHECKING:
    from tenfold_services.master.master import Master

MASTER, PS, OTHER = "/job:worker/task:0", "/job:ps/task:0", "/job:worker/task:1"
PS_FULL, OTHER_FULL = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:1"

GRAPH = """
    x = Placeholder() dtype=float
    w = VariableV2() dtype=float shape=[] @/job:ps/task:0
    read = Identity(w) colocate=w
    y = Add(read, x)
    z = Neg(x)
    remote = Neg(x) @/job:worker/task:1
    init = NoOp() @/job:ps/task:0
"""

NO_OPTIONS = config_pb2.RunOptions()
FAST = MasterLimits(
    create_session_seconds=0.2,
    first_retry_seconds=0.01,
    abort_seconds=0.05,
    close_seconds=0.2,
    cleanup_seconds=0.2,
    diagnose_seconds=0.2,
    register_seconds=0.2,
    list_devices_seconds=0.2,
)


def config(**kwargs: Any) -> config_pb2.ConfigProto:
    return config_pb2.ConfigProto(**kwargs)


async def session(cluster: FakeCluster, master: Master, text: str = GRAPH, **kwargs: Any) -> str:
    handle, version = await master.create_session(parse_text(text), config(**kwargs))
    assert version == 0
    return handle


class Fixture:
    """A cluster, its master and an open session."""

    def __init__(self, cluster: FakeCluster, master: Master, handle: str) -> None:
        self.cluster, self.master, self.handle = cluster, master, handle

    async def run(
        self,
        feeds: dict[str, Any] | None = None,
        fetches: tuple[str, ...] = (),
        targets: tuple[str, ...] = (),
        **options: Any,
    ) -> list[Any]:
        request_id = options.pop("request_id", 0)
        values, _ = await self.master.run_step(
            self.handle, feeds or {}, fetches, targets, config_pb2.RunOptions(**options), request_id
        )
        return values


@pytest.fixture
async def opened() -> Any:
    cluster = FakeCluster(MASTER, PS, OTHER)
    master = cluster.master(FAST)
    yield Fixture(cluster, master, await session(cluster, master))
    await master.stop()
    cluster.check_consumed()
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


X = {"x:0": np.float32(3)}


# -- sessions --------------------------------------------------------------------------------------------------------


async def test_the_master_is_what_the_rpc_layer_expects() -> None:
    assert isinstance(FakeCluster(MASTER).master(), MasterInterface)


async def test_a_session_opens_at_every_worker_and_ends_there(opened: Fixture) -> None:
    assert len(opened.handle) == 16
    assert int(opened.handle, 16) >= 0
    for task in (MASTER, PS, OTHER):
        assert opened.cluster[task].called("create_worker_session") == [
            (opened.handle, False, "/job:worker/replica:0/task:0", 1)
        ]

    await opened.master.close_session(opened.handle)

    for task in (MASTER, PS, OTHER):
        assert opened.cluster[task].called("delete_worker_session") == [(opened.handle,)]


async def test_isolated_state_is_passed_on() -> None:
    cluster = FakeCluster(MASTER)
    master = cluster.master(FAST)

    await session(cluster, master, "a = NoOp()", isolate_session_state=True)

    assert cluster[MASTER].called("create_worker_session")[0][1] is True
    await master.stop()


async def test_a_task_that_comes_late_is_waited_for() -> None:
    cluster = FakeCluster(MASTER, PS)
    refused = errors.UnavailableError(None, None, "connection refused")
    cluster[PS].reply("get_status", refused, refused)
    master = cluster.master(FAST)

    await session(cluster, master, "a = NoOp() @/job:ps/task:0")

    assert len(cluster[PS].called("get_status")) == 3
    await master.stop()


async def test_a_missing_task_is_named_with_its_address_and_the_reason() -> None:
    cluster = FakeCluster(MASTER, PS, OTHER)
    cluster[PS].reply("get_status", *[errors.UnavailableError(None, None, "connection refused")] * 1000)
    master = cluster.master(FAST)

    with pytest.raises(errors.DeadlineExceededError) as caught:
        await session(cluster, master, operation_timeout_in_ms=50)

    text = caught.value.message
    assert "waited 0.045 s for 1 of 3 tasks" in text
    assert f"{PS_FULL} (host-of-job:ps-replica:0-task:0:2222): connection refused" in text
    assert OTHER_FULL not in text
    assert not cluster[MASTER].called("create_worker_session")


async def test_a_task_that_never_answers_is_named_too() -> None:
    cluster = FakeCluster(MASTER, PS)
    cluster[PS].reply("get_status", Gate())
    master = cluster.master(FAST)

    with pytest.raises(errors.DeadlineExceededError, match=rf"{PS_FULL} .*: no answer"):
        await session(cluster, master, operation_timeout_in_ms=50)


async def test_a_task_that_refuses_us_is_not_asked_again() -> None:
    cluster = FakeCluster(MASTER, PS)
    cluster[PS].reply("get_status", errors.UnauthenticatedError(None, None, "a cluster token is needed"))
    master = cluster.master(MasterLimits())

    with pytest.raises(errors.UnauthenticatedError, match="token"):
        await session(cluster, master)


async def test_device_filters_leave_tasks_out() -> None:
    cluster = FakeCluster(MASTER, PS, OTHER)
    master = cluster.master(FAST)

    handle = await session(cluster, master, "a = NoOp()", device_filters=["/job:ps"])

    assert not cluster[OTHER].calls
    names = [device.name for device in await master.list_devices(handle)]
    assert names == ["/job:worker/replica:0/task:0/device:CPU:0", f"{PS_FULL}/device:CPU:0"]
    with pytest.raises(errors.InvalidArgumentError, match="excluded by the session's device_filters"):
        await session(cluster, master, "a = NoOp() @/job:worker/task:1", device_filters=["/job:ps"])
    await master.stop()


async def test_a_malformed_filter_is_refused() -> None:
    master = FakeCluster(MASTER).master(FAST)

    with pytest.raises(errors.InvalidArgumentError, match=r"device_filters: .*nonsense"):
        await master.create_session(parse_text(""), config(device_filters=["nonsense"]))


async def test_the_whole_graph_is_placed_when_the_session_is_created() -> None:
    cluster = FakeCluster(MASTER)
    master = cluster.master(FAST)

    with pytest.raises(errors.InvalidArgumentError, match=r"Cannot place 'never_run' on /job:nope/task:3"):
        await session(cluster, master, "a = NoOp()\nnever_run = NoOp() @/job:nope/task:3")

    assert master.session_handles == []
    assert not cluster[MASTER].called("create_worker_session")


async def test_only_what_a_step_needs_is_placed_where_a_session_asks_for_that() -> None:
    cluster = FakeCluster(MASTER, PS)
    master = cluster.master(FAST)
    options = config_pb2.GraphOptions(place_pruned_graph=True)
    text = "a = NoOp() @/job:ps/task:0\nabandoned = NoOp() @/job:nope/task:3"
    opened = Fixture(cluster, master, await session(cluster, master, text, graph_options=options))

    await opened.run(targets=("a",))
    with pytest.raises(errors.InvalidArgumentError, match=r"Cannot place 'abandoned' on /job:nope/task:3"):
        await opened.run(targets=("abandoned",))

    assert len(cluster[PS].called("run_graph")) == 1
    await master.stop()


async def test_a_session_that_one_worker_refuses_is_ended_at_the_others() -> None:
    cluster = FakeCluster(MASTER, PS)
    cluster[PS].reply("create_worker_session", errors.ResourceExhaustedError(None, None, "too many sessions"))
    master = cluster.master(FAST)

    with pytest.raises(errors.ResourceExhaustedError, match="too many sessions"):
        await session(cluster, master, "a = NoOp()")

    await master.stop()
    assert cluster[MASTER].called("delete_worker_session")


async def test_the_number_of_sessions_is_bounded() -> None:
    cluster = FakeCluster(MASTER)
    master = cluster.master(MasterLimits(sessions=1))
    await session(cluster, master, "a = NoOp()")

    with pytest.raises(errors.ResourceExhaustedError, match="has 1 sessions open"):
        await session(cluster, master, "a = NoOp()")

    await master.stop()


async def test_placement_is_logged_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = FakeCluster(MASTER)
    master = cluster.master(FAST)

    await session(cluster, master, "a = NoOp()", log_device_placement=True)

    assert "a: (NoOp): /job:worker/replica:0/task:0/device:CPU:0\n" in capsys.readouterr().err
    await master.stop()


@pytest.mark.parametrize("method", ["extend_session", "run_step", "close_session", "make_callable", "run_callable"])
async def test_an_unknown_session_is_aborted(method: str) -> None:
    master = FakeCluster(MASTER).master(FAST)
    arguments: dict[str, tuple[Any, ...]] = {
        "extend_session": (parse_text(""), 0),
        "run_step": ({}, [], ["a"], NO_OPTIONS),
        "close_session": (),
        "make_callable": (config_pb2.CallableOptions(),),
        "run_callable": (1, []),
    }

    with pytest.raises(errors.AbortedError, match=r"Session feedfacefeedface is not found\."):
        await getattr(master, method)("feedfacefeedface", *arguments[method])


async def test_extend_adds_nodes_and_counts(opened: Fixture) -> None:
    new = parse_text("more = NoOp() @/job:ps/task:0")

    assert await opened.master.extend_session(opened.handle, new, 0) == 1

    await opened.run(targets=("more",))
    with pytest.raises(errors.AbortedError, match=r"Current version is 1 but caller expected 0\."):
        await opened.master.extend_session(opened.handle, parse_text("again = NoOp()"), 0)


async def test_a_refused_extension_changes_nothing(opened: Fixture) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Cannot place 'bad'"):
        await opened.master.extend_session(opened.handle, parse_text("bad = NoOp() @/job:nope"), 0)

    assert await opened.master.extend_session(opened.handle, parse_text("bad = NoOp()"), 0) == 1


async def test_reset_closes_all_sessions_and_clears_containers_everywhere(opened: Fixture) -> None:
    await opened.master.reset(["experiment"])

    for task in (MASTER, PS, OTHER):
        assert opened.cluster[task].called("cleanup_all") == [(["experiment"],)]
    with pytest.raises(errors.AbortedError, match="not found"):
        await opened.run(targets=("init",))


async def test_devices_without_a_session_leave_out_who_does_not_answer() -> None:
    cluster = FakeCluster(MASTER, PS, OTHER)
    cluster[PS].reply("get_status", errors.UnavailableError(None, None, "refused"))
    master = cluster.master(FAST)

    names = [device.name for device in await master.list_devices("")]

    assert names == ["/job:worker/replica:0/task:0/device:CPU:0", f"{OTHER_FULL}/device:CPU:0"]
    with pytest.raises(errors.InvalidArgumentError, match="Session gone is not found"):
        await master.list_devices("gone")


# -- steps -----------------------------------------------------------------------------------------------------------


async def test_a_step_contacts_only_the_tasks_it_needs(opened: Fixture) -> None:
    assert await opened.run(X, ("z:0",)) == [np.float32(0)]

    assert len(opened.cluster[MASTER].called("run_graph")) == 1
    assert not opened.cluster[PS].called("run_graph")
    assert not opened.cluster[OTHER].called("register_graph")


async def test_feeds_and_fetches_travel_by_rendezvous_key(opened: Fixture) -> None:
    values = await opened.run({"x": np.float32(3)}, ("z", "y:0", "z:0"))

    (_, step_id, feeds, fetches) = opened.cluster[MASTER].called("run_graph")[0]
    device = "/job:worker/replica:0/task:0/device:CPU:0"
    assert 0 < step_id < 1 << 56
    assert feeds == {f"{device};{1:016x};{device};x:0;0:0": np.float32(3)}
    assert sorted(key.split(";")[3] for key in fetches) == ["y:0", "z:0"]
    # The same tensor asked for twice is fetched once and returned twice.
    assert values[0] == values[2] != values[1]
    assert opened.cluster[PS].called("run_graph")[0][1:] == (step_id, {}, [])


async def test_a_graph_is_registered_once_for_each_signature(opened: Fixture) -> None:
    await opened.run({"x": 1.0}, ("z", "y"))
    await opened.run({"x:0": 2.0}, ("y:0", "z:0"))

    assert len(opened.cluster[MASTER].called("register_graph")) == 1
    assert len(opened.cluster[MASTER].called("run_graph")) == 2


async def test_runs_that_come_while_the_graph_is_registered_share_it(opened: Fixture) -> None:
    gate = Gate()
    opened.cluster[PS].reply("register_graph", gate)
    first = asyncio.create_task(opened.run(targets=("init",)))
    await gate.entered.wait()
    second = asyncio.create_task(opened.run(targets=("init",)))
    await asyncio.sleep(0)

    first.cancel()
    gate.release()
    await second

    assert len(opened.cluster[PS].called("register_graph")) == 1


async def test_numbers_of_new_nodes_are_not_used_again(opened: Fixture) -> None:
    await opened.run(X, ("y",))
    await opened.run(X, ("y", "read"))

    names = [
        {node.name for node in graph.node if node.op in ("_Send", "_Recv") and "_S" in node.name}
        for graph in opened.cluster[PS].graphs.values()
    ]
    assert len(names) == 2
    assert not names[0] & names[1]


async def test_the_step_is_forgotten_everywhere(opened: Fixture) -> None:
    await opened.run(X, ("y",))
    await opened.master.close_session(opened.handle)

    step_id = opened.cluster[PS].called("run_graph")[0][1]
    assert opened.cluster[MASTER].called("cleanup_graph") == [(step_id,)]
    assert opened.cluster[PS].called("cleanup_graph") == [(step_id,)]


async def test_old_client_graphs_make_room() -> None:
    cluster = FakeCluster(MASTER)
    master = cluster.master(MasterLimits(client_graphs=2))
    handle = await session(cluster, master, "a = NoOp()\nb = NoOp()\nc = NoOp()")

    for target in ("a", "b", "a", "c", "a"):
        await master.run_step(handle, {}, [], [target], NO_OPTIONS)
    await asyncio.sleep(0)

    assert len(cluster[MASTER].called("register_graph")) == 3
    assert [handle for _, handle in cluster[MASTER].called("deregister_graph")] == ["/job:worker/replica:0/task:0#1"]
    await master.stop()


async def test_partition_graphs_are_returned_on_demand(opened: Fixture) -> None:
    _, metadata = await opened.master.run_step(
        opened.handle, X, ["y:0"], [], config_pb2.RunOptions(output_partition_graphs=True)
    )

    registered = [next(iter(opened.cluster[task].graphs.values())) for task in (MASTER, PS)]
    assert sorted(g.SerializeToString(deterministic=True) for g in metadata.partition_graphs) == sorted(
        g.SerializeToString(deterministic=True) for g in registered
    )


async def test_a_fetch_without_a_value_is_an_error(opened: Fixture) -> None:
    from tenfold_services.interfaces import RunGraphResult

    opened.cluster[MASTER].reply("run_graph", RunGraphResult({}))

    with pytest.raises(errors.InvalidArgumentError, match=r"The tensor returned for z:0 was not valid\."):
        await opened.run(X, ("z",))


# -- errors and ends of steps ----------------------------------------------------------------------------------------


async def test_an_error_names_its_task_once(opened: Fixture) -> None:
    opened.cluster[MASTER].reply("run_graph", errors.InvalidArgumentError(None, None, "bad\n\t [[{{node z}}]]"))

    with pytest.raises(errors.InvalidArgumentError) as caught:
        await opened.run(X, ("z",))

    assert caught.value.message == "From /job:worker/replica:0/task:0:\nbad\n\t [[{{node z}}]]"
    assert caught.value.node_name == "z"


async def test_the_first_error_stops_the_other_parts(opened: Fixture) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    opened.cluster[PS].reply("run_graph", errors.FailedPreconditionError(None, None, "uninitialized value w"))

    with pytest.raises(errors.FailedPreconditionError, match=f"From {PS_FULL}:\nuninitialized value w"):
        await opened.run(X, ("y",))

    assert gate.cancelled.is_set()


async def test_an_unexpected_exception_of_a_worker_becomes_internal(opened: Fixture) -> None:
    opened.cluster[MASTER].reply("run_graph", TypeError("oops"))

    with pytest.raises(errors.InternalError, match="TypeError: oops"):
        await opened.run(X, ("z",))


async def test_a_time_out_names_the_tasks_that_are_pending(opened: Fixture) -> None:
    gate = Gate()
    opened.cluster[PS].reply("run_graph", gate)

    with pytest.raises(errors.DeadlineExceededError) as caught:
        await opened.run(X, ("y",), timeout_in_ms=20)

    assert caught.value.message == f"The step did not finish within 20 ms; still pending on {PS_FULL}."
    assert gate.cancelled.is_set()


async def test_a_time_out_holds_for_a_single_part_too(opened: Fixture) -> None:
    opened.cluster[MASTER].reply("run_graph", Gate())

    with pytest.raises(errors.DeadlineExceededError, match="still pending on /job:worker/replica:0/task:0"):
        await opened.run(X, ("z",), timeout_in_ms=20)


async def test_a_time_out_covers_registration(opened: Fixture) -> None:
    gate = Gate()
    opened.cluster[PS].reply("register_graph", gate)

    with pytest.raises(errors.DeadlineExceededError, match="still being registered"):
        await opened.run(targets=("init",), timeout_in_ms=20)

    gate.release()


async def test_the_sessions_time_out_is_the_default() -> None:
    cluster = FakeCluster(MASTER)
    master = cluster.master(FAST)
    handle = await session(cluster, master, "a = NoOp()", operation_timeout_in_ms=30)
    cluster[MASTER].reply("run_graph", Gate())

    with pytest.raises(errors.DeadlineExceededError, match="30 ms"):
        await master.run_step(handle, {}, [], ["a"], NO_OPTIONS)

    await master.stop()


async def test_a_task_that_does_not_register_in_time_is_out_of_reach(opened: Fixture) -> None:
    # monitored sessions begin again after UnavailableError, and not after a step that took too long
    opened.cluster[PS].reply("register_graph", errors.DeadlineExceededError(None, None, "no answer in time"))
    with pytest.raises(errors.UnavailableError, match="no answer in time"):
        await opened.run(targets=("init",))

    gate = Gate()
    opened.cluster[PS].reply("register_graph", gate)
    with pytest.raises(errors.UnavailableError, match=r"within 0\.2 s with /job:ps/replica:0/task:0"):
        await opened.run(targets=("init",))
    gate.release()


async def test_a_failed_registration_is_tried_again_and_leaves_nothing(opened: Fixture) -> None:
    opened.cluster[MASTER].reply("register_graph", errors.NotFoundError(None, None, "no kernel"))

    with pytest.raises(errors.NotFoundError, match="From /job:worker/replica:0/task:0:\nno kernel"):
        await opened.run(X, ("y",))
    assert len(opened.cluster[PS].called("deregister_graph")) == 1

    await opened.run(X, ("y",))


@pytest.mark.parametrize("fetch", ["z", "y"])
async def test_closing_cancels_running_steps_in_tensorflows_words(opened: Fixture, fetch: str) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    step = asyncio.create_task(opened.run(X, (fetch,)))
    await gate.entered.wait()

    await opened.master.close_session(opened.handle)

    with pytest.raises(errors.CancelledError) as caught:
        await step
    assert caught.value.message == "Step was cancelled by an explicit call to `Session::Close()`."
    assert gate.cancelled.is_set()


async def test_a_closed_session_registers_nothing_more(opened: Fixture) -> None:
    gate = Gate()
    opened.cluster[PS].reply("register_graph", gate)
    step = asyncio.create_task(opened.run(targets=("init",)))
    await gate.entered.wait()

    await opened.master.close_session(opened.handle)

    with pytest.raises(errors.FailedPreconditionError, match="Session is closed"):
        await step


async def test_stopping_ends_everything_and_refuses_what_is_new(opened: Fixture) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    step = asyncio.create_task(opened.run(X, ("z",)))
    await gate.entered.wait()

    await opened.master.stop()

    with pytest.raises(errors.CancelledError, match="shutting down"):
        await step
    with pytest.raises(errors.UnavailableError, match="shutting down"):
        await session(opened.cluster, opened.master)


@pytest.mark.parametrize("fetch", ["z", "y"])
async def test_a_client_that_gives_up_stops_its_step(opened: Fixture, fetch: str) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    step = asyncio.create_task(opened.run(X, (fetch,)))
    await gate.entered.wait()

    step.cancel()

    with pytest.raises(asyncio.CancelledError):
        await step
    assert gate.cancelled.is_set()
    assert await opened.run(X, ("z",)) == [np.float32(0)]


async def test_a_worker_that_does_not_answer_the_end_of_a_session_does_not_hold_it_up(opened: Fixture) -> None:
    gate = Gate()
    opened.cluster[PS].reply("delete_worker_session", gate)

    await opened.master.close_session(opened.handle)

    assert gate.cancelled.is_set()


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (errors.UnavailableError(None, None, "connection refused"), []),
        (errors.AbortedError(None, None, "another incarnation"), []),
        (errors.InternalError(None, None, "no room"), [f"DeleteWorkerSession on {PS_FULL} failed: no room"]),
    ],
)
async def test_a_lost_task_is_no_warning_at_the_end_of_a_session(
    opened: Fixture, caplog: pytest.LogCaptureFixture, error: errors.OpError, says: list[str]
) -> None:
    opened.cluster[PS].reply("delete_worker_session", error)

    await opened.master.close_session(opened.handle)

    assert [record.message.partition(": ")[2] for record in caplog.records if record.levelname == "WARNING"] == says


async def test_a_task_that_restarted_is_named(opened: Fixture) -> None:
    await opened.run(targets=("init",))
    opened.cluster[PS].devices = [fake_device(PS, incarnation=99)]
    opened.cluster[PS].reply("run_graph", errors.AbortedError(None, None, "Graph handle is not found"))

    with pytest.raises(errors.AbortedError, match=f"{PS_FULL} has restarted since this session was created") as caught:
        await opened.run(targets=("init",))

    assert "open a new session" in caught.value.message
    assert "Graph handle is not found" in caught.value.message


async def test_a_task_that_is_gone_is_unavailable(opened: Fixture) -> None:
    lost = errors.UnavailableError(None, None, f"{PS_FULL} is gone")
    opened.cluster[PS].reply("run_graph", lost)
    opened.cluster[PS].reply("get_status", lost)

    with pytest.raises(errors.UnavailableError, match="is gone"):
        await opened.run(X, ("y",))


async def test_the_number_of_running_steps_is_bounded() -> None:
    cluster = FakeCluster(MASTER)
    master = cluster.master(MasterLimits(running_steps=1))
    handle = await session(cluster, master, "a = NoOp()")
    gate = Gate()
    cluster[MASTER].reply("run_graph", gate)
    step = asyncio.create_task(master.run_step(handle, {}, [], ["a"], NO_OPTIONS))
    await gate.entered.wait()

    with pytest.raises(errors.ResourceExhaustedError, match="runs 1 steps at once"):
        await master.run_step(handle, {}, [], ["a"], NO_OPTIONS)

    gate.release()
    await step
    await master.stop()


async def test_a_negative_time_out_is_refused(opened: Fixture) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="timeout_in_ms is -5"):
        await opened.run(X, ("z",), timeout_in_ms=-5)


# -- a request that comes twice --------------------------------------------------------------------------------------


async def test_a_request_that_comes_again_gets_the_first_answer(opened: Fixture) -> None:
    first = await opened.run(X, ("z",), request_id=7)

    assert await opened.run(X, ("z",), request_id=7) is first
    assert len(opened.cluster[MASTER].called("run_graph")) == 1


async def test_a_request_that_comes_again_waits_for_the_first(opened: Fixture) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    first = asyncio.create_task(opened.run(X, ("z",), request_id=7))
    await gate.entered.wait()
    again = asyncio.create_task(opened.run(X, ("z",), request_id=7))
    await asyncio.sleep(0)

    gate.release()

    assert await again == await first
    assert len(opened.cluster[MASTER].called("run_graph")) == 1


async def test_a_request_whose_first_caller_went_away_is_not_run_again(opened: Fixture) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    first = asyncio.create_task(opened.run(X, ("z",), request_id=7))
    await gate.entered.wait()
    first.cancel()

    with pytest.raises(errors.AbortedError, match="received twice"):
        await opened.run(X, ("z",), request_id=7)


# -- callables -------------------------------------------------------------------------------------------------------


async def test_a_callable_runs_by_position(opened: Fixture) -> None:
    options = config_pb2.CallableOptions(feed=["x:0"], fetch=["z:0", "y:0"])

    handle = await opened.master.make_callable(opened.handle, options)
    values, _ = await opened.master.run_callable(opened.handle, handle, [np.float32(5)])

    assert len(values) == 2
    assert list(opened.cluster[MASTER].called("run_graph")[0][2].values()) == [np.float32(5)]


async def test_a_released_callable_cannot_run(opened: Fixture) -> None:
    deregistered = Gate()
    opened.cluster[PS].reply("deregister_graph", deregistered)
    handle = await opened.master.make_callable(opened.handle, config_pb2.CallableOptions(target=["init"]))
    await opened.master.release_callable(opened.handle, handle)
    await opened.master.release_callable(opened.handle, 123)

    with pytest.raises(errors.InvalidArgumentError, match="after handle was released: 1"):
        await opened.master.run_callable(opened.handle, handle, [])
    with pytest.raises(errors.InvalidArgumentError, match="No such callable handle: 9"):
        await opened.master.run_callable(opened.handle, 9, [])
    await deregistered.entered.wait()


async def test_a_callable_wants_all_its_feeds(opened: Fixture) -> None:
    handle = await opened.master.make_callable(opened.handle, config_pb2.CallableOptions(feed=["x"], fetch=["z"]))

    with pytest.raises(errors.InvalidArgumentError, match="Expected 1 feed tensors, but got 0: x"):
        await opened.master.run_callable(opened.handle, handle, [])


async def test_a_callable_connects_one_tensor_to_another(opened: Fixture) -> None:
    options = config_pb2.CallableOptions(fetch=["z:0"])
    options.tensor_connection.add(from_tensor="read", to_tensor="x:0")

    handle = await opened.master.make_callable(opened.handle, options)
    values, _ = await opened.master.run_callable(opened.handle, handle, [])

    assert len(values) == 1
    (mine,), (theirs,) = opened.cluster[MASTER].graphs.values(), opened.cluster[PS].graphs.values()
    assert [node.name for node in mine.node if node.op in ("Identity", "Neg")] == ["_identity_x_0", "z"]
    assert [node.name for node in theirs.node if node.op in ("VariableV2", "Identity")] == ["w", "read"]


async def test_what_callables_cannot_do_is_said(opened: Fixture) -> None:
    options = config_pb2.CallableOptions(target=["init"], feed_devices={"q:0": "/cpu:0"})

    with pytest.raises(
        errors.InvalidArgumentError, match="Tensor q:0, specified in either feed_devices or fetch_devices"
    ):
        await opened.master.make_callable(opened.handle, options)
