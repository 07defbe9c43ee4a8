"""Sparse tensors under numbers, and ragged tensors as sparse ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
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
