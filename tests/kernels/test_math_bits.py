"""Bitwise logic, shifts beyond a number's bits, counts of ones, and the same bits as other types."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    ("op", "function"), [("BitwiseAnd", operator.and_), ("BitwiseOr", operator.or_), ("BitwiseXor", operator.xor)]
)
def test_logic(ops: Any, op: str, function: Any, dtype: Any) -> None:
    x, y = np.array([[0b1100, 0, 85]], dtype), np.array([[0b1010], [127]], dtype)

    found = ops.run(op, [x, y])

    assert found.tolist() == [[function(a, b) for a in x[0].tolist()] for b in y[:, 0].tolist()]
    assert found.dtype == dtype
    assert ops.run(op, [x[0, 0], y[0, 0]]).tolist() == function(0b1100, 0b1010)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_less_than_nothing_and_by_all_bits(ops: Any, dtype: Any) -> None:
    bits, signed = 8 * np.dtype(dtype).itemsize, np.dtype(dtype).kind == "i"
    most = np.iinfo(dtype).max
    x, top = np.array([1, 5, most], dtype), (1 << bits - 1) - (signed << bits)

    def left(by: int) -> Any:
        return ops.run("LeftShift", [x, np.array(by, dtype)]).tolist()

    def right(by: int) -> Any:
        return ops.run("RightShift", [x, np.array(by, dtype)]).tolist()

    assert left(0) == right(0) == [1, 5, most]
    assert left(1)[:2] == [2, 10]
    assert right(1) == [0, 2, most >> 1]
    assert left(bits - 1) == left(bits) == left(100) == [top] * 3
    assert right(bits - 1) == right(bits) == right(100) == [0, 0, most >> bits - 1]
    if signed:
        assert left(-1) == right(-1) == [1, 5, most]
        assert ops.run("RightShift", [np.array([-8, -1], dtype), np.array([2, 99], dtype)]).tolist() == [-2, -1]
    assert ops.run("LeftShift", [x[0], x[1]]).tolist() == 32


@pytest.mark.parametrize("op", ["BitwiseAnd", "BitwiseXor", "LeftShift", "RightShift"])
def test_shapes_that_do_not_go_together(ops: Any, op: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run(op, [np.zeros((2, 3), np.int32), np.zeros(2, np.int32)])
    assert refused.value.message == "Incompatible shapes: [2,3] vs. [2]"


@pytest.mark.parametrize("dtype", INTEGERS)
def test_all_bits_turned_and_counted(ops: Any, dtype: Any) -> None:
    bits, signed = 8 * np.dtype(dtype).itemsize, np.dtype(dtype).kind == "i"
    x = np.array([[0, 1, 7], [96, 127, 2]], dtype)

    assert ops.run("Invert", [x]).tolist() == [[~v if signed else (1 << bits) - 1 - v for v in r] for r in x.tolist()]
    assert ops.run("Invert", [x[0, 0]]).shape == ()
    counts = ops.run("PopulationCount", [x])
    assert (counts.tolist(), counts.dtype) == ([[0, 1, 3], [2, 7, 1]], np.uint8)
    assert ops.run("PopulationCount", [x.T]).tolist() == [[0, 2], [1, 7], [3, 1]]
    assert ops.run("PopulationCount", [x[1, 1]]).tolist() == 7
    assert ops.run("PopulationCount", [x[:0]]).shape == (0, 3)
    assert ops.run("PopulationCount", [np.invert(x[:, :1])]).tolist() == [[bits], [bits - 2]]


def bitcast(ops: Any, x: Any, target: Any) -> Any:
    return ops.run("Bitcast", [x], type=target)


def test_bits_as_a_type_of_the_same_size(ops: Any) -> None:
    x = np.float32([[1, -2, 0.5], [0, 3, 8]])

    assert bitcast(ops, x, dtypes.int32).tolist() == x.view(np.int32).tolist()
    assert bitcast(ops, x.T, dtypes.uint32).tolist() == x.view(np.uint32).T.tolist()
    assert bitcast(ops, x[0, 0], dtypes.int32).tolist() == 0x3F800000
    assert bitcast(ops, x[:0], dtypes.int32).shape == (0, 3)


def test_bits_as_a_narrower_type(ops: Any) -> None:
    x = np.int32([[1, 2, 3], [0x01020304, -1, 0]])

    assert bitcast(ops, x, dtypes.uint8).tolist() == x.reshape(2, 3, 1).view(np.uint8).tolist()
    assert bitcast(ops, x[:, ::2], dtypes.int16).tolist() == [[[1, 0], [3, 0]], [[0x0304, 0x0102], [0, 0]]]
    assert bitcast(ops, x[1, 0], dtypes.int16).tolist() == [0x0304, 0x0102]
    assert bitcast(ops, x[:0], dtypes.uint8).shape == (0, 3, 4)


def test_bits_as_a_wider_type(ops: Any) -> None:
    x = np.uint8([[4, 3, 2, 1], [255, 255, 255, 255]])

    assert bitcast(ops, x, dtypes.int32).tolist() == [0x01020304, -1]
    assert bitcast(ops, x[0], dtypes.int32).tolist() == 0x01020304
    assert bitcast(ops, x.reshape(2, 2, 2), dtypes.int16).tolist() == [[0x0304, 0x0102], [-1, -1]]
    assert bitcast(ops, x[:0], dtypes.int32).shape == (0,)
    assert bitcast(ops, np.tile(x, 2), dtypes.int64).tolist() == [0x0102030401020304, -1]


@pytest.mark.parametrize("shape", [(), (3,), (5,), (8,), (4, 2), (0,)])
def test_bits_that_make_no_whole_number_of_elements(ops: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(errors.InvalidArgumentError) as refused:
        bitcast(ops, np.zeros(shape, np.uint8), dtypes.float32)
    assert refused.value.message == "Cannot bitcast from uint8 to float"
