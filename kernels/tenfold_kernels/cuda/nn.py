"""Activations and their gradients by the text of elementwise loops, bias, L2Loss. See cpu/nn.py.

As in TensorFlow, activations are of floats only on a GPU. The checks are the CPU's.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.cpu.nn import check_bias, check_bias_gradient, check_same_shape, is_channels_first
from tenfold_kernels.cuda import _loops
from tenfold_kernels.cuda._reduce import reduce
from tenfold_kernels.cuda._types import ANY_FLOATS, ANY_NUMBERS, ON_HOST
from tenfold_kernels.cuda.loop_text import Loop
from tenfold_kernels.cuda.math import elementwise
from tenfold_kernels.fusion.runs import FusedOp
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, shared_kernel

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray

_ACTIVATIONS = ("Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign")

shared_kernel("BiasAdd", "BiasAddV1", "BiasAddGrad", host=(EVERYTHING,), T=ON_HOST)


@kernel(*_ACTIVATIONS, device="GPU", T=ANY_FLOATS)
def build_activation(node: KernelNode) -> Compute:
    return elementwise(node)


@kernel(*(f"{op}Grad" for op in _ACTIVATIONS), device="GPU", T=ANY_FLOATS)
def build_activation_grad(node: KernelNode) -> Compute:
    """The second input is the features, or for Elu and Selu the activations."""
    loop = elementwise(node)

    def compute(gradients: DeviceArray, other: DeviceArray) -> DeviceArray:
        check_same_shape(node, gradients, other)
        return loop(gradients, other)  # type: ignore[no-any-return]

    return compute


@kernel("BiasAdd", "BiasAddV1", device="GPU", T=ANY_NUMBERS)
def build_bias_add(node: KernelNode) -> Compute:
    """Adds a bias a channel: the last dimension, or the second with NCHW."""
    dtype = np.dtype(node.output_types[0].base_dtype.as_numpy_dtype)
    steps = (FusedOp("Add", (), (("input", 0), ("input", 1)), dtype),)
    loop_of = partial(Loop, steps=steps, outputs=(0,))
    first = is_channels_first(node)

    def compute(value: DeviceArray, bias: DeviceArray) -> DeviceArray:
        check_bias(value, bias, 1 if first else -1)
        if first:
            bias = bias.reshape((*bias.shape, *(1,) * (value.ndim - 2)))
        return _loops.run_loop(loop_of, [value, bias])[0]

    return compute


@kernel("BiasAddGrad", device="GPU", T=ANY_NUMBERS)
def build_bias_add_grad(node: KernelNode) -> Compute:
    """The sum over everything but the channels."""
    first = is_channels_first(node)

    def compute(gradient: DeviceArray) -> DeviceArray:
        check_bias_gradient(gradient)
        axes = (0, *range(2, gradient.ndim)) if first else tuple(range(gradient.ndim - 1))
        return reduce("Sum", gradient, axes)

    return compute


@kernel("L2Loss", device="GPU", T=ANY_FLOATS)
def build_l2_loss(node: KernelNode) -> Compute:
    """Σ x²/2, a scalar."""
    return lambda x: reduce("L2Loss", x, range(x.ndim))
