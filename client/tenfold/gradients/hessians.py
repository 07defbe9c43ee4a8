"""`tf.hessians`: second derivatives, one row per iteration of a loop. Follows TensorFlow 1.15's gradients_impl.py."""

from __future__ import annotations

from typing import Any

from tenfold.gradients.walker import gradients
from tenfold.ops import array
from tenfold.ops.control_flow_while import while_loop
from tenfold.ops.tensor_array import TensorArray
from tenfold_core import dtypes


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Any]:
    """For each x the Hessian matrix of the sum of `ys`, with shape (*x.shape, *x.shape).

    Raises ValueError for an x that no y depends on.
    """
    x_list = list(xs) if isinstance(xs, (list, tuple)) else [xs]
    first = gradients(
        ys,
        x_list,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
    )
    return [_hessian(gradient, x) for gradient, x in zip(first, x_list, strict=True)]


def _hessian(gradient: Any, x: Any) -> Any:
    if gradient is None:
        raise ValueError(f"No y depends on {x}: it has no Hessian")
    flat = array.reshape(gradient, [-1])
    count = array.size(x)
    rows = TensorArray(x.dtype.base_dtype, count)

    def row(j: Any, written: Any) -> Any:
        return j + 1, written.write(j, gradients(flat[j], x)[0])

    _, hessian = while_loop(lambda j, _: j < count, row, [array.constant(0, dtypes.int32), rows])
    shape = array.shape(x)
    return array.reshape(hessian.stack(), array.concat((shape, shape), 0))


__all__ = ["hessians"]
