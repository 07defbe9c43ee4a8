"""Op definitions: the names under which release 1.15 keeps what was once tf.contrib.data's.

Their kernels are those of the names without Experimental.
Loaded by dataset.py, rows as there: TensorFlow's registry at 2.21 is the source of every name, order and default.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_resources as r
from tenfold_core.opdefs.table import family

op = family("dataset")

op(
    "ExperimentalAssertNextDataset",
    "input_dataset: variant, transformations: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalAutoShardDataset",
    "input_dataset: variant, num_workers: int64, index: int64",
    "handle: variant",
    "auto_shard_policy: int = 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalBytesProducedStatsDataset",
    "input_dataset: variant, tag: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalCSVDataset",
    "filenames: string, compression_type: string, buffer_size: int64, header: bool, field_delim: string, use_quote_delim: bool, na_value: string, select_cols: int64, record_defaults: output_types",
    "handle: variant",
    "output_types: list({float, double, int32, int64, string}) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "ExperimentalChooseFastestDataset",
    "input_datasets: N * variant",
    "handle: variant",
    "N: int >= 2",
    "num_experiments: int",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalDenseToSparseBatchDataset",
    "input_dataset: variant, batch_size: int64, row_shape: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalDirectedInterleaveDataset",
    "selector_input_dataset: variant, data_input_datasets: N * variant",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "N: int >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalGroupByReducerDataset",
    "input_dataset: variant, key_func_other_arguments: Tkey_func_other_arguments, init_func_other_arguments: Tinit_func_other_arguments, reduce_func_other_arguments: Treduce_func_other_arguments, finalize_func_other_arguments: Tfinalize_func_other_arguments",
    "handle: variant",
    "key_func: func",
    "init_func: func",
    "reduce_func: func",
    "finalize_func: func",
    "Tkey_func_other_arguments: list(type) >= 0",
    "Tinit_func_other_arguments: list(type) >= 0",
    "Treduce_func_other_arguments: list(type) >= 0",
    "Tfinalize_func_other_arguments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "ExperimentalGroupByWindowDataset",
    "input_dataset: variant, key_func_other_arguments: Tkey_func_other_arguments, reduce_func_other_arguments: Treduce_func_other_arguments, window_size_func_other_arguments: Twindow_size_func_other_arguments",
    "handle: variant",
    "key_func: func",
    "reduce_func: func",
    "window_size_func: func",
    "Tkey_func_other_arguments: list(type) >= 0",
    "Treduce_func_other_arguments: list(type) >= 0",
    "Twindow_size_func_other_arguments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalIgnoreErrorsDataset",
    "input_dataset: variant",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "log_warning: bool = false",
    shape=r.scalar,
)
op(
    "ExperimentalLMDBDataset",
    "filenames: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "ExperimentalLatencyStatsDataset",
    "input_dataset: variant, tag: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalMapAndBatchDataset",
    "input_dataset: variant, other_arguments: Targuments, batch_size: int64, num_parallel_calls: int64, drop_remainder: bool",
    "handle: variant",
    "f: func",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "preserve_cardinality: bool = false",
    shape=r.scalar,
)
op(
    "ExperimentalMapDataset",
    "input_dataset: variant, other_arguments: Targuments",
    "handle: variant",
    "f: func",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "use_inter_op_parallelism: bool = true",
    "preserve_cardinality: bool = false",
    "force_synchronous: bool = false",
    shape=r.scalar,
)
op("ExperimentalMatchingFilesDataset", "patterns: string", "handle: variant", stateful=True, shape=r.scalar)
op(
    "ExperimentalMaxIntraOpParallelismDataset",
    "input_dataset: variant, max_intra_op_parallelism: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalNonSerializableDataset",
    "input_dataset: variant",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalParallelInterleaveDataset",
    "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, sloppy: bool, buffer_output_elements: int64, prefetch_input_elements: int64",
    "handle: variant",
    "f: func",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalParseExampleDataset",
    "input_dataset: variant, num_parallel_calls: int64, dense_defaults: Tdense",
    "handle: variant",
    "sparse_keys: list(string) >= 0",
    "dense_keys: list(string) >= 0",
    "sparse_types: list({float, int64, string}) >= 0",
    "Tdense: list({float, int64, string}) >= 0",
    "dense_shapes: list(shape) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "sloppy: bool = false",
    shape=r.scalar,
)
op(
    "ExperimentalPrivateThreadPoolDataset",
    "input_dataset: variant, num_threads: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalRandomDataset",
    "seed: int64, seed2: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "ExperimentalRebatchDataset",
    "input_dataset: variant, num_replicas: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "use_fallback: bool = true",
    shape=r.scalar,
)
op(
    "ExperimentalScanDataset",
    "input_dataset: variant, initial_state: Tstate, other_arguments: Targuments",
    "handle: variant",
    "f: func",
    "Tstate: list(type) >= 1",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "preserve_cardinality: bool = false",
    shape=r.scalar,
)
op(
    "ExperimentalSetStatsAggregatorDataset",
    "input_dataset: variant, stats_aggregator: resource, tag: string, counter_prefix: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "ExperimentalSleepDataset",
    "input_dataset: variant, sleep_microseconds: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalSlidingWindowDataset",
    "input_dataset: variant, window_size: int64, window_shift: int64, window_stride: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalSqlDataset",
    "driver_name: string, data_source_name: string, query: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "ExperimentalTakeWhileDataset",
    "input_dataset: variant, other_arguments: Targuments",
    "handle: variant",
    "predicate: func",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalThreadPoolDataset",
    "input_dataset: variant, thread_pool: resource",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "ExperimentalUnbatchDataset",
    "input_dataset: variant",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ExperimentalUniqueDataset",
    "input_dataset: variant",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op("ExperimentalDatasetCardinality", "input_dataset: variant", "cardinality: int64", shape=r.scalar)
op(
    "ExperimentalDatasetToTFRecord",
    "input_dataset: variant, filename: string, compression_type: string",
    "",
    stateful=True,
)
op("ExperimentalIteratorGetDevice", "resource: resource", "device: string", stateful=True, shape=s.scalar)
op(
    "ExperimentalStatsAggregatorHandle",
    "",
    "handle: resource",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.scalar,
)
op("ExperimentalStatsAggregatorSummary", "iterator: resource", "summary: string", stateful=True, shape=s.scalar)
op(
    "ExperimentalThreadPoolHandle",
    "",
    "handle: resource",
    "num_threads: int",
    "max_intra_op_parallelism: int = 1",
    "display_name: string",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.scalar,
)
