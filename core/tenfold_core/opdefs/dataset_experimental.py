"""Op definitions: datasets of `tf.data.experimental`.

Those of one kind have a twin of the name that release 1.15's own Python still writes in old graphs.
Loaded by dataset.py, rows as there: TensorFlow's registry at 2.21 is the source of every name, order and default.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns_resources as r
from tenfold_core.opdefs.table import family

op = family("dataset")

op(
    "AssertNextDataset",
    "input_dataset: variant, transformations: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "AssertPrevDataset",
    "input_dataset: variant, transformations: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "AutoShardDataset",
    "input_dataset: variant, num_workers: int64, index: int64",
    "handle: variant",
    "auto_shard_policy: int = 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "num_replicas: int = 0",
    shape=r.scalar,
)
op(
    "BytesProducedStatsDataset",
    "input_dataset: variant, tag: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "CSVDataset",
    "filenames: string, compression_type: string, buffer_size: int64, header: bool, field_delim: string, use_quote_delim: bool, na_value: string, select_cols: int64, record_defaults: output_types",
    "handle: variant",
    "output_types: list({float, double, int32, int64, string}) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "CSVDatasetV2",
    "filenames: string, compression_type: string, buffer_size: int64, header: bool, field_delim: string, use_quote_delim: bool, na_value: string, select_cols: int64, record_defaults: output_types, exclude_cols: int64",
    "handle: variant",
    "output_types: list({float, double, int32, int64, string}) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "ChooseFastestBranchDataset",
    "input_dataset: variant, ratio_numerator: int64, ratio_denominator: int64, other_arguments: Targuments",
    "handle: variant",
    "Targuments: list(type) >= 0",
    "num_elements_per_branch: int >= 1",
    "branches: list(func) >= 1",
    "other_arguments_lengths: list(int) >= 1",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ChooseFastestDataset",
    "input_datasets: N * variant",
    "handle: variant",
    "N: int >= 2",
    "num_experiments: int",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "DenseToSparseBatchDataset",
    "input_dataset: variant, batch_size: int64, row_shape: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "DirectedInterleaveDataset",
    "selector_input_dataset: variant, data_input_datasets: N * variant",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "N: int >= 1",
    "stop_on_empty_dataset: bool = false",
    shape=r.scalar,
)
op(
    "GroupByReducerDataset",
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
    "GroupByWindowDataset",
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
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "IgnoreErrorsDataset",
    "input_dataset: variant",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "log_warning: bool = false",
    shape=r.scalar,
)
op(
    "LMDBDataset",
    "filenames: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "LatencyStatsDataset",
    "input_dataset: variant, tag: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "LegacyParallelInterleaveDatasetV2",
    "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, buffer_output_elements: int64, prefetch_input_elements: int64",
    "handle: variant",
    "f: func",
    "deterministic: string = 'default'",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "ListDataset",
    "tensors: Tinput_types",
    "handle: variant",
    "Tinput_types: list(type) >= 1",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    stateful=True,
    shape=r.scalar,
)
op("MatchingFilesDataset", "patterns: string", "handle: variant", stateful=True, shape=r.scalar)
op(
    "MaxIntraOpParallelismDataset",
    "input_dataset: variant, max_intra_op_parallelism: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "NonSerializableDataset",
    "input_dataset: variant",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ParallelBatchDataset",
    "input_dataset: variant, batch_size: int64, num_parallel_calls: int64, drop_remainder: bool",
    "handle: variant",
    "parallel_copy: bool = false",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "deterministic: string = 'default'",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "ParallelFilterDataset",
    "input_dataset: variant, other_arguments: Targuments, num_parallel_calls: int64",
    "handle: variant",
    "predicate: func",
    "deterministic: string = 'default'",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "ParallelInterleaveDataset",
    "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, sloppy: bool, buffer_output_elements: int64, prefetch_input_elements: int64",
    "handle: variant",
    "f: func",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "ParseExampleDataset",
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
    "ragged_keys: list(string) >= 0 = []",
    "ragged_value_types: list({float, int64, string}) >= 0 = []",
    "ragged_split_types: list({index}) >= 0 = []",
    shape=r.scalar,
)
op(
    "ParseExampleDatasetV2",
    "input_dataset: variant, num_parallel_calls: int64, dense_defaults: Tdense",
    "handle: variant",
    "sparse_keys: list(string) >= 0",
    "dense_keys: list(string) >= 0",
    "sparse_types: list({float, int64, string}) >= 0",
    "Tdense: list({float, int64, string}) >= 0",
    "dense_shapes: list(shape) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "deterministic: string = 'default'",
    "ragged_keys: list(string) >= 0 = []",
    "ragged_value_types: list({float, int64, string}) >= 0 = []",
    "ragged_split_types: list({index}) >= 0 = []",
    shape=r.scalar,
)
op(
    "PrivateThreadPoolDataset",
    "input_dataset: variant, num_threads: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "RandomDataset",
    "seed: int64, seed2: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "RandomDatasetV2",
    "seed: int64, seed2: int64, seed_generator: resource",
    "handle: variant",
    "rerandomize_each_iteration: bool = false",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "RebatchDataset",
    "input_dataset: variant, num_replicas: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "use_fallback: bool = true",
    shape=r.scalar,
)
op(
    "RebatchDatasetV2",
    "input_dataset: variant, batch_sizes: int64, drop_remainder: bool",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "RewriteDataset",
    "input_dataset: variant, rewrite_name: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "SamplingDataset",
    "input_dataset: variant, rate: float, seed: int64, seed2: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "ScanDataset",
    "input_dataset: variant, initial_state: Tstate, other_arguments: Targuments",
    "handle: variant",
    "f: func",
    "Tstate: list(type) >= 1",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "preserve_cardinality: bool = false",
    "use_default_device: bool = true",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "SetStatsAggregatorDataset",
    "input_dataset: variant, stats_aggregator: resource, tag: string, counter_prefix: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "SleepDataset",
    "input_dataset: variant, sleep_microseconds: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "SlidingWindowDataset",
    "input_dataset: variant, window_size: int64, window_shift: int64, window_stride: int64",
    "handle: variant",
    "drop_remainder: bool = true",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "SnapshotDataset",
    "input_dataset: variant, path: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "compression: string = ''",
    "reader_path_prefix: string = ''",
    "writer_path_prefix: string = ''",
    "shard_size_bytes: int = 10737418240",
    "pending_snapshot_expiry_seconds: int = 86400",
    "num_reader_threads: int = 1",
    "reader_buffer_size: int = 1",
    "num_writer_threads: int = 1",
    "writer_buffer_size: int = 1",
    "shuffle_on_read: bool = false",
    "seed: int = 0",
    "seed2: int = 0",
    "mode: string = 'auto'",
    "snapshot_name: string = ''",
    shape=r.scalar,
)
op(
    "SqlDataset",
    "driver_name: string, data_source_name: string, query: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "TakeWhileDataset",
    "input_dataset: variant, other_arguments: Targuments",
    "handle: variant",
    "predicate: func",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "ThreadPoolDataset",
    "input_dataset: variant, thread_pool: resource",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "UnbatchDataset",
    "input_dataset: variant",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "UniqueDataset",
    "input_dataset: variant",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "FinalizeDataset",
    "input_dataset: variant",
    "handle: variant",
    "has_captured_ref: bool = false",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
