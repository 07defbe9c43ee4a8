"""Op definitions: queues, accumulators, barriers, stacks, tensor arrays, staging areas, session tensors.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_nn as w
from tenfold_core.opdefs import shape_fns_resources as r
from tenfold_core.opdefs.table import family

op = family("data_flow")

op(
    "AccumulatorApplyGradient",
    "handle: Ref(string), local_step: int64, gradient: dtype",
    "",
    "dtype: {numeric}",
)
op("AccumulatorNumAccumulated", "handle: Ref(string)", "num_accumulated: int32", shape=r.scalar)
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
    shape=r.names,
)
op("BarrierClose", "handle: Ref(string)", "", "cancel_pending_enqueues: bool = false")
op("BarrierIncompleteSize", "handle: Ref(string)", "size: int32", shape=r.scalar)
op("BarrierInsertMany", "handle: Ref(string), keys: string, values: T", "", "T: type", "component_index: int")
op("BarrierReadySize", "handle: Ref(string)", "size: int32", shape=r.scalar)
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
    "ConditionalAccumulator",
    "",
    "handle: Ref(string)",
    "dtype: {numeric}",
    "shape: shape",
    "container: string = ''",
    "shared_name: string = ''",
    "reduction_type: {'MEAN', 'SUM'} = 'MEAN'",
    stateful=True,
    shape=r.names,
)
op("DeleteSessionTensor", "handle: string", "", stateful=True)
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
    shape=r.names,
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
op("FakeQueue", "resource: resource", "handle: Ref(string)", stateful=True, shape=r.names)
op("GetSessionHandle", "value: T", "handle: string", "T: type", stateful=True, shape=r.scalar)
op("GetSessionHandleV2", "value: T", "handle: resource", "T: type", stateful=True, shape=s.scalar)
op("GetSessionTensor", "handle: string", "value: dtype", "dtype: type", stateful=True)
op(
    "MapClear",
    "",
    "",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type)",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op(
    "MapIncompleteSize",
    "",
    "size: int32",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type)",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "MapPeek",
    "key: int64, indices: int32",
    "values: dtypes",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type) >= 1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op(
    "MapSize",
    "",
    "size: int32",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type)",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.scalar,
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
    "MapUnstage",
    "key: int64, indices: int32",
    "values: dtypes",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type) >= 1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op(
    "MapUnstageNoKey",
    "indices: int32",
    "key: int64, values: dtypes",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type) >= 1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op(
    "OrderedMapClear",
    "",
    "",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type)",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op(
    "OrderedMapIncompleteSize",
    "",
    "size: int32",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type)",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "OrderedMapPeek",
    "key: int64, indices: int32",
    "values: dtypes",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type) >= 1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op(
    "OrderedMapSize",
    "",
    "size: int32",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type)",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "OrderedMapStage",
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
    "OrderedMapUnstage",
    "key: int64, indices: int32",
    "values: dtypes",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type) >= 1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op(
    "OrderedMapUnstageNoKey",
    "indices: int32",
    "key: int64, values: dtypes",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type) >= 1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op(
    "PaddingFIFOQueue",
    "",
    "handle: Ref(string)",
    "component_types: list(type) >= 1",
    "shapes: list(shape) >= 0 = []",
    "capacity: int = -1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.names,
)
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
    shape=r.scalar,
)
op(
    "PriorityQueue",
    "",
    "handle: Ref(string)",
    "component_types: list(type) >= 0 = []",
    "shapes: list(shape) >= 0",
    "capacity: int = -1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.names,
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
op("QueueIsClosed", "handle: Ref(string)", "is_closed: bool", shape=s.scalar)
op("QueueIsClosedV2", "handle: resource", "is_closed: bool", stateful=True, shape=r.scalar)
op("QueueSize", "handle: Ref(string)", "size: int32", shape=r.scalar)
op("QueueSizeV2", "handle: resource", "size: int32", stateful=True, shape=r.scalar)
op(
    "RandomShuffleQueue",
    "",
    "handle: Ref(string)",
    "component_types: list(type) >= 1",
    "shapes: list(shape) >= 0 = []",
    "capacity: int = -1",
    "min_after_dequeue: int = 0",
    "seed: int = 0",
    "seed2: int = 0",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.names,
)
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
    shape=r.scalar,
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
    sized_by="*",
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
    shape=r.names,
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
    shape=r.names,
)
op("Stack", "", "handle: Ref(string)", "elem_type: type", "stack_name: string = ''", stateful=True, shape=r.names)
op("StackClose", "handle: Ref(string)", "")
op("StackCloseV2", "handle: resource", "", stateful=True)
op("StackPop", "handle: Ref(string)", "elem: elem_type", "elem_type: type")
op("StackPopV2", "handle: resource", "elem: elem_type", "elem_type: type", stateful=True)
op(
    "StackPush",
    "handle: Ref(string), elem: T",
    "output: T",
    "T: type",
    "swap_memory: bool = false",
    shape=w.second_input,
)
op(
    "StackPushV2",
    "handle: resource, elem: T",
    "output: T",
    "T: type",
    "swap_memory: bool = false",
    stateful=True,
    shape=w.second_input,
)
op(
    "StackV2",
    "max_size: int32",
    "handle: resource",
    "elem_type: type",
    "stack_name: string = ''",
    stateful=True,
    shape=r.array_handle,
)
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
op(
    "StageClear",
    "",
    "",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type)",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op(
    "StagePeek",
    "index: int32",
    "values: dtypes",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type) >= 1",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
)
op(
    "StageSize",
    "",
    "size: int32",
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type)",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "TensorArray",
    "size: int32",
    "handle: Ref(string)",
    "dtype: type",
    "dynamic_size: bool = false",
    "clear_after_read: bool = true",
    "tensor_array_name: string = ''",
    "element_shape: shape = unknown",
    stateful=True,
    shape=r.names,
    sized_by="size",
)
op("TensorArrayClose", "handle: Ref(string)", "")
op("TensorArrayCloseV2", "handle: string", "")
op("TensorArrayCloseV3", "handle: resource", "", stateful=True)
op(
    "TensorArrayConcat",
    "handle: Ref(string), flow_in: float",
    "value: dtype, lengths: int64",
    "dtype: type",
    "element_shape_except0: shape = unknown",
    shape=r.concatenated,
)
op(
    "TensorArrayConcatV2",
    "handle: string, flow_in: float",
    "value: dtype, lengths: int64",
    "dtype: type",
    "element_shape_except0: shape = unknown",
    shape=r.concatenated,
)
op(
    "TensorArrayConcatV3",
    "handle: resource, flow_in: float",
    "value: dtype, lengths: int64",
    "dtype: type",
    "element_shape_except0: shape = unknown",
    stateful=True,
    shape=r.concatenated,
)
op(
    "TensorArrayGather",
    "handle: Ref(string), indices: int32, flow_in: float",
    "value: dtype",
    "dtype: type",
    "element_shape: shape = unknown",
)
op(
    "TensorArrayGatherV2",
    "handle: string, indices: int32, flow_in: float",
    "value: dtype",
    "dtype: type",
    "element_shape: shape = unknown",
)
op(
    "TensorArrayGatherV3",
    "handle: resource, indices: int32, flow_in: float",
    "value: dtype",
    "dtype: type",
    "element_shape: shape = unknown",
    stateful=True,
)
op("TensorArrayGrad", "handle: string, flow_in: float", "grad_handle: Ref(string)", "source: string", stateful=True)
op("TensorArrayGradV2", "handle: string, flow_in: float", "grad_handle: string", "source: string", stateful=True)
op(
    "TensorArrayGradV3",
    "handle: resource, flow_in: float",
    "grad_handle: resource, flow_out: float",
    "source: string",
    stateful=True,
    shape=r.tensor_array,
)
op(
    "TensorArrayGradWithShape",
    "handle: resource, flow_in: float, shape_to_prepend: int32",
    "grad_handle: resource, flow_out: float",
    "source: string",
    stateful=True,
    shape=r.tensor_array,
)
op(
    "TensorArrayPack",
    "handle: Ref(string), flow_in: float",
    "value: dtype",
    "dtype: type",
    "element_shape: shape = unknown",
)
op("TensorArrayRead", "handle: Ref(string), index: int32, flow_in: float", "value: dtype", "dtype: type")
op("TensorArrayReadV2", "handle: string, index: int32, flow_in: float", "value: dtype", "dtype: type")
op("TensorArrayReadV3", "handle: resource, index: int32, flow_in: float", "value: dtype", "dtype: type", stateful=True)
op("TensorArrayScatter", "handle: Ref(string), indices: int32, value: T, flow_in: float", "flow_out: float", "T: type")
op("TensorArrayScatterV2", "handle: string, indices: int32, value: T, flow_in: float", "flow_out: float", "T: type")
op(
    "TensorArrayScatterV3",
    "handle: resource, indices: int32, value: T, flow_in: float",
    "flow_out: float",
    "T: type",
    stateful=True,
    shape=s.scalar,
)
op("TensorArraySize", "handle: Ref(string), flow_in: float", "size: int32")
op("TensorArraySizeV2", "handle: string, flow_in: float", "size: int32")
op("TensorArraySizeV3", "handle: resource, flow_in: float", "size: int32", stateful=True, shape=s.scalar)
op("TensorArraySplit", "handle: Ref(string), value: T, lengths: int64, flow_in: float", "flow_out: float", "T: type")
op("TensorArraySplitV2", "handle: string, value: T, lengths: int64, flow_in: float", "flow_out: float", "T: type")
op(
    "TensorArraySplitV3",
    "handle: resource, value: T, lengths: int64, flow_in: float",
    "flow_out: float",
    "T: type",
    stateful=True,
    shape=s.scalar,
)
op("TensorArrayUnpack", "handle: Ref(string), value: T, flow_in: float", "flow_out: float", "T: type")
op(
    "TensorArrayV2",
    "size: int32",
    "handle: string",
    "dtype: type",
    "element_shape: shape = unknown",
    "dynamic_size: bool = false",
    "clear_after_read: bool = true",
    "tensor_array_name: string = ''",
    stateful=True,
    sized_by="size",
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
    shape=r.tensor_array,
    sized_by="size",
)
op("TensorArrayWrite", "handle: Ref(string), index: int32, value: T, flow_in: float", "flow_out: float", "T: type")
op("TensorArrayWriteV2", "handle: string, index: int32, value: T, flow_in: float", "flow_out: float", "T: type")
op(
    "TensorArrayWriteV3",
    "handle: resource, index: int32, value: T, flow_in: float",
    "flow_out: float",
    "T: type",
    stateful=True,
    shape=s.scalar,
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
op(
    "MutexV2",
    "",
    "resource: resource",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.scalar,
)
op("MutexLock", "mutex: resource", "mutex_lock: variant", stateful=True, shape=s.scalar)
op("ConsumeMutexLock", "mutex_lock: variant", "", stateful=True)
