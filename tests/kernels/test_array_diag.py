"""Diagonals and bands of matrices against np.diagonal: all bands of small matrices, alignments, sizes, refusals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from support.op_values import filled, ints, refused
from support.room import assert_wants
from tenfold_core import errors

F = np.float32
SHAPES = [(3, 3), (2, 4), (4, 2), (2, 1, 3), (2, 3, 2)]
ALIGNS = ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"]


def bands(shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """(lowest, highest) of every band of such matrices."""
    ks = range(1 - shape[-2], shape[-1])
    return [(low, high) for low, high in itertools.product(ks, ks) if low <= high]


def given(low: int, high: int) -> list[np.ndarray]:
    """The ways to say which diagonals."""
    return [ints(low, high)] if low < high else [ints(low, high), ints(low), ints(low).reshape(())]


def block_of(x: np.ndarray, low: int, high: int, align: str, padding: float) -> np.ndarray:
    above, below = align.split("_")
    found = {k: np.diagonal(x, k, -2, -1) for k in range(high, low - 1, -1)}
    width = max(each.shape[-1] for each in found.values())
    block = np.full((*x.shape[:-2], len(found), width), padding, x.dtype)
    for i, (k, each) in enumerate(found.items()):
        start = 0 if (above if k >= 0 else below) == "LEFT" else width - each.shape[-1]
        block[..., i, start : start + each.shape[-1]] = each
    return block if high > low else block[..., 0, :]


def in_band(shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
    offset = np.arange(shape[-1]) - np.arange(shape[-2])[:, None]
    return (low <= offset) & (offset <= high)


@pytest.mark.parametrize("align", ALIGNS)
@pytest.mark.parametrize("shape", SHAPES)
def test_bands_are_read_written_and_made(ops: Any, align: str, shape: tuple[int, ...]) -> None:
    x, other, side = filled(shape), filled(shape, start=50), {"align": align.encode()}
    rows, columns = shape[-2:]
    for low, high in bands(shape):
        keep, block, replaced = (
            in_band(shape, low, high),
            block_of(x, low, high, align, 9),
            block_of(other, low, high, align, 9),
        )
        for k in given(low, high):
            assert ops.run("MatrixDiagPartV3", [x, k, F(9)], **side).tolist() == block.tolist()
            assert ops.run("MatrixSetDiagV3", [x, replaced, k], **side).tolist() == np.where(keep, other, x).tolist()
            made = ops.run("MatrixDiagV3", [block, k, rows, columns, F(7)], **side)
            assert made.tolist() == np.where(keep, x, F(7)).tolist()


@pytest.mark.parametrize("shape", [(3, 3), (2, 4)])
def test_old_names_align_left_and_new_ones_right_then_left(ops: Any, shape: tuple[int, ...]) -> None:
    x, other = filled(shape), filled(shape, start=50)
    for version, align in (("V2", "LEFT_LEFT"), ("V3", "RIGHT_LEFT")):
        for low, high in bands(shape):
            k, keep, block = ints(low, high), in_band(shape, low, high), block_of(x, low, high, align, 0)
            assert ops.run(f"MatrixDiagPart{version}", [x, k, F(0)]).tolist() == block.tolist()
            set_ = ops.run(f"MatrixSetDiag{version}", [x, block_of(other, low, high, align, 0), k])
            assert set_.tolist() == np.where(keep, other, x).tolist()
            made = ops.run(f"MatrixDiag{version}", [block, k, *shape, F(0)])
            assert made.tolist() == np.where(keep, x, F(0)).tolist()


@pytest.mark.parametrize(
    ("k", "rows", "columns", "shape"),
    [
        (0, -1, -1, (3, 3)), (1, -1, -1, (4, 4)), (-1, -1, -1, (4, 4)), (1, -1, 4, (3, 4)), (1, 3, -1, (3, 4)),
        (1, 4, -1, (4, 4)), (-1, -1, 3, (4, 3)), (-1, -1, 4, (4, 4)), (-1, 4, -1, (4, 3)), (0, 3, 5, (3, 5)),
        (0, 5, 3, (5, 3)), (2, 3, 5, (3, 5)), (-2, 5, 3, (5, 3)),
    ],
)  # fmt: skip
def test_sizes_that_are_not_said_are_worked_out(ops: Any, k: int, rows: int, columns: int, shape: Any) -> None:
    diagonal = F([[1, 2, 3], [4, 5, 6]])
    wanted = np.zeros((2, *shape), F)
    for i in range(3):
        wanted[:, i - min(k, 0), i + max(k, 0)] = diagonal[:, i]

    found = ops.run("MatrixDiagV3", [diagonal, k, rows, columns, F(0)])

    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("band", "size"),
    [((-1, 1), (3, 3)), ((1, 2), (4, 4)), ((-2, -1), (4, 4)), ((0, 1), (3, 3)), ((-1, 0), (3, 3))],
)
def test_the_size_of_a_band_that_is_not_said(ops: Any, band: Any, size: Any) -> None:
    low, high = band
    block = np.zeros((high - low + 1, 3), F)
    block[:, :] = 1
    assert ops.run("MatrixDiagV2", [block, ints(low, high), -1, -1, F(0)]).shape == size


def test_diagonals_beyond_the_corners_are_left_out(ops: Any) -> None:
    x = filled((3, 3))
    block = block_of(x, -1, 2, "LEFT_LEFT", 0)
    higher = np.concatenate([np.full((3, 3), 8, F), block])
    lower = np.concatenate([block, np.full((3, 3), 8, F)])
    wanted = np.where(in_band((3, 3), -1, 2), x, 0).tolist()

    assert ops.run("MatrixDiagV2", [higher, ints(-1, 5), -1, -1, F(0)]).tolist() == wanted
    wanted = np.where(in_band((3, 3), -2, 2), np.where(in_band((3, 3), -1, 2), x, 8), 0).tolist()
    assert ops.run("MatrixDiagV2", [lower, ints(-4, 2), 3, 3, F(0)]).tolist() == wanted


PADDING = np.array([7], np.float32)


def test_a_vector_of_one_pads_as_a_scalar(ops: Any) -> None:
    assert ops.run("MatrixDiagPartV3", [filled((1, 2)), ints(0, 1), PADDING]).tolist() == [[2], [1]]
    assert ops.run("MatrixDiagV3", [F([1]), 1, -1, -1, PADDING]).tolist() == [[7, 1], [7, 7]]


@pytest.mark.parametrize(
    ("k", "text"),
    [
        ([0, 1, 2], "diag_index must have one or two elements, received tensor of shape [3]"),
        ([], "diag_index must have one or two elements, received tensor of shape [0]"),
        ([[0]], "diag_index must have one or two elements, received tensor of shape [1,1]"),
        ([1, 0], "lower_diag_index must not be larger than upper_diag_index: 1 > 0"),
    ],
)
def test_one_diagonal_or_the_ends_of_a_band(ops: Any, k: Any, text: str) -> None:
    x, which = filled((3, 3)), np.array(k, np.int32)
    refused(ops, "MatrixDiagPartV3", [x, which, F(0)], text)
    refused(ops, "MatrixSetDiagV3", [x, x[0], which], text)
    refused(ops, "MatrixDiagV3", [x, which, -1, -1, F(0)], text)


@pytest.mark.parametrize(
    ("k", "text"),
    [
        (-2, "lower_diag_index is out of bound: -2. It must be between -2 and 3"),
        (3, "lower_diag_index is out of bound: 3. It must be between -2 and 3"),
        ([-2, 0], "lower_diag_index is out of bound: -2. It must be between -2 and 3"),
        ([0, 3], "upper_diag_index is out of bound: 3. It must be between -2 and 3"),
    ],
)
def test_diagonals_that_the_matrices_do_not_have(ops: Any, k: Any, text: str) -> None:
    x, which = filled((2, 3)), np.array(k, np.int32)
    refused(ops, "MatrixDiagPartV3", [x, which, F(0)], text)
    refused(ops, "MatrixSetDiagV3", [x, x[0], which], text)


def test_a_column_has_no_diagonal_above_the_first(ops: Any) -> None:
    text = "lower_diag_index is out of bound: 1. It must be between -2 and 1"
    refused(ops, "MatrixDiagPartV3", [filled((2, 1)), 1, F(0)], text)


def test_empty_matrices_have_a_main_diagonal(ops: Any) -> None:
    assert ops.run("MatrixDiagPartV3", [filled((2, 0, 3)), 0, F(0)]).shape == (2, 0)
    assert ops.run("MatrixSetDiagV3", [filled((3, 0)), filled((0,)), 0]).shape == (3, 0)


@pytest.mark.parametrize(
    ("diagonal", "k", "rows", "columns", "text"),
    [
        (F(1), 0, -1, -1, "diagonal must be at least 1-dim, received shape: []"),
        (filled((3,)), [0, 1], -1, -1, "The number of diagonals provided in the input does not match"),
        (filled((3, 3)), [0, 1], -1, -1, "The number of diagonals provided in the input does not match"),
        (filled((3,)), -1, 3, -1, "The number of rows is too small."),
        (filled((3,)), 1, -1, 3, "The number of columns is too small."),
        (filled((3,)), 0, 2, 3, "The number of rows is too small."),
        (filled((3,)), 0, 3, 2, "The number of columns is too small."),
        (filled((3,)), 0, 4, 5, "The number of rows or columns is not consistent with the specified"),
        (filled((3,)), 0, [3], 3, "num_rows must be a scalar, got shape [1]"),
        (filled((3,)), 0, 3, [3], "num_cols must be a scalar, got shape [1]"),
    ],
)
def test_matrices_that_cannot_have_such_diagonals(
    ops: Any, diagonal: Any, k: Any, rows: Any, columns: Any, text: str
) -> None:
    refused(ops, "MatrixDiagV3", [diagonal, k, np.array(rows, np.int32), np.array(columns, np.int32), F(0)], text)


@pytest.mark.parametrize("padding", [np.ones(2, F), np.ones(0, F)])
def test_one_value_pads(ops: Any, padding: np.ndarray) -> None:
    text = f"padding_value must be a scalar, got shape [{padding.size}]"
    refused(ops, "MatrixDiagPartV3", [filled((2, 2)), 0, padding], text)
    refused(ops, "MatrixDiagV3", [filled((2,)), 0, -1, -1, padding], text)


@pytest.mark.parametrize(
    ("shape", "k", "expected"),
    [
        ((2,), 0, "[2,2]"),
        ((2, 3), 0, "[2,2]"),
        ((2, 2, 2), 0, "[2,2]"),
        ((2, 2), [0, 1], "[2,2,2]"),
        ((3, 2), 0, "[2,2]"),
    ],
)
def test_there_is_a_diagonal_for_each_that_is_replaced(ops: Any, shape: Any, k: Any, expected: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as raised:
        ops.run("MatrixSetDiagV3", [filled((2, 2, 3)), filled(shape), k])
    assert raised.value.message.endswith(f"\nExpected diagonal shape: {expected}")


@pytest.mark.parametrize(
    ("op", "rest"),
    [
        ("MatrixDiagPartV3", [0, F(0)]),
        ("MatrixSetDiagV3", [F([1]), 0]),
        ("MatrixDiagPart", []),
        ("MatrixSetDiag", [F([1])]),
        ("MatrixBandPart", [0, 0]),
    ],
)
def test_matrices_have_two_dimensions(ops: Any, op: str, rest: list[Any]) -> None:
    refused(ops, op, [filled((3,)), *rest], "input must be at least 2-dim, received shape: [3]")


def test_what_diagonals_take_is_asked_for(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = filled((2, 3, 4))
    assert_wants(monkeypatch, 2 * 3 * 4 * 4, lambda: ops.run("MatrixDiagV3", [x[..., :3], ints(-1, 1), 3, 4, F(0)]))
    assert_wants(monkeypatch, 2 * 7 * 3 * 5 * 4, lambda: ops.run("MatrixDiagV3", [filled((2, 7, 3)), 0, 3, 5, F(0)]))
    assert_wants(monkeypatch, 2 * 4 * 3 * 4, lambda: ops.run("MatrixDiagPartV3", [x, ints(-1, 2), F(0)]))
    band = filled((2, 4, 3))
    assert_wants(monkeypatch, 2 * 4 * 3 * 4, lambda: ops.run("MatrixSetDiagV3", [x, band, ints(-1, 2)]))
    assert_wants(monkeypatch, 6 * 6 * 4 * 2, lambda: ops.run("Diag", [filled((2, 3))]))
    assert_wants(monkeypatch, 2 * 3 * 5 * 5 * 4, lambda: ops.run("MatrixDiag", [filled((2, 3, 5))]))


# -- the old ops -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1, 2), (0,), (2, 0)])
def test_a_diagonal_of_any_rank(ops: Any, shape: tuple[int, ...]) -> None:
    x = filled(shape)
    wanted = np.zeros(shape + shape, F)
    for place in np.ndindex(shape):
        wanted[place + place] = x[place]

    whole = ops.run("Diag", [x])

    assert (whole.shape, whole.tolist()) == (wanted.shape, wanted.tolist())
    part = ops.run("DiagPart", [whole])
    assert (part.shape, part.tolist()) == (x.shape, x.tolist())


def test_what_has_no_such_diagonal(ops: Any) -> None:
    refused(ops, "Diag", [F(1)], "Input must be at least rank 1, got 0")
    refused(ops, "MatrixDiag", [F(1)], "input must be at least 1-dim, received shape: []")
    for shape in ((), (3,), (2, 3), (2, 2, 2), (2, 3, 3, 2)):
        text = f"The rank of the tensor should be even and its halves equal, got shape [{','.join(map(str, shape))}]"
        refused(ops, "DiagPart", [filled(shape)], text)


@pytest.mark.parametrize("prefix", ["", "Batch"])
@pytest.mark.parametrize("dtype", [np.float32, np.bool_, object])
@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 4), (2, 4, 2), (0, 2)])
def test_main_diagonals_of_matrices(ops: Any, prefix: str, dtype: Any, shape: tuple[int, ...]) -> None:
    x, other = filled(shape, dtype, start=1), filled(shape, dtype, start=50)
    diagonal = np.diagonal(other, 0, -2, -1)

    assert ops.run(f"{prefix}MatrixDiagPart", [other]).tolist() == diagonal.tolist()
    set_ = ops.run(f"{prefix}MatrixSetDiag", [x, diagonal])
    assert set_.tolist() == np.where(in_band(shape, 0, 0), other, x).tolist()
    made = ops.run(f"{prefix}MatrixDiag", [diagonal])
    size = diagonal.shape[-1]
    wanted = np.full((*diagonal.shape, size), b"" if dtype is object else 0, dtype)
    for i in range(size):
        wanted[..., i, i] = diagonal[..., i]
    assert (made.shape, made.tolist()) == (wanted.shape, wanted.tolist())


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1), (2,), (1, 2)])
def test_a_main_diagonal_has_the_shorter_length(ops: Any, shape: Any) -> None:
    received = ",".join(map(str, shape))
    text = f"must have diagonal.shape == [2,2], received diagonal shape: [{received}]"
    refused(ops, "MatrixSetDiag", [filled((2, 2, 3)), filled(shape)], text)
    refused(ops, "MatrixSetDiag", [filled((2, 3, 2)), filled(shape)], text)


@pytest.mark.parametrize("prefix", ["", "Batch"])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, object])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (2, 2, 3)])
def test_bands_that_are_kept(ops: Any, prefix: str, dtype: Any, shape: tuple[int, ...]) -> None:
    x, nothing = filled(shape, dtype, start=1), b"" if dtype is object else 0
    rows, columns = shape[-2:]
    for low, high in itertools.product(range(-1, rows + 1), range(-1, columns + 1)):
        keep = in_band(shape, -low if low >= 0 else -rows, high if high >= 0 else columns)
        wanted = np.where(keep, x, np.array(nothing, dtype)).tolist()
        assert ops.run(f"{prefix}MatrixBandPart", [x, np.int64(low), np.int64(high)]).tolist() == wanted


def test_how_many_are_kept_is_at_most_the_size(ops: Any) -> None:
    x = filled((2, 3))
    text = "num_lower and num_upper must be at most the matrix's size, got "
    refused(ops, "MatrixBandPart", [x, 3, 0], f"{text}3 and 0")
    refused(ops, "MatrixBandPart", [x, 0, 4], f"{text}0 and 4")
    refused(ops, "MatrixBandPart", [x, ints(0), 0], "num_lower must be a scalar, got shape [1]")
    refused(ops, "MatrixBandPart", [x, 0, ints(0)], "num_upper must be a scalar, got shape [1]")
