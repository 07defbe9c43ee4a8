"""Fused batch normalisation and local response normalisation, with their gradients. See cpu/nn_norm.py.

Sums over pixels are reductions (_reduce.py), what is done to each pixel is an elementwise loop; between them a launch
over the channels. Channels may be last or second; nothing is transposed. Reserve spaces 1 and 2 hold what the CPU's do,
the batch's mean and uncorrected variance. Variances are taken in a second pass over x, about the mean. Of half and
bfloat16 images, vectors of channels are float32, and y is rounded once.
An LRN's norm is that of its window only; on the CPU what is not finite outside of it makes it nan.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import text_attr
from tenfold_kernels.cpu.nn_norm import (
    batch_norm_activation,
    check_backprop,
    check_batch,
    check_estimates,
    check_lrn,
    check_lrn_grad,
    check_per_channel,
    lrn_radius,
)
from tenfold_kernels.cuda import _loops
from tenfold_kernels.cuda._launch import Kernel, launch_over, pointer, type_name
from tenfold_kernels.cuda._reduce import reduce
from tenfold_kernels.cuda._types import ANY_FLOATS, FLOATS
from tenfold_kernels.cuda.loop_text import Loop
from tenfold_kernels.cuda.narrow_text import wide
from tenfold_kernels.fusion.runs import FusedOp, Source
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray

no_kernel("NegTrain", "Skipgram", device="GPU", why="TensorFlow had none either")
no_kernel("BatchNormWithGlobalNormalizationGrad", device="GPU", why="deprecated since GraphDef version 9")
no_kernel("BatchNormWithGlobalNormalization", device="GPU", why="deprecated since GraphDef version 9")


@functools.lru_cache(32)
def _kernel(name: str, sizes: int, numbers: int, *arrays: np.dtype[Any]) -> Kernel:
    """A body of _code/normalize.py: so many int64, numbers, and arrays of those types, of which the first says what the
    images are.
    """
    from tenfold_kernels.cuda._code import normalize

    body, dtype = getattr(normalize, name), arrays[0]
    function = body(dtype) if name.startswith("response") else body
    return Kernel(function, (*("int64",) * sizes, *(type_name(wide(dtype)),) * numbers, *map(pointer, arrays)))


def _launch(name: str, sizes: tuple[int, ...], numbers: tuple[Any, ...], *arrays: DeviceArray) -> None:
    """A thread for each of sizes[0]."""
    run = _kernel(name, len(sizes), len(numbers), *[each.dtype for each in arrays])
    launch_over(run, sizes[0], (*sizes[1:], *numbers), arrays)


class _BatchNorm:
    """The attrs that the forward and backward batch normalisations share."""

    def __init__(self, node: KernelNode) -> None:
        self.is_first = text_attr(node, "data_format", "NHWC").startswith("NC")
        self.epsilon = float(node.attrs["epsilon"])
        self.training = bool(node.attrs["is_training"])

    def pixels(self, x: DeviceArray) -> tuple[int, ...]:
        """The axes of x besides that of the channels."""
        return (0, *range(2, x.ndim)) if self.is_first else tuple(range(x.ndim - 1))

    def channels(self, x: DeviceArray) -> int:
        return x.shape[1 if self.is_first else -1]

    def along(self, vector: DeviceArray, x: DeviceArray) -> DeviceArray:
        """A vector of the channels as what is broadcast to x."""
        return vector.reshape((*vector.shape, *(1,) * (x.ndim - 2))) if self.is_first else vector


def _steps(dtype: np.dtype[Any], *ops: tuple[str, int | str, int | str]) -> Any:
    """A loop of (op, source, source): an input by its number, "0" … for the value of a step. The last is of `dtype`."""
    steps = []
    for op, *sources in ops:
        given: list[Source] = [("op", int(each)) if isinstance(each, str) else ("input", each) for each in sources]
        steps.append(FusedOp(op, (), tuple(given[: 1 if op == "Relu" else 2]), wide(dtype)))
    if wide(dtype) != dtype:
        steps.append(FusedOp("Cast", (), (("op", len(steps) - 1),), dtype))
    return functools.partial(Loop, steps=tuple(steps), outputs=(len(steps) - 1,))


@kernel("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", device="GPU", T=ANY_FLOATS, U=FLOATS)
def build_batch_norm(node: KernelNode) -> Compute:
    """(x, scale, offset, mean, variance, side input…) → (y, mean, variance, reserve spaces)."""
    norm, dtype = _BatchNorm(node), np.dtype(node.input_types[0].base_dtype.as_numpy_dtype)
    take = float(node.attrs["exponential_avg_factor"])
    ops: list[tuple[str, int | str, int | str]] = [("Sub", 0, 1), ("Mul", "0", 2), ("Add", "1", 3)]
    if len(node.input_types) > 5:
        ops.append(("Add", "2", 4))
    if batch_norm_activation(node) == "Relu":
        ops.append(("Relu", str(len(ops) - 1), 0))
    loop_of, third, number = _steps(dtype, *ops), len(node.output_types) == 6, wide(dtype)

    def moments(x: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        axes = norm.pixels(x)
        mean = reduce("Mean", x, axes, as_wide=True)
        return mean, reduce("Variance", x, axes, more=[mean], as_wide=True)

    def estimates(x: DeviceArray, batch: tuple[Any, ...], old: tuple[Any, ...]) -> tuple[DeviceArray, ...]:
        """The batch's mean and corrected variance, or moving averages of them."""
        channels = norm.channels(x)
        count = x.size // channels if channels else 0
        new = x.runtime.empty((channels,), number), x.runtime.empty((channels,), number)
        _launch("estimates", (channels,), (1 - take, take, count / max(count - 1, 1)), *batch, *old, *new)
        return new

    def compute(
        x: DeviceArray,
        scale: DeviceArray,
        offset: DeviceArray,
        mean: DeviceArray,
        variance: DeviceArray,
        *side: DeviceArray,
    ) -> tuple[DeviceArray, ...]:
        check_batch(x)
        runtime, channels = x.runtime, norm.channels(x)
        check_per_channel("scale", scale, channels)
        check_per_channel("offset", offset, channels)
        check_estimates(mean, variance)
        if not norm.training or take != 1.0:
            check_per_channel("mean", mean, channels)
            check_per_channel("variance", variance, channels)
        if norm.training:
            batch = moments(x)
            new = estimates(x, batch, (mean, variance))
        else:
            batch = runtime.empty(mean.shape, number), runtime.empty(variance.shape, number)
            runtime.copy(mean, batch[0])
            runtime.copy(variance, batch[1])
            new = batch
        factor = runtime.empty((channels,), number)
        _launch("forward", (channels,), (norm.epsilon,), scale, batch[1], factor)
        vectors = [norm.along(each, x) for each in (batch[0], factor, offset)]
        y = _loops.run_loop(loop_of, [x, *vectors, *side[:1]])[0]
        return (y, *new, *batch, _zero(x)) if third else (y, *new, *batch)

    return compute


def _zero(x: DeviceArray) -> DeviceArray:
    """A reserve space that holds nothing, of what the images are computed with."""
    out = x.runtime.empty((), wide(x.dtype))
    x.runtime.zero(out)
    return out


@kernel("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3", device="GPU", T=ANY_FLOATS, U=FLOATS)
def build_batch_norm_grad(node: KernelNode) -> Compute:
    """(y_backprop, x, scale, reserve spaces…) → (x_backprop, scale_backprop, offset_backprop, twice 0)."""
    norm, dtype = _BatchNorm(node), np.dtype(node.input_types[1].base_dtype.as_numpy_dtype)
    # factor · (gradient − average − (x − mean) · slope)
    in_training = _steps(dtype, ("Sub", 0, 3), ("Sub", 1, 2), ("Mul", "1", 4), ("Sub", "0", "2"), ("Mul", "3", 5))
    in_inference = _steps(dtype, ("Mul", 0, 1))

    def compute(
        gradient: DeviceArray, x: DeviceArray, scale: DeviceArray, mean: DeviceArray, variance: DeviceArray, *rest: Any
    ) -> tuple[DeviceArray, ...]:
        check_batch(x)
        check_batch(gradient, "y_backprop")
        check_backprop(x, gradient)
        runtime, channels = x.runtime, norm.channels(x)
        check_per_channel("scale", scale, channels)
        check_per_channel("reserve_space_1", mean, channels)
        check_per_channel("reserve_space_2", variance, channels)
        axes = norm.pixels(x)
        total = reduce("Sum", gradient, axes, as_wide=True)
        product = reduce("CenteredProduct", gradient, axes, more=[x, mean], as_wide=True)
        made = [runtime.empty((channels,), wide(dtype)) for _ in range(4)]
        count = max(x.size // channels, 1) if channels else 1
        _launch("backward", (channels,), (norm.epsilon, count), scale, variance, total, product, *made)
        factor, average, slope, scale_backprop = made
        if norm.training:
            vectors = [norm.along(each, x) for each in (mean, average, slope, factor)]
            back = _loops.run_loop(in_training, [gradient, x, *vectors])[0]
        else:
            back = _loops.run_loop(in_inference, [gradient, norm.along(factor, x)])[0]
        return back, scale_backprop, total, *(x.runtime.empty((0,), wide(x.dtype)) for _ in range(2))

    return compute


class _Lrn:
    """The attrs of one LRN or LRNGrad node."""

    def __init__(self, node: KernelNode) -> None:
        self.radius = lrn_radius(node)
        self.alpha, self.beta = float(node.attrs["alpha"]), float(node.attrs["beta"])
        #: bias, alpha, the exponent: what the bodies take.
        self.numbers = float(node.attrs["bias"]), self.alpha, -self.beta

    def sizes(self, x: DeviceArray) -> tuple[int, int, int]:
        """(elements, channels, the radius as far as there are channels)"""
        return x.size, x.shape[-1], max(0, min(self.radius, x.shape[-1] - 1))


@kernel("LRN", device="GPU", T=ANY_FLOATS)
def build_lrn(node: KernelNode) -> Compute:
    """x / (bias + alpha · Σ x² of the channels within depth_radius)^beta."""
    lrn = _Lrn(node)

    def compute(x: DeviceArray) -> DeviceArray:
        check_lrn(x)
        out = x.runtime.empty(x.shape, x.dtype)
        _launch("response", lrn.sizes(x), lrn.numbers, x, out)
        return out

    return compute


@kernel("LRNGrad", device="GPU", T=ANY_FLOATS)
def build_lrn_grad(node: KernelNode) -> Compute:
    """(input_grads, input_image, output_image) → the gradient of the input. Two launches."""
    lrn = _Lrn(node)
    factor = -2.0 * lrn.alpha * lrn.beta

    def compute(gradient: DeviceArray, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        check_lrn_grad(gradient, x, y)
        check_lrn(gradient, "input_grads")
        scaled, shares, out = (x.runtime.empty(x.shape, each) for each in (wide(x.dtype), wide(x.dtype), x.dtype))
        _launch("response_shares", lrn.sizes(x), lrn.numbers, gradient, x, y, scaled, shares)
        _launch("response_back", lrn.sizes(x), (factor,), x, scaled, shares, out)
        return out

    return compute
