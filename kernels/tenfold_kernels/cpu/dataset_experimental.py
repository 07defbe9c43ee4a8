"""Ops of `tf.data.experimental`'s datasets, each with its twin of release 1.15's older name.

The machines are datasets/{transforms,functional,interleave,grouping,choosing,batches}.py. Files are in
dataset_files.py, figures in dataset_statistics.py. Follows the kernels under core/kernels/data/experimental.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.cpu.dataset import captured_of, resource_or_none, types_of
from tenfold_kernels.cpu.dataset_sources import function_of, number
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.datasets.batches import SlidingBatch, SparseBatch
from tenfold_kernels.resources.datasets.choosing import Sampling, Unique
from tenfold_kernels.resources.datasets.core import Dataset, Element, Machine, Run, Same, dataset_of
from tenfold_kernels.resources.datasets.functional import Scan, TakeWhile
from tenfold_kernels.resources.datasets.grouping import Bound, GroupByReducer, GroupByWindow
from tenfold_kernels.resources.datasets.interleave import Directed, Fastest, Interleave
from tenfold_kernels.resources.datasets.shuffle import SeedGenerator
from tenfold_kernels.resources.datasets.sources import Listed, RandomNumbers
from tenfold_kernels.resources.datasets.transforms import IgnoreErrors, Rebatch, Shard, Split, Unbatch
from tenfold_kernels.resources.handles import kept

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Seconds that an element may be held back by SleepDataset.
_LONGEST_SLEEP = 60.0


@kernel("UnbatchDataset", "ExperimentalUnbatchDataset")
def build_unbatch(node: KernelNode) -> Compute:
    types, shapes = types_of(node)
    return lambda dataset: Unbatch(types, shapes, dataset_of(dataset)).as_array()


@kernel("RebatchDataset", "ExperimentalRebatchDataset")
def build_rebatch(node: KernelNode) -> Compute:
    """Each batch cut into pieces, one for each replica."""
    types, shapes = types_of(node)

    def compute(dataset: Array, replicas: Array) -> Any:
        return Split(types, shapes, dataset_of(dataset), number(replicas, "num_replicas")).as_array()

    return compute


@kernel("RebatchDatasetV2")
def build_rebatch_v2(node: KernelNode) -> Compute:
    types, shapes = types_of(node)

    def compute(dataset: Array, sizes: Array, drop: Array) -> Any:
        if sizes.ndim > 1:
            raise invalid(f"batch_sizes must be a scalar or a vector, got shape {shape_text(sizes.shape)}")
        return Rebatch(types, shapes, dataset_of(dataset), sizes.reshape(-1).tolist(), bool(drop)).as_array()

    return compute


@kernel("AutoShardDataset", "ExperimentalAutoShardDataset")
def build_auto_shard(node: KernelNode) -> Compute:
    """Each worker's share, element by element: files are not told apart from what is read out of them."""
    is_off = int(node.attrs["auto_shard_policy"]) == -1

    def compute(dataset: Array, workers: Array, index: Array) -> Any:
        found = dataset_of(dataset)
        count = number(workers, "num_workers")
        if count < 1:
            raise invalid(f"num_workers must be >= 1, currently {count}")
        at = number(index, "index")
        if not 0 <= at < count:
            raise invalid(f"index must be >= 0 and < {count}, currently {at}")
        return (found if is_off else Shard(found, count, at)).as_array()

    return compute


@kernel("ScanDataset", "ExperimentalScanDataset")
def build_scan(node: KernelNode) -> Compute:
    (types, shapes), function = types_of(node), function_of(node, "f")
    states, keeps = len(node.attrs["Tstate"]), bool(node.attrs["preserve_cardinality"])

    def compute(dataset: Array, *rest: Array) -> Any:
        initial, captured = captured_of(rest[:states]), captured_of(rest[states:])
        return Scan(types, shapes, dataset_of(dataset), function, initial, captured, keeps).as_array()

    return compute


@kernel("TakeWhileDataset", "ExperimentalTakeWhileDataset")
def build_take_while(node: KernelNode) -> Compute:
    function = function_of(node, "predicate")
    return lambda dataset, *others: TakeWhile(dataset_of(dataset), function, captured_of(others)).as_array()


def _bound(node: KernelNode, values: Sequence[Array], *names: str) -> list[Bound]:
    """The functions of these attributes, each with its share of the captured values."""
    out, at = [], 0
    for name in names:
        count = len(node.attrs[f"T{name}_other_arguments"])
        out.append(Bound(function_of(node, name), captured_of(tuple(values[at : at + count]))))
        at += count
    return out


@kernel("GroupByWindowDataset", "ExperimentalGroupByWindowDataset")
def build_group_by_window(node: KernelNode) -> Compute:
    types, shapes = types_of(node)
    names = ("key_func", "reduce_func", "window_size_func")

    def compute(dataset: Array, *rest: Array) -> Any:
        return GroupByWindow(types, shapes, dataset_of(dataset), *_bound(node, rest, *names)).as_array()

    return compute


@kernel("GroupByReducerDataset", "ExperimentalGroupByReducerDataset")
def build_group_by_reducer(node: KernelNode) -> Compute:
    types, shapes = types_of(node)
    names = ("key_func", "init_func", "reduce_func", "finalize_func")

    def compute(dataset: Array, *rest: Array) -> Any:
        return GroupByReducer(types, shapes, dataset_of(dataset), *_bound(node, rest, *names)).as_array()

    return compute


@kernel("DirectedInterleaveDataset", "ExperimentalDirectedInterleaveDataset")
def build_directed_interleave(node: KernelNode) -> Compute:
    types, shapes = types_of(node)
    stops = bool(node.attrs.get("stop_on_empty_dataset", False))

    def compute(selector: Array, *datasets: Array) -> Any:
        chosen = dataset_of(selector)
        if len(chosen.types) != 1 or chosen.types[0].name != "int64":
            raise invalid("The selector input must be a dataset of scalar int64 elements.")
        return Directed(types, shapes, chosen, [dataset_of(each) for each in datasets], stops).as_array()

    return compute


@kernel("ChooseFastestDataset", "ExperimentalChooseFastestDataset")
def build_choose_fastest(node: KernelNode) -> Compute:
    types, shapes = types_of(node)
    return lambda *datasets: Fastest(types, shapes, [dataset_of(each) for each in datasets]).as_array()


@kernel("ChooseFastestBranchDataset")
def build_choose_fastest_branch(node: KernelNode) -> Compute:
    """The first branch: all of them give the same, and only time could tell which is the fastest."""
    types, shapes = types_of(node)
    function = function_of_branch(node, 0)
    count = int(node.attrs["other_arguments_lengths"][0])

    def compute(dataset: Array, numerator: Array, denominator: Array, *others: Array) -> Any:
        whole = Listed((), (), [(dataset,)])
        return Interleave(types, shapes, whole, function, captured_of(others[:count])).as_array()

    return compute


def function_of_branch(node: KernelNode, branch: int) -> Any:
    function = node.attrs["branches"][branch]
    if node.functions is None:
        raise invalid(f"Function {function.name} is not defined: the graph of node '{node.name}' has no library.")
    return node.functions.instantiate(function.name, function.attr, node.device)


@kernel("IgnoreErrorsDataset", "ExperimentalIgnoreErrorsDataset")
def build_ignore_errors(node: KernelNode) -> Compute:
    return lambda dataset: IgnoreErrors(dataset_of(dataset)).as_array()


@kernel("UniqueDataset", "ExperimentalUniqueDataset")
def build_unique(node: KernelNode) -> Compute:
    return lambda dataset: Unique(dataset_of(dataset)).as_array()


@kernel("SamplingDataset")
def build_sampling(node: KernelNode) -> Compute:
    def compute(dataset: Array, rate: Array, seed: Array, seed2: Array) -> Any:
        if rate.ndim:
            raise invalid("rate must be a scalar")
        seeds = SeedGenerator(number(seed, "seed"), number(seed2, "seed2"), reshuffle=False).seeds
        return Sampling(dataset_of(dataset), float(rate), *seeds).as_array()

    return compute


@kernel("RandomDataset", "RandomDatasetV2", "ExperimentalRandomDataset")
def build_random(node: KernelNode) -> Compute:
    types, shapes = types_of(node)
    anew = bool(node.attrs.get("rerandomize_each_iteration", False))

    def compute(seed: Array, seed2: Array, generator: Any = None) -> Any:
        seeds = resource_or_none(generator, SeedGenerator)
        if seeds is None:
            seeds = SeedGenerator(number(seed, "seed"), number(seed2, "seed2"), reshuffle=anew)
        return RandomNumbers(types, shapes, seeds.draw).as_array()

    return compute


@kernel("ListDataset")
def build_list(node: KernelNode) -> Compute:
    types, shapes = types_of(node)

    def compute(*tensors: Array) -> Any:
        values = [kept(tensor) for tensor in tensors]
        count = len(types)
        if len(values) % count:
            raise invalid(f"{len(values)} tensors do not make elements of {count} components")
        elements = [tuple(values[at : at + count]) for at in range(0, len(values), count)]
        return Listed(types, shapes, elements).as_array()

    return compute


@kernel("SlidingWindowDataset", "ExperimentalSlidingWindowDataset")
def build_sliding_window(node: KernelNode) -> Compute:
    types, shapes = types_of(node)
    drop = bool(node.attrs.get("drop_remainder", True))

    def compute(dataset: Array, size: Array, shift: Array, stride: Array) -> Any:
        values = number(size, "window_size"), number(shift, "window_shift"), number(stride, "window_stride")
        return SlidingBatch(types, shapes, dataset_of(dataset), *values, drop).as_array()

    return compute


@kernel("DenseToSparseBatchDataset", "ExperimentalDenseToSparseBatchDataset")
def build_dense_to_sparse_batch(node: KernelNode) -> Compute:
    types, shapes = types_of(node)

    def compute(dataset: Array, size: Array, row_shape: Array) -> Any:
        found = dataset_of(dataset)
        if len(found.types) != 1:
            raise invalid("DenseToSparseDataset only supports inputs with a single component.")
        if row_shape.ndim != 1:
            raise invalid(f"row_shape must be a vector, got shape {shape_text(row_shape.shape)}")
        return SparseBatch(types, shapes, found, number(size, "batch_size"), row_shape.tolist()).as_array()

    return compute


# ---- checks and delays -----------------------------------------------------------------------------------------------


@kernel("AssertNextDataset", "AssertPrevDataset", "ExperimentalAssertNextDataset")
def build_assert_next(node: KernelNode) -> Compute:
    """The input, if it was made by datasets of these names, the last one first."""

    def compute(dataset: Array, names: Array) -> Any:
        found: Dataset | None = dataset_of(dataset)
        for offset, name in enumerate(names.reshape(-1).tolist()):
            have = "nothing" if found is None else type(found).__name__
            if have != name.decode():
                raise invalid(
                    f"Asserted {name.decode()} transformation at offset {offset} but encountered {have} transformation "
                    "instead."
                )
            found = found.inputs[0] if found is not None and found.inputs else None
        return dataset_of(dataset).as_array()

    return compute


@kernel("NonSerializableDataset", "ExperimentalNonSerializableDataset")
def build_non_serializable(node: KernelNode) -> Compute:
    return lambda dataset: _NeverSaved(dataset_of(dataset)).as_array()


class _NeverSaved(Same):
    """The input, whose iterators cannot be saved."""

    def iterate(self, run: Run) -> Machine:
        return Machine(self.input.iterate(run).following)


@kernel("SleepDataset", "ExperimentalSleepDataset")
def build_sleep(node: KernelNode) -> Compute:
    def compute(dataset: Array, microseconds: Array) -> Any:
        seconds = number(microseconds, "sleep_microseconds") / 1e6
        if not 0 <= seconds <= _LONGEST_SLEEP:
            raise invalid(f"sleep_microseconds must be >= 0 and at most {_LONGEST_SLEEP * 1e6:.0f}")
        return _Sleepy(dataset_of(dataset), seconds).as_array()

    return compute


class _Sleepy(Same):
    """The input, each element so many seconds late."""

    is_slow = True

    def __init__(self, dataset: Dataset, seconds: float) -> None:
        super().__init__(dataset)
        self._seconds = seconds

    def iterate(self, run: Run) -> Machine:
        source = self.input.iterate(run)

        def following() -> Element | None:
            time.sleep(self._seconds)
            run.check()
            return source.following()

        return Machine(following, source.save, source.restore)
