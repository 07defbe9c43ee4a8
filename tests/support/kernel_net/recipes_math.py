"""What fits the ops of the math family. See cases.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes

if TYPE_CHECKING:
    from support.kernel_net.draw import Draw


Attrs = dict[str, Any]
INF, NAN = math.inf, math.nan


def _unary(d: Draw, a: Attrs) -> list[Any]:
    dtype = a.get("T")
    if dtype is not None and dtype.is_floating and d.maybe(0.5) and not d.is_plain:
        return [d.choice(([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN], [0.5, -0.5, 2.5, 1.5, -2.5, 1e-3],
                          [20.0, -20.0, 100.0, -100.0, 1e-20, 88.0]))]  # fmt: skip
    return [d.shape(0, 3)]


def _binary(d: Draw, a: Attrs) -> list[Any]:
    shape = list(d.shape(0, 3))
    shapes: list[Any] = [list(shape), list(shape)]
    for each in shapes:
        for axis in range(len(each)):
            if d.maybe(0.2):
                each[axis] = 1
    if d.maybe(0.3):
        which = d.randrange(2)
        shapes[which] = shapes[which][d.randint(0, len(shape)) :]
    dtype = a.get("T")
    if dtype is not None and dtype.is_floating and d.maybe(0.3):
        special = [0.0, -0.0, 1.0, -2.0, INF, -INF, NAN, 3.0, 0.5]
        return [d.sample(special, 9), d.sample(special, 9)]
    if dtype is not None and dtype.is_integer and d.maybe(0.6):
        return [tuple(shapes[0]), np.array(d.ints(math.prod(shapes[1]), 1, 5)).reshape(shapes[1])]
    return [tuple(each) for each in shapes]


def _shifts(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 2)
    return [shape, np.array(d.ints(math.prod(shape), 0, 9)).reshape(shape)]


def _select(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 3)
    return [d.choice((shape, (), shape[:1])), shape, shape]


def _select_v2(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 3)
    some = [tuple(1 if d.maybe(0.3) else size for size in shape)[d.choice((0, 0, len(shape) // 2)) :] for _ in range(3)]
    return some


def _three(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 2)
    ends = d.choice(((), shape))
    return [shape, ends, ends]


def _add_n(d: Draw, a: Attrs) -> list[Any]:
    a["N"] = d.choice((1, 2, 3, 4, 9, 10))
    return [d.shape(0, 2)] * a["N"]


def _accumulate(d: Draw, a: Attrs) -> list[Any]:
    from tenfold_core.tensor_shape import TensorShape

    a["N"], shape = d.choice((1, 2, 3)), d.shape(0, 2)
    a["shape"] = TensorShape(shape)
    return [shape] * a["N"]


def _bitcast(d: Draw, a: Attrs) -> list[Any]:
    a["T"] = d.choice((dtypes.int8, dtypes.int16, dtypes.int32, dtypes.float32, dtypes.int64, dtypes.float64))
    a["type"] = d.choice((dtypes.uint8, dtypes.int16, dtypes.int32, dtypes.float32, dtypes.int64))
    inner = max(1, a["type"].size // a["T"].size)
    return [(*d.shape(0, 2), *((inner,) if inner > 1 and d.maybe(0.9) else ()))]


def _cast(d: Draw, a: Attrs) -> list[Any]:
    kinds = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.int32, dtypes.int64, dtypes.int8,
             dtypes.uint8, dtypes.bool_, dtypes.complex64, dtypes.uint16)  # fmt: skip
    a["SrcT"], a["DstT"] = d.choice(kinds), d.choice(kinds)
    if a["SrcT"].is_floating:
        return [d.floats(d.shape(0, 2), 0, 100)]
    return [d.shape(0, 2)]


def _range(d: Draw, a: Attrs) -> list[Any]:
    return [d.randint(-3, 3), d.randint(-5, 9), d.choice((1, 2, 3, -1, -2, 0.5, 0))]


def _linspace(d: Draw, a: Attrs) -> list[Any]:
    return [(), (), d.choice((1, 2, 3, 5, 0))]


def _ragged_range(d: Draw, a: Attrs) -> list[Any]:
    count = d.randint(0, 3)
    return [d.choice((d.randint(-3, 3), d.ints(count, -3, 3))), d.ints(count, -5, 6),
            d.choice((1, d.ints(count, 1, 3), [d.choice((-1, 2, -2, 0)) for _ in range(count)]))]  # fmt: skip


def _broadcast(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 3)
    some = [1 if d.maybe(0.3) else size for size in shape]
    other = [1 if d.maybe(0.3) else size for size in shape]
    return [some[d.randint(0, 1) if some else 0 :], other[d.choice((0, 0, len(other))) :]]


def _broadcast_to(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 3)
    some = tuple(1 if d.maybe(0.4) else size for size in shape)[d.choice((0, 0, len(shape) // 2)) :]
    return [some, list(shape)]


def _reduction(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 4)
    if d.maybe(0.2):
        return [shape, d.axis(len(shape))]
    axes = d.sample(range(len(shape)), d.randint(0, len(shape)))
    return [shape, [axis - len(shape) if d.maybe(0.3) else axis for axis in axes]]


def _one_axis(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(1, 3)
    return [shape, d.axis(len(shape))]


def _segments(d: Draw, a: Attrs) -> list[Any]:
    rows = d.randint(0, 5)
    ids = sorted(d.ints(rows, 0, 3))
    if ids and d.maybe(0.1):
        ids[0] = d.choice((-1, 5))
    return [(rows, *d.shape(0, 2)), ids]


def _segments_v2(d: Draw, a: Attrs) -> list[Any]:
    data, ids = _segments(d, a)
    return [data, ids, max(ids, default=-1) + d.choice((0, 1, 1, 2))]


def _unsorted(d: Draw, a: Attrs) -> list[Any]:
    shape, count = d.shape(0, 2), d.randint(0, 4)
    return [
        (*shape, *d.shape(0, 1)),
        np.array(d.ints(math.prod(shape), -1, count - 1 + d.maybe(0.1))).reshape(shape),
        count,
    ]


def _sparse_segments(d: Draw, a: Attrs) -> list[Any]:
    rows, count = d.randint(1, 4), d.randint(0, 5)
    return [(rows, *d.shape(0, 2)), d.ints(count, 0, rows - 1 + d.maybe(0.1)), sorted(d.ints(count, 0, 3))]


def _sparse_segments_counted(d: Draw, a: Attrs) -> list[Any]:
    data, places, ids = _sparse_segments(d, a)
    return [data, places, ids, max(ids, default=-1) + d.choice((0, 1, 1, 2))]


def _sparse_segments_grad(d: Draw, a: Attrs) -> list[Any]:
    count, rows = d.randint(1, 5), d.randint(1, 4)  # of none TensorFlow gives what was in its memory
    ids = sorted(d.ints(count, 0, 2))
    return [(max(ids) + 1 + d.maybe(0.2), *d.shape(0, 2)), d.ints(count, 0, rows - 1 + d.maybe(0.1)), ids, rows]


def _bincount(d: Draw, a: Attrs) -> list[Any]:
    values, size = d.ints(d.randint(0, 6), 0, 4), d.randint(0, 5)
    return [values, size, d.choice(((0,), (len(values),)))]


def _dense_bincount(d: Draw, a: Attrs) -> list[Any]:
    shape, size = d.shape(1, 2), d.randint(0, 5)
    values = np.array(d.ints(math.prod(shape), 0, 4)).reshape(shape)
    return [values, size, d.choice(((0,), shape))]


def _sparse_bincount(d: Draw, a: Attrs) -> list[Any]:
    rows = [[row, at] for row in range(3) for at in range(d.randint(0, 3))]
    weights = d.choice(((0,), (len(rows),)))
    if d.maybe(0.3):
        return [np.arange(len(rows)).reshape(-1, 1), d.ints(len(rows), 0, 4), [len(rows) + 1], d.randint(0, 5), weights]
    return [np.array(rows).reshape(-1, 2), d.ints(len(rows), 0, 4), [3, 3], d.randint(0, 5), weights]


def _ragged_bincount(d: Draw, a: Attrs) -> list[Any]:
    count = d.randint(0, 6)
    splits = [0, *sorted(d.ints(d.randint(0, 3), 0, count)), count]
    return [splits, d.ints(count, 0, 4), d.randint(0, 5), d.choice(((0,), (count,)))]


def _bucketize(d: Draw, a: Attrs) -> list[Any]:
    a["boundaries"] = sorted(d.choice((-2.0, -1.0, 0.0, 0.5, 1.0, 2.5)) for _ in range(d.randint(0, 4)))
    if d.maybe(0.1):
        a["boundaries"] = [2.0, 1.0]
    shape = d.shape(0, 2)
    return [np.array([d.choice((-3, -2, -1, 0, 0.5, 1, 2, 2.5, 9)) for _ in range(math.prod(shape))]).reshape(shape)]


def _histogram(d: Draw, a: Attrs) -> list[Any]:
    return [d.shape(0, 2), d.choice(([-1.0, 2.0], [0.0, 5.0], [-3.0, 3.0], [1.0, 1.0])), d.choice((1, 2, 5, 0))]


_BINARY = (
    "Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "TruncateDiv", "FloorDiv", "FloorMod", "Mod", "TruncateMod",
    "Maximum", "Minimum", "Pow", "SquaredDifference", "DivNoNan", "MulNoNan", "Xlogy", "Xdivy", "Atan2", "NextAfter",
    "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr", "Equal", "NotEqual", "BitwiseAnd",
    "BitwiseOr", "BitwiseXor", "Xlog1py",
)  # fmt: skip

_UNARY = (
    "Neg", "Abs", "Sign", "Square", "Sqrt", "Rsqrt", "Exp", "Expm1", "Log", "Log1p", "Reciprocal", "Inv", "Floor",
    "Ceil", "Round", "Rint", "Sigmoid", "Tanh", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh",
    "Sinh", "Cosh", "Erf", "Erfc", "Lgamma", "IsFinite", "IsNan", "IsInf", "Conj", "Digamma", "Erfinv", "Ndtri",
    "BesselI0", "BesselI0e", "BesselI1", "BesselI1e",
)  # fmt: skip

_REDUCTIONS = ("Sum", "Prod", "Mean", "Max", "Min", "EuclideanNorm", "All", "Any")

_SUMS = ("Sum", "Mean", "SqrtN")

RECIPES = {
    **dict.fromkeys(_BINARY, _binary),
    **dict.fromkeys(_UNARY, _unary),
    "LeftShift": _shifts,
    "RightShift": _shifts,
    "Select": _select,
    "SelectV2": _select_v2,
    "AddN": _add_n,
    "AccumulateNV2": _accumulate,
    "Bitcast": _bitcast,
    "Cast": _cast,
    "Range": _range,
    "LinSpace": _linspace,
    "RaggedRange": _ragged_range,
    "BroadcastArgs": _broadcast,
    "BroadcastGradientArgs": _broadcast,
    "BroadcastTo": _broadcast_to,
    **dict.fromkeys(_REDUCTIONS, _reduction),
    **dict.fromkeys(("ArgMax", "ArgMin", "Cumsum", "Cumprod", "CumulativeLogsumexp"), _one_axis),
    **{f"Segment{how}": _segments for how in ("Sum", "Mean", "Max", "Min", "Prod")},
    **{f"Segment{how}V2": _segments_v2 for how in ("Sum", "Max", "Min", "Prod")},
    **{f"UnsortedSegment{how}": _unsorted for how in ("Sum", "Max", "Min", "Prod")},
    **{f"SparseSegment{how}": _sparse_segments for how in _SUMS},
    **{f"SparseSegment{how}WithNumSegments": _sparse_segments_counted for how in _SUMS},
    **{f"SparseSegment{how}Grad{more}": _sparse_segments_grad for how in _SUMS for more in ("", "V2")},
    "Bincount": _bincount,
    "DenseBincount": _dense_bincount,
    "SparseBincount": _sparse_bincount,
    "RaggedBincount": _ragged_bincount,
    "Bucketize": _bucketize,
    "HistogramFixedWidth": _histogram,
}
