"""Sparse tensors under numbers, and ragged tensors as sparse ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu import sparse_maps
from tenfold_kernels.cpu.sparse_maps import SparseTensorsMap
from tenfold_kernels.resources.state import ResourceManager


def longs(*values: Any) -> Any:
    return np.array(values, np.int64)


def test_what_was_added_is_taken_once(ops: Any) -> None:
    resources = ResourceManager()
    indices, values, shape = longs([0, 1], [0, 3], [2, 0]), np.array([1, 2, 3], np.float32), longs(3, 4)

    handles = ops.run("AddManySparseToTensorsMap", [indices, values, shape], shared_name=b"m", resources=resources)
    assert handles.shape == (3,)
    taken = ops.run(
        "TakeManySparseFromTensorsMap", [handles[[2, 0]]], dtype=dtypes.float32, shared_name=b"m", resources=resources
    )

    assert taken[0].tolist() == [[0, 0], [1, 1], [1, 3]]
    assert taken[1].tolist() == [3, 1, 2]
    assert taken[2].tolist() == [2, 4]
    with pytest.raises(errors.InvalidArgumentError, match="Unable to find SparseTensor: 2 in map: m"):
        ops.run(
            "TakeManySparseFromTensorsMap", [handles[[2]]], dtype=dtypes.float32, shared_name=b"m", resources=resources
        )


def test_one_by_one_and_the_sizes_of_the_largest(ops: Any) -> None:
    resources = ResourceManager()
    one = ops.run("AddSparseToTensorsMap", [longs([1]), longs(7), longs(2)], shared_name=b"m", resources=resources)
    other = ops.run("AddSparseToTensorsMap", [longs([4]), longs(8), longs(5)], shared_name=b"m", resources=resources)

    taken = ops.run(
        "TakeManySparseFromTensorsMap",
        [longs(int(one), int(other))],
        dtype=dtypes.int64,
        shared_name=b"m",
        resources=resources,
    )

    assert taken[2].tolist() == [2, 5]
    with pytest.raises(errors.InvalidArgumentError, match="Unable to find"):
        ops.run("TakeManySparseFromTensorsMap", [longs(9)], dtype=dtypes.int64, shared_name=b"m", resources=resources)


def test_a_map_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenfold_kernels.cpu.sparse_maps.MAX_TENSORS", 1)
    held = SparseTensorsMap("m")
    held.add([object()])  # type: ignore[list-item]
    with pytest.raises(errors.ResourceExhaustedError, match="m would hold 2 sparse tensors"):
        held.add([object()])  # type: ignore[list-item]


def test_ragged_to_sparse(ops: Any) -> None:
    # [[[a, b], []], [], [[c]]]
    outer, inner, values = longs(0, 2, 2, 3), longs(0, 2, 2, 3), np.array([b"a", b"b", b"c"], dtype=object)

    indices, flat, shape = ops.run("RaggedTensorToSparse", [outer, inner, values], RAGGED_RANK=2)

    assert indices.tolist() == [[0, 0, 0], [0, 0, 1], [2, 0, 0]]
    assert flat.tolist() == [b"a", b"b", b"c"]
    assert shape.tolist() == [3, 2, 2]


def test_ragged_with_dense_values(ops: Any) -> None:
    indices, flat, shape = ops.run("RaggedTensorToSparse", [longs(0, 1, 2), np.array([[1, 2], [3, 4]])], RAGGED_RANK=1)

    assert indices.tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1]]
    assert flat.tolist() == [1, 2, 3, 4]
    assert shape.tolist() == [2, 1, 2]


@pytest.mark.parametrize(
    ("splits", "says"),
    [
        (longs(), "may not be empty"),
        (longs(1, 2), "First value of ragged splits must be 0"),
        (longs(0, 2, 1), "non decreasing, but we got 2 followed by 1"),
        (longs(0, 3), "must match the length"),
    ],
)
def test_splits_that_make_no_sense(ops: Any, splits: Any, says: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=says):
        ops.run("RaggedTensorToSparse", [splits, np.array([1, 2])], RAGGED_RANK=1)


# ---- maps ------------------------------------------------------------------------------------------------------------


def taken(ops: Any, resources: ResourceManager, *handles: int, dtype: Any = dtypes.int64, **names: bytes) -> Any:
    return ops.run("TakeManySparseFromTensorsMap", [longs(*handles)], dtype=dtype, resources=resources,
                   **{"shared_name": b"m", **names})  # fmt: skip


def added(ops: Any, resources: ResourceManager, indices: Any, values: Any, shape: Any, **names: bytes) -> int:
    made = ops.run("AddSparseToTensorsMap", [indices, values, shape], resources=resources,
                   **{"shared_name": b"m", **names})  # fmt: skip
    return int(made)


def test_numbers_begin_at_0_and_go_on(ops: Any) -> None:
    resources = ResourceManager()
    one = longs([1]), longs(7), longs(2)
    assert [added(ops, resources, *one) for _ in range(3)] == [0, 1, 2]
    taken(ops, resources, 1)
    assert added(ops, resources, *one) == 3
    assert [each.tolist() for each in taken(ops, resources, 3, 0)] == [[[0, 1], [1, 1]], [7, 7], [2, 2]]


def test_a_map_has_the_name_of_its_node_or_a_shared_one(ops: Any) -> None:
    resources = ResourceManager()
    one = longs([1]), longs(7), longs(2)
    assert added(ops, resources, *one, shared_name=b"", name="here") == 0  # type: ignore[arg-type]
    assert added(ops, resources, *one, shared_name=b"there") == 0
    assert added(ops, resources, *one, shared_name=b"here") == 1
    assert added(ops, resources, *one, shared_name=b"here", container=b"c") == 0
    with pytest.raises(errors.InvalidArgumentError, match=r"^Unable to find SparseTensor: 4 in map: here$"):
        taken(ops, resources, 4, shared_name=b"here")


@pytest.mark.parametrize("op", ["AddSparseToTensorsMap", "AddManySparseToTensorsMap"])
def test_a_map_keeps_what_there_was(ops: Any, op: str) -> None:
    """Who added it may write over it, and over a member without entries."""
    resources = ResourceManager()
    indices, values, shape = longs([0, 1]), longs(7), longs(2, 3)
    compute, _ = ops.build(op, [indices, values, shape], {"shared_name": b"m"}, resources)
    handles = np.atleast_1d(compute(indices, values, shape))
    indices[:], values[:], shape[:] = 9, 9, 9
    found = taken(ops, resources, *handles.tolist())
    rest = [[[0, 0, 1]], [7], [1, 2, 3]] if op.startswith("AddSparse") else [[[0, 1]], [7], [2, 3]]
    assert [each.tolist() for each in found] == rest


def test_members_of_a_batch_are_those_of_a_row(ops: Any) -> None:
    resources = ResourceManager()
    indices, values = longs([0, 0, 2], [0, 1, 0], [3, 1, 1]), np.float32([1, 2, 3])
    handles = ops.run("AddManySparseToTensorsMap", [indices, values, longs(5, 2, 3)], shared_name=b"m",
                      resources=resources)  # fmt: skip
    assert handles.tolist() == [0, 1, 2, 3, 4]
    found = taken(ops, resources, 0, 4, 3, dtype=dtypes.float32)
    assert [each.tolist() for each in found] == [[[0, 0, 2], [0, 1, 0], [2, 1, 1]], [1, 2, 3], [3, 2, 3]]
    none = ops.run("AddManySparseToTensorsMap", [indices[:0], values[:0], longs(0, 2, 3)], resources=resources)
    assert (none.shape, none.dtype) == ((0,), np.int64)


def test_what_a_map_does_not_hold(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    resources = ResourceManager()
    add = "AddManySparseToTensorsMap"
    with pytest.raises(errors.InvalidArgumentError, match=r"^Rank of input SparseTensor should be > 1, .* rank: 1$"):
        ops.run(add, [longs([1]), longs(7), longs(2)], resources=resources)
    for op in (add, "AddSparseToTensorsMap"):
        with pytest.raises(errors.InvalidArgumentError, match=r"^indices\[0\] = \[2,0\] is out of bounds"):
            ops.run(op, [longs([2, 0]), longs(7), longs(2, 1)], resources=resources)
    monkeypatch.setattr(sparse_maps, "MAX_TENSORS", 3)
    with pytest.raises(errors.ResourceExhaustedError, match=r"^A batch of 4 members; 3 may be\.$"):
        ops.run(add, [longs([2, 0]), longs(7), longs(4, 1)], resources=resources)
    ops.run(add, [longs([2, 0]), longs(7), longs(3, 1)], shared_name=b"m", resources=resources)
    with pytest.raises(errors.ResourceExhaustedError, match=r"^m would hold 4 sparse tensors; 3 may be\.$"):
        added(ops, resources, longs([0]), longs(7), longs(1))
    taken(ops, resources, 0)
    assert added(ops, resources, longs([0]), longs(7), longs(1)) == 3


def test_what_cannot_be_taken_together(ops: Any) -> None:
    resources = ResourceManager()

    def add() -> list[int]:
        return [
            added(ops, resources, longs([1]), longs(7), longs(2)),
            added(ops, resources, longs([1, 0]), longs(7), longs(2, 2)),
            added(ops, resources, longs([1]), np.float32([7]), longs(2)),
        ]

    row, matrix, real = add()
    with pytest.raises(
        errors.InvalidArgumentError,
        match=r"^Inconsistent rank across SparseTensors: rank prior to SparseTensor\[1\] was: 2 but rank of "
        r"SparseTensor\[1\] is: 3$",
    ):
        taken(ops, resources, row, matrix)
    row, matrix, real = add()
    with pytest.raises(
        errors.InvalidArgumentError,
        match=r"^Requested SparseTensor of type int64 but SparseTensor\[1\]\.values\.dtype\(\) == float$",
    ):
        taken(ops, resources, row, real)
    with pytest.raises(errors.InvalidArgumentError, match=r"^sparse_handles should be a vector .* shape \[1,1\]$"):
        ops.run("TakeManySparseFromTensorsMap", [longs([0])], dtype=dtypes.int64, resources=resources)
    with pytest.raises(errors.InvalidArgumentError, match=r"^Must have at least 1 serialized SparseTensor"):
        taken(ops, resources)


# ---- ragged tensors --------------------------------------------------------------------------------------------------


def test_ragged_tensors_of_nothing(ops: Any) -> None:
    for splits, rows in (([0], 0), ([0, 0, 0], 2)):
        indices, values, shape = ops.run("RaggedTensorToSparse", [longs(*splits), longs()], RAGGED_RANK=1)
        assert (indices.shape, values.shape, shape.tolist()) == ((0, 2), (0,), [rows, 0])
    indices, values, shape = ops.run("RaggedTensorToSparse", [longs(0, 2), np.zeros((2, 0))], RAGGED_RANK=1)
    assert (indices.shape, values.shape, shape.tolist()) == ((0, 3), (0,), [1, 2, 0])


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_a_ragged_tensor_of_three_dimensions_and_two_dense_ones(ops: Any, kind: Any) -> None:
    rows = [[[1], [2, 3]], [], [[]], [[4]]]
    outer, inner = np.array([0, 2, 2, 3, 4], kind), np.array([0, 1, 3, 3, 4], kind)
    values = np.arange(4 * 2 * 3).reshape(4, 2, 3).astype(np.float32)
    indices, flat, shape = ops.run("RaggedTensorToSparse", [outer, inner, values], RAGGED_RANK=2, Tsplits=kind)
    places = [(i, j, k) for i, row in enumerate(rows) for j, cell in enumerate(row) for k in range(len(cell))]
    assert indices.tolist() == [[*place, y, x] for place in places for y in range(2) for x in range(3)]
    assert flat.tolist() == list(range(24))
    assert shape.tolist() == [4, 2, 2, 2, 3]
    assert {each.dtype for each in (indices, shape)} == {np.dtype(np.int64)}


@pytest.mark.parametrize(
    ("splits", "values", "says"),
    [
        ([longs(0, 2)], np.array(5), "^Final value of ragged splits must match the length the corresponding ragged"),
        ([longs(0, 2), longs(0, 2)], longs(1, 2), "^Final value of ragged splits must match the length"),
        ([longs(0, 2), longs(0, 1, 3)], longs(1, 2), "^Final value of ragged splits must match the length"),
        ([longs(0, 2), longs(0, 1, 1)], longs(1, 2), "^Final value of ragged splits must match the length"),
        ([longs(), longs(0, 2)], longs(1, 2), r"^ragged splits may not be empty\.$"),
        ([longs(0, 2), longs(1, 1, 2)], longs(1, 2), r"^First value of ragged splits must be 0\.$"),
        ([longs(-1, 2)], longs(1, 2), r"^First value of ragged splits must be 0\.$"),
        ([longs(0, 0, 3, 2)], longs(1, 2), "^Ragged splits should be non decreasing, but we got 3 followed by 2$"),
    ],
)
def test_splits_that_do_not_fit(ops: Any, splits: Any, values: Any, says: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=says):
        ops.run("RaggedTensorToSparse", [*splits, values], RAGGED_RANK=len(splits))


def test_a_ragged_tensor_of_four_dimensions(ops: Any) -> None:
    """[[[[x], []]], [[], [[y, z, w], [], []]]]: each dimension has another number of rows."""
    splits = [longs(0, 1, 3), longs(0, 2, 2, 5), longs(0, 1, 1, 4, 4, 4)]
    indices, flat, shape = ops.run("RaggedTensorToSparse", [*splits, longs(7, 8, 9, 5)], RAGGED_RANK=3)
    assert indices.tolist() == [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 1], [1, 1, 0, 2]]
    assert (flat.tolist(), shape.tolist()) == ([7, 8, 9, 5], [2, 2, 3, 3])
