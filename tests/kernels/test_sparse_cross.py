"""What crossed features may take, and that the compiled way gives what the other one does; values: tests/interop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors

TEXT: dict[str, Any] = {
    "N": 0, "sparse_types": (), "dense_types": (dtypes.string,) * 2, "hashed_output": False, "num_buckets": 0,
    "hash_key": 1, "out_type": dtypes.string, "internal_type": dtypes.string,
}  # fmt: skip


def strings(count: int, length: int) -> np.ndarray[Any, Any]:
    out = np.empty((1, count), object)
    out[...] = b"x" * length
    return out


def test_texts_are_counted_before_they_are_made(ops: Any) -> None:
    """Ten million combinations are few; ten million with a text of 400 kB each are not."""
    few, many = strings(2, 3), strings(3000, 200_000)

    indices, texts, shape = ops.run("SparseCross", [few, few], **TEXT)
    assert (indices.tolist(), texts.tolist()) == ([[0, i] for i in range(4)], [b"xxx_X_xxx"] * 4)
    assert shape.tolist() == [1, 4]
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("SparseCross", [many, many], **TEXT)


def test_rows_in_order_and_out_of_order_are_hashed_alike(ops: Any) -> None:
    """The compiled way takes rows in their order, the other one all."""
    words = np.array([b"a", b"b", b"c", b"d" * 70, b""], object)
    indices, numbers = np.int64([[0, 0], [0, 1], [1, 0], [3, 0], [3, 2]]), np.int64([[-4], [5], [6], [2**62]])
    kinds: dict[str, Any] = {
        "N": 1, "sparse_types": (dtypes.string,), "dense_types": (dtypes.int64,), "hashed_output": True,
        "num_buckets": 1000, "hash_key": -3, "out_type": dtypes.int64, "internal_type": dtypes.int64,
    }  # fmt: skip
    shape, turned = np.int64([4, 3]), [0, 1, 3, 4, 2]

    places, crossed, size = ops.run("SparseCross", [indices, words, shape, numbers], **kinds)
    others = ops.run("SparseCross", [indices[turned], words[turned], shape, numbers], **kinds)

    assert places.tolist() == [[0, 0], [0, 1], [1, 0], [3, 0], [3, 1]]
    assert size.tolist() == [4, 2]
    for mine, other in zip((places, crossed, size), others, strict=True):
        assert mine.tolist() == other.tolist()
    with pytest.raises(errors.InvalidArgumentError, match=r"indices\[4\] = \[3,2\] is out of bounds"):
        ops.run("SparseCross", [indices, words, np.int64([4, 2]), numbers], **kinds)


def test_too_many_hashed_combinations_are_refused(ops: Any) -> None:
    many = np.zeros((1, 100), np.int64)
    kinds: dict[str, Any] = {
        "N": 0, "sparse_types": (), "dense_types": (dtypes.int64,) * 6, "hashed_output": True, "num_buckets": 10,
        "hash_key": 1, "out_type": dtypes.int64, "internal_type": dtypes.int64,
    }  # fmt: skip
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("SparseCross", [many] * 6, **kinds)
    kinds["dense_types"] = (dtypes.int64,) * 200
    with pytest.raises(errors.InvalidArgumentError, match="Encountered overflow"):
        ops.run("SparseCross", [many] * 200, **kinds)
