"""Tile and its gradient, Pad, PadV2, MirrorPad and its gradient against NumPy; a sum of pads; what is remembered."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from support.kernel_runs import make_node
from support.op_values import filled, frozen, ints, refused
from support.room import assert_wants
from tenfold_core import errors
from tenfold_kernels.cpu.array import build_pad
from tenfold_kernels.resources.state import ResourceManager

F = np.float32
WIDTHS_OF_1 = "The first dimension of paddings must be the rank of inputs"


# -- Tile --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, object])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 1), (2, 3), (3, 1, 2), (0, 2)])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_tiles_are_numpys(ops: Any, dtype: Any, shape: tuple[int, ...], kind: Any) -> None:
    x = filled(shape, dtype)
    for times in itertools.product((0, 1, 3), repeat=len(shape)):
        found = ops.run("Tile", [x, np.array(times, kind)])
        np.testing.assert_array_equal(found, np.tile(x, times) if shape else x)


@pytest.mark.parametrize(
    ("times", "text"),
    [
        ([[1, 2]], "Expected multiples argument to be a vector of length 2 but got length 2"),
        ([1], "Expected multiples argument to be a vector of length 2 but got length 1"),
        ([1, 1, 1], "Expected multiples argument to be a vector of length 2 but got length 3"),
        ([1, -1], "Expected multiples[1] >= 0, but got -1"),
        ([-2, 1], "Expected multiples[0] >= 0, but got -2"),
    ],
)
def test_how_often_is_a_number_for_each_dimension(ops: Any, times: Any, text: str) -> None:
    refused(ops, "Tile", [np.ones((2, 3), F), np.array(times, np.int32)], text)


def test_what_copies_and_borders_take_is_asked_for(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones((2, 3), F)
    assert_wants(monkeypatch, 2 * 5 * 3 * 2 * 4, lambda: ops.run("Tile", [x, ints(5, 2)]))
    assert_wants(monkeypatch, 7 * 5 * 4, lambda: ops.run("Tile", [x[:1, :1], ints(7, 5)]))
    assert_wants(monkeypatch, (1 + 2 + 4) * (3 + 2) * 4, lambda: ops.run("Pad", [x, ints([1, 4], [0, 2])]))
    wanted = (1 + 2 + 0) * (3 + 2) * 4
    assert_wants(monkeypatch, wanted, lambda: ops.run("MirrorPad", [x, ints([1, 0], [0, 2])], mode=b"REFLECT"))


@pytest.mark.parametrize("times", [(1, 1), (2, 1), (1, 3), (2, 3), (4, 3), (4, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64])
def test_copies_are_summed(ops: Any, times: tuple[int, int], dtype: Any) -> None:
    x = filled((4, 3), dtype)
    sums = np.zeros((4 // times[0], 3 // times[1]), dtype)
    for i, j in np.ndindex(4, 3):
        sums[i % len(sums), j % sums.shape[1]] += x[i, j]

    found = ops.run("TileGrad", [x, ints(*times)])

    assert found.tolist() == sums.tolist()
    assert np.shares_memory(found, x) == (times == (1, 1))


@pytest.mark.parametrize(
    ("times", "text"),
    [
        ([[1, 2]], "Expected multiples argument to be a vector of length 2 but got length 2"),
        ([1], "Expected multiples argument to be a vector of length 2 but got length 1"),
        ([1, 0], "Expected multiples[1] > 0, but got 0"),
        ([-1, 1], "Expected multiples[0] > 0, but got -1"),
        ([1, 2], "Expected input_dim[1] to be divisible by multiples[1], but 3 % 2 != 0"),
    ],
)
def test_copies_that_cannot_have_been_made(ops: Any, times: Any, text: str) -> None:
    refused(ops, "TileGrad", [np.ones((4, 3), F), np.array(times, np.int32)], text)


def test_a_scalar_has_one_copy(ops: Any) -> None:
    assert ops.run("TileGrad", [F(5), np.zeros(0, np.int32)]).tolist() == 5


# -- Pad ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.bool_, object])
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 3)])
def test_borders_are_numpys(ops: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    x, nothing, nine = filled(shape, dtype), b"" if dtype is object else 0, filled((1,), dtype, start=9).reshape(())
    for pairs in itertools.product(((0, 0), (1, 0), (2, 3)), repeat=len(shape)):
        widths = np.array(pairs, np.int32).reshape(-1, 2)

        plain, with_nines = ops.run("Pad", [x, widths]), ops.run("PadV2", [x, widths, nine])

        for found, value in ((plain, nothing), (with_nines, nine.item())):
            wanted = np.pad(x, widths, constant_values=value) if shape else x
            assert (found.shape, found.tolist()) == (wanted.shape, wanted.tolist())


@pytest.mark.parametrize("op", ["Pad", "PadV2", "MirrorPad"])
@pytest.mark.parametrize(
    ("widths", "text"),
    [
        ([1, 1], "paddings must be a matrix with 2 columns: [2]"),
        ([[1, 1, 1]] * 2, "paddings must be a matrix with 2 columns: [2,3]"),
        ([[[1, 1]] * 2], "paddings must be a matrix with 2 columns: [1,2,2]"),
        ([[1, 1]], f"{WIDTHS_OF_1}[1,2] [2,3]"),
        ([[1, 1]] * 3, f"{WIDTHS_OF_1}[3,2] [2,3]"),
        ([[0, 0], [-1, 1]], "Paddings must be non-negative: -1 1"),
        ([[0, -1], [0, 0]], "Paddings must be non-negative: 0 -1"),
    ],
)
def test_borders_are_two_numbers_for_each_dimension(ops: Any, op: str, widths: Any, text: str) -> None:
    inputs = [np.ones((2, 3), F), np.array(widths, np.int32), *([F(1)] if op == "PadV2" else [])]
    refused(ops, op, inputs, text, **({"mode": b"REFLECT"} if op == "MirrorPad" else {}))


def test_a_border_is_filled_with_one_value(ops: Any) -> None:
    refused(ops, "PadV2", [np.ones(2, F), ints([1, 1]), np.ones(1, F)], "constant_values must be a scalar. Found: [1]")


def test_constant_borders_are_remembered_for_one_shape(ops: Any) -> None:
    x, y, widths, wider = filled((2, 3), F), filled((3, 3), F), frozen([[1, 0], [0, 2]]), frozen([[0, 1], [2, 2]])
    pad, _ = ops.build("Pad", [x, widths], {})
    for value, pairs in ((x, widths), (x, widths), (y, widths), (x, wider), (y, wider), (x, widths)):
        np.testing.assert_array_equal(pad(value, pairs), np.pad(value, pairs))
    changing = ints([1, 0], [0, 0])
    assert pad(x, changing).shape == (3, 3)
    changing[:] = 2
    assert pad(x, changing).shape == (6, 7)


def test_a_pad_of_several_is_their_sum(ops: Any) -> None:
    """What a pass makes of a sum of pads."""
    x, y = filled((2, 3), F), filled((1, 2), F, start=40)
    at_x, at_y = frozen([[1, 0], [0, 2]]), frozen([[0, 2], [1, 2]])
    node = make_node("Pad", [x, at_x], {}, ResourceManager(), "both")
    pad = build_pad(dataclasses.replace(node, input_types=node.input_types * 2))
    assert pad(x, at_x, y, at_y).tolist() == (np.pad(x, at_x) + np.pad(y, at_y)).tolist()
    assert pad(2 * x, at_x, y, at_y).tolist() == (np.pad(2 * x, at_x) + np.pad(y, at_y)).tolist()
    assert pad(x[:1], frozen([[1, 1], [1, 1]]), y, at_y).shape == (3, 5)
    three = build_pad(dataclasses.replace(node, input_types=node.input_types * 3))
    assert three(x, at_x, y, at_y, x, at_x).tolist() == (2 * np.pad(x, at_x) + np.pad(y, at_y)).tolist()
    with pytest.raises(errors.InvalidArgumentError) as raised:
        pad(x, at_x, y, frozen([[0, 1], [1, 2]]))
    assert raised.value.message == (
        "Inputs to operation both of type AddN must have the same size and shape.  Input 0: [3,5] != input 1: [2,5]"
    )


# -- MirrorPad and its gradient ----------------------------------------------------------------------------------------

MODES = [(b"REFLECT", "reflect", 1), (b"SYMMETRIC", "symmetric", 0)]


@pytest.mark.parametrize(("mode", "plain", "less"), MODES)
def test_mirrors_are_numpys_and_their_gradient_folds_back(ops: Any, mode: bytes, plain: Any, less: int) -> None:
    for shape in ((3,), (1,), (2, 3), (3, 1, 2)):
        choices = [{(0, 0), (size - less, 0), (0, size - less), (size - less, size - less)} for size in shape]
        for pairs in itertools.product(*choices):
            x, widths = filled(shape, F), np.array(pairs, np.int32)
            came_from = np.pad(np.arange(x.size).reshape(shape), pairs, mode=plain)

            mirrored = ops.run("MirrorPad", [x, widths], mode=mode)
            assert mirrored.tolist() == x.reshape(-1)[came_from].tolist()

            dy, sums = filled(mirrored.shape, F), np.zeros(x.size, F)
            np.add.at(sums, came_from, dy)
            assert ops.run("MirrorPadGrad", [dy, widths], mode=mode).tolist() == sums.reshape(shape).tolist()


@pytest.mark.parametrize(
    ("mode", "pair", "text"),
    [
        (b"REFLECT", (3, 0), "paddings must be less than the dimension size: 3, 0 not less than 3"),
        (b"REFLECT", (1, 3), "paddings must be less than the dimension size: 1, 3 not less than 3"),
        (b"SYMMETRIC", (4, 1), "paddings must be no greater than the dimension size: 4, 1 greater than 3"),
        (b"SYMMETRIC", (0, 4), "paddings must be no greater than the dimension size: 0, 4 greater than 3"),
    ],
)
def test_mirrors_that_would_show_more_than_there_is(ops: Any, mode: bytes, pair: Any, text: str) -> None:
    refused(ops, "MirrorPad", [np.ones((2, 3), F), ints([0, 0], pair)], text, mode=mode)
    refused(ops, "MirrorPad", [np.ones((3, 2), F), ints(pair, [0, 0])], text, mode=mode)


@pytest.mark.parametrize(
    ("mode", "pair", "most"),
    [
        (b"REFLECT", (2, 1), 1),  # 5 in all, of which 2 are the middle
        (b"REFLECT", (1, 2), 1),
        (b"REFLECT", (-1, 0), 5),
        (b"REFLECT", (0, -1), 5),
        (b"SYMMETRIC", (3, 0), 2),
        (b"SYMMETRIC", (0, 3), 2),
        (b"SYMMETRIC", (-1, 0), 6),
        (b"SYMMETRIC", (0, -1), 6),
    ],
)
def test_gradients_of_mirrors_that_there_cannot_be(ops: Any, mode: bytes, pair: Any, most: int) -> None:
    text = f"Paddings must be non-negative and no larger than {most}: {pair[0]}, {pair[1]}"
    refused(ops, "MirrorPadGrad", [np.ones((1, 5), F), ints([0, 0], pair)], text, mode=mode)


@pytest.mark.parametrize("widths", [[0, 0], [[0, 0]], [[0, 0, 0]] * 2, [[0, 0]] * 3])
def test_gradients_of_mirrors_have_a_pair_for_each_dimension(ops: Any, widths: Any) -> None:
    pairs = np.array(widths, np.int32)
    text = f"paddings must be a matrix of 2 rows and 2 columns, got shape [{','.join(map(str, pairs.shape))}]"
    refused(ops, "MirrorPadGrad", [np.ones((2, 3), F), pairs], text, mode=b"SYMMETRIC")
