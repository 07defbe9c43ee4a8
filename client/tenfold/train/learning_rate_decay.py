"""Learning rates that change with the global step: `tf.train.exponential_decay` and other schedules.

Each gives a scalar tensor of the type of `learning_rate`, recomputed in every step. All but the exponential families
stay at their last value once `global_step` is past the end. Follows TF 1.15's training/learning_rate_decay.py; choices
between two values are a Select here, where TensorFlow builds a conditional.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_n_to_tensor, convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array
from tenfold.ops import math as m
from tenfold.ops.random import random_normal
from tenfold.ops.slicing import where
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.argument_types import TensorLike
    from tenfold.graph.tensor import Tensor


def _rate(learning_rate: Any, global_step: Any) -> Tensor:
    if global_step is None:
        raise ValueError("global_step is required for a learning rate that decays.")
    return convert_to_tensor(learning_rate, name="initial_learning_rate")


def _casts(like: Tensor, *values: Any) -> list[Any]:
    return [m.cast(value, like.dtype.base_dtype) for value in values]


def exponential_decay(
    learning_rate: TensorLike,
    global_step: Any,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """`learning_rate * decay_rate ^ (global_step / decay_steps)`; with `staircase` the quotient is rounded down."""
    with name_scope(name or "ExponentialDecay") as scope:
        rate = _rate(learning_rate, global_step)
        steps, factor, step = _casts(rate, decay_steps, decay_rate, global_step)
        p = m.floor(step / steps) if staircase else step / steps
        return m.multiply(rate, m.pow(factor, p), name=scope)


def piecewise_constant(
    x: TensorLike, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Tensor:
    """`values[0]` up to and with `boundaries[0]`, then `values[1]` up to `boundaries[1]`, …; one value more.

    Raises ValueError if the lengths do not fit, or types differ (an int32 boundary may meet an int64 step).
    """
    limits, choices, step = convert_n_to_tensor(boundaries), convert_n_to_tensor(values), convert_to_tensor(x)
    kind = step.dtype.base_dtype
    for i, limit in enumerate(limits):
        if limit.dtype.base_dtype == kind:
            continue
        if (limit.dtype.base_dtype, kind) != (dtypes.int32, dtypes.int64):
            raise ValueError(f"Boundaries ({limit.dtype.base_dtype}) must have the same dtype as x ({kind}).")
        limits[i] = m.cast(limit, kind)
    for choice in choices[1:]:
        if choice.dtype.base_dtype != choices[0].dtype.base_dtype:
            raise ValueError(
                "Values must have elements all with the same dtype "
                f"({choices[0].dtype.base_dtype} vs {choice.dtype.base_dtype})."
            )
    if len(limits) != len(choices) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    with name_scope(name or "PiecewiseConstant"):
        # from the last interval to the first: each Select overrides those of later intervals
        rate = choices[-1]
        for limit, choice in zip(reversed(limits), reversed(choices[:-1]), strict=True):
            rate = apply_op("Select", condition=m.less_equal(step, limit), t=choice, e=rate)
        return array.identity(rate)


piecewise_constant_decay = piecewise_constant


def polynomial_decay(
    learning_rate: TensorLike,
    global_step: Any,
    decay_steps: TensorLike,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """From `learning_rate` to `end_learning_rate` within `decay_steps`, along a polynomial of degree `power`.

    With `cycle`, `decay_steps` is multiplied each time that the end is reached, and the rate goes up again.
    """
    with name_scope(name or "PolynomialDecay") as scope:
        rate = _rate(learning_rate, global_step)
        end, degree, step, steps = _casts(rate, end_learning_rate, power, global_step, decay_steps)
        if cycle:
            steps = steps * where(m.equal(step, 0), array.ones_like(step), m.ceil(step / steps))
        else:
            step = m.minimum(step, steps)
        left = m.pow(1 - m.divide(step, steps), degree)
        return m.add(m.multiply(rate - end, left), end, name=scope)


def natural_exp_decay(
    learning_rate: TensorLike,
    global_step: Any,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """`learning_rate * exp(-decay_rate * global_step / decay_steps)`; with `staircase` the quotient is rounded down."""
    factor = m.exp(m.negative(decay_rate))
    return exponential_decay(learning_rate, global_step, decay_steps, factor, staircase, name)


def inverse_time_decay(
    learning_rate: TensorLike,
    global_step: Any,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """`learning_rate / (1 + decay_rate * global_step / decay_steps)`; with `staircase` the quotient is rounded down."""
    with name_scope(name or "InverseTimeDecay") as scope:
        rate = _rate(learning_rate, global_step)
        steps, factor, step = _casts(rate, decay_steps, decay_rate, global_step)
        p = m.floor(step / steps) if staircase else step / steps
        one = m.cast(array.constant(1), rate.dtype.base_dtype)
        return m.divide(rate, m.add(one, m.multiply(factor, p)), name=scope)


def _half_cosine(fraction: Any) -> Any:
    """From 1 to 0 as `fraction` goes from 0 to 1."""
    return 0.5 * (1.0 + m.cos(m.cast(array.constant(math.pi), fraction.dtype.base_dtype) * fraction))


def cosine_decay(
    learning_rate: TensorLike, global_step: Any, decay_steps: TensorLike, alpha: Any = 0.0, name: str | None = None
) -> Tensor:
    """Half a cosine from `learning_rate` down to `alpha * learning_rate` within `decay_steps`."""
    with name_scope(name or "CosineDecay"):
        rate = _rate(learning_rate, global_step)
        steps, step = _casts(rate, decay_steps, global_step)
        return m.multiply(rate, (1 - alpha) * _half_cosine(m.minimum(step, steps) / steps) + alpha)


def cosine_decay_restarts(
    learning_rate: TensorLike,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: Any = 2.0,
    m_mul: Any = 1.0,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Cosine decay that starts again: each period is `t_mul` times as long and starts at `m_mul` times the rate."""
    with name_scope(name or "SGDRDecay") as scope:
        rate = _rate(learning_rate, global_step)
        first, floor_share, longer, lower, step = _casts(rate, first_decay_steps, alpha, t_mul, m_mul, global_step)
        periods = step / first
        # for periods of equal length the closed form divides by zero; the Select below drops that value
        equal = m.equal(longer, 1.0)
        by_length = m.floor(m.log(1.0 - periods * (1.0 - longer)) / m.log(longer))
        before = (1.0 - longer**by_length) / (1.0 - longer)
        restarts = where(equal, m.floor(periods), by_length)
        fraction = where(equal, periods - m.floor(periods), (periods - before) / longer**by_length)
        decayed = (1 - floor_share) * (lower**restarts * _half_cosine(fraction)) + floor_share
        return m.multiply(rate, decayed, name=scope)


def linear_cosine_decay(
    learning_rate: TensorLike,
    global_step: Any,
    decay_steps: TensorLike,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """`learning_rate * ((alpha + linear) * cosine + beta)`: a falling line times `num_periods` of a cosine."""
    with name_scope(name or "LinearCosineDecay") as scope:
        rate = _rate(learning_rate, global_step)
        return _linear_cosine(rate, global_step, decay_steps, num_periods, alpha, beta, None, scope)


def noisy_linear_cosine_decay(
    learning_rate: TensorLike,
    global_step: Any,
    decay_steps: TensorLike,
    initial_variance: Any = 1.0,
    variance_decay: Any = 0.55,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """`linear_cosine_decay` with noise of variance `initial_variance / (1 + global_step) ^ variance_decay` on it."""
    with name_scope(name or "NoisyLinearCosineDecay") as scope:
        rate = _rate(learning_rate, global_step)
        noise = (initial_variance, variance_decay)
        return _linear_cosine(rate, global_step, decay_steps, num_periods, alpha, beta, noise, scope)


def _linear_cosine(
    rate: Tensor,
    global_step: Any,
    decay_steps: Any,
    num_periods: Any,
    alpha: Any,
    beta: Any,
    noise: tuple[Any, Any] | None,
    scope: str,
) -> Tensor:
    steps, periods, lift, floor, step = _casts(rate, decay_steps, num_periods, alpha, beta, global_step)
    step = m.minimum(step, steps)
    linear = (steps - step) / steps
    if noise is not None:
        initial, decay = _casts(rate, *noise)
        deviation = m.sqrt(initial / m.pow(1.0 + step, decay))
        linear = linear + random_normal(array.shape(linear), stddev=deviation, dtype=rate.dtype.base_dtype)
    cosine = _half_cosine(2.0 * periods * (step / steps))
    return m.multiply(rate, (lift + linear) * cosine + floor, name=scope)
