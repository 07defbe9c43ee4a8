"""Shapes, sizes and ranks, and the ops that change a shape: every bound at its edge, refusals, views."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from support.kernel_runs import make_node
from support.op_values import frozen, ints, refused
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cpu import array_shape
from tenfold_kernels.resources.state import ResourceManager

F = np.float32
WIDE = (1 << 31) - 1


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, F)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 4)])
def test_shapes_sizes_and_ranks_are_numbers(ops: Any, kind: Any, shape: tuple[int, ...]) -> None:
    x, out_type = zeros(*shape), dtypes.as_dtype(kind)
    for found, wanted in (
        (ops.run("Shape", [x], out_type=out_type), list(shape)),
        (ops.run("ShapeN", [x], out_type=out_type), list(shape)),
        (ops.run("ShapeN", [x, zeros(5)], out_type=out_type)[0], list(shape)),
        (ops.run("ShapeN", [zeros(5), x], out_type=out_type)[1], list(shape)),
        (ops.run("Size", [x], out_type=out_type), math.prod(shape)),
    ):
        assert (found.tolist(), found.dtype) == (wanted, kind)
    rank = ops.run("Rank", [x])
    assert (rank.tolist(), rank.shape) == (len(shape), ())


def test_shapes_that_32_bits_do_not_hold(ops: Any) -> None:
    widest, wider = np.broadcast_to(np.zeros((0, 1), F), (0, WIDE)), np.broadcast_to(np.zeros((0, 1), F), (0, WIDE + 1))
    many = np.broadcast_to(np.zeros((), np.int8), (WIDE,))
    more = np.broadcast_to(np.zeros((), np.int8), (2, WIDE))
    assert ops.run("Shape", [widest]).tolist() == [0, WIDE]
    assert ops.run("Size", [many]).tolist() == WIDE
    assert ops.run("Size", [more], out_type=dtypes.int64).tolist() == 2 * WIDE
    refused(ops, "Shape", [wider], f"Shape output type is 32-bit but dim 1 is {WIDE + 1}")
    both = np.broadcast_to(np.zeros((), np.int8), (WIDE, WIDE + 1))
    refused(ops, "Shape", [both], f"Shape output type is 32-bit but dim 1 is {WIDE + 1}")
    text = f"Number of elements was larger than representable by 32-bit output type: {2 * WIDE}"
    refused(ops, "Size", [more], text)


# -- Reshape -----------------------------------------------------------------------------------------------------------

X = np.arange(24, dtype=F).reshape(2, 3, 4)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("x", "shape", "wanted"),
    [
        (X, [24], (24,)), (X, [4, 6], (4, 6)), (X, [-1], (24,)), (X, [2, -1, 3], (2, 4, 3)), (X, [-1, 24], (1, 24)),
        (X, [24, -1], (24, 1)), (zeros(), [], ()), (zeros(1), [], ()), (zeros(), [1, 1], (1, 1)), (X, 24, (24,)),
        (X, -1, (24,)), (zeros(0, 3), [0], (0,)), (zeros(0, 3), [5, 0], (5, 0)), (zeros(0, 3), [-1, 0], (3, 0)),
        (zeros(0, 3), [0, -1], (0, 3)), (zeros(0, 3), [-1], (0,)), (zeros(0, 6), [0, 2, -1], (0, 2, 3)),
        (zeros(0), [0, -1], (0, 1)), (zeros(2, 0, 3), [0, -1, 2], (0, 3, 2)), (zeros(0, 3), [3, -1], (3, 0)),
    ],
)  # fmt: skip
def test_reshaped(ops: Any, kind: Any, x: np.ndarray, shape: Any, wanted: tuple[int, ...]) -> None:
    given = np.array(shape, kind)
    found = ops.run("Reshape", [x, given])
    assert (found.shape, found.tolist()) == (wanted, x.reshape(wanted).tolist())
    assert not x.size or np.shares_memory(found, x)
    assert array_shape.reshape_dims(x, given) == wanted


@pytest.mark.parametrize(
    ("x", "shape", "text"),
    [
        (X, [[24]], "sizes input must be 1-D, not [1,1]"),
        (X, [-1, 2, -1], "Only one input size may be -1, not both 0 and 2"),
        (X, [12, -1, -1], "Only one input size may be -1, not both 1 and 2"),
        (X, [12, -2], "Size 1 must be non-negative, not -2"),
        (X, [-3], "Size 0 must be non-negative, not -3"),
        (X, [-2, -12], "Size 0 must be non-negative, not -2"),
        (
            X,
            [0, -1],
            "reshape cannot infer the missing input size for an empty tensor unless all specified input sizes",
        ),
        (X, [5, -1], "Input to reshape is a tensor with 24 values, but the requested shape requires a multiple of 5"),
        (X, [25], "Input to reshape is a tensor with 24 values, but the requested shape has 25"),
        (X, [23], "Input to reshape is a tensor with 24 values, but the requested shape has 23"),
        (X, [], "Input to reshape is a tensor with 24 values, but the requested shape has 1"),
        (X, 23, "Input to reshape is a tensor with 24 values, but the requested shape has 23"),
        (zeros(0), [1], "Input to reshape is a tensor with 0 values, but the requested shape has 1"),
    ],
)
def test_shapes_that_do_not_fit(ops: Any, x: np.ndarray, shape: Any, text: str) -> None:
    refused(ops, "Reshape", [x, np.array(shape, np.int32)], text)


def test_sizes_that_numpy_understands() -> None:
    for sizes in ([], [0], [2, 3], [-1], [4, -1]):
        assert array_shape._plain_dims(np.array(sizes, np.int32)) == tuple(sizes)
    assert array_shape._plain_dims(np.array(6)) == (6,)
    for bad in ([-2], [4, -2], [-3, -1], [[6]], [[2, 3]]):
        with pytest.raises(ValueError, match=r"\("):
            array_shape._plain_dims(np.array(bad))


def test_a_third_input_is_summed_over(ops: Any) -> None:
    """What a pass makes of the sum over what an operand was broadcast along."""
    x, shape, other = X[0], frozen([3, 1]), frozen([3, 4])
    node = make_node("Reshape", [x, shape], {}, ResourceManager(), "n")
    node = dataclasses.replace(node, input_types=(*node.input_types, dtypes.int32))
    compute = array_shape.build_reshape(node)
    assert compute(x, shape, other).tolist() == x.sum(1, keepdims=True).tolist()
    assert compute(x, frozen([4]), other).tolist() == x.sum(0).tolist()
    assert compute(x, frozen([1, 4]), other).tolist() == x.sum(0, keepdims=True).tolist()
    assert compute(x, frozen(np.zeros(0)), other).tolist() == x.sum()
    assert compute(x, frozen([3, 4]), frozen([4])) is x
    assert compute(x, frozen([3, 4]), other) is x


# -- ExpandDims, Squeeze, EnsureShape ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_a_dimension_more(ops: Any, shape: tuple[int, ...]) -> None:
    x = np.ones(shape, F)
    for axis in range(-len(shape) - 1, len(shape) + 1):
        wanted = np.expand_dims(x, axis).shape
        for given in (np.int32(axis), ints(axis), ints([axis]), np.array(axis, np.int64)):
            found = ops.run("ExpandDims", [x, given])
            assert found.shape == wanted
            assert np.shares_memory(found, x)
    for axis in (len(shape) + 1, -len(shape) - 2):
        text = f"Tried to expand dim index {axis} for tensor with {len(shape)} dimensions."
        refused(ops, "ExpandDims", [x, axis], text)


@pytest.mark.parametrize("axis", [ints(0, 1), np.zeros(0, np.int32)])
def test_a_dimension_more_stands_at_one_place(ops: Any, axis: np.ndarray) -> None:
    refused(ops, "ExpandDims", [X, axis], "'dim' must be a tensor with a single value")


def test_a_place_that_changes_is_read_again(ops: Any) -> None:
    where = ints(0).reshape(())
    expand, _ = ops.build("ExpandDims", [X, where], {})
    assert expand(X, where).shape == (1, 2, 3, 4)
    where[...] = -1
    assert expand(X, where).shape == (2, 3, 4, 1)
    for axis in (frozen(1), frozen(-2)):
        for x in (X, X[0], X):
            assert expand(x, axis).shape == np.expand_dims(x, int(axis)).shape


@pytest.mark.parametrize(
    ("shape", "dims", "wanted"),
    [
        ((1, 2, 1), [], (2,)), ((1, 2, 1), [0], (2, 1)), ((1, 2, 1), [2], (1, 2)), ((1, 2, 1), [-1], (1, 2)),
        ((1, 2, 1), [-3], (2, 1)), ((1, 2, 1), [0, -1], (2,)), ((1, 2, 1), [0, 0, -3], (2, 1)), ((1,), [0], ()),
        ((1, 1), [], ()), ((), [], ()), ((0, 1), [], (0,)), ((3, 2), [], (3, 2)),
    ],
)  # fmt: skip
def test_dimensions_of_one_are_dropped(ops: Any, shape: Any, dims: list[int], wanted: Any) -> None:
    x = zeros(*shape)
    found = ops.run("Squeeze", [x], squeeze_dims=dims)
    assert found.shape == wanted
    assert not x.size or np.shares_memory(found, x)


@pytest.mark.parametrize(
    ("dims", "text"),
    [
        ([2], "Tried to squeeze dim index 2 for tensor with 2 dimensions."),
        ([0, -3], "Tried to squeeze dim index -3 for tensor with 2 dimensions."),
        ([1], "Can not squeeze dim[1], expected a dimension of 1, got 2"),
        ([0, -1], "Can not squeeze dim[1], expected a dimension of 1, got 2"),
    ],
)
def test_dimensions_that_cannot_be_dropped(ops: Any, dims: list[int], text: str) -> None:
    refused(ops, "Squeeze", [zeros(1, 2)], text, squeeze_dims=dims)
    refused(ops, "Squeeze", [zeros(1, 0)], text.replace("got 2", "got 0"), squeeze_dims=dims)


def test_a_shape_is_made_sure_of(ops: Any) -> None:
    for shape in (TensorShape(None), TensorShape([2, None, 4]), TensorShape([2, 3, 4])):
        found, _ = ops.build("EnsureShape", [X], {"shape": shape})
        assert found(X) is X
    text = "Shape of tensor sure [2,3,4] is not compatible with expected shape "
    for dims in ([2, 3], [2, None, 5], []):
        refused(ops, "EnsureShape", [X], text, shape=TensorShape(dims), name="sure")


# -- InvertPermutation and UnravelIndex --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("order", [[], [0], [2, 0, 3, 1], [1, 2, 0]])
def test_an_order_is_undone(ops: Any, kind: Any, order: list[int]) -> None:
    assert ops.run("InvertPermutation", [np.array(order, kind)]).tolist() == [order.index(i) for i in range(len(order))]


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ([[0, 1]], "invert_permutation expects a 1D vector. Got shape [1,2]"),
        (0, "invert_permutation expects a 1D vector. Got shape []"),
        ([0, 2], "2 is not between 0 and 2"),
        ([-1, 0], "-1 is not between 0 and 2"),
        ([1, 1, 0], "1 is duplicated in the input."),
        ([0, 2, 0], "0 is duplicated in the input."),
    ],
)
def test_what_is_no_order(ops: Any, order: Any, text: str) -> None:
    refused(ops, "InvertPermutation", [np.array(order, np.int32)], text)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("dims", [[6], [2, 3], [3, 1, 2]])
def test_numbers_of_places_become_places(ops: Any, kind: Any, dims: list[int]) -> None:
    every = np.arange(6)
    wanted = np.array(np.unravel_index(every, dims))
    assert ops.run("UnravelIndex", [every.astype(kind), np.array(dims, kind)]).tolist() == wanted.tolist()
    for number in (0, 3, 5):
        found = ops.run("UnravelIndex", [np.array(number, kind), np.array(dims, kind)])
        assert (found.tolist(), found.dtype) == (wanted[:, number].tolist(), kind)


@pytest.mark.parametrize(
    ("indices", "dims", "text"),
    [
        ([[1]], [2, 3], 'The indices can only be scalar or vector, got "[1,1]"'),
        ([], [2, 3], "received empty tensor indices: shape [0]"),
        ([1], 6, 'The indices can only be 1-D, got "[]"'),
        ([1], [[2, 3]], 'The indices can only be 1-D, got "[1,2]"'),
        ([0], [2, 0], "Input dims cannot contain a dim of zero, but dims contains zero at index 1"),
        ([0], [-2, 3], "Input dims cannot be negative. Got dim = -2 at index 0"),
        ([0], [1 << 16, 1 << 15], "Input dims product is causing integer overflow: ([65536, 32768])"),
        ([0, 6], [2, 3], "index is out of bound as with dims"),
        ([0, -1], [2, 3], "index is out of bound as with dims"),
    ],
)
def test_places_that_there_are_not(ops: Any, indices: Any, dims: Any, text: str) -> None:
    refused(ops, "UnravelIndex", [np.array(indices, np.int32), np.array(dims, np.int32)], text)


def test_as_many_places_as_the_type_can_number(ops: Any) -> None:
    assert ops.run("UnravelIndex", [ints(WIDE - 1), ints(WIDE)]).tolist() == [[WIDE - 1]]
    dims = np.array([1 << 32, (1 << 31) - 1], np.int64)
    assert ops.run("UnravelIndex", [np.array([1 << 31]), dims]).tolist() == [[1], [1]]
    with pytest.raises(errors.InvalidArgumentError, match="integer overflow"):
        ops.run("UnravelIndex", [np.array([1]), dims + np.array([0, 1])])
