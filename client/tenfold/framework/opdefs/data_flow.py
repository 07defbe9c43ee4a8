"""Op definitions: queues, accumulators, barriers, tensor arrays and lists, tables, datasets.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `framework/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold.framework.opdefs import shape_fns as s
from tenfold.framework.opdefs.table import family

op = family("data_flow")

op("AccumulatorApplyGradient", "handle: Ref(string), local_step: int64, gradient: dtype", "", "dtype: {numeric}")
op("AccumulatorNumAccumulated", "handle: Ref(string)", "num_accumulated: int32", shape=s.scalar)
op("AccumulatorSetGlobalStep", "handle: Ref(string), new_global_step: int64", "")
op("AccumulatorTakeGradient", "handle: Ref(string), num_required: int32", "average: dtype", "dtype: {numeric}")
op(
    "Barrier",
    "",
    "handle: Ref(string)",
    "component_types: list(type) >= 1",
    "shapes: list(shape) >= 0 = []",
    "capacity: int = -1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op("BarrierClose", "handle: Ref(string)", "", "cancel_pending_enqueues: bool = false")
op("BarrierIncompleteSize", "handle: Ref(string)", "size: int32")
op("BarrierInsertMany", "handle: Ref(string), keys: string, values: T", "", "T: type", "component_index: int")
op("BarrierReadySize", "handle: Ref(string)", "size: int32")
op(
    "BarrierTakeMany",
    "handle: Ref(string), num_elements: int32",
    "indices: int64, keys: string, values: component_types",
    "component_types: list(type) >= 1",
    "allow_small_batch: bool = false",
    "wait_for_incomplete: bool = false",
    "timeout_ms: int = -1",
)
op(
    "BatchDatasetV2",
    "input_dataset: variant, batch_size: int64, drop_remainder: bool",
    "handle: variant",
    "parallel_copy: bool = false",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
)
op(
    "ConditionalAccumulator",
    "",
    "handle: Ref(string)",
    "dtype: {numeric}",
    "shape: shape",
    "container: string = ''",
    "shared_name: string = ''",
    "reduction_type: {'MEAN', 'SUM'} = 'MEAN'",
    stateful=True,
)
op("DeleteSessionTensor", "handle: string", "", stateful=True)
op(
    "EmptyTensorList",
    "element_shape: shape_type, max_num_elements: int32",
    "handle: variant",
    "element_dtype: type",
    "shape_type: {index}",
)
op(
    "FIFOQueue",
    "",
    "handle: Ref(string)",
    "component_types: list(type) >= 1",
    "shapes: list(shape) >= 0 = []",
    "capacity: int = -1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op(
    "FIFOQueueV2",
    "",
    "handle: resource",
    "component_types: list(type) >= 1",
    "shapes: list(shape) >= 0 = []",
    "capacity: int = -1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=s.scalar,
)
op("GetSessionHandleV2", "value: T", "handle: resource", "T: type", stateful=True)
op("GetSessionTensor", "handle: string", "value: dtype", "dtype: type", stateful=True)
op(
    "HashTableV2",
    "",
    "table_handle: resource",
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
    "key_dtype: type",
    "value_dtype: type",
    stateful=True,
    shape=s.scalar,
)
op(
    "InitializeTableFromTextFileV2",
    "table_handle: resource, filename: string",
    "",
    "key_index: int >= -2",
    "value_index: int >= -2",
    "vocab_size: int >= -1 = -1",
    "delimiter: string = '\t'",
    "offset: int = 0",
    stateful=True,
)
op(
    "InitializeTableV2",
    "table_handle: resource, keys: Tkey, values: Tval",
    "",
    "Tkey: type",
    "Tval: type",
    stateful=True,
)
op(
    "IteratorGetNext",
    "iterator: resource",
    "components: output_types",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
)
op("IteratorToStringHandle", "resource_handle: resource", "string_handle: string", stateful=True)
op(
    "IteratorV2",
    "",
    "handle: resource",
    "shared_name: string",
    "container: string",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=s.scalar,
)
op(
    "LookupTableFindV2",
    "table_handle: resource, keys: Tin, default_value: Tout",
    "values: Tout",
    "Tin: type",
    "Tout: type",
    stateful=True,
)
op(
    "LookupTableImportV2",
    "table_handle: resource, keys: Tin, values: Tout",
    "",
    "Tin: type",
    "Tout: type",
    stateful=True,
)
op(
    "LookupTableInsertV2",
    "table_handle: resource, keys: Tin, values: Tout",
    "",
    "Tin: type",
    "Tout: type",
    stateful=True,
)
op("LookupTableSizeV2", "table_handle: resource", "size: int64", stateful=True)
op("MakeIterator", "dataset: variant, iterator: resource", "", stateful=True)
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
)
op(
    "MapStage",
    "key: int64, indices: int32, values: fake_dtypes",
    "",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type)",
    "fake_dtypes: list(type) >= 1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
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
)
op(
    "OptimizeDataset",
    "input_dataset: variant, optimizations: string",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "optimization_configs: list(string) = []",
)
op("OptionalFromValue", "components: Toutput_types", "optional: variant", "Toutput_types: list(type) >= 1")
op(
    "OptionalGetValue",
    "optional: variant",
    "components: output_types",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
)
op("OptionalNone", "", "optional: variant")
op(
    "PaddingFIFOQueueV2",
    "",
    "handle: resource",
    "component_types: list(type) >= 1",
    "shapes: list(shape) >= 0 = []",
    "capacity: int = -1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=s.scalar,
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
)
op(
    "PriorityQueueV2",
    "",
    "handle: resource",
    "component_types: list(type) >= 0 = []",
    "shapes: list(shape) >= 0",
    "capacity: int = -1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=s.scalar,
)
op("QueueClose", "handle: Ref(string)", "", "cancel_pending_enqueues: bool = false")
op("QueueCloseV2", "handle: resource", "", "cancel_pending_enqueues: bool = false", stateful=True)
op(
    "QueueDequeue",
    "handle: Ref(string)",
    "components: component_types",
    "component_types: list(type) >= 1",
    "timeout_ms: int = -1",
)
op(
    "QueueDequeueMany",
    "handle: Ref(string), n: int32",
    "components: component_types",
    "component_types: list(type) >= 1",
    "timeout_ms: int = -1",
)
op(
    "QueueDequeueManyV2",
    "handle: resource, n: int32",
    "components: component_types",
    "component_types: list(type) >= 1",
    "timeout_ms: int = -1",
    stateful=True,
)
op(
    "QueueDequeueUpTo",
    "handle: Ref(string), n: int32",
    "components: component_types",
    "component_types: list(type) >= 1",
    "timeout_ms: int = -1",
)
op(
    "QueueDequeueUpToV2",
    "handle: resource, n: int32",
    "components: component_types",
    "component_types: list(type) >= 1",
    "timeout_ms: int = -1",
    stateful=True,
)
op(
    "QueueDequeueV2",
    "handle: resource",
    "components: component_types",
    "component_types: list(type) >= 1",
    "timeout_ms: int = -1",
    stateful=True,
)
op(
    "QueueEnqueue",
    "handle: Ref(string), components: Tcomponents",
    "",
    "Tcomponents: list(type) >= 1",
    "timeout_ms: int = -1",
)
op(
    "QueueEnqueueMany",
    "handle: Ref(string), components: Tcomponents",
    "",
    "Tcomponents: list(type) >= 1",
    "timeout_ms: int = -1",
)
op(
    "QueueEnqueueManyV2",
    "handle: resource, components: Tcomponents",
    "",
    "Tcomponents: list(type) >= 1",
    "timeout_ms: int = -1",
    stateful=True,
)
op(
    "QueueEnqueueV2",
    "handle: resource, components: Tcomponents",
    "",
    "Tcomponents: list(type) >= 1",
    "timeout_ms: int = -1",
    stateful=True,
)
op("QueueIsClosed", "handle: Ref(string)", "is_closed: bool")
op("QueueIsClosedV2", "handle: resource", "is_closed: bool", stateful=True, shape=s.scalar)
op("QueueSize", "handle: Ref(string)", "size: int32")
op("QueueSizeV2", "handle: resource", "size: int32", stateful=True, shape=s.scalar)
op(
    "RandomShuffleQueueV2",
    "",
    "handle: resource",
    "component_types: list(type) >= 1",
    "shapes: list(shape) >= 0 = []",
    "capacity: int = -1",
    "min_after_dequeue: int = 0",
    "seed: int = 0",
    "seed2: int = 0",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=s.scalar,
)
op(
    "RecordInput",
    "",
    "records: string",
    "file_pattern: string",
    "file_random_seed: int = 301",
    "file_shuffle_shift_ratio: float = 0.0",
    "file_buffer_size: int = 10000",
    "file_parallelism: int = 16",
    "batch_size: int = 32",
    "compression_type: string = ''",
    stateful=True,
)
op(
    "RepeatDataset",
    "input_dataset: variant, count: int64",
    "handle: variant",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
)
op(
    "ResourceAccumulatorApplyGradient",
    "handle: resource, local_step: int64, gradient: dtype",
    "",
    "dtype: {numeric}",
    stateful=True,
)
op("ResourceAccumulatorNumAccumulated", "handle: resource", "num_accumulated: int32", stateful=True, shape=s.scalar)
op("ResourceAccumulatorSetGlobalStep", "handle: resource, new_global_step: int64", "", stateful=True)
op(
    "ResourceAccumulatorTakeGradient",
    "handle: resource, num_required: int32",
    "average: dtype",
    "dtype: {numeric}",
    stateful=True,
)
op(
    "ResourceConditionalAccumulator",
    "",
    "handle: resource",
    "dtype: {numeric}",
    "shape: shape",
    "container: string = ''",
    "shared_name: string = ''",
    "reduction_type: {'MEAN', 'SUM'} = 'MEAN'",
    stateful=True,
    shape=s.scalar,
)
op(
    "ShuffleDataset",
    "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64",
    "handle: variant",
    "reshuffle_each_iteration: bool = true",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
)
op(
    "SparseAccumulatorApplyGradient",
    "handle: Ref(string), local_step: int64, gradient_indices: int64, gradient_values: dtype, gradient_shape: int64",
    "",
    "dtype: {numeric}",
    "has_known_shape: bool",
)
op(
    "SparseAccumulatorTakeGradient",
    "handle: Ref(string), num_required: int32",
    "indices: int64, values: dtype, shape: int64",
    "dtype: {numeric}",
)
op(
    "SparseConditionalAccumulator",
    "",
    "handle: Ref(string)",
    "dtype: {numeric}",
    "shape: shape",
    "container: string = ''",
    "shared_name: string = ''",
    "reduction_type: {'MEAN', 'SUM'} = 'MEAN'",
    stateful=True,
)
op("StackCloseV2", "handle: resource", "", stateful=True)
op("StackPopV2", "handle: resource", "elem: elem_type", "elem_type: type", stateful=True)
op("StackPushV2", "handle: resource, elem: T", "output: T", "T: type", "swap_memory: bool = false", stateful=True)
op("StackV2", "max_size: int32", "handle: resource", "elem_type: type", "stack_name: string = ''", stateful=True)
op(
    "Stage",
    "values: dtypes",
    "",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type) >= 1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op("TensorArrayCloseV3", "handle: resource", "", stateful=True)
op(
    "TensorArrayConcatV3",
    "handle: resource, flow_in: float",
    "value: dtype, lengths: int64",
    "dtype: type",
    "element_shape_except0: shape = unknown",
    stateful=True,
)
op(
    "TensorArrayGatherV3",
    "handle: resource, indices: int32, flow_in: float",
    "value: dtype",
    "dtype: type",
    "element_shape: shape = unknown",
    stateful=True,
)
op(
    "TensorArrayGradV3",
    "handle: resource, flow_in: float",
    "grad_handle: resource, flow_out: float",
    "source: string",
    stateful=True,
)
op("TensorArrayReadV3", "handle: resource, index: int32, flow_in: float", "value: dtype", "dtype: type", stateful=True)
op(
    "TensorArrayScatterV3",
    "handle: resource, indices: int32, value: T, flow_in: float",
    "flow_out: float",
    "T: type",
    stateful=True,
)
op("TensorArraySizeV3", "handle: resource, flow_in: float", "size: int32", stateful=True)
op(
    "TensorArraySplitV3",
    "handle: resource, value: T, lengths: int64, flow_in: float",
    "flow_out: float",
    "T: type",
    stateful=True,
)
op(
    "TensorArrayV3",
    "size: int32",
    "handle: resource, flow: float",
    "dtype: type",
    "element_shape: shape = unknown",
    "dynamic_size: bool = false",
    "clear_after_read: bool = true",
    "identical_element_shapes: bool = false",
    "tensor_array_name: string = ''",
    stateful=True,
)
op(
    "TensorArrayWriteV3",
    "handle: resource, index: int32, value: T, flow_in: float",
    "flow_out: float",
    "T: type",
    stateful=True,
)
op("TensorListElementShape", "input_handle: variant", "element_shape: shape_type", "shape_type: {index}")
op(
    "TensorListFromTensor",
    "tensor: element_dtype, element_shape: shape_type",
    "output_handle: variant",
    "element_dtype: type",
    "shape_type: {index}",
)
op(
    "TensorListGetItem",
    "input_handle: variant, index: int32, element_shape: Tshape",
    "item: element_dtype",
    "element_dtype: type",
    "Tshape: {index} = int32",
)
op("TensorListLength", "input_handle: variant", "length: int32")
op(
    "TensorListPopBack",
    "input_handle: variant, element_shape: int32",
    "output_handle: variant, tensor: element_dtype",
    "element_dtype: type",
)
op(
    "TensorListPushBack",
    "input_handle: variant, tensor: element_dtype",
    "output_handle: variant",
    "element_dtype: type",
)
op(
    "TensorListReserve",
    "element_shape: shape_type, num_elements: int32",
    "handle: variant",
    "element_dtype: type",
    "shape_type: {index}",
)
op(
    "TensorListSetItem",
    "input_handle: variant, index: int32, item: element_dtype",
    "output_handle: variant",
    "element_dtype: type",
    "resize_if_index_out_of_bounds: bool = false",
)
op(
    "TensorListStack",
    "input_handle: variant, element_shape: int32",
    "tensor: element_dtype",
    "element_dtype: type",
    "num_elements: int = -1",
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
)
op(
    "Unstage",
    "",
    "values: dtypes",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type) >= 1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
