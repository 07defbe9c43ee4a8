"""Parts of a loop over tasks say how its frames are numbered, and keep the version of the graph."""

from __future__ import annotations

from typing import Any

import pytest

from support.fake_cluster import FakeCluster
from support.graph_text import parse_text
from tenfold_compiler.part import frame_numbers
from tenfold_protos import config_pb2

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
