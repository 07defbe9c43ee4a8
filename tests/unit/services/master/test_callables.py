"""Callables of the master against scripted workers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from support.fake_cluster import FakeCluster, Gate
from support.moments import started
from tenfold_core import errors
from tenfold_protos import config_pb2
from tenfold_services.master.callables import Callables
from tenfold_services.master.client_graph import MAX_NAMES, ClientGraph
from tenfold_services.master.limits import MasterLimits

from .sessions import MASTER, PS, OpenSession, session


async def test_a_callable_runs_by_position(opened: OpenSession) -> None:
    options = config_pb2.CallableOptions(feed=["x:0"], fetch=["z:0", "y:0"])

    handle = await opened.master.make_callable(opened.handle, options)
    values, _ = await opened.master.run_callable(opened.handle, handle, [np.float32(5)])

    assert len(values) == 2
    assert list(opened.cluster[MASTER].called("run_graph")[0][2].values()) == [np.float32(5)]


async def test_a_released_callable_cannot_run(opened: OpenSession) -> None:
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


async def test_requests_that_come_twice_are_done_once(opened: OpenSession) -> None:
    options = config_pb2.CallableOptions(feed=["x:0"], fetch=["z:0"])
    handle = await opened.master.make_callable(opened.handle, options, request_id=7)
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)

    first = await started(opened.master.run_callable(opened.handle, handle, [np.float32(5)], request_id=8))
    await gate.entered.wait()
    again = await started(opened.master.run_callable(opened.handle, handle, [np.float32(5)], request_id=8))
    gate.release()

    assert await again is await first
    assert len(opened.cluster[MASTER].called("run_graph")) == 1
    assert await opened.master.make_callable(opened.handle, options, request_id=7) == handle
    assert await opened.master.make_callable(opened.handle, options) == handle + 1


async def test_a_callable_wants_all_its_feeds(opened: OpenSession) -> None:
    handle = await opened.master.make_callable(opened.handle, config_pb2.CallableOptions(feed=["x"], fetch=["z"]))

    with pytest.raises(errors.InvalidArgumentError, match="Expected 1 feed tensors, but got 0: x"):
        await opened.master.run_callable(opened.handle, handle, [])


async def test_a_callable_connects_one_tensor_to_another(opened: OpenSession) -> None:
    options = config_pb2.CallableOptions(fetch=["z:0"])
    options.tensor_connection.add(from_tensor="read", to_tensor="x:0")

    handle = await opened.master.make_callable(opened.handle, options)
    values, _ = await opened.master.run_callable(opened.handle, handle, [])

    assert len(values) == 1
    (mine,), (theirs,) = opened.cluster[MASTER].graphs.values(), opened.cluster[PS].graphs.values()
    assert [node.name for node in mine.node if node.op in ("Identity", "Neg")] == ["_identity_x_0", "z"]
    assert [node.name for node in theirs.node if node.op in ("VariableV2", "Identity")] == ["w", "read"]


async def test_what_callables_cannot_do_is_said(opened: OpenSession) -> None:
    options = config_pb2.CallableOptions(target=["init"], feed_devices={"q:0": "/cpu:0"})

    with pytest.raises(
        errors.InvalidArgumentError, match="Tensor q:0, specified in either feed_devices or fetch_devices"
    ):
        await opened.master.make_callable(opened.handle, options)


async def test_a_callable_that_is_being_made_ends_with_its_session() -> None:
    cluster, registering = FakeCluster(MASTER), Gate()
    master = cluster.master()
    handle = await session(cluster, master, "x = Placeholder() dtype=float")
    cluster[MASTER].reply("register_graph", registering)
    making = await started(master.make_callable(handle, config_pb2.CallableOptions(target=["x"])))
    await registering.entered.wait()

    await master.close_session(handle)

    with pytest.raises(errors.FailedPreconditionError, match="Session is closed"):
        await making


async def test_callables_that_are_made_at_a_time_keep_to_the_limit() -> None:
    cluster, registering, deregistered = FakeCluster(MASTER), Gate(), Gate()
    master = cluster.master(MasterLimits(callables=1))
    handle = await session(cluster, master, "x = Placeholder() dtype=float")
    cluster[MASTER].reply("register_graph", registering)
    cluster[MASTER].reply("deregister_graph", deregistered)
    options = config_pb2.CallableOptions(target=["x"])
    first = await started(master.make_callable(handle, options))
    await registering.entered.wait()

    await master.make_callable(handle, options)
    registering.release()

    with pytest.raises(errors.ResourceExhaustedError, match=r"has 1 callables, .*TENFOLD_MASTER_CALLABLES"):
        await first
    await deregistered.entered.wait()
    deregistered.release()
    await master.stop()


# -- the table by itself -----------------------------------------------------------------------------------------------


def with_options(**more: Any) -> config_pb2.CallableOptions:
    return config_pb2.CallableOptions(feed=["x"], fetch=["y", "z"], target=["init"], **more)


def a_graph() -> ClientGraph:
    return cast("ClientGraph", object())


def test_handles_count_from_one_and_are_never_used_twice() -> None:
    table, graph = Callables("s", MasterLimits()), a_graph()
    assert [table.add(graph, with_options()) for _ in range(2)] == [1, 2]
    found = table.remove(2)
    assert found is not None
    assert found.graph is graph
    assert table.remove(2) is None
    assert table.add(graph, with_options()) == 3
    assert table.find(3, 1).graph is graph
    assert table.find(3, 1).names.fetches == ("y:0", "z:0")
    assert table.find(3, 1).options == with_options()
    for handle, text in (
        (2, "Attempted to run callable after handle was released: 2"),
        (0, "No such callable handle: 0"),
        (4, "No such callable handle: 4"),
        (-1, "No such callable handle: -1"),
    ):
        with pytest.raises(errors.InvalidArgumentError) as caught:
            table.find(handle, 1)
        assert caught.value.message == text
    with pytest.raises(errors.InvalidArgumentError) as caught:
        table.find(1, 2)
    assert caught.value.message == "Expected 1 feed tensors, but got 2: x."
    table.clear()
    with pytest.raises(errors.InvalidArgumentError, match="released: 1"):
        table.find(1, 1)


def test_at_the_limit_neither_a_graph_is_built_nor_a_handle_given() -> None:
    table = Callables("s", MasterLimits(callables=1))
    table.signature(with_options())
    table.add(a_graph(), with_options())
    for refused in (lambda: table.signature(with_options()), lambda: table.add(a_graph(), with_options())):
        with pytest.raises(errors.ResourceExhaustedError) as caught:
            refused()
        assert caught.value.message == (
            "Session s has 1 callables, and releases none; 1 is the limit, and TENFOLD_MASTER_CALLABLES in the "
            "environment of the task sets another."
        )
    table.remove(1)
    assert table.add(a_graph(), with_options()) == 2


def test_devices_are_of_feeds_and_fetches_only() -> None:
    table = Callables("s", MasterLimits())
    devices = {"x": "/cpu:0"}, {"z": "/cpu:0", "y": "/cpu:0"}
    assert table.signature(with_options(feed_devices=devices[0], fetch_devices=devices[1])).targets == ("init",)
    for wrong in (with_options(feed_devices={"q": "/cpu:0"}), with_options(fetch_devices={"q": "/cpu:0"})):
        with pytest.raises(errors.InvalidArgumentError) as caught:
            table.signature(wrong)
        assert caught.value.message == (
            "Tensor q, specified in either feed_devices or fetch_devices was not found in the feeds and fetches."
        )


def test_a_connection_counts_as_two_names() -> None:
    table, made = Callables("s", MasterLimits()), with_options()
    made.feed.extend(["f"] * (MAX_NAMES - 6))
    assert table.signature(made).connections == ()
    made.tensor_connection.add(from_tensor="a", to_tensor="b")
    assert table.signature(made).connections == (("a", "b"),)
    made.feed.append("f")
    with pytest.raises(
        errors.ResourceExhaustedError, match=f"A step with {MAX_NAMES - 2} feeds, 2 fetches and 1 targets"
    ):
        table.signature(made)
