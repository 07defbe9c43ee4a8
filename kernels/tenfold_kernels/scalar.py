"""Scalar bodies of the hot kernels, written once: plain Python functions of numbers.

cpu/_compiled/ compiles them with Numba for the CPU, inlined into its loops; a cuda/ twin can compile the same bodies.
Nothing here imports a compiler. The arithmetic follows TensorFlow's functors (relu_op_functor.h, training_ops.cc).
All floats have the element type; no literal takes part in arithmetic, because it would widen float32 to float64.
An optimizer's body gives (new var, new slots…); the bools are the same for a whole call, so they cost nothing.
"""

from __future__ import annotations

import math


def relu(x: float, zero: float) -> float:
    """max(x, 0); nan stays nan."""
    return zero if x < zero else x


def relu_grad(gradient: float, feature: float, zero: float) -> float:
    """The gradient where the feature (or the activation) is positive, else nothing; nan and infinity get through."""
    return gradient if feature > zero else gradient * zero


def relu6(x: float, zero: float, six: float) -> float:
    """min(max(x, 0), 6); nan stays nan."""
    return zero if x < zero else (six if x > six else x)


def relu6_grad(gradient: float, feature: float, zero: float, six: float) -> float:
    """The gradient where the feature (or the activation) is between 0 and 6; else as relu_grad."""
    return gradient if feature > zero and feature < six else gradient * zero


def sigmoid_grad(y: float, dy: float, one: float) -> float:
    return dy * y * (one - y)


def gradient_descent(var: float, grad: float, alpha: float) -> float:
    return var - grad * alpha


def momentum(var: float, accum: float, grad: float, lr: float, decay: float, nesterov: bool) -> tuple[float, float]:
    new_accum = accum * decay + grad
    step = grad * lr + new_accum * decay * lr if nesterov else new_accum * lr
    return var - step, new_accum


def keras_momentum(
    var: float, accum: float, grad: float, lr: float, decay: float, nesterov: bool
) -> tuple[float, float]:
    """The accumulator holds the step itself, learning rate included."""
    new_accum = accum * decay - grad * lr
    step = new_accum * decay - grad * lr if nesterov else new_accum
    return var + step, new_accum


def adagrad(
    var: float, accum: float, grad: float, lr: float, epsilon: float, update_slots: bool
) -> tuple[float, float]:
    new_accum = accum + grad * grad if update_slots else accum
    return var - grad * lr / (math.sqrt(new_accum) + epsilon), new_accum


def adam_rate(lr: float, beta1_power: float, beta2_power: float, one: float) -> float:
    """lr·√(1 − β₂ᵗ)/(1 − β₁ᵗ), the same for all elements of a step."""
    return lr * math.sqrt(one - beta2_power) / (one - beta1_power)


def adam(
    var: float,
    m: float,
    v: float,
    grad: float,
    alpha: float,
    beta1: float,
    one_minus_beta1: float,
    one_minus_beta2: float,
    epsilon: float,
    nesterov: bool,
) -> tuple[float, float, float]:
    """`alpha` is the rate above."""
    new_m = m + (grad - m) * one_minus_beta1
    new_v = v + (grad * grad - v) * one_minus_beta2
    direction = grad * one_minus_beta1 + new_m * beta1 if nesterov else new_m
    return var - direction * alpha / (math.sqrt(new_v) + epsilon), new_m, new_v


def ada_max(
    var: float, m: float, v: float, grad: float, alpha: float, one_minus_beta1: float, beta2: float, epsilon: float
) -> tuple[float, float, float]:
    """`alpha` is lr/(1 − β₁ᵗ)."""
    new_m = m + (grad - m) * one_minus_beta1
    new_v = max(v * beta2, abs(grad))
    return var - new_m / (new_v + epsilon) * alpha, new_m, new_v


def rmsprop(
    var: float,
    ms: float,
    mom: float,
    grad: float,
    lr: float,
    one_minus_rho: float,
    decay: float,
    epsilon: float,
) -> tuple[float, float, float]:
    new_ms = ms + (grad * grad - ms) * one_minus_rho
    new_mom = mom * decay + grad * lr / math.sqrt(new_ms + epsilon)
    return var - new_mom, new_ms, new_mom


def centered_rmsprop(
    var: float,
    mg: float,
    ms: float,
    mom: float,
    grad: float,
    lr: float,
    one_minus_rho: float,
    decay: float,
    epsilon: float,
) -> tuple[float, float, float, float]:
    new_ms = ms + (grad * grad - ms) * one_minus_rho
    new_mg = mg + (grad - mg) * one_minus_rho
    new_mom = mom * decay + grad * lr / math.sqrt(new_ms - new_mg * new_mg + epsilon)
    return var - new_mom, new_mg, new_ms, new_mom


def adadelta(
    var: float,
    accum: float,
    accum_update: float,
    grad: float,
    lr: float,
    rho: float,
    one_minus_rho: float,
    epsilon: float,
) -> tuple[float, float, float]:
    new_accum = accum * rho + grad * grad * one_minus_rho
    update = math.sqrt(accum_update + epsilon) / math.sqrt(new_accum + epsilon) * grad
    return var - update * lr, new_accum, accum_update * rho + update * update * one_minus_rho


def ftrl(
    var: float,
    accum: float,
    linear: float,
    grad: float,
    lr: float,
    l1: float,
    two_l2: float,
    two_l2_shrinkage: float,
    minus_lr_power: float,
    linear_times_lr: bool,
) -> tuple[float, float, float]:
    """FTRL-Proximal. With `linear_times_lr` the slot holds linear·lr, and lr·l1 is what bounds it."""
    new_accum = accum + grad * grad
    shrunk_grad = grad + two_l2_shrinkage * var
    if minus_lr_power == 0.5:
        old_power, new_power = math.sqrt(accum), math.sqrt(new_accum)
    else:
        old_power, new_power = accum**minus_lr_power, new_accum**minus_lr_power
    if linear_times_lr:
        new_linear = linear + shrunk_grad * lr - (new_power - old_power) * var
        bound, quadratic = l1 * lr, new_power + two_l2 * lr
    else:
        new_linear = linear + shrunk_grad - (new_power - old_power) / lr * var
        bound, quadratic = l1, new_power / lr + two_l2
    if new_linear > bound:
        new_var = (bound - new_linear) / quadratic
    elif new_linear < -bound:
        new_var = (-bound - new_linear) / quadratic
    else:
        new_var = bound - bound
    return new_var, new_accum, new_linear


def ftrl_linear(
    var: float, accum: float, linear: float, grad: float, lr: float, two_l2_shrinkage: float, minus_lr_power: float
) -> float:
    """The new linear slot of FTRL-Proximal for a row whose norm is regularized."""
    new_accum = accum + grad * grad
    shrunk_grad = grad + two_l2_shrinkage * var
    if minus_lr_power == 0.5:
        grown = math.sqrt(new_accum) - math.sqrt(accum)
    else:
        grown = new_accum**minus_lr_power - accum**minus_lr_power
    return linear + (shrunk_grad - grown / lr * var)


def ftrl_of_row(
    accum: float,
    new_linear: float,
    norm: float,
    grad: float,
    lr: float,
    l1: float,
    two_l2: float,
    minus_lr_power: float,
) -> tuple[float, float]:
    """The weight and the accumulator of an element of such a row, whose linear slot has the norm `norm`."""
    new_accum = accum + grad * grad
    power = math.sqrt(new_accum) if minus_lr_power == 0.5 else new_accum**minus_lr_power
    if norm > l1:
        return (l1 - norm) / ((power / lr + two_l2) * norm) * new_linear, new_accum
    return l1 - l1, new_accum


def root(value: float) -> float:
    """√value, in the type of `value`."""
    return math.sqrt(value)


def proximal_gradient_descent(var: float, grad: float, alpha: float, l1: float, one_plus_l2_alpha: float) -> float:
    moved = var - alpha * grad
    size = abs(moved) - alpha * l1
    if l1 > 0:
        if size <= 0:
            return l1 - l1
        moved = size if moved > 0 else -size
    return moved / one_plus_l2_alpha


def proximal_adagrad(
    var: float, accum: float, grad: float, lr: float, l1: float, l2: float, one: float
) -> tuple[float, float]:
    new_accum = accum + grad * grad
    rate = lr / math.sqrt(new_accum)
    moved = var - rate * grad
    if l1 > 0:
        size = abs(moved) - rate * l1
        moved = rate - rate if size <= 0 else size if moved > 0 else -size
    return moved / (one + l2 * rate), new_accum


def adagrad_da(
    var: float, total: float, squared: float, grad: float, lr: float, l1_steps: float, l2_steps: float
) -> tuple[float, float, float]:
    """Dual averaging: var comes from the sums alone. `l1_steps` and `l2_steps` are l1 and l2 times the global step."""
    new_total = total + grad
    new_squared = squared + grad * grad
    direction = new_total
    if l1_steps > 0:
        size = abs(new_total) - l1_steps
        direction = l1_steps - l1_steps if size <= 0 else size if new_total > 0 else -size
    return -lr * direction / (l2_steps * lr + math.sqrt(new_squared)), new_total, new_squared
