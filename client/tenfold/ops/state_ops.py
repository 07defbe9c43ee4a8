"""Functions on variables: `tf.assign`, `tf.assign_add`, `tf.scatter_add` and others.

Each takes a reference (a Tensor of a `_ref` type or a reference variable) or a resource variable, and adds the op
of the matching family. Variables themselves are in variables.py. Follows TensorFlow's ops/state_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import apply_op
from tenfold_core.tensor_shape import as_shape

if TYPE_CHECKING:
    from tenfold.graph.argument_types import TensorLike
    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType


def variable_op_v2(shape: Any, dtype: DType, name: str = "Variable", container: str = "", shared_name: str = "") -> Any:
    """The op that holds a reference variable: a Tensor of type `dtype` ref. Uninitialized until assigned."""
    return apply_op(
        "VariableV2",
        shape=as_shape(shape),
        dtype=dtype.base_dtype,
        name=name,
        container=container,
        shared_name=shared_name,
    )


def is_reference(ref: Any) -> bool:
    """Whether `ref` belongs to the reference family (as opposed to a resource variable)."""
    return bool(ref.dtype.is_ref_dtype)


def is_variable_initialized(ref: Any, name: str | None = None) -> Any:
    """A scalar bool: whether the variable has a value."""
    if is_reference(ref):
        return apply_op("IsVariableInitialized", ref=ref, name=name)
    return ref.is_initialized(name=name)


def assign(
    ref: Any,
    value: TensorLike,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Any:
    """Sets the variable to `value`; the result holds the new value.

    With `validate_shape=False` a reference variable takes the shape of `value`.
    """
    if is_reference(ref):
        return apply_op(
            "Assign",
            ref=ref,
            value=value,
            validate_shape=True if validate_shape is None else validate_shape,
            use_locking=True if use_locking is None else use_locking,
            name=name,
        )
    return ref.assign(value, name=name)


def assign_add(ref: Any, value: TensorLike, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Adds `value` to the variable; the result holds the new value."""
    if is_reference(ref):
        return apply_op("AssignAdd", ref=ref, value=value, use_locking=bool(use_locking), name=name)
    return ref.assign_add(value, name=name)


def assign_sub(ref: Any, value: TensorLike, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Subtracts `value` from the variable; the result holds the new value."""
    if is_reference(ref):
        return apply_op("AssignSub", ref=ref, value=value, use_locking=bool(use_locking), name=name)
    return ref.assign_sub(value, name=name)


def _of_type(ref: Any, updates: Any) -> Tensor:
    """`updates` as a tensor of the variable's type, which a handle does not tell."""
    return convert_to_tensor(updates, ref.dtype.base_dtype, name="updates")


def _scatter(kind: str, ref: Any, indices: Any, updates: Any, use_locking: bool, name: str | None) -> Any:
    if is_reference(ref):
        return apply_op(f"Scatter{kind}", ref=ref, indices=indices, updates=updates, use_locking=use_locking, name=name)
    return ref._lazy_read(
        apply_op(
            f"ResourceScatter{kind}", resource=ref.handle, indices=indices, updates=_of_type(ref, updates), name=name
        )
    )


def scatter_update(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = True, name: str | None = None
) -> Any:
    """Sets the rows `indices` of the variable to `updates`. With several updates of one row, the result is one of them.

    # indices [...], updates indices.shape + ref.shape[1:] or a scalar
    """
    return _scatter("Update", ref, indices, updates, use_locking, name)


def scatter_add(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Adds `updates` to the rows `indices` of the variable; updates of the same row add up."""
    return _scatter("Add", ref, indices, updates, use_locking, name)


def scatter_sub(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Subtracts `updates` from the rows `indices` of the variable."""
    return _scatter("Sub", ref, indices, updates, use_locking, name)


def scatter_mul(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Multiplies the rows `indices` of the variable by `updates`."""
    return _scatter("Mul", ref, indices, updates, use_locking, name)


def scatter_div(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Divides the rows `indices` of the variable by `updates`."""
    return _scatter("Div", ref, indices, updates, use_locking, name)


def scatter_min(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Takes the minimum of the rows `indices` of the variable and `updates`."""
    return _scatter("Min", ref, indices, updates, use_locking, name)


def scatter_max(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Takes the maximum of the rows `indices` of the variable and `updates`."""
    return _scatter("Max", ref, indices, updates, use_locking, name)


def _scatter_nd(kind: str, ref: Any, indices: Any, updates: Any, use_locking: bool, name: str | None) -> Any:
    if is_reference(ref):
        return apply_op(
            f"ScatterNd{kind}", ref=ref, indices=indices, updates=updates, use_locking=use_locking, name=name
        )
    return ref._lazy_read(
        apply_op(f"ResourceScatterNd{kind}", ref=ref.handle, indices=indices, updates=_of_type(ref, updates), name=name)
    )


def scatter_nd_update(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = True, name: str | None = None
) -> Any:
    """Sets the slices addressed by `indices`, whose last dimension indexes the leading dimensions of the variable."""
    return _scatter_nd("Update", ref, indices, updates, use_locking, name)


def scatter_nd_add(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Adds `updates` to the slices addressed by `indices`."""
    return _scatter_nd("Add", ref, indices, updates, use_locking, name)


def scatter_nd_sub(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = False, name: str | None = None
) -> Any:
    """Subtracts `updates` from the slices addressed by `indices`."""
    return _scatter_nd("Sub", ref, indices, updates, use_locking, name)


def count_up_to(ref: Any, limit: int, name: str | None = None) -> Tensor:
    """Increments the variable and gives its previous value; OutOfRangeError once it has reached `limit`."""
    if is_reference(ref):
        result: Tensor = apply_op("CountUpTo", ref=ref, limit=limit, name=name)
        return result
    result = apply_op("ResourceCountUpTo", resource=ref.handle, limit=limit, T=ref.dtype.base_dtype, name=name)
    return result
