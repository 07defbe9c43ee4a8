"""Clipping: values to a range, tensors and lists of tensors to a norm.

Sparse gradients (IndexedSlices) are clipped by their rows. Follows TF 1.15's ops/clip_ops.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import colocate_with, name_scope
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.ops import array
from tenfold.ops import math as m
from tenfold.ops.nn_losses import l2_loss
from tenfold.ops.reductions import reduce_sum
from tenfold.ops.slicing import where
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.argument_types import TensorLike
    from tenfold.graph.tensor import Tensor


def _values(t: Any, name: str = "t") -> Tensor:
    return convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t, name=name)


def _like(t: Any, values: Tensor) -> Any:
    return IndexedSlices(values, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else values


def clip_by_value(t: Any, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None) -> Any:
    """`t` with each element within the bounds, which may be scalars or broadcast to the shape of `t`.

    Raises ValueError if they would make the result larger than `t`.
    """
    with name_scope(name, "clip_by_value", [t, clip_value_min, clip_value_max]) as scope:
        values = _values(t)
        below = m.minimum(values, clip_value_max)
        values.get_shape().merge_with(below.get_shape())
        within = m.maximum(below, clip_value_min, name=scope)
        values.get_shape().merge_with(within.get_shape())
        return _like(t, within)


def clip_by_norm(t: Any, clip_norm: TensorLike, axes: Any = None, name: str | None = None) -> Any:
    """`t * clip_norm / l2norm(t)` if the norm over `axes` (default: all) exceeds `clip_norm`, otherwise `t`."""
    with name_scope(name, "clip_by_norm", [t, clip_norm]) as scope:
        values = _values(t)
        squares = reduce_sum(values * values, axes, keepdims=True)
        positive = m.greater(squares, 0)
        # Avoids the square root of zero, whose gradient is infinite.
        safe = where(positive, squares, array.ones_like(squares))
        norm = where(positive, m.sqrt(safe), squares)
        scaled = values * clip_norm
        values.get_shape().merge_with(scaled.get_shape())
        return _like(t, array.identity(scaled / m.maximum(norm, clip_norm), name=scope))


def _checked_list(t_list: Any) -> list[Any]:
    if not isinstance(t_list, Sequence) or isinstance(t_list, (str, bytes)):
        raise TypeError("t_list should be a sequence")
    return list(t_list)


def global_norm(t_list: Any, name: str | None = None) -> Tensor:
    """`sqrt(sum(l2norm(t)²))` over the tensors of `t_list`; None entries do not count. TypeError unless a sequence."""
    tensors = _checked_list(t_list)
    with name_scope(name, "global_norm", tensors):
        halves = []
        for i, t in enumerate(tensors):
            if t is not None:
                values = _values(t, f"t_{i}")
                # Sum on the tensor's device, so that only a scalar is sent.
                with colocate_with(values):
                    halves.append(l2_loss(values))
        half = reduce_sum(array.stack(halves))
        return m.sqrt(half * array.constant(2.0, dtype=half.dtype), name="global_norm")


def clip_by_global_norm(
    t_list: Any, clip_norm: TensorLike, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """(the tensors, all scaled so that their global norm is at most `clip_norm`; the norm before).

    An infinite norm makes all of them NaN. `use_norm` is the global norm if the caller has it already.
    """
    tensors = _checked_list(t_list)
    norm = global_norm(tensors, name) if use_norm is None else use_norm
    with name_scope(name, "clip_by_global_norm", [*tensors, clip_norm]) as scope:
        one = array.constant(1.0, dtype=norm.dtype)
        scale = clip_norm * m.minimum(1.0 / norm, one / clip_norm)
        scale = where(m.is_finite(norm), scale, array.constant(float("nan"), dtype=norm.dtype))
        clipped: list[Any] = []
        for i, t in enumerate(tensors):
            if t is None:
                clipped.append(None)
                continue
            values = _values(t, f"t_{i}")
            with colocate_with(values):
                clipped.append(_like(t, array.identity(values * scale, name=f"{scope}_{i}")))
        return clipped, norm


def clip_by_average_norm(t: Any, clip_norm: TensorLike, name: str | None = None) -> Tensor:
    """`t` scaled so that its norm per element is at most `clip_norm`."""
    with name_scope(name, "clip_by_average_norm", [t, clip_norm]) as scope:
        values = convert_to_tensor(t, name="t")
        count = m.cast(array.size(values), dtypes.float32)
        inverse = m.rsqrt(reduce_sum(values * values, m.range(array.rank(values))))
        factor = m.minimum(inverse * count, array.constant(1.0) / clip_norm)
        return array.identity(values * clip_norm * factor, name=scope)
