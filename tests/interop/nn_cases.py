"""Cases of neural-network, image, linear-algebra, sparse and other numeric ops for the comparison with TensorFlow.

A case is an op, its inputs as arrays, and the attrs that are not derived from the inputs' types. Used by
test_nn_oracle.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

RNG = np.random.default_rng(42)
F, D, H = np.float32, np.float64, np.float16


@dataclass(frozen=True)
class Case:
    op: str
    inputs: tuple[np.ndarray, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    #: Outputs that are compared; all of them when empty.
    outputs: tuple[int, ...] = ()
    #: Times the usual tolerance of the type.
    slack: float = 1.0
    #: Only magnitudes are compared: decompositions are unique up to signs.
    magnitude: bool = False


def normal(*shape: int, dtype: Any = F) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def uniform(low: float, high: float, *shape: int, dtype: Any = F) -> np.ndarray:
    return RNG.uniform(low, high, shape).astype(dtype)


def ints(*values: Any, dtype: Any = np.int32) -> np.ndarray:
    return np.array(values if len(values) != 1 else values[0], dtype)


def scalar(value: float, dtype: Any = F) -> np.ndarray:
    return np.array(value, dtype)


CASES: list[Case] = []


def add(op: str, *inputs: np.ndarray, outputs: tuple[int, ...] = (), slack: float = 1.0, magnitude: bool = False,
        **attrs: Any) -> None:  # fmt: skip
    CASES.append(Case(op, inputs, attrs, outputs, slack, magnitude))


SPARSE = (ints([[0, 1], [0, 3], [2, 0], [2, 2]], dtype=np.int64), uniform(1, 2, 4), ints(3, 4, dtype=np.int64))
OTHER = (ints([[0, 0], [0, 3], [1, 1]], dtype=np.int64), uniform(-2, -1, 3), ints(3, 4, dtype=np.int64))


def _convolutions() -> None:
    same: dict[str, Any] = {"strides": [1, 2, 2, 1], "padding": "SAME"}
    for attrs in (
        same,
        {"strides": [1, 1, 1, 1], "padding": "SAME"},
        {"strides": [1, 1, 2, 1], "padding": "VALID"},
        {"strides": [1, 1, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 3, 0, 0, 0]},
        {"strides": [1, 1, 1, 1], "padding": "SAME", "dilations": [1, 2, 2, 1]},
    ):
        for dtype in (F, D, H):
            x, w = normal(2, 7, 8, 4, dtype=dtype), normal(3, 2, 4, 6, dtype=dtype)
            add("Conv2D", x, w, **attrs)
    x, w = normal(2, 7, 8, 4), normal(3, 2, 4, 6)
    add("Conv2D", normal(2, 5, 5, 3), normal(1, 1, 3, 4), strides=[1, 1, 1, 1], padding="VALID")
    add("Conv2D", normal(2, 6, 6, 6), normal(3, 3, 2, 9), strides=[1, 1, 1, 1], padding="SAME")
    edges = ints([[0, 0], [1, 2], [0, 1], [0, 0]])
    for mode in ("REFLECT", "SYMMETRIC"):
        # of one image and channel: TensorFlow's kernel mixes up the rows of several
        attrs = {"mode": mode, "strides": [1, 2, 2, 1], "padding": "SAME"}
        add("FusedPadConv2D", normal(1, 5, 5, 1), edges, normal(2, 3, 1, 2), slack=4, **attrs)
        add("FusedResizeAndPadConv2D", normal(1, 5, 5, 1), ints(4, 7), edges, normal(2, 3, 1, 2), slack=16, **attrs)
    whole, kernel = ints(np.arange(32)).reshape(1, 4, 4, 2), ints(np.arange(16)).reshape(2, 2, 2, 2)
    add("Conv2D", whole, kernel, strides=[1, 1, 1, 1], padding="VALID")
    for attrs, shape in ((same, (2, 4, 4, 6)), ({"strides": [1, 1, 1, 1], "padding": "VALID"}, (2, 5, 7, 6))):
        for dtype in (F, D, H):
            g = normal(*shape, dtype=dtype)
            add("Conv2DBackpropInput", ints(2, 7, 8, 4), w.astype(dtype), g, **attrs)
            add("Conv2DBackpropFilter", x.astype(dtype), ints(3, 2, 4, 6), g, **attrs)
    for attrs in (same, {"strides": [1, 1, 1, 1], "padding": "VALID"}):
        for dtype in (F, D, H):
            add("DepthwiseConv2dNative", x.astype(dtype), normal(3, 2, 4, 2, dtype=dtype), **attrs)
    add("DepthwiseConv2dNative", x, normal(3, 3, 4, 1), strides=[1, 1, 1, 1], padding="SAME")
    add("DepthwiseConv2dNativeBackpropInput", ints(2, 7, 8, 4), normal(3, 2, 4, 2), normal(2, 4, 4, 8), **same)
    add("DepthwiseConv2dNativeBackpropFilter", x, ints(3, 2, 4, 2), normal(2, 4, 4, 8), **same)
    deep: dict[str, Any] = {"strides": [1, 2, 1, 2, 1], "padding": "SAME"}
    add("Conv3D", normal(2, 4, 5, 6, 3), normal(2, 3, 2, 3, 4), **deep)
    add("Conv3DBackpropInputV2", ints(2, 4, 5, 6, 3), normal(2, 3, 2, 3, 4), normal(2, 2, 5, 3, 4), **deep)
    add("Conv3DBackpropFilterV2", normal(2, 4, 5, 6, 3), ints(2, 3, 2, 3, 4), normal(2, 2, 5, 3, 4), **deep)


def _pools() -> None:
    for attrs in (
        {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"},
        {"ksize": [1, 2, 3, 1], "strides": [1, 2, 1, 1], "padding": "VALID"},
    ):
        for dtype in (F, D, H):
            x = normal(2, 7, 8, 3, dtype=dtype)
            add("MaxPool", x, **attrs)
            add("AvgPool", x, **attrs)
        out = (2, 4, 4, 3) if attrs["padding"] == "SAME" else (2, 3, 6, 3)
        add("AvgPoolGrad", ints(2, 7, 8, 3), normal(*out), **attrs)
        for whole in (False, True):
            add("MaxPoolWithArgmax", normal(2, 7, 8, 3), include_batch_in_index=whole, **attrs)
    add("MaxPool", ints(RNG.integers(0, 99, (1, 6, 6, 2))), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    add("MaxPool", normal(1, 3, 3, 6), ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding="SAME")
    add("MaxPool", normal(1, 5, 5, 2), ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="EXPLICIT",
        explicit_paddings=[0, 0, 1, 1, 1, 0, 0, 0])  # fmt: skip
    add("MaxPoolV2", normal(2, 6, 6, 2), ints(1, 2, 2, 1), ints(1, 2, 2, 1), padding="VALID")
    x = normal(2, 6, 6, 2)
    y = x.reshape(2, 3, 2, 3, 2, 2).max(axis=(2, 4))
    fixed: dict[str, Any] = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    add("MaxPoolGrad", x, y, normal(2, 3, 3, 2), **fixed)
    add("MaxPoolGradV2", x, y, normal(2, 3, 3, 2), ints(1, 2, 2, 1), ints(1, 2, 2, 1), padding="VALID")
    add("MaxPoolGradGrad", x, y, normal(2, 6, 6, 2), **fixed)
    places = RNG.integers(0, 72, (2, 3, 3, 2))
    add("MaxPoolGradWithArgmax", x, normal(2, 3, 3, 2), places, **fixed)
    tie = np.ones((1, 4, 4, 1), F)
    add("MaxPoolGrad", tie, tie[:, :2, :2], normal(1, 2, 2, 1), **fixed)
    gaps = normal(2, 6, 6, 2)
    gaps[RNG.random(gaps.shape) < 0.4] = np.nan
    add("MaxPoolGrad", gaps, y, normal(2, 3, 3, 2), **fixed)
    lapping: dict[str, Any] = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    add("MaxPoolGrad", RNG.integers(0, 4, (2, 6, 6, 2)).astype(F), y, normal(2, 3, 3, 2), **lapping)
    add("AvgPoolGrad", ints(2, 6, 6, 3), normal(2, 3, 3, 3), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 3], padding="VALID")
    add("MaxPoolWithArgmax", normal(1, 2, 2, 3), ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding="SAME")
    cube: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 1, 2, 1], "padding": "SAME"}
    add("MaxPool3D", normal(1, 4, 5, 6, 2), **cube)
    add("AvgPool3D", normal(1, 4, 5, 6, 2), **cube)
    block = RNG.integers(0, 3, (1, 2, 4, 2, 2)).astype(F)
    whole_block: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
    add("MaxPool3DGrad", block, block.reshape(1, 2, 2, 2, 2, 2).max(axis=(1, 3, 4), keepdims=True)[:, :, :, 0],
        normal(1, 1, 2, 1, 2), outputs=(), **whole_block)  # fmt: skip
    add("AvgPool3DGrad", ints(1, 4, 5, 6, 2), normal(1, 2, 5, 3, 2), **cube)


def _norms() -> None:
    for attrs in (
        {},
        {"depth_radius": 4, "bias": 1.0, "alpha": 0.001 / 9.0, "beta": 0.75},
        {"depth_radius": 1, "beta": 0.6},
    ):
        add("LRN", normal(2, 3, 4, 7), **attrs)
        add("LRNGrad", normal(2, 3, 4, 7), normal(2, 3, 4, 7), normal(2, 3, 4, 7), slack=4, **attrs)
    add("LRN", normal(2, 3, 4, 7, dtype=H), slack=2)
    per = [uniform(0.5, 2, 3), normal(3), normal(3), uniform(0.5, 2, 3)]
    nothing = np.empty(0, F)
    x = normal(2, 4, 5, 3)
    for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        used = (0, 1, 2, 3, 4)
        add(op, x, per[0], per[1], nothing, nothing, outputs=used, slack=4)
        add(op, x, *per, is_training=False, outputs=(0, 1, 2), slack=4)
    add("FusedBatchNormV3", x, *per, exponential_avg_factor=0.3, outputs=(0, 1, 2, 3, 4), slack=4)
    add("FusedBatchNormV3", x.astype(H), per[0], per[1], nothing, nothing, outputs=(0, 1, 2, 3, 4), slack=2)
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    for op, more in (("FusedBatchNormGrad", ()), ("FusedBatchNormGradV2", ()), ("FusedBatchNormGradV3", (nothing,))):
        for training in (True, False):
            add(
                op,
                normal(2, 4, 5, 3),
                x,
                per[0],
                mean,
                variance,
                *more,
                is_training=training,
                outputs=(0, 1, 2),
                slack=8,
            )


def _fused() -> None:
    x, w, bias = normal(2, 5, 5, 3), normal(3, 3, 3, 4), normal(4)
    plain: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": "SAME", "num_args": 1, "TArgs": ["float32"]}
    for ops in (["BiasAdd"], ["BiasAdd", "Relu"], ["BiasAdd", "Relu6"], ["BiasAdd", "Elu"], ["BiasAdd", "LeakyRelu"],
                ["BiasAdd", "Tanh"], ["BiasAdd", "Sigmoid"]):  # fmt: skip
        if ops[-1] not in ("Tanh", "Sigmoid"):
            add("_FusedConv2D", x, w, bias, fused_ops=ops, **plain)
        add("_FusedMatMul", normal(4, 3), normal(3, 4), bias, fused_ops=ops, num_args=1)
    batch = plain | {"num_args": 4, "TArgs": ["float32"] * 4, "epsilon": 0.01}
    for ops in (["FusedBatchNorm"], ["FusedBatchNorm", "Relu"]):
        add("_FusedConv2D", x, w, uniform(1, 2, 4), bias, normal(4), uniform(1, 2, 4), fused_ops=ops, slack=4, **batch)
    per = [uniform(0.5, 2, 4), normal(4), normal(4), uniform(0.5, 2, 4)]
    add(
        "_FusedBatchNormEx",
        normal(2, 5, 5, 4),
        *per,
        is_training=False,
        num_side_inputs=0,
        activation_mode="Relu",
        outputs=(0,),
        slack=4,
    )
    add("_UnaryOpsComposition", uniform(0.5, 2, 9), op_names=["Sqrt", "Neg", "Exp"])
    add("ParallelConcat", normal(1, 3), normal(1, 3), N=2, shape=[2, 3])


def _images() -> None:
    x = uniform(0, 1, 2, 5, 7, 3)
    for flags in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
        for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"):
            for size in (ints(3, 4), ints(9, 11), ints(5, 7)):
                add(op, x, size, slack=8, **flags)
            add(op, ints(RNG.integers(0, 255, (1, 4, 4, 2)), dtype=np.uint8), ints(6, 3), slack=8, **flags)
        for op in ("ResizeBilinearGrad", "ResizeBicubicGrad"):
            add(op, normal(2, 9, 4, 3), x, slack=8, **flags)
        add("ResizeNearestNeighborGrad", normal(2, 9, 4, 3), ints(5, 7), slack=4, **flags)
    for size in (ints(3, 4), ints(9, 11)):
        add("ResizeArea", x, size, slack=8)
    add("AdjustContrastv2", x, scalar(1.7), slack=4)
    add("AdjustHue", x, scalar(0.3), slack=8)
    add("AdjustSaturation", x, scalar(1.4), slack=8)
    add("RGBToHSV", x, slack=4)
    add("HSVToRGB", x, slack=4)
    boxes = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.9, 0.7], [-0.3, 0.5, 0.4, 1.4]], F)
    for method in ("bilinear", "nearest"):
        add("CropAndResize", x, boxes, ints(0, 1, 0), ints(3, 4), method=method, extrapolation_value=0.5, slack=8)
        sizes = ints(2, 5, 7, 3)
        add(
            "CropAndResizeGradImage",
            normal(3, 3, 4, 3),
            boxes,
            ints(0, 1, 0),
            sizes,
            method=method,
            T="float32",
            slack=8,
        )
    add("CropAndResizeGradBoxes", normal(3, 3, 4, 3), x, boxes, ints(0, 1, 0), slack=16)
    corners = uniform(0, 5, 12, 2)
    found = np.concatenate([corners, corners + uniform(1, 4, 12, 2)], axis=1)
    scores = uniform(0, 1, 12)
    add("NonMaxSuppression", found, scores, ints(5), iou_threshold=0.3)
    add("NonMaxSuppressionV3", found, scores, ints(8), scalar(0.4), scalar(0.2))
    add("ExtractImagePatches", x, ksizes=[1, 2, 3, 1], strides=[1, 2, 2, 1], rates=[1, 1, 2, 1], padding="SAME")
    add("Dilation2D", normal(1, 5, 6, 2), normal(2, 3, 2), strides=[1, 2, 1, 1], rates=[1, 1, 2, 1], padding="SAME")


def _linalg() -> None:
    for dtype in (F, D, np.complex64, np.complex128):
        m = normal(2, 4, 4, dtype=dtype)
        if np.dtype(dtype).kind == "c":
            m = (m + 1j * normal(2, 4, 4)).astype(dtype)
        right = normal(2, 4, 3, dtype=dtype)
        add("MatrixDeterminant", m, slack=16)
        add("LogMatrixDeterminant", m, slack=16)
        for adjoint in (False, True):
            add("MatrixSolve", m, right, adjoint=adjoint, slack=100)
            for lower in (False, True):
                add(
                    "MatrixTriangularSolve",
                    m + 3 * np.eye(4, dtype=dtype),
                    right,
                    adjoint=adjoint,
                    lower=lower,
                    slack=32,
                )
        add("Svd", m, outputs=(0,), slack=16)
        add("Svd", m, compute_uv=False, slack=16, outputs=(0,))
        add("Qr", normal(3, 5, 4, dtype=dtype), magnitude=True, slack=16)
        both = m + np.conj(m.swapaxes(-1, -2))
        add("SelfAdjointEigV2", both, outputs=(0,), slack=16)
        add("SelfAdjointEigV2", both, magnitude=True, slack=64)
        positive = np.matmul(m, np.conj(m.swapaxes(-1, -2))) + 4 * np.eye(4, dtype=dtype)
        add("Cholesky", positive, slack=16)
        add("MatrixInverse", positive, slack=16)
    low = np.linalg.cholesky(positive.real.astype(F))
    add("CholeskyGrad", low, np.tril(normal(2, 4, 4)), slack=32)
    add("MatrixSolveLs", normal(5, 3), normal(5, 2), scalar(0.1, D), slack=32)
    wide, dense = normal(2, 4, 6), normal(3, 5)
    add("MatrixDiagV3", dense, ints(1), ints(-1), ints(-1), scalar(9))
    add("MatrixDiagV3", normal(2, 3, 4), ints(-1, 1), ints(-1), ints(-1), scalar(9))
    for align in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"):
        add("MatrixDiagPartV3", wide, ints(-2, 3), scalar(7), align=align)
        add("MatrixSetDiagV3", wide, normal(2, 3, 4), ints(-1, 1), align=align)
    add("MatrixDiagPartV2", wide, ints(-2, 1), scalar(7))
    for shape in ((8,), (3, 6), (2, 4, 5, 6)):
        z = (normal(*shape) + 1j * normal(*shape)).astype(np.complex64)
        for op, rank in (("FFT", 1), ("IFFT", 1), ("FFT2D", 2), ("IFFT2D", 2), ("FFT3D", 3)):
            if len(shape) >= rank:
                add(op, z, slack=8)
        add("RFFT", normal(*shape), ints([4]), slack=8)
        add("IRFFT", z, ints([5]), slack=8)


def _sparse() -> None:
    for turned in (False, True):
        b = normal(3, 5) if turned else normal(4, 5)
        add("SparseTensorDenseMatMul", *SPARSE, b, adjoint_a=turned)
    add("SparseTensorDenseAdd", *SPARSE, normal(3, 4))
    order = [2, 0, 3, 1]
    add("SparseReorder", SPARSE[0][order], SPARSE[1][order], SPARSE[2])
    add("SparseReshape", SPARSE[0], SPARSE[2], ints(2, -1, dtype=np.int64))
    for dim in (0, 1):
        add("SparseConcat", SPARSE[0], OTHER[0], SPARSE[1], OTHER[1], SPARSE[2], OTHER[2], concat_dim=dim, N=2)
        add("SparseSplit", scalar(dim, np.int64), *SPARSE, num_split=2)
    add("SparseSlice", *SPARSE, ints(0, 1, dtype=np.int64), ints(2, 9, dtype=np.int64))
    add("SparseFillEmptyRows", *SPARSE, scalar(5))
    add("SparseFillEmptyRowsGrad", ints(0, 2, 3, dtype=np.int64), normal(5))
    for rows in (ints(0, 0, 3, dtype=np.int64), ints(3, 1, 1, dtype=np.int64)):
        add("RaggedFillEmptyRows", rows, normal(3), scalar(5, np.int64), scalar(7.0))
    add("RaggedFillEmptyRowsGrad", ints(0, 2, 3, dtype=np.int64), normal(5))
    add("SparseAdd", *SPARSE, *OTHER, scalar(0))
    add("SparseSparseMaximum", *SPARSE, *OTHER)
    add("SparseSparseMinimum", *SPARSE, *OTHER)
    for op in ("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"):
        add(op, *SPARSE, uniform(1, 2, 4))
    for keep in (False, True):
        for op in ("SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse"):
            add(op, *SPARSE, ints([1]), keep_dims=keep)
    add("SparseSoftmax", *SPARSE, slack=4)
    add("SetSize", SPARSE[0], ints(4, 4, 5, 6), SPARSE[2])
    add("DenseToDenseSetOperation", ints([[1, 2, 2], [3, 4, 5]]), ints([[2, 7], [5, 9]]), set_operation="union")


def _math() -> None:
    positive = uniform(0.1, 8, 20, dtype=D)
    for dtype in (F, D):
        p, q = positive.astype(dtype), positive[::-1].astype(dtype)
        add("Digamma", np.concatenate([p, -p]), slack=64)
        add("Igamma", p, q, slack=64)
        add("Igammac", p, q, slack=64)
        add("Zeta", p + 1, q, slack=64)
        add("Polygamma", np.array([0, 1, 2, 5], dtype), p[:4], slack=64)
        add("Betainc", p, q, uniform(0, 1, 20, dtype=dtype), slack=64)
        add("Erfinv", uniform(-0.999, 0.999, 30, dtype=dtype), slack=64)
        add("Ndtri", uniform(0.001, 0.999, 30, dtype=dtype), slack=64)
        add("Xlog1py", np.array([0, 1, 2], dtype), p[:3], slack=4)
        add("CumulativeLogsumexp", normal(3, 4, dtype=dtype), scalar(1, np.int32), slack=4)
        add(
            "CumulativeLogsumexp", normal(3, 4, dtype=dtype), scalar(0, np.int32), exclusive=True, reverse=True, slack=4
        )
    add("IgammaGradA", positive.astype(F), positive[::-1].astype(F), slack=200)
    for dtype in (np.int8, np.uint8, np.int32, np.int64, np.uint16):
        a, b = (RNG.integers(0, 100, 9).astype(dtype) for _ in range(2))
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
            add(op, a, b)
        add("LeftShift", a, (b % 7).astype(dtype))
        add("RightShift", a, (b % 7).astype(dtype))
        add("Invert", a)
        add("PopulationCount", a)
    add("Bucketize", normal(3, 4), boundaries=[-1.0, 0.0, 0.5])
    add("Cross", normal(2, 3), normal(2, 3))
    add("HistogramFixedWidth", normal(50), np.array([-1, 1], F), scalar(7, np.int32))
    add("DenseBincount", ints([[1, 2, 1], [0, 5, 1]]), scalar(4, np.int32), np.empty((0,), F))
    add("RaggedRange", ints(0, 5, 8), ints(3, 5, 2), ints(1, 1, -2))
    ids = ints(0, 0, 2, 2, 2)
    for op in (
        "SparseSegmentSumWithNumSegments",
        "SparseSegmentMeanWithNumSegments",
        "SparseSegmentSqrtNWithNumSegments",
    ):
        add(op, normal(6, 2), ints(1, 3, 5, 0, 1), ids, scalar(4, np.int32), slack=4)
    for how in ("Sum", "Mean", "SqrtN"):
        for version in ("", "V2"):
            op = f"SparseSegment{how}Grad{version}"
            add(op, normal(3, 2), ints(1, 3, 5, 0, 1), ids, scalar(6, np.int32), slack=4)
    add("ComputeAccidentalHits", ints([[1, 2], [4, 1]], dtype=np.int64), ints(7, 1, 4, 9, dtype=np.int64), num_true=2)
    for reverse in (False, True):
        add("NthElement", normal(3, 6), scalar(2, np.int32), reverse=reverse)
    add("DataFormatDimMap", ints(0, 1, 2, 3, -1))
    add("DataFormatVecPermute", ints(1, 2, 3, 4))
    add("DataFormatVecPermute", ints([[1, 2], [3, 4], [5, 6], [7, 8]]))
    add("BatchMatMulV3", normal(2, 3, 4), normal(4, 5), Tout="float32")


def _arrays() -> None:
    x = normal(4, 3)
    at = ints([[0], [2], [0]])
    for op in ("TensorScatterSub", "TensorScatterMax", "TensorScatterMin"):
        add(op, x, at, normal(3, 3))
    add("UniqueV2", ints([[1, 2], [3, 4], [1, 2]]), ints([0], dtype=np.int64))
    add("UniqueWithCountsV2", ints(3, 1, 3, 2), np.empty(0, np.int64))
    for mode in ("REFLECT", "SYMMETRIC"):
        add("MirrorPadGrad", normal(7, 6), ints([[1, 2], [2, 1]]), mode=mode)
    add("SpaceToBatchND", normal(2, 4, 6, 3), ints(2, 3), ints([[1, 1], [0, 3]]))
    add("BatchToSpaceND", normal(12, 3, 2, 3), ints(2, 3), ints([[1, 0], [0, 2]]))
    add("SpaceToBatch", normal(1, 4, 4, 2), ints([[0, 0], [1, 1]]), block_size=2)
    add("BatchToSpace", normal(8, 2, 3, 2), ints([[0, 0], [1, 1]]), block_size=2)
    add("Reverse", normal(2, 3), np.array([True, False]))
    add("ConjugateTranspose", (normal(2, 3) + 1j).astype(np.complex64), ints(1, 0))
    add("TensorStridedSliceUpdate", normal(4, 5), ints(1, 0), ints(3, 5), ints(1, 2), normal(2, 3))
    add("FakeQuantWithMinMaxArgs", normal(20) * 5)
    add("FakeQuantWithMinMaxArgsGradient", normal(20), normal(20) * 5)
    add("FakeQuantWithMinMaxVars", normal(20), scalar(-0.7), scalar(1.1), num_bits=4, narrow_range=True)
    add("FakeQuantWithMinMaxVarsGradient", normal(20), normal(20), scalar(-0.7), scalar(1.1), slack=4)
    add("FakeQuantWithMinMaxVarsPerChannel", normal(5, 2), np.array([-1, -0.3], F), np.array([0.4, 1.2], F))
    add("QuantizeAndDequantizeV2", normal(20), scalar(-1.0), scalar(1.5), range_given=True, slack=4)
    add("QuantizeAndDequantizeV4", normal(20), scalar(0.0), scalar(0.0), slack=4)
    add(
        "QuantizeAndDequantizeV3",
        uniform(0, 1, 20),
        scalar(0.0),
        scalar(1.0),
        scalar(6, np.int32),
        signed_input=False,
        slack=4,
    )
    edits = (ints([[0, 0], [0, 1], [1, 0]], dtype=np.int64), ints(1, 2, 3), ints(2, 2, dtype=np.int64))
    truth = (ints([[0, 0], [0, 1], [0, 2], [1, 0]], dtype=np.int64), ints(1, 5, 2, 3), ints(2, 3, dtype=np.int64))
    add("EditDistance", *edits, *truth)
    add("TopKV2", normal(3, 6), scalar(2, np.int32))
    add("InTopKV2", normal(3, 6), ints(1, 5, 9), scalar(2, np.int32))
    add("Bincount", ints(1, 1, 3, 9), scalar(5, np.int32), np.empty(0, F))
    add("ListDiff", ints(1, 2, 3, 4), ints(2, 4))


def _cells() -> None:
    steps, batch, inputs, cells = 3, 2, 4, 5
    state = (normal(batch, cells), normal(batch, cells))
    weights = (normal(inputs + cells, 4 * cells), *(normal(cells) for _ in range(3)), normal(4 * cells))
    count = scalar(2, np.int64)
    for peephole in (False, True):
        for clip in (-1.0, 0.3):
            attrs: dict[str, Any] = {"use_peephole": peephole, "cell_clip": clip}
            add("LSTMBlockCell", normal(batch, inputs), *state, *weights, slack=4, forget_bias=0.5, **attrs)
            # what stands after the last step is not set in TensorFlow
            whole = normal(2, batch, inputs)
            add("BlockLSTM", count, whole, *state, *weights, slack=4, forget_bias=0.5, **attrs)
            add("BlockLSTMV2", count, whole, *state, *weights, slack=4, **attrs)
        made = [uniform(0.1, 0.9, batch, cells) for _ in range(6)]
        add("LSTMBlockCellGrad", normal(batch, inputs), *state, *weights, *made, *state, slack=8,
            outputs=(0, 1, 2, 3, 4) if peephole else (0, 1), use_peephole=peephole)  # fmt: skip
        made = [uniform(0.1, 0.9, steps, batch, cells) for _ in range(9)]
        for op in ("BlockLSTMGrad", "BlockLSTMGradV2"):
            add(op, count, normal(steps, batch, inputs), *state, *weights, *made, slack=8,
                outputs=tuple(range(8)) if peephole else (0, 1, 2, 3, 7), use_peephole=peephole)  # fmt: skip
    gru = (normal(inputs + cells, 2 * cells), normal(inputs + cells, cells), normal(2 * cells), normal(cells))
    add("GRUBlockCell", normal(batch, inputs), state[0], *gru, slack=4)
    made = [uniform(0.1, 0.9, batch, cells) for _ in range(4)]
    add("GRUBlockCellGrad", normal(batch, inputs), state[0], *gru, *made, slack=8)


def _alignments() -> None:
    logits = normal(6, 3, 5)
    labels = (ints([[0, 0], [0, 1], [0, 2], [1, 0], [2, 0], [2, 1]], dtype=np.int64), ints(1, 1, 3, 2, 0, 4))
    lengths = ints(6, 4, 5)
    for dtype in (F, D):
        x = logits.astype(dtype)
        slack = 400.0 if dtype is F else 1e9  # TensorFlow takes exponentials in float32
        for attrs in ({}, {"ctc_merge_repeated": False}, {"preprocess_collapse_repeated": True}):
            add("CTCLoss", x, *labels, lengths, slack=slack, **attrs)
        add("CTCLoss", x, *labels, ints(6, 0, 1), slack=slack, ignore_longer_outputs_than_inputs=True)
        for merge in (False, True):
            add("CTCGreedyDecoder", x, lengths, merge_repeated=merge, slack=4)
            for width, paths in ((1, 1), (3, 2), (50, 4)):
                more = {"beam_width": width, "top_paths": paths, "merge_repeated": merge}
                add("CTCBeamSearchDecoder", x, lengths, slack=40 if dtype is F else 1e6, **more)


def _sets_and_counts() -> None:
    first = (ints([[0, 0], [0, 1], [1, 0], [2, 2]], dtype=np.int64), ints(5, 1, 3, 3), ints(4, 3, dtype=np.int64))
    second = (ints([[0, 0], [1, 0], [1, 3], [3, 0]], dtype=np.int64), ints(1, 3, 4, 9), ints(4, 5, dtype=np.int64))
    dense = ints([[1, 5], [3, 3], [7, 8], [9, 0]])
    for operation in ("a-b", "b-a", "intersection", "union"):
        add("SparseToSparseSetOperation", *first, *second, set_operation=operation)
        add("DenseToSparseSetOperation", dense, *second, set_operation=operation)
    splits, values, none = ints(0, 2, 2, 5, dtype=np.int64), ints(1, 1, 3, 0, 9), np.empty(0, F)
    rows = ints([[0, 0], [0, 1], [2, 0], [2, 1], [2, 2]], dtype=np.int64)
    shape = ints(3, 4, dtype=np.int64)
    for weights, binary in ((none, False), (none, True), (normal(5), False)):
        add("RaggedBincount", splits, values, scalar(5, np.int32), weights, binary_output=binary)
        add("SparseBincount", rows, values, shape, scalar(5, np.int32), weights, binary_output=binary)
        column = ints([[0], [1], [4], [5], [7]], dtype=np.int64)
        add("SparseBincount", column, values, ints(9, dtype=np.int64).reshape(1), scalar(5, np.int32), weights,
            binary_output=binary)  # fmt: skip
    texts, numbers = np.array([b"a", b"bc", b"d", b"a"], object), ints(1, -2, 3, 4, dtype=np.int64)
    crossed = (first[0], first[0], texts, numbers, first[2], first[2])
    wide = (np.array([[b"x", b"y"]] * 4, object), ints([[7], [-8], [9], [10]], dtype=np.int64))
    types: dict[str, Any] = {"N": 2, "sparse_types": ["string", np.int64], "dense_types": ["string", np.int64]}
    for strong in (False,):  # TensorFlow's process ends where the hash is the keyed one
        for buckets in (0, 100):
            add("SparseCrossHashed", *crossed, *wide, scalar(buckets, np.int64), np.array(strong),
                ints(137, -7, dtype=np.int64), **types)  # fmt: skip
    add("StatelessRandomGammaV3", ints(3, 2), np.array([7], np.uint64), np.array([1, 2], np.uint64),
        scalar(1, np.int32), uniform(0.5, 3, 2), slack=8)  # fmt: skip


def _functions_of_matrices() -> None:
    for dtype in (F, D, np.complex64, np.complex128):
        x = normal(2, 4, 4, dtype=dtype) / 4 + 2 * np.eye(4, dtype=dtype)
        add("Lu", x)
        add("MatrixSquareRoot", x, slack=16)
        if dtype in (np.complex64, np.complex128):
            add("MatrixLogarithm", x, slack=16)
        diagonals, right = normal(2, 3, 5, dtype=dtype), normal(2, 5, 3, dtype=dtype)
        add("TridiagonalMatMul", *(diagonals[:, i : i + 1] for i in range(3)), right)
        add("TridiagonalSolve", diagonals + np.array([[0], [4], [0]], dtype), right, slack=16)
        add("TridiagonalSolve", diagonals + np.array([[0], [4], [0]], dtype), right, slack=16, partial_pivoting=False)


def _bessel() -> None:
    for dtype in (F, D):
        x = uniform(-20, 20, 3, 7, dtype=dtype)
        for op in ("BesselI0e", "BesselI1e", "BesselI0", "BesselI1"):
            add(op, x, slack=16)
        add("RandomGammaGrad", uniform(0.5, 4, 3, 5, dtype=dtype), uniform(0.2, 6, 3, 5, dtype=dtype), slack=64)


def _windows_of_other_kinds() -> None:
    for padding in ("SAME", "VALID"):
        attrs: dict[str, Any] = {"strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1], "padding": padding}
        x, kernel = normal(2, 7, 6, 2), normal(3, 2, 2)
        given = normal(2, 4 if padding == "SAME" else 3, 6 if padding == "SAME" else 4, 2)
        add("Dilation2D", x, kernel, **attrs)
        add("Dilation2DBackpropInput", x, kernel, given, **attrs)
        add("Dilation2DBackpropFilter", x, kernel, given, **attrs)
        volumes: dict[str, Any] = {"ksizes": [1, 2, 3, 1, 1], "strides": [1, 1, 2, 2, 1], "padding": padding}
        add("ExtractVolumePatches", normal(2, 4, 5, 6, 2), **volumes)
    rows, columns = ints(0, 2, 3, 5, 7, dtype=np.int64), ints(0, 1, 3, 5, dtype=np.int64)
    for overlapping in (False, True):
        x, given = normal(2, 7, 5, 3), normal(2, 4, 3, 3)
        add("FractionalAvgPoolGrad", ints(2, 7, 5, 3, dtype=np.int64), given, rows, columns, overlapping=overlapping)
        for pseudo in (False, True):
            for op in ("FractionalMaxPool", "FractionalAvgPool"):
                ratio = [1.0, 1.4, 1.7, 1.0]
                add(op, normal(2, 11, 9, 3), pooling_ratio=ratio, pseudo_random=pseudo, overlapping=overlapping,
                    deterministic=True, seed=5, seed2=7)  # fmt: skip


for _make in (
    _convolutions,
    _pools,
    _norms,
    _fused,
    _images,
    _linalg,
    _sparse,
    _math,
    _arrays,
    _cells,
    _alignments,
    _sets_and_counts,
    _functions_of_matrices,
    _bessel,
    _windows_of_other_kinds,
):
    _make()
