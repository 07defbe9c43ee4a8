"""`optimize_loss`: one call that makes the training step of a loss, with clipping, noise, decay and summaries.

Follows TensorFlow 1.15's contrib/layers/python/layers/optimizers.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import summary, train
from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, clip, init_ops, math, slicing
from tenfold.ops import random as random_ops
from tenfold.ops.check_ops import assert_scalar
from tenfold.ops.control_flow_primitives import with_dependencies
from tenfold.ops.variable_scope import get_variable, variable_scope
from tenfold.ops.variables import trainable_variables
from tenfold.train.moving_averages import assign_moving_average
from tenfold.train.optimizer import Optimizer
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Pairs = Sequence[tuple[Any, Any]]

OPTIMIZER_CLS_NAMES: dict[str, Any] = {
    "Adagrad": train.AdagradOptimizer,
    "Adam": train.AdamOptimizer,
    "Ftrl": train.FtrlOptimizer,
    "Momentum": lambda learning_rate: train.MomentumOptimizer(learning_rate, momentum=0.9),
    "RMSProp": train.RMSPropOptimizer,
    "SGD": train.GradientDescentOptimizer,
}

OPTIMIZER_SUMMARIES = ["learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm"]


def optimize_loss(
    loss: Any,
    global_step: Any,
    learning_rate: Any,
    optimizer: Any,
    gradient_noise_scale: float | None = None,
    gradient_multipliers: Any = None,
    clip_gradients: Any = None,
    learning_rate_decay_fn: Callable[[Any, Any], Any] | None = None,
    update_ops: Any = None,
    variables: Any = None,
    name: Any = None,
    summaries: Sequence[str] | None = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Any:
    """The loss, whose computation trains the variables once (default: all trainable ones).

    `optimizer` is a name of OPTIMIZER_CLS_NAMES, a class, an Optimizer or a function of the learning rate;
    `clip_gradients` a global norm or a function of (gradient, variable) pairs; `gradient_multipliers` variable or its
    name → factor; `update_ops` are run before (default: UPDATE_OPS). Raises ValueError for anything else.
    """
    loss = convert_to_tensor(loss)
    assert_scalar(loss)
    if global_step is None:
        global_step = train.get_global_step()
    else:
        train.assert_global_step(global_step)
    graph = get_default_graph()
    with variable_scope(name, "OptimizeLoss", [loss, global_step]):
        if update_ops is None:
            update_ops = graph.get_collection(GraphKeys.UPDATE_OPS)
        if update_ops:
            loss = with_dependencies(list(dict.fromkeys(update_ops)), loss)
        rate = _rate(learning_rate)
        summaries = _checked_summaries(summaries)
        if learning_rate is not None and learning_rate_decay_fn is not None:
            if global_step is None:
                raise ValueError("global_step is required for learning_rate_decay_fn.")
            rate = learning_rate_decay_fn(rate, global_step)
            if "learning_rate" in summaries:
                summary.scalar("learning_rate", rate)
        made = _made_optimizer(optimizer, learning_rate, rate)
        gradients = made.compute_gradients(
            loss,
            trainable_variables() if variables is None else variables,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gradient_noise_scale is not None:
            gradients = [(_noisy(gradient, gradient_noise_scale), var) for gradient, var in gradients]
        if gradient_multipliers is not None:
            gradients = _multiplied(gradients, gradient_multipliers)
            if not gradients:
                raise ValueError(
                    "Empty list of (gradient, var) pairs encountered. This is most likely to be caused by an improper "
                    "value of gradient_multipliers."
                )
        norms = "global_gradient_norm" in summaries or "gradient_norm" in summaries
        if norms:
            summary.scalar("global_norm/gradient_norm", clip.global_norm([each for each, _ in gradients]))
        gradients = _clipped(gradients, clip_gradients)
        if "loss" in summaries:
            summary.scalar("loss", loss)
        for gradient, var in gradients:
            _summarize_gradient(gradient, var, summaries)
        if clip_gradients is not None and norms:
            summary.scalar("global_norm/clipped_gradient_norm", clip.global_norm([each for each, _ in gradients]))
        step = global_step if increment_global_step else None
        updates = made.apply_gradients(gradients, global_step=step, name="train")
        return with_dependencies([updates], loss)


def _rate(learning_rate: Any) -> Any:
    if learning_rate is None:
        return None
    if isinstance(learning_rate, Tensor) and learning_rate.get_shape().ndims == 0:
        return learning_rate
    if isinstance(learning_rate, float):
        if learning_rate < 0.0:
            raise ValueError(f"Invalid learning_rate {learning_rate}.")
        return get_variable("learning_rate", [], trainable=False, initializer=init_ops.Constant(learning_rate))
    raise ValueError(f"Learning rate should be 0d Tensor or float. Got {learning_rate} of type {type(learning_rate)}")


def _checked_summaries(summaries: Sequence[str] | None) -> Sequence[str]:
    if summaries is None:
        return ["loss", "learning_rate", "global_gradient_norm"]
    for each in summaries:
        if each not in OPTIMIZER_SUMMARIES:
            raise ValueError(f"Summaries should be one of [{', '.join(OPTIMIZER_SUMMARIES)}], you provided {each}.")
    return summaries


def _made_optimizer(optimizer: Any, learning_rate: Any, rate: Any) -> Any:
    if isinstance(optimizer, str):
        if rate is None:
            raise ValueError(f"Learning rate is None, but should be specified if optimizer is string ({optimizer}).")
        if optimizer not in OPTIMIZER_CLS_NAMES:
            known = ", ".join(OPTIMIZER_CLS_NAMES)
            raise ValueError(f"Optimizer name should be one of [{known}], you provided {optimizer}.")
        return OPTIMIZER_CLS_NAMES[optimizer](learning_rate=rate)
    if isinstance(optimizer, type) and issubclass(optimizer, Optimizer):
        if rate is None:
            raise ValueError(f"Learning rate is None, but should be specified if optimizer is class ({optimizer}).")
        return optimizer(learning_rate=rate)  # type: ignore[call-arg]
    if isinstance(optimizer, Optimizer):
        return optimizer
    if callable(optimizer):
        made = optimizer(rate) if learning_rate is not None else optimizer()
        if isinstance(made, Optimizer):
            return made
        raise ValueError(f"Unrecognized optimizer: function should return subclass of Optimizer. Got {made}.")
    raise ValueError(
        "Unrecognized optimizer: should be string, subclass of Optimizer, instance of subclass of Optimizer or "
        f"function with one argument. Got {optimizer}."
    )


def _scaled(gradient: Any, factor: Any) -> Any:
    if gradient is None:
        return None
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
    return gradient * math.cast(factor, gradient.dtype)


def _noisy(gradient: Any, scale: float) -> Any:
    if gradient is None:
        return None
    shape = gradient.dense_shape if isinstance(gradient, IndexedSlices) else gradient.get_shape()
    return gradient + random_ops.truncated_normal(shape) * scale


def _multiplied(gradients: Pairs, multipliers: Any) -> list[tuple[Any, Any]]:
    def factor(var: Any) -> Any:
        return multipliers.get(var, multipliers.get(var.name))

    return [(gradient if factor(var) is None else _scaled(gradient, factor(var)), var) for gradient, var in gradients]


def _clipped(gradients: Pairs, clip_gradients: Any) -> Pairs:
    if clip_gradients is None:
        return gradients
    if isinstance(clip_gradients, float):
        clipped, _ = clip.clip_by_global_norm([each for each, _ in gradients], clip_gradients)
        return list(zip(clipped, [var for _, var in gradients], strict=True))
    if callable(clip_gradients):
        return list(clip_gradients(gradients))
    raise ValueError(f"Unknown type {type(clip_gradients)} for clip_gradients")


def _summarize_gradient(gradient: Any, var: Any, summaries: Sequence[str]) -> None:
    values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
    if values is None:
        return
    name = var.name.replace(":", "_")
    if "gradients" in summaries:
        summary.histogram(f"gradients/{name}", values)
    if "gradient_norm" in summaries:
        summary.scalar(f"gradient_norm/{name}", clip.global_norm([values]))


def adaptive_clipping_fn(
    std_factor: float = 2.0,
    decay: float = 0.95,
    static_max_norm: float | None = None,
    global_step: Any = None,
    report_summary: bool = False,
    epsilon: float = 1e-8,
    name: str | None = None,
) -> Callable[[Pairs], Pairs]:
    """A function for `clip_gradients` that scales down a global norm far beyond what norms have been.

    Norms are averaged on a logarithmic scale with `decay`; beyond `std_factor` deviations the norm becomes the mean.
    """

    def clipped(grads_and_vars: Pairs) -> Pairs:
        gradients = [gradient for gradient, _ in grads_and_vars]
        norm = clip.global_norm(gradients)
        largest, log_mean = _adaptive_max_norm(norm, std_factor, decay, global_step, epsilon, name)
        if report_summary:
            summary.scalar("global_norm/adaptive_max_gradient_norm", largest)
        factor = slicing.where(norm < largest, array.ones_like(norm), math.exp(log_mean) / norm)
        if static_max_norm is not None:
            factor = math.minimum(static_max_norm / norm, factor)
        return [(_scaled(gradient, factor), var) for gradient, var in grads_and_vars]

    return clipped


def _adaptive_max_norm(
    norm: Any, std_factor: float, decay: Any, global_step: Any, epsilon: float, name: str | None
) -> tuple[Any, Any]:
    with variable_scope(name, "AdaptiveMaxNorm", [norm]):
        log_norm = math.log(norm + epsilon)
        if global_step is not None:
            # At the start the averages are those of the steps so far.
            steps = math.cast(global_step, dtypes.float32)
            decay = math.minimum(decay, steps / (steps + 1.0))

        def average(short: str, value: Any) -> Any:
            held = get_variable(
                short, shape=value.get_shape(), dtype=value.dtype, initializer=init_ops.Zeros(), trainable=False
            )
            return assign_moving_average(held, value, decay, zero_debias=False)

        mean, squares = average("mean", log_norm), average("sq_mean", math.square(log_norm))
        deviation = math.sqrt(math.maximum(epsilon, squares - math.square(mean)))
        return math.exp(mean + std_factor * deviation), mean
