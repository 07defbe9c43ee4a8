"""Op definitions: datasets, iterators, optionals.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation. More
rows are in dataset_experimental.py, dataset_whole.py and dataset_twins.py.
"""

from __future__ import annotations

from tenfold_core.opdefs import dataset_experimental, dataset_twins, dataset_whole  # noqa: F401 - more of the family
from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_resources as r
from tenfold_core.opdefs.table import family

op = family("dataset")

op(
    "AnonymousIterator",
    "",
    "handle: resource",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "AnonymousIteratorV2",
    "",
    "handle: resource, deleter: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalars,
)
op(
    "AssertCardinalityDataset",
    "input_dataset: variant, cardinality: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "BatchDataset",
    "input_dataset: variant, batch_size: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "BatchDatasetV2",
    "input_dataset: variant, batch_size: int64, drop_remainder: bool",
    "handle: variant",
    "parallel_copy: bool = false",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "CacheDataset",
    "input_dataset: variant, filename: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "ConcatenateDataset",
    "input_dataset: variant, another_dataset: variant",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "DatasetCardinality",
    "input_dataset: variant",
    "cardinality: int64",
    "cardinality_options: string = ''",
    shape=r.scalar,
)
op("DeleteIterator", "handle: resource, deleter: variant", "", stateful=True)
op(
    "FilterByLastComponentDataset",
    "input_dataset: variant",
    "output: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "FilterDataset",
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
    "FlatMapDataset",
    "input_dataset: variant, other_arguments: Targuments",
    "handle: variant",
    "f: func",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "Iterator",
    "",
    "handle: resource",
    "shared_name: string",
    "container: string",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "IteratorFromStringHandle",
    "string_handle: string",
    "resource_handle: resource",
    "output_types: list(type) >= 0 = []",
    "output_shapes: list(shape) >= 0 = []",
    stateful=True,
    shape=r.scalar,
)
op(
    "IteratorFromStringHandleV2",
    "string_handle: string",
    "resource_handle: resource",
    "output_types: list(type) >= 0 = []",
    "output_shapes: list(shape) >= 0 = []",
    stateful=True,
    shape=r.scalar,
)
op(
    "IteratorGetNext",
    "iterator: resource",
    "components: output_types",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.output_shapes,
)
op(
    "IteratorGetNextAsOptional",
    "iterator: resource",
    "optional: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "IteratorGetNextSync",
    "iterator: resource",
    "components: output_types",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.output_shapes,
)
op("IteratorToStringHandle", "resource_handle: resource", "string_handle: string", stateful=True, shape=s.scalar)
op(
    "IteratorV2",
    "",
    "handle: resource",
    "shared_name: string",
    "container: string",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op("MakeIterator", "dataset: variant, iterator: resource", "", stateful=True)
op(
    "MapAndBatchDataset",
    "input_dataset: variant, other_arguments: Targuments, batch_size: int64, num_parallel_calls: int64, drop_remainder: bool",
    "handle: variant",
    "f: func",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "preserve_cardinality: bool = false",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "MapDataset",
    "input_dataset: variant, other_arguments: Targuments",
    "handle: variant",
    "f: func",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "use_inter_op_parallelism: bool = true",
    "preserve_cardinality: bool = false",
    "force_synchronous: bool = false",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "ModelDataset",
    "input_dataset: variant",
    "handle: variant",
    "algorithm: int = 0",
    "cpu_budget: int = 0",
    "ram_budget: int = 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.scalar,
)
op(
    "OneShotIterator",
    "",
    "handle: resource",
    "dataset_factory: func",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "OptimizeDataset",
    "input_dataset: variant, optimizations: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "optimization_configs: list(string) = []",
    shape=r.scalar,
)
op(
    "OptimizeDatasetV2",
    "input_dataset: variant, optimizations_enabled: string, optimizations_disabled: string, optimizations_default: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "optimization_configs: list(string) = []",
    shape=r.scalar,
)
op(
    "OptionalFromValue",
    "components: Toutput_types",
    "optional: variant",
    "Toutput_types: list(type) >= 1",
    shape=r.scalar,
)
op(
    "OptionalGetValue",
    "optional: variant",
    "components: output_types",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.output_shapes,
)
op("OptionalHasValue", "optional: variant", "has_value: bool", shape=r.scalar)
op("OptionalNone", "", "optional: variant", shape=s.scalar)
op(
    "OptionsDataset",
    "input_dataset: variant",
    "handle: variant",
    "serialized_options: string",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "PaddedBatchDataset",
    "input_dataset: variant, batch_size: int64, padded_shapes: N * int64, padding_values: Toutput_types",
    "handle: variant",
    "Toutput_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "N: int >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "PaddedBatchDatasetV2",
    "input_dataset: variant, batch_size: int64, padded_shapes: N * int64, padding_values: Toutput_types, drop_remainder: bool",
    "handle: variant",
    "parallel_copy: bool = false",
    "Toutput_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "N: int >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "ParallelMapDataset",
    "input_dataset: variant, other_arguments: Targuments, num_parallel_calls: int32",
    "handle: variant",
    "f: func",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "use_inter_op_parallelism: bool = true",
    "sloppy: bool = false",
    "preserve_cardinality: bool = false",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "ParallelMapDatasetV2",
    "input_dataset: variant, other_arguments: Targuments, num_parallel_calls: int64",
    "handle: variant",
    "f: func",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "use_inter_op_parallelism: bool = true",
    "deterministic: string = 'default'",
    "preserve_cardinality: bool = false",
    "use_unbounded_threadpool: bool = false",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "PrefetchDataset",
    "input_dataset: variant, buffer_size: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "slack_period: int = 0",
    "legacy_autotune: bool = true",
    "buffer_size_min: int = 0",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "RangeDataset",
    "start: int64, stop: int64, step: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    "replicate_on_split: bool = false",
    stateful=True,
    shape=r.scalar,
)
op(
    "RepeatDataset",
    "input_dataset: variant, count: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "ShuffleAndRepeatDataset",
    "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64, count: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "reshuffle_each_iteration: bool = true",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "ShuffleDataset",
    "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64",
    "handle: variant",
    "reshuffle_each_iteration: bool = true",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "ShuffleDatasetV2",
    "input_dataset: variant, buffer_size: int64, seed_generator: resource",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "ShuffleDatasetV3",
    "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64, seed_generator: resource",
    "handle: variant",
    "reshuffle_each_iteration: bool = true",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "SkipDataset",
    "input_dataset: variant, count: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "TFRecordDataset",
    "filenames: string, compression_type: string, buffer_size: int64",
    "handle: variant",
    "metadata: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "TakeDataset",
    "input_dataset: variant, count: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "TensorDataset",
    "components: Toutput_types",
    "handle: variant",
    "Toutput_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "TensorSliceDataset",
    "components: Toutput_types",
    "handle: variant",
    "Toutput_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "is_files: bool = false",
    "metadata: string = ''",
    "replicate_on_split: bool = false",
    stateful=True,
    shape=r.scalar,
)
op(
    "TextLineDataset",
    "filenames: string, compression_type: string, buffer_size: int64",
    "handle: variant",
    "metadata: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "ZipDataset",
    "input_datasets: N * variant",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "N: int >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "InterleaveDataset",
    "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64",
    "handle: variant",
    "f: func",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "ParallelInterleaveDatasetV2",
    "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, num_parallel_calls: int64",
    "handle: variant",
    "f: func",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "sloppy: bool = false",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "ParallelInterleaveDatasetV3",
    "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, num_parallel_calls: int64",
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
    "ParallelInterleaveDatasetV4",
    "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, buffer_output_elements: int64, prefetch_input_elements: int64, num_parallel_calls: int64",
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
    "FixedLengthRecordDataset",
    "filenames: string, header_bytes: int64, record_bytes: int64, footer_bytes: int64, buffer_size: int64",
    "handle: variant",
    "metadata: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "FixedLengthRecordDatasetV2",
    "filenames: string, header_bytes: int64, record_bytes: int64, footer_bytes: int64, buffer_size: int64, compression_type: string",
    "handle: variant",
    "metadata: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "GeneratorDataset",
    "init_func_other_args: Tinit_func_args, next_func_other_args: Tnext_func_args, finalize_func_other_args: Tfinalize_func_args",
    "handle: variant",
    "init_func: func",
    "next_func: func",
    "finalize_func: func",
    "Tinit_func_args: list(type) >= 0",
    "Tnext_func_args: list(type) >= 0",
    "Tfinalize_func_args: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "CacheDatasetV2",
    "input_dataset: variant, filename: string, cache: resource",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "AnonymousSeedGenerator",
    "seed: int64, seed2: int64, reshuffle: bool",
    "handle: resource, deleter: variant",
    stateful=True,
    shape=r.scalars,
)
op(
    "DummySeedGenerator",
    "",
    "handle: resource",
    stateful=True,
    shape=r.scalar,
)
op(
    "DeleteSeedGenerator",
    "handle: resource, deleter: variant",
    "",
    stateful=True,
)
op(
    "AnonymousRandomSeedGenerator",
    "seed: int64, seed2: int64",
    "handle: resource, deleter: variant",
    stateful=True,
    shape=r.scalars,
)
op(
    "DeleteRandomSeedGenerator",
    "handle: resource, deleter: variant",
    "",
    stateful=True,
)
op(
    "AnonymousMemoryCache",
    "",
    "handle: resource, deleter: variant",
    stateful=True,
    shape=r.scalars,
)
op(
    "DeleteMemoryCache",
    "handle: resource, deleter: variant",
    "",
    stateful=True,
)
op(
    "DummyMemoryCache",
    "",
    "handle: resource",
    stateful=True,
    shape=r.scalar,
)
op(
    "ShardDataset",
    "input_dataset: variant, num_shards: int64, index: int64",
    "handle: variant",
    "require_non_empty: bool = false",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
op(
    "AnonymousIteratorV3",
    "",
    "handle: resource",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "ShuffleAndRepeatDatasetV2",
    "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64, count: int64, seed_generator: resource",
    "handle: variant",
    "reshuffle_each_iteration: bool = true",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "TFRecordDatasetV2",
    "filenames: string, compression_type: string, buffer_size: int64, byte_offsets: int64",
    "handle: variant",
    "metadata: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "SparseTensorSliceDataset",
    "indices: int64, values: Tvalues, dense_shape: int64",
    "handle: variant",
    "Tvalues: type",
    stateful=True,
    shape=r.scalar,
)
op(
    "WindowDataset",
    "input_dataset: variant, size: int64, shift: int64, stride: int64, drop_remainder: bool",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    shape=r.scalar,
)
