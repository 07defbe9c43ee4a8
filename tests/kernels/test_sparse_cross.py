"""The limit of what crossed features may take; their values are compared in tests/interop."""

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
