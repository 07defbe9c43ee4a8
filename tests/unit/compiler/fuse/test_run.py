"""A group's nodes as a run: operands numbered, constants written in, sums added up as their operands come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.parts import PartBuilder
from tenfold_compiler.fuse.levels import Levels
from tenfold_compiler.fuse.nodes import fusible_nodes
from tenfold_compiler.fuse.run import RunWriter
from tenfold_compiler.node_kernels import Target
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes
from tenfold_kernels.fusion.runs import FusedInput, FusedOp, FusedRun
from tenfold_kernels.resources.state import ResourceManager

TASK = "/job:localhost/replica:0/task:0"
F32, I32 = dtypes.float32, dtypes.int32
SINGLE = np.dtype(np.float32)


class Written:
    """The run of the nodes `names`, whose values have `shape` but for those in `shapes`."""

    def __init__(self, builder: PartBuilder, names: str, outputs: str, shape: Any, **shapes: Any) -> None:
        part = read_part(builder.graph_def, TASK, 1000)
        constants = Target(TASK, ResourceManager(), 1000).constants(part)
        at = {node.name: node for node in part.nodes}

        def of(index: int) -> Any:
            return constants[index][0].shape if index in constants else shapes.get(part.nodes[index].name, shape)

        fusible = fusible_nodes(part, constants)
        known = {node.index: (tuple(of(s) for s, _ in node.inputs), of(node.index)) for node in fusible}
        program: Any = SimpleNamespace(part=part, region_of=[0] * len(part.nodes), constants=constants, flow=None)
        levels = Levels(program, fusible, known)
        writer = RunWriter([at[name] for name in names.split()], shape, levels)
        self.run: FusedRun = writer.run([at[name].index for name in outputs.split()])
        self.inputs = [(part.nodes[source].name, as_shape) for (source, _), as_shape in writer.inputs]


def fed(*names: str) -> PartBuilder:
    part = PartBuilder()
    for name in names:
        part.feed(name)
    return part


def op(name: str, *sources: Any, attrs: Any = (), reduce: Any = "") -> FusedOp:
    return FusedOp(name, attrs, sources, SINGLE, reduce)


def test_operands_are_numbered_once() -> None:
    part = fed("x", "y")
    part.node("Mul", "a", ["x", "y"], T=F32)
    part.node("Add", "b", ["a", "x"], T=F32)
    part.node("Sub", "c", ["b", "a"], T=F32)
    written = Written(part, "a b c", "a c", (2, 3), y=(3,))
    assert written.inputs == [("x", False), ("y", False)]
    assert written.run == FusedRun(
        2,
        (FusedInput(SINGLE, "full"), FusedInput(SINGLE, "row")),
        (
            op("Mul", ("input", 0), ("input", 1)),
            op("Add", ("op", 0), ("input", 0)),
            op("Sub", ("op", 1), ("op", 0)),
        ),
        (),
        (0, 2),
    )


def test_scalar_constants_are_written_in_and_arrays_are_not() -> None:
    part = fed("x")
    for name, value in (("two", 2.0), ("also", 2.0), ("three", 3.0), ("many", [1.0, 2.0])):
        part.const(name, value)
    part.node("Mul", "a", ["x", "two"], T=F32)
    part.node("Mul", "b", ["a", "three"], T=F32)
    part.node("Mul", "c", ["b", "also"], T=F32)
    part.node("Mul", "d", ["c", "many"], T=F32)
    written = Written(part, "a b c d", "d", (2,))
    assert written.run.constants == ((2.0, SINGLE), (3.0, SINGLE))
    assert [each.sources[1] for each in written.run.ops] == [
        ("constant", 0),
        ("constant", 1),
        ("constant", 0),
        ("input", 1),
    ]
    assert written.inputs == [("x", False), ("many", False)]


def test_sums_are_added_up_as_their_operands_come() -> None:
    part = fed("x", "y")
    part.node("Neg", "a", ["x"], T=F32)
    part.node("Square", "b", ["a"], T=F32)
    part.node("AddN", "sum", ["y", "b", "a", "x"], T=F32, N=4)
    part.node("Neg", "c", ["sum"], T=F32)
    run = Written(part, "a b sum c", "sum c", (4,)).run
    assert run.ops == (
        op("Neg", ("input", 1)),
        op("Square", ("op", 0)),
        op("Add", ("input", 0), ("op", 1)),
        op("Add", ("op", 2), ("op", 0)),
        op("Add", ("op", 3), ("input", 1)),
        op("Neg", ("op", 4)),
    )
    assert run.outputs == (4, 5)


def test_a_sum_of_what_is_there_comes_first() -> None:
    part = fed("x", "y")
    part.node("Neg", "a", ["x"], T=F32)
    part.node("AddN", "sum", ["x", "y", "x"], T=F32, N=3)
    adds = (op("Add", ("input", 0), ("input", 1)), op("Add", ("op", 0), ("input", 0)))
    assert Written(part, "sum", "sum", (4,)).run.ops == adds
    assert Written(part, "a sum", "a sum", (4,)).run.ops == (*adds, op("Neg", ("input", 0)))


def test_scalars_have_no_loop() -> None:
    part = fed("x")
    part.node("Neg", "a", ["x"], T=F32)
    run = Written(part, "a", "a", ()).run
    assert run == FusedRun(0, (FusedInput(SINGLE, "scalar"),), (op("Neg", ("input", 0)),), (), (0,))


def test_attributes_that_the_row_uses_go_along() -> None:
    part = fed("x")
    part.node("LeakyRelu", "a", ["x"], T=F32, alpha=0.25)
    (made,) = Written(part, "a", "a", (2,)).run.ops
    assert made.attrs == (("alpha", 0.25),)


@pytest.mark.parametrize(("axes", "reduce"), [([0], "rows"), ([0, 1], "all")])
def test_a_reduction_reads_its_first_input_alone(axes: list[int], reduce: str) -> None:
    part = fed("x")
    part.const("axes", axes)
    part.node("Neg", "a", ["x"], T=F32)
    part.node("Sum", "total", ["a", "axes"], T=F32, Tidx=I32)
    written = Written(part, "a total", "total", (2, 3), total=(3,) if reduce == "rows" else ())
    assert written.inputs == [("x", False)]
    assert written.run.ops[1] == op("Sum", ("op", 0), reduce=reduce)


def test_a_gradient_of_an_operand_s_shape_looks_at_the_shape() -> None:
    part = fed("g", "x", "y")
    for name in "xy":
        part.node("Shape", f"of_{name}", [name], T=F32, out_type=I32)
    part.node("Neg", "a", ["g"], T=F32)
    part.node("Reshape", "back", ["a", "of_x"], T=F32, Tshape=I32)
    written = Reshaped(part)
    assert written.inputs == [("g", False), ("of_x", True), ("of_y", True)]
    assert written.run.ops[1] == op("Cast", ("op", 0))
    kinds = [(each.dtype, each.role) for each in written.run.inputs]
    assert kinds == [(SINGLE, "full"), (np.dtype(np.int32), "shape"), (np.dtype(np.int32), "aside")]


class Reshaped:
    """The run of `a` and of `back` with the other operand's shape as its third input."""

    def __init__(self, builder: PartBuilder) -> None:
        part = read_part(builder.graph_def, TASK, 1000)
        at = {node.name: node for node in part.nodes}
        back = at["back"]
        back.inputs.append((at["of_y"].index, 0))
        back.input_types, back.deref = (*back.input_types, I32), [False] * 3
        shapes: Any = {at["a"].index: (((2, 3),), (2, 3)), back.index: (((2, 3), (2,), (2,)), (2, 3))}
        program: Any = SimpleNamespace(part=part, region_of=[0] * len(part.nodes), constants={}, flow=None)
        levels = Levels(program, [at["a"], back], shapes)
        writer = RunWriter([at["a"], back], (2, 3), levels)
        self.run = writer.run([back.index])
        self.inputs = [(part.nodes[source].name, as_shape) for (source, _), as_shape in writer.inputs]
