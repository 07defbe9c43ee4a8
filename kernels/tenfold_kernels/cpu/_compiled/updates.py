"""One fused loop for each optimizer, dense: N elements, every slot read and written once. Bodies are in scalar.py.

var and the slots are the variables' own buffers, flat, changed in place; then come the gradient, the scalars of the
element type, and the switches. `loop(name, element)` gives a loop; sparse_updates.py has the same loops by row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_kernels import scalar
from tenfold_kernels.cpu._compiled import plain_updates
from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline

if TYPE_CHECKING:
    from collections.abc import Callable

_gradient_descent = inline(scalar.gradient_descent)
_momentum = inline(scalar.momentum)
_keras_momentum = inline(scalar.keras_momentum)
_adagrad = inline(scalar.adagrad)
_adam_rate = inline(scalar.adam_rate)
_adam = inline(scalar.adam)
_ada_max = inline(scalar.ada_max)
_rmsprop = inline(scalar.rmsprop)
_centered_rmsprop = inline(scalar.centered_rmsprop)
_adadelta = inline(scalar.adadelta)
_ftrl = inline(scalar.ftrl)
_proximal_gradient_descent = inline(scalar.proximal_gradient_descent)
_proximal_adagrad = inline(scalar.proximal_adagrad)
_adagrad_da = inline(scalar.adagrad_da)


def gradient_descent(var_N, grad_N, alpha):  # type: ignore[no-untyped-def]
    for i in range(var_N.size):
        var_N[i] = _gradient_descent(var_N[i], grad_N[i], alpha)


def momentum(var_N, accum_N, grad_N, lr, decay, nesterov):  # type: ignore[no-untyped-def]
    for i in range(var_N.size):
        var_N[i], accum_N[i] = _momentum(var_N[i], accum_N[i], grad_N[i], lr, decay, nesterov)


def keras_momentum(var_N, accum_N, grad_N, lr, decay, nesterov):  # type: ignore[no-untyped-def]
    for i in range(var_N.size):
        var_N[i], accum_N[i] = _keras_momentum(var_N[i], accum_N[i], grad_N[i], lr, decay, nesterov)


def adagrad(var_N, accum_N, grad_N, lr, epsilon, update_slots):  # type: ignore[no-untyped-def]
    for i in range(var_N.size):
        var_N[i], accum_N[i] = _adagrad(var_N[i], accum_N[i], grad_N[i], lr, epsilon, update_slots)


def adam(  # type: ignore[no-untyped-def]
    var_N, m_N, v_N, grad_N, beta1_power, beta2_power, lr, beta1, beta2, epsilon, one, nesterov
):
    # The powers are others in every step, so what they make is computed here and not by NumPy's slow scalars.
    alpha = _adam_rate(lr, beta1_power, beta2_power, one)
    one_minus_beta1, one_minus_beta2 = one - beta1, one - beta2
    for i in range(var_N.size):
        var_N[i], m_N[i], v_N[i] = _adam(
            var_N[i], m_N[i], v_N[i], grad_N[i], alpha, beta1, one_minus_beta1, one_minus_beta2, epsilon, nesterov
        )


def ada_max(var_N, m_N, v_N, grad_N, alpha, one_minus_beta1, beta2, epsilon):  # type: ignore[no-untyped-def]
    for i in range(var_N.size):
        var_N[i], m_N[i], v_N[i] = _ada_max(var_N[i], m_N[i], v_N[i], grad_N[i], alpha, one_minus_beta1, beta2, epsilon)


def rmsprop(var_N, ms_N, mom_N, grad_N, lr, one_minus_rho, decay, epsilon):  # type: ignore[no-untyped-def]
    for i in range(var_N.size):
        var_N[i], ms_N[i], mom_N[i] = _rmsprop(
            var_N[i], ms_N[i], mom_N[i], grad_N[i], lr, one_minus_rho, decay, epsilon
        )


def centered_rmsprop(var_N, mg_N, ms_N, mom_N, grad_N, lr, one_minus_rho, decay, epsilon):  # type: ignore[no-untyped-def]
    for i in range(var_N.size):
        var_N[i], mg_N[i], ms_N[i], mom_N[i] = _centered_rmsprop(
            var_N[i], mg_N[i], ms_N[i], mom_N[i], grad_N[i], lr, one_minus_rho, decay, epsilon
        )


def adadelta(var_N, accum_N, accum_update_N, grad_N, lr, rho, one_minus_rho, epsilon):  # type: ignore[no-untyped-def]
    for i in range(var_N.size):
        var_N[i], accum_N[i], accum_update_N[i] = _adadelta(
            var_N[i], accum_N[i], accum_update_N[i], grad_N[i], lr, rho, one_minus_rho, epsilon
        )


def ftrl(var_N, accum_N, linear_N, grad_N, lr, l1, two_l2, two_l2_shrinkage, minus_lr_power, linear_times_lr):  # type: ignore[no-untyped-def]
    for i in range(var_N.size):
        var_N[i], accum_N[i], linear_N[i] = _ftrl(
            var_N[i],
            accum_N[i],
            linear_N[i],
            grad_N[i],
            lr,
            l1,
            two_l2,
            two_l2_shrinkage,
            minus_lr_power,
            linear_times_lr,
        )


def proximal_gradient_descent(var_N, grad_N, alpha, l1, one_plus_l2_alpha):  # type: ignore[no-untyped-def]
    for i in range(var_N.size):
        var_N[i] = _proximal_gradient_descent(var_N[i], grad_N[i], alpha, l1, one_plus_l2_alpha)


def proximal_adagrad(var_N, accum_N, grad_N, lr, l1, l2, one):  # type: ignore[no-untyped-def]
    for i in range(var_N.size):
        var_N[i], accum_N[i] = _proximal_adagrad(var_N[i], accum_N[i], grad_N[i], lr, l1, l2, one)


def adagrad_da(var_N, total_N, squared_N, grad_N, lr, l1_steps, l2_steps):  # type: ignore[no-untyped-def]
    for i in range(var_N.size):
        var_N[i], total_N[i], squared_N[i] = _adagrad_da(
            var_N[i], total_N[i], squared_N[i], grad_N[i], lr, l1_steps, l2_steps
        )


#: Name → (loop, its argument codes, see compile_loop).
_LOOPS: dict[str, tuple[Callable[..., Any], str]] = {
    "gradient_descent": (gradient_descent, "w1 r1 s"),
    "momentum": (momentum, "w1 w1 r1 s s b"),
    "keras_momentum": (keras_momentum, "w1 w1 r1 s s b"),
    "adagrad": (adagrad, "w1 w1 r1 s s b"),
    "adam": (adam, "w1 w1 w1 r1 s s s s s s s b"),
    "ada_max": (ada_max, "w1 w1 w1 r1 s s s s"),
    "rmsprop": (rmsprop, "w1 w1 w1 r1 s s s s"),
    "centered_rmsprop": (centered_rmsprop, "w1 w1 w1 w1 r1 s s s s"),
    "adadelta": (adadelta, "w1 w1 w1 r1 s s s s"),
    "ftrl": (ftrl, "w1 w1 w1 r1 s s s s s b"),
    "proximal_gradient_descent": (proximal_gradient_descent, "w1 r1 s s s"),
    "proximal_adagrad": (proximal_adagrad, "w1 w1 r1 s s s s"),
    "adagrad_da": (adagrad_da, "w1 w1 w1 r1 s s s"),
}


def loop(name: str, element: Any) -> Callable[..., None]:
    """The loop of an optimizer for an element type; see compile_loop."""
    function, codes = _LOOPS[name]
    return compile_loop(function, codes, element, stand_in=plain_updates.dense(name))
