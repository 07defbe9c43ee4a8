"""Weights of losses and metrics: they are scalars, or have the values' rank with each size equal to theirs or 1.

Used by losses.py and metrics/. Follows TensorFlow 1.15's weights_broadcast_ops.py, with the same error messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.constant_value import constant_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.ops import array, math
from tenfold.ops.control_flow import Assert, no_op
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.sets import set_difference

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor

_WRONG = "weights can not be broadcast to values."


def assert_broadcastable(weights: Any, values: Any) -> Any:
    """An operation that fails unless the weights broadcast to the values. Raises ValueError if known statically."""
    with name_scope(None, "assert_broadcastable", (weights, values)) as scope:
        with name_scope(None, "weights", (weights,)) as inner:
            weights = convert_to_tensor(weights, name=inner)
            weights_shape, weights_rank = array.shape(weights, name="shape"), array.rank(weights, name="rank")
        with name_scope(None, "values", (values,)) as inner:
            values = convert_to_tensor(values, name=inner)
            values_shape, values_rank = array.shape(values, name="shape"), array.rank(values, name="rank")
        if weights.shape.ndims is not None and values.shape.ndims is not None:
            if weights.shape.ndims == 0:
                return no_op(name="static_scalar_check_success")
            if weights.shape.ndims != values.shape.ndims:
                raise ValueError(
                    f"{_WRONG} values.rank={values.shape.ndims}. weights.rank={weights.shape.ndims}. "
                    f"values.shape={values.shape}. weights.shape={weights.shape}."
                )
            known = constant_value(weights_shape), constant_value(values_shape)
            if known[0] is not None and known[1] is not None:
                for dim, (given, wanted) in enumerate(zip(*known, strict=True)):
                    if given not in (1, wanted):
                        raise ValueError(
                            f"{_WRONG} Mismatch at dim {dim}. values.shape={known[1]} weights.shape={known[0]}."
                        )
                return no_op(name="static_dims_check_success")
        scalar = math.equal(0, weights_rank, name="is_scalar")
        data = [
            _WRONG, "weights.shape=", weights.name, weights_shape, "values.shape=", values.name, values_shape,
            "is_scalar=", scalar,
        ]  # fmt: skip
        valid = cond(
            scalar,
            lambda: scalar,
            lambda: _valid_shape(weights_rank, weights_shape, values_rank, values_shape),
            name="is_valid_shape",
        )
        return Assert(valid, data, name=scope)


def _valid_shape(weights_rank: Tensor, weights_shape: Tensor, values_rank: Tensor, values_shape: Tensor) -> Tensor:
    with name_scope(
        None, "has_valid_nonscalar_shape", (weights_rank, weights_shape, values_rank, values_shape)
    ) as scope:
        same = math.equal(values_rank, weights_rank, name="is_same_rank")
        result: Tensor = cond(same, lambda: _valid_sizes(weights_shape, values_shape), lambda: same, name=scope)
        return result


def _valid_sizes(weights_shape: Tensor, values_shape: Tensor) -> Tensor:
    with name_scope(None, "has_invalid_dims", (weights_shape, values_shape)) as scope:
        column = array.expand_dims(values_shape, -1)
        allowed = array.concat((column, array.ones_like(column)), axis=1)
        wrong = set_difference(array.expand_dims(weights_shape, -1), allowed)
        return math.equal(0, array.size(wrong.values, name="num_invalid_dims"), name=scope)


def broadcast_weights(weights: Any, values: Any) -> Tensor:
    """The weights in the shape of the values."""
    with name_scope(None, "broadcast_weights", (weights, values)) as scope:
        values = convert_to_tensor(values, name="values")
        weights = convert_to_tensor(weights, dtype=values.dtype.base_dtype, name="weights")
        known = weights.shape.is_fully_defined() and values.shape.is_fully_defined()
        if known and weights.shape.is_compatible_with(values.shape):
            fit: Tensor = weights
            return fit
        with control_dependencies((assert_broadcastable(weights, values),)):
            return math.multiply(weights, array.ones_like(values), name=scope)
