"""What the passes do to nodes: what is waited for stays waited for, and who may do whose work."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from support.optimized import TASK
from support.parts import PartBuilder
from tenfold_compiler.optimize.edits import Joinable, absorb, hangs_on_branch, operands, read, read_past, retire
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold_compiler.part.part_graph import PartGraph, PartNode

F32, BOOL = dtypes.float32, dtypes.bool_


class Part:
    def __init__(self, builder: PartBuilder) -> None:
        self.graph: PartGraph = read_part(builder.graph_def, TASK, 100)
        self.at: dict[str, PartNode] = {node.name: node for node in self.graph.nodes}

    def controls(self, name: str) -> list[str]:
        return [self.graph.nodes[index].name for index in self.at[name].controls]

    def inputs(self, name: str) -> list[str]:
        return [self.graph.nodes[index].name for index, _ in self.at[name].inputs]


def straight() -> PartBuilder:
    part = PartBuilder()
    for name in "xyz":
        part.feed(name)
    part.node("Add", "a", ["x", "y", "^z"], T=F32)
    part.node("Neg", "b", ["a"], T=F32)
    part.node("Add", "c", ["b", "x"], T=F32)
    return part


def test_a_node_that_is_retired_waits_for_what_it_waited_for() -> None:
    part = Part(straight())
    node = part.at["a"]
    node.memory = (True, True), (True,)
    retire(node, part.at["b"].index, node.index)
    assert part.controls("a") == ["x", "y", "z", "b"]
    assert (node.op, node.inputs, node.deref, node.attrs, node.memory) == ("NoOp", [], [], {}, None)
    assert node.input_types == node.output_types == ()


def test_a_node_that_absorbs_others_waits_for_them() -> None:
    part = Part(straight())
    absorb(part.at["c"], [part.at["a"], part.at["b"]])
    assert part.controls("c") == ["a", "b"]
    assert part.at["a"].op == part.at["b"].op == "NoOp"
    assert part.controls("b") == ["a"]


def test_what_a_node_reads_can_be_given_to_another_one() -> None:
    builder = straight()
    builder.node("VariableV2", "v", dtype=F32, shape=[])
    builder.node("Add", "d", ["v", "x"], T=F32)
    part = Part(builder)
    given = operands(part.at["d"])
    assert given == [((part.at["v"].index, 0), F32, True), ((part.at["x"].index, 0), F32, False)]
    read(part.at["b"], given)
    assert part.inputs("b") == ["v", "x"]
    assert part.at["b"].deref == [True, False]
    assert part.at["b"].input_types == (F32, F32)


def test_readers_are_led_past_chains_and_wait_for_what_they_read() -> None:
    builder = straight()
    builder.node("Identity", "i", ["x"], T=F32)
    builder.node("Identity", "j", ["i"], T=F32)
    builder.node("Add", "d", ["j", "j", "^y"], T=F32)
    builder.node("Add", "e", ["j", "a", "^j"], T=F32)
    part = Part(builder)
    edges = {(part.at[name].index, 0): part.at[name].inputs[0] for name in "ij"}
    read_past(part.graph, edges)
    assert part.inputs("d") == ["x", "x"]
    assert part.controls("d") == ["y", "j"]
    assert part.inputs("e") == ["x", "a"]
    assert part.controls("e") == ["j"]
    assert part.inputs("j") == ["x"]
    assert part.controls("j") == ["i"]
    assert part.controls("b") == []
    assert edges[part.at["j"].index, 0] == (part.at["i"].index, 0), "the caller's edges are as they were"


def test_a_long_chain_is_followed_once_though_its_end_comes_first() -> None:
    class Looked(tuple[int, int]):
        times = 0

        def __hash__(self) -> int:
            Looked.times += 1
            return super().__hash__()

    count = 200
    edges: Any = {Looked((at, 0)): Looked((at + 1, 0)) for at in range(count)}
    nodes = [SimpleNamespace(inputs=[Looked((at, 0))], controls=[]) for at in range(count)]
    read_past(cast("PartGraph", SimpleNamespace(nodes=nodes)), edges)
    assert {node.inputs[0] for node in nodes} == {(count, 0)}
    assert Looked.times < 12 * count


@pytest.mark.parametrize(
    ("op", "inputs", "attrs"), [("Switch", ["x", "p"], {"T": F32}), ("Enter", ["x"], {"T": F32, "frame_name": "f"})]
)
def test_a_node_that_hangs_on_a_branch_or_a_loop(op: str, inputs: list[str], attrs: Any) -> None:
    builder = straight()
    builder.feed("p", BOOL)
    builder.node(op, "s", inputs, **attrs)
    builder.node("Neg", "n", ["s"], T=F32)
    builder.node("Neg", "after", ["x", "^s"], T=F32)
    part = Part(builder)
    assert hangs_on_branch(part.graph, part.at["n"])
    assert not hangs_on_branch(part.graph, part.at["after"])
    assert not hangs_on_branch(part.graph, part.at["a"])
    part.graph.is_dynamic = False
    assert not hangs_on_branch(part.graph, part.at["n"])


def test_who_may_do_whose_work() -> None:
    part = Part(straight())
    total, node, first = part.at["c"], part.at["b"], part.at["a"]

    def may(constants: dict[int, Any] | None = None) -> bool:
        return Joinable(part.graph, constants or {}).into(total, node, first)

    assert may()
    assert not may({node.index: ()})
    for each in (total, node, first):
        each.memory = (True,), (True,)
        assert not may()
        each.memory = None
    device = node.node_def.device
    node.node_def.device = "/job:other"
    assert not may()
    node.node_def.device = device
    part.at["c"].inputs[1] = (first.index, 0)
    assert not may(), "two read it"


def test_what_reads_a_variable_stays_where_it_is() -> None:
    builder = PartBuilder()
    builder.node("VariableV2", "v", dtype=F32, shape=[])
    builder.feed("x")
    builder.node("Identity", "view", ["v"], T=F32)
    builder.node("Neg", "by_view", ["view"], T=F32)
    builder.node("Neg", "by_reference", ["v"], T=F32)
    builder.node("Neg", "of_x", ["x"], T=F32)
    builder.node("AddN", "sum", ["by_view", "by_reference", "of_x"], T=F32, N=3)
    part = Part(builder)
    joinable = Joinable(part.graph, {})
    found = {name: joinable.into(part.at["sum"], part.at[name]) for name in ("by_view", "by_reference", "of_x")}
    assert found == {"by_view": False, "by_reference": False, "of_x": True}
    assert {part.graph.nodes[index].name for index in joinable.volatile} == {"v", "view"}
