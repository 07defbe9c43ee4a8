"""Parts of a loop over tasks say how its frames are numbered, and keep the version of the graph."""

from __future__ import annotations

from typing import Any

import pytest

from support.fake_cluster import FakeCluster
from support.graph_text import parse_text
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_compiler.graph.place import place
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_compiler.part import frame_numbers
from tenfold_core import errors
from tenfold_protos import config_pb2
from tenfold_services.master.client_graph import (
    MAX_NAMES,
    ClientGraph,
    RunNames,
    RunSignature,
    check_counts,
    cut_graph,
    run_names,
    step_graph,
)

from .sessions import FAST, MASTER, PS

LOOP = """
    start = Const() dtype=float value=0
    enter = Enter(start) frame_name='loop'
    merge = Merge(enter, next)
    limit = Const() dtype=float value=3
    bound = Enter(limit) frame_name='loop' is_constant=true
    less = Less(merge, bound)
    cond = LoopCond(less)
    switch = Switch(merge, cond)
    body = Neg(switch:1) @/job:ps/task:0
    next = NextIteration(body)
    exit = Exit(switch)
"""


def loop() -> Any:
    """The Merge's back edge is put in at the end: text is read from top to bottom."""
    graph = parse_text(LOOP.replace("Merge(enter, next)", "Merge(enter, enter)"))
    merge = next(node for node in graph.node if node.name == "merge")
    merge.input[1] = "next"
    return graph


async def parts(producer: int, is_old: bool) -> dict[str, Any]:
    cluster = FakeCluster(MASTER, PS)
    for worker in cluster.by_task.values():
        for device in worker.devices:
            device.xla_global_id = 0 if is_old else -1
    graph = loop()
    graph.versions.producer = producer
    master = cluster.master(FAST)
    try:
        handle, _ = await master.create_session(graph, config_pb2.ConfigProto())
        await master.run_step(handle, {}, ["exit:0"], [], config_pb2.RunOptions())
    finally:
        await master.stop()
    return {task: graph for worker in cluster.by_task.values() for task, graph in worker.graphs.items()}


@pytest.mark.parametrize("is_old", [False, True])
@pytest.mark.parametrize("producer", [0, 6, 21, 134, 2474])
async def test_every_part_says_how_frames_are_numbered(producer: int, is_old: bool) -> None:
    found = await parts(producer, is_old)

    assert len(found) == 2
    for graph in found.values():
        assert frame_numbers.has_old_numbers(graph) is is_old
        if producer < 30:
            assert graph.versions.producer == producer


@pytest.mark.parametrize(("producer", "is_old"), [(0, False), (6, True), (134, True), (430, False), (2474, False)])
def test_a_part_of_another_master_says_it_by_its_version(producer: int, is_old: bool) -> None:
    graph = loop()
    graph.versions.producer = producer

    assert frame_numbers.has_old_numbers(graph) is is_old


# -- names of a run ----------------------------------------------------------------------------------------------------


def test_names_make_the_same_signature_in_any_order_and_spelling() -> None:
    found = run_names(("y", "x:0"), ("b:1", "a", "b:1"), ("t", "s", "t"))
    assert found == RunNames(
        RunSignature(("x:0", "y:0"), ("a:0", "b:1"), ("s", "t")), ("y:0", "x:0"), ("b:1", "a:0", "b:1")
    )
    assert found.signature.connections == ()
    assert not found.signature.is_partial
    assert run_names(("x", "x"), (), ()).signature.feeds == ("x:0", "x:0"), "prune refuses that"


@pytest.mark.parametrize(("feeds", "fetches", "targets"), [(MAX_NAMES, 1, 0), (1, MAX_NAMES - 1, 1), (0, 1, MAX_NAMES)])
def test_so_many_names_have_room_in_a_run(feeds: int, fetches: int, targets: int) -> None:
    check_counts(feeds, fetches - 1, targets)
    with pytest.raises(errors.ResourceExhaustedError) as caught:
        check_counts(feeds, fetches, targets)
    assert caught.value.message == (
        f"A step with {feeds} feeds, {fetches} fetches and {targets} targets: a run has 16384 of them at most."
    )


# -- cutting -----------------------------------------------------------------------------------------------------------


def cut_of(graph_def: Any, fetch: str, placed: Any = None) -> tuple[ClientGraph, dict[str, Any]]:
    cluster = FakeCluster(MASTER, PS)
    devices = DeviceSet(
        [device for worker in cluster.by_task.values() for device in worker.devices], cluster[MASTER].devices[0].name
    )
    graph = place(RuntimeGraph.from_graph_def(graph_def), devices, devices_with_kernel=lambda op, attrs: ("CPU",))
    signature = run_names((), (fetch,), ()).signature
    found, graph_defs = cut_graph(step_graph(graph, signature, devices, placed), signature, devices, 7)
    assert [len(each.node) for each in found.partition_graphs(devices)] == [
        len(each.node) for each in graph_defs.values()
    ]
    return found, graph_defs


def test_a_graph_is_pruned_placed_and_cut() -> None:
    placed: list[Any] = []
    text = "a = Const() dtype=float value=1.0 @/job:ps/task:0\nb = Neg(a) @/job:ps/task:0\nc = Neg(b)\nd = Neg(c)"

    found, graph_defs = cut_of(parse_text(text), "c", lambda graph: placed.append(list(graph.nodes)) or graph)

    assert found.tasks == ["/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"]
    assert set(graph_defs) == set(found.tasks)
    assert (found.first_id, found.next_id > 7) == (7, True)
    assert (found.users, found.last_used, found.runs) == (0, 0, 0)
    assert (found.pushes, found.local, found.was_offered) == (None, None, False)
    assert [[name in names for name in "abcd"] for names in placed] == [[True, True, True, False]]
    ps, own = found.parts
    (key,) = ps.sends
    assert ps.sends == {key: own.task}
    assert "edge_0_b" in key
    assert list(own.fetch_keys) == ["c:0"]
    assert own.fetch_keys["c:0"] not in own.sends
    assert (ps.handle, own.handle) == ("", "")


def test_a_tensor_that_crosses_in_each_turn_is_no_send_of_the_step() -> None:
    found, _ = cut_of(loop(), "exit")
    sends = {part.task: (len(part.sends), len(part.loop_sends)) for part in found.parts}
    assert all(loop > 0 for _, loop in sends.values())


async def test_nodes_that_wait_for_the_same_updates_are_registered_with_few_edges() -> None:
    """As under `control_dependencies(updates)`: 20 updates and 30 nodes were 600 edges."""
    updates = [f"u{number}" for number in range(20)]
    waits = ", ".join(f"^{name}" for name in updates)
    lines = [f"{name} = NoOp()" for name in updates]
    lines += [f"c{number} = Const({waits}) dtype=float value={number}" for number in range(30)]
    lines += [f"all = AddN({', '.join(f'c{number}' for number in range(30))}) N=30"]
    cluster = FakeCluster(MASTER)
    master = cluster.master(FAST)
    try:
        handle, _ = await master.create_session(parse_text("\n".join(lines)), config_pb2.ConfigProto())
        await master.run_step(handle, {}, ["all:0"], [], config_pb2.RunOptions())
    finally:
        await master.stop()

    (graph,) = (graph for worker in cluster.by_task.values() for graph in worker.graphs.values())
    assert sum(text.startswith("^") for node in graph.node for text in node.input) == 20 + 30
