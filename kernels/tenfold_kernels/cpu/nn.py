"""Bias, activations with their gradients, L2Loss. Losses are in nn_loss.py, TopK in nn_top_k.py.

float32 and float64 run compiled (_compiled/activations.py) where that pays; other types have NumPy bodies. Outputs are
fresh and C-contiguous where compiled. Follows bias_op.cc, relu_op_functor.h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold_kernels.arrays import (
    Array,
    Shaped,
    as_array,
    contiguous,
    input_type,
    invalid,
    output_type,
    shape_text,
)
from tenfold_kernels.cpu._elementwise import run
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import COMPILED, FLOATING, NUMERIC, REAL

_OTHER_REAL = REAL - COMPILED


def is_channels_first(node: KernelNode) -> bool:
    """Whether channels are the second dimension, not the last."""
    return node.attrs.get("data_format", b"NHWC") in (b"NCHW", "NCHW")


def check_bias(value: Shaped, bias: Shaped, channels: int) -> None:
    """Raises InvalidArgumentError unless there is a bias for each of the channels, the dimension `channels`."""
    if value.ndim < 2:
        raise invalid(f"Input tensor must be at least 2D: {shape_text(value.shape)}")
    if bias.ndim != 1:
        raise invalid(f"Biases must be 1D: {shape_text(bias.shape)}")
    if value.shape[channels] != bias.shape[0]:
        which = "last" if channels == -1 else "channel"
        raise invalid(
            f"Must provide as many biases as the {which} dimension of the input tensor: "
            f"{shape_text(bias.shape)} vs. {shape_text(value.shape)}"
        )


def check_bias_gradient(gradient: Shaped) -> None:
    """Raises InvalidArgumentError for what has no channels."""
    if gradient.ndim < 2:
        raise invalid(f"Input tensor must be at least 2D: {shape_text(gradient.shape)}")


@kernel("BiasAdd", "BiasAddV1", T=NUMERIC)
def build_bias_add(node: KernelNode) -> Compute:
    """Adds a bias a channel: the last dimension, or the second with NCHW."""
    if is_channels_first(node):

        def channels_first(value: Array, bias: Array) -> Array:
            check_bias(value, bias, 1)
            return as_array(np.add(value, bias.reshape(-1, *(1,) * (value.ndim - 2))))

        return channels_first
    if node.input_types[0] not in COMPILED:

        def plain(value: Array, bias: Array) -> Array:
            check_bias(value, bias, -1)
            return as_array(np.add(value, bias))

        return plain

    from tenfold_kernels.cpu._compiled import activations

    add = activations.bias_add(input_type(node))

    def compute(value: Array, bias: Array) -> Array:
        check_bias(value, bias, -1)
        value = contiguous(value)
        out = np.empty_like(value)
        if out.size:
            rows = (-1, bias.shape[0])
            add(value.reshape(rows), contiguous(bias), out.reshape(rows))
        return out

    return compute


@kernel("BiasAddGrad", T=NUMERIC)
def build_bias_add_grad(node: KernelNode) -> Compute:
    """The sum over everything but the channels."""
    dtype = input_type(node)

    if is_channels_first(node) or node.input_types[0] not in COMPILED:
        wide = np.float32 if dtype == np.float16 else dtype
        first = is_channels_first(node)

        def plain(gradient: Array) -> Array:
            check_bias_gradient(gradient)
            axes = (0, *range(2, gradient.ndim)) if first else tuple(range(gradient.ndim - 1))
            return as_array(np.add.reduce(gradient, axis=axes, dtype=wide)).astype(dtype, copy=False)

        return plain

    from tenfold_kernels.cpu._compiled import activations

    total = activations.bias_add_grad(dtype)

    def compute(gradient: Array) -> Array:
        check_bias_gradient(gradient)
        if gradient.size == 0:
            return np.zeros(gradient.shape[-1], dtype=dtype)
        out = np.empty(gradient.shape[-1], dtype=dtype)
        total(contiguous(gradient).reshape(-1, out.size), out)
        return out

    return compute


@kernel("Relu", "Relu6", T=COMPILED)
def build_relu(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu._compiled import activations

    dtype = input_type(node)
    loop, bounds = (activations.relu, (0,)) if node.op == "Relu" else (activations.relu6, (0, 6))
    relu, limits = loop(dtype), [dtype(bound) for bound in bounds]

    def compute(x: Array) -> Array:
        x = contiguous(x)
        out = np.empty_like(x)
        run(relu, (x.reshape(-1), out.reshape(-1)), *limits)
        return out

    return compute


@kernel("Relu", T=_OTHER_REAL)
def build_relu_other(node: KernelNode) -> Compute:
    zero = input_type(node)(0)
    return lambda x: as_array(np.maximum(x, zero))


def check_same_shape(node: KernelNode, a: Shaped, b: Shaped) -> None:
    """Raises InvalidArgumentError for the two inputs of a gradient that differ."""
    if a.shape != b.shape:
        raise invalid(
            f"Inputs to operation {node.name} of type {node.op} must have the same size and shape.  "
            f"Input 0: {shape_text(a.shape)} != input 1: {shape_text(b.shape)}"
        )


@kernel("ReluGrad", "Relu6Grad", T=COMPILED)
def build_relu_grad(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu._compiled import activations

    dtype = input_type(node)
    loop, bounds = (activations.relu_grad, (0,)) if node.op == "ReluGrad" else (activations.relu6_grad, (0, 6))
    grad, limits = loop(dtype), [dtype(bound) for bound in bounds]

    def compute(gradients: Array, features: Array) -> Array:
        check_same_shape(node, gradients, features)
        gradients, features = contiguous(gradients), contiguous(features)
        out = np.empty_like(features)
        run(grad, (gradients.reshape(-1), features.reshape(-1), out.reshape(-1)), *limits)
        return out

    return compute


Body = Callable[[Array, Array, Any], Any]


def _gradient(node: KernelNode, body: Body) -> Compute:
    def compute(gradients: Array, other: Array) -> Array:
        check_same_shape(node, gradients, other)
        return as_array(body(gradients, other, node.attrs)).astype(gradients.dtype, copy=False)

    return compute


def _activation(node: KernelNode, body: Callable[[Array, Any], Any]) -> Compute:
    return lambda x: as_array(body(x, node.attrs)).astype(x.dtype, copy=False)


def _softplus(x: Array, attrs: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE_ALPHA = _SELU_SCALE * _SELU_ALPHA

_ACTIVATIONS: dict[str, Callable[[Array, Any], Any]] = {
    "Relu6": lambda x, attrs: np.minimum(np.maximum(x, 0), 6),
    "LeakyRelu": lambda x, attrs: np.where(x > 0, x, x * x.dtype.type(attrs.get("alpha", 0.2))),
    "Elu": lambda x, attrs: np.where(x < 0, np.expm1(x), x),
    "Selu": lambda x, attrs: np.where(x < 0, _SELU_SCALE_ALPHA * np.expm1(x), _SELU_SCALE * x),
    "Softplus": _softplus,
    "Softsign": lambda x, attrs: x / (1 + np.abs(x)),
}

# The second operand is the features, or for Elu and Selu the activations.
_GRADIENTS: dict[str, Body] = {
    "Relu6Grad": lambda g, x, attrs: g * ((x > 0) & (x < 6)).astype(g.dtype),
    "LeakyReluGrad": lambda g, x, attrs: np.where(x > 0, g, g * x.dtype.type(attrs.get("alpha", 0.2))),
    "EluGrad": lambda g, y, attrs: np.where(y < 0, g * (y + 1), g),
    "SeluGrad": lambda g, y, attrs: np.where(y < 0, g * (y + _SELU_SCALE_ALPHA), g * _SELU_SCALE),
    "SoftplusGrad": lambda g, x, attrs: g / (np.exp(-x) + 1),
    "SoftsignGrad": lambda g, x, attrs: g / np.square(1 + np.abs(x)),
}


@kernel("ReluGrad", T=_OTHER_REAL)
def build_relu_grad_other(node: KernelNode) -> Compute:
    return _gradient(node, lambda g, x, attrs: g * (x > 0).astype(g.dtype))


@kernel("Relu6", T=_OTHER_REAL)
@kernel(*(name for name in _ACTIVATIONS if name != "Relu6"), T=REAL)
def build_activation(node: KernelNode) -> Compute:
    return _activation(node, _ACTIVATIONS[node.op])


@kernel("Relu6Grad", T=_OTHER_REAL)
@kernel(*(name for name in _GRADIENTS if name != "Relu6Grad"), T=REAL)
def build_activation_grad(node: KernelNode) -> Compute:
    return _gradient(node, _GRADIENTS[node.op])


@kernel("L2Loss", T=FLOATING)
def build_l2_loss(node: KernelNode) -> Compute:
    """Σ x²/2, a scalar; half accumulates in float."""
    dtype = output_type(node)
    wide = np.float32 if dtype == np.float16 else dtype

    def compute(x: Array) -> Array:
        flat = x.reshape(-1).astype(wide, copy=False)
        return np.asarray(np.dot(flat, flat) / wide(2), dtype=dtype)

    return compute
