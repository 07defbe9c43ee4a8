"""Sessions of the master against scripted workers: who takes part, what is refused, how the graph grows."""

from __future__ import annotations

from typing import Any

import pytest

from support.fake_cluster import FakeCluster, Gate
from support.graph_text import parse_text
from tenfold_core import errors
from tenfold_protos import config_pb2, graph_pb2
from tenfold_services.master.device_finder import tasks_named
from tenfold_services.master.limits import MasterLimits

from .sessions import FAST, MASTER, NO_OPTIONS, OTHER, OTHER_FULL, PS, PS_FULL, OpenSession, config, session


async def test_a_session_opens_at_every_worker_and_ends_there(opened: OpenSession) -> None:
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

    assert master.open_sessions == []
    assert not cluster[MASTER].called("create_worker_session")


async def test_only_what_a_step_needs_is_placed_where_a_session_asks_for_that() -> None:
    cluster = FakeCluster(MASTER, PS)
    master = cluster.master(FAST)
    options = config_pb2.GraphOptions(place_pruned_graph=True)
    text = "a = NoOp() @/job:ps/task:0\nabandoned = NoOp() @/job:nope/task:3"
    opened = OpenSession(cluster, master, await session(cluster, master, text, graph_options=options))

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


async def test_extend_adds_nodes_and_counts(opened: OpenSession) -> None:
    new = parse_text("more = NoOp() @/job:ps/task:0")

    assert await opened.master.extend_session(opened.handle, new, 0) == 1

    await opened.run(targets=("more",))
    with pytest.raises(errors.AbortedError, match=r"Current version is 1 but caller expected 0\."):
        await opened.master.extend_session(opened.handle, parse_text("again = NoOp()"), 0)


async def test_a_refused_extension_changes_nothing(opened: OpenSession) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Cannot place 'bad'"):
        await opened.master.extend_session(opened.handle, parse_text("bad = NoOp() @/job:nope"), 0)

    assert await opened.master.extend_session(opened.handle, parse_text("bad = NoOp()"), 0) == 1


async def test_reset_closes_all_sessions_and_clears_containers_everywhere(opened: OpenSession) -> None:
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


def test_which_tasks_a_graph_names() -> None:
    """With job and index, in any spelling; a malformed device is the placer's matter."""
    graph_def = graph_pb2.GraphDef()
    for device in ("", "/job:ps", "/job:ps/task:1/cpu:0", "/job:ps/replica:3/task:0", "/job:local/task:0", "/jab:ps"):
        graph_def.node.add(device=device)
    tasks = [f"/job:{job}/replica:0/task:{index}" for job in ("ps", "localhost") for index in range(2)]

    assert tasks_named(graph_def, tasks) == {"/job:ps/replica:0/task:1", "/job:localhost/replica:0/task:0"}
