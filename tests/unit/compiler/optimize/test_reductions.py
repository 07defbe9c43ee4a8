"""Gradients of broadcasts and sums of products of rows as one node: what they give, and which stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.optimized import TASK, Optimized, run
from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_core import dtypes, errors
from tenfold_kernels.resources.state import ResourceManager

F32, I32 = dtypes.float32, dtypes.int32


def broadcast_gradient(part: PartBuilder, place: int = 0, **sum_attrs: Any) -> list[str]:
    """The gradient of x + y for x, or of y + x, as a client writes it that does not know the shapes. The keys of x, y
    and g."""
    keys = [part.feed(name) for name in "xyg"]
    for name in "xy":
        part.node("Shape", f"shape_{name}", [name], T=F32, out_type=I32)
    part.node("BroadcastGradientArgs", "axes", ["shape_x", "shape_y"][:: -1 if place else 1], T=I32)
    part.node("Sum", "sum", ["g", f"axes:{place}"], T=F32, Tidx=I32, **{"keep_dims": False, **sum_attrs})
    part.node("Reshape", "of_x", ["sum", "shape_x"], T=F32, Tshape=I32)
    return keys


@pytest.mark.parametrize(("x_shape", "place"), [((2, 3), 0), ((3,), 0), ((2, 1), 1), ((), 0), ((1, 1, 3), 1)])
def test_the_gradient_of_a_broadcast_is_one_node(x_shape: tuple[int, ...], place: int) -> None:
    part = PartBuilder()
    keys = broadcast_gradient(part, place)
    fetch = part.fetch("of_x")

    optimized = Optimized(part)

    assert optimized.counts["join_broadcast_gradients"] == 1
    assert [optimized.op(name) for name in ("of_x", "sum", "axes")] == ["Reshape", "NoOp", "NoOp"]
    x, y = np.zeros(x_shape, np.float32), np.zeros((2, 3), np.float32)
    g = np.arange(6, dtype=np.float32).reshape((x + y).shape)
    feeds = dict(zip(keys, (x, y, g), strict=True))
    found = run(compile_program(part.graph_def, TASK, ResourceManager()), feeds)[fetch]
    axes = tuple(at for at, size in enumerate((1,) * (g.ndim - x.ndim) + x_shape) if size == 1)
    assert found.tolist() == g.sum(axes).reshape(x_shape).tolist()


def test_sums_that_others_read_or_that_keep_their_axes_stay() -> None:
    part = PartBuilder()
    broadcast_gradient(part)
    part.fetch("sum")
    part.fetch("of_x")
    assert Optimized(part).counts["join_broadcast_gradients"] == 0

    part = PartBuilder()
    broadcast_gradient(part, keep_dims=True)
    part.fetch("of_x")
    assert Optimized(part).counts["join_broadcast_gradients"] == 0


def test_a_gradient_of_another_size_says_so() -> None:
    part = PartBuilder()
    keys = broadcast_gradient(part)
    part.fetch("of_x")
    feeds = dict(zip(keys, (np.zeros(3, np.float32), np.zeros(3, np.float32), np.zeros(4, np.float32)), strict=True))
    with pytest.raises(errors.InvalidArgumentError, match=r"a tensor with 4 values(.|\n)*{{node of_x}}"):
        run(compile_program(part.graph_def, TASK, ResourceManager()), feeds)


def rows_multiplied(axes: Any = 1, axis: int = 0, read_twice: bool = False) -> tuple[PartBuilder, str, list[str]]:
    part = PartBuilder()
    keys = [part.feed(name) for name in "ab"] + [part.feed(name, I32) for name in "ik"]
    part.const("axis", axis, I32)
    part.const("axes", axes, I32)
    for rows, places, name in (("a", "i", "left"), ("b", "k", "right")):
        part.node("GatherV2", name, [rows, places, "axis"], Tparams=F32, Tindices=I32, Taxis=I32)
    part.node("Mul", "products", ["left", "right"], T=F32)
    part.node("Sum", "sums", ["products", "axes"], T=F32, Tidx=I32)
    if read_twice:
        part.fetch("products")
    return part, part.fetch("sums"), keys


@pytest.mark.parametrize("width", [1, 5, 40])
@pytest.mark.parametrize("axes", [1, [-1], 0, [0, 1]])
def test_a_sum_of_products_of_rows_reads_them_where_they_lie(axes: Any, width: int) -> None:
    part, fetch, keys = rows_multiplied(axes)
    draw = np.random.default_rng(1)
    a, b = (draw.standard_normal((rows, width)).astype(np.float32) for rows in (7, 4))
    i, k = (draw.integers(0, rows, 30).astype(np.int32) for rows in (7, 4))

    optimized = Optimized(part)
    found = run(compile_program(part.graph_def, TASK, ResourceManager()), dict(zip(keys, (a, b, i, k), strict=True)))

    assert optimized.counts["join_products_of_rows"] == 1
    assert optimized.op("left") == optimized.op("right") == optimized.op("products") == "NoOp"
    expected = (a[i].astype(np.float64) * b[k]).sum(tuple(np.atleast_1d(axes).tolist()))
    np.testing.assert_allclose(found[fetch], expected, rtol=1e-5, atol=1e-4)


def test_products_of_rows_fail_as_the_gathers_would() -> None:
    part, _, keys = rows_multiplied()
    program = compile_program(part.graph_def, TASK, ResourceManager())
    a, b = np.ones((7, 3), np.float32), np.ones((4, 3), np.float32)

    with pytest.raises(errors.InvalidArgumentError, match=r"indices\[1\] = 4 is not in \[0, 4\)"):
        run(program, dict(zip(keys, (a, b, np.int32([0, 6]), np.int32([3, 4])), strict=True)))


def test_products_with_rows_that_were_folded_stay() -> None:
    """A gather of constants is a constant itself by then, and reads nothing."""
    part = PartBuilder()
    key = part.feed("a")
    for name in ("i", "k"):
        part.const(name, np.array([0, 2], np.int32), I32)
    part.const("axis", 0, I32)
    part.const("axes", 1, I32)
    part.const("b", np.arange(6, dtype=np.float32).reshape(3, 2), F32)
    for rows, places, name in (("a", "i", "left"), ("b", "k", "right")):
        part.node("GatherV2", name, [rows, places, "axis"], Tparams=F32, Tindices=I32, Taxis=I32)
    part.node("Mul", "products", ["left", "right"], T=F32)
    part.node("Sum", "sums", ["products", "axes"], T=F32, Tidx=I32)
    fetch = part.fetch("sums")

    found = run(compile_program(part.graph_def, TASK, ResourceManager()), {key: np.ones((3, 2), np.float32)})

    assert found[fetch].tolist() == [1, 9]


@pytest.mark.parametrize(("axis", "read_twice"), [(1, False), (0, True)])
def test_other_products_stay(axis: int, read_twice: bool) -> None:
    part, _, _ = rows_multiplied(axis=axis, read_twice=read_twice)
    assert Optimized(part).op("sums") == "Sum"
    assert Optimized(part).counts["join_products_of_rows"] == 0


def gathers_multiplied(left: str, right: str, *, params: str = "", **attrs: Any) -> PartBuilder:
    """A sum of products of two gathers: "Gather" has no axis, "GatherV2" the axis 0, "axis" one that a step gives; the
    rows of the left one are of a reference variable where `params` says so."""
    part = PartBuilder()
    for name in "ab":
        part.feed(name)
    part.feed("i", I32)
    part.const("first", 0, I32)
    part.feed("axis", I32)
    part.const("axes", 1, I32)
    if params:
        part.node("VariableV2", params, shape=(7, 3), dtype=F32)
    for op, rows, name in ((left, params or "a", "left"), (right, "b", "right")):
        if op == "Gather":
            part.node("Gather", name, [rows, "i"], Tparams=F32, Tindices=I32)
        else:
            axis = {"GatherV2": "first"}.get(op, op)
            types = {"Tparams": F32, "Tindices": I32, "Taxis": I32}
            part.node("GatherV2", name, [rows, "i", axis], **types, **(attrs if name == "left" else {}))
    part.node("Mul", "products", ["left", "right"], T=F32)
    part.node("Sum", "sums", ["products", "axes"], T=F32, Tidx=I32)
    part.fetch("sums")
    return part


@pytest.mark.parametrize(("left", "right"), [("Gather", "GatherV2"), ("GatherV2", "Gather"), ("Gather", "Gather")])
def test_a_gather_without_an_axis_picks_rows_as_well(left: str, right: str) -> None:
    part = gathers_multiplied(left, right)
    optimized = Optimized(part)
    assert optimized.counts["join_products_of_rows"] == 1
    assert optimized.op("left") == optimized.op("right") == optimized.op("products") == "NoOp"
    assert optimized.sources("sums") == ["a", "i", "b", "i", "axes"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(gathers_multiplied("GatherV2", "GatherV2", batch_dims=1), id="by batch"),
        pytest.param(gathers_multiplied("axis", "GatherV2"), id="an axis of the step's"),
        pytest.param(gathers_multiplied("Gather", "GatherV2", params="v"), id="rows of a reference"),
        pytest.param(gathers_multiplied("GatherV2", "Gather", params="v"), id="rows of a reference, with an axis"),
    ],
)
def test_other_gathers_stay(other: PartBuilder) -> None:
    optimized = Optimized(other)
    assert optimized.counts["join_products_of_rows"] == 0
    assert [optimized.op(name) for name in ("left", "right", "products", "sums")].count("NoOp") == 0
