"""Op definitions of DeepRec: embedding variables, tables of weights by ids that nobody counts beforehand.

A row each: name, inputs, outputs, attributes (DeepRec's core/ops/kv_variable_ops.cc, incr_save_restore_ops.cc and
training_ali_ops.cc are the source of every name, order and default), flags, and the function that infers static shapes.
See `tenfold_core/op_def.py` for the notation. Those of tables are stateful here: lookups add rows and count.
KvResourceSparseApplyMomentum is not DeepRec's, which has no such update.
"""

from __future__ import annotations

from tenfold_core.opdefs import embedding_exchange  # noqa: F401 - more of the family
from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_resources as r
from tenfold_core.opdefs import shape_fns_slices as k
from tenfold_core.opdefs.table import family

op = family("embedding")

op(
    "ActivateSparseRecorder",
    "tensor_names: string",
    "",
    stateful=True,
)
op(
    "ApplyAdagradDecay",
    "var: Ref(T), accum: Ref(T), accum_decay_power: Ref(Tstep), lr: T, accum_decay_step: Tstep, accum_decay_rate: T, "
    "accum_baseline: T, global_step: Tstep, grad: T",
    "out: Ref(T)",
    "T: {numeric}",
    "Tstep: {index}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "ApplyAdamAsync",
    "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: Ref(T), beta2_power: Ref(T), lr: T, beta1: T, beta2: T, epsilon: T, "
    "grad: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    "use_nesterov: bool = false",
    shape=s.first_input,
)
op(
    "CollectSparseIndices",
    "",
    "indices: ktype, global_indices: ktype",
    "tensor_name: string",
    "config: string = ''",
    "part_idx: int = -1",
    "part_count: int = 0",
    "hash_bucket_size: int = 0",
    "part_mode: string = ''",
    "ktype: {index}",
    stateful=True,
)
op(
    "DestroyKvResourceOp",
    "resource: resource",
    "",
    "ignore_lookup_error: bool = true",
    stateful=True,
)
op(
    "EVGetFrequency",
    "resource_handle: resource, ids: Tkeys",
    "output: int64",
    "Tkeys: {int64, int32}",
    "Tvalues: type",
    stateful=True,
    shape=r.of_ids,
)
op(
    "EVGetVersion",
    "resource_handle: resource, ids: Tkeys",
    "output: int64",
    "Tkeys: {int64, int32}",
    "Tvalues: type",
    stateful=True,
    shape=r.of_ids,
)
op(
    "IncrRestore",
    "prefix: string, tensor_names: string, shape_and_slices: string, is_sparse: bool, in_tensors: dtypes",
    "out_tensors: dtypes",
    "dtypes: list(type)",
    stateful=True,
    sized_by="*",
)
op(
    "IncrSave",
    "prefix: string, tensor_names: string, shape_and_slices: string, is_sparse: bool, tensors: dtypes",
    "",
    "dtypes: list(type)",
    stateful=True,
    shape=s.no_outputs,
    sized_by="*",
)
op(
    "InitializeKvVariableOp",
    "resource_self: resource, resource_primary: resource, value: dtype, empty_key: Tkeys",
    "",
    "slot_num: int = 0",
    "Tkeys: {int64, int32}",
    "dtype: type",
    "shape: shape",
    "initial_num_buckets: int = 131072",
    "max_load_factor: float = 0.800000011920929",
    "steps_to_live: int = 0",
    "ht_type: string = ''",
    "emb_index: int = 0",
    "block_num: int = 1",
    "slot_index: int = 0",
    "ht_partition_num: int = 1000",
    "filter_freq: int = 0",
    "max_freq: int = 999999",
    "max_element_size: int = 0",
    "counter_type: type",
    "false_positive_probability: float = -1",
    "l2_weight_threshold: float = -1",
    "layout: string = 'normal'",
    "storage_type: int = 1",
    "storage_path: string = '.'",
    "storage_size: list(int) = []",
    "default_value_dim: int = 4096",
    "default_value_no_permission: float = 0",
    "record_freq: bool = false",
    "record_version: bool = false",
    "attr_json_str: string = ''",
    stateful=True,
)
op(
    "KvResourceExport",
    "resource_handle: resource",
    "keys: Tkeys, values: Tvalues, versions: int64, freqs: int64",
    "Tkeys: {int64, int32}",
    "Tvalues: type",
    stateful=True,
    shape=r.exported_rows,
)
op(
    "KvResourceGather",
    "resource: resource, indices: Tkeys, default_value: dtype",
    "output: dtype",
    "is_use_default_value_tensor: bool = false",
    "validate_indices: bool = true",
    "dtype: type",
    "Tkeys: {int64, int32}",
    "is_inference: bool = false",
    stateful=True,
    shape=k.resource_gather,
)
op(
    "KvResourceGatherV1",
    "resource: resource, indices: Tkeys, default_value: dtype, counts: counts_type",
    "output: dtype",
    "validate_indices: bool = true",
    "is_use_default_value_tensor: bool = false",
    "is_inference: bool = false",
    "dtype: type",
    "Tkeys: {int64, int32}",
    "counts_type: {int32, int64} = int32",
    stateful=True,
    shape=k.resource_gather,
)
op(
    "KvResourceImportV2",
    "prefix: string, resource_self: resource, resource_primary: resource, value: dtype, tensor_names: string, "
    "empty_key: Tkeys",
    "",
    "slot_num: int = 0",
    "shape: shape",
    "Tkeys: {int64, int32}",
    "dtype: type",
    "emb_index: int = 0",
    "slot_index: int = 0",
    "block_num: int = 1",
    "steps_to_live: int = 0",
    "partition_id: int = 0",
    "partition_num: int = 1",
    "ht_type: string = ''",
    "filter_freq: int = 0",
    "ht_partition_num: int = 1000",
    "max_element_size: int = 0",
    "counter_type: type",
    "false_positive_probability: float = -1",
    "l2_weight_threshold: float = -1",
    "layout: string = 'normal'",
    "max_freq: int = 999999",
    "storage_type: int = 1",
    "storage_path: string = '.'",
    "storage_size: list(int) = []",
    "default_value_dim: int = 4096",
    "default_value_no_permission: float = 0",
    "record_freq: bool = false",
    "record_version: bool = false",
    "reset_version: bool = false",
    "attr_json_str: string = ''",
    stateful=True,
)
op(
    "KvResourceIncrApply",
    "resource_handle: resource, keys: Tkeys, values: dtype, versions: int64, freqs: int64, removed: Tkeys",
    "",
    "Tkeys: {int64, int32}",
    "dtype: type",
    stateful=True,
    shape=s.no_outputs,
)
op(
    "KvResourceIncrImport",
    "prefix: string, resource_handle: resource, tensor_names: string, empty_key: Tkeys, value: dtype",
    "",
    "Tkeys: {int64, int32}",
    "dtype: type",
    "partition_id: int = 0",
    "partition_num: int = 1",
    stateful=True,
)
op(
    "KvResourceIncrRead",
    "prefix: string, resource_handle: resource, tensor_names: string",
    "keys: Tkeys, values: dtype, versions: int64, freqs: int64, removed: Tkeys",
    "Tkeys: {int64, int32}",
    "dtype: type",
    "partition_id: int = 0",
    "partition_num: int = 1",
    stateful=True,
)
op(
    "KvResourceLookupTier",
    "resource: resource, ids: Tkeys",
    "output: int32",
    "Tkeys: {int64, int32}",
    "dtype: type",
    stateful=True,
    shape=r.of_ids,
)
op(
    "KvResourceSparseApplyAdagrad",
    "var: resource, accum: resource, lr: T, grad: T, indices: Tindices, global_step: Tstep",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "Tstep: {index}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "KvResourceSparseApplyAdagradDecay",
    "var: resource, accum: resource, accum_decay_power: resource, lr: T, accum_decay_step: Tstep, accum_decay_rate: T, "
    "accum_baseline: T, global_step: Tstep, grad: T, indices: Tindices",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "Tstep: {index}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "KvResourceSparseApplyAdam",
    "var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, "
    "grad: T, indices: Tindices, global_step: Tstep, weight_decay: T",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "Tstep: {index}",
    "use_locking: bool = false",
    "apply_weight_decay: bool = false",
    stateful=True,
)
op(
    "KvResourceSparseApplyAdamAsync",
    "var: resource, m: resource, v: resource, beta1_power: resource, beta2_power: resource, lr: T, beta1: T, beta2: T, "
    "epsilon: T, grad: T, indices: Tindices, global_step: Tstep",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "Tstep: {index}",
    "use_locking: bool = false",
    "apply_sparse_rmsprop: bool = false",
    stateful=True,
)
op(
    "KvResourceSparseApplyFtrl",
    "var: resource, accum: resource, linear: resource, grad: T, indices: Tindices, lr: T, l1: T, l2: T, lr_power: T",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "KvResourceSparseApplyFtrlV2",
    "var: resource, accum: resource, linear: resource, grad: T, indices: Tindices, lr: T, l1: T, l2: T, "
    "l2_shrinkage: T, lr_power: T",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "KvResourceSparseApplyGradientDescent",
    "var: resource, alpha: T, grad: T, indices: Tindices, global_step: Tstep",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "Tstep: {index}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "KvResourceSparseApplyMomentum",
    "var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T, global_step: Tstep",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "Tstep: {index}",
    "use_locking: bool = false",
    "use_nesterov: bool = false",
    stateful=True,
)
op(
    "KvVarHandleOp",
    "",
    "resource: resource",
    "container: string = ''",
    "shared_name: string = ''",
    "dtype: type",
    "shape: shape",
    "Tkeys: {int64, int32}",
    stateful=True,
    shape=r.scalar,
)
op(
    "KvVarIsInitializedOp",
    "resource: resource",
    "is_initialized: bool",
    "Tkeys: {int64, int32}",
    "dtype: type = float32",
    stateful=True,
    shape=r.scalar,
)
op(
    "KvVariableShape",
    "input: resource",
    "output: out_type",
    "out_type: {index} = int32",
    "Tkeys: {int64, int32}",
    "dtype: type = float32",
    stateful=True,
    shape=r.table_shape,
)
op(
    "RecordSparseIndices",
    "keys: TIndex",
    "",
    "var_name: string = ''",
    "TIndex: {index}",
    "auto_record: bool = false",
    stateful=True,
)
op(
    "ResourceApplyAdagradDecay",
    "var: resource, accum: resource, accum_decay_power: resource, lr: T, accum_decay_step: Tstep, accum_decay_rate: T, "
    "accum_baseline: T, global_step: Tstep, grad: T",
    "",
    "T: {numeric}",
    "Tstep: {index}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "ResourceApplyAdamAsync",
    "var: resource, m: resource, v: resource, beta1_power: resource, beta2_power: resource, lr: T, beta1: T, beta2: T, "
    "epsilon: T, grad: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    "use_nesterov: bool = false",
    stateful=True,
)
op(
    "ResourceSparseApplyAdagradDecay",
    "var: resource, accum: resource, accum_decay_power: resource, lr: T, accum_decay_step: Tstep, accum_decay_rate: T, "
    "accum_baseline: T, global_step: Tstep, grad: T, indices: Tindices",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "Tstep: {index}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "ResourceSparseApplyAdamAsync",
    "var: resource, m: resource, v: resource, beta1_power: resource, beta2_power: resource, lr: T, beta1: T, beta2: T, "
    "epsilon: T, grad: T, indices: Tindices",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "apply_sparse_rmsprop: bool = false",
    stateful=True,
)
op(
    "SparseApplyAdagradDecay",
    "var: Ref(T), accum: Ref(T), accum_decay_power: Ref(Tstep), lr: T, accum_decay_step: Tstep, accum_decay_rate: T, "
    "accum_baseline: T, global_step: Tstep, grad: T, indices: Tindices",
    "out: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "Tstep: {index}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "SparseApplyAdamAsync",
    "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: Ref(T), beta2_power: Ref(T), lr: T, beta1: T, beta2: T, epsilon: T, "
    "grad: T, indices: Tindices",
    "out: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "apply_sparse_rmsprop: bool = false",
    shape=s.first_input,
)
