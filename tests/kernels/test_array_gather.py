"""Gather, GatherNd, DynamicPartition and DynamicStitch against NumPy: types with and without loops, edges, refusals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from support.op_values import filled, ints, refused
from support.room import assert_wants
from tenfold_core import errors
from tenfold_kernels.cpu import array_gather

F = np.float32
#: Types with a compiled loop, and types without.
KINDS = (np.float32, np.int64, np.float16, np.complex64, np.bool_, object)


def same(found: Any, wanted: Any) -> None:
    assert (type(found), found.shape, found.tolist()) == (np.ndarray, wanted.shape, wanted.tolist())


# -- Gather ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.int16])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(4,), (4, 3), (3, 1, 2), (3, 0), (2, 2, 0)])
def test_rows_are_picked(ops: Any, dtype: Any, kind: Any, shape: tuple[int, ...]) -> None:
    params = filled(shape, dtype)
    for places in (0, shape[0] - 1, [], [0], [1, 0, 1], [[0, 1], [1, 1]], np.zeros((2, 0))):
        indices = np.array(places, kind)
        wanted = np.take(params, indices, 0) if dtype is not object else params[indices]
        wanted = np.asarray(wanted, dtype).reshape((*indices.shape, *shape[1:]))
        if kind is not np.int16:
            same(ops.run("Gather", [params, indices]), wanted)
        same(ops.run("GatherV2", [params, indices, 0]), wanted)
        same(ops.run("GatherV2", [params, indices, -len(shape)]), wanted)


def test_rows_of_what_is_not_contiguous(ops: Any) -> None:
    params, indices = filled((4, 6))[::2, ::3], ints(0, 9, 1, 9)[::2]
    same(ops.run("Gather", [params, indices]), params[[0, 1]])
    same(ops.run("Gather", [filled((6,))[::2], indices]), F([1, 3]))


@pytest.mark.parametrize("dtype", KINDS)
def test_along_any_axis(ops: Any, dtype: Any) -> None:
    params = filled((2, 3, 4), dtype)
    for axis in (-3, -2, -1, 0, 1, 2):
        for places in (1, [1, 0, 0], [[1], [0]], np.zeros((0, 2))):
            indices = np.array(places, np.int32)
            same(ops.run("GatherV2", [params, indices, axis]), np.take(params, indices, axis))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("bad", [-1, 3, 4])
def test_an_index_out_of_range_is_named(ops: Any, dtype: Any, bad: int) -> None:
    params = filled((3, 3), dtype)
    for op, axis in (("Gather", []), ("GatherV2", [0]), ("GatherV2", [1])):
        for places, at in ((bad, ""), ([0, bad], "[1]"), ([[0, 1], [2, bad], [bad, 0]], "[1,1]")):
            text = f"indices{at} = {bad} is not in [0, 3)"
            refused(ops, op, [params, np.array(places, np.int32), *axis], text)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_rows_of_nothing(ops: Any, dtype: Any) -> None:
    """An index must lie inside even where its row has no elements."""
    refused(ops, "Gather", [np.ones((0, 2), dtype), ints(0)], "indices[0] = 0 is not in [0, 0)")
    refused(ops, "Gather", [np.ones((2, 0), dtype), ints(2)], "indices[0] = 2 is not in [0, 2)")
    assert ops.run("Gather", [np.ones((0, 2), dtype), np.zeros(0, np.int32)]).shape == (0, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_scalar_has_no_rows(ops: Any, dtype: Any) -> None:
    for op, rest in (("Gather", []), ("GatherV2", [0]), ("GatherV2", [1])):
        refused(ops, op, [np.ones((), dtype), ints(0), *rest], "params must be at least 1 dimensional")


@pytest.mark.parametrize(
    ("axis", "text"),
    [
        (2, "Expected axis in the range [-2, 2), but got 2"),
        (-3, "Expected axis in the range [-2, 2), but got -3"),
        ([0], "axis must be scalar"),
    ],
)
def test_the_axis_is_there(ops: Any, axis: Any, text: str) -> None:
    refused(ops, "GatherV2", [filled((2, 3)), ints(0), np.array(axis, np.int32)], text)


def test_an_axis_that_changes_is_read_again(ops: Any) -> None:
    params, axis = filled((2, 3)), ints(0).reshape(())
    gather, _ = ops.build("GatherV2", [params, ints(1), axis], {})
    same(gather(params, ints(1), axis), params[[1]])
    axis[...] = 1
    same(gather(params, ints(1), axis), params[:, [1]])


@pytest.mark.parametrize("dtype", KINDS)
def test_batches_have_indices_of_their_own(ops: Any, dtype: Any) -> None:
    params = filled((2, 3, 4, 2), dtype)
    for batch, axis, rest in itertools.product((1, 2), (1, 2, 3), ((), (2,), (0,), (1, 2))):
        if axis < batch:
            continue
        shape = (*params.shape[:batch], *rest)
        indices = (np.arange(int(np.prod(shape))) % 2).reshape(shape)
        wanted = np.empty((*params.shape[:axis], *rest, *params.shape[axis + 1 :]), dtype)
        for place in np.ndindex(params.shape[:batch]):
            wanted[place] = np.take(params[place], indices[place], axis - batch)
        from_the_end = batch - len(shape) or batch
        for batch_dims, at in ((batch, axis), (from_the_end, axis), (batch, axis - 4)):
            same(ops.run("GatherV2", [params, indices, at], batch_dims=batch_dims), wanted)


def test_no_batches_have_nothing_to_give(ops: Any) -> None:
    found = ops.run("GatherV2", [filled((0, 3, 2)), np.zeros((0, 4), np.int32), 1], batch_dims=1)
    assert (found.shape, found.dtype) == ((0, 4, 2), np.float32)


@pytest.mark.parametrize(
    ("shape", "axis", "batch", "text"),
    [
        ((2, 3), 1, 3, "Expected batch_dims in the range [-2, 2], but got 3"),
        ((2, 3), 1, -3, "Expected batch_dims in the range [-2, 2], but got -3"),
        ((2, 3), 1, 2, "batch_dims (2) must be less than rank(params) (2)."),
        ((2, 3, 2), 1, 2, "batch_dims (2) must be less than or equal to axis (1)."),
        ((2, 3), 0, -1, "batch_dims (1) must be less than or equal to axis (0)."),
        ((3, 3), 1, 1, "params.shape[0]: 3 should be equal to indices.shape[0]: 2"),
        ((2, 4, 5), 2, 2, "params.shape[1]: 4 should be equal to indices.shape[1]: 3"),
    ],
)
def test_batches_that_do_not_fit(ops: Any, shape: Any, axis: int, batch: int, text: str) -> None:
    refused(ops, "GatherV2", [filled(shape), np.zeros((2, 3), np.int32), axis], text, batch_dims=batch)


def test_an_index_out_of_range_in_a_batch_is_named(ops: Any) -> None:
    text = "indices[1,0] = 3 is not in [0, 3)"
    refused(ops, "GatherV2", [filled((2, 3)), ints([0, 1], [3, 0]), 1], text, batch_dims=1)


def test_all_dimensions_of_the_indices_may_be_a_batch(ops: Any) -> None:
    same(ops.run("GatherV2", [filled((2, 3)), ints(2, 0), 1], batch_dims=1), F([3, 4]))
    assert array_gather.gather_batch(np.ones((2, 3, 4)), np.ones((2, 3)), 2, 2) == 2
    assert array_gather.gather_batch(np.ones((2, 3, 4)), np.ones((2, 3)), 2, -2) == 0


# -- GatherNd ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.int16])
@pytest.mark.parametrize("dtype", [np.float32, np.bool_, object])
@pytest.mark.parametrize("outer", [(), (1,), (4,), (2, 2), (0,)])
def test_tuples_name_elements_rows_or_all(ops: Any, dtype: Any, kind: Any, outer: tuple[int, ...]) -> None:
    params = filled((2, 3, 2), dtype)
    places = [(0, 1, 1), (1, 2, 0), (1, 0, 1), (0, 0, 0)]
    for depth in range(4):
        rows = np.array([place[:depth] for place in places], kind)[: int(np.prod(outer))].reshape(*outer, depth)
        wanted = np.empty((*outer, *params.shape[depth:]), dtype)
        for at in np.ndindex(outer):
            wanted[at] = params[tuple(rows[at])]
        for each in (params, np.asfortranarray(params)):
            same(ops.run("GatherNd", [each, rows]), wanted)
        good = ops.run("GatherNd", [params, rows], bad_indices_policy=b"IGNORE")
        if dtype is not object or int(np.prod(outer)):
            same(good, wanted)


def test_a_gather_of_all_is_a_copy(ops: Any) -> None:
    params = filled((2, 2))
    found, _ = ops.build("GatherNd", [params, np.zeros((1, 0), np.int32)], {})
    made = found(params, np.zeros((1, 0), np.int32))
    made += 1
    assert params.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("bad", [(0, 3), (2, 0), (-1, 0), (0, -1)])
@pytest.mark.parametrize("deep", [False, True])
def test_a_tuple_out_of_range_is_named(ops: Any, bad: tuple[int, int], deep: bool) -> None:
    params = filled((2, 3, 2)) if deep else filled((2, 3))
    shape = "[2,3,2]" if deep else "[2,3]"
    text = f"indices[1] = [{bad[0]}, {bad[1]}] does not index into param shape {shape}"
    refused(ops, "GatherNd", [params, ints([1, 2], bad, bad)], text)
    text = f"indices[0,1] = [{bad[0]}, {bad[1]}] does not index into param shape {shape}"
    refused(ops, "GatherNd", [params, ints([[1, 2], bad])], text)


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_tuples_out_of_range_give_zeros_where_that_is_asked_for(ops: Any, dtype: Any) -> None:
    params = filled((2, 3), dtype)
    places = ints([1, 2], [2, 0], [0, 3], [-1, 0], [0, -1], [0, 0])
    assert ops.run("GatherNd", [params, places], bad_indices_policy=b"IGNORE").tolist() == [6, 0, 0, 0, 0, 1]
    rows = ops.run("GatherNd", [params, ints([2], [1], [-1])], bad_indices_policy=b"IGNORE")
    assert rows.tolist() == [[0, 0, 0], [4, 5, 6], [0, 0, 0]]
    none = ops.run("GatherNd", [params, ints([2], [-1])], bad_indices_policy=b"IGNORE")
    assert none.tolist() == [[0, 0, 0]] * 2
    refused(ops, "GatherNd", [params, ints([2], [-1])], "indices[0] = [2] does", bad_indices_policy=b"ERROR")
    refused(ops, "GatherNd", [params, ints([2], [-1])], "indices[0] = [2] does", bad_indices_policy=b"DEFAULT")
    refused(ops, "GatherNd", [params, ints([0])], "bad_indices_policy is 'LATER'", bad_indices_policy=b"LATER")


def test_texts_that_are_passed_over_are_empty(ops: Any) -> None:
    words = np.array([b"a", b"b"], object)
    assert ops.run("GatherNd", [words, ints([1], [2])], bad_indices_policy=b"IGNORE").tolist() == [b"b", b""]


@pytest.mark.parametrize(
    ("params", "indices", "text"),
    [
        (F(1), ints([0]), "params must be at least a vector"),
        (filled((2,)), np.array(0, np.int32), "indices must be at least a vector"),
        (filled((2,)), ints([0, 0]), "index innermost dimension length must be <= params rank; saw: 2 vs. 1"),
        (filled((2, 0)), ints([0]), "Requested more than 0 entries, but params is empty.  Params shape: [2,0]"),
    ],
)
def test_tuples_that_cannot_name_anything(ops: Any, params: Any, indices: Any, text: str) -> None:
    refused(ops, "GatherNd", [params, indices], text)


def test_nothing_of_nothing_may_be_gathered(ops: Any) -> None:
    assert ops.run("GatherNd", [filled((2, 0)), np.zeros((0, 1), np.int32)]).shape == (0, 0)
    assert ops.run("GatherNd", [filled((2, 0)), np.zeros((3, 0, 2), np.int32)]).shape == (3, 0)


def test_what_zeros_take_is_asked_for(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    params, rows = filled((2, 3)), ints([0], [1], [0], [1])
    run = lambda: ops.run("GatherNd", [params, rows], bad_indices_policy=b"IGNORE")  # noqa: E731
    assert_wants(monkeypatch, 4 * 3 * 4, run)


# -- DynamicPartition and DynamicStitch --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("outer", [(), (1,), (5,), (2, 3), (0,)])
@pytest.mark.parametrize("row", [(), (3,), (0,), (2, 2)])
@pytest.mark.parametrize("count", [1, 3])
def test_rows_go_to_parts(ops: Any, dtype: Any, outer: Any, row: Any, count: int) -> None:
    data = filled((*outer, *row), dtype)
    parts = (np.arange(int(np.prod(outer))) * 2 % count).reshape(outer).astype(np.int32)

    found = ops.run("DynamicPartition", [data, parts], num_partitions=count)

    assert isinstance(found, tuple) == (count > 1)
    for i, part in enumerate(found if count > 1 else [found]):
        same(part, data[parts == i])


@pytest.mark.parametrize("dtype", KINDS)
def test_parts_that_are_not_there(ops: Any, dtype: Any) -> None:
    for bad in (-1, 2, 3):
        for parts, at in (([0, bad, bad], "[1]"), ([[0, 1], [bad, 0]], "[1,0]"), (bad, "")):
            given = np.array(parts, np.int32)
            text = f"partitions{at} = {bad} is not in [0, 2)"
            refused(ops, "DynamicPartition", [filled((*given.shape, 2), dtype), given], text, num_partitions=2)
            nothing = filled((*given.shape, 0), dtype)
            refused(ops, "DynamicPartition", [nothing, given], text, num_partitions=2)


@pytest.mark.parametrize("shape", [(3,), (2,), (2, 2), ()])
def test_there_is_a_part_for_each_row(ops: Any, shape: Any) -> None:
    text = (
        "data.shape must start with partitions.shape, got data.shape = "
        f"[{','.join(map(str, shape))}], partitions.shape = [2,3]"
    )
    refused(ops, "DynamicPartition", [filled(shape), np.zeros((2, 3), np.int32)], text, num_partitions=2)
    with pytest.raises(errors.InvalidArgumentError, match=r"^data\.shape must start with"):
        array_gather.check_partitions(filled(shape), np.zeros((2, 3), np.int32), 1)


@pytest.mark.parametrize("op", ["DynamicStitch", "ParallelDynamicStitch"])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("row", [(), (3,), (0,), (2, 2)])
def test_rows_are_stitched(ops: Any, op: str, dtype: Any, row: Any) -> None:
    indices = [ints(3, 0), ints(5).reshape(()), ints([6, 1], [3, 3]), np.zeros(0, np.int32)]
    data = [filled((*each.shape, *row), dtype, 10 * i + 1) for i, each in enumerate(indices)]
    wanted = np.full((7, *row), b"" if dtype is object else 0, dtype)
    for index, values in zip(indices, data, strict=True):
        for place in np.ndindex(index.shape):
            wanted[index[place]] = values[place]

    same(ops.run(op, [*indices, *data], N=4), wanted)


@pytest.mark.parametrize("dtype", KINDS)
def test_nothing_stitched_is_empty(ops: Any, dtype: Any) -> None:
    same(ops.run("DynamicStitch", [np.zeros(0, np.int32), filled((0, 3), dtype)]), filled((0, 3), dtype))


def test_rows_of_other_memory_orders_are_stitched(ops: Any) -> None:
    index, values = ints(2, 9, 0, 9, 1, 9)[::2], np.asfortranarray(filled((3, 2)))
    same(ops.run("DynamicStitch", [index, values]), F([[3, 4], [5, 6], [1, 2]]))


@pytest.mark.parametrize(
    ("indices", "data", "text"),
    [
        ([[0], [1]], [(1, 2), (2, 2)], "data[1].shape = [2,2] does not start with indices[1].shape = [1]"),
        ([[0], [[1, 2]]], [(1,), (2, 1)], "data[1].shape = [2,1] does not start with indices[1].shape = [1,2]"),
        ([[0], [1]], [(1, 2), (1, 3)], "Need data[0].shape[indices[0].ndim:] = data[1].shape[indices[1].ndim:], got "
         "data[0].shape = [1,2], data[1].shape = [1,3], indices[0].shape = [1], indices[1].shape = [1]"),
        ([[0], [2, -1]], [(1, 2), (2, 2)], "indices[1] is out of range"),
        ([[-1, 0], [2, 1]], [(2, 2), (2, 2)], "indices[0] is out of range"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_stitched(ops: Any, indices: Any, data: Any, text: str) -> None:
    inputs = [*(np.array(each, np.int32) for each in indices), *map(filled, data)]
    refused(ops, "DynamicStitch", inputs, text, N=len(indices))


def test_what_stitching_takes_is_asked_for(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = lambda: ops.run("DynamicStitch", [ints(6, 1), filled((2, 3))])  # noqa: E731
    assert_wants(monkeypatch, 7 * 3 * 4, run)
