"""Which nodes could be fused, and the loop that each fits in, by shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.parts import PartBuilder
from tenfold_compiler.fuse.nodes import (
    fusible_nodes,
    is_alias,
    loop_shape,
    nodes_of_shapes,
    reduction_of,
    role_of,
    sums_to_shape,
    worth_fusing,
)
from tenfold_compiler.node_kernels import Target
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes
from tenfold_kernels.resources.state import ResourceManager

TASK = "/job:localhost/replica:0/task:0"
F32, I32 = dtypes.float32, dtypes.int32


class Part:
    def __init__(self, builder: PartBuilder) -> None:
        self.graph = read_part(builder.graph_def, TASK, 1000)
        self.constants = Target(TASK, ResourceManager(), 1000).constants(self.graph)
        self.at = {node.name: node for node in self.graph.nodes}

    def fusible(self) -> set[str]:
        return {node.name for node in fusible_nodes(self.graph, self.constants)}

    def shape(self, name: str, given: tuple[Any, ...], out: tuple[int, ...]) -> tuple[int, ...] | None:
        return loop_shape(self.at[name], (given, out), self.constants)


def small(dtype: Any = F32) -> PartBuilder:
    part = PartBuilder()
    for name in "xyz":
        part.feed(name, dtype)
    part.feed("p", dtypes.bool_)
    part.const("zero", 0)
    part.const("axes", [0, 1])
    part.const("two", 2.0)
    part.const("half", 0.5)
    part.const("twos", [2.0])
    return part


@pytest.mark.parametrize(
    ("shape", "loop", "role"),
    [
        ((2, 3), (2, 3), "full"),
        ((), (2, 3), "scalar"),
        ((3,), (2, 3), "row"),
        ((2, 1), (2, 3), "column"),
        ((1, 3), (2, 3), None),
        ((2,), (2, 3), None),
        ((4,), (4,), "full"),
        ((1,), (4,), None),
        ((4, 2, 1), (4, 2, 3), "column"),
        ((), (), "full"),
    ],
)
def test_what_an_array_is_to_a_loop(shape: tuple[int, ...], loop: tuple[int, ...], role: str | None) -> None:
    assert role_of(shape, loop) == role


@pytest.mark.parametrize(
    ("op", "axes", "given", "found"),
    [
        ("Sum", [0, 1], (2, 3), "all"),
        ("Sum", [-1, 0], (2, 3), "all"),
        ("Sum", [0], (2, 3), "rows"),
        ("Sum", [-2], (2, 3), "rows"),
        ("Sum", [1], (2, 3), None),
        ("Sum", [0], (2, 3, 4), None),
        ("Sum", [0], (3,), "all"),
        ("Sum", [], (2, 3), None),
        ("Sum", [2, 0], (2, 3), "rows"),
        ("Sum", [0, 1], (0, 3), None),
        ("Sum", [0], (), None),
        ("Mean", [0], (2, 3), None),
        ("Mean", [0, 1], (2, 3), "all"),
        ("L2Loss", None, (2, 3), "all"),
        ("L2Loss", None, (), None),
        ("BiasAddGrad", None, (2, 3), "rows"),
        ("BiasAddGrad", None, (3,), None),
    ],
)
def test_how_a_loop_ends_in_a_reduction(op: str, axes: Any, given: tuple[int, ...], found: str | None) -> None:
    builder = small()
    if axes is None:
        builder.node(op, "n", ["x"], T=F32)
    else:
        builder.const("some", np.array(axes, np.int32))
        builder.node(op, "n", ["x", "some"], T=F32, Tidx=I32)
    part = Part(builder)
    assert reduction_of(part.at["n"], given, part.constants) == found
    assert part.shape("n", (given, ()), ()) == (given if found else None)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "fusible"),
    [
        ("Neg", ["x"], {"T": F32}, True),
        ("MatMul", ["x", "y"], {"T": F32}, False),
        ("Sum", ["x", "axes"], {"T": F32, "Tidx": I32}, True),
        ("Sum", ["x", "i"], {"T": F32, "Tidx": I32}, False),
        ("Sum", ["x", "axes"], {"T": F32, "Tidx": I32, "keep_dims": True}, False),
        ("BiasAdd", ["x", "y"], {"T": F32}, True),
        ("BiasAdd", ["x", "y"], {"T": F32, "data_format": b"NCHW"}, False),
        ("BiasAddGrad", ["x"], {"T": F32, "data_format": b"NCHW"}, False),
        ("L2Loss", ["x"], {"T": F32}, True),
        ("AddN", ["x", "y"], {"T": F32, "N": 2}, True),
        ("AddN", ["x"], {"T": F32, "N": 1}, False),
        ("Neg", ["v"], {"T": F32}, False),
        ("Const", [], {}, False),
        ("RandomUniform", ["axes"], {"dtype": F32, "T": I32}, False),
        ("Identity", ["x"], {"T": F32}, False),
    ],
)
def test_what_could_be_fused(op: str, inputs: list[str], attrs: dict[str, Any], fusible: bool) -> None:
    builder = small()
    builder.feed("i", I32)
    builder.node("VariableV2", "v", dtype=F32, shape=[2])
    if op == "Const":
        builder.const("n", 1.0)
    else:
        builder.node(op, "n", inputs, **attrs)
    assert ("n" in Part(builder).fusible()) is fusible


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.float64, dtypes.float16])
def test_of_which_types_sums_are_fused(dtype: Any) -> None:
    builder = small(dtype)
    builder.node("Sum", "n", ["x", "axes"], T=dtype, Tidx=I32)
    assert ("n" in Part(builder).fusible()) is (dtype is dtypes.float64)


@pytest.mark.parametrize(
    ("op", "memory", "fusible"),
    [
        ("Neg", ((True,), (True,)), True),
        ("Neg", ((False,), (True,)), False),
        ("Neg", ((True,), (False,)), False),
        ("Sum", ((True, False), (True,)), True),
        ("Sum", ((False, True), (True,)), False),
        ("Sum", ((True, False), (False,)), False),
        ("Sum of i", ((True, False), (True,)), False),
        ("AddN", ((True,), (True,)), False),
    ],
)
def test_on_a_gpu_all_is_there_but_for_the_axes_of_a_sum(op: str, memory: Any, fusible: bool) -> None:
    builder = small()
    builder.feed("i", I32)
    if op == "Neg":
        builder.node("Neg", "n", ["x"], T=F32)
    elif op == "AddN":
        builder.node("AddN", "n", ["x"], T=F32, N=1)
    else:
        builder.node("Sum", "n", ["x", "i" if op == "Sum of i" else "axes"], T=F32, Tidx=I32)
    part = Part(builder)
    part.at["n"].memory = memory
    assert ("n" in part.fusible()) is fusible


TWO = (2, 3)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "given", "out", "shape"),
    [
        ("Add", "xy", {}, (TWO, TWO), TWO, TWO),
        ("Add", "xy", {}, (TWO, (3,)), TWO, TWO),
        ("Add", "xy", {}, (TWO, (2,)), TWO, None),
        ("Add", "xy", {}, ((2, 1), (3,)), TWO, None),
        ("Add", "xy", {}, ((), ()), (), ()),
        ("Add", "xy", {}, ((1,), ()), (), None),
        ("BiasAdd", "xy", {}, (TWO, (3,)), TWO, TWO),
        ("BiasAdd", "xy", {}, ((2, 4, 3), (3,)), (2, 4, 3), (2, 4, 3)),
        ("BiasAdd", "xy", {}, (TWO, TWO), TWO, None),
        ("BiasAdd", "xy", {}, ((3,), (3,)), (3,), None),
        ("Select", "pxy", {}, (TWO, TWO, TWO), TWO, TWO),
        ("Select", "pxy", {}, ((), TWO, TWO), TWO, TWO),
        ("Select", "pxy", {}, ((2,), TWO, TWO), TWO, None),
        ("Select", "pxy", {}, (TWO, TWO, (3,)), TWO, None),
        ("Select", "pxy", {}, (TWO, (3,), TWO), TWO, None),
        ("ReluGrad", "xy", {}, (TWO, TWO), TWO, TWO),
        ("ReluGrad", "xy", {}, (TWO, (3,)), TWO, None),
        ("Sin", "x", {}, ((32,),), (32,), (32,)),
        ("Sin", "x", {}, ((33,),), (33,), None),
    ],
)
def test_the_loop_that_a_node_fits_in(
    op: str, inputs: str, attrs: dict[str, Any], given: Any, out: tuple[int, ...], shape: tuple[int, ...] | None
) -> None:
    builder = small(dtypes.float64)
    builder.node(op, "n", list(inputs), T=dtypes.float64, **attrs)
    assert Part(builder).shape("n", given, out) == shape


def test_a_node_that_was_not_seen_fits_in_no_loop() -> None:
    builder = small()
    builder.node("Neg", "n", ["x"], T=F32)
    part = Part(builder)
    assert loop_shape(part.at["n"], None, part.constants) is None


@pytest.mark.parametrize(("exponent", "fits"), [("two", True), ("half", False), ("twos", False), ("y", False)])
def test_powers_that_are_multiplications_fit_in_any_loop(exponent: str, fits: bool) -> None:
    builder = small()
    builder.node("Pow", "n", ["x", exponent], T=F32)
    part = Part(builder)
    given = ((100,), (1,) if exponent == "twos" else ())
    assert part.shape("n", given, (100,)) == ((100,) if fits else None)


@pytest.mark.parametrize(
    ("given", "out", "shape"),
    [
        ((TWO, (2,), (2,)), TWO, TWO),
        ((TWO, (1,), (2,)), TWO, None),
        (((3,), (2,), (2,)), TWO, None),
        (((), (0,), (2,)), (), None),
    ],
)
def test_a_gradient_that_has_the_operand_s_shape(given: Any, out: Any, shape: Any) -> None:
    builder = small()
    builder.node("Shape", "s", ["x"], T=F32, out_type=I32)
    builder.node("Reshape", "n", ["x", "s"], T=F32, Tshape=I32)
    part = Part(builder)
    node = part.at["n"]
    assert not sums_to_shape(node)
    node.inputs.append(node.inputs[1])
    node.input_types, node.deref = (*node.input_types, I32), [False] * 3
    assert sums_to_shape(node)
    assert part.shape("n", given, out) == shape
    assert "n" in part.fusible()


def test_what_depends_on_shapes_alone() -> None:
    builder = small()
    builder.node("Shape", "s", ["x"], T=F32, out_type=I32)
    builder.node("Identity", "alias", ["s"], T=I32)
    builder.node("Neg", "n", ["alias"], T=I32)
    builder.node("Mul", "with_constant", ["n", "axes"], T=I32)
    builder.feed("i", I32)
    builder.node("Mul", "with_value", ["n", "i"], T=I32)
    builder.node("Identity", "of_value", ["i"], T=I32)
    builder.node("Neg", "of_alias", ["of_value"], T=I32)
    builder.node("VariableV2", "v", dtype=F32, shape=[2])
    builder.node("Shape", "of_reference", ["v"], T=F32, out_type=I32)
    part = Part(builder)
    found = {part.graph.nodes[index].name for index in nodes_of_shapes(part.graph, part.constants)}
    assert found == {"s", "n", "with_constant"}
    part.at["n"].memory = (True,), (True,)
    found = {part.graph.nodes[index].name for index in nodes_of_shapes(part.graph, part.constants)}
    assert found == {"s"}
    part.at["s"].memory = (True,), (False,)
    assert nodes_of_shapes(part.graph, part.constants) == {part.at["s"].index}


def test_aliases() -> None:
    builder = small()
    builder.node("VariableV2", "v", dtype=F32, shape=[2])
    builder.node("Identity", "alias", ["x"], T=F32)
    builder.node("Identity", "read", ["v"], T=F32)
    part = Part(builder)
    assert [name for name, node in part.at.items() if is_alias(node, part.constants)] == ["alias"]
    assert not is_alias(part.at["alias"], {part.at["alias"].index: ()})


@pytest.mark.parametrize(("chained", "count", "worth"), [(True, 2, True), (False, 2, False), (False, 3, True)])
def test_when_fusing_is_worth_it(chained: bool, count: int, worth: bool) -> None:
    builder = small()
    source = "x"
    for number in range(count):
        builder.node("Neg", f"n{number}", [source if chained else "x"], T=F32)
        source = f"n{number}"
    part = Part(builder)
    assert worth_fusing(fusible_nodes(part.graph, part.constants)) is worth
