"""Checks a gradient against finite differences, in one random direction.

`directional_error` builds a function, differentiates it with walker.py and runs both in an in-process session.
A random direction finds a wrong rule almost surely, and needs two runs, not a full Jacobian. Used by the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.gradients import walker
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.graph import Graph
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.tensor import Tensor


def directional_error(
    build: Callable[..., Any],
    inputs: Sequence[np.ndarray[Any, Any]],
    *,
    differentiate: Sequence[int] | None = None,
    static_shapes: bool = True,
    step: float = 1e-5,
    seed: int = 0,
) -> float:
    """How far `tf.gradients` is from finite differences, relative to the size of the derivative.

    Args: `build` maps one tensor per input to the output tensor; `inputs` are the values, float64 for those numbered in
    `differentiate` (default: all floating ones); without `static_shapes` the rules see unknown dimensions.
    Blocks while the session runs. Raises ValueError if some input gets no gradient.
    """
    generator = np.random.default_rng(seed)
    wanted = (
        [i for i, value in enumerate(inputs) if value.dtype.kind == "f"] if differentiate is None else differentiate
    )
    with Graph().as_default():
        feeds = [
            array_ops.placeholder(as_dtype(v.dtype), v.shape if static_shapes else [None] * v.ndim) for v in inputs
        ]
        output = convert_to_tensor(build(*feeds))
        weights = array_ops.placeholder(output.dtype.base_dtype)
        grads = walker.gradients(output, [feeds[i] for i in wanted], grad_ys=weights)
        if any(grad is None for grad in grads):
            raise ValueError(f"no gradient for input {wanted[[grad is None for grad in grads].index(True)]}")
        scalar = apply_op("Sum", input=output * weights, reduction_indices=_all_axes(output))
        dense = [convert_to_tensor(grad) for grad in grads]
        return _compare(feeds, inputs, wanted, output, weights, scalar, dense, step, generator)


def _all_axes(x: Tensor) -> Any:
    return apply_op("Range", start=0, limit=apply_op("Rank", input=x), delta=1)


def _compare(
    feeds: Sequence[Tensor],
    inputs: Sequence[np.ndarray[Any, Any]],
    wanted: Sequence[int],
    output: Tensor,
    weights: Tensor,
    scalar: Tensor,
    grads: Sequence[Tensor],
    step: float,
    generator: np.random.Generator,
) -> float:
    from tenfold.session.session import Session

    directions = {i: generator.standard_normal(inputs[i].shape) for i in wanted}
    with Session("") as session:

        def fed(shift: float) -> dict[Tensor, Any]:
            return {
                feed: value + shift * directions[i] if i in directions else value
                for i, (feed, value) in enumerate(zip(feeds, inputs, strict=True))
            }

        shape = session.run(output, fed(0.0)).shape
        chosen = generator.standard_normal(shape)
        analytic_parts = session.run(list(grads), {**fed(0.0), weights: chosen})
        for i, part in zip(wanted, analytic_parts, strict=True):
            if part.shape != inputs[i].shape:
                raise ValueError(f"gradient of input {i} has shape {part.shape}, the input {inputs[i].shape}")
        analytic = sum(float(np.sum(part * directions[i])) for i, part in zip(wanted, analytic_parts, strict=True))
        ahead = float(session.run(scalar, {**fed(step), weights: chosen}))
        behind = float(session.run(scalar, {**fed(-step), weights: chosen}))
    numeric = (ahead - behind) / (2 * step)
    return abs(analytic - numeric) / max(1.0, abs(numeric))
