"""What the options of a dataset ask for, as operations around it: made when an iterator of it is made.

Follows `DatasetV2._apply_options` of TensorFlow 1.15's dataset_ops.py, so that graphs have the nodes that TensorFlow's
have; what a server makes of them is its own affair.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tenfold.data.node import DatasetNode, int64, node_of
from tenfold.graph.conversion import convert_to_tensor
from tenfold_core import dtypes, errors

if TYPE_CHECKING:
    from tenfold.data.options import Options
    from tenfold.graph.operation import Operation

#: The algorithm of ModelDataset that is not written down: hill climbing.
_HILL_CLIMB = 0
#: What may stand behind the prefetch that is to leave slack, since it takes an element for each of its own; and what
#: takes one of each input.
_ONE_FOR_ONE = frozenset(
    (
        *("CacheDataset", "CacheDatasetV2", "FilterDataset", "Identity", "MapDataset", "MaxIntraOpParallelismDataset"),
        *("ModelDataset", "OptimizeDataset", "ParallelMapDataset", "PrivateThreadPoolDataset", "ReduceDataset"),
        *("RepeatDataset", "ShardDataset", "ShuffleAndRepeatDataset", "ShuffleDataset", "ShuffleDatasetV2"),
        *("SkipDataset", "TakeDataset", "WindowDataset", "ExperimentalMaxIntraOpParallelismDataset"),
        "ExperimentalPrivateThreadPoolDataset",
    )
)
_SEVERAL = ("ZipDataset", "ConcatenateDataset")


def with_applied_options(dataset: DatasetNode) -> DatasetNode:
    """The dataset as its options want it to be run. Raises InvalidArgumentError for slack without a prefetch."""
    options = dataset.options()
    result = _with_threads(dataset, options)
    wanted = options._static_optimizations()
    if wanted and dataset._has_captured_ref():
        warnings.warn(
            "tf.data static optimizations are not compatible with tf.Variable. The following optimizations will be "
            f"disabled: {', '.join(wanted)}. To enable optimizations, use resource variables instead by calling "
            "`tf.enable_resource_variables()` at the start of the program.",
            stacklevel=4,
        )
    elif wanted:
        if options.experimental_slack:
            _check_prefetch(dataset._variant_tensor.op)
        result = optimized(result, wanted, options._static_optimization_configs())
    choice = options.experimental_optimization
    if choice.autotune is not False:
        result = _same(
            "ModelDataset",
            result,
            algorithm=_HILL_CLIMB if choice.autotune_algorithm is None else choice.autotune_algorithm,
            cpu_budget=choice.autotune_cpu_budget or 0,
        )
    figures = options.experimental_stats
    if figures.aggregator is not None:
        result = aggregated(result, figures.aggregator, figures.prefix, figures.counter_prefix)
    return result


def _with_threads(dataset: DatasetNode, options: Options) -> DatasetNode:
    threads = options.experimental_threading
    if threads.max_intra_op_parallelism is not None:
        most = int64(threads.max_intra_op_parallelism, "max_intra_op_parallelism")
        dataset = _same("MaxIntraOpParallelismDataset", dataset, max_intra_op_parallelism=most)
    if threads.private_threadpool_size is not None:
        size = int64(threads.private_threadpool_size, "num_threads")
        dataset = _same("PrivateThreadPoolDataset", dataset, num_threads=size)
    return dataset


def _check_prefetch(op: Operation) -> None:
    """Raises InvalidArgumentError unless the last prefetch of the pipeline can leave a step some slack.

    A server of TensorFlow's says so when the iterator is started; ours need no slack.
    """
    pending = [op]
    while pending:
        current = pending.pop()
        if current.type in _ONE_FOR_ONE:
            pending.append(current.inputs[0].op)
        elif current.type in _SEVERAL:
            pending.extend(tensor.op for tensor in current.inputs)
        elif current.type != "PrefetchDataset":
            raise errors.InvalidArgumentError(
                None,
                None,
                f'Encountered unsupported op "{current.type}" when rewriting the input pipeline graph to use slack in '
                "its final prefetch transformation.",
            )


def optimized(dataset: DatasetNode, rewritings: Any, configs: Any = ()) -> DatasetNode:
    """The dataset with the named rewritings made."""
    names = convert_to_tensor(list(rewritings or ()), dtypes.string, name="optimizations")
    return _same("OptimizeDataset", dataset, optimizations=names, optimization_configs=list(configs))


def aggregated(dataset: DatasetNode, aggregator: Any, prefix: Any = "", counter_prefix: Any = "") -> DatasetNode:
    """The dataset with figures about it sent to a StatsAggregator."""
    return _same(
        "SetStatsAggregatorDataset",
        dataset,
        stats_aggregator=aggregator._resource,
        tag=convert_to_tensor(prefix, dtypes.string, name="tag"),
        counter_prefix=convert_to_tensor(counter_prefix, dtypes.string, name="counter_prefix"),
    )


def _same(op_type: str, dataset: DatasetNode, **arguments: Any) -> DatasetNode:
    return node_of(op_type, dataset.element_spec, (dataset,), input_dataset=dataset._variant_tensor, **arguments)
