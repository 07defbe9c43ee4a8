"""What fits the ops of the nn family that have windows, activations and losses. See cases.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from support.kernel_net.draw import Draw


Attrs = dict[str, Any]


def _bias(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(2, 4)
    first = a.get("data_format") == b"NCHW"
    return [shape, (shape[1 if first else -1] + d.maybe(0.05),)]


def _bias_grad(d: Draw, a: Attrs) -> list[Any]:
    return [d.shape(2, 4)]


def _pair(d: Draw, a: Attrs) -> list[Any]:
    if d.maybe(0.4) and a["T"].is_floating:
        return [(8,), [-7.0, -0.5, 0.0, -0.0, 0.5, 3.0, 6.0, 7.0]]
    return [d.shape(0, 3)] * 2


def _one(d: Draw, a: Attrs) -> list[Any]:
    if d.maybe(0.4) and a["T"].is_floating:
        return [[-40.0, -7.0, -0.5, 0.0, 0.5, 3.0, 6.0, 7.0, 40.0, math.inf, -math.inf, math.nan]]
    return [d.shape(0, 3)]


def _softmax(d: Draw, a: Attrs) -> list[Any]:
    return [d.shape(1, 3)]


def _cross_entropy(d: Draw, a: Attrs) -> list[Any]:
    rows, columns = d.sizes(2)
    return d.choice(([(rows, columns)] * 2, [(rows, columns), (1, columns)], [(1, columns), (rows, columns)],
                     [(rows, columns), (columns,)]))  # fmt: skip


def _sparse_cross_entropy(d: Draw, a: Attrs) -> list[Any]:
    rows, columns = d.size(), d.randint(1, 4)
    return [(rows, columns), d.ints(rows, 0, columns - 1 + d.maybe(0.1))]


def _size_after(size: int, window: int, stride: int, padding: bytes, pads: int = 0) -> int:
    return -(-size // stride) if padding == b"SAME" else max(0, (size + pads - window) // stride + 1)


class _Window:
    """Attributes of a window over `rank` axes, a shape of inputs, and the shape of outputs."""

    def __init__(self, d: Draw, a: Attrs, rank: int, depth: int, taps: list[int] | None = None) -> None:
        self.taps = taps or d.ints(rank, 1, 3)
        strides = d.ints(rank, 1, 3)
        if rank == 3 and "dilations" not in a:  # TensorFlow's windows of pools that leave gaps begin elsewhere
            strides = [d.randint(1, tap) for tap in self.taps]
        rates = d.choice(([1] * rank, d.ints(rank, 1, 2)))
        if "dilations" in a:
            if rank == 3 or max(strides) > 1:
                rates = [1] * rank
            a["dilations"] = [1, *rates, 1]
        else:
            rates = [1] * rank
        a["strides"] = [1, *strides, 1]
        if "data_format" in a:
            a["data_format"] = b"NDHWC" if rank == 3 else b"NHWC"
        reach = [(tap - 1) * rate + 1 for tap, rate in zip(self.taps, rates, strict=True)]
        sizes = [span + d.randint(0, 4) for span in reach]
        pads = [0] * rank
        if a["padding"] == b"EXPLICIT":
            edges = [d.ints(2, 0, 1) for _ in range(rank)]
            pads = [sum(edge) for edge in edges]
            a["explicit_paddings"] = [0, 0, *(each for edge in edges for each in edge), 0, 0]
        elif "explicit_paddings" in a:
            a["explicit_paddings"] = []
        self.shape = (d.randint(1, 2), *sizes, depth)
        self.out = [
            _size_after(*each, a["padding"], pad) for *each, pad in zip(sizes, reach, strides, pads, strict=True)
        ]


def _conv(rank: int, given: str) -> Any:
    """`given`: "input", "filter" or "" for which gradient, "sizes" where its shape is an input."""

    def make(d: Draw, a: Attrs) -> list[Any]:
        groups = d.choice((1, 1, 1, 2)) if rank == 2 and not given else 1
        depth, outputs = groups * d.randint(1, 3), groups * d.randint(1, 3)
        window = _Window(d, a, rank, depth)
        kernel = (*window.taps, depth // groups, outputs)
        back = (window.shape[0], *window.out, outputs)
        return {
            "": [window.shape, kernel],
            "input": [list(window.shape), kernel, back],
            "filter": [window.shape, list(kernel), back],
            "old": [window.shape, kernel, back],
        }[given]

    return make


def _any_conv(d: Draw, a: Attrs) -> list[Any]:
    rank = d.choice((2, 3))
    a["batch_dims"], a["groups"], a["data_format"], a["explicit_paddings"] = 1, 1, b"CHANNELS_LAST", []
    a["padding"] = d.choice((b"SAME", b"VALID"))
    depth = d.randint(1, 2)
    window = _Window(d, a, rank, depth)
    a["data_format"], a["dilations"] = b"CHANNELS_LAST", d.choice(([], [1] * (rank + 2)))
    return [window.shape, (*window.taps, depth, d.randint(1, 2))]


def _depthwise(given: str) -> Any:
    def make(d: Draw, a: Attrs) -> list[Any]:
        depth, times = d.randint(1, 3), d.randint(1, 2)
        window = _Window(d, a, 2, depth)
        a["strides"][2] = a["strides"][1]
        spans = [(tap - 1) * rate + 1 for tap, rate in zip(window.taps, a["dilations"][1:3], strict=True)]
        pads = [0, 0] if a["padding"] != b"EXPLICIT" else [sum(a["explicit_paddings"][k : k + 2]) for k in (2, 4)]
        out = [
            _size_after(size, span, a["strides"][1], a["padding"], pad)
            for size, span, pad in zip(window.shape[1:3], spans, pads, strict=True)
        ]
        kernel, back = (*window.taps, depth, times), (window.shape[0], *out, depth * times)
        return {
            "": [window.shape, kernel],
            "input": [list(window.shape), kernel, back],
            "filter": [window.shape, list(kernel), back],
        }[given]

    return make


def _pool(rank: int, kind: str) -> Any:
    def make(d: Draw, a: Attrs) -> list[Any]:
        if kind not in ("", "argmax", "dynamic") and a.get("padding") == b"EXPLICIT":
            a["padding"] = b"SAME"
        if "TInput" in a:
            a["TInput"] = a["T"]
        strides: Attrs = a if "strides" in a else {"padding": a["padding"]}
        window = _Window(d, strides, rank, d.randint(1, 3))
        for name in ("data_format",):
            if name in a:
                a[name] = b"NDHWC" if rank == 3 else b"NHWC"
        ksize = [1, *window.taps, 1]
        if kind in ("", "argmax") and d.maybe(0.1):  # over the depth
            a["padding"], a["explicit_paddings" if "explicit_paddings" in a else "padding"] = (
                b"VALID",
                ([] if "explicit_paddings" in a else b"VALID"),
            )
            a["ksize"], a["strides"] = [1, 1, 1, 2], [1, 1, 1, 2]
            return [(*window.shape[:3], 4)]
        if "ksize" in a:
            a["ksize"] = ksize
        x = d.floats(window.shape) if d.maybe(0.7) else np.round(d.floats(window.shape, -1, 1))
        out = (window.shape[0], *window.out, window.shape[-1])
        if kind in ("", "argmax"):
            return [x]
        if kind == "dynamic":
            return [x, ksize, strides["strides"]]
        if kind == "average":
            return [list(window.shape), out]
        if kind == "places":
            return [x, out, np.array(d.ints(math.prod(out), 0, max(0, math.prod(window.shape[1:]) - 1))).reshape(out)]
        if kind == "places2":
            places = np.array(d.ints(math.prod(out), 0, max(0, math.prod(window.shape[1:]) - 1))).reshape(out)
            return [x, window.shape, places]
        y = _maxima(x, window, strides)
        more = [ksize, strides["strides"]] if "ksize" not in a else []
        return [x, y, window.shape if "gradgrad" in kind else out, *more]

    return make


def _maxima(x: np.ndarray, window: _Window, a: Attrs) -> np.ndarray:
    rank, strides = len(window.taps), a["strides"][1:-1]
    made = np.zeros((x.shape[0], *window.out, x.shape[-1]))
    for place in np.ndindex(*window.out):
        cut: list[Any] = [slice(None)]
        for axis in range(rank):
            size, tap, stride = x.shape[1 + axis], window.taps[axis], strides[axis]
            before = 0
            if a["padding"] == b"SAME":
                before = max(0, (window.out[axis] - 1) * stride + tap - size) // 2
            start = place[axis] * stride - before
            cut.append(slice(max(0, start), max(0, min(size, start + tap))))
        taps = x[tuple(cut)]
        greatest = np.full((x.shape[0], x.shape[-1]), -9.0)
        # of 0 and -0 the last, on every processor: which of the two NumPy's max gives depends on its vectors
        for tap in np.ndindex(taps.shape[1:-1]):
            value = taps[(slice(None), *tap)]
            greatest = np.where(value >= greatest, value, greatest)
        made[(slice(None), *place)] = greatest
    return made


def _dilation(given: str) -> Any:
    def make(d: Draw, a: Attrs) -> list[Any]:
        depth, taps = d.randint(1, 2), d.ints(2, 1, 3)
        strides, rates = d.ints(2, 1, 2), d.ints(2, 1, 2)
        a["strides"], a["rates"] = [1, *strides, 1], [1, *rates, 1]
        spans = [(tap - 1) * rate + 1 for tap, rate in zip(taps, rates, strict=True)]
        sizes = [span + d.randint(0, 3) for span in spans]
        out = [_size_after(*each, a["padding"]) for each in zip(sizes, spans, strides, strict=True)]
        shape = (d.randint(1, 2), *sizes, depth)
        return [shape, (*taps, depth), *([(shape[0], *out, depth)] if given else [])]

    return make


def _ratios(d: Draw, a: Attrs) -> tuple[int, ...]:
    a["pooling_ratio"] = [1.0, d.choice((1.4, 1.0, 1.7, 2.0)), d.choice((1.3, 1.0, 1.8)), 1.0]
    a["deterministic"], a["seed"], a["seed2"] = True, d.randint(1, 9), d.randint(1, 9)
    return d.randint(1, 2), d.randint(4, 8), d.randint(4, 8), d.randint(1, 2)


def _fractional(d: Draw, a: Attrs) -> list[Any]:
    return [_ratios(d, a)]


def _cuts(d: Draw, size: int) -> list[int]:
    return [0, *sorted(d.sample(range(1, size), d.randint(1, size - 1))), size]


def _fractional_average_grad(d: Draw, a: Attrs) -> list[Any]:
    shape = (d.randint(1, 2), d.randint(3, 5), d.randint(3, 5), d.randint(1, 2))
    rows, columns = _cuts(d, shape[1]), _cuts(d, shape[2])
    return [list(shape), (shape[0], len(rows) - 1, len(columns) - 1, shape[3]), rows, columns]


def _fractional_maximum_grad(d: Draw, a: Attrs) -> list[Any]:
    shape, out, rows, columns = _fractional_average_grad(d, a)
    x, y = d.floats(shape), np.zeros(out)
    more = 1 if a["overlapping"] else 0
    for i in range(len(rows) - 1):
        for j in range(len(columns) - 1):
            y[:, i, j] = x[:, rows[i] : rows[i + 1] + more, columns[j] : columns[j + 1] + more].max(axis=(1, 2))
    return [x, y, out, rows, columns]


_GRADS = ("ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad")

RECIPES = {
    "BiasAdd": _bias,
    "BiasAddV1": _bias,
    "BiasAddGrad": _bias_grad,
    **dict.fromkeys(_GRADS, _pair),
    **dict.fromkeys(("Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign"), _one),
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
    "Conv2D": _conv(2, ""),
    "Conv3D": _conv(3, ""),
    "Conv": _any_conv,
    "Conv2DBackpropInput": _conv(2, "input"),
    "Conv2DBackpropFilter": _conv(2, "filter"),
    "Conv3DBackpropInputV2": _conv(3, "input"),
    "Conv3DBackpropFilterV2": _conv(3, "filter"),
    "Conv3DBackpropInput": _conv(3, "old"),
    "Conv3DBackpropFilter": _conv(3, "old"),
    "DepthwiseConv2dNative": _depthwise(""),
    "DepthwiseConv2dNativeBackpropInput": _depthwise("input"),
    "DepthwiseConv2dNativeBackpropFilter": _depthwise("filter"),
    "MaxPool": _pool(2, ""),
    "AvgPool": _pool(2, ""),
    "MaxPool3D": _pool(3, ""),
    "AvgPool3D": _pool(3, ""),
    "MaxPoolV2": _pool(2, "dynamic"),
    "MaxPoolWithArgmax": _pool(2, "argmax"),
    "AvgPoolGrad": _pool(2, "average"),
    "AvgPool3DGrad": _pool(3, "average"),
    "MaxPoolGrad": _pool(2, "grad"),
    "MaxPool3DGrad": _pool(3, "grad"),
    "MaxPoolGradV2": _pool(2, "grad"),
    "MaxPoolGradGrad": _pool(2, "gradgrad"),
    "MaxPool3DGradGrad": _pool(3, "gradgrad"),
    "MaxPoolGradGradV2": _pool(2, "gradgrad"),
    "MaxPoolGradWithArgmax": _pool(2, "places"),
    "MaxPoolGradGradWithArgmax": _pool(2, "places2"),
    "Dilation2D": _dilation(""),
    "Dilation2DBackpropInput": _dilation("input"),
    "Dilation2DBackpropFilter": _dilation("filter"),
    "FractionalMaxPool": _fractional,
    "FractionalAvgPool": _fractional,
    "FractionalAvgPoolGrad": _fractional_average_grad,
    "FractionalMaxPoolGrad": _fractional_maximum_grad,
}
