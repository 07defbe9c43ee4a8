"""Sparse tensors: put in order, reshaped, cut, joined, added to dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op
from tenfold_core import errors
from tenfold_kernels.cpu import sparse
from tenfold_kernels.cpu._compiled import sparse_places

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


# ---- what goes together, and where an index may lie ------------------------------------------------------------------


def longs(*values: Any) -> Any:
    return np.array(values, np.int64)


REORDER = "SparseReorder"


@pytest.mark.parametrize(
    ("indices", "values", "shape", "text"),
    [
        (longs(0, 1), VALUES, SHAPE, r"^Input indices should be a matrix but received shape \[2\]$"),
        (INDICES, VALUES[None], SHAPE, r"^Input values should be a vector but received shape \[1,2\]$"),
        (INDICES, VALUES, SHAPE[None], r"^Input shape should be a vector but received shape \[1,2\]$"),
        (INDICES, VALUES[:1], SHAPE, r"^Number of elements in indices \(2\) and values \(1\) do not match$"),
        (INDICES, VALUES, longs(3, 2, 1), r"^Index rank \(2\) and shape rank \(3\) do not match$"),
        (INDICES, VALUES, longs(3, -1), r"^Dense shape must not be negative: \[3,-1\]$"),
        (INDICES, VALUES, longs(1 << 31, (1 << 31) + 1), r"^Dense shape \[.*\] has too many elements$"),
        (INDICES, VALUES, longs(1 << 62, 2), r"^Dense shape \[.*\] has too many elements$"),
    ],
)
def test_parts_that_do_not_go_together(ops: Any, indices: Any, values: Any, shape: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(REORDER, [indices, values, shape])


@pytest.mark.parametrize("shape", [longs(1 << 31, 1 << 31), longs(1 << 62, 0), longs(0, 0), longs(0, 1 << 62)])
def test_shapes_of_as_many_places_as_there_may_be(ops: Any, shape: Any) -> None:
    indices, values = ops.run(REORDER, [np.zeros((0, 2), np.int64), VALUES[:0], shape])
    assert (indices.shape, values.shape) == ((0, 2), (0,))


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("place", [[3, 0], [2, 2], [-1, 0], [0, -1]])
def test_the_first_place_outside_is_named(ops: Any, index: Any, place: list[int]) -> None:
    """A whole number of 32 bits is not looked at as one without a sign."""
    inputs = [np.array([[2, 1], place, [9, 9]], index), np.float32([1, 2, 3]), np.array([3, 2], index)]
    axis = 0 if place[0] in (3, -1) else 1
    text = rf"on dimension {axis}: a_indices\(1,{axis}\) = {place[axis]}, dense tensor shape: \[3,2\]$"
    with pytest.raises(errors.InvalidArgumentError, match=r"^Sparse tensor has an invalid index " + text):
        ops.run("SparseTensorDenseAdd", [*inputs, np.zeros((3, 2), np.float32)])
    if index is np.int64:
        found = rf"^indices\[1\] = \[{place[0]},{place[1]}\] is out of bounds: need 0 <= index < \[3,2\]$"
        with pytest.raises(errors.InvalidArgumentError, match=found):
            ops.run("SparseConcat", [inputs[0]] * 2 + [inputs[1]] * 2 + [inputs[2]] * 2, N=2, concat_dim=0)


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ([INDICES, VALUES[:1], SHAPE, np.zeros((3, 2))], r"^Dimensions 2 and 1 are not compatible$"),
        ([INDICES, VALUES, SHAPE[:1], np.zeros((3, 2))], r"^Dimensions 2 and 1 are not compatible$"),
        ([INDICES, VALUES, SHAPE, np.zeros(3)], r"^Two operands have different ranks; received: 2 and 1$"),
        (
            [INDICES, VALUES, SHAPE, np.zeros((3, 4))],
            r"^Dimension 1 does not equal \(no broadcasting is supported\): sparse side 2 vs dense side 4$",
        ),
        (
            [INDICES, VALUES, SHAPE, np.zeros((1, 4))],
            r"^Dimension 0 does not equal \(no broadcasting is supported\): sparse side 3 vs dense side 1$",
        ),
        ([INDICES[0], VALUES, SHAPE, np.zeros((3, 2))], r"^Input indices should be a matrix"),
        ([INDICES, VALUES[None], SHAPE, np.zeros((3, 2))], r"^Input values should be a vector"),
        ([INDICES, VALUES, SHAPE[None], np.zeros((3, 2))], r"^Input shape should be a vector"),
    ],
)
def test_what_cannot_be_added_to_a_dense_tensor(ops: Any, inputs: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("SparseTensorDenseAdd", [*inputs[:3], inputs[3].astype(np.float32)])


def test_whole_numbers_of_32_bits_in_three_dimensions(ops: Any) -> None:
    inputs = [np.int32([[0, 1, 2], [1, 0, 0]]), VALUES, np.int32([2, 2, 3]), np.zeros((2, 2, 3), np.float32)]
    found = ops.run("SparseTensorDenseAdd", inputs)
    assert (found[0, 1, 2], found[1, 0, 0], found.sum()) == (5, 7, 12)


def test_values_at_one_place_are_added_up(ops: Any) -> None:
    dense_one = np.ones((3, 2), np.float32)
    found = ops.run("SparseTensorDenseAdd", [longs([2, 0], [2, 0]), VALUES, SHAPE, dense_one])
    assert found.tolist() == [[1, 1], [1, 1], [13, 1]]
    assert dense_one.tolist() == [[1, 1]] * 3


def test_places_outside_are_put_in_order_too(ops: Any) -> None:
    """By their numbers where all lie inside, dimension by dimension where one does not; equal ones keep theirs."""
    indices = longs([5, 0], [0, 9], [0, 1], [5, 0], [0, 1], [-1, 3])
    found, values = ops.run(REORDER, [indices, np.arange(6, dtype=np.float32), SHAPE])
    assert found.tolist() == [[-1, 3], [0, 1], [0, 1], [0, 9], [5, 0], [5, 0]]
    assert values.tolist() == [5, 2, 4, 1, 0, 3]
    inside, values = ops.run(REORDER, [indices[:4] % 2, np.arange(4, dtype=np.float32), SHAPE])
    assert inside.tolist() == [[0, 1], [0, 1], [1, 0], [1, 0]]
    assert values.tolist() == [1, 2, 0, 3]


# ---- products --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "b", "text"),
    [
        (longs(3), np.ones((2, 2)), r"^Tensor 'a_shape' must have 2 elements, got shape \[1\]$"),
        (longs(3, 2, 1), np.ones((2, 2)), r"^Tensor 'a_shape' must have 2 elements, got shape \[3\]$"),
        (longs([3, 2]), np.ones((2, 2)), r"^Tensor 'a_shape' must have 2 elements, got shape \[1,2\]$"),
        (SHAPE, np.ones(2), r"^Tensor 'b' is not a matrix: \[2\]$"),
        (
            SHAPE,
            np.ones((3, 4)),
            r"^Cannot multiply A and B because inner dimension does not match: 2 vs\. 3\.  Did you forget a "
            r"transpose\?  Dimensions of A: \[3,2\]\.  Dimensions of B: \[3,4\]$",
        ),
        (longs(1, 2), np.ones((3, 4)), r"^indices\[1\] = \[2,0\] is out of bounds"),
    ],
)
def test_what_cannot_be_multiplied(ops: Any, shape: Any, b: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("SparseTensorDenseMatMul", [INDICES, VALUES, shape, b.astype(np.float32)])


@pytest.mark.parametrize("turned", [False, True])
def test_products_of_nothing(ops: Any, turned: bool) -> None:
    none = [np.zeros((0, 2), np.int64), np.zeros(0, np.float32)]
    for rows, inner, columns in ((3, 2, 4), (0, 2, 4), (3, 0, 4), (3, 2, 0)):
        shape = longs(inner, rows) if turned else longs(rows, inner)
        found = ops.run("SparseTensorDenseMatMul", [*none, shape, np.ones((inner, columns), np.float32)],
                        adjoint_a=turned)  # fmt: skip
        assert (found.shape, found.dtype, found.any()) == ((rows, columns), np.float32, False)


def test_nothing_lies_in_a_matrix_without_rows_or_columns(ops: Any) -> None:
    for shape, turned in ((longs(0, 2), False), (longs(3, 0), False), (longs(0, 2), True), (longs(3, 0), True)):
        b = np.ones((int(shape[0 if turned else 1]), 3), np.float32)
        with pytest.raises(errors.InvalidArgumentError, match=r"^indices\[0\] = \[0,0\] is out of bounds"):
            ops.run("SparseTensorDenseMatMul", [longs([0, 0]), VALUES[:1], shape, b], adjoint_a=turned)


def test_memory_for_a_product_is_asked_for_first(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(sparse, "allow", lambda dims, dtype, times=1: asked.append((dims, np.dtype(dtype), times)))
    ops.run("SparseTensorDenseMatMul", [INDICES, VALUES, SHAPE, np.ones((2, 5), np.float32)])
    ops.run("SparseTensorDenseMatMul", [INDICES, VALUES, SHAPE, np.ones((3, 5), np.float16).astype(np.float32)],
            adjoint_a=True)  # fmt: skip
    ops.run("SparseFillEmptyRows", [INDICES, VALUES, longs(4, 2), np.float32(0)])
    assert asked == [((3, 5), np.float32, 1), ((2, 5), np.float32, 1), ((4, 2), np.int64, 3)]


def test_a_matrix_that_changes_meanwhile_is_refused(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "multiplier", lambda *types: lambda *operands: 1)
    with pytest.raises(errors.InvalidArgumentError, match=r"^indices\[1\] of the sparse matrix changed while it was"):
        ops.run("SparseTensorDenseMatMul", [INDICES, VALUES, SHAPE, np.ones((2, 2), np.float32)])
    monkeypatch.setattr(sparse, "multiplier", lambda *types: lambda *operands: 0)
    with pytest.raises(errors.InvalidArgumentError, match=r"^indices\[0\] of the sparse matrix changed while it was"):
        ops.run("SparseTensorDenseMatMul", [INDICES, VALUES, SHAPE, np.ones((2, 2), np.float32)])


# ---- other shapes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (longs(-1, -1, 2), "^only one output dimension may be -1, not both 0 and 1$"),
        (longs(6, -1, 1, -1), "^only one output dimension may be -1, not both 1 and 3$"),
        (longs(-2, 3), r"^size must not be negative: \[-2,3\]$"),
        (
            longs(5, -1),
            r"^Input to reshape is a SparseTensor with 6 dense values, but the requested shape requires a multiple of "
            r"5\. input_shape=\[3,2\] output_shape=\[5,-1\]$",
        ),
        (
            longs(7),
            r"^Input to reshape is a tensor with 6 dense values, but the requested shape has 7\. "
            r"input_shape=\[3,2\] output_shape=\[7\]$",
        ),
        (longs(-1, 0), "^reshape cannot infer the missing input size for an empty tensor"),
    ],
)
def test_shapes_that_cannot_be(ops: Any, wanted: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("SparseReshape", [INDICES, SHAPE, wanted])


def test_reshape_wants_a_matrix_of_places_inside(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^Input indices should be a matrix .* \[2\]$"):
        ops.run("SparseReshape", [longs(0, 1), SHAPE, longs(6)])
    for place in ([3, 0], [0, 2], [0, -1]):
        for number, indices in enumerate((longs(place, [0, 1]), longs([0, 1], place))):
            with pytest.raises(errors.InvalidArgumentError, match=rf"^indices\[{number}\] = .* is out of bounds"):
                ops.run("SparseReshape", [indices, SHAPE, longs(6)])
    for wanted in (longs(2, 3), longs(-1), longs(1, 6, -1), longs(6)):
        indices, shape = ops.run("SparseReshape", [INDICES, SHAPE, wanted])
        assert np.prod(shape) == 6
        assert indices.tolist() == np.stack(np.unravel_index([1, 4], shape.tolist()), 1).tolist()
    indices, shape = ops.run("SparseReshape", [np.zeros((0, 2), np.int64), longs(0, 3), longs(-1, 5)])
    assert (indices.shape, shape.tolist()) == ((0, 2), [0, 5])


# ---- joined, cut, split ----------------------------------------------------------------------------------------------


def joined(ops: Any, axis: int, *parts: list[Any]) -> Any:
    return ops.run("SparseConcat", [each[i] for i in range(3) for each in parts], N=len(parts), concat_dim=axis)


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_three_are_joined_in_their_order(ops: Any, axis: int) -> None:
    """Places are in order afterwards, and of equal ones those of the first tensor come first."""
    one = [INDICES, VALUES, SHAPE]
    other = [longs([0, 0], [0, 0]), np.float32([1, 2]), SHAPE]
    found = joined(ops, axis, one, other, one)
    size = 3 if axis % 2 == 0 else 2
    entries = []
    for number, (indices, values, _) in enumerate((one, other, one)):
        for place, value in zip(indices.tolist(), values.tolist(), strict=True):
            place[axis] += number * size
            entries.append((place, value))
    entries.sort(key=lambda entry: entry[0])
    assert found[0].tolist() == [place for place, _ in entries]
    assert found[1].tolist() == [value for _, value in entries]
    assert found[2].tolist() == ([9, 2] if axis % 2 == 0 else [3, 6])


@pytest.mark.parametrize(
    ("axis", "shapes", "text"),
    [
        (2, [SHAPE, SHAPE], r"^Concat dimension must be in range \[-2, 2\), got 2$"),
        (-3, [SHAPE, SHAPE], r"^Concat dimension must be in range \[-2, 2\), got -3$"),
        (
            0,
            [SHAPE, longs(3, 4)],
            r"^Input shapes must match: expected \[3,2\] but got \[3,4\] at position 1$",
        ),
        (
            1,
            [SHAPE, SHAPE, longs(4, 2)],
            r"^Input shapes must match: expected \[3,2\] but got \[4,2\] at position 2$",
        ),
    ],
)
def test_what_cannot_be_joined(ops: Any, axis: int, shapes: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        joined(ops, axis, *([INDICES, VALUES, shape] for shape in shapes))


def test_tensors_of_other_ranks_are_not_joined(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"expected \[3,2\] but got \[3\] at position 1$"):
        joined(ops, 0, [INDICES, VALUES, SHAPE], [longs([0], [2]), VALUES, longs(3)])
    assert joined(ops, 0, [INDICES, VALUES, SHAPE], [INDICES, VALUES, longs(4, 2)])[2].tolist() == [7, 2]


@pytest.mark.parametrize(
    ("start", "size", "text"),
    [
        (longs(0), longs(1, 1), r"^Expected start and size to be vectors of length 2, got \[1\] and \[2\]$"),
        (longs(0, 0), longs(1), r"^Expected start and size to be vectors of length 2, got \[2\] and \[1\]$"),
        (longs(0, 0), longs(1, -1), r"^size must not be negative, got \[1,-1\]$"),
    ],
)
def test_slices_that_cannot_be(ops: Any, start: Any, size: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("SparseSlice", [INDICES, VALUES, SHAPE, start, size])


def test_the_ends_of_a_slice(ops: Any) -> None:
    """The first place is in it, the one behind its last is not; a slice beyond the shape is empty."""
    sparse_row = [longs([0], [1], [2], [3]), np.float32([1, 2, 3, 4]), longs(4)]
    for start, size, places, values, shape in (
        (1, 2, [[0], [1]], [2, 3], [2]),
        (0, 0, [], [], [0]),
        (3, 1, [[0]], [4], [1]),
        (4, 2, [], [], [0]),
        (5, 2, [], [], [0]),
        (0, 4, [[0], [1], [2], [3]], [1, 2, 3, 4], [4]),
        (0, 9, [[0], [1], [2], [3]], [1, 2, 3, 4], [4]),
    ):
        found = ops.run("SparseSlice", [*sparse_row, longs(start), longs(size)])
        assert [each.tolist() for each in found] == [places, values, shape]
    # all dimensions count
    found = ops.run("SparseSlice", [INDICES, VALUES, SHAPE, longs(0, 1), longs(3, 1)])
    assert [each.tolist() for each in found] == [[[0, 0]], [5], [3, 1]]


def test_the_gradient_of_a_slice(ops: Any) -> None:
    gradient, kept = np.float32([10, 20]), longs([0, 0], [1, 1])
    found = ops.run("SparseSliceGrad", [gradient, longs([0, 0], [1, 2], [2, 3]), longs(1, 2), kept])
    assert found.tolist() == [0, 10, 20]


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        (
            [VALUES[None], INDICES, longs(0, 0), INDICES],
            r"^backprop_val_grad must be of rank 1, got shape \[1,2\]$",
        ),
        ([VALUES, longs(0, 1), longs(0, 0), INDICES], r"^input_indices must be of rank 2, got shape \[2\]$"),
        ([VALUES, INDICES, longs([0, 0]), INDICES], r"^input_start must be of rank 1, got shape \[1,2\]$"),
        ([VALUES, INDICES, longs(0, 0), longs(0, 1)], r"^output_indices must be of rank 2, got shape \[2\]$"),
        (
            [VALUES[:1], INDICES, longs(0, 0), INDICES],
            r"^# of gradients \(1\), output_indices \[2,2\], input_indices \[2,2\] and input_start \[2\] do not go",
        ),
        ([VALUES, INDICES, longs(0), INDICES], r"^# of gradients \(2\).* input_start \[1\] do not go together$"),
        ([VALUES, INDICES[:, :1], longs(0, 0), INDICES], r"^# of gradients .*input_indices \[2,1\] and"),
        ([VALUES, INDICES, longs(0, 0), INDICES[:, :1]], r"^# of gradients \(2\), output_indices \[2,1\]"),
    ],
)
def test_gradients_of_slices_that_cannot_be(ops: Any, inputs: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("SparseSliceGrad", inputs)


@pytest.mark.parametrize("axis", [1, -1])
def test_a_split_gives_the_first_ones_what_is_left(ops: Any, axis: int) -> None:
    indices, values = longs([0, 0], [0, 4], [1, 2], [1, 3]), np.float32([1, 2, 3, 4])
    found = ops.run("SparseSplit", [longs(axis)[0], indices, values, longs(2, 5)], num_split=3)
    assert [each.tolist() for each in found] == [
        [[0, 0]], [[1, 0], [1, 1]], [[0, 0]],
        [1], [3, 4], [2],
        [2, 2], [2, 2], [2, 1],
    ]  # fmt: skip
    whole = ops.run("SparseSplit", [longs(0)[0], indices, values, longs(2, 5)], num_split=1)
    assert [each.tolist() for each in whole] == [indices.tolist(), values.tolist(), [2, 5]]
    assert len(ops.run("SparseSplit", [longs(axis)[0], indices, values, longs(2, 5)], num_split=5)) == 15
    assert indices.tolist() == [[0, 0], [0, 4], [1, 2], [1, 3]]


@pytest.mark.parametrize(
    ("axis", "count", "text"),
    [
        (2, 1, r"^Input split_dim should be between \[-2, 2\), got 2$"),
        (-3, 1, r"^Input split_dim should be between \[-2, 2\), got -3$"),
        (0, 4, r"^Input num_split should be between 1 and the splitting dimension size \(3\), got 4$"),
        (0, 0, r"^Input num_split should be between 1 and the splitting dimension size \(3\), got 0$"),
    ],
)
def test_splits_that_cannot_be(ops: Any, axis: int, count: int, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("SparseSplit", [np.array(axis, np.int64), INDICES, VALUES, SHAPE], num_split=count)


def test_the_dimension_of_a_split_is_one_number(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^Input split_dim must be a scalar, got shape \[1\]$"):
        ops.run("SparseSplit", [longs(0), INDICES, VALUES, SHAPE], num_split=1)


# ---- rows to fill ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ([INDICES, VALUES, SHAPE, np.float32([0])], r"^default_value must be a scalar, saw: \[1\]$"),
        (
            [np.zeros((2, 0), np.int64), VALUES, longs(), np.float32(0)],
            r"^Dense shape cannot be empty\.$",
        ),
        ([longs(0, 1), VALUES, SHAPE, np.float32(0)], "^Input indices should be a matrix"),
        ([INDICES, VALUES, longs([3, 2]), np.float32(0)], "^Input shape should be a vector"),
        ([INDICES, VALUES, longs(), np.float32(0)], r"^Index rank \(2\) and shape rank \(0\) do not match$"),
        ([longs([0, 1], [-1, 0]), VALUES, SHAPE, np.float32(0)], r"^indices\(1, 0\) is invalid: -1 >= 3$"),
        ([longs([0, 1], [-1, 0]), VALUES[:1], SHAPE, np.float32(0)], r"^indices\(1, 0\) is invalid: -1 >= 3$"),
        ([longs([0, 1], [2, -1]), VALUES, SHAPE, np.float32(0)], r"^indices\[1\] = \[2,-1\] is out of bounds"),
        (
            [np.zeros((2, 0), np.int64), VALUES, longs(3), np.float32(0)],
            r"^Index rank \(0\) and shape rank \(1\) do not match$",
        ),
    ],
)
def test_rows_that_cannot_be_filled(ops: Any, inputs: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("SparseFillEmptyRows", inputs)


def test_rows_that_change_meanwhile_are_refused(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for told, named in ((0, 0), (1, 1), (2, 1)):
        monkeypatch.setattr(sparse_places, "fill_rows", lambda told=told: lambda *given: told)
        with pytest.raises(errors.InvalidArgumentError, match=rf"^indices\({named}, 0\) was written to while the rows"):
            ops.run("SparseFillEmptyRows", [INDICES, VALUES, longs(4, 2), np.float32(0)])


def test_numbers_fill_rows_too(ops: Any) -> None:
    found = ops.run("SparseFillEmptyRows", [np.zeros((0, 2), np.int64), VALUES[:0], longs(2, 3), np.float32(9)])
    assert [each.tolist() for each in found] == [[[0, 0], [1, 0]], [9, 9], [True, True], []]
    found = ops.run("SparseFillEmptyRows", [np.zeros((0, 2), np.int64), VALUES[:0], longs(0, 3), np.float32(9)])
    assert [each.tolist() for each in found] == [[], [], [], []]
    word = np.array(b"?", object)
    found = ops.run("SparseFillEmptyRows", [np.zeros((0, 2), np.int64), np.empty(0, object), longs(1, 3), word])
    assert [type(value) for value in found[1]] == [bytes]


def test_rows_of_a_ragged_tensor(ops: Any) -> None:
    found = ops.run("RaggedFillEmptyRows", [longs(0, 2, 2), np.float32([1, 2, 3]), longs(4)[0], np.float32(9)])
    assert [each.tolist() for each in found] == [
        [0, 1, 2, 2, 3],
        [1, 9, 2, 3, 9],
        [False, True, False, True],
        [0, 2, 3],
    ]
    assert found[0].flags.c_contiguous
    with pytest.raises(errors.InvalidArgumentError, match=r"^Input value_rowids should be a vector .* \[1,2\]$"):
        ops.run("RaggedFillEmptyRows", [longs([0, 1]), VALUES, longs(4)[0], np.float32(9)])
    with pytest.raises(errors.InvalidArgumentError, match=r"^nrows must be a scalar, saw: \[1\]$"):
        ops.run("RaggedFillEmptyRows", [longs(0, 1), VALUES, longs(4), np.float32(9)])


@pytest.mark.parametrize("op", ["SparseFillEmptyRowsGrad", "RaggedFillEmptyRowsGrad"])
def test_the_gradient_of_filled_rows(ops: Any, op: str) -> None:
    found = ops.run(op, [longs(3, 0), np.float32([1, 2, 4, 8])])
    assert [each.tolist() for each in found] == [[8, 1], 6]
    found = ops.run(op, [longs(), np.float32([1, 2])])
    assert [each.tolist() for each in found] == [[], 3]
    for wrong in (-1, 2):
        with pytest.raises(errors.InvalidArgumentError, match=r"^Elements in reverse index must be in \[0, 2\)$"):
            ops.run(op, [longs(0, wrong), VALUES])
    for back, gradient, shapes in (
        (longs([0]), VALUES, r"\[1,1\] and \[2\]"),
        (longs(0), VALUES[None], r"\[1\] and \[1,2\]"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=rf"^reverse_index_map and .* got shapes {shapes}$"):
            ops.run(op, [back, gradient])
