"""Set operations of sparse tensors, counts of their rows, crossed features: against Python's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu import sparse_sets


def longs(value: Any) -> np.ndarray[Any, Any]:
    return np.array(value, np.int64)


FIRST = [longs([[0, 0], [0, 1], [2, 0]]), np.array([5, 1, 3], np.int32), longs([3, 2])]
SECOND = [longs([[0, 0], [1, 0], [2, 4]]), np.array([1, 9, 3], np.int32), longs([3, 5])]
ROWS = [({5, 1}, {1}), (set(), {9}), ({3}, {3})]
MEET: dict[str, Any] = {"a-b": lambda a, b: a - b, "b-a": lambda a, b: b - a, "intersection": lambda a, b: a & b,
                        "union": lambda a, b: a | b}  # fmt: skip


@pytest.mark.parametrize("operation", MEET)
def test_sets_of_rows(ops: Any, operation: str) -> None:
    wanted = [sorted(MEET[operation](a, b)) for a, b in ROWS]
    indices, values, shape = ops.run("SparseToSparseSetOperation", [*FIRST, *SECOND], set_operation=operation)
    assert values.tolist() == [v for row in wanted for v in row]
    assert indices.tolist() == [[r, at] for r, row in enumerate(wanted) for at in range(len(row))]
    assert shape.tolist() == [3, max(map(len, wanted))]

    dense = np.array([[5, 1], [7, 7], [3, 3]], np.int32)
    wanted = [sorted(MEET[operation](set(a), b)) for a, (_, b) in zip(dense.tolist(), ROWS, strict=True)]
    _, values, _ = ops.run("DenseToSparseSetOperation", [dense, *SECOND], set_operation=operation)
    assert values.tolist() == [v for row in wanted for v in row]


def test_sets_that_do_not_fit(ops: Any) -> None:
    backwards = [SECOND[0][::-1].copy(), SECOND[1], SECOND[2]]
    with pytest.raises(errors.InvalidArgumentError, match="out of order"):
        ops.run("SparseToSparseSetOperation", [*FIRST, *backwards], set_operation="union")
    with pytest.raises(errors.InvalidArgumentError, match=r"Mismatched group shapes \[3\] vs \[4\]"):
        ops.run("SparseToSparseSetOperation", [*FIRST, *SECOND[:2], longs([4, 5])], set_operation="union")


def test_sizes_of_sets(ops: Any) -> None:
    """Each value of a row counts once; a row without any has none."""
    indices = longs([[0, 0, 0], [0, 0, 1], [0, 0, 2], [1, 1, 0], [1, 1, 4]])
    found = ops.run("SetSize", [indices, np.array([7, 8, 7, 9, 9], np.int32), longs([2, 3, 5])])
    assert found.tolist() == [[2, 0, 0], [0, 1, 0]]
    assert ops.run("SetSize", [indices[:, 2:], np.array([7, 8, 7, 9, 9], np.int32), longs([5])]).tolist() == 3


def test_memory_for_sizes_is_asked_for_first(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(sparse_sets, "allow", lambda dims, dtype: asked.append((tuple(dims), dtype)))
    ops.run("SetSize", [longs([[0, 0, 0]]), np.array([7], np.int32), longs([2, 3, 5])])
    assert asked == [((2, 3), np.int32)]


def test_sets_of_dense_rows(ops: Any) -> None:
    first = np.array([[[4, 1, 4], [2, 2, 2]], [[9, 8, 7], [0, 0, 1]]], np.int64)
    second = np.array([[[1, 3], [5, 5]], [[7, 9], [2, 3]]], np.int64)
    for operation, meet in MEET.items():
        rows = [sorted(meet(set(a), set(b))) for a, b in zip(first.reshape(4, 3), second.reshape(4, 2), strict=True)]
        indices, values, shape = ops.run("DenseToDenseSetOperation", [first, second], set_operation=operation.upper())
        assert values.tolist() == [v for row in rows for v in row]
        assert indices.tolist() == [[r // 2, r % 2, at] for r, row in enumerate(rows) for at in range(len(row))]
        assert shape.tolist() == [2, 2, max(map(len, rows))]


def test_sets_of_rows_in_several_groups(ops: Any) -> None:
    dense = np.array([[[4, 1], [2, 2]], [[9, 8], [0, 5]]], np.int32)
    sparse = [longs([[0, 1, 0], [1, 0, 2], [1, 1, 1]]), np.array([2, 7, 5], np.int32), longs([2, 2, 3])]
    indices, values, shape = ops.run("DenseToSparseSetOperation", [dense, *sparse], set_operation="a-b")
    assert (values.tolist(), shape.tolist()) == ([1, 4, 8, 9, 0], [2, 2, 2])
    assert indices.tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1], [1, 1, 0]]
    indices, values, shape = ops.run("SparseToSparseSetOperation", [*sparse, *sparse], set_operation="union")
    assert (values.tolist(), shape.tolist()) == ([2, 7, 5], [2, 2, 1])
    assert indices.tolist() == [[0, 1, 0], [1, 0, 0], [1, 1, 0]]


def test_sets_of_nothing(ops: Any) -> None:
    none = [np.zeros((0, 2), np.int64), np.zeros(0, np.int32), longs([3, 2])]
    indices, values, shape = ops.run("SparseToSparseSetOperation", [*none, *none], set_operation="union")
    assert (indices.shape, values.shape, shape.tolist()) == ((0, 2), (0,), [3, 0])
    words = np.array([[b"b", b"a"]], object)
    _, values, _ = ops.run("DenseToDenseSetOperation", [words, words], set_operation="intersection")
    assert values.tolist() == [b"a", b"b"]


DENSE = np.array([[5, 1], [7, 7], [3, 3]], np.int32)
REPEATED = [longs([[0, 1], [0, 1]]), np.array([4, 5], np.int32), longs([3, 2])]


@pytest.mark.parametrize(
    ("op", "inputs", "operation", "text"),
    [
        ("DenseToDenseSetOperation", [DENSE, DENSE[:2]], "union", r"^Mismatched group shapes \[3\] vs \[2\]\.$"),
        ("DenseToDenseSetOperation", [DENSE[0], DENSE[0]], "union", r"^Mismatched group shapes \[\] vs \[\]"),
        ("DenseToDenseSetOperation", [DENSE, DENSE], "a*b", r"^Invalid set_operation a\*b\.$"),
        ("DenseToSparseSetOperation", [DENSE[:2], *FIRST], "union", r"^Mismatched group shapes \[2\] vs \[3\]"),
        ("DenseToSparseSetOperation", [DENSE, *REPEATED], "union", r"^indices \[0, 1\] is repeated\.$"),
        ("SparseToSparseSetOperation", [*REPEATED, *FIRST], "union", r"^indices \[0, 1\] is repeated\.$"),
        (
            "SparseToSparseSetOperation",
            [longs([[0]]), np.array([1], np.int32), longs([3]), *FIRST],
            "union",
            "sparse sets need at least 2 dimensions, got 1",
        ),
        (
            "SparseToSparseSetOperation",
            [longs([[0, 2]]), np.array([1], np.int32), longs([3, 2]), *FIRST],
            "union",
            r"\[0,2\] is out of bounds: need 0 <= index < \[3,2\]",
        ),
    ],
)
def test_sets_that_are_refused(ops: Any, op: str, inputs: list[Any], operation: str, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, inputs, set_operation=operation)


@pytest.mark.parametrize("op", ["DenseToSparseSetOperation", "SparseToSparseSetOperation"])
def test_the_order_of_indices_is_looked_at_where_it_is_asked_for(ops: Any, op: str) -> None:
    backwards = [SECOND[0][::-1].copy(), SECOND[1][::-1].copy(), SECOND[2]]
    first = [DENSE] if op.startswith("Dense") else FIRST
    wanted = ops.run(op, [*first, *SECOND], set_operation="b-a")
    found = ops.run(op, [*first, *backwards], set_operation="b-a", validate_indices=False)
    assert [each.tolist() for each in found] == [each.tolist() for each in wanted]
    with pytest.raises(errors.InvalidArgumentError, match=r"^indices \[1, 0\] is out of order"):
        ops.run(op, [*first, *backwards], set_operation="b-a")


@pytest.mark.parametrize("binary", [False, True])
def test_counts_of_rows(ops: Any, binary: bool) -> None:
    values, size = np.array([1, 1, 3, 0, 9], np.int32), np.array(4, np.int32)
    rows, counts = [0, 0, 2, 2, 2], np.zeros((3, 4), np.float32)
    for row, value in zip(rows, values, strict=True):
        if value < 4:
            counts[row, value] += 1
    counts = np.minimum(counts, 1) if binary else counts
    none = np.zeros(0, np.float32)
    ragged = ops.run("RaggedBincount", [longs([0, 2, 2, 5]), values, size, none], binary_output=binary)
    indices = longs([[row, at] for at, row in enumerate(rows)])
    sparse = ops.run("SparseBincount", [indices, values, longs([3, 5]), size, none], binary_output=binary)
    assert ragged.tolist() == sparse.tolist() == counts.tolist()
    with pytest.raises(errors.InvalidArgumentError, match="Splits must be in order"):
        ops.run("RaggedBincount", [longs([0, 2, 4]), values, size, none])
    with pytest.raises(errors.InvalidArgumentError, match="Splits must be non-empty"):
        ops.run("RaggedBincount", [longs([]), values, size, none])
    with pytest.raises(errors.InvalidArgumentError, match="Shape must be rank 0 but is rank 1"):
        ops.run("RaggedBincount", [longs([0, 2, 2, 5]), values, np.array([4, 4], np.int32), none])


def test_weights_of_rows_have_any_shape(ops: Any) -> None:
    values, size = np.array([1, 1, 0, 2], np.int32), np.array(3, np.int32)
    weights = np.array([[1, 2], [3, 4]], np.float32)

    found = ops.run("RaggedBincount", [longs([0, 2, 4]), values, size, weights])

    assert found.tolist() == [[0, 3, 0], [3, 0, 4]]


def test_crossed_features_with_a_separator(ops: Any) -> None:
    texts = np.array([[b"a", b"b"]], object)
    types = {"N": 0, "sparse_types": (), "dense_types": (dtypes.string, dtypes.int64)}
    joint = np.empty((), object)
    joint[()] = b"-"
    _, values, shape = ops.run("SparseCrossV2", [texts, longs([[7]]), joint], **types)
    assert (values.tolist(), shape.tolist()) == ([b"a-7", b"b-7"], [1, 2])
    hashed = [np.array(100, np.int64), np.array(False), longs([1, 2])]
    _, numbers, _ = ops.run("SparseCrossHashed", [texts, longs([[7]]), *hashed], **types)
    assert ((numbers >= 0) & (numbers < 100)).all()
