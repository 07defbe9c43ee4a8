"""Op definitions: what is done with whole datasets and iterators, and the resources beside them.

Single elements, reductions, saved iterators, several devices, statistics, thread pools.
Loaded by dataset.py, rows as there: TensorFlow's registry at 2.21 is the source of every name, order and default.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_resources as r
from tenfold_core.opdefs.table import family

op = family("dataset")

op(
    "AnonymousMultiDeviceIterator",
    "",
    "handle: resource, deleter: variant",
    "devices: list(string) >= 1",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalars,
)
op(
    "AnonymousMultiDeviceIteratorV3",
    "",
    "handle: resource",
    "devices: list(string) >= 1",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "DatasetToSingleElement",
    "dataset: variant",
    "components: output_types",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
    stateful=True,
    shape=r.output_shapes,
)
op("DatasetToTFRecord", "input_dataset: variant, filename: string, compression_type: string", "", stateful=True)
op(
    "DeleteMultiDeviceIterator",
    "multi_device_iterator: resource, iterators: N * resource, deleter: variant",
    "",
    "N: int >= 0",
    stateful=True,
)
op("DeserializeIterator", "resource_handle: resource, serialized: variant", "", stateful=True)
op("DummyIterationCounter", "", "handle: resource", stateful=True, shape=r.scalar)
op(
    "GetElementAtIndex",
    "dataset: variant, index: int64",
    "components: output_types",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    shape=r.output_shapes,
)
op("IteratorGetDevice", "resource: resource", "device: string", stateful=True, shape=s.scalar)
op(
    "MapDefun",
    "arguments: Targuments, captured_inputs: Tcaptured",
    "output: output_types",
    "Targuments: list(type) >= 1",
    "Tcaptured: list(type) >= 0 = []",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "f: func",
    "max_intra_op_parallelism: int = 1",
    shape=r.of_all_elements,
)
op(
    "MultiDeviceIterator",
    "",
    "handle: resource",
    "devices: list(string) >= 1",
    "shared_name: string",
    "container: string",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.scalar,
)
op(
    "MultiDeviceIteratorFromStringHandle",
    "string_handle: string",
    "multi_device_iterator: resource",
    "output_types: list(type) >= 0 = []",
    "output_shapes: list(shape) >= 0 = []",
    stateful=True,
    shape=r.scalar,
)
op(
    "MultiDeviceIteratorGetNextFromShard",
    "multi_device_iterator: resource, shard_num: int32, incarnation_id: int64",
    "components: output_types",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    stateful=True,
    shape=r.output_shapes,
)
op(
    "MultiDeviceIteratorInit",
    "dataset: variant, multi_device_iterator: resource, max_buffer_size: int64",
    "incarnation_id: int64",
    stateful=True,
    shape=s.scalar,
)
op(
    "MultiDeviceIteratorToStringHandle",
    "multi_device_iterator: resource",
    "string_handle: string",
    stateful=True,
    shape=s.scalar,
)
op(
    "ReduceDataset",
    "input_dataset: variant, initial_state: Tstate, other_arguments: Targuments",
    "components: output_types",
    "f: func",
    "Tstate: list(type) >= 1",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "use_inter_op_parallelism: bool = true",
    "metadata: string = ''",
    stateful=True,
    shape=r.output_shapes,
)
op(
    "SerializeIterator",
    "resource_handle: resource",
    "serialized: variant",
    "external_state_policy: int = 0",
    stateful=True,
    shape=s.scalar,
)
op(
    "StatsAggregatorHandle",
    "",
    "handle: resource",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.scalar,
)
op(
    "StatsAggregatorHandleV2",
    "",
    "handle: resource",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.scalar,
)
op("StatsAggregatorSetSummaryWriter", "stats_aggregator: resource, summary: resource", "", stateful=True)
op("StatsAggregatorSummary", "iterator: resource", "summary: string", stateful=True, shape=s.scalar)
op(
    "ThreadPoolHandle",
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
op("UnwrapDatasetVariant", "input_handle: variant", "output_handle: variant", shape=s.scalar)
op("WrapDatasetVariant", "input_handle: variant", "output_handle: variant", shape=s.scalar)
