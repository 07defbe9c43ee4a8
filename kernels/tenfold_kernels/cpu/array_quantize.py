"""Fake quantisation: values rounded to what a few bits can hold, and the gradients that pass straight through.

All in float; outputs are fresh. Follows fake_quant_ops_functor.h and quantize_and_dequantize_op.h. Ops on quantised
types have no kernels: those types have no NumPy form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_kernels.arrays import Array, as_array, invalid, one_number, output_type, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING


def _nudged(low: Array, high: Array, bits: int, narrow: bool) -> tuple[Array, Array, Array]:
    """The range moved so that zero is one of its steps, and the step, all float."""
    least, most = np.float32(1 if narrow else 0), np.float32((1 << bits) - 1)
    low, high = low.astype(np.float32), high.astype(np.float32)
    scale = (high - low) / (most - least)
    zero = least - low / scale
    nudged = np.floor(np.minimum(np.maximum(zero, least), most) + np.float32(0.5))
    return (least - nudged) * scale, (most - nudged) * scale, scale


def _fake_quant(x: Array, low: Array, high: Array, bits: int, narrow: bool) -> Array:
    bottom, top, scale = _nudged(low, high, bits, narrow)
    # in this order: a range that is the wrong way round gives its lower end
    inside = np.maximum(np.minimum(x, top), bottom) - bottom
    quantised = np.floor(inside / scale + np.float32(0.5)) * scale + bottom
    # An empty range around zero holds nothing but zero.
    return np.where((low == 0) & (high == 0), np.float32(0), quantised).astype(np.float32)


def _settings(node: KernelNode) -> tuple[int, bool]:
    bits = int(node.attrs.get("num_bits", 8))
    if not 2 <= bits <= 16:
        raise invalid(f"num_bits must be between 2 and 16, inclusive, got {bits}")
    return bits, bool(node.attrs.get("narrow_range"))


def _fixed_range(node: KernelNode) -> tuple[Array, Array]:
    low, high = np.float32(node.attrs.get("min", -6.0)), np.float32(node.attrs.get("max", 6.0))
    if low >= high:
        raise invalid(f"min has to be smaller than max, was: {low} >= {high}")
    return as_array(low), as_array(high)


@kernel("FakeQuantWithMinMaxArgs")
def build_fake_quant_args(node: KernelNode) -> Compute:
    (bits, narrow), (low, high) = _settings(node), _fixed_range(node)
    return lambda x: as_array(_fake_quant(x, low, high, bits, narrow))


@kernel("FakeQuantWithMinMaxArgsGradient")
def build_fake_quant_args_gradient(node: KernelNode) -> Compute:
    """The gradient where the input lies within the range, else zero."""
    (bits, narrow), (low, high) = _settings(node), _fixed_range(node)
    bottom, top, _ = _nudged(low, high, bits, narrow)

    def compute(gradient: Array, x: Array) -> Array:
        if gradient.shape != x.shape:
            raise invalid("gradient and input must be the same size")
        return as_array(np.where((x >= bottom) & (x <= top), gradient, np.float32(0)))

    return compute


@kernel("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def build_fake_quant_vars(node: KernelNode) -> Compute:
    """The range is an input: a scalar each, or a value for every element of the last dimension."""
    bits, narrow = _settings(node)

    def compute(x: Array, low: Array, high: Array) -> Array:
        _check_range(node, x, low, high)
        return as_array(_fake_quant(x, low, high, bits, narrow))

    return compute


def _check_range(node: KernelNode, x: Array, low: Array, high: Array) -> None:
    if node.op.startswith("FakeQuantWithMinMaxVarsPerChannel"):
        wanted: tuple[int, ...] = x.shape[-1:]
        if low.shape != wanted or high.shape != wanted:
            raise invalid(
                f"min and max must have shape {shape_text(wanted)}, got {shape_text(low.shape)} and "
                f"{shape_text(high.shape)}"
            )
    elif low.size != 1 or high.size != 1:
        raise invalid(f"`min` and `max` must be rank 0, got {shape_text(low.shape)} and {shape_text(high.shape)}")


@kernel("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def build_fake_quant_vars_gradient(node: KernelNode) -> Compute:
    """(gradients, inputs, min, max) → the gradient within the range, and its sums below and above."""
    bits, narrow = _settings(node)
    per_channel = "PerChannel" in node.op

    def compute(gradient: Array, x: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
        _check_range(node, x, low, high)
        if gradient.shape != x.shape:
            raise invalid("gradient and input must be the same size")
        bottom, top, _ = _nudged(low, high, bits, narrow)
        nothing = (low == 0) & (high == 0)
        below, above = (x < bottom) & ~nothing, (x > top) & ~nothing
        axes = tuple(range(x.ndim - 1)) if per_channel else None
        zero = np.float32(0)
        return (
            as_array(np.where(((x >= bottom) & (x <= top)) | nothing, gradient, zero)),
            as_array(np.where(below, gradient, zero).sum(axis=axes, dtype=np.float32)).reshape(low.shape),
            as_array(np.where(above, gradient, zero).sum(axis=axes, dtype=np.float32)).reshape(low.shape),
        )

    return compute


@kernel("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4", T=FLOATING)
def build_quantize_and_dequantize(node: KernelNode) -> Compute:
    """Rounds to a step of a scale that is symmetric around zero (signed) or starts there."""
    signed, given = bool(node.attrs.get("signed_input", True)), bool(node.attrs.get("range_given"))
    narrow, axis = bool(node.attrs.get("narrow_range")), int(node.attrs.get("axis", -1))
    half_up = text_attr(node, "round_mode", "HALF_TO_EVEN") == "HALF_UP"
    fixed, dtype = node.attrs.get("num_bits"), output_type(node)

    def compute(x: Array, low: Array, high: Array, *bits: Array) -> Array:
        count = one_number(bits[0], "num_bits") if bits else int(fixed)  # type: ignore[arg-type]
        if not 0 < count < 63:
            raise invalid(f"num_bits is out of range: {count} with signed_input_ {signed}")
        if axis != -1 and not 0 <= axis < x.ndim:
            raise invalid(f"Axis requested is larger than input dimensions. Axis: {axis} Input Dimensions: {x.ndim}")
        # in the type of the numbers, half in float: so they are rounded where TensorFlow rounds them
        type_ = np.dtype(np.float32 if x.dtype == np.float16 else x.dtype).type
        wide = x.astype(type_, copy=False)
        shape = [1] * x.ndim
        if given:
            ends = () if axis == -1 else (x.shape[axis],)
            if low.shape != ends or high.shape != ends:
                shapes = f"{shape_text(low.shape)} and {shape_text(high.shape)}"
                raise invalid(f"input_min and input_max must have shape {shape_text(ends)}, got {shapes}")
            bottom, top = low.astype(type_), high.astype(type_)
        elif not x.size:
            return x.copy()
        else:
            others = tuple(i for i in range(x.ndim) if i != axis) if axis != -1 else None
            # a nan says nothing of the range
            bottom, top = (as_array(end.reduce(wide, axis=others)) for end in (np.fmin, np.fmax))
        if given and not (bottom <= top).all():
            raise invalid(f"Invalid range: input_min {bottom} > input_max {top}")
        if axis != -1:
            shape[axis] = -1
            bottom, top = bottom.reshape(shape), top.reshape(shape)
        least = -(1 << (count - 1)) + (1 if narrow else 0) if signed else 0
        most = (1 << (count - 1 if signed else count)) - 1
        scale, step, bottom, top = _scale(bottom, top, type_(least), type_(most))
        # only a range that was given holds what lies outside of it
        inside = np.maximum(np.minimum(wide, top), bottom) if given else wide
        steps = inside * scale
        rounded = np.floor(steps + type_(0.5)) if half_up else np.rint(steps)
        return as_array(rounded * step).astype(dtype).reshape(x.shape)

    return compute


def _scale(bottom: Array, top: Array, least: Any, most: Any) -> tuple[Any, Any, Any, Any]:
    """(steps of 1, a step, the range in whole steps): the end of the range that needs the coarser step decides."""
    largest = np.finfo(bottom.dtype).max
    by_low = np.where(bottom * least > 0, least / bottom, largest)
    by_high = np.where(top * most > 0, most / top, largest)
    is_low = by_low < by_high
    step = np.where(is_low, bottom / (least or 1), top / (most or 1)).astype(bottom.dtype)
    ends = np.where(is_low, bottom, least * step), np.where(is_low, most * step, top)
    return np.where(is_low, by_low, by_high).astype(bottom.dtype), step, *ends


@kernel("QuantizeAndDequantize", T=FLOATING)
def build_quantize_and_dequantize_by_attributes(node: KernelNode) -> Compute:
    """As V2, with the range in the attributes."""
    inner, dtype = build_quantize_and_dequantize(node), output_type(node)
    low, high = (np.array(float(node.attrs.get(name, 0.0)), dtype) for name in ("input_min", "input_max"))
    return lambda x: inner(x, low, high)


@kernel("QuantizeAndDequantizeV4Grad", T=FLOATING)
def build_quantize_and_dequantize_grad(node: KernelNode) -> Compute:
    """The gradient where the input lay in the range, zero elsewhere; none for the range."""
    axis = int(node.attrs.get("axis", -1))

    def compute(g: Array, x: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
        if axis < -1 or axis >= x.ndim:
            text = f"Axis should be -1 or 0 or a positive value less than {x.ndim} but given axis value was {axis}"
            raise invalid(text)
        if g.shape != x.shape:
            raise invalid("gradient and input must be the same size")
        wanted = () if axis == -1 else (x.shape[axis],)
        for name, value in (("min", low), ("max", high)):
            if value.shape != wanted:
                raise invalid(f"input_{name} must have shape {shape_text(wanted)}, not {shape_text(value.shape)}")
        place = [1] * x.ndim
        if axis != -1:
            place[axis] = -1
        inside = (x >= low.reshape(place)) & (x <= high.reshape(place))
        return np.where(inside, g, g.dtype.type(0)), np.zeros_like(low), np.zeros_like(high)

    return compute
