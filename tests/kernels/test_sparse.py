"""Sparse tensors: put in order, reshaped, cut, joined, added to dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op
from tenfold_core import errors

INDICES, VALUES, SHAPE = np.int64([[0, 1], [2, 0]]), np.float32([5, 7]), np.int64([3, 2])


def dense(indices: Any, values: Any, shape: Any) -> Any:
    out = np.zeros(shape.tolist(), values.dtype)
    out[tuple(indices.T)] = values
    return out


def test_out_of_order_becomes_row_major(ops: Any) -> None:
    indices, values = ops.run("SparseReorder", [INDICES[::-1].copy(), VALUES[::-1].copy(), SHAPE])

    assert (indices.tolist(), values.tolist()) == (INDICES.tolist(), VALUES.tolist())


def test_another_shape_of_as_many_elements(ops: Any) -> None:
    indices, shape = ops.run("SparseReshape", [INDICES, SHAPE, np.int64([2, -1])])

    assert (indices.tolist(), shape.tolist()) == ([[0, 1], [1, 1]], [2, 3])
    with pytest.raises(errors.InvalidArgumentError):
        ops.run("SparseReshape", [INDICES, SHAPE, np.int64([4, 2])])


def test_a_slice_reaches_as_far_as_it_likes(ops: Any) -> None:
    most = np.iinfo(np.int64).max
    sparse = [np.int64([[0], [2]]), np.float32([5, 7]), np.int64([4])]

    indices, values, shape = ops.run("SparseSlice", [*sparse, np.int64([1]), np.int64([most])])

    assert (indices.tolist(), values.tolist(), shape.tolist()) == ([[1]], [7], [3])
    indices, values, shape = ops.run("SparseSlice", [*sparse, np.int64([-1]), np.int64([2])])
    assert (indices.tolist(), values.tolist(), shape.tolist()) == ([[1]], [5], [2])


def test_two_are_joined_along_a_dimension(ops: Any) -> None:
    joined = ops.run("SparseConcat", [INDICES, INDICES, VALUES, -VALUES, SHAPE, SHAPE], concat_dim=1, N=2)

    expected = np.concatenate([dense(INDICES, VALUES, SHAPE), dense(INDICES, -VALUES, SHAPE)], axis=1)
    assert (dense(*joined) == expected).all()


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_a_dense_tensor_is_added(ops: Any, index: Any) -> None:
    b = np.ones((3, 2), np.float32)

    added = ops.run("SparseTensorDenseAdd", [INDICES.astype(index), VALUES, SHAPE.astype(index), b])

    assert (added == dense(INDICES, VALUES, SHAPE) + 1).all()


def test_gradients_of_sums_with_dense_tensors() -> None:
    def added(values: Any, b: Any) -> Any:
        return apply_op("SparseTensorDenseAdd", a_indices=INDICES, a_values=values, a_shape=SHAPE, b=b)

    assert directional_error(added, [np.array([1.0, 2.0]), np.ones((3, 2))]) < 1e-6


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([np.int64([[0, 1], [3, 0]]), SHAPE, np.int64([-1, -1])], r"^indices\[1\] = \[3,0\] is out of bounds"),
        ([INDICES, SHAPE, np.int64([-1, 2, -1])], "only one output dimension may be -1, not both 0 and 2"),
        ([INDICES, SHAPE, np.int64([-2, -3])], "size must not be negative"),
        ([INDICES, SHAPE, np.int64([4, -1])], "requires a multiple of 4"),
        ([INDICES, SHAPE, np.int64([0, -1])], "cannot infer the missing input size"),
        ([INDICES, np.int64([3]), np.int64([3])], "Index rank"),
    ],
)
def test_what_is_wrong_with_another_shape(ops: Any, inputs: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        ops.run("SparseReshape", inputs)


def test_empty_rows_are_filled(ops: Any) -> None:
    indices, words = np.int64([[2, 1], [0, 3], [2, 0]]), np.array([b"x", b"y", b"z"], object)

    found = ops.run("SparseFillEmptyRows", [indices, words, np.int64([4, 5]), np.array(b"?", object)])

    assert [each.tolist() for each in found] == [
        [[0, 3], [1, 0], [2, 1], [2, 0], [3, 0]],
        [b"y", b"?", b"x", b"z", b"?"],
        [False, True, False, True],
        [2, 0, 3],
    ]


def test_without_empty_rows_places_stay(ops: Any) -> None:
    found = ops.run("SparseFillEmptyRows", [INDICES[:1], VALUES[:1], np.int64([1, 2]), np.float32(9)])
    assert [each.tolist() for each in found] == [[[0, 1]], [5], [False], [0]]


@pytest.mark.parametrize(
    ("indices", "shape", "message"),
    [
        ([[0, 1], [3, 0]], [3, 2], r"^indices\(1, 0\) is invalid: 3 >= 3"),
        ([[0, 1], [2, 2]], [3, 2], r"^indices\[1\] = \[2,2\] is out of bounds"),
        ([[0, 1], [3, 0]], [3], r"^indices\(1, 0\) is invalid: 3 >= 3"),
        ([[0, 1], [2, 0]], [3], "Index rank"),
    ],
)
def test_what_is_wrong_with_rows_to_fill(ops: Any, indices: Any, shape: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        ops.run("SparseFillEmptyRows", [np.int64(indices), VALUES, np.int64(shape), np.float32(0)])


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("columns", [1, 5, 48])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int32", "int8"])
def test_a_product_of_a_sparse_and_a_dense_matrix(ops: Any, dtype: str, columns: int, turned: bool) -> None:
    draw = np.random.default_rng(3)
    places = np.argwhere(draw.random((30, 20)) < 0.2)
    draw.shuffle(places)
    values = (draw.integers(-4, 5, len(places)) * (1 + 1j if dtype == "complex64" else 1)).astype(dtype)
    right = (draw.integers(-4, 5, (30 if turned else 20, columns)) * 1).astype(dtype)
    dense = np.zeros((30, 20), "complex64" if dtype == "complex64" else np.int64)
    dense[places[:, 0], places[:, 1]] = values.real if dtype != "complex64" else values
    left = dense.conj().T if turned else dense

    for adjoint in (False, True):
        b = np.ascontiguousarray(right.conj().T) if adjoint else right
        found = ops.run(
            "SparseTensorDenseMatMul", [places, values, np.int64([30, 20]), b], adjoint_a=turned, adjoint_b=adjoint
        )
        assert found.dtype == right.dtype
        expected = left @ right.astype(dense.dtype)
        np.testing.assert_array_equal(found, expected.astype(dtype))


def test_a_product_of_halves_is_rounded_once(ops: Any) -> None:
    places = np.stack([np.zeros(2000, np.int64), np.arange(2000)], 1)
    inputs = [places, np.ones(2000, np.float16), np.int64([1, 2000]), np.full((2000, 1), 1.5, np.float16)]

    assert ops.run("SparseTensorDenseMatMul", inputs).tolist() == [[3000]]


@pytest.mark.parametrize("place", [[0, 2], [3, 0], [0, -1], [-1, 0], [1 << 62, 0], [0, -(1 << 63)]])
@pytest.mark.parametrize("columns", [0, 1, 3])
def test_an_entry_outside_a_sparse_matrix_is_named(ops: Any, place: Any, columns: int) -> None:
    inputs = [np.int64([[0, 1], place]), VALUES, np.int64([3, 2]), np.ones((2, columns), np.float32)]

    with pytest.raises(errors.InvalidArgumentError, match=r"^indices\[1\] = .* is out of bounds"):
        ops.run("SparseTensorDenseMatMul", inputs)
