"""Gathers and scatters on a GPU give what they give on the CPU, in the same order; numbers out of range do nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cuda import _scatter, _sorting
from tenfold_kernels.cuda._ptx import text_of
from tenfold_kernels.cuda._runtime import runtime
from tenfold_kernels.cuda._scatter import Meeting, scatter
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    from types import SimpleNamespace

SIZES = ("int8", "float32", "int64", "complex128", "int32")
NUMBERS = ("float32", "float64", "int8", "uint8", "int64", "int32")


def data(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(1, 90, shape).astype(dtype)


def i32(values: Any) -> Any:
    return np.array(values, np.int32)


@pytest.fixture(params=["few", "many"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Numbers are looked through, or sorted by several threads."""
    if request.param == "many":
        monkeypatch.setattr(_scatter, "FEW", 0)
        monkeypatch.setattr(_scatter, "PIECE", 2)
        monkeypatch.setattr(_sorting, "CHUNK", 3)
    return str(request.param)


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_are_gathered(gpu: SimpleNamespace, dtype: str, index: Any) -> None:
    params = data((5, 3), dtype)

    gpu.same("Gather", [params, np.array([4, 0, 0, 2], index)])
    gpu.same("Gather", [params, np.array([[1], [3]], index)])
    gpu.same("Gather", [data((7,), dtype), np.array(6, index)])
    gpu.same("Gather", [params, np.zeros((0,), index)])
    gpu.same("GatherV2", [params, np.array([2, 1], index), i32(0)])
    gpu.same("GatherV2", [params, np.array([2, 1], index), i32(1)])
    gpu.same("GatherV2", [data((2, 3, 4), dtype), np.array([[2, 1]], index), i32(-2)])


@pytest.mark.parametrize(
    ("params", "indices", "axis", "batch_dims"),
    [((2, 4), (2, 3), 1, 1), ((2, 4, 3), (2, 3), 1, 1), ((2, 3, 4), (2, 5), 2, 1), ((2, 2, 4), (2, 2), 2, 2)],
    ids=str,
)  # fmt: skip
def test_batches_have_indices_of_their_own(
    gpu: SimpleNamespace, params: Any, indices: Any, axis: int, batch_dims: int
) -> None:
    numbers = np.random.default_rng(1).integers(0, params[axis], indices).astype(np.int32)

    gpu.same("GatherV2", [data(params, "float32"), numbers, i32(axis)], batch_dims=batch_dims)


@pytest.mark.parametrize("dtype", SIZES)
def test_index_tuples_are_gathered(gpu: SimpleNamespace, dtype: str) -> None:
    params = data((3, 4, 2), dtype)

    gpu.same("GatherNd", [params, i32([[0, 1, 1], [2, 3, 0]])])
    gpu.same("GatherNd", [params, np.array([[[0, 1]], [[2, 3]]])])
    gpu.same("GatherNd", [params, np.array([[2], [0]], np.int16)])
    gpu.same("GatherNd", [params, np.zeros((2, 0), np.int32)])
    gpu.same("GatherNd", [params, np.zeros((0, 2), np.int32)])


def test_an_index_out_of_range_gathers_zeros(gpu: SimpleNamespace) -> None:
    params = data((3, 2), "float32")

    rows = gpu.run("Gather", [params, i32([1, 3, -1])])
    columns = gpu.run("GatherV2", [params, i32([2, 0]), i32(1)])
    pairs = gpu.run("GatherNd", [params, i32([[1, 1], [1, 2], [-1, 0]])])

    np.testing.assert_array_equal(rows, [params[1], [0, 0], [0, 0]])
    np.testing.assert_array_equal(columns, np.stack([np.zeros(3), params[:, 0]], axis=1))
    np.testing.assert_array_equal(pairs, [params[1, 1], 0, 0])


def test_to_say_which_index_is_bad_is_refused(gpu: SimpleNamespace) -> None:
    with pytest.raises(errors.UnimplementedError, match="bad_indices_policy ERROR"):
        gpu.run("GatherNd", [data((3,), "float32"), i32([[1]])], bad_indices_policy="ERROR")
    with pytest.raises(errors.InvalidArgumentError, match="indices must be at least a vector"):
        gpu.run("GatherNd", [data((3,), "float32"), i32(1)])


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_rows_are_gathered_from_a_variable(gpu: SimpleNamespace, dtype: str) -> None:
    resources = ResourceManager()
    value = data((5, 3), dtype)
    made = _variable(gpu, value, resources)
    element = dtypes.as_dtype(value.dtype)

    found = gpu.run("ResourceGather", [made, i32([4, 1, 7])], resources=resources, dtype=element)
    pairs = gpu.run("ResourceGatherNd", [made, i32([[4, 1], [0, 2]])], resources=resources, dtype=element)

    np.testing.assert_array_equal(found, [value[4], value[1], np.zeros_like(value[0])])
    np.testing.assert_array_equal(pairs, [value[4, 1], value[0, 2]])


def _variable(gpu: SimpleNamespace, value: Any, resources: ResourceManager) -> Any:
    element = dtypes.as_dtype(value.dtype)
    made = gpu.run("VarHandleOp", [], resources=resources, dtype=element, shape=TensorShape(None), name="v")
    gpu.run("AssignVariableOp", [made, value], resources=resources)
    return made


@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128", "int32"])
def test_rows_are_parted_and_stitched(gpu: SimpleNamespace, dtype: str) -> None:
    rows = data((5, 2), dtype)
    partitions = i32([1, 0, 2, 0, 1])

    gpu.same("DynamicPartition", [rows, partitions], num_partitions=4)
    gpu.same("DynamicPartition", [data((2, 3), dtype), i32([[0, 1, 0], [1, 1, 0]])], num_partitions=2)
    gpu.same("DynamicPartition", [rows[:0], partitions[:0]], num_partitions=2)
    gpu.same("DynamicStitch", [i32([4, 0]), i32([1, 0, 5]), rows[:2], rows[2:]])
    gpu.same("ParallelDynamicStitch", [i32([[0, 1], [3, 2]]), i32(4), data((2, 2, 2), dtype), data((2,), dtype)])
    gpu.same("DynamicStitch", [i32([]), rows[:0]])


def test_a_partition_that_is_not_there_is_named(gpu: SimpleNamespace) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"partitions\[1\] = 2 is not in \[0, 2\)"):
        gpu.run("DynamicPartition", [data((2,), "float32"), i32([0, 2])], num_partitions=2)


@pytest.mark.parametrize("op", ["Where", "Unique", "ListDiff"])
def test_what_decides_sizes_is_computed_on_the_host(gpu: SimpleNamespace, op: str) -> None:
    given = {"Where": [np.array([True, False, True])], "Unique": [np.array([3, 1, 3])]}
    gpu.same(op, given.get(op, [np.array([3, 1, 3]), np.array([1])]))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_updates_are_added_where_tuples_say(gpu: SimpleNamespace, way: str, dtype: str) -> None:
    gpu.same("ScatterNd", [i32([[1], [3], [1]]), data((3,), dtype), i32([5])])
    gpu.same("ScatterNd", [i32([[0, 1], [2, 0], [0, 1], [0, 0]]), data((4, 3), dtype), i32([3, 2, 3])])
    gpu.same("ScatterNd", [np.array([[[1], [0]], [[1], [1]]]), data((2, 2, 2), dtype), np.array([3, 2])])
    gpu.same("ScatterNd", [np.zeros((0, 1), np.int32), data((0, 2), dtype), i32([3, 2])])


@pytest.mark.parametrize(
    "op",
    ["TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin", "ScatterNdNonAliasingAdd"],
)
@pytest.mark.parametrize("dtype", ["float32", "int64", "int32"])
def test_updates_meet_what_is_there(gpu: SimpleNamespace, way: str, op: str, dtype: str) -> None:
    gpu.same(op, [data((4, 3), dtype), i32([[1], [3], [1], [1]]), data((4, 3), dtype, 1)])
    gpu.same(op, [data((3, 2), dtype), i32([[1, 1], [0, 0], [1, 1]]), data((3,), dtype, 1)])


@pytest.mark.parametrize("dtype", SIZES)
def test_the_last_of_several_updates_stays(gpu: SimpleNamespace, way: str, dtype: str) -> None:
    gpu.same("TensorScatterUpdate", [data((4, 3), dtype), i32([[1], [3], [1], [1]]), data((4, 3), dtype, 1)])
    gpu.same("TensorScatterUpdate", [data((3, 2), dtype), i32([[1, 1], [0, 0], [1, 1]]), data((3,), dtype, 1)])


def test_updates_of_rows_that_are_not_there_are_passed_over(gpu: SimpleNamespace, way: str) -> None:
    updates = data((4,), "float32")

    found = gpu.run("ScatterNd", [i32([[1], [-1], [3], [1]]), updates, i32([3])])

    np.testing.assert_array_equal(found, [0, updates[0] + updates[3], 0])


@pytest.mark.parametrize(("count", "limit"), [(1, 1), (7, 3), (23, 40), (40, 300)])
def test_numbers_are_sorted_stably(monkeypatch: pytest.MonkeyPatch, count: int, limit: int) -> None:
    monkeypatch.setattr(_sorting, "CHUNK", 5)
    device = runtime(0)
    ids = np.random.default_rng(count).integers(-1, limit + 1, count)

    keys, order = _sorting.sort(device.to_device(ids), limit)

    clipped = np.where((ids < 0) | (ids >= limit), limit, ids)
    wanted = np.argsort(clipped, kind="stable")
    np.testing.assert_array_equal(order.to_host(), wanted)
    np.testing.assert_array_equal(keys.to_host(), clipped[wanted])


def test_only_rows_that_are_named_are_touched(way: str) -> None:
    device = runtime(0)
    target = device.to_device(np.full((4, 2), np.nan, np.float32))
    rows = device.to_device(data((3, 2), "float32"))

    scatter(Meeting("Add", keeps=False), target, device.to_device(i32([2, 0, 2])), rows)

    found, given = target.to_host(), rows.to_host()
    np.testing.assert_array_equal(found[[0, 2]], [given[1], given[0] + given[2]])
    assert np.isnan(found[[1, 3]]).all()


def test_kernels_of_one_module_are_told_apart() -> None:
    from tenfold_kernels.cuda._code import sorting

    kernels = [sorting.count, sorting.place, sorting.prefix_sums(4), sorting.prefix_sums(8)]

    assert len(set(map(text_of, kernels))) == 4
    assert text_of(sorting.prefix_sums(4)) == text_of(kernels[2])
