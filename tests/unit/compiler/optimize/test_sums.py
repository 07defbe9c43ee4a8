"""Sums of products and of slices as one node: what they give, and which stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.optimized import TASK, Optimized, run
from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_compiler.optimize import sums
from tenfold_core import dtypes, errors
from tenfold_kernels.resources.state import ResourceManager

F32, I32 = dtypes.float32, dtypes.int32


def products(part: PartBuilder, count: int, **attrs: Any) -> list[str]:
    """Nodes Aᵀ·B of fed operands a0, b0, …: what adds them up is `total`. The keys of the feeds."""
    keys = []
    for i in range(count):
        keys += [part.feed(f"a{i}"), part.feed(f"b{i}")]
        given = {"transpose_a": True, "transpose_b": False, **attrs}
        part.node("MatMul", f"product{i}", [f"a{i}", f"b{i}"], T=F32, **given)
    part.node("AddN", "total", [f"product{i}" for i in range(count)], N=count, T=F32)
    return keys


def operands(inner: int, columns: int) -> tuple[Any, Any]:
    choose = np.random.default_rng(inner)
    return [choose.standard_normal((inner, width)).astype(np.float32) for width in (5, columns)]  # type: ignore[return-value]


@pytest.mark.parametrize("sizes", [[(2, 7), (3, 7), (1, 7)], [(40, 3), (20, 3), (0, 3)]], ids=["stacked", "in turn"])
def test_a_sum_of_products_is_one_product(sizes: list[tuple[int, int]]) -> None:
    part = PartBuilder()
    keys = products(part, 3)
    fetch = part.fetch("total")

    optimized = Optimized(part)

    assert optimized.counts["join_sums_of_products"] == 3
    assert [optimized.op(name) for name in ("total", "product0", "product2")] == ["MatMul", "NoOp", "NoOp"]
    pairs = [operands(*size) for size in sizes]
    feeds = dict(zip(keys, [value for pair in pairs for value in pair], strict=True))
    found = run(compile_program(part.graph_def, TASK, ResourceManager()), feeds)[fetch]
    wanted = sum(a.T.astype(np.float64) @ b for a, b in pairs)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_products_that_cannot_be_added_say_so() -> None:
    part = PartBuilder()
    keys = products(part, 2)
    part.fetch("total")
    program = compile_program(part.graph_def, TASK, ResourceManager())
    feeds = dict(zip(keys, [*operands(2, 7), *operands(2, 6)], strict=True))
    with pytest.raises(errors.InvalidArgumentError, match=r"same size and shape.*\[5,7\] != input 1: \[5,6\]"):
        run(program, feeds)
    feeds = dict(zip(keys, [*operands(2, 7), operands(2, 7)[0], operands(3, 7)[1]], strict=True))
    with pytest.raises(errors.InvalidArgumentError, match=r"In\[0\]: \[2,5\], In\[1\]: \[3,7\]"):
        run(program, feeds)


def test_products_that_others_read_or_that_copy_weights_stay() -> None:
    part = PartBuilder()
    products(part, 2)
    part.fetch("total")
    part.fetch("product1")
    assert Optimized(part).op("total") == "AddN"

    part = PartBuilder()
    products(part, 2, transpose_a=False, transpose_b=True)
    part.fetch("total")
    assert Optimized(part).op("total") == "AddN"


def running_total(part: PartBuilder, total: str = "total") -> list[str]:
    """`total` = -start + Aᵀ·B of fed operands. The keys of the feeds."""
    keys = [part.feed(name) for name in ("start", "a", "b")]
    part.node("Neg", "before", ["start"], T=F32)
    part.node("MatMul", "product", ["a", "b"], T=F32, transpose_a=True, transpose_b=False)
    part.node("AddV2", total, ["before", "product"], T=F32)
    return keys


@pytest.mark.parametrize("size", [(2, 3), (40, 300)], ids=["small", "large"])
def test_a_product_is_added_to_a_total_that_nobody_else_reads(size: tuple[int, int]) -> None:
    part = PartBuilder()
    keys = running_total(part)
    fetch = part.fetch("total")

    optimized = Optimized(part)

    assert optimized.counts["join_sums_of_products"] == 1
    assert [optimized.op(name) for name in ("total", "product")] == ["MatMul", "NoOp"]
    assert optimized.sources("total") == ["before", "a", "b"]
    a, b = operands(*size)
    start = np.ones((5, size[1]), np.float32)
    program = compile_program(part.graph_def, TASK, ResourceManager())
    for _ in range(2):
        found = run(program, dict(zip(keys, [start, a, b], strict=True)))[fetch]
        np.testing.assert_allclose(found, a.T.astype(np.float64) @ b - 1, rtol=1e-5, atol=1e-4)
    # what is broadcast is as it was
    found = run(program, dict(zip(keys, [start[0], a, b], strict=True)))[fetch]
    np.testing.assert_allclose(found, a.T.astype(np.float64) @ b - 1, rtol=1e-5, atol=1e-4)
    with pytest.raises(errors.InvalidArgumentError, match=r"Incompatible shapes: \[2,2\] vs. \[5,"):
        run(program, dict(zip(keys, [np.ones((2, 2), np.float32), a, b], strict=True)))


def test_a_total_that_others_read_or_that_comes_from_outside_is_not_written() -> None:
    part = PartBuilder()
    keys = running_total(part)
    fetches = [part.fetch("before"), part.fetch("total")]
    assert Optimized(part).op("total") == "AddV2"
    a, b = operands(40, 300)
    start = np.ones((5, 300), np.float32)
    found = run(compile_program(part.graph_def, TASK, ResourceManager()), dict(zip(keys, [start, a, b], strict=True)))
    assert (found[fetches[0]] == -1).all()

    part = PartBuilder()
    part.feed("fed")
    running_total(part, "sum")
    part.node("MatMul", "other", ["a", "b"], T=F32, transpose_a=True, transpose_b=False)
    part.node("AddV2", "total", ["fed", "other"], T=F32)
    part.fetch("total")
    assert Optimized(part).op("total") == "AddV2", "a fed array is the caller's"


@pytest.mark.parametrize("turns", [1, 5])
def test_a_loop_adds_products_to_its_total(turns: int) -> None:
    """The gradient of a loop's weights: total = total + Aᵀ·B, turn by turn; what it began with stays as it was."""
    part = PartBuilder()
    keys = [part.feed(name) for name in ("start", "a", "b")]
    part.const("zero", 0, I32)
    part.const("one", 1, I32)
    part.const("limit", turns, I32)
    frame: dict[str, Any] = {"frame_name": "f", "parallel_iterations": 1, "is_constant": False}
    part.node("Enter", "i_enter", ["zero"], T=I32, **frame)
    part.node("Enter", "t_enter", ["start"], T=F32, **frame)
    for name, dtype in (("one", I32), ("limit", I32), ("a", F32), ("b", F32)):
        part.node("Enter", f"{name}_enter", [name], T=dtype, **{**frame, "is_constant": True})
    part.node("Merge", "i", ["i_enter", "i_next"], N=2, T=I32)
    part.node("Merge", "t", ["t_enter", "t_next"], N=2, T=F32)
    part.node("Less", "less", ["i", "limit_enter"], T=I32)
    part.node("LoopCond", "goes_on", ["less"])
    part.node("Switch", "i_switch", ["i", "goes_on"], T=I32)
    part.node("Switch", "t_switch", ["t", "goes_on"], T=F32)
    part.node("AddV2", "i_more", ["i_switch:1", "one_enter"], T=I32)
    part.node("Neg", "minus", ["a_enter"], T=F32)
    part.node("Square", "squares", ["b_enter"], T=F32)
    part.node("MatMul", "product", ["minus", "squares"], T=F32, transpose_a=True, transpose_b=False)
    part.node("Add", "total", ["t_switch:1", "product"], T=F32)
    part.node("NextIteration", "i_next", ["i_more"], T=I32)
    part.node("NextIteration", "t_next", ["total"], T=F32)
    part.node("Exit", "found", ["t_switch"], T=F32)
    fetch = part.fetch("found")

    assert Optimized(part).op("total") == "MatMul"
    a, b = operands(40, 300)
    start = np.ones((5, 300), np.float32)
    program = compile_program(part.graph_def, TASK, ResourceManager())
    for _ in range(2):
        found = run(program, dict(zip(keys, [start, a, b], strict=True)))[fetch]
        np.testing.assert_allclose(found, 1 - turns * (a.T.astype(np.float64) @ b**2), rtol=1e-5, atol=1e-3)
        assert (start == 1).all()


def slices(part: PartBuilder, others: int = 0, **attrs: Any) -> list[str]:
    """Gradients of x[i : i + 2] of six numbers, fed as dy0, …, and other terms that are fed; `total` adds them all up.
    The keys of the feeds.
    """
    keys = [part.feed(f"other{i}") for i in range(others)]
    for i in range(3):
        keys.append(part.feed(f"dy{i}"))
        for name, value in (("shape", 6), ("begin", i), ("end", i + 2), ("strides", 1)):
            part.const(f"{name}{i}", [value], I32)
        inputs = [f"{name}{i}" for name in ("shape", "begin", "end", "strides", "dy")]
        given = {"begin_mask": 0, **(attrs if i == 1 else {})}
        part.node("StridedSliceGrad", f"slice{i}", inputs, T=F32, Index=I32, **given)
    terms = [f"other{i}" for i in range(others)] + [f"slice{i}" for i in range(3)]
    part.node("AddN", "total", terms, N=len(terms), T=F32)
    return keys


@pytest.mark.parametrize("others", [0, 1, 2])
def test_a_sum_of_slices_gradients_is_one_array(others: int) -> None:
    part = PartBuilder()
    keys = slices(part, others)
    fetch = part.fetch("total")

    optimized = Optimized(part)

    assert optimized.counts["join_sums_of_slices"] == 3
    ops = [optimized.op(name) for name in ("total", "slice0", "slice1", "slice2")]
    assert ops == (["AddN", "NoOp", "NoOp", "StridedSliceGrad"] if others else ["StridedSliceGrad", *["NoOp"] * 3])
    given = [np.full(6, 10, np.float32)] * others + [np.array([i, 1], np.float32) for i in range(3)]
    found = run(compile_program(part.graph_def, TASK, ResourceManager()), dict(zip(keys, given, strict=True)))[fetch]
    assert found.tolist() == (np.array([0, 2, 3, 1, 0, 0]) + 10 * others).tolist()
    wrong = dict(zip(keys, [*given[:-1], np.ones(3, np.float32)], strict=True))
    with pytest.raises(errors.InvalidArgumentError, match=r"shape of dy was \[3\] instead of \[2\]"):
        run(compile_program(part.graph_def, TASK, ResourceManager()), wrong)


def test_a_sum_of_pads_is_one_array() -> None:
    part = PartBuilder()
    keys = [part.feed(f"x{i}") for i in range(3)]
    for i in range(3):
        part.const(f"paddings{i}", [[i, 2 - i]], I32)
        part.node("Pad", f"pad{i}", [f"x{i}", f"paddings{i}"], T=F32, Tpaddings=I32)
    part.node("AddN", "total", [f"pad{i}" for i in range(3)], N=3, T=F32)
    fetch = part.fetch("total")

    optimized = Optimized(part)

    assert optimized.counts["join_sums_of_slices"] == 3
    assert [optimized.op(name) for name in ("total", "pad0", "pad2")] == ["Pad", "NoOp", "NoOp"]
    program = compile_program(part.graph_def, TASK, ResourceManager())
    given = [np.array([1, 10 * i], np.float32) for i in range(3)]
    for _ in range(2):
        found = run(program, dict(zip(keys, given, strict=True)))[fetch]
        assert found.tolist() == [1, 1, 11, 20]
    given[1] = np.ones(3, np.float32)
    with pytest.raises(errors.InvalidArgumentError, match=r"same size and shape.*\[4\] != input 1: \[5\]"):
        run(program, dict(zip(keys, given, strict=True)))


def test_slices_that_others_read_or_of_other_masks_stay() -> None:
    part = PartBuilder()
    slices(part)
    part.fetch("total")
    part.fetch("slice1")
    optimized = Optimized(part)
    assert optimized.counts["join_sums_of_slices"] == 2
    assert [optimized.op(name) for name in ("total", "slice1")] == ["AddN", "StridedSliceGrad"]

    part = PartBuilder()
    slices(part, begin_mask=1)
    part.fetch("total")
    assert Optimized(part).op("slice1") == "StridedSliceGrad"


# -- which sums stay -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attrs", [{"transpose_a": False}, {"transpose_b": True}], ids=["a as it is", "b transposed"])
def test_products_of_other_transposes_stay(attrs: dict[str, bool]) -> None:
    part = PartBuilder()
    products(part, 2, **attrs)
    part.fetch("total")
    optimized = Optimized(part)
    assert optimized.op("total") == "AddN"
    assert optimized.counts["join_sums_of_products"] == 0


def test_a_sum_with_another_term_is_no_product() -> None:
    part = PartBuilder()
    products(part, 2)
    part.feed("x")
    part.node("Neg", "other", ["x"], T=F32)
    part.graph_def.node[6].input.append("other")
    del part.graph_def.node[6]
    part.node("AddN", "total", ["product0", "product1", "other"], N=3, T=F32)
    part.fetch("total")
    assert Optimized(part).op("total") == "AddN"


@pytest.mark.parametrize(("op", "joined"), [("AddV2", True), ("Add", True), ("AddN", True), ("Sub", False)])
@pytest.mark.parametrize("product_first", [True, False])
def test_which_ops_add_a_product_to_a_total(op: str, joined: bool, product_first: bool) -> None:
    part = PartBuilder()
    for name in ("start", "a", "b"):
        part.feed(name)
    part.node("Neg", "before", ["start"], T=F32)
    part.node("MatMul", "product", ["a", "b"], T=F32, transpose_a=True, transpose_b=False)
    terms = ["product", "before"] if product_first else ["before", "product"]
    part.node(op, "total", terms, T=F32, **({"N": 2} if op == "AddN" else {}))
    part.fetch("total")
    optimized = Optimized(part)
    assert optimized.op("total") == ("MatMul" if joined else op)
    if joined:
        assert optimized.sources("total") == ["before", "a", "b"]
        assert optimized.counts["join_sums_of_products"] == 1
        assert optimized.controls("total") == ["product"]
        assert optimized.node("total").attrs["transpose_a"]


@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.complex64])
def test_of_which_types_products_are_joined(dtype: Any) -> None:
    part = PartBuilder()
    for name in ("a", "b"):
        part.feed(name, dtype)
    for i in range(2):
        part.node("MatMul", f"product{i}", ["a", "b"], T=dtype, transpose_a=True, transpose_b=bool(i) and False)
        part.node("Neg", f"n{i}", ["a"], T=dtype)
    part.node("MatMul", "other", ["n0", "b"], T=dtype, transpose_a=True, transpose_b=False)
    part.node("AddN", "total", ["product0", "other"], N=2, T=dtype)
    part.fetch("total", dtype)
    assert Optimized(part).op("total") == ("MatMul" if dtype is dtypes.float64 else "AddN")


def test_a_total_that_is_known_is_not_written() -> None:
    part = PartBuilder()
    for name in ("a", "b"):
        part.feed(name)
    part.const("start", np.ones((2, 2), np.float32))
    part.node("MatMul", "product", ["a", "b"], T=F32, transpose_a=True, transpose_b=False)
    part.node("AddV2", "total", ["start", "product"], T=F32)
    part.fetch("total")
    assert Optimized(part).op("total") == "AddV2"


def test_a_total_that_is_read_from_a_variable_is_not_written() -> None:
    part = PartBuilder()
    for name in ("a", "b"):
        part.feed(name)
    part.node("VariableV2", "v", dtype=F32, shape=[2, 2])
    part.node("Identity", "read", ["v"], T=F32)
    part.node("MatMul", "product", ["a", "b"], T=F32, transpose_a=True, transpose_b=False)
    part.node("AddV2", "by_name", ["read", "product"], T=F32)
    part.fetch("by_name")
    part.node("MatMul", "product2", ["b", "a"], T=F32, transpose_a=True, transpose_b=False)
    part.node("AddV2", "by_reference", ["v", "product2"], T=F32)
    part.fetch("by_reference")
    part.const("shape", [2, 2], I32)
    part.node("Reshape", "view", ["read", "shape"], T=F32, Tshape=I32)
    part.node("MatMul", "product3", ["a", "a"], T=F32, transpose_a=True, transpose_b=False)
    part.node("AddV2", "by_view", ["view", "product3"], T=F32)
    part.fetch("by_view")
    optimized = Optimized(part)
    assert [optimized.op(name) for name in ("by_name", "by_reference", "by_view")] == ["AddV2"] * 3


def test_a_total_that_enters_a_loop_is_not_written() -> None:
    """Its next turn reads it again."""
    part = PartBuilder()
    for name in "xa":
        part.feed(name)
        part.node("Enter", f"{name}_within", [name], T=F32, frame_name="f", is_constant=True)
    part.node("Neg", "factor", ["a_within"], T=F32)
    part.node("MatMul", "product", ["factor", "factor"], T=F32, transpose_a=True, transpose_b=False)
    part.node("AddV2", "total", ["x_within", "product"], T=F32)
    assert Optimized(part).op("total") == "AddV2"


def test_slices_of_another_shape_or_op_are_not_joined() -> None:
    part = PartBuilder()
    for i in range(4):
        part.feed(f"x{i}")
        part.const(f"paddings{i}", [[i, 3 - i]], I32)
    for i in (0, 1):
        part.node("Pad", f"pad{i}", [f"x{i}", f"paddings{i}"], T=F32, Tpaddings=I32)
    part.node("Neg", "other", ["x2"], T=F32)
    part.node("AccumulateNV2", "total", ["pad0", "other", "pad1"], N=3, T=F32, shape=[4])
    part.fetch("total")
    optimized = Optimized(part)
    assert optimized.counts["join_sums_of_slices"] == 2
    assert optimized.sources("total") == ["other", "pad1"]
    assert optimized.op("pad0") == "NoOp"
    assert optimized.sources("pad1") == ["x0", "paddings0", "x1", "paddings1"]
    assert "pad0" in optimized.controls("pad1")


def test_one_slice_alone_stays() -> None:
    part = PartBuilder()
    part.feed("x")
    part.const("paddings", [[1, 1]], I32)
    part.node("Pad", "pad", ["x", "paddings"], T=F32, Tpaddings=I32)
    part.node("Neg", "other", ["x"], T=F32)
    part.node("AddN", "total", ["pad", "other"], N=2, T=F32)
    part.fetch("total")
    optimized = Optimized(part)
    assert (optimized.op("total"), optimized.op("pad")) == ("AddN", "Pad")
    assert optimized.sources("total") == ["pad", "other"]
    assert optimized.counts["join_sums_of_slices"] == 0


def test_which_inputs_of_two_slices_are_the_same() -> None:
    """The same tensor, or constants of one value, whichever output of a node they are."""
    one, also, other = np.array([2, 3], np.int32), np.array([2, 3], np.int32), np.array([3, 2], np.int32)
    constants: Any = {5: (one,), 6: (other, also), 7: (other,)}
    alike = [((1, 0), (1, 0)), ((5, 0), (6, 1)), ((6, 1), (5, 0)), ((6, 0), (7, 0)), ((7, 0), (6, 0))]
    unlike = [((1, 0), (1, 1)), ((1, 0), (5, 0)), ((5, 0), (1, 0)), ((5, 0), (6, 0)), ((5, 0), (7, 0))]
    assert all(sums._are_same(constants, *edges) for edges in alike)
    assert not any(sums._are_same(constants, *edges) for edges in unlike)
