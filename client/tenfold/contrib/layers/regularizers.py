"""contrib's regularizers: functions from weights to a scalar loss.

Follows TensorFlow 1.15's contrib/layers/python/layers/regularizers.py.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import add_to_collection, name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.ops import array, math
from tenfold.ops.nn_losses import l2_loss
from tenfold.ops.reductions import reduce_sum

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Regularizer = Callable[[Any], Any]


def _is_off(scale: Any) -> bool:
    """Whether the scale is zero. Raises ValueError for an integer, which is taken for a mistake, and a negative one."""
    if isinstance(scale, numbers.Integral):
        raise ValueError(f"scale cannot be an integer: {scale}")
    if not isinstance(scale, numbers.Real):
        return False
    if scale < 0.0:
        raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale:g}")
    if scale == 0.0:
        logging.info("Scale of 0 disables regularizer.")
    return scale == 0.0


def _scaled(scale: Any, scope: str | None, default: str, penalty: Regularizer) -> Regularizer:
    if _is_off(scale):
        return lambda _: None

    def regularize(weights: Any) -> Any:
        with name_scope(scope, default, [weights]) as name:
            factor = convert_to_tensor(scale, dtype=weights.dtype.base_dtype, name="scale")
            return math.multiply(factor, penalty(weights), name=name)

    return regularize


def l1_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """scale * sum(abs(weights)). Raises ValueError for an integer or negative scale; zero disables it."""
    return _scaled(scale, scope, "l1_regularizer", lambda weights: reduce_sum(math.abs(weights)))


def l2_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """scale * sum(weights ** 2) / 2. Raises ValueError for an integer or negative scale; zero disables it."""
    return _scaled(scale, scope, "l2_regularizer", l2_loss)


def l1_l2_regularizer(scale_l1: Any = 1.0, scale_l2: Any = 1.0, scope: str | None = None) -> Regularizer | None:
    """The sum of an L1 and an L2 regularizer, or one of them if the other's scale is zero."""
    for name, scale in (("scale_l1", scale_l1), ("scale_l2", scale_l2)):
        if isinstance(scale, numbers.Integral):
            raise ValueError(f"{name} cannot be an integer: {scale}")
    scope = scope or "l1_l2_regularizer"
    if scale_l1 == 0.0:
        return l2_regularizer(scale_l2, scope)
    if scale_l2 == 0.0:
        return l1_regularizer(scale_l1, scope)
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope)


def sum_regularizer(regularizer_list: Sequence[Regularizer | None], scope: str | None = None) -> Regularizer | None:
    """The sum of several regularizers; None if there are none."""
    kept = [regularizer for regularizer in regularizer_list if regularizer is not None]
    if not kept:
        return None

    def regularize(weights: Any) -> Any:
        with name_scope(scope, "sum_regularizer", [weights]) as name:
            parts = [part for part in (regularizer(weights) for regularizer in kept) if part is not None]
            return math.add_n(parts, name=name) if parts else None

    return regularize


def apply_regularization(regularizer: Regularizer, weights_list: Any = None) -> Any:
    """The sum of the losses of the weights (default: the collection WEIGHTS), added to REGULARIZATION_LOSSES.

    Raises ValueError without weights, and for a regularizer that gives no scalar.
    """
    weights_list = weights_list or get_default_graph().get_collection(GraphKeys.WEIGHTS)
    if not weights_list:
        raise ValueError("No weights to regularize.")
    with name_scope("get_regularization_penalty", values=weights_list) as scope:
        penalties = [regularizer(weights) for weights in weights_list]
        penalties = [array.constant(0.0) if penalty is None else penalty for penalty in penalties]
        for penalty in penalties:
            if penalty.get_shape().ndims != 0:
                raise ValueError(
                    "regularizer must return a scalar Tensor instead of a Tensor with rank "
                    f"{penalty.get_shape().ndims}."
                )
        total = math.add_n(penalties, name=scope)
        add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
        return total
