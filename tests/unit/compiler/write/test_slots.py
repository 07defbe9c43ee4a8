"""Places of values in a step's list: what comes from outside, and what crosses a region's border."""

from __future__ import annotations

from typing import Any

from support.parts import PartBuilder
from tenfold_compiler.build import structured, written
from tenfold_compiler.node_kernels import Target
from tenfold_compiler.part.read_part import read_part
from tenfold_compiler.write.slots import Slots, straight_slots
from tenfold_core import dtypes
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, CONSTANT_OPS, RECV_OPS, SEND_OPS
from tenfold_kernels.resources.state import ResourceManager

TASK = "/job:localhost/replica:0/task:0"
FAR = "/job:worker/replica:0/task:0/device:CPU:0"
F32 = dtypes.float32
NO_KERNEL = RECV_OPS | SEND_OPS | ALIAS_OPS | CONSTANT_OPS | {"NoOp"}


class Read:
    def __init__(self, builder: PartBuilder, blocking: str = "") -> None:
        part = read_part(builder.graph_def, TASK, 100)
        self.at = {node.name: node for node in part.nodes}
        for name in blocking.split():
            self.at[name].blocking = True
        constants = Target(TASK, ResourceManager(), 100).constants(part)
        kernels: Any = {node.index: lambda *inputs: inputs[0] for node in part.nodes if node.op not in NO_KERNEL}
        self.program = written(structured(part, kernels, constants, 100), fuses=False)
        self.slots: Slots = straight_slots(self.program)

    def named(self, edges: Any) -> set[tuple[str, int]]:
        return {(self.program.part.nodes[index].name, port) for index, port in edges}


def parts() -> PartBuilder:
    part = PartBuilder()
    part.feed("x")
    part.recv("r", F32, FAR, 7)
    part.const("c", 2.0)
    part.node("Neg", "early", ["x"], T=F32)
    part.node("Identity", "alias", ["early"], T=F32)
    part.node("Mul", "here", ["early", "c"], T=F32)
    part.node("Add", "late", ["alias", "r"], T=F32)
    part.node("NoOp", "order", ["^late"])
    part.fetch("late")
    return part


def test_what_crosses_a_border_and_what_comes_from_outside_has_a_place() -> None:
    read = Read(parts())
    slots = read.slots
    assert read.named(slots.crossing) == {("early", 0)}
    assert read.named(slots.numbers) == {("early", 0), ("x", 0), ("r", 0)}
    assert sorted(slots.numbers.values()) == [0, 1, 2]
    assert slots.resolve((read.at["alias"].index, 0)) == (read.at["early"].index, 0)
    assert slots.resolve((read.at["here"].index, 0)) == (read.at["here"].index, 0)
    outside = [name for name, node in read.at.items() if slots.comes_from_outside(node)]
    assert sorted(outside) == ["r", "x"]


def test_nodes_for_which_nothing_is_written() -> None:
    read = Read(parts())
    silent = {name for name, node in read.at.items() if read.slots.is_silent(node)}
    assert silent == {"x", "r", "c", "alias", "order"}


def test_a_node_that_may_wait_has_a_place_for_its_kernel_and_its_outputs() -> None:
    part = parts()
    part.node("Split", "two", ["axis", "x"], T=F32, num_split=2)
    part.const("axis", 0)
    part.node("Add", "sum", ["two:1", "early"], T=F32)
    part.fetch("sum")
    read = Read(part, "two")
    slots, two = read.slots, read.at["two"]
    first, outputs = slots.awaited(two)
    assert slots.numbers[two.index, -1] == first
    assert outputs == (slots.numbers[two.index, 0], slots.numbers[two.index, 1])
    assert len({first, *outputs}) == 3
    assert slots.comes_from_outside(two)
    assert two.index in slots.starts
    assert slots.starts[two.index] == read.program.region_of[read.at["x"].index]
    assert ("early", 0) in read.named(slots.crossing), "the region of what waits reads it"
    assert ("two", 1) not in read.named(slots.crossing)
