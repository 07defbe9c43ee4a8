"""`tf.contrib.nn`: losses with logits first, dropout for selu, a bounded softplus, and sampled losses.

Follows TensorFlow 1.15's contrib/nn/python/ops.
"""

from __future__ import annotations

import numbers
from typing import Any

from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import array, math, nn_losses
from tenfold.ops import random as random_ops
from tenfold.ops.nn_conv import conv1d_transpose

__all__ = [
    "alpha_dropout", "conv1d_transpose", "deprecated_flipped_sigmoid_cross_entropy_with_logits",
    "deprecated_flipped_softmax_cross_entropy_with_logits",
    "deprecated_flipped_sparse_softmax_cross_entropy_with_logits", "nth_element", "scaled_softplus",
]  # fmt: skip

#: What selu tends to for large negative inputs.
_ALPHA = -1.7580993408473766

_LEFT_OUT = {
    "rank_sampled_softmax_loss": "it samples twice; use tf.nn.sampled_softmax_loss",
    "sampled_sparse_softmax_loss": "use tf.nn.sampled_softmax_loss",
}


def __getattr__(name: str) -> Any:
    if name in _LEFT_OUT:
        raise AttributeError(f"tf.contrib.nn.{name} is not part of Tenfold: {_LEFT_OUT[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def alpha_dropout(
    x: Any, keep_prob: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Any:
    """Dropout that keeps mean and variance of what selu gives: dropped elements become its lower limit.

    Raises ValueError for a probability that is not in (0, 1].
    """
    with name_scope(name, "alpha_dropout", [x]):
        x = convert_to_tensor(x, name="x")
        if isinstance(keep_prob, numbers.Real) and not 0 < float(keep_prob) <= 1.0:
            raise ValueError(f"keep_prob must be a scalar tensor or a float in the range (0, 1], got {keep_prob:g}")
        keep = convert_to_tensor(keep_prob, dtype=x.dtype, name="keep_prob")
        keep.get_shape().assert_has_rank(0)
        if known_value(keep) == 1:
            return x
        shape = array.shape(x) if noise_shape is None else noise_shape
        drawn = random_ops.random_uniform(shape, seed=seed, dtype=x.dtype)
        kept = math.cast(math.greater_equal(drawn, 1 - keep), x.dtype)
        mixed = x * kept + _ALPHA * (1 - kept)
        scale = (keep + keep * (1 - keep) * _ALPHA**2) ** -0.5
        return scale * mixed - scale * _ALPHA * (1 - keep)


def scaled_softplus(x: Any, alpha: Any, clip: Any = None, name: str | None = None) -> Any:
    """alpha * softplus(x / alpha), at most `clip`."""
    from tenfold.ops.nn import softplus

    with name_scope(name, "scaled_softplus", [x, alpha]):
        x = convert_to_tensor(x, name="x")
        alpha = convert_to_tensor(alpha, dtype=x.dtype, name="alpha")
        y = alpha * softplus(x / alpha)
        return y if clip is None else math.minimum(y, convert_to_tensor(clip, dtype=x.dtype, name="clip"))


def deprecated_flipped_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, dim: int = -1, name: str | None = None
) -> Any:
    """`tf.nn.softmax_cross_entropy_with_logits`, logits first."""
    return nn_losses.softmax_cross_entropy_with_logits(labels=labels, logits=logits, dim=dim, name=name)


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, name: str | None = None
) -> Any:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits`, logits first."""
    return nn_losses.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(logits: Any, targets: Any, name: str | None = None) -> Any:
    """`tf.nn.sigmoid_cross_entropy_with_logits`, logits first."""
    return nn_losses.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)


def nth_element(input: Any, n: Any, reverse: bool = False, name: str | None = None) -> Any:
    """The n-th smallest of the last dimension, or the n-th largest if `reverse`, counted from 0."""
    return tensor_op("NthElement", name, input=input, n=n, reverse=reverse)
