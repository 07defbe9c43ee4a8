"""Pack, Unpack, Concat, ConcatOffset, Split and SplitV against NumPy: every axis, refusals, what is remembered."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from support.op_values import filled, frozen, ints, refused
from support.room import assert_wants
from tenfold_kernels import chunks, parallel

F = np.float32
#: NumPy types whose scalars Pack treats in one of its ways.
KINDS = (np.float32, np.float16, np.bool_, np.int8, np.uint16, np.complex64, object)


# -- Pack and Unpack ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(), (2,), (0,), (2, 3), (1, 2, 2)])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_packing_stacks_along_any_axis_and_unpacking_undoes_it(
    ops: Any, dtype: Any, shape: tuple[int, ...], count: int
) -> None:
    values = [filled(shape, dtype, start=10 * i) for i in range(count)]
    if dtype is object:
        assert {type(text) for text in ops.run("Pack", values, axis=0).ravel().tolist()} <= {bytes}
    for axis in range(-len(shape) - 1, len(shape) + 1):
        packed = ops.run("Pack", values, axis=axis)
        np.testing.assert_array_equal(packed, np.stack(values, axis))

        parts = ops.run("Unpack", [packed], axis=axis, num=count)

        assert isinstance(parts, tuple) == (count > 1)
        for part, value in zip(parts if count > 1 else [parts], values, strict=True):
            np.testing.assert_array_equal(part, value)


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_the_axis_of_a_pack_has_room_for_one_more(ops: Any, shape: tuple[int, ...]) -> None:
    rank = len(shape) + 1
    for axis in (rank, -rank - 1):
        refused(ops, "Pack", [np.ones(shape, F)] * 2, f"axis = {axis} not in [-{rank}, {rank})", axis=axis)


def test_a_pack_takes_values_of_one_shape(ops: Any) -> None:
    text = "Shapes of all inputs must match: values[0].shape = [2] != values[2].shape = [1]"
    refused(ops, "Pack", [np.ones(2, F), np.ones(2, F), np.ones(1, F)], text)
    text = "Shapes of all inputs must match: values[0].shape = [] != values[1].shape = [1]"
    refused(ops, "Pack", [F(1), np.ones(1, F)], text)


def test_what_a_pack_and_a_concat_take_is_asked_for(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_wants(monkeypatch, 3 * 2 * 5 * 4, lambda: ops.run("Pack", [np.ones((2, 5), F)] * 3, axis=1))
    two = [np.ones((2, 3)), np.ones((4, 3))]
    assert_wants(monkeypatch, 6 * 3 * 8, lambda: ops.run("ConcatV2", [*two, 0]))
    assert_wants(monkeypatch, 6 * 3 * 8, lambda: ops.run("Concat", [0, *two]))


@pytest.mark.parametrize(("axis", "shape"), [(2, (2, 3)), (-3, (2, 3)), (0, ()), (-1, ())])
def test_the_axis_of_an_unpack_is_there(ops: Any, axis: int, shape: tuple[int, ...]) -> None:
    text = f"axis = {axis} not in [{-len(shape)}, {len(shape)})"
    refused(ops, "Unpack", [np.ones(shape, F)], text, axis=axis, num=2)


@pytest.mark.parametrize(("axis", "where", "num"), [(0, 0, 3), (0, 0, 1), (-1, 1, 2), (1, 1, 4)])
def test_an_unpack_has_an_output_for_each_slice(ops: Any, axis: int, where: int, num: int) -> None:
    text = f"Input shape axis {where} must equal {num}, got shape [2,3]"
    refused(ops, "Unpack", [np.ones((2, 3), F)], text, axis=axis, num=num)


# -- Concat ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
@pytest.mark.parametrize("dtype", KINDS)
def test_joining_is_numpys(ops: Any, axis: int, dtype: Any) -> None:
    shapes = [[2, 3, 2] for _ in range(3)]
    for length, shape in zip((1, 0, 4), shapes, strict=True):
        shape[axis] = length
    values = [filled(tuple(shape), dtype, start=50 * i) for i, shape in enumerate(shapes)]
    expected = np.concatenate(values, axis)

    for number in (np.int32(axis), np.array([axis], np.int32), np.int64(axis)):
        np.testing.assert_array_equal(ops.run("ConcatV2", [*values, np.asarray(number)]), expected)
    np.testing.assert_array_equal(ops.run("Concat", [axis, *values]), expected)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("axis", [1, 2, -1])
def test_large_arrays_are_joined_in_parts(ops: Any, axis: int, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_width", lambda: parts)
    monkeypatch.setattr(chunks, "is_crowded", lambda: False)
    wide = filled((130, 40, 70), F)
    values = [wide[:, :, :60], wide[:, :, 5:65], filled((130, 40, 60), F, start=9)]

    np.testing.assert_array_equal(ops.run("ConcatV2", [*values, np.int32(axis)]), np.concatenate(values, axis))
    np.testing.assert_array_equal(ops.run("Pack", values, axis=axis), np.stack(values, axis))
    refused(
        ops,
        "ConcatV2",
        [*values, wide[:129, :, :60], np.int32(axis)],
        "ConcatOp : Dimension 0 in both shapes must be equal",
    )


@pytest.mark.parametrize("axis", [[[0]], [0, 0], []])
def test_the_axis_of_a_join_is_one_number(ops: Any, axis: Any) -> None:
    where, values = np.array(axis, np.int32), [np.ones((2, 3), F)] * 2
    text = f"axis tensor should be a scalar integer, but got shape [{','.join(map(str, where.shape))}]"
    refused(ops, "ConcatV2", [*values, where], text)
    refused(ops, "Concat", [where, *values], text)


@pytest.mark.parametrize("axis", [2, -3])
def test_the_axis_of_a_join_is_there(ops: Any, axis: int) -> None:
    text = f"ConcatOp : Expected concatenating dimensions in the range [-2, 2), but got {axis}"
    refused(ops, "ConcatV2", [np.ones((2, 3), F)] * 2 + [axis], text)
    refused(ops, "ConcatV2", [F(1), F(2), 0], "ConcatOp : Can't concatenate scalars")


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (
            [(2, 3), (2, 3), (2, 3, 1)],
            "Ranks of all input tensors should match: shape[0] = [2,3] vs. shape[2] = [2,3,1]",
        ),
        ([(2, 3), (3,)], "Ranks of all input tensors should match: shape[0] = [2,3] vs. shape[1] = [3]"),
        ([(2, 3), (2, 4)], "Dimension 1 in both shapes must be equal: shape[0] = [2,3] vs. shape[1] = [2,4]"),
        ([(2, 3, 4), (5, 3, 1)], "Dimension 2 in both shapes must be equal: shape[0] = [2,3,4] vs. shape[1] = [5,3,1]"),
    ],
)
def test_what_is_joined_differs_along_the_axis_only(ops: Any, shapes: list[tuple[int, ...]], text: str) -> None:
    values = [np.ones(shape, F) for shape in shapes]
    for axis in (0, -len(shapes[0])):
        refused(ops, "ConcatV2", [*values, axis], f"ConcatOp : {text}")


@pytest.mark.parametrize("op", ["Concat", "ConcatV2"])
def test_an_axis_that_changes_is_read_again(ops: Any, op: str) -> None:
    x, y, where = filled((2, 3), F, start=0), filled((2, 3), F, start=9), ints(0).reshape(())
    inputs = [where, x, y] if op == "Concat" else [x, y, where]
    join, _ = ops.build(op, inputs, {})
    assert join(*inputs).shape == (4, 3)
    where[...] = 1
    assert join(*inputs).shape == (2, 6)
    for axis in (frozen(0), frozen(1)):
        for _ in range(2):
            again = [axis, x, y] if op == "Concat" else [x, y, axis]
            np.testing.assert_array_equal(join(*again), np.concatenate([x, y], int(axis)))


# -- ConcatOffset ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("axis", "shapes", "expected"),
    [
        (1, [[2, 3, 4], [2, 5, 4], [2, 0, 4]], [[0, 0, 0], [0, 3, 0], [0, 8, 0]]),
        (-2, [[2, 3, 4], [2, 5, 4], [2, 0, 4]], [[0, 0, 0], [0, 3, 0], [0, 8, 0]]),
        (0, [[7], [1]], [[0], [7]]),
        (-1, [[2, 3], [2, 1], [2, 9]], [[0, 0], [0, 3], [0, 4]]),
        (-2, [[1, 3], [2, 3], [9, 3]], [[0, 0], [1, 0], [3, 0]]),
    ],
)
def test_where_joined_arrays_begin(ops: Any, dtype: Any, axis: int, shapes: Any, expected: Any) -> None:
    found = ops.run("ConcatOffset", [axis, *(np.array(shape, dtype) for shape in shapes)])

    assert [offset.tolist() for offset in found] == expected


@pytest.mark.parametrize(
    ("axis", "shapes", "text"),
    [
        ([1], [[2, 3], [2, 3]], "Concat dim tensor should be a scalar integer, but got shape [1]"),
        (1, [[2, 3], [[2, 3]]], "input 2 should be a vector, but got shape [1,2]"),
        (2, [[2, 3], [2, 3]], "Concat dim is out of range: 2 vs. 2"),
        (-3, [[2, 3], [2, 3]], "Concat dim is out of range: -3 vs. 2"),
        (1, [[2, 3], [2]], "input 1 should contain 2 elements, but got 1"),
        (1, [[2, 3], [2, 3, 4]], "input 1 should contain 2 elements, but got 3"),
        (1, [[2, 3, 4], [2, 3, 5]], "All dimensions except 1 must match. Input 1 has shape [2 3 5] and doesn't match "
         "input 0 with shape [2 3 4]."),
        (1, [[2, 3], [2, 4], [1, 3]], "All dimensions except 1 must match. Input 2 has shape [1 3] and doesn't match "
         "input 0 with shape [2 3]."),
    ],
)  # fmt: skip
def test_offsets_of_what_cannot_be_joined(ops: Any, axis: Any, shapes: Any, text: str) -> None:
    refused(ops, "ConcatOffset", [np.array(axis, np.int32), *(np.array(each, np.int32) for each in shapes)], text)


# -- Split and SplitV --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, object])
@pytest.mark.parametrize("num", [1, 2, 3])
@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
def test_equal_parts_are_numpys_and_views(ops: Any, dtype: Any, num: int, axis: int) -> None:
    shape = [2, 3, 2]
    shape[axis] = 6
    x = filled(tuple(shape), dtype, start=0)

    found = ops.run("Split", [axis, x], num_split=num)

    assert isinstance(found, tuple) == (num > 1)
    for part, wanted in zip(found if num > 1 else [found], np.split(x, num, axis), strict=True):
        np.testing.assert_array_equal(part, wanted)
        assert np.shares_memory(part, x)


@pytest.mark.parametrize(
    ("axis", "shape", "num", "text"),
    [
        ([0], (4, 3), 2, "split_dim must be a scalar but has rank 1"),
        (2, (4, 3), 2, "-input rank(-2) <= split_dim < input rank (2), but got 2"),
        (-3, (4, 3), 2, "-input rank(-2) <= split_dim < input rank (2), but got -3"),
        (0, (), 2, "-input rank(-0) <= split_dim < input rank (0), but got 0"),
        (-1, (4, 3), 2, "Number of ways to split should evenly divide the split dimension, but got split_dim 1 "
         "(size = 3) and num_split 2"),
    ],
)  # fmt: skip
def test_equal_parts_that_there_are_not(ops: Any, axis: Any, shape: Any, num: int, text: str) -> None:
    refused(ops, "Split", [np.array(axis, np.int32), np.ones(shape, F)], text, num_split=num)


def test_a_split_remembers_a_constant_axis_for_one_shape(ops: Any) -> None:
    x, y = filled((4, 6), F, start=0), filled((6, 4), F, start=50)
    rows, columns, other_rows = frozen(0), frozen(1), frozen(0)
    split, _ = ops.build("Split", [rows, x], {"num_split": 2})

    for axis, value in itertools.product((rows, rows, columns, other_rows, rows), (x, x, y, x)):
        for part, wanted in zip(split(axis, value), np.split(value, 2, int(axis)), strict=True):
            np.testing.assert_array_equal(part, wanted)

    changing = ints(0).reshape(())
    assert [part.shape for part in split(changing, x)] == [(2, 6)] * 2
    changing[...] = 1
    assert [part.shape for part in split(changing, x)] == [(4, 3)] * 2


@pytest.mark.parametrize("axis", [-2, -1, 0, 1])
@pytest.mark.parametrize(
    ("sizes", "ends"),
    [([1, 2, 3], [1, 3]), ([0, 6, 0], [0, 6]), ([1, -1, 3], [1, 3]), ([-1, 6, 0], [0, 6]), ([4, 2, -1], [4, 6])],
)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_parts_of_given_sizes(ops: Any, axis: int, sizes: list[int], ends: list[int], kind: Any) -> None:
    shape = [2, 2]
    shape[axis] = 6
    x = filled(tuple(shape), F, start=0)
    for where in (axis, [axis]):
        found = ops.run("SplitV", [x, np.array(sizes, kind), np.array(where, np.int32)], num_split=3)
        for part, wanted in zip(found, np.split(x, ends, axis), strict=True):
            np.testing.assert_array_equal(part, wanted)
            assert not part.size or np.shares_memory(part, x)


@pytest.mark.parametrize("size", [6, -1])
def test_one_part_is_all(ops: Any, size: int) -> None:
    x = filled((2, 6), F, start=0)
    assert ops.run("SplitV", [x, ints(size), 1], num_split=1).tolist() == x.tolist()


WRONG_SUM = (
    "Determined shape must either match input shape along split_dim exactly if fully specified, or be less than the "
    "size of the input along split_dim if not fully specified.  Got: "
)
WRONG_SIZES = "size of the split_tensor must be 1-D and have the same elements as outputs got "


@pytest.mark.parametrize(
    ("sizes", "axis", "text"),
    [
        ([3, 3], [0, 0], "split_dim_tensor must have exactly one element."),
        ([3, 3], [], "split_dim_tensor must have exactly one element."),
        ([3, 3], 2, "-input rank(-2) <= split_dim < input rank (2), but got 2"),
        ([3, 3], -3, "-input rank(-2) <= split_dim < input rank (2), but got -3"),
        ([[3, 3]], 0, f"{WRONG_SIZES}2 -D and 2 elements"),
        ([1, 2, 3], 0, f"{WRONG_SIZES}1 -D and 3 elements"),
        ([6], 0, f"{WRONG_SIZES}1 -D and 1 elements"),
        ([-1, -1], 0, "There can only be one -1 in the input."),
        ([3, 4], 0, f"{WRONG_SUM}7"),
        ([3, 2], 0, f"{WRONG_SUM}5"),
        ([7, -1], 0, f"{WRONG_SUM}7"),
        ([-2, 8], 0, f"{WRONG_SUM}6"),
        ([-2, -1], 0, f"{WRONG_SUM}-2"),
        ([2, 2], 1, f"{WRONG_SUM}4"),
    ],
)
def test_sizes_that_do_not_fit(ops: Any, sizes: Any, axis: Any, text: str) -> None:
    inputs = [np.ones((6, 3), F), np.array(sizes, np.int32), np.array(axis, np.int32)]
    refused(ops, "SplitV", inputs, text, num_split=2)


def test_parts_are_remembered_for_constants_only(ops: Any) -> None:
    x, y = filled((4, 4), F, start=0), filled((4, 5), F, start=50)
    first, second, rows, columns = frozen([1, 3]), frozen([3, 1]), frozen(0), frozen(1)
    split, _ = ops.build("SplitV", [x, first, rows], {"num_split": 2})

    def check(value: np.ndarray, sizes: np.ndarray, axis: np.ndarray) -> None:
        for part, wanted in zip(split(value, sizes, axis), np.split(value, [sizes[0]], int(axis)), strict=True):
            np.testing.assert_array_equal(part, wanted)

    for sizes, axis in ((first, rows), (first, rows), (second, rows), (first, columns), (first, rows)):
        check(x, sizes, axis)
    check(y, first, rows)
    check(x, first, rows)

    changing = ints(1, 3)
    check(x, changing, rows)
    changing[:] = 2, 2
    check(x, changing, rows)
    where = ints(0).reshape(())
    check(x, first, where)
    where[...] = 1
    check(x, first, where)
