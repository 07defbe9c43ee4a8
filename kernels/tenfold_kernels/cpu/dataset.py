"""Ops that make datasets of datasets. The machines are datasets/{transforms,functional,shuffle,prefetch,parallel}.py.

Models and options are hints about speed and change nothing here. The ops of `tf.data.experimental` are in
dataset_experimental.py. Follows the kernels of the same names under core/kernels/data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_core.blas_env import available_cores
from tenfold_kernels.arrays import Array, invalid
from tenfold_kernels.cpu.dataset_sources import function_of, number, text
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.datasets.batches import Batch, PaddedBatch, Window
from tenfold_kernels.resources.datasets.caches import Cache, MemoryCache
from tenfold_kernels.resources.datasets.core import Element, Run, SetUp, dataset_of, element_of
from tenfold_kernels.resources.datasets.file_caches import FileCache
from tenfold_kernels.resources.datasets.functional import Filter, LastIsTrue, Map
from tenfold_kernels.resources.datasets.interleave import Interleave
from tenfold_kernels.resources.datasets.mapped_batches import MapAndBatch
from tenfold_kernels.resources.datasets.parallel import ParallelMap
from tenfold_kernels.resources.datasets.prefetch import AUTOTUNED, Prefetch
from tenfold_kernels.resources.datasets.shuffle import SeedGenerator
from tenfold_kernels.resources.datasets.transforms import (
    Concatenate,
    Expected,
    Repeat,
    Shard,
    Skip,
    Take,
    Zip,
)
from tenfold_kernels.resources.handles import LocalHandle, kept
from tenfold_kernels.resources.state import ResourceHandle


def types_of(node: KernelNode) -> tuple[Any, Any]:
    return node.attrs["output_types"], node.attrs["output_shapes"]


def captured_of(values: tuple[Array, ...]) -> Element:
    return element_of([kept(value) for value in values])


@kernel("OptimizeDataset")
def build_optimize(node: KernelNode) -> Compute:
    """The input. One rewriting changes what a program sees, its shuffles' order, and so is made here too."""

    def compute(dataset: Array, optimizations: Array) -> Any:
        asked = optimizations.reshape(-1).tolist()

        def set_up(run: Run) -> None:
            run.fuses_shuffles |= b"shuffle_and_repeat_fusion" in asked
            run.is_sloppy |= b"make_sloppy" in asked

        return SetUp(dataset_of(dataset), set_up).as_array()

    return compute


@kernel("ModelDataset", "OptimizeDatasetV2", "OptionsDataset", "FinalizeDataset", "RewriteDataset")
def build_same(node: KernelNode) -> Compute:
    """How to run a dataset, not what it is: the input."""
    return lambda dataset, *hints: dataset_of(dataset).as_array()


@kernel("BatchDataset", "BatchDatasetV2", "ParallelBatchDataset")
def build_batch(node: KernelNode) -> Compute:
    types, shapes = types_of(node)

    def compute(dataset: Array, size: Array, *rest: Array) -> Any:
        found = dataset_of(dataset)
        drop = rest[-1] if rest else None  # before it, how many batches to make at once
        return Batch(types, shapes, found, number(size, "batch_size"), drop is not None and bool(drop)).as_array()

    return compute


@kernel("PaddedBatchDataset", "PaddedBatchDatasetV2")
def build_padded_batch(node: KernelNode) -> Compute:
    types, shapes = node.attrs["Toutput_types"], node.attrs["output_shapes"]
    count = int(node.attrs["N"])

    def compute(dataset: Array, size: Array, *rest: Array) -> Any:
        padded = [[int(extent) for extent in shape.reshape(-1)] for shape in rest[:count]]
        values = captured_of(rest[count : count + len(types)])
        if len(values) != count or any(value.ndim for value in values):
            raise invalid("All padding values must be scalars, one for each component")
        drop = len(rest) > count + len(types) and bool(rest[-1])
        found = dataset_of(dataset)
        return PaddedBatch(types, shapes, found, number(size, "batch_size"), padded, values, drop).as_array()

    return compute


def _keeps_order(node: KernelNode) -> bool:
    """Whether elements come in order. `default` leaves it to options, of which the order is kept too."""
    return not node.attrs.get("sloppy", False) and node.attrs.get("deterministic") not in (b"false", "false")


@kernel("MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2", "ExperimentalMapDataset")
def build_map(node: KernelNode) -> Compute:
    (types, shapes), function = types_of(node), function_of(node, "f")
    count, keeps = len(node.attrs["Targuments"]), bool(node.attrs["preserve_cardinality"])
    in_order = _keeps_order(node)
    # To clients of release 1.15, whose nodes have no metadata, a map has as many elements as its input.
    is_counted = keeps or not node.attrs.get("metadata")

    def compute(dataset: Array, *others: Array) -> Any:
        found, captured = dataset_of(dataset), captured_of(others[:count])
        if len(others) == count:
            return Map(types, shapes, found, function, captured, keeps, is_counted).as_array()
        calls = number(others[count], "num_parallel_calls")
        return ParallelMap(
            types, shapes, found, function, captured, keeps, calls, in_order, is_counted=is_counted
        ).as_array()

    return compute


@kernel("MapAndBatchDataset", "ExperimentalMapAndBatchDataset")
def build_map_and_batch(node: KernelNode) -> Compute:
    (types, shapes), function, count = types_of(node), function_of(node, "f"), len(node.attrs["Targuments"])
    keeps = bool(node.attrs["preserve_cardinality"])
    # An element's shape is a batch's without the batch; no reader uses more of it.
    inner = [shape if shape.ndims is None else shape[1:] for shape in shapes]
    kind = node.op.removeprefix("Experimental")

    def compute(dataset: Array, *rest: Array) -> Any:
        size, calls, drop = rest[count:]
        many = number(calls, "num_parallel_calls")
        captured = captured_of(rest[:count])
        mapped = ParallelMap(types, inner, dataset_of(dataset), function, captured, keeps, many, True, kind)
        return MapAndBatch(types, shapes, mapped, number(size, "batch_size"), bool(drop)).as_array()

    return compute


@kernel("FilterDataset", "ParallelFilterDataset")
def build_filter(node: KernelNode) -> Compute:
    function, count = function_of(node, "predicate"), len(node.attrs["Targuments"])
    return lambda dataset, *others: Filter(dataset_of(dataset), function, captured_of(others[:count])).as_array()


@kernel("FilterByLastComponentDataset")
def build_filter_by_last(node: KernelNode) -> Compute:
    types, shapes = types_of(node)
    return lambda dataset: LastIsTrue(types, shapes, dataset_of(dataset)).as_array()


@kernel("FlatMapDataset")
def build_flat_map(node: KernelNode) -> Compute:
    (types, shapes), function = types_of(node), function_of(node, "f")

    def compute(dataset: Array, *others: Array) -> Any:
        return Interleave(types, shapes, dataset_of(dataset), function, captured_of(others)).as_array()

    return compute


#: Elements of each open dataset that are made ahead where calls are parallel and nothing says how many.
_AHEAD = 4


@kernel(
    "InterleaveDataset", "ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3", "ParallelInterleaveDatasetV4"
)
def build_interleave(node: KernelNode) -> Compute:
    (types, shapes), function, count = types_of(node), function_of(node, "f"), len(node.attrs["Targuments"])
    is_parallel = node.op != "InterleaveDataset"
    of_1_15 = node.op in ("InterleaveDataset", "ParallelInterleaveDatasetV2")

    def compute(dataset: Array, *rest: Array) -> Any:
        cycle, block = number(rest[count], "cycle_length"), number(rest[count + 1], "block_length")
        # -1 leaves the length of the cycle to us; release 1.15 takes a dataset for each core.
        calls = number(rest[-1], "num_parallel_calls") if is_parallel else 1
        if calls != -1 and calls < 1:
            raise invalid("`num_parallel_calls` must be > 0.")
        if cycle != -1 and calls > cycle:
            raise invalid(
                "If `cycle_length` is set to a fixed value, `num_parallel_calls` must be either `tf.data.AUTOTUNE` or "
                f"a value less than or equal to `cycle_length`. However, `num_parallel_calls` is {calls} and "
                f"`cycle_length` is {cycle}"
            )
        cycle = cycle if cycle != -1 else available_cores() if of_1_15 else 4
        ahead = _AHEAD if is_parallel else 0
        return Interleave(
            types, shapes, dataset_of(dataset), function, captured_of(rest[:count]), cycle, block, ahead
        ).as_array()

    return compute


@kernel("ParallelInterleaveDataset", "LegacyParallelInterleaveDatasetV2", "ExperimentalParallelInterleaveDataset")
def build_parallel_interleave(node: KernelNode) -> Compute:
    """The order of tf.contrib.data's: one that has ended makes room for the next at once."""
    (types, shapes), function, count = types_of(node), function_of(node, "f"), len(node.attrs["Targuments"])
    has_sloppy = node.op != "LegacyParallelInterleaveDatasetV2"

    def compute(dataset: Array, *rest: Array) -> Any:
        cycle, block = number(rest[count], "cycle_length"), number(rest[count + 1], "block_length")
        at = count + 2 + has_sloppy
        buffered = number(rest[at], "buffer_output_elements")
        prefetched = number(rest[at + 1], "prefetch_input_elements")
        if buffered < 1 and buffered != -1:
            raise invalid("`buffer_output_elements` must be > 0")
        if prefetched < 0 and prefetched != -1:
            raise invalid("`prefetch_input_elements` must be >= 0")
        ahead = AUTOTUNED if buffered == -1 else buffered
        return Interleave(
            types, shapes, dataset_of(dataset), function, captured_of(rest[:count]), cycle, block, ahead, True
        ).as_array()

    return compute


@kernel("RepeatDataset")
def build_repeat(node: KernelNode) -> Compute:
    return lambda dataset, count: Repeat(dataset_of(dataset), number(count, "count")).as_array()


@kernel("TakeDataset")
def build_take(node: KernelNode) -> Compute:
    return lambda dataset, count: Take(dataset_of(dataset), number(count, "count")).as_array()


@kernel("SkipDataset")
def build_skip(node: KernelNode) -> Compute:
    return lambda dataset, count: Skip(dataset_of(dataset), number(count, "count")).as_array()


@kernel("ShardDataset")
def build_shard(node: KernelNode) -> Compute:
    needs_one = bool(node.attrs["require_non_empty"])

    def compute(dataset: Array, shards: Array, index: Array) -> Any:
        found = dataset_of(dataset)
        return Shard(found, number(shards, "num_shards"), number(index, "index"), needs_one).as_array()

    return compute


@kernel("WindowDataset")
def build_window(node: KernelNode) -> Compute:
    types, shapes = types_of(node)

    def compute(dataset: Array, size: Array, shift: Array, stride: Array, drop: Array) -> Any:
        length, step, apart = number(size, "size"), number(shift, "shift"), number(stride, "stride")
        return Window(types, shapes, dataset_of(dataset), length, step, apart, bool(drop)).as_array()

    return compute


@kernel("ZipDataset")
def build_zip(node: KernelNode) -> Compute:
    types, shapes = types_of(node)
    return lambda *datasets: Zip(types, shapes, *map(dataset_of, datasets)).as_array()


@kernel("ConcatenateDataset")
def build_concatenate(node: KernelNode) -> Compute:
    types, shapes = types_of(node)

    def compute(first: Array, second: Array) -> Any:
        datasets = dataset_of(first), dataset_of(second)
        if datasets[0].types != datasets[1].types:
            given = (f"[{','.join(dtype.name for dtype in dataset.types)}]" for dataset in datasets)
            raise invalid(f"input dataset and dataset to concatenate have different output_types {' and '.join(given)}")
        return Concatenate(types, shapes, *datasets).as_array()

    return compute


@kernel("PrefetchDataset")
def build_prefetch(node: KernelNode) -> Compute:
    return lambda dataset, size: Prefetch(dataset_of(dataset), number(size, "buffer_size")).as_array()


@kernel("CacheDataset", "CacheDatasetV2")
def build_cache(node: KernelNode) -> Compute:
    """In memory, or in a file of that name; a cache of V2 may be shared by a resource."""

    def compute(dataset: Array, filename: Array, cache: Any = None) -> Any:
        if name := text(filename, "filename"):
            return FileCache(dataset_of(dataset), name).as_array()
        found = resource_or_none(cache, MemoryCache)
        return Cache(dataset_of(dataset), found if found is not None else MemoryCache()).as_array()

    return compute


def resource_or_none(handle: Any, type_: type[Any]) -> Any:
    """What the handle holds; None for a dummy, which stands for "make your own"."""
    value = None if handle is None else handle[()]
    resource = value.resource if isinstance(value, LocalHandle) else None
    return resource if isinstance(resource, type_) else None


def local_handle(node: KernelNode, resource: Any) -> Array:
    return LocalHandle(node.device, "", node.name, 0, type(resource).__name__, resource).as_array()


def _with_deleter(node: KernelNode, resource: Any) -> tuple[Array, Array]:
    """A handle that keeps its resource, and what a program deletes it with: nothing needs to be done."""
    deleter = np.empty((), object)
    return local_handle(node, resource), deleter


@kernel("AnonymousSeedGenerator", "AnonymousRandomSeedGenerator")
def build_seed_generator(node: KernelNode) -> Compute:
    def compute(seed: Array, seed2: Array, reshuffle: Any = True) -> Any:
        return _with_deleter(node, SeedGenerator(number(seed, "seed"), number(seed2, "seed2"), bool(reshuffle)))

    return compute


@kernel("AnonymousMemoryCache")
def build_memory_cache(node: KernelNode) -> Compute:
    return lambda: _with_deleter(node, MemoryCache())


@kernel("DummySeedGenerator", "DummyMemoryCache")
def build_dummy(node: KernelNode) -> Compute:
    return lambda: ResourceHandle(node.device, "", node.name).as_array()


@kernel("DeleteSeedGenerator", "DeleteRandomSeedGenerator", "DeleteMemoryCache")
def build_delete(node: KernelNode) -> Compute:
    """What a handle held goes with the last use of it."""
    return lambda handle, deleter: None


# ---- how many --------------------------------------------------------------------------------------------------------


@kernel("DatasetCardinality", "ExperimentalDatasetCardinality")
def build_cardinality(node: KernelNode) -> Compute:
    return lambda dataset: np.array(dataset_of(dataset).cardinality(), np.int64)


@kernel("AssertCardinalityDataset")
def build_assert_cardinality(node: KernelNode) -> Compute:
    return lambda dataset, count: Expected(dataset_of(dataset), number(count, "cardinality")).as_array()
