"""Bias and activations over flat or two-dimensional arrays. N elements, or R rows of C channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels import scalar
from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.cpu._compiled.intrinsics import sigmoid_single, tanh_single

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array

_relu_body = inline(scalar.relu)
_relu_grad_body = inline(scalar.relu_grad)
_relu6_body = inline(scalar.relu6)
_relu6_grad_body = inline(scalar.relu6_grad)
_sigmoid_grad_body = inline(scalar.sigmoid_grad)


def _relu(x_N, out_N, zero):  # type: ignore[no-untyped-def]
    for i in range(x_N.size):
        out_N[i] = _relu_body(x_N[i], zero)


def _relu_grad(gradients_N, features_N, out_N, zero):  # type: ignore[no-untyped-def]
    for i in range(features_N.size):
        out_N[i] = _relu_grad_body(gradients_N[i], features_N[i], zero)


def _relu6(x_N, out_N, zero, six):  # type: ignore[no-untyped-def]
    for i in range(x_N.size):
        out_N[i] = _relu6_body(x_N[i], zero, six)


def _relu6_grad(gradients_N, features_N, out_N, zero, six):  # type: ignore[no-untyped-def]
    for i in range(features_N.size):
        out_N[i] = _relu6_grad_body(gradients_N[i], features_N[i], zero, six)


def _sigmoid_single(x_N, out_N):  # type: ignore[no-untyped-def]
    for i in range(x_N.size):
        out_N[i] = sigmoid_single(x_N[i])


def _tanh_single(x_N, out_N):  # type: ignore[no-untyped-def]
    for i in range(x_N.size):
        out_N[i] = tanh_single(x_N[i])


def _sigmoid_grad(y_N, dy_N, out_N, one):  # type: ignore[no-untyped-def]
    for i in range(y_N.size):
        out_N[i] = _sigmoid_grad_body(y_N[i], dy_N[i], one)


def _bias_add(value_RC, bias_C, out_RC):  # type: ignore[no-untyped-def]
    for r in range(value_RC.shape[0]):
        for c in range(value_RC.shape[1]):
            out_RC[r, c] = value_RC[r, c] + bias_C[c]


def _bias_add_grad(gradient_RC, out_C):  # type: ignore[no-untyped-def]
    out_C[:] = 0
    for r in range(gradient_RC.shape[0]):
        for c in range(gradient_RC.shape[1]):
            out_C[c] += gradient_RC[r, c]


def _relu_in_numpy(features_N: Array, out_N: Array, zero: float) -> None:
    np.copyto(out_N, features_N)
    np.copyto(out_N, zero, where=features_N < zero)


def _relu_grad_in_numpy(gradients_N: Array, features_N: Array, out_N: Array, zero: float) -> None:
    np.copyto(out_N, zero)
    np.copyto(out_N, gradients_N, where=features_N > zero)


def _relu6_in_numpy(features_N: Array, out_N: Array, zero: float, six: float) -> None:
    np.maximum(features_N, zero, out=out_N)
    np.minimum(out_N, six, out=out_N)


def _relu6_grad_in_numpy(gradients_N: Array, features_N: Array, out_N: Array, zero: float, six: float) -> None:
    np.multiply(gradients_N, (features_N > zero) & (features_N < six), out=out_N)


def sigmoid_in_numpy(x: Array, out: Array) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.reciprocal(out, out=out)


def _tanh_in_numpy(x_N: Array, out_N: Array) -> None:
    np.tanh(x_N, out=out_N)


def _sigmoid_grad_in_numpy(y_N: Array, dy_N: Array, out_N: Array, one: float) -> None:
    np.multiply(dy_N * y_N, one - y_N, out=out_N)


def _bias_add_in_numpy(value_RC: Array, bias_C: Array, out_RC: Array) -> None:
    np.add(value_RC, bias_C, out=out_RC)


def _bias_add_grad_in_numpy(gradient_RC: Array, out_C: Array) -> None:
    np.sum(gradient_RC, axis=0, out=out_C)


def relu(element: Any) -> Callable[..., None]:
    """(x_N, out_N, zero)"""
    return compile_loop(_relu, "r1 w1 s", element, stand_in=_relu_in_numpy)


def relu_grad(element: Any) -> Callable[..., None]:
    """(gradients_N, features_N, out_N, zero)"""
    return compile_loop(_relu_grad, "r1 r1 w1 s", element, stand_in=_relu_grad_in_numpy)


def relu6(element: Any) -> Callable[..., None]:
    """(x_N, out_N, zero, six)"""
    return compile_loop(_relu6, "r1 w1 s s", element, stand_in=_relu6_in_numpy)


def relu6_grad(element: Any) -> Callable[..., None]:
    """(gradients_N, features_N, out_N, zero, six)"""
    return compile_loop(_relu6_grad, "r1 r1 w1 s s", element, stand_in=_relu6_grad_in_numpy)


def sigmoid_of_singles() -> Callable[..., None]:
    """(x_N float32, out_N)"""
    return compile_loop(_sigmoid_single, "r1 w1", np.float32, stand_in=sigmoid_in_numpy)


def tanh_of_singles() -> Callable[..., None]:
    """(x_N float32, out_N)"""
    return compile_loop(_tanh_single, "r1 w1", np.float32, stand_in=_tanh_in_numpy)


def sigmoid_grad(element: Any) -> Callable[..., None]:
    """(y_N, dy_N, out_N, one)"""
    return compile_loop(_sigmoid_grad, "r1 r1 w1 s", element, stand_in=_sigmoid_grad_in_numpy)


def bias_add(element: Any) -> Callable[..., None]:
    """(value_RC, bias_C, out_RC)"""
    return compile_loop(_bias_add, "r2 r1 w2", element, stand_in=_bias_add_in_numpy)


def bias_add_grad(element: Any) -> Callable[..., None]:
    """(gradient_RC, out_C)"""
    return compile_loop(_bias_add_grad, "r2 w1", element, stand_in=_bias_add_grad_in_numpy)
