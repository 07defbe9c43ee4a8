"""The optimizers' loops by row: the gradient has a row for each of K indices into a table of L rows, W elements each.

A row named twice is updated twice, one after the other, as TensorFlow's sparse updates do. All indices are checked
first, and each once more when it is used, for another step may have written to them meanwhile; the first bad position
is returned, −1 if all are good. Bodies are in scalar.py, dense twins in updates.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_kernels import scalar
from tenfold_kernels.cpu._compiled import plain_updates
from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.cpu._compiled.intrinsics import fetch_ahead, once

if TYPE_CHECKING:
    from collections.abc import Callable

_gradient_descent = inline(scalar.gradient_descent)
_momentum = inline(scalar.momentum)
_keras_momentum = inline(scalar.keras_momentum)
_adagrad = inline(scalar.adagrad)
_adam, _adam_rate = inline(scalar.adam), inline(scalar.adam_rate)
_rmsprop = inline(scalar.rmsprop)
_centered_rmsprop = inline(scalar.centered_rmsprop)
_adadelta = inline(scalar.adadelta)
_ftrl = inline(scalar.ftrl)
_ftrl_linear, _ftrl_of_row, _root = inline(scalar.ftrl_linear), inline(scalar.ftrl_of_row), inline(scalar.root)
_proximal_gradient_descent = inline(scalar.proximal_gradient_descent)
_proximal_adagrad = inline(scalar.proximal_adagrad)
_adagrad_da = inline(scalar.adagrad_da)

#: Rows between the one that is updated and the one that is asked for: a table lies in memory, and its rows anywhere.
_AHEAD = 8


@inline
def _first_bad(indices_K, limit):  # type: ignore[no-untyped-def]
    for k in range(indices_K.size):
        if indices_K[k] < 0 or indices_K[k] >= limit:
            return k
    return -1


def gradient_descent(var_LW, grad_KW, indices_K, alpha):  # type: ignore[no-untyped-def]
    bad = _first_bad(indices_K, var_LW.shape[0])
    if bad >= 0:
        return bad
    for k in range(indices_K.size):
        if k + _AHEAD < indices_K.size:
            fetch_ahead(var_LW, indices_K[k + _AHEAD])
        r = once(indices_K, k)
        if r < 0 or r >= var_LW.shape[0]:
            return k
        for j in range(var_LW.shape[1]):
            var_LW[r, j] = _gradient_descent(var_LW[r, j], grad_KW[k, j], alpha)
    return -1


def momentum(var_LW, accum_LW, grad_KW, indices_K, lr, decay, nesterov):  # type: ignore[no-untyped-def]
    bad = _first_bad(indices_K, var_LW.shape[0])
    if bad >= 0:
        return bad
    for k in range(indices_K.size):
        if k + _AHEAD < indices_K.size:
            fetch_ahead(var_LW, indices_K[k + _AHEAD])
            fetch_ahead(accum_LW, indices_K[k + _AHEAD])
        r = once(indices_K, k)
        if r < 0 or r >= var_LW.shape[0]:
            return k
        for j in range(var_LW.shape[1]):
            var_LW[r, j], accum_LW[r, j] = _momentum(var_LW[r, j], accum_LW[r, j], grad_KW[k, j], lr, decay, nesterov)
    return -1


def keras_momentum(var_LW, accum_LW, grad_KW, indices_K, lr, decay, nesterov):  # type: ignore[no-untyped-def]
    bad = _first_bad(indices_K, var_LW.shape[0])
    if bad >= 0:
        return bad
    for k in range(indices_K.size):
        if k + _AHEAD < indices_K.size:
            fetch_ahead(var_LW, indices_K[k + _AHEAD])
            fetch_ahead(accum_LW, indices_K[k + _AHEAD])
        r = once(indices_K, k)
        if r < 0 or r >= var_LW.shape[0]:
            return k
        for j in range(var_LW.shape[1]):
            var_LW[r, j], accum_LW[r, j] = _keras_momentum(
                var_LW[r, j], accum_LW[r, j], grad_KW[k, j], lr, decay, nesterov
            )
    return -1


def adagrad(var_LW, accum_LW, grad_KW, indices_K, lr, epsilon, update_slots):  # type: ignore[no-untyped-def]
    bad = _first_bad(indices_K, var_LW.shape[0])
    if bad >= 0:
        return bad
    for k in range(indices_K.size):
        if k + _AHEAD < indices_K.size:
            fetch_ahead(var_LW, indices_K[k + _AHEAD])
            fetch_ahead(accum_LW, indices_K[k + _AHEAD])
        r = once(indices_K, k)
        if r < 0 or r >= var_LW.shape[0]:
            return k
        for j in range(var_LW.shape[1]):
            var_LW[r, j], accum_LW[r, j] = _adagrad(
                var_LW[r, j], accum_LW[r, j], grad_KW[k, j], lr, epsilon, update_slots
            )
    return -1


def adam(  # type: ignore[no-untyped-def]
    var_LW, m_LW, v_LW, grad_KW, indices_K, beta1_power, beta2_power, lr, beta1, beta2, epsilon, one, nesterov
):
    bad = _first_bad(indices_K, var_LW.shape[0])
    if bad >= 0:
        return bad
    alpha = _adam_rate(lr, beta1_power, beta2_power, one)
    one_minus_beta1, one_minus_beta2 = one - beta1, one - beta2
    for k in range(indices_K.size):
        if k + _AHEAD < indices_K.size:
            fetch_ahead(var_LW, indices_K[k + _AHEAD])
            fetch_ahead(m_LW, indices_K[k + _AHEAD])
            fetch_ahead(v_LW, indices_K[k + _AHEAD])
        r = once(indices_K, k)
        if r < 0 or r >= var_LW.shape[0]:
            return k
        for j in range(var_LW.shape[1]):
            var_LW[r, j], m_LW[r, j], v_LW[r, j] = _adam(
                var_LW[r, j],
                m_LW[r, j],
                v_LW[r, j],
                grad_KW[k, j],
                alpha,
                beta1,
                one_minus_beta1,
                one_minus_beta2,
                epsilon,
                nesterov,
            )
    return -1


def rmsprop(  # type: ignore[no-untyped-def]
    var_LW, ms_LW, mom_LW, grad_KW, indices_K, lr, one_minus_rho, decay, epsilon
):
    bad = _first_bad(indices_K, var_LW.shape[0])
    if bad >= 0:
        return bad
    for k in range(indices_K.size):
        if k + _AHEAD < indices_K.size:
            fetch_ahead(var_LW, indices_K[k + _AHEAD])
            fetch_ahead(ms_LW, indices_K[k + _AHEAD])
            fetch_ahead(mom_LW, indices_K[k + _AHEAD])
        r = once(indices_K, k)
        if r < 0 or r >= var_LW.shape[0]:
            return k
        for j in range(var_LW.shape[1]):
            var_LW[r, j], ms_LW[r, j], mom_LW[r, j] = _rmsprop(
                var_LW[r, j], ms_LW[r, j], mom_LW[r, j], grad_KW[k, j], lr, one_minus_rho, decay, epsilon
            )
    return -1


def centered_rmsprop(  # type: ignore[no-untyped-def]
    var_LW, mg_LW, ms_LW, mom_LW, grad_KW, indices_K, lr, one_minus_rho, decay, epsilon
):
    bad = _first_bad(indices_K, var_LW.shape[0])
    if bad >= 0:
        return bad
    for k in range(indices_K.size):
        if k + _AHEAD < indices_K.size:
            fetch_ahead(var_LW, indices_K[k + _AHEAD])
            fetch_ahead(mg_LW, indices_K[k + _AHEAD])
            fetch_ahead(ms_LW, indices_K[k + _AHEAD])
            fetch_ahead(mom_LW, indices_K[k + _AHEAD])
        r = once(indices_K, k)
        if r < 0 or r >= var_LW.shape[0]:
            return k
        for j in range(var_LW.shape[1]):
            var_LW[r, j], mg_LW[r, j], ms_LW[r, j], mom_LW[r, j] = _centered_rmsprop(
                var_LW[r, j], mg_LW[r, j], ms_LW[r, j], mom_LW[r, j], grad_KW[k, j], lr, one_minus_rho, decay, epsilon
            )
    return -1


def adadelta(  # type: ignore[no-untyped-def]
    var_LW, accum_LW, accum_update_LW, grad_KW, indices_K, lr, rho, one_minus_rho, epsilon
):
    bad = _first_bad(indices_K, var_LW.shape[0])
    if bad >= 0:
        return bad
    for k in range(indices_K.size):
        if k + _AHEAD < indices_K.size:
            fetch_ahead(var_LW, indices_K[k + _AHEAD])
            fetch_ahead(accum_LW, indices_K[k + _AHEAD])
            fetch_ahead(accum_update_LW, indices_K[k + _AHEAD])
        r = once(indices_K, k)
        if r < 0 or r >= var_LW.shape[0]:
            return k
        for j in range(var_LW.shape[1]):
            var_LW[r, j], accum_LW[r, j], accum_update_LW[r, j] = _adadelta(
                var_LW[r, j], accum_LW[r, j], accum_update_LW[r, j], grad_KW[k, j], lr, rho, one_minus_rho, epsilon
            )
    return -1


def ftrl(  # type: ignore[no-untyped-def]
    var_LW, accum_LW, linear_LW, grad_KW, indices_K, lr, l1, two_l2, two_l2_shrinkage, minus_lr_power, linear_times_lr
):
    bad = _first_bad(indices_K, var_LW.shape[0])
    if bad >= 0:
        return bad
    for k in range(indices_K.size):
        if k + _AHEAD < indices_K.size:
            fetch_ahead(var_LW, indices_K[k + _AHEAD])
            fetch_ahead(accum_LW, indices_K[k + _AHEAD])
            fetch_ahead(linear_LW, indices_K[k + _AHEAD])
        r = once(indices_K, k)
        if r < 0 or r >= var_LW.shape[0]:
            return k
        for j in range(var_LW.shape[1]):
            var_LW[r, j], accum_LW[r, j], linear_LW[r, j] = _ftrl(
                var_LW[r, j],
                accum_LW[r, j],
                linear_LW[r, j],
                grad_KW[k, j],
                lr,
                l1,
                two_l2,
                two_l2_shrinkage,
                minus_lr_power,
                linear_times_lr,
            )
    return -1


def row_ftrl(  # type: ignore[no-untyped-def]
    var_LW, accum_LW, linear_LW, grad_KW, indices_K, lr, l1, two_l2, two_l2_shrinkage, minus_lr_power, linear_times_lr
):
    # l1 bounds the norm of a row of `linear`, and not each element
    bad = _first_bad(indices_K, var_LW.shape[0])
    if bad >= 0:
        return bad
    for k in range(indices_K.size):
        if k + _AHEAD < indices_K.size:
            fetch_ahead(var_LW, indices_K[k + _AHEAD])
            fetch_ahead(accum_LW, indices_K[k + _AHEAD])
            fetch_ahead(linear_LW, indices_K[k + _AHEAD])
        r = once(indices_K, k)
        if r < 0 or r >= var_LW.shape[0]:
            return k
        squares = l1 - l1
        for j in range(var_LW.shape[1]):
            linear_LW[r, j] = _ftrl_linear(
                var_LW[r, j], accum_LW[r, j], linear_LW[r, j], grad_KW[k, j], lr, two_l2_shrinkage, minus_lr_power
            )
            squares += linear_LW[r, j] * linear_LW[r, j]
        norm = _root(squares)
        for j in range(var_LW.shape[1]):
            var_LW[r, j], accum_LW[r, j] = _ftrl_of_row(
                accum_LW[r, j], linear_LW[r, j], norm, grad_KW[k, j], lr, l1, two_l2, minus_lr_power
            )
    return -1


def proximal_gradient_descent(var_LW, grad_KW, indices_K, alpha, l1, one_plus_l2_alpha):  # type: ignore[no-untyped-def]
    bad = _first_bad(indices_K, var_LW.shape[0])
    if bad >= 0:
        return bad
    for k in range(indices_K.size):
        if k + _AHEAD < indices_K.size:
            fetch_ahead(var_LW, indices_K[k + _AHEAD])
        r = once(indices_K, k)
        if r < 0 or r >= var_LW.shape[0]:
            return k
        for j in range(var_LW.shape[1]):
            var_LW[r, j] = _proximal_gradient_descent(var_LW[r, j], grad_KW[k, j], alpha, l1, one_plus_l2_alpha)
    return -1


def proximal_adagrad(var_LW, accum_LW, grad_KW, indices_K, lr, l1, l2, one):  # type: ignore[no-untyped-def]
    bad = _first_bad(indices_K, var_LW.shape[0])
    if bad >= 0:
        return bad
    for k in range(indices_K.size):
        if k + _AHEAD < indices_K.size:
            fetch_ahead(var_LW, indices_K[k + _AHEAD])
            fetch_ahead(accum_LW, indices_K[k + _AHEAD])
        r = once(indices_K, k)
        if r < 0 or r >= var_LW.shape[0]:
            return k
        for j in range(var_LW.shape[1]):
            var_LW[r, j], accum_LW[r, j] = _proximal_adagrad(
                var_LW[r, j], accum_LW[r, j], grad_KW[k, j], lr, l1, l2, one
            )
    return -1


def adagrad_da(  # type: ignore[no-untyped-def]
    var_LW, total_LW, squared_LW, grad_KW, indices_K, lr, l1_steps, l2_steps
):
    bad = _first_bad(indices_K, var_LW.shape[0])
    if bad >= 0:
        return bad
    for k in range(indices_K.size):
        if k + _AHEAD < indices_K.size:
            fetch_ahead(var_LW, indices_K[k + _AHEAD])
            fetch_ahead(total_LW, indices_K[k + _AHEAD])
            fetch_ahead(squared_LW, indices_K[k + _AHEAD])
        r = once(indices_K, k)
        if r < 0 or r >= var_LW.shape[0]:
            return k
        for j in range(var_LW.shape[1]):
            var_LW[r, j], total_LW[r, j], squared_LW[r, j] = _adagrad_da(
                var_LW[r, j], total_LW[r, j], squared_LW[r, j], grad_KW[k, j], lr, l1_steps, l2_steps
            )
    return -1


#: Name → (loop, its argument codes, see compile_loop).
_LOOPS: dict[str, tuple[Callable[..., Any], str]] = {
    "gradient_descent": (gradient_descent, "w2 r2 i1 s"),
    "momentum": (momentum, "w2 w2 r2 i1 s s b"),
    "keras_momentum": (keras_momentum, "w2 w2 r2 i1 s s b"),
    "adagrad": (adagrad, "w2 w2 r2 i1 s s b"),
    "adam": (adam, "w2 w2 w2 r2 i1 s s s s s s s b"),
    "rmsprop": (rmsprop, "w2 w2 w2 r2 i1 s s s s"),
    "centered_rmsprop": (centered_rmsprop, "w2 w2 w2 w2 r2 i1 s s s s"),
    "adadelta": (adadelta, "w2 w2 w2 r2 i1 s s s s"),
    "ftrl": (ftrl, "w2 w2 w2 r2 i1 s s s s s b"),
    "row_ftrl": (row_ftrl, "w2 w2 w2 r2 i1 s s s s s b"),
    "proximal_gradient_descent": (proximal_gradient_descent, "w2 r2 i1 s s s"),
    "proximal_adagrad": (proximal_adagrad, "w2 w2 r2 i1 s s s s"),
    "adagrad_da": (adagrad_da, "w2 w2 w2 r2 i1 s s s"),
}


def loop(name: str, element: Any, index: Any) -> Callable[..., int]:
    """The loop of an optimizer for an element and an index type; see compile_loop."""
    function, codes = _LOOPS[name]
    stand_in = plain_updates.sparse(name)
    return compile_loop(function, codes, element, index, result="n", stand_in=stand_in)
