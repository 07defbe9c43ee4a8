"""Op definitions: variables, their assignments and the optimizers' updates.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_resources as r
from tenfold_core.opdefs import shape_fns_slices as k
from tenfold_core.opdefs.table import family

op = family("state")

op(
    "ApplyAdadelta",
    "var: Ref(T), accum: Ref(T), accum_update: Ref(T), lr: T, rho: T, epsilon: T, grad: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "ApplyAdagrad",
    "var: Ref(T), accum: Ref(T), lr: T, grad: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    "update_slots: bool = true",
    shape=s.first_input,
)
op(
    "ApplyAdagradDA",
    "var: Ref(T), gradient_accumulator: Ref(T), gradient_squared_accumulator: Ref(T), grad: T, lr: T, l1: T, l2: T, global_step: int64",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "ApplyAdagradV2",
    "var: Ref(T), accum: Ref(T), lr: T, epsilon: T, grad: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    "update_slots: bool = true",
    shape=s.first_input,
)
op(
    "ApplyAdam",
    "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    "use_nesterov: bool = false",
    shape=s.first_input,
)
op(
    "ApplyAdaMax",
    "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "ApplyAddSign",
    "var: Ref(T), m: Ref(T), lr: T, alpha: T, sign_decay: T, beta: T, grad: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "ApplyCenteredRMSProp",
    "var: Ref(T), mg: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "ApplyFtrl",
    "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T, lr_power: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    "multiply_linear_by_lr: bool = false",
    shape=s.first_input,
)
op(
    "ApplyFtrlV2",
    "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    "multiply_linear_by_lr: bool = false",
    shape=s.first_input,
)
op(
    "ApplyGradientDescent",
    "var: Ref(T), alpha: T, delta: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "ApplyMomentum",
    "var: Ref(T), accum: Ref(T), lr: T, grad: T, momentum: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    "use_nesterov: bool = false",
    shape=s.first_input,
)
op(
    "ApplyPowerSign",
    "var: Ref(T), m: Ref(T), lr: T, logbase: T, sign_decay: T, beta: T, grad: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "ApplyProximalAdagrad",
    "var: Ref(T), accum: Ref(T), lr: T, l1: T, l2: T, grad: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "ApplyProximalGradientDescent",
    "var: Ref(T), alpha: T, l1: T, l2: T, delta: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "ApplyRMSProp",
    "var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T",
    "out: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "Assign",
    "ref: Ref(T), value: T",
    "output_ref: Ref(T)",
    "T: type",
    "validate_shape: bool = true",
    "use_locking: bool = true",
    allows_uninitialized_input=True,
    shape=r.assign,
)
op(
    "AssignAdd",
    "ref: Ref(T), value: T",
    "output_ref: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    shape=s.add_n,
)
op("AssignAddVariableOp", "resource: resource, value: dtype", "", "dtype: type", stateful=True, shape=s.no_outputs)
op(
    "AssignSub",
    "ref: Ref(T), value: T",
    "output_ref: Ref(T)",
    "T: {numeric}",
    "use_locking: bool = false",
    shape=s.add_n,
)
op("AssignSubVariableOp", "resource: resource, value: dtype", "", "dtype: type", stateful=True, shape=s.no_outputs)
op(
    "AssignVariableOp",
    "resource: resource, value: dtype",
    "",
    "dtype: type",
    "validate_shape: bool = false",
    stateful=True,
    shape=s.no_outputs,
)
op("CountUpTo", "ref: Ref(T)", "output: T", "limit: int", "T: {index}", shape=s.scalar)
op("DestroyResourceOp", "resource: resource", "", "ignore_lookup_error: bool = true", stateful=True)
op("DestroyTemporaryVariable", "ref: Ref(T)", "value: T", "T: type", "var_name: string", shape=s.unchanged)
op("DisableCopyOnRead", "resource: resource", "", stateful=True)
op(
    "IsVariableInitialized",
    "ref: Ref(dtype)",
    "is_initialized: bool",
    "dtype: type",
    allows_uninitialized_input=True,
    shape=s.scalar,
)
op("ReadVariableOp", "resource: resource", "value: dtype", "dtype: type", stateful=True, shape=r.read_variable)
op(
    "ResourceApplyAdadelta",
    "var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "ResourceApplyAdagrad",
    "var: resource, accum: resource, lr: T, grad: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    "update_slots: bool = true",
    stateful=True,
)
op(
    "ResourceApplyAdagradDA",
    "var: resource, gradient_accumulator: resource, gradient_squared_accumulator: resource, grad: T, lr: T, l1: T, l2: T, global_step: int64",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "ResourceApplyAdagradV2",
    "var: resource, accum: resource, lr: T, epsilon: T, grad: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    "update_slots: bool = true",
    stateful=True,
)
op(
    "ResourceApplyAdam",
    "var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    "use_nesterov: bool = false",
    stateful=True,
)
op(
    "ResourceApplyAdaMax",
    "var: resource, m: resource, v: resource, beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "ResourceApplyAdamWithAmsgrad",
    "var: resource, m: resource, v: resource, vhat: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "ResourceApplyCenteredRMSProp",
    "var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "ResourceApplyFtrl",
    "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, lr_power: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    "multiply_linear_by_lr: bool = false",
    stateful=True,
)
op(
    "ResourceApplyFtrlV2",
    "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    "multiply_linear_by_lr: bool = false",
    stateful=True,
)
op(
    "ResourceApplyGradientDescent",
    "var: resource, alpha: T, delta: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    stateful=True,
    shape=s.no_outputs,
)
op(
    "ResourceApplyKerasMomentum",
    "var: resource, accum: resource, lr: T, grad: T, momentum: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    "use_nesterov: bool = false",
    stateful=True,
)
op(
    "ResourceApplyMomentum",
    "var: resource, accum: resource, lr: T, grad: T, momentum: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    "use_nesterov: bool = false",
    stateful=True,
)
op(
    "ResourceApplyProximalAdagrad",
    "var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "ResourceApplyProximalGradientDescent",
    "var: resource, alpha: T, l1: T, l2: T, delta: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "ResourceApplyRMSProp",
    "var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T",
    "",
    "T: {numeric}",
    "use_locking: bool = false",
    stateful=True,
)
op("ResourceCountUpTo", "resource: resource", "output: T", "limit: int", "T: {index}", stateful=True)
op(
    "ResourceGather",
    "resource: resource, indices: Tindices",
    "output: dtype",
    "batch_dims: int = 0",
    "validate_indices: bool = true",
    "dtype: type",
    "Tindices: {index}",
    stateful=True,
    shape=k.resource_gather,
)
op(
    "ResourceGatherNd",
    "resource: resource, indices: Tindices",
    "output: dtype",
    "dtype: type",
    "Tindices: {index}",
    stateful=True,
)
op(
    "ResourceScatterAdd",
    "resource: resource, indices: Tindices, updates: dtype",
    "",
    "dtype: {numeric}",
    "Tindices: {index}",
    stateful=True,
)
op(
    "ResourceScatterDiv",
    "resource: resource, indices: Tindices, updates: dtype",
    "",
    "dtype: {numeric}",
    "Tindices: {index}",
    stateful=True,
)
op(
    "ResourceScatterMax",
    "resource: resource, indices: Tindices, updates: dtype",
    "",
    "dtype: {numeric}",
    "Tindices: {index}",
    stateful=True,
)
op(
    "ResourceScatterMin",
    "resource: resource, indices: Tindices, updates: dtype",
    "",
    "dtype: {numeric}",
    "Tindices: {index}",
    stateful=True,
)
op(
    "ResourceScatterMul",
    "resource: resource, indices: Tindices, updates: dtype",
    "",
    "dtype: {numeric}",
    "Tindices: {index}",
    stateful=True,
)
op(
    "ResourceScatterNdAdd",
    "ref: resource, indices: Tindices, updates: T",
    "",
    "T: type",
    "Tindices: {index}",
    "use_locking: bool = true",
    "bad_indices_policy: string = ''",
    stateful=True,
)
op(
    "ResourceScatterNdMax",
    "ref: resource, indices: Tindices, updates: T",
    "",
    "T: type",
    "Tindices: {index}",
    "use_locking: bool = true",
    "bad_indices_policy: string = ''",
    stateful=True,
)
op(
    "ResourceScatterNdMin",
    "ref: resource, indices: Tindices, updates: T",
    "",
    "T: type",
    "Tindices: {index}",
    "use_locking: bool = true",
    "bad_indices_policy: string = ''",
    stateful=True,
)
op(
    "ResourceScatterNdSub",
    "ref: resource, indices: Tindices, updates: T",
    "",
    "T: type",
    "Tindices: {index}",
    "use_locking: bool = true",
    "bad_indices_policy: string = ''",
    stateful=True,
)
op(
    "ResourceScatterNdUpdate",
    "ref: resource, indices: Tindices, updates: T",
    "",
    "T: type",
    "Tindices: {index}",
    "use_locking: bool = true",
    "bad_indices_policy: string = ''",
    stateful=True,
)
op(
    "ResourceScatterSub",
    "resource: resource, indices: Tindices, updates: dtype",
    "",
    "dtype: {numeric}",
    "Tindices: {index}",
    stateful=True,
)
op(
    "ResourceScatterUpdate",
    "resource: resource, indices: Tindices, updates: dtype",
    "",
    "dtype: type",
    "Tindices: {index}",
    stateful=True,
)
op(
    "ResourceSparseApplyAdadelta",
    "var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T, indices: Tindices",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "ResourceSparseApplyAdagrad",
    "var: resource, accum: resource, lr: T, grad: T, indices: Tindices",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "update_slots: bool = true",
    stateful=True,
)
op(
    "ResourceSparseApplyAdagradDA",
    "var: resource, gradient_accumulator: resource, gradient_squared_accumulator: resource, grad: T, indices: Tindices, lr: T, l1: T, l2: T, global_step: int64",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "ResourceSparseApplyAdagradV2",
    "var: resource, accum: resource, lr: T, epsilon: T, grad: T, indices: Tindices",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "update_slots: bool = true",
    stateful=True,
)
op(
    "ResourceSparseApplyCenteredRMSProp",
    "var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T, indices: Tindices",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "ResourceSparseApplyFtrl",
    "var: resource, accum: resource, linear: resource, grad: T, indices: Tindices, lr: T, l1: T, l2: T, lr_power: T",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "multiply_linear_by_lr: bool = false",
    stateful=True,
)
op(
    "ResourceSparseApplyFtrlV2",
    "var: resource, accum: resource, linear: resource, grad: T, indices: Tindices, lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "multiply_linear_by_lr: bool = false",
    stateful=True,
)
op(
    "ResourceSparseApplyKerasMomentum",
    "var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "use_nesterov: bool = false",
    stateful=True,
)
op(
    "ResourceSparseApplyMomentum",
    "var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "use_nesterov: bool = false",
    stateful=True,
)
op(
    "ResourceSparseApplyProximalAdagrad",
    "var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T, indices: Tindices",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "ResourceSparseApplyProximalGradientDescent",
    "var: resource, alpha: T, l1: T, l2: T, grad: T, indices: Tindices",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "ResourceSparseApplyRMSProp",
    "var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T, indices: Tindices",
    "",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    stateful=True,
)
op(
    "ScatterAdd",
    "ref: Ref(T), indices: Tindices, updates: T",
    "output_ref: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    shape=r.scattered,
)
op(
    "ScatterDiv",
    "ref: Ref(T), indices: Tindices, updates: T",
    "output_ref: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    shape=r.scattered,
)
op(
    "ScatterMax",
    "ref: Ref(T), indices: Tindices, updates: T",
    "output_ref: Ref(T)",
    "T: {half, bfloat16, float, double, int32, int64}",
    "Tindices: {index}",
    "use_locking: bool = false",
    shape=r.scattered,
)
op(
    "ScatterMin",
    "ref: Ref(T), indices: Tindices, updates: T",
    "output_ref: Ref(T)",
    "T: {half, bfloat16, float, double, int32, int64}",
    "Tindices: {index}",
    "use_locking: bool = false",
    shape=r.scattered,
)
op(
    "ScatterMul",
    "ref: Ref(T), indices: Tindices, updates: T",
    "output_ref: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    shape=r.scattered,
)
op(
    "ScatterNdAdd",
    "ref: Ref(T), indices: Tindices, updates: T",
    "output_ref: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "bad_indices_policy: string = ''",
    shape=s.first_input,
)
op(
    "ScatterNdMax",
    "ref: Ref(T), indices: Tindices, updates: T",
    "output_ref: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "bad_indices_policy: string = ''",
    shape=s.first_input,
)
op(
    "ScatterNdMin",
    "ref: Ref(T), indices: Tindices, updates: T",
    "output_ref: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "bad_indices_policy: string = ''",
    shape=s.first_input,
)
op(
    "ScatterNdSub",
    "ref: Ref(T), indices: Tindices, updates: T",
    "output_ref: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "bad_indices_policy: string = ''",
    shape=s.first_input,
)
op(
    "ScatterNdUpdate",
    "ref: Ref(T), indices: Tindices, updates: T",
    "output_ref: Ref(T)",
    "T: type",
    "Tindices: {index}",
    "use_locking: bool = true",
    "bad_indices_policy: string = ''",
    shape=s.first_input,
)
op(
    "ScatterSub",
    "ref: Ref(T), indices: Tindices, updates: T",
    "output_ref: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    shape=r.scattered,
)
op(
    "ScatterUpdate",
    "ref: Ref(T), indices: Tindices, updates: T",
    "output_ref: Ref(T)",
    "T: type",
    "Tindices: {index}",
    "use_locking: bool = true",
    shape=r.scattered,
)
op(
    "SparseApplyAdadelta",
    "var: Ref(T), accum: Ref(T), accum_update: Ref(T), lr: T, rho: T, epsilon: T, grad: T, indices: Tindices",
    "out: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "SparseApplyAdagrad",
    "var: Ref(T), accum: Ref(T), lr: T, grad: T, indices: Tindices",
    "out: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "update_slots: bool = true",
    shape=s.first_input,
)
op(
    "SparseApplyAdagradDA",
    "var: Ref(T), gradient_accumulator: Ref(T), gradient_squared_accumulator: Ref(T), grad: T, indices: Tindices, lr: T, l1: T, l2: T, global_step: int64",
    "out: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "SparseApplyAdagradV2",
    "var: Ref(T), accum: Ref(T), lr: T, epsilon: T, grad: T, indices: Tindices",
    "out: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "update_slots: bool = true",
    shape=s.first_input,
)
op(
    "SparseApplyCenteredRMSProp",
    "var: Ref(T), mg: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T, indices: Tindices",
    "out: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "SparseApplyFtrl",
    "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, indices: Tindices, lr: T, l1: T, l2: T, lr_power: T",
    "out: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "multiply_linear_by_lr: bool = false",
    shape=s.first_input,
)
op(
    "SparseApplyFtrlV2",
    "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, indices: Tindices, lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T",
    "out: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "multiply_linear_by_lr: bool = false",
    shape=s.first_input,
)
op(
    "SparseApplyMomentum",
    "var: Ref(T), accum: Ref(T), lr: T, grad: T, indices: Tindices, momentum: T",
    "out: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    "use_nesterov: bool = false",
    shape=s.first_input,
)
op(
    "SparseApplyProximalAdagrad",
    "var: Ref(T), accum: Ref(T), lr: T, l1: T, l2: T, grad: T, indices: Tindices",
    "out: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "SparseApplyProximalGradientDescent",
    "var: Ref(T), alpha: T, l1: T, l2: T, grad: T, indices: Tindices",
    "out: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "SparseApplyRMSProp",
    "var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T, indices: Tindices",
    "out: Ref(T)",
    "T: {numeric}",
    "Tindices: {index}",
    "use_locking: bool = false",
    shape=s.first_input,
)
op(
    "TemporaryVariable",
    "",
    "ref: Ref(dtype)",
    "shape: shape",
    "dtype: type",
    "var_name: string = ''",
    stateful=True,
    shape=s.attr_shape,
)
op(
    "VarHandleOp",
    "",
    "resource: resource",
    "container: string = ''",
    "shared_name: string = ''",
    "debug_name: string = ''",
    "dtype: type",
    "shape: shape",
    "allowed_devices: list(string) = []",
    stateful=True,
    shape=s.scalar,
)
op(
    "Variable",
    "",
    "ref: Ref(dtype)",
    "shape: shape",
    "dtype: type",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=r.variable,
)
op(
    "VariableShape",
    "input: resource",
    "output: out_type",
    "out_type: {index} = int32",
    stateful=True,
    shape=r.variable_shape,
)
op(
    "VariableV2",
    "",
    "ref: Ref(dtype)",
    "shape: shape",
    "dtype: type",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=s.attr_shape,
)
op("VarIsInitializedOp", "resource: resource", "is_initialized: bool", stateful=True, shape=s.scalar)
