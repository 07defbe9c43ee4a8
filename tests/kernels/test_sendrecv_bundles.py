"""Many tensors as one vector of bytes, and out of it again; vectors that are no such thing are refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.op_values import refused
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

CHOOSE = np.random.default_rng(7)
TENSORS = [
    CHOOSE.standard_normal((3, 4)).astype(np.float32),
    np.int64(-5).reshape(()),
    np.zeros((0, 7), np.float64),
    CHOOSE.integers(0, 9, (2, 3, 5)).astype(np.int32).transpose(2, 0, 1),
    np.array([True, False, True]),
    np.array([1 + 2j], np.complex64),
    np.arange(70, dtype=np.uint8)[::2],
    np.array([0.5, -2], np.float16),
]
TYPES = [as_dtype(each.dtype) for each in TENSORS]


def bundle(ops: Any, tensors: list[np.ndarray], **more: Any) -> np.ndarray:
    found: np.ndarray = ops.run("_Bundle", tensors, T=[as_dtype(each.dtype) for each in tensors], **more)
    return found


def words(*values: int) -> np.ndarray:
    return np.array(values, np.int64).view(np.uint8)


def filled(size: int, *values: int) -> np.ndarray:
    """These words at the beginning of so many bytes."""
    found = np.zeros(size, np.uint8)
    found[: 8 * len(values)] = words(*values)
    return found


def test_tensors_of_many_types_and_shapes_come_out_as_they_went_in(ops: Any) -> None:
    packed = bundle(ops, TENSORS)
    found = ops.run("_Unbundle", [packed], T=TYPES)

    assert (packed.dtype, packed.ndim, packed.size % 64) == (np.uint8, 1, 0)
    for mine, given in zip(found, TENSORS, strict=True):
        assert (mine.dtype, mine.shape) == (given.dtype, given.shape)
        assert mine.tobytes() == given.tobytes()
        assert mine.size == 0 or np.shares_memory(mine, packed)


def test_of_bfloat16_and_of_one_tensor(ops: Any) -> None:
    given = np.array([1.5, -3], dtypes.bfloat16.as_numpy_dtype)
    found = ops.run("_Unbundle", [bundle(ops, [given])], T=[dtypes.bfloat16])
    assert (found.dtype, found.tolist()) == (given.dtype, [1.5, -3])


def test_the_same_tensors_are_the_same_bytes(ops: Any) -> None:
    assert bundle(ops, TENSORS).tobytes() == bundle(ops, [each.copy() for each in TENSORS]).tobytes()


def test_bytes_that_came_at_an_odd_address_and_cannot_be_written_to(ops: Any) -> None:
    packed = bundle(ops, TENSORS)
    moved = np.frombuffer(b"x" + packed.tobytes(), np.uint8)[1:]
    for mine, given in zip(ops.run("_Unbundle", [moved], T=TYPES), TENSORS, strict=True):
        assert mine.tobytes() == given.tobytes()
        assert not mine.flags.writeable


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((8, 8), np.uint8), "A bundle is a vector, but this has shape [8,8]"),
        (np.zeros((), np.uint8), "A bundle is a vector, but this has shape []"),
        (np.zeros(0, np.uint8), "A bundle of 2 tensors and 0 bytes cannot have -1 words of shapes"),
        (np.zeros(7, np.uint8), "A bundle of 2 tensors and 7 bytes cannot have -1 words of shapes"),
        (filled(64, 1, 0), "A bundle of 2 tensors and 64 bytes cannot have 1 words of shapes"),
        (filled(64, 8, 0), "A bundle of 2 tensors and 64 bytes cannot have 8 words of shapes"),
        (
            filled(64, -(2**63), 0),
            "A bundle of 2 tensors and 64 bytes cannot have -9223372036854775808 words of shapes",
        ),
        (filled(64, 2, -1, 0), "Tensor 0 of a bundle of 2 has no shape"),
        (filled(64, 2, 0, 1), "Tensor 1 of a bundle of 2 has no shape"),
        (filled(64, 2, 2**62, 1), "Tensor 0 of a bundle of 2 has no shape"),
        (filled(64, 3, 2, 1, 1), "Tensor 1 of a bundle of 2 has no shape"),
        (filled(64, 3, 1, -4, 0), "Tensor 0 of a bundle of 2 has no shape"),
        (filled(192, 3, 0, 0, 0), "A bundle has the shapes of 2 tensors in 2 words, but says that there are 3"),
        (filled(128, 3, 1, 4, 0), "The tensors of a bundle come to 192 bytes, but it has 128"),
        (filled(256, 3, 1, 4, 0), "The tensors of a bundle come to 192 bytes, but it has 256"),
        (filled(192, 4, 1, 2**40, 1, 4), "The tensors of a bundle come to 4398046511232 bytes, but it has 192"),
        (
            filled(128, 5, 3, 0, 2**62, 2**62, 0),
            "There is no array of shape [0,4611686018427387904,4611686018427387904]",
        ),
        (filled(960, 102, 100, *[1] * 100, 0), "There is no array of shape [1,1,1"),
    ],
)
def test_what_is_no_bundle_is_refused(ops: Any, given: np.ndarray, message: str) -> None:
    types = [dtypes.float32, dtypes.int64]
    refused(ops, "_Unbundle", [given], message, T=types)
