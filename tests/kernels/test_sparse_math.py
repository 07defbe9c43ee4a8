"""Arithmetic of sparse tensors against NumPy's of the dense ones: sums, extremes, reductions, softmax, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cpu import sparse_math


def longs(*values: Any) -> Any:
    return np.array(values, np.int64)


def tensor(rows: Any, kind: Any = np.float32) -> list[Any]:
    """The places of a dense tensor that are not zero."""
    dense = np.array(rows, kind)
    places = np.argwhere(dense)
    return [places, dense[tuple(places.T)], longs(*dense.shape)]


def dense(indices: Any, values: Any, shape: Any) -> Any:
    out = np.zeros(shape.tolist(), values.dtype)
    out[tuple(indices.T)] = values
    return out


A = [[0, 1, -5], [2, 0, 0]]
B = [[4, -1, 0], [-1, 0, 3]]


# ---- sums ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.complex64])
def test_sums_keep_what_only_one_has_and_what_is_large_enough(ops: Any, kind: Any) -> None:
    """At (0, 1) both have a value, and the sum is 0; at (1, 0) it is 1."""
    limit = np.float32 if kind is np.complex64 else kind
    every = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 2]]
    for threshold, left_out in ((0, []), (1, [[0, 1]]), (2, [[0, 1], [1, 0]]), (9, [[0, 1], [1, 0]])):
        found = ops.run("SparseAdd", [*tensor(A, kind), *tensor(B, kind), np.array(threshold, limit)])
        assert found[0].tolist() == [place for place in every if place not in left_out]
        sums = np.array(A, kind) + np.array(B, kind)
        assert found[1].tolist() == sums[tuple(found[0].T)].tolist()
        assert found[2].tolist() == [2, 3]


def test_sums_of_values_at_one_place(ops: Any) -> None:
    twice = [longs([0, 1], [0, 1]), np.float32([2, 3]), longs(1, 2)]
    found = ops.run("SparseAdd", [*twice, *twice, np.float32(0)])
    assert [each.tolist() for each in found] == [[[0, 1]], [10], [1, 2]]


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ([*tensor(A), *tensor(B), np.float32([0])], r"^The magnitude threshold must be a scalar: got shape \[1\]$"),
        ([*tensor(A), *tensor([[1, 2]]), np.float32(0)], r"^Input shapes must match: \[2,3\] vs\. \[1,2\]$"),
        (
            [longs([0, 3]), np.float32([1]), longs(2, 3), *tensor(B), np.float32(0)],
            r"^indices\[0\] = \[0,3\] is out of bounds",
        ),
        (
            [*tensor(B), longs([0, 3]), np.float32([1]), longs(2, 3), np.float32(0)],
            r"^indices\[0\] = \[0,3\] is out of bounds",
        ),
    ],
)
def test_sums_that_cannot_be(ops: Any, inputs: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("SparseAdd", inputs)


def test_the_gradient_of_a_sum(ops: Any) -> None:
    a, b, both = longs([0, 1], [1, 0]), longs([0, 0], [1, 0]), longs([0, 0], [0, 1])
    found = ops.run("SparseAddGrad", [np.float32([10, 20]), a, b, both])
    assert [each.tolist() for each in found] == [[20, 0], [10, 0]]
    none = np.zeros((0, 2), np.int64)
    found = ops.run("SparseAddGrad", [np.float32([]), none, b, none])
    assert [each.tolist() for each in found] == [[], [0, 0]]


ROWS = longs([0, 1], [1, 0])


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ([np.float32([[1, 2]]), ROWS, ROWS, ROWS], r"^backprop_val_grad must be of rank 1, got shape \[1,2\]$"),
        ([np.float32([1, 2]), ROWS[0], ROWS, ROWS], r"^a_indices must be of rank 2, got shape \[2\]$"),
        ([np.float32([1, 2]), ROWS, ROWS[0], ROWS], r"^b_indices must be of rank 2, got shape \[2\]$"),
        ([np.float32([1, 2]), ROWS, ROWS, ROWS[0]], r"^sum_indices must be of rank 2, got shape \[2\]$"),
        (
            [np.float32([1]), ROWS, ROWS, ROWS],
            r"^# of gradients \(1\), sum_indices \[2,2\], a_indices \[2,2\] and b_indices \[2,2\] do not go together$",
        ),
        ([np.float32([1, 2]), ROWS[:, :1], ROWS, ROWS], r"^# of gradients .*a_indices \[2,1\] and"),
        ([np.float32([1, 2]), ROWS, ROWS[:, :1], ROWS], r"^# of gradients .*b_indices \[2,1\] do not"),
        ([np.float32([1, 2]), ROWS, ROWS, ROWS[:, :1]], r"^# of gradients .*sum_indices \[2,1\], "),
    ],
)
def test_gradients_of_sums_that_cannot_be(ops: Any, inputs: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("SparseAddGrad", inputs)


# ---- extremes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_the_larger_and_the_smaller_of_two(ops: Any, kind: Any) -> None:
    """A value that is not there is 0."""
    places = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 2]]
    for op, meet in (("SparseSparseMaximum", np.maximum), ("SparseSparseMinimum", np.minimum)):
        indices, values = ops.run(op, [*tensor(A, kind), *tensor(B, kind)])
        assert indices.tolist() == places
        assert values.tolist() == meet(np.array(A, kind), np.array(B, kind))[tuple(indices.T)].tolist()


@pytest.mark.parametrize("op", ["SparseSparseMaximum", "SparseSparseMinimum"])
@pytest.mark.parametrize(
    ("other", "text"),
    [
        (tensor([1, 2]), r"^Operands do not have the same ranks; got shapes: \[2,3\] and \[2\]$"),
        (tensor([[1, 2], [3, 4]]), r"^Operands' shapes do not match: got 3 and 2 for dimension 1$"),
        (tensor([[1, 2, 3]]), r"^Operands' shapes do not match: got 2 and 1 for dimension 0$"),
        ([longs([2, 0]), np.float32([1]), longs(2, 3)], r"^indices\[0\] = \[2,0\] is out of bounds"),
    ],
)
def test_extremes_that_cannot_be(ops: Any, op: str, other: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, [*tensor(A), *other])


# ---- with a dense tensor ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.uint8])
@pytest.mark.parametrize("other", [[[7, -2, 3], [4, 5, 6]], [[2, 3, 4]], [[3], [2]], [2, 3, 4], 3])
def test_values_meet_the_dense_element_at_their_place(ops: Any, other: Any, kind: Any) -> None:
    a = tensor(np.abs(A) if kind is np.uint8 else A, kind)
    other = np.array(np.abs(other) if kind is np.uint8 else other, kind)
    at = tuple(a[0].T)
    wide = np.broadcast_to(other, (2, 3))[at]
    assert ops.run("SparseDenseCwiseAdd", [*a, other]).tolist() == (a[1] + wide).tolist()
    assert ops.run("SparseDenseCwiseMul", [*a, other]).tolist() == (a[1] * wide).tolist()
    quotient = a[1] / wide if kind is np.float32 else np.trunc(a[1] / wide.astype(np.float64)).astype(kind)
    assert ops.run("SparseDenseCwiseDiv", [*a, other]).tolist() == quotient.tolist()


def test_quotients_of_whole_numbers_are_cut_and_zero_is_refused(ops: Any) -> None:
    a = [longs([0], [2]), np.array([-7, 7], np.int32), longs(3)]
    assert ops.run("SparseDenseCwiseDiv", [*a, np.array([2, 0, -2], np.int32)]).tolist() == [-3, -3]
    for kind in (np.int32, np.uint8):
        zero = [a[0], a[1].astype(kind), a[2], np.array([2, 1, 0], kind)]
        with pytest.raises(errors.InvalidArgumentError, match=r"^Integer division by zero$"):
            ops.run("SparseDenseCwiseDiv", zero)
    found = ops.run("SparseDenseCwiseDiv", [a[0], np.float32([-7, 7]), a[2], np.float32([2, 1, 0])])
    assert found.tolist() == [-3.5, np.inf]


@pytest.mark.parametrize("op", ["SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"])
def test_only_the_dense_tensor_broadcasts(ops: Any, op: str) -> None:
    text = r"^SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: \[2,3\] vs\. "
    for shape, said in (((2, 2), r"\[2,2\]"), ((1, 2, 3), r"\[1,2,3\]")):
        with pytest.raises(errors.InvalidArgumentError, match=f"{text}{said}$"):
            ops.run(op, [*tensor(A), np.ones(shape, np.float32)])
    with pytest.raises(errors.InvalidArgumentError, match="is out of bounds"):
        ops.run(op, [longs([0, 3]), np.float32([1]), longs(2, 3), np.ones((2, 3), np.float32)])


# ---- reductions ------------------------------------------------------------------------------------------------------


CUBE = np.zeros((2, 3, 2), np.int64)
CUBE[0, 0], CUBE[0, 2, 1], CUBE[1, 0, 1] = (-4, -2), -7, 5


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize("axes", [[], [0], [1], [-1], [0, 2], [-3, 1], [0, 1, 2], [1, 1, -2]])
@pytest.mark.parametrize("keep", [False, True])
def test_reductions_to_dense_and_to_sparse(ops: Any, keep: bool, axes: list[int], kind: Any) -> None:
    """A group without a value gives 0, and the largest of some that are less than 0 is less than 0."""
    parts = tensor(CUBE, kind)
    given = np.array(axes, np.int32)
    over = tuple({axis % 3 for axis in axes})
    there = (CUBE != 0).any(axis=over, keepdims=keep) if over else CUBE != 0
    for op in ("Sum", "Max"):
        if op == "Sum":
            expected = CUBE.sum(axis=over, keepdims=keep)
        else:
            lowest = np.where(CUBE != 0, CUBE, -99).max(axis=over, keepdims=keep)
            expected = np.where(there, lowest, 0)
        found = ops.run(f"SparseReduce{op}", [*parts, given], keep_dims=keep)
        assert (found.dtype, found.tolist()) == (kind, expected.tolist())
        indices, values, shape = ops.run(f"SparseReduce{op}Sparse", [*parts, given], keep_dims=keep)
        assert indices.tolist() == (np.argwhere(there).tolist() if there.ndim else [[]])
        assert values.tolist() == np.asarray(expected)[there].ravel().tolist()
        assert shape.tolist() == list(there.shape)


@pytest.mark.parametrize("op", ["SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse", "SparseReduceMaxSparse"])
@pytest.mark.parametrize("axis", [2, -3])
def test_axes_that_there_are_not(ops: Any, op: str, axis: int) -> None:
    text = f"^Invalid reduction dimension {axis}, for input with 2 dimensions.$"
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, [*tensor(A), np.array([0, axis], np.int32)])
    with pytest.raises(errors.InvalidArgumentError, match="is out of bounds"):
        ops.run(op, [longs([0, 3]), np.float32([1]), longs(2, 3), np.array([0], np.int32)])


def test_infinite_values_are_reduced_too(ops: Any) -> None:
    row = [longs([0], [1]), np.float32([-np.inf, -np.inf]), longs(3)]
    assert ops.run("SparseReduceMax", [*row, np.array([0], np.int32)]).tolist() == -np.inf


def test_memory_for_a_dense_result_is_asked_for_first(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(sparse_math, "allow", lambda dims, dtype: asked.append((dims, dtype)))
    ops.run("SparseReduceSum", [*tensor(A), np.array([0], np.int32)])
    ops.run("SparseReduceMax", [*tensor(A), np.array([0], np.int32)], keep_dims=True)
    assert asked == [((3,), np.float32), ((1, 3), np.float32)]


# ---- softmax ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_softmax_of_each_row(ops: Any, kind: Any) -> None:
    """Large numbers as well as small ones."""
    indices = longs([0, 0, 0], [0, 0, 2], [1, 0, 1], [1, 1, 0], [1, 1, 2])
    values = np.array([1, 3, 8, 1000, 999], kind)
    found = ops.run("SparseSoftmax", [indices, values, longs(2, 2, 3)])
    pair, near = np.exp([-2, 0]), np.exp([0, -1])
    expected = [*pair / pair.sum(), 1, *near / near.sum()]
    assert found.dtype == kind
    np.testing.assert_allclose(found, expected, rtol=2e-3 if kind is np.float16 else 1e-6)
    assert ops.run("SparseSoftmax", [indices[:0], values[:0], longs(2, 2, 3)]).shape == (0,)


def test_softmax_needs_rows(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^Input should have rank >= 2, but received shape \[3\]$"):
        ops.run("SparseSoftmax", [longs([0]), np.float32([1]), longs(3)])
    assert ops.run("SparseSoftmax", [longs([0, 2]), np.float32([1]), longs(1, 3)]).tolist() == [1]
    with pytest.raises(errors.InvalidArgumentError, match="is out of bounds"):
        ops.run("SparseSoftmax", [longs([0, 3]), np.float32([1]), longs(1, 3)])
