"""Losses of `tf.nn`: cross-entropies of logits with labels, and the L2 loss. Exported by ops/nn.py.

They take keyword arguments only, as in TensorFlow 1.x. Rank-2 logits go to the kernel unchanged; others are flattened
to rows first. Node names follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, math, slicing
from tenfold.ops.array import _alias
from tenfold.ops.elementwise import add, exp, log1p
from tenfold.ops.spelling import warn_once
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.argument_types import TensorLike

_HALVES = (dtypes.float16, dtypes.bfloat16)


def _early_order(function: str, sentinel: Any, labels: Any, logits: Any) -> tuple[Any, Any, Any]:
    """The arguments with (logits, labels) given by position, as before 1.0, assigned to their names."""
    if sentinel is None or labels is None or logits is not None:
        return sentinel, labels, logits
    warn_once(f"tf.nn.{function}(logits, labels)", f"tf.nn.{function}(labels=…, logits=…)")
    return None, labels, sentinel


def _check_cross_entropy(function: str, sentinel: Any, labels: Any, logits: Any) -> None:
    if sentinel is not None:
        raise ValueError(f"Only call `{function}` with named arguments (labels=..., logits=..., ...)")
    if labels is None or logits is None:
        raise ValueError("Both labels and logits must be provided.")


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """The cross-entropy of softmax(logits) with `labels`, a distribution a row; gradients flow into both.

    # logits and labels (…, C classes) → loss (…); where one of them has no or one row, it serves for all of the other
    Labels become of the logits' type; the loss of halves is computed with float32.
    """
    axis = _alias("axis", axis, "dim", dim)
    axis = -1 if axis is None else axis
    with name_scope(name, "softmax_cross_entropy_with_logits", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        given, logits = logits.dtype.base_dtype, _precise(logits)
        labels = math.cast(convert_to_tensor(labels, name="labels"), logits.dtype.base_dtype)
        ndims = logits.shape.ndims
        if axis != -1 and (ndims is None or axis != ndims - 1):
            if ndims is None:
                raise ValueError(f"axis {axis} needs logits of known rank; got {logits!r}")
            order = [i for i in range(ndims) if i != axis % ndims] + [axis % ndims]
            logits, labels = array.transpose(logits, order), array.transpose(labels, order)
        if ndims == 2:
            if labels.shape.ndims != 2:
                labels = _rows(labels)[0]
            return _as_type(_loss("SoftmaxCrossEntropyWithLogits", scope, features=logits, labels=labels), given)
        rows, shape = _rows(logits)
        loss = _loss("SoftmaxCrossEntropyWithLogits", None, features=rows, labels=_rows(labels)[0])
        return _as_type(_back_to(loss, shape, logits, scope), given)


def _precise(logits: Tensor) -> Tensor:
    """Halves as float32: sums of their exponentials would lose too much."""
    return _as_type(logits, dtypes.float32) if logits.dtype.base_dtype in _HALVES else logits


def _as_type(tensor: Tensor, dtype: dtypes.DType) -> Tensor:
    cast: Tensor = math.cast(tensor, dtype)
    return cast


def _loss(op_type: str, name: str | None, **inputs: Any) -> Tensor:
    loss: Tensor = apply_op(op_type, name, **inputs).loss
    return loss


def _rows(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """`tensor` as a matrix with its last dimension kept, and its shape vector."""
    shape = array.shape(tensor)
    classes = slicing.strided_slice(shape, [-1], [2**31 - 1], [1], end_mask=1)
    return array.reshape(tensor, array.concat([[-1], classes], 0)), shape


def _back_to(loss: Tensor, shape: Tensor, logits: Tensor, name: str) -> Tensor:
    outer = slicing.strided_slice(shape, [0], [-1], [1])
    result = array.reshape(loss, outer, name=name)
    if logits.shape.ndims is not None:
        result.set_shape(logits.shape[:-1])
    return result


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    dim: int = -1,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """`softmax_cross_entropy_with_logits_v2` without a gradient into `labels`."""
    _sentinel, labels, logits = _early_order("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    _check_cross_entropy("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as scope:
        labels = array.stop_gradient(labels, name="labels_stop_gradient")
        return softmax_cross_entropy_with_logits_v2(labels, logits, axis=dim if axis is None else axis, name=scope)


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: TensorLike | None = None, logits: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """The cross-entropy of softmax(logits) with the class numbers `labels`.

    # logits (…, C classes), labels (…) int32 or int64 → loss (…). Raises ValueError if the ranks do not match.
    """
    _sentinel, labels, logits = _early_order("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    _check_cross_entropy("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "SparseSoftmaxCrossEntropyWithLogits", [labels, logits]) as scope:
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        given, logits = logits.dtype.base_dtype, _precise(logits)
        if logits.shape.ndims == 0:
            raise ValueError(f"Logits cannot be scalars - received shape {logits.shape}.")
        if logits.shape.ndims is not None and labels.shape.ndims not in (None, logits.shape.ndims - 1):
            raise ValueError(
                f"Rank mismatch: Rank of labels (received {labels.shape.ndims}) should equal rank of logits minus 1 "
                f"(received {logits.shape.ndims})."
            )
        known = logits.shape.ndims is not None and logits.shape[:-1].is_fully_defined()
        if known and labels.shape.is_fully_defined() and labels.shape.as_list() != logits.shape[:-1].as_list():
            raise ValueError(
                f"Shape mismatch: The shape of labels (received {labels.shape}) should equal the shape of logits "
                f"except for the last dimension (received {logits.shape})."
            )
        if logits.shape.ndims == 2:
            # Named inside the scope, as in TensorFlow; programs refer to the node by that name.
            return _as_type(_loss("SparseSoftmaxCrossEntropyWithLogits", name, features=logits, labels=labels), given)
        rows, shape = _rows(logits)
        flat = array.reshape(labels, [-1])
        loss = _loss("SparseSoftmaxCrossEntropyWithLogits", None, features=rows, labels=flat)
        return _as_type(_back_to(loss, shape, logits, scope), given)


def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None, labels: TensorLike | None = None, logits: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """The cross-entropy of independent sigmoid(logits) with `labels`, element by element."""
    _sentinel, labels, logits = _early_order("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    _check_cross_entropy("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        kind = logits.dtype.base_dtype
        if not isinstance(labels, Tensor):
            labels = convert_to_tensor(labels, name="labels", dtype=kind)
        # Before their types, as in TensorFlow.
        if not logits.shape.is_compatible_with(labels.shape):
            raise ValueError(f"logits and labels must have the same shape ({logits.shape} vs {labels.shape})")
        labels = convert_to_tensor(labels, dtype=kind)
        # max(x, 0) - x z + log(1 + exp(-|x|)) never overflows.
        zeros = array.zeros_like(logits)
        positive = math.greater_equal(logits, zeros)
        high = slicing.where(positive, logits, zeros)
        negative_abs = slicing.where(positive, math.negative(logits), logits)
        return add(high - logits * labels, log1p(exp(negative_abs)), name=scope)


def weighted_cross_entropy_with_logits(
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    pos_weight: Any = 1.0,
    name: str | None = None,
    targets: TensorLike | None = None,
) -> Tensor:
    """`sigmoid_cross_entropy_with_logits` with the positive term scaled by `pos_weight`."""
    labels = _alias("labels", labels, "targets", targets)
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels", dtype=logits.dtype.base_dtype)
        weight = 1 + (pos_weight - 1) * labels
        smooth = log1p(exp(math.negative(math.abs(logits)))) + tensor_op("Relu", features=math.negative(logits))
        return add((1 - labels) * logits, weight * smooth, name=scope)


def log_poisson_loss(
    targets: TensorLike, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """The Poisson loss exp(log_input) - log_input * targets; the full one adds Stirling's log(targets!)."""
    with name_scope(name, "log_poisson_loss", [log_input, targets]):
        log_input = convert_to_tensor(log_input, name="log_input")
        targets = convert_to_tensor(targets, name="targets", dtype=log_input.dtype.base_dtype)
        if not targets.shape.is_compatible_with(log_input.shape):
            raise ValueError(f"log_input and targets must have the same shape ({log_input.shape} vs {targets.shape})")
        result: Tensor = exp(log_input) - log_input * targets
        if compute_full_loss:
            half_log = 0.5 * math.log(math.multiply(targets, 2 * np.pi))
            stirling = targets * math.log(targets) - targets + half_log
            small = math.logical_and(math.greater_equal(targets, 0.0), math.less_equal(targets, 1.0))
            result = result + slicing.where(small, array.zeros_like(targets), stirling)
        return result


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """sum(t ** 2) / 2."""
    return tensor_op("L2Loss", name, t=t)
