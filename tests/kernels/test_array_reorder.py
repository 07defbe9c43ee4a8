"""Transpose, ConjugateTranspose, ReverseV2, Reverse, ReverseSequence and Roll against NumPy, and what they refuse."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from support.op_values import ints, refused
from tenfold_core import errors

F = np.float32
X = np.arange(24, dtype=F).reshape(2, 3, 4)
C = (X + 1j * X[::-1]).astype(np.complex64)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_axes_change_places(ops: Any, kind: Any) -> None:
    for perm in itertools.permutations(range(3)):
        for mixed in (perm, [d - 3 for d in perm], [perm[0] - 3, *perm[1:]]):
            order = np.array(mixed, kind)
            found = ops.run("Transpose", [X, order])
            assert found.tolist() == X.transpose(perm).tolist()
            assert np.shares_memory(found, X)
            assert ops.run("ConjugateTranspose", [C, order]).tolist() == np.conj(C.transpose(perm)).tolist()
            assert ops.run("ConjugateTranspose", [X, order]).tolist() == X.transpose(perm).tolist()
    assert ops.run("Transpose", [F(3), np.zeros(0, kind)]).tolist() == 3
    assert ops.run("ConjugateTranspose", [np.complex64(3 + 1j), np.zeros(0, kind)]).tolist() == 3 - 1j


@pytest.mark.parametrize(
    ("perm", "text"),
    [
        ([0, 1], "transpose expects a vector of size 3. But input(1) is a vector of size 2"),
        ([0, 1, 2, 3], "transpose expects a vector of size 3. But input(1) is a vector of size 4"),
        ([[0, 1, 2]], "perm must be rank 1, got shape [1,3]"),
        (0, "perm must be rank 1, got shape []"),
        ([0, 1, 3], "3 is out of range [0 .. 3)"),
        ([-4, 1, 2], "-4 is out of range [0 .. 3)"),
        ([0, 0, 1], "2 is missing from {0,0,1}."),
        ([1, 2, -2], "0 is missing from {1,2,-2}."),
    ],
)
@pytest.mark.parametrize("op", ["Transpose", "ConjugateTranspose"])
def test_an_order_names_each_axis_once(ops: Any, op: str, perm: Any, text: str) -> None:
    refused(ops, op, [X, np.array(perm, np.int32)], text)


def test_a_constant_order_is_checked_for_each_array(ops: Any) -> None:
    perm = np.array([1, 0], np.int32)
    perm.flags.writeable = False
    transpose, _ = ops.build("Transpose", [X[0], perm], {})
    for x in (X[0], X[1], X[:, 0]):
        assert transpose(x, perm).tolist() == x.T.tolist()
    with pytest.raises(errors.InvalidArgumentError, match="transpose expects a vector of size 3"):
        transpose(X, perm)
    changing = ints(0, 1)
    assert transpose(X[0], changing).shape == (3, 4)
    changing[:] = 1, 0
    assert transpose(X[0], changing).shape == (4, 3)


def test_dimensions_are_turned_round(ops: Any) -> None:
    for count in range(4):
        for axes in itertools.permutations(range(3), count):
            wanted = np.flip(X, axes)
            for given in (axes, [d - 3 for d in axes]):
                assert ops.run("ReverseV2", [X, np.array(given, np.int32)]).tolist() == wanted.tolist()
            flags = np.array([d in axes for d in range(3)])
            assert ops.run("Reverse", [X, flags]).tolist() == wanted.tolist()
    assert ops.run("ReverseV2", [F(3), np.zeros(0, np.int32)]).tolist() == 3
    assert ops.run("Reverse", [F(3), np.zeros(0, np.bool_)]).tolist() == 3
    words = np.array([b"a", b"b"], object)
    assert ops.run("ReverseV2", [words, ints(0)]).tolist() == [b"b", b"a"]
    assert ops.run("Reverse", [words, np.array([True])]).tolist() == [b"b", b"a"]


def test_nothing_turned_round_is_the_input_or_a_copy(ops: Any) -> None:
    assert np.shares_memory(ops.run("ReverseV2", [X, np.zeros(0, np.int32)]), X)
    assert not np.shares_memory(ops.run("Reverse", [X, np.zeros(3, np.bool_)]), X)


@pytest.mark.parametrize(
    ("axes", "text"),
    [
        (0, "'dims' must be 1-dimension, not 0"),
        ([[0]], "'dims' must be 1-dimension, not 2"),
        ([0, 3], "'axis'[1] = 3 is out of valid range [0, 2]"),
        ([-4], "'axis'[0] = -4 is out of valid range [0, 2]"),
        ([2, 2], "axis 2 specified more than once."),
        ([1, -2], "axis 1 specified more than once."),
        ([-3, 0], "axis 0 specified more than once."),
    ],
)
def test_what_is_turned_round_is_there_and_named_once(ops: Any, axes: Any, text: str) -> None:
    refused(ops, "ReverseV2", [X, np.array(axes, np.int32)], text)


@pytest.mark.parametrize("flags", [[True, False], [True] * 4, [[True, False, True]], True])
def test_there_is_a_flag_for_each_dimension(ops: Any, flags: Any) -> None:
    given = np.array(flags)
    text = f"'dims' must have 3 elements, one a dimension, got shape [{','.join(map(str, given.shape))}]"
    refused(ops, "Reverse", [X, given], text)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_beginnings_of_sequences_are_turned_round(ops: Any, kind: Any) -> None:
    for seq, batch in itertools.permutations(range(3), 2):
        for lengths in ([0] * X.shape[batch], [1] * X.shape[batch], [X.shape[seq], *[2] * (X.shape[batch] - 1)]):
            wanted = np.moveaxis(X.copy(), (batch, seq), (0, 1))
            for i, n in enumerate(lengths):
                wanted[i] = np.concatenate([wanted[i][:n][::-1], wanted[i][n:]])
            wanted = np.moveaxis(wanted, (0, 1), (batch, seq))
            for less in (0, 3):
                found = ops.run(
                    "ReverseSequence", [X, np.array(lengths, kind)], seq_dim=seq - less, batch_dim=batch - less
                )
                assert found.tolist() == wanted.tolist()


def test_the_batch_is_the_first_dimension_unless_it_is_said(ops: Any) -> None:
    assert ops.run("ReverseSequence", [X[0], ints(2, 4, 1)], seq_dim=1).tolist() == [
        [1, 0, 2, 3], [7, 6, 5, 4], [8, 9, 10, 11]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seq", "batch", "lengths", "text"),
    [
        (3, 0, [1, 1], "seq_dim must be < input rank ( 3 vs. 3)"),
        (-4, 0, [1, 1], "seq_dim must be < input rank ( -4 vs. 3)"),
        (1, 3, [1, 1], "batch_dim must be < input rank ( 3 vs. 3)"),
        (1, -4, [1, 1], "batch_dim must be < input rank ( -4 vs. 3)"),
        (1, 1, [1, 1, 1], "batch_dim == seq_dim == 1"),
        (-1, 2, [1, 1, 1, 1], "batch_dim == seq_dim == 2"),
        (1, 0, [1, 1, 1], "Length of seq_lengths != input.dims(0), (3 vs. 2)"),
        (1, 0, [[1, 1]], "Length of seq_lengths != input.dims(0), (2 vs. 2)"),
        (1, 0, [1, -1], "seq_lens(1) < 0"),
        (1, 0, [1, 4], "seq_lens(1) > input.dims(1)"),
        (1, 0, [4, 1], "seq_lens(0) > input.dims(1)"),
    ],
)
def test_sequences_that_there_are_not(ops: Any, seq: int, batch: int, lengths: Any, text: str) -> None:
    refused(ops, "ReverseSequence", [X, np.array(lengths, np.int32)], text, seq_dim=seq, batch_dim=batch)


@pytest.mark.parametrize(
    ("shift", "axis"),
    [(1, 0), (-1, 2), (5, 1), ([1, 2], [0, 1]), ([1, 2], [-1, -3]), ([1, 2], [1, 1]), ([], []), ([0], [2])],
)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_elements_are_rolled(ops: Any, shift: Any, axis: Any, kind: Any) -> None:
    found = ops.run("Roll", [X, np.array(shift, kind), np.array(axis, kind)])
    wanted = np.roll(X, shift, axis) if np.size(shift) else X
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("x", "shift", "axis", "text"),
    [
        (F(1), 1, 0, "input must be 1-D or higher"),
        (X, [[1]], [[0]], "shift must be a scalar or a 1-D vector. Found: [1,1]"),
        (X, [1], [[0]], "axis must be a scalar or a 1-D vector. Found: [1,1]"),
        (X, [1, 2], [0], "shift and axis must have the same size"),
        (X, 1, [0], "shift and axis must have the same size"),
        (X, 1, 3, "axis 3 is out of range for input of 3 dimensions"),
        (X, [1, 1], [0, -4], "axis -4 is out of range for input of 3 dimensions"),
    ],
)
def test_rolls_along_what_is_not_there(ops: Any, x: Any, shift: Any, axis: Any, text: str) -> None:
    refused(ops, "Roll", [x, np.array(shift, np.int32), np.array(axis, np.int32)], text)
