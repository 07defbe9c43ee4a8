"""Regions of parts made by a table: which nodes are in them, what they wait for, and where what waits goes on.

That steps over regions run and end is in test_static_executor.py.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from support.parts import PartBuilder
from tenfold_compiler.part import regions
from tenfold_compiler.part.loop_tree import loop_tree
from tenfold_compiler.part.read_part import read_part
from tenfold_compiler.part.regions import Region, cut_regions, rest_of
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_compiler.part.part_graph import PartGraph, PartNode

TASK = "/job:localhost/replica:0/task:0"
OTHER = "/job:ps/replica:0/task:0/device:CPU:0"
F32 = dtypes.float32


def part_of(*lines: str, waiting: Iterable[str] = ()) -> PartGraph:
    """`recv a`, `feed x`, `f: a b ^c`; nodes whose names are in `waiting` may have to wait."""
    part = PartBuilder()
    for line in lines:
        name, _, inputs = line.partition(":")
        kind, _, received = name.partition(" ")
        sources = inputs.split()
        if kind == "recv":
            part.recv(received, F32, OTHER, 5, sources)
        elif kind == "feed":
            part.feed(received)
        else:
            count = sum(not source.startswith("^") for source in sources)
            part.node("AddN" if count else "NoOp", name, sources, **({"N": count, "T": F32} if count else {}))
    found = read_part(part.graph_def, TASK, 10_000)
    for node in found.nodes:
        node.blocking = node.name in waiting
    return found


def names(nodes: Iterable[PartNode]) -> set[str]:
    return {node.name for node in nodes}


class Cut:
    """A part's regions by the name of a node whose outputs belong to them."""

    def __init__(self, part: PartGraph) -> None:
        self.part = part
        self.regions, self.of = cut_regions(part)
        assert [region.index for region in self.regions] == list(range(len(self.regions)))

    def __getitem__(self, name: str) -> Region:
        (node,) = [node for node in self.part.nodes if node.name == name]
        return self.regions[self.of[node.index]]


def test_a_part_without_received_tensors_is_one_region_that_waits_for_nothing() -> None:
    cut = Cut(part_of("feed x", "f: x", "g: f ^x"))
    (only,) = cut.regions
    assert [node.name for node in only.nodes] == ["x", "f", "g"], "what the client feeds is there at the start"
    assert (only.recvs, only.starts, only.awaited, only.asks, only.after) == ([], [], [], [], set())
    assert rest_of(cut.regions) == []


def test_a_region_waits_for_the_regions_that_it_reads_and_not_for_itself() -> None:
    cut = Cut(part_of("n:", "recv a", "recv b", "f: a", "g: b ^n", "h: f g", "i: h"))
    assert names(cut["f"].nodes) == {"f"}
    assert names(cut["f"].recvs) == {"a"}
    assert names(cut["h"].nodes) == {"h", "i"}
    assert cut["h"].after == {cut["f"].index, cut["g"].index}
    assert (cut["f"].after, cut["n"].after) == (set(), set())
    assert cut["g"].after == {cut["n"].index}
    assert len(cut.regions) == 4
    # no Recv waits for a node, and no node has to wait: nothing is asked for or started on the way
    assert not any(region.starts or region.awaited or region.asks for region in cut.regions)
    assert [names(region.nodes) for region in rest_of(cut.regions)][-1] == {"h", "i"}
    assert cut["n"] not in rest_of(cut.regions)
    assert len(rest_of(cut.regions)) == 3


def test_a_control_edge_counts_as_an_input_does() -> None:
    cut = Cut(part_of("recv a", "recv b", "f: a ^b", "g: ^a"))
    assert cut["g"] is cut["a"]
    assert cut["f"].after == {cut["a"].index, cut["b"].index}


def test_a_node_that_may_wait_is_started_in_one_region_and_awaited_in_another() -> None:
    cut = Cut(part_of("recv a", "f: a", "wait: f", "g: wait", "h: f", waiting=["wait"]))
    assert names(cut["f"].nodes) == {"f", "wait", "h"}
    assert names(cut["f"].starts) == {"wait"}
    assert names(cut["f"].awaited) == set()
    awaits = cut["wait"]
    assert awaits is cut["g"] is not cut["f"]
    assert (names(awaits.nodes), names(awaits.awaited), names(awaits.starts)) == ({"g"}, {"wait"}, set())
    assert awaits.after == {cut["f"].index}
    assert cut["f"].after == set()
    assert rest_of(cut.regions) == [], "what is asked for on the way is put in no order"


def test_what_waits_for_two_regions_is_started_in_that_of_both() -> None:
    cut = Cut(part_of("recv a", "recv b", "f: a", "g: b", "wait: f g", waiting=["wait"]))
    (start,) = [region for region in cut.regions if region.starts]
    assert start.after == {cut["f"].index, cut["g"].index}
    assert cut["wait"].after == {start.index}


def test_nodes_that_may_wait_are_each_a_tensor_more() -> None:
    cut = Cut(part_of("one:", "two:", "f: ^one", "g: ^two", "h: ^one ^two", waiting=["one", "two"]))
    (start,) = [region for region in cut.regions if region.starts]
    assert names(start.starts) == {"one", "two"}
    assert len({id(cut[name]) for name in ("one", "two", "h")} | {id(start)}) == 4
    assert cut["h"].after == {cut["one"].index, cut["two"].index}


def test_a_recv_that_waits_for_nodes_is_asked_for_when_their_region_has_run() -> None:
    cut = Cut(part_of("recv a", "recv b", "f: a", "recv v: ^f ^b", "g: v"))
    (asked,) = [region for region in cut.regions if region.asks]
    assert names(asked.asks) == {"v"}
    assert asked.after == {cut["f"].index, cut["b"].index}
    assert asked.nodes == asked.recvs == []
    assert names(cut["v"].recvs) == {"v"}
    assert cut["v"].after == asked.after, "its region waits for what its sources are in, and then for the tensor"
    assert names(cut["g"].nodes) == {"g"}
    assert rest_of(cut.regions) == []


def test_a_recv_that_waits_for_one_region_is_asked_for_there() -> None:
    cut = Cut(part_of("recv a", "f: a", "recv v: ^f", "g: v"))
    assert names(cut["f"].asks) == {"v"}
    assert cut["f"].after == set()
    assert cut["v"].after == {cut["f"].index}


def test_a_region_of_many_nodes_is_cut_into_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "MOST_NODES", 2)
    cut = Cut(part_of("feed x", "f: x", "g: f", "h: g", "i: h x"))
    assert [len(region.nodes) for region in cut.regions] == [2, 2, 1]
    assert [region.after for region in cut.regions] == [set(), {0}, {0, 1}]
    assert [region.index for region in rest_of(cut.regions)] == [1, 2]


def test_regions_come_after_all_that_they_wait_for() -> None:
    row = [Region(0, after={2}), Region(1), Region(2, after={1, 3}), Region(3)]
    assert [region.index for region in rest_of(row)] == [2, 0]
    recv = part_of("recv a").nodes[0]
    row[3].recvs.append(recv)
    assert [region.index for region in rest_of(row)] == [3, 2, 0]
    for which in ("starts", "asks"):
        some = Region(4)
        getattr(some, which).append(recv)
        assert rest_of([*row, some]) == []


@pytest.mark.parametrize("seed", range(12))
def test_random_parts_are_cut_by_the_tensors_that_a_node_needs(seed: int) -> None:
    """Against the definition: for each node the set of what must have come, by walking back over all its edges."""
    draw = random.Random(seed)
    lines: list[str] = []
    waiting = set()
    for number in range(30):
        earlier = [f"n{draw.randrange(number)}" for _ in range(draw.randrange(4))] if number else []
        inputs = [f"^{name}" for name in dict.fromkeys(earlier)]
        kind = draw.choice(["recv ", "", "", ""])
        lines.append(f"{kind}n{number}: " + " ".join(inputs))
        if not kind and draw.random() < 0.2:
            waiting.add(f"n{number}")
    part = part_of(*lines, waiting=waiting)
    cut = Cut(part)

    def needs(node: PartNode, *, itself: bool = True) -> frozenset[int]:
        found: set[int] = {node.index} if itself and (node.blocking or node.op == "_Recv") else set()
        for source in node.controls:
            found |= needs(part.nodes[source])
        return frozenset(found)

    by_needs = {needs(node): cut.of[node.index] for node in part.nodes}
    for node in part.nodes:
        region = cut.regions[cut.of[node.index]]
        assert by_needs[needs(node)] == region.index
        before = {cut.of[source] for source in node.controls}
        if node.blocking:
            (start,) = [each for each in cut.regions if node in each.starts]
            assert node in start.nodes
            assert node in region.awaited
            assert by_needs.get(needs(node, itself=False), start.index) == start.index
            assert start.index in region.after
            assert before - {start.index} <= start.after
        else:
            assert node in (region.recvs if node.op == "_Recv" else region.nodes)
            assert before - {region.index} <= region.after
        asked = [each for each in cut.regions if node in each.asks]
        assert len(asked) == (node.op == "_Recv" and bool(node.controls))
        for each in asked:
            assert before - {each.index} <= each.after
    for region in cut.regions:
        assert region.index not in region.after
    assert sum(len(region.nodes) + len(region.recvs) for region in cut.regions) == len(part.nodes)


def test_a_loop_is_in_the_region_of_all_that_enters_it() -> None:
    part = PartBuilder()
    for name in "cab":
        part.recv(name, F32, OTHER, 5)
    part.node("Neg", "x", ["a"], T=F32)
    part.node("Enter", "enter", ["x", "^b"], T=F32, frame_name="f", is_constant=False)
    part.node("Enter", "bound", ["a"], T=F32, frame_name="f", is_constant=True)
    part.node("Merge", "merge", ["enter", "next"], T=F32, N=2)
    part.node("Less", "less", ["merge", "bound"], T=F32)
    part.node("LoopCond", "cond", ["less"])
    part.node("Switch", "switch", ["merge", "cond"], T=F32)
    part.node("Neg", "body", ["switch:1"], T=F32)
    part.node("NextIteration", "next", ["body"], T=F32)
    part.node("Exit", "exit", ["switch"], T=F32)
    part.node("Add", "after", ["exit", "c"], T=F32)
    found = read_part(part.graph_def, TASK, 10_000)
    cut, of = cut_regions(found, loop_tree(found, {}).members)
    at = {node.name: of[node.index] for node in found.nodes}
    assert at["c"] == 0
    inside = {"enter", "bound", "merge", "less", "cond", "switch", "body", "next", "exit"}
    assert len({at[name] for name in inside}) == 1
    loop = cut[at["exit"]]
    assert names(loop.nodes) == inside
    assert loop.after == {at["a"], at["b"]} == {at["x"], at["b"]}
    assert cut[at["after"]].after == {loop.index, at["c"]}
    assert names(cut[at["after"]].nodes) == {"after"}
