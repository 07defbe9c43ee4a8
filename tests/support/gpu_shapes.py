"""What a GPU's kernels are called with at odd lengths: a row for each op, of `n` elements or rows. For tests/cuda/.

Elementwise ops need no row. What keeps a state is in gpu_states.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable

#: Op → (what makes its inputs from a maker of values of the type in question and n, its attributes).
Rows: TypeAlias = "dict[str, tuple[Callable[[Any, int], list[Any]], dict[str, Any]]]"


def i(value: Any) -> Any:
    return np.array(value, np.int32)


def j(value: Any) -> Any:
    return np.array(value, np.int64)


def flags(*shape: int) -> Any:
    return np.arange(int(np.prod(shape))).reshape(shape) % 3 == 0


def turn(n: int, limit: int) -> Any:
    """n numbers below the limit, in turn."""
    return np.arange(n) % limit


def pairs(n: int) -> Any:
    """The sorted ids 0, 0, 1, 1, 2, …, n of them."""
    return np.arange(n) // 2


def few(n: int) -> int:
    """For what has n times n elements."""
    return min(n, 13)


def largest(x: Any) -> Any:
    """What a max pool of two by two gives of [n, 2, 2, 1]."""
    return x.max(axis=(1, 2), keepdims=True)


def places(n: int) -> Any:
    return np.zeros((n, 1, 1, 1), np.int64)


def bounds(n: int) -> list[Any]:
    """Every other row, the last two columns from the last on."""
    return [i([0, 2]), i([n, 0]), i([2, -1])]


def half(n: int) -> int:
    return (n + 1) // 2


def of_pool(x: Any, v: Any, like_input: bool) -> list[Any]:
    return [x, largest(x), v(*(x.shape if like_input else (len(x), 1, 1, 1)))]


def vectors(count: int) -> list[Any]:
    """Those of a batch norm of two channels."""
    return list(np.random.default_rng(5).uniform(0.5, 2, (count, 2)).astype(np.float32))


KEY = [np.array([1 << 63 | 5], np.uint64), np.array([(1 << 64) - 2, 3], np.uint64), i(1)]
SEED = j([5, -7])
SEEDS = {"seed": 87654321, "seed2": 2}
WINDOW = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": b"VALID"}
STEPS = [i([1, 2, 2, 1]), i([1, 2, 2, 1])]
STRIDES = {"strides": [1, 1, 1, 1], "padding": b"SAME"}
SHAPE = {"shape": TensorShape(None)}

MOVES: Rows = {
    "BatchToSpaceND": (lambda v, n: [v(4 * n, 1, 2, 1), i([2, 2]), i([[0, 0], [0, 1]])], {}),
    "SpaceToBatchND": (lambda v, n: [v(n, 2, 3, 1), i([2, 2]), i([[0, 0], [0, 1]])], {}),
    "BatchToSpace": (lambda v, n: [v(4 * n, 1, 1, 1), i([[0, 0], [0, 0]])], {"block_size": 2}),
    "SpaceToBatch": (lambda v, n: [v(n, 2, 2, 1), i([[0, 0], [0, 0]])], {"block_size": 2}),
    "SpaceToDepth": (lambda v, n: [v(n, 2, 2, 1)], {"block_size": 2}),
    "DepthToSpace": (lambda v, n: [v(n, 1, 1, 4)], {"block_size": 2}),
    "BroadcastTo": (lambda v, n: [v(n, 1), i([2, n, 3])], {}),
    "Concat": (lambda v, n: [i(0), v(n, 2), v(2, 2), v(n, 2)], {}),
    "ConcatV2": (lambda v, n: [v(2, n), v(2, 3), i(1)], {}),
    "DynamicPartition": (lambda v, n: [v(n, 2), i(turn(n, 3))], {"num_partitions": 3}),
    "DynamicStitch": (lambda v, n: [i(np.arange(n)), i([n]), v(n, 2), v(1, 2)], {}),
    "ParallelDynamicStitch": (lambda v, n: [i(np.arange(n)), i([n]), v(n, 2), v(1, 2)], {}),
    **dict.fromkeys(("MatrixBandPart", "BatchMatrixBandPart"), (lambda v, n: [v(n, 3, 3), j(1), j(0)], {})),
    **dict.fromkeys(("MatrixDiag", "BatchMatrixDiag"), (lambda v, n: [v(2, few(n))], {})),
    **dict.fromkeys(("MatrixDiagPart", "BatchMatrixDiagPart"), (lambda v, n: [v(n, 3, 2)], {})),
    **dict.fromkeys(("MatrixSetDiag", "BatchMatrixSetDiag"), (lambda v, n: [v(n, 3, 2), v(n, 2)], {})),
    **dict.fromkeys(("MatrixDiagV2", "MatrixDiagV3"), (lambda v, n: [v(n, 2), i(1), i(-1), i(-1), v()], {})),
    **dict.fromkeys(("MatrixDiagPartV2", "MatrixDiagPartV3"), (lambda v, n: [v(n, 2, 3), i([0, 1]), v()], {})),
    **dict.fromkeys(("MatrixSetDiagV2", "MatrixSetDiagV3"), (lambda v, n: [v(n, 3, 4), v(n, 3), i(1)], {})),
    "Diag": (lambda v, n: [v(few(n))], {}),
    "DiagPart": (lambda v, n: [v(few(n), few(n))], {}),
    "MirrorPad": (lambda v, n: [v(n, 3), i([[0, 0], [1, 2]])], {"mode": b"SYMMETRIC"}),
    "MirrorPadGrad": (lambda v, n: [v(n, 6), i([[0, 0], [1, 2]])], {"mode": b"SYMMETRIC"}),
    "Pad": (lambda v, n: [v(n, 3), i([[1, 0], [0, 2]])], {}),
    "PadV2": (lambda v, n: [v(n, 3), i([[1, 0], [0, 2]]), v()], {}),
    "ReverseV2": (lambda v, n: [v(n, 3), i([0])], {}),
    "Reverse": (lambda v, n: [v(n, 3), np.array([True, False])], {}),
    "ReverseSequence": (lambda v, n: [v(n, 3), j(turn(n, 4))], {"seq_dim": 1}),
    "Roll": (lambda v, n: [v(n, 2), i([1]), i([0])], {}),
    "Split": (lambda v, n: [i(1), v(n, 4)], {"num_split": 2}),
    "SplitV": (lambda v, n: [v(n + 2, 3), j([n, 2]), i(0)], {"num_split": 2}),
    "StridedSlice": (lambda v, n: [v(n, 3), *bounds(n)], {}),
    "StridedSliceGrad": (lambda v, n: [i([n, 3]), *bounds(n), v(half(n), 2)], {}),
    "TensorStridedSliceUpdate": (lambda v, n: [v(n, 3), *bounds(n), v(half(n), 2)], {}),
    "Slice": (lambda v, n: [v(n, 3), i([0, 1]), i([n, 2])], {}),
    "Pack": (lambda v, n: [v(n), v(n), v(n)], {"axis": 1}),
    "Unpack": (lambda v, n: [v(n, 3)], {"num": 3, "axis": 1}),
    "Fill": (lambda v, n: [i([n, 3]), v()], {}),
    "Empty": (lambda v, n: [i([n, 3])], {"init": True}),
    "OneHot": (lambda v, n: [j(turn(n, 4)), i(3), v(), v()], {"axis": -1}),
    "Gather": (lambda v, n: [v(5, 2), j(turn(n, 5))], {}),
    "GatherV2": (lambda v, n: [v(3, 5), j(turn(n, 5)), i(1)], {}),
    "GatherNd": (lambda v, n: [v(5, 2), j(turn(n, 5)[:, None])], {}),
    "Tile": (lambda v, n: [v(n, 3), i([2, 1])], {}),
    **dict.fromkeys(("Transpose", "ConjugateTranspose"), (lambda v, n: [v(n, 3), i([1, 0])], {})),
    **dict.fromkeys(
        [f"TensorScatter{name}" for name in ("Update", "Add", "Sub", "Max", "Min")],
        (lambda v, n: [v(4, 2), j(turn(n, 4)[:, None]), v(n, 2)], {}),
    ),
    "ScatterNd": (lambda v, n: [j(turn(n, 4)[:, None]), v(n, 2), j([4, 2])], {}),
    "ScatterNdNonAliasingAdd": (lambda v, n: [v(4, 2), j(turn(n, 4)[:, None]), v(n, 2)], {}),
    "Select": (lambda v, n: [flags(n), v(n), v(n)], {}),
    "SelectV2": (lambda v, n: [flags(n, 1), v(n, 3), v(3)], {}),
    **dict.fromkeys(
        (
            *("Identity", "Snapshot", "StopGradient", "PreventGradient", "GuaranteeConst", "DebugGradientIdentity"),
            *("ZerosLike", "OnesLike", "Rank", "Shape", "Size"),
        ),
        (lambda v, n: [v(n, 2)], {}),
    ),
    **dict.fromkeys(("EnsureShape", "PlaceholderWithDefault"), (lambda v, n: [v(n, 2)], SHAPE)),
    "IdentityN": (lambda v, n: [v(n), v()], {}),
    "ShapeN": (lambda v, n: [v(n), v(n, 2)], {}),
    "ExpandDims": (lambda v, n: [v(n), i(0)], {}),
    "Squeeze": (lambda v, n: [v(n, 1)], {"squeeze_dims": [1]}),
    "Reshape": (lambda v, n: [v(n, 2), i([2, n])], {}),
    "Bitcast": (lambda v, n: [v(n)], {"type": dtypes.uint8}),
}
MATH: Rows = {
    "AddN": (lambda v, n: [v(n, 2), v(n, 2), v(n, 2)], {}),
    "AccumulateNV2": (lambda v, n: [v(n, 2), v(n, 2)], SHAPE),
    "Complex": (lambda v, n: [v(n), v(n)], {}),
    **dict.fromkeys(
        ("SegmentSum", "SegmentProd", "SegmentMax", "SegmentMin", "SegmentMean"),
        (lambda v, n: [v(n, 2), i(pairs(n))], {}),
    ),
    **dict.fromkeys(
        ("SegmentSumV2", "SegmentProdV2", "SegmentMaxV2", "SegmentMinV2"),
        (lambda v, n: [v(n, 2), i(pairs(n)), i(half(n) + 1)], {}),
    ),
    **dict.fromkeys(
        [f"UnsortedSegment{name}" for name in ("Sum", "Prod", "Max", "Min")],
        (lambda v, n: [v(n, 2), i(turn(n, 3)), i(4)], {}),
    ),
    **dict.fromkeys(
        [f"SparseSegment{name}" for name in ("Sum", "Mean", "SqrtN")],
        (lambda v, n: [v(5, 2), i(turn(n, 5)), i(pairs(n))], {}),
    ),
    **dict.fromkeys(
        [f"SparseSegment{name}WithNumSegments" for name in ("Sum", "Mean", "SqrtN")],
        (lambda v, n: [v(5, 2), i(turn(n, 5)), i(pairs(n)), i(half(n) + 1)], {}),
    ),
    **dict.fromkeys(
        [f"SparseSegment{name}Grad" for name in ("Sum", "Mean", "SqrtN")],
        (lambda v, n: [v(half(n), 2), i(turn(n, 5)), i(pairs(n)), i(6)], {}),
    ),
    **dict.fromkeys(
        ("Sum", "Prod", "Mean", "Max", "Min", "EuclideanNorm", "All", "Any"), (lambda v, n: [v(n, 3), i([0])], {})
    ),
    **dict.fromkeys(("Cumsum", "Cumprod"), (lambda v, n: [v(few(n), 3), i(0)], {})),
    **dict.fromkeys(("ArgMax", "ArgMin"), (lambda v, n: [v(n, 3), i(1)], {})),
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2"), (lambda v, n: [v(n, 2, 3), v(n, 3, 1)], {})),
    "MatMul": (lambda v, n: [v(n, 3), v(3, 2)], {}),
    "Einsum": (lambda v, n: [v(n, 3), v(3, 2)], {"equation": b"ab,bc->ac"}),
    "CheckNumerics": (lambda v, n: [v(n)], {"message": b"x"}),
}
NN: Rows = {
    **dict.fromkeys(("BiasAdd", "BiasAddV1"), (lambda v, n: [v(n, 3), v(3)], {})),
    "BiasAddGrad": (lambda v, n: [v(n, 3)], {}),
    "TopK": (lambda v, n: [v(n, 5)], {"k": 2}),
    "TopKV2": (lambda v, n: [v(n, 5), i(2)], {}),
    "InTopK": (lambda v, n: [v(n, 5), i(turn(n, 5))], {"k": 2}),
    "InTopKV2": (lambda v, n: [v(n, 5), i(turn(n, 5)), i(2)], {}),
    "MaxPool": (lambda v, n: [v(n, 3, 3, 1)], WINDOW),
    "MaxPoolV2": (lambda v, n: [v(n, 3, 3, 1), *STEPS], {"padding": b"SAME"}),
    "MaxPoolWithArgmax": (lambda v, n: [v(max(n, 1), 3, 3, 1)], WINDOW),
    "MaxPoolGrad": (lambda v, n: of_pool(v(n, 2, 2, 1), v, False), WINDOW),
    "MaxPoolGradV2": (lambda v, n: [*of_pool(v(n, 2, 2, 1), v, False), *STEPS], {"padding": b"VALID"}),
    "MaxPoolGradGrad": (lambda v, n: of_pool(v(n, 2, 2, 1), v, True), WINDOW),
    "MaxPoolGradGradV2": (lambda v, n: [*of_pool(v(n, 2, 2, 1), v, True), *STEPS], {"padding": b"VALID"}),
    "MaxPoolGradWithArgmax": (lambda v, n: [v(n, 2, 2, 1), v(n, 1, 1, 1), places(n)], WINDOW),
    "MaxPoolGradGradWithArgmax": (lambda v, n: [v(n, 2, 2, 1), v(n, 2, 2, 1), places(n)], WINDOW),
    "AvgPool": (lambda v, n: [v(n, 3, 3, 1)], WINDOW),
    "AvgPoolGrad": (lambda v, n: [i([n, 2, 2, 1]), v(n, 1, 1, 1)], WINDOW),
    **dict.fromkeys(("Softmax", "LogSoftmax"), (lambda v, n: [v(n, 3)], {})),
    "SoftmaxCrossEntropyWithLogits": (lambda v, n: [v(n, 3), v(n, 3)], {}),
    "SparseSoftmaxCrossEntropyWithLogits": (lambda v, n: [v(n, 3), j(turn(n, 3))], {}),
    "Conv2D": (lambda v, n: [v(n, 3, 2, 2), v(2, 2, 2, 3)], STRIDES),
    "Conv2DBackpropInput": (lambda v, n: [i([n, 3, 2, 2]), v(2, 2, 2, 3), v(n, 3, 2, 3)], STRIDES),
    "Conv2DBackpropFilter": (lambda v, n: [v(n, 3, 2, 2), i([2, 2, 2, 3]), v(n, 3, 2, 3)], STRIDES),
    "DepthwiseConv2dNative": (lambda v, n: [v(n, 2, 2, 2), v(2, 1, 2, 1)], STRIDES),
    "DepthwiseConv2dNativeBackpropInput": (
        lambda v, n: [i([n, 2, 2, 2]), v(2, 1, 2, 1), v(n, 2, 2, 2)],
        STRIDES,
    ),
    "DepthwiseConv2dNativeBackpropFilter": (
        lambda v, n: [v(n, 2, 2, 2), i([2, 1, 2, 1]), v(n, 2, 2, 2)],
        STRIDES,
    ),
    "LRN": (lambda v, n: [v(n, 1, 1, 3)], {"depth_radius": 1}),
    "LRNGrad": (lambda v, n: [v(n, 1, 1, 3), v(n, 1, 1, 3), v(n, 1, 1, 3)], {"depth_radius": 1}),
    **dict.fromkeys(
        ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
        (lambda v, n: [v(n, 1, 2, 2), *vectors(4)], {"is_training": False}),
    ),
    **dict.fromkeys(
        ("FusedBatchNormGrad", "FusedBatchNormGradV2"),
        (lambda v, n: [v(n, 1, 2, 2), v(n, 1, 2, 2), *vectors(3)], {"is_training": False}),
    ),
    "FusedBatchNormGradV3": (
        lambda v, n: [v(n, 1, 2, 2), v(n, 1, 2, 2), *vectors(4)],
        {"is_training": False},
    ),
}
RANDOM: Rows = {
    **dict.fromkeys(("RandomUniform", "RandomStandardNormal", "TruncatedNormal"), (lambda v, n: [i([n])], SEEDS)),
    "RandomUniformInt": (lambda v, n: [i([n]), v(), v() + 90], SEEDS),
    "Multinomial": (lambda v, n: [v(n, 3), i(4)], SEEDS),
    "StatelessMultinomial": (lambda v, n: [v(n, 3), i(4), SEED], {}),
    **dict.fromkeys(
        [f"Stateless{name}" for name in ("RandomUniform", "RandomNormal", "TruncatedNormal", "RandomUniformFullInt")],
        (lambda v, n: [i([n]), SEED], {}),
    ),
    **dict.fromkeys(
        [f"Stateless{name}V2" for name in ("RandomUniform", "RandomNormal", "TruncatedNormal", "RandomUniformFullInt")],
        (lambda v, n: [i([n]), *KEY], {}),
    ),
    "StatelessRandomUniformInt": (lambda v, n: [i([n]), SEED, v(), v() + 90], {}),
    "StatelessRandomUniformIntV2": (lambda v, n: [i([n]), *KEY, v(), v() + 90], {}),
}
#: All of them.
SHAPED = {**MOVES, **MATH, **NN, **RANDOM}
