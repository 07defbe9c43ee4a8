"""Half and bfloat16 in losses, pools, norms, optimizers, scatters and segments: what the CPU gives, summed in float."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.gpu_variables import Pair, inputs_of
from tenfold_core import dtypes, errors
from tenfold_kernels import optimizer_rules
from tenfold_kernels.cuda import _scatter

if TYPE_CHECKING:
    from types import SimpleNamespace

#: A few units in the last place.
CLOSE = {"float16": 5e-3, "bfloat16": 2e-2}
#: One is enough where nothing but the conversion differs.
EITHER = ("bfloat16", pytest.param("float16", marks=pytest.mark.thorough))
#: Of each family one that `make test` tries.
_FIRST = ("ApplyAdam", "ResourceApplyMomentum", "SparseApplyAdagrad")
UPDATES = [op if op in _FIRST else pytest.param(op, marks=pytest.mark.thorough) for op in optimizer_rules.OPS]
OPERATIONS = ("Add", "Div", *(pytest.param(op, marks=pytest.mark.thorough) for op in ("Sub", "Mul", "Min", "Max")))
SEGMENTS = ("Mean", *(pytest.param(op, marks=pytest.mark.thorough) for op in ("Sum", "Prod", "Max", "Min")))


def type_of(dtype: str) -> Any:
    return dtypes.as_dtype(dtype).as_numpy_dtype


def values(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 1.5, shape).astype(type_of(dtype))


def whole(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    """Few different whole numbers, from 1 on."""
    return np.random.default_rng(seed).integers(1, 5, shape).astype(type_of(dtype))


@pytest.mark.parametrize("dtype", EITHER)
def test_softmax_and_cross_entropies(gpu: SimpleNamespace, dtype: str) -> None:
    close = {"rtol": CLOSE[dtype], "atol": CLOSE[dtype]}
    for shape in ((2, 5), (0, 3)):
        x, y = values(shape, dtype), np.abs(values(shape, dtype, 1))
        gpu.same("Softmax", [x], **close)
        gpu.same("LogSoftmax", [x], **close)
        gpu.same("SoftmaxCrossEntropyWithLogits", [x, y], **close)
        gpu.same("SparseSoftmaxCrossEntropyWithLogits", [x, np.zeros(shape[0], np.int64)], **close)


def test_a_softmax_of_half_sums_in_float(gpu: SimpleNamespace) -> None:
    loss, _ = gpu.run("SparseSoftmaxCrossEntropyWithLogits", [np.zeros((1, 3000), np.float16), np.zeros(1, np.int32)])

    assert loss.tolist() == [np.float16(np.log(3000))]


@pytest.mark.parametrize("dtype", EITHER)
def test_pools(gpu: SimpleNamespace, dtype: str) -> None:
    close = {"rtol": CLOSE[dtype], "atol": CLOSE[dtype]}
    attrs = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "padding": b"SAME"}
    x = whole((1, 4, 3, 1), dtype)
    x[0, 0, 0, 0] = np.nan

    out = gpu.same("MaxPool", [x], **attrs, rtol=0, atol=0)
    gpu.same("MaxPoolGrad", [x, out, values(out.shape, dtype)], **attrs, **close)
    gpu.same("MaxPoolGradGrad", [x, out, values(x.shape, dtype)], **attrs, rtol=0, atol=0)
    gpu.same("AvgPool", [x[:, 1:]], **attrs, **close)
    gpu.same("AvgPoolGrad", [np.array(x.shape, np.int32), values(out.shape, dtype)], **attrs, **close)
    _, places = gpu.same("MaxPoolWithArgmax", [x], **attrs, rtol=0, atol=0)
    gpu.same("MaxPoolGradWithArgmax", [x, values(out.shape, dtype), places], **attrs, **close)
    gpu.same("MaxPoolGradGradWithArgmax", [x, values(x.shape, dtype), places], **attrs, rtol=0, atol=0)


@pytest.mark.parametrize("data_format", [b"NHWC", pytest.param(b"NCHW", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("dtype", EITHER)
def test_batch_normalisation_has_vectors_of_float(gpu: SimpleNamespace, dtype: str, data_format: bytes) -> None:
    close = {"rtol": CLOSE[dtype], "atol": CLOSE[dtype]}
    x, gradient = values((2, 2, 2, 2), dtype), values((2, 2, 2, 2), dtype, 1)
    channels = x.shape[1 if data_format == b"NCHW" else 3]
    scale, offset, mean, variance = np.random.default_rng(2).uniform(0.5, 2, (4, channels)).astype(np.float32)
    attrs = {"data_format": data_format, "epsilon": 0.01}

    for training in (True, False):
        found = gpu.same(
            "FusedBatchNormV2", [x, scale, offset, mean, variance], is_training=training, **attrs, **close
        )
        assert {each.dtype for each in found[1:]} == {np.dtype(np.float32)}
        gpu.same("FusedBatchNormGradV2", [gradient, x, scale, mean, variance], is_training=training, **attrs, **close)
    gpu.same("FusedBatchNormV3", [x, scale, offset, mean, variance], exponential_avg_factor=0.25, **attrs, **close)


def test_the_mean_of_many_halves_is_a_float(gpu: SimpleNamespace) -> None:
    x = np.full((1, 70, 10, 1), 1000, np.float16)
    x[0, 0, 0, 0] = 1001
    one, nothing = np.ones(1, np.float32), np.empty(0, np.float32)

    _, mean, *_ = gpu.run("FusedBatchNormV2", [x, one, one, nothing, nothing])

    np.testing.assert_allclose(mean, [1000 + 1 / 700], rtol=1e-6)


@pytest.mark.parametrize("dtype", EITHER)
def test_local_response_normalisation(gpu: SimpleNamespace, dtype: str) -> None:
    close = {"rtol": CLOSE[dtype], "atol": CLOSE[dtype]}
    x = values((1, 1, 1, 5), dtype)

    y = gpu.same("LRN", [x], depth_radius=2, alpha=0.3, **close)
    gpu.same("LRNGrad", [values(x.shape, dtype, 1), x, y], depth_radius=2, alpha=0.3, **close)


@pytest.mark.parametrize("dtype", EITHER)
@pytest.mark.parametrize("op", UPDATES)
def test_an_update_is_made_in_float(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    layout, narrow = optimizer_rules.layout_of(op), type_of(dtype)
    shape, indices = ((7,), None) if not layout.sparse else ((5, 2), np.array([4, 1, 4, 0]))
    random = np.random.default_rng(len(op))
    start = [random.uniform(0.1, 1.0, shape).astype(narrow) for _ in layout.variables]
    if "Centered" in op:
        start[1] *= narrow(0.1)
    gradient = random.uniform(-1.0, 1.0, shape if indices is None else (4, 2)).astype(narrow)
    pair = Pair(inputs_of(op, start, gradient, indices), layout.variables, resource=op.startswith("Resource"))

    pair.run(gpu, op)

    for ours, theirs in pair.values():
        close = CLOSE[dtype]
        np.testing.assert_allclose(ours.astype(np.float32), theirs.astype(np.float32), rtol=close, atol=close)


@pytest.mark.parametrize("dtype", EITHER)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_scatters(gpu: SimpleNamespace, operation: str, dtype: str) -> None:
    indices, updates = np.array([2, 0, 2]), whole((3, 2), dtype, 1)
    for op, given in ((f"Scatter{operation}", updates), (f"ResourceScatter{operation}", whole((), dtype, 2))):
        pair = Pair([whole((4, 2), dtype), indices, given], (0,), resource=op.startswith("Resource"))
        pair.run(gpu, op)
        ((ours, theirs),) = pair.values()
        np.testing.assert_allclose(ours.astype(np.float32), theirs.astype(np.float32), rtol=CLOSE[dtype])
    if operation in ("Add", "Sub", "Max", "Min"):
        gpu.same(f"TensorScatter{operation}", [whole((4, 2), dtype), indices[:, None], updates], rtol=CLOSE[dtype])


@pytest.mark.parametrize("dtype", EITHER)
@pytest.mark.parametrize("op", SEGMENTS)
def test_segments(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    x, ids = whole((5, 2), dtype), np.array([0, 0, 2, 2, 2])

    gpu.same(f"Segment{op}", [x, ids], rtol=CLOSE[dtype])
    if op == "Mean":
        gpu.same("SparseSegmentMean", [x, np.array([4, 0, 1], np.int32), np.array([0, 0, 1], np.int32)], rtol=1e-2)
        gpu.same(
            "SparseSegmentMeanGrad", [x[:2], np.array([1, 0, 1]), np.array([0, 0, 1]), np.int32(3)], rtol=1e-2
        )
    else:
        gpu.same(f"UnsortedSegment{op}", [x, ids[::-1].copy(), np.int32(4)], rtol=CLOSE[dtype])


@pytest.mark.parametrize("few", [0, 9999])
def test_what_meets_in_one_place_is_rounded_once(
    gpu: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(_scatter, "FEW", few)
    monkeypatch.setattr(_scatter, "PIECE", 16)
    x = np.ones((41, 1), np.float16)
    x[0] = 2048

    found = gpu.run("UnsortedSegmentSum", [x, np.zeros(41, np.int64), np.int32(1)])

    assert found.tolist() == [[2088]]


@pytest.mark.parametrize("dtype", EITHER)
def test_places_of_the_largest_and_running_sums(gpu: SimpleNamespace, dtype: str) -> None:
    x = values((2, 5), dtype)
    x[1, 2] = np.nan

    for axis in (0, 1):
        gpu.same("ArgMax", [x, np.int32(axis)], output_type=dtypes.int64)
    gpu.same("ArgMin", [np.tile(x, 3), np.int32(1)], output_type=dtypes.int64)
    gpu.same("TopKV2", [x, np.int32(3)])
    gpu.same("Cumsum", [x[:1], np.int32(1)], rtol=CLOSE[dtype], atol=CLOSE[dtype])
    gpu.same("Cumprod", [whole((4,), dtype), np.int32(0)], exclusive=True, rtol=CLOSE[dtype])


@pytest.mark.parametrize("dtype", EITHER)
def test_depthwise_convolutions(gpu: SimpleNamespace, dtype: str) -> None:
    close = {"rtol": CLOSE[dtype], "atol": 4 * CLOSE[dtype]}
    x, filters = whole((1, 3, 2, 1), dtype), whole((2, 2, 1, 1), dtype, 1)
    attrs = {"strides": [1, 1, 1, 1], "padding": b"SAME"}

    out = gpu.same("DepthwiseConv2dNative", [x, filters], **attrs, **close)
    sizes = [np.array(each.shape, np.int32) for each in (x, filters)]
    gpu.same("DepthwiseConv2dNativeBackpropInput", [sizes[0], filters, out], **attrs, **close)
    gpu.same("DepthwiseConv2dNativeBackpropFilter", [x, sizes[1], out], **attrs, **close)


@pytest.mark.parametrize("dtype", EITHER)
def test_numbers_of_half_are_checked(gpu: SimpleNamespace, dtype: str) -> None:
    x = values((3,), dtype)

    gpu.same("CheckNumerics", [x], message=b"x")
    x[1] = np.inf
    with pytest.raises(errors.InvalidArgumentError, match="x : Tensor had Inf values"):
        gpu.run("CheckNumerics", [x], message=b"x")


@pytest.mark.parametrize("dtype", EITHER)
def test_the_gradient_of_mirrored_borders(gpu: SimpleNamespace, dtype: str) -> None:
    gpu.same("MirrorPadGrad", [whole((5, 2), dtype), np.int32([[1, 2], [0, 0]])], mode=b"SYMMETRIC", rtol=CLOSE[dtype])
