"""Slots: variables that an optimizer keeps beside each variable it trains (momentum, accumulators).

A slot is named `<variable>/<name>` and is on the device of its variable. Used by optimizer.py.
Follows TensorFlow's training/slot_creator.py.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tenfold.ops import array as array_ops
from tenfold.ops import init_ops, variable_scope
from tenfold.ops.embedding_variables import is_embedding_variable
from tenfold.ops.resource_variables import is_resource_variable
from tenfold.ops.save_slice_info import SaveSliceInfo
from tenfold.ops.variables import Variable

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape


def _create_slot_var(
    primary: Any, value: Any, validate_shape: bool, shape: TensorShape | None, dtype: DType | None
) -> Variable:
    # The slot follows its variable and not the partitioner of the scope it is made in.
    scope = variable_scope.get_variable_scope()
    partitioner = scope.partitioner
    scope.set_partitioner(None)
    # of an embedding variable, a number for all ids is a variable as others
    has_rows = is_embedding_variable(primary) and (callable(value) or value.get_shape().ndims != 0)
    rows = primary.slots() if has_rows else contextlib.nullcontext()
    try:
        with rows:
            slot: Variable = variable_scope.get_variable(
                "",
                initializer=value,
                trainable=False,
                use_resource=is_resource_variable(primary) if isinstance(primary, Variable) else None,
                shape=shape if callable(value) else None,
                dtype=dtype,
                validate_shape=validate_shape,
            )
    finally:
        scope.set_partitioner(partitioner)
    part = primary._save_slice_info if isinstance(primary, Variable) else None
    if part is not None and slot.get_shape().is_compatible_with(primary.get_shape()):
        # A slot of a part of a larger variable is the same part of a larger slot.
        slot_name = slot.op.name[len(primary.op.name + "/") :]
        slot._set_save_slice_info(
            SaveSliceInfo(f"{part.full_name}/{slot_name}", part.full_shape, part.var_offset, part.var_shape)
        )
    return slot


def _create(
    primary: Any,
    value: Any,
    name: str,
    colocate: bool,
    validate_shape: bool,
    shape: TensorShape | None,
    dtype: DType | None,
) -> Variable:
    with variable_scope.variable_scope(None, primary.op.name + "/" + name):
        if not colocate:
            return _create_slot_var(primary, value, validate_shape, shape, dtype)
        with primary.graph.colocate_with(primary.op):
            return _create_slot_var(primary, value, validate_shape, shape, dtype)


def create_slot(primary: Any, val: Any, name: str, colocate_with_primary: bool = True) -> Variable:
    """A slot for `primary` (a variable or tensor) with the initial value `val`, a Tensor."""
    known = val.get_shape().is_fully_defined()
    return _create(primary, val, name, colocate_with_primary, known, None, None)


def create_slot_with_initializer(
    primary: Any, initializer: Any, shape: TensorShape, dtype: DType, name: str, colocate_with_primary: bool = True
) -> Variable:
    """A slot for `primary` of the given shape and type, filled by `initializer`."""
    return _create(primary, initializer, name, colocate_with_primary, shape.is_fully_defined(), shape, dtype)


def create_zeros_slot(
    primary: Any, name: str, dtype: DType | None = None, colocate_with_primary: bool = True
) -> Variable:
    """A slot of zeros in the shape of `primary`, known or not."""
    dtype = primary.dtype.base_dtype if dtype is None else dtype
    shape = primary.get_shape()
    if shape.is_fully_defined():
        return create_slot_with_initializer(
            primary, init_ops.Zeros(), shape, dtype, name, colocate_with_primary=colocate_with_primary
        )
    # The shape is that of the value which the variable will have once it is initialized.
    source = primary.initialized_value() if isinstance(primary, Variable) else primary
    zeros = array_ops.zeros(array_ops.shape(source), dtype=dtype)
    return create_slot(primary, zeros, name, colocate_with_primary=colocate_with_primary)
