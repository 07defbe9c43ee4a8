"""What graph optimizers put in place of other ops: a product or convolution with what surrounds it, chains, list glue.

A master of TensorFlow's sends these to a worker; our client never writes them. Each runs the kernels of the ops that it
stands for. Follows conv_ops_fused_impl.h, conv_ops_fused_image_transform.cc, matmul_op_fused.cc,
unary_ops_composition.cc and remapper.cc.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold_core import dtypes, opdefs
from tenfold_kernels import registry
from tenfold_kernels.arrays import Array, invalid, output_type, text_attr
from tenfold_kernels.cpu import special
from tenfold_kernels.cpu.nn_conv import build_forward
from tenfold_kernels.cpu.nn_norm import build_batch_norm
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING

#: The result so far, and the arguments of this step → the next result.
Step = Callable[[Array, Sequence[Array]], Array]

#: Step → how many of the node's args it takes.
_TAKES = {"BiasAdd": 1, "Add": 1, "FusedBatchNorm": 4}
#: Steps that are ops of their own.
_ACTIVATIONS = ("Relu", "Relu6", "Elu", "Tanh", "Sigmoid", "Softplus")


def _single(node: KernelNode, op: str, dtype: dtypes.DType, **attrs: Any) -> Compute:
    """The compute of `op` on `dtype`, as if it were a node of its own."""
    definition = opdefs.get(op)
    resolved = {a.name: a.default for a in definition.attrs if a.has_default} | {"T": dtype} | attrs
    types = (dtype,) * len(definition.inputs)
    part = dataclasses.replace(node, op=op, attrs=resolved, input_types=types, output_types=(dtype,))
    return registry.lookup(part, "CPU")(part)


def _gelu_approximate(x: Array) -> Array:
    t = x.dtype.type
    return np.asarray(t(0.5) * x * (1 + np.tanh(t(0.7978845608028654) * (x + t(0.044715) * x * x * x))), dtype=x.dtype)


def _gelu_exact(x: Array) -> Array:
    t = x.dtype.type
    return np.asarray(t(0.5) * x * (1 + special.erf(x * t(0.7071067811865476))), dtype=x.dtype)


def _on_result(function: Callable[[Array], Any]) -> Step:
    """A step that takes no args."""
    return lambda x, args: np.asarray(function(x))


def _batch_norm(epsilon: float, channels_first: bool) -> Step:
    """(x · …) with args scale, offset, mean, variance: inference."""

    def step(x: Array, args: Sequence[Array]) -> Array:
        scale, offset, mean, variance = args
        factor = (scale / np.sqrt(variance + epsilon)).astype(x.dtype)
        shape = (-1, *(1,) * (x.ndim - 2)) if channels_first else (-1,)
        out = (x - mean.reshape(shape)) * factor.reshape(shape) + offset.reshape(shape)
        return np.asarray(out, dtype=x.dtype)

    return step


def _step(node: KernelNode, name: str) -> Step:
    """One of fused_ops. Raises InvalidArgumentError for one that is not known."""
    dtype = node.output_types[0]
    layout = node.attrs.get("data_format", b"NHWC")
    if name == "BiasAdd":
        bias_add = _single(node, "BiasAdd", dtype, data_format=layout)
        return lambda x, args: np.asarray(bias_add(x, args[0]))
    if name == "Add":
        return lambda x, args: np.asarray(np.add(x, args[0]))
    if name == "FusedBatchNorm":
        return _batch_norm(float(node.attrs.get("epsilon", 1e-4)), layout in (b"NCHW", "NCHW"))
    if name == "GeluApproximate":
        return _on_result(_gelu_approximate)
    if name == "GeluExact":
        return _on_result(_gelu_exact)
    if name == "_FusedSwish":
        sigmoid = _single(node, "Sigmoid", dtype)
        return _on_result(lambda x: x * sigmoid(x))
    if name == "LeakyRelu":
        alpha = float(node.attrs.get("leakyrelu_alpha", 0.2))
        return _on_result(_single(node, name, dtype, alpha=alpha))
    if name in _ACTIVATIONS:
        return _on_result(_single(node, name, dtype))
    known = ", ".join((*_TAKES, *_ACTIVATIONS, "LeakyRelu", "GeluApproximate", "GeluExact", "_FusedSwish"))
    raise invalid(f"{node.op} '{node.name}': fused op '{name}' is not known; known are {known}")


def _steps(node: KernelNode) -> list[tuple[int, Step]]:
    """(args taken, step) for each of fused_ops."""
    names = [raw.decode() if isinstance(raw, bytes) else str(raw) for raw in node.attrs.get("fused_ops") or []]
    return [(_TAKES.get(name, 0), _step(node, name)) for name in names]


def _then(node: KernelNode, first: Compute) -> Compute:
    """`first` of two inputs, followed by the fused steps on the args."""
    steps = _steps(node)

    def compute(a: Array, b: Array, *args: Array) -> Array:
        out, at = first(a, b), 0
        for takes, step in steps:
            if at + takes > len(args):
                raise invalid(f"{node.op} '{node.name}' has {len(args)} args, fewer than its fused ops take")
            out = step(out, args[at : at + takes])
            at += takes
        return np.asarray(out)

    return compute


@kernel("_FusedMatMul", T=FLOATING)
def build_fused_matmul(node: KernelNode) -> Compute:
    """a · b, then the fused ops: BiasAdd and one activation."""
    flags = {name: bool(node.attrs.get(name)) for name in ("transpose_a", "transpose_b")}
    return _then(node, _single(node, "MatMul", node.output_types[0], **flags))


@kernel("_FusedConv2D", T=FLOATING)
def build_fused_conv2d(node: KernelNode) -> Compute:
    """The convolution, then the fused ops: BiasAdd or FusedBatchNorm, an addition, one activation."""
    if text_attr(node, "filter_format", "HWIO") != "HWIO":
        raise invalid(f"{node.op} '{node.name}': only filters of the layout HWIO run on a CPU")
    return _then(node, build_forward(node))


@kernel("_FusedDepthwiseConv2dNative", T=FLOATING)
def build_fused_depthwise(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu.nn_depthwise import build_depthwise

    return _then(node, build_depthwise(node))


@kernel("_FusedBatchNormEx", T=FLOATING)
def build_fused_batch_norm(node: KernelNode) -> Compute:
    """FusedBatchNormV3, then the side input is added, then the activation."""
    return build_batch_norm(node)


@kernel("FusedPadConv2D", "FusedResizeAndPadConv2D", T=FLOATING)
def build_padded_conv2d(node: KernelNode) -> Compute:
    """(images, the size that they are brought to or not, edges, filter) → the convolution of the mirrored images."""
    dtype = node.output_types[0]
    mirror = _single(node, "MirrorPad", dtype, mode=node.attrs["mode"])
    strides = list(node.attrs["strides"])
    if len(strides) != 4:
        raise invalid("Sliding window strides field must specify 4 dimensions")
    if strides[0] != 1 or strides[3] != 1:
        raise invalid("Current implementation does not yet support strides in the batch and depth dimensions.")
    convolve = _single(node, "Conv2D", dtype, strides=strides, padding=node.attrs["padding"])
    resize = _single(node, "ResizeBilinear", dtype, align_corners=bool(node.attrs.get("resize_align_corners")))

    def padded(images: Array, paddings: Array, filter_: Array) -> Array:
        if not images.size:
            raise invalid("Input tensor can't be empty")
        if paddings.shape == (4, 2) and (paddings[0].any() or paddings[3].any()):
            what = "batches" if paddings[0].any() else "channels"
            raise invalid(f"Fused mirror padding only support spatial padding, not {what}: {paddings.tolist()}")
        if images.ndim == 4 and filter_.ndim == 4 and images.shape[3] != filter_.shape[2]:
            depths = f"{images.shape[3]} vs {filter_.shape[2]}"
            raise invalid(f"input and filter must have the same depth: {depths}")
        return np.asarray(convolve(mirror(images, paddings), filter_))

    def resized(images: Array, size: Array, paddings: Array, filter_: Array) -> Array:
        if images.ndim == 4 and size.shape == (2,):
            elements = math.prod((len(images), *size.tolist(), images.shape[3]))
            if elements > np.iinfo(np.int64).max:
                raise invalid(f"Encountered overflow when multiplying shape dimensions: {elements} elements")
        return padded(np.asarray(resize(images, size)).astype(images.dtype, copy=False), paddings, filter_)

    return padded if node.op == "FusedPadConv2D" else resized


@kernel("_UnaryOpsComposition", T=FLOATING, views=True)
def build_unary_ops_composition(node: KernelNode) -> Compute:
    """One op after the other, by name."""
    names = [n.decode() if isinstance(n, bytes) else str(n) for n in node.attrs["op_names"]]
    for name in names:
        if not opdefs.has(name) or len(opdefs.get(name).inputs) != 1:
            raise invalid(f"_UnaryOpsComposition '{node.name}': '{name}' is no op of one input")
    parts = [_single(node, name, node.output_types[0]) for name in names]

    def compute(x: Array) -> Array:
        for part in parts:
            x = part(x)
        return x

    return compute


@kernel("ParallelConcat")
def build_parallel_concat(node: KernelNode) -> Compute:
    """Values of one row each, one below the other."""

    def compute(*values: Array) -> Array:
        try:
            return np.concatenate(values, axis=0)
        except ValueError as error:
            raise invalid(f"ParallelConcat '{node.name}': {error}") from None

    return compute


@kernel("_ParallelConcatStart")
def build_parallel_concat_start(node: KernelNode) -> Compute:
    """A block that updates fill row by row; zeros (or empty strings), so that no other's memory shows."""
    dtype, shape = np.dtype(output_type(node)), node.attrs["shape"]
    dims = [int(d) for d in shape.as_list()]
    return lambda: np.full(dims, b"" if dtype.hasobject else 0, dtype)


@kernel("_ParallelConcatUpdate")
def build_parallel_concat_update(node: KernelNode) -> Compute:
    """(value, update [1, …]) → value with row `loc` replaced."""
    at = int(node.attrs["loc"])

    def compute(value: Array, update: Array) -> Array:
        if value.ndim < 1 or not -len(value) <= at < len(value) or update.shape != (1, *value.shape[1:]):
            raise invalid(f"_ParallelConcatUpdate '{node.name}': row {at} of {value.shape} cannot hold {update.shape}")
        out = value.copy()
        out[at] = update[0]
        return out

    return compute


@kernel("_ArrayToList", "_ListToArray", views=True)
def build_list_glue(node: KernelNode) -> Compute:
    """The inputs as they are: only how the op definition counts them differs."""
    if len(node.output_types) == 1:
        return lambda value: value
    return lambda *values: values
