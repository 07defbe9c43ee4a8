"""Resampling of a batch: each example as often as its rate says.

Follows TensorFlow 1.15's contrib/training/python/training/resample.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math, slicing
from tenfold.ops import random as random_ops
from tenfold.ops.array_repeat import repeat
from tenfold.ops.reductions import reduce_mean
from tenfold.ops.variable_scope import get_local_variable, variable_scope
from tenfold.train.moving_averages import assign_moving_average
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence


def _repeat_range(counts: Any, name: str | None = None) -> Any:
    """0 `counts[0]` times, 1 `counts[1]` times, …: an int32 vector."""
    with name_scope(name, "repeat_range", [counts]):
        counts = convert_to_tensor(counts, name="counts")
        return repeat(math.range(array.size(counts)), counts)


def resample_at_rate(
    inputs: Sequence[Any], rates: Any, scope: str | None = None, seed: int | None = None, back_prop: bool = False
) -> list[Any]:
    """The inputs with each row repeated, or left out: the number of times is Poisson distributed with its rate.

    Inputs (batch, …), rates (batch,); gradients go to the inputs, and to the rates only with `back_prop`.
    """
    with name_scope(scope, "resample_at_rate", [*inputs, rates]):
        rates = convert_to_tensor(rates, name="rates")
        counts = math.cast(random_ops.random_poisson(rates, (), rates.dtype, seed=seed), dtypes.int32)
        rows = _repeat_range(counts)
        if not back_prop:
            rows = array.stop_gradient(rows)
        return [slicing.gather(each, rows) for each in inputs]


def weighted_resample(
    inputs: Sequence[Any],
    weights: Any,
    overall_rate: Any,
    scope: str | None = None,
    mean_decay: float = 0.999,
    seed: int | None = None,
) -> tuple[list[Any], Any]:
    """(inputs, rates) resampled so that a row is repeated in proportion to its weight, `overall_rate` on average.

    The mean weight is a moving average in a local variable.
    """
    with name_scope(scope, "weighted_resample", inputs) as inner:
        with variable_scope(scope, "estimate_mean", inputs):
            held = get_local_variable("estimated_mean", initializer=math.cast(0, weights.dtype), dtype=weights.dtype)
            mean = assign_moving_average(held, reduce_mean(weights), mean_decay)
        rates = weights * overall_rate / mean
        taken, *results = resample_at_rate([rates, *inputs], rates, scope=inner, seed=seed, back_prop=False)
        return results, taken
