"""Half, bfloat16 and complex numbers in loops and reductions on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.gpu_programs import fused_programs
from support.gpu_variables import Pair
from tenfold_core import dtypes
from tenfold_kernels.cuda.fused_runs import DeviceRun

if TYPE_CHECKING:
    from types import SimpleNamespace

#: A few units in the last place.
CLOSE = {"float16": 5e-3, "bfloat16": 2e-2}
#: One is enough where nothing but the conversion differs.
EITHER = ("bfloat16", pytest.param("float16", marks=pytest.mark.thorough))
OPS = ("Add", "Mul", "RealDiv", "Maximum", "Less", "Exp", "Tanh", "Rsqrt", "Floor", "Rint", "SigmoidGrad", "Atan2")
COMPLEX_OPS = ("Add", "Sub", "Mul", "RealDiv", "Neg", "Square", "Equal", "Conj", "Real", "Imag", "ComplexAbs")


def values(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    found = random.uniform(0.2, 2.0, shape)
    return (found + 1j * random.uniform(-1, 1, shape) if dtype.startswith("c") else found).astype(dtype)


def count_of(op: str) -> int:
    from tenfold_core import opdefs

    return len(opdefs.get(op).inputs)


@pytest.mark.parametrize("dtype", EITHER)
@pytest.mark.parametrize("op", OPS)
def test_ops_of_half(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    given = [values((3, 5), dtype, seed) for seed in range(count_of(op))]
    gpu.same(op, given, rtol=CLOSE[dtype])


@pytest.mark.parametrize("dtype", EITHER)
def test_activations_of_half(gpu: SimpleNamespace, dtype: str) -> None:
    x, y = values((3, 5), dtype) - values((3, 5), dtype, 1), values((3, 5), dtype, 2)
    for op in ("Relu", "LeakyRelu", "Softplus", "Selu"):
        gpu.same(op, [x], rtol=CLOSE[dtype])
        gpu.same(f"{op}Grad", [y, x], rtol=CLOSE[dtype])
    gpu.same("BiasAdd", [x, y[0]], rtol=CLOSE[dtype])
    gpu.same("BiasAddGrad", [x], rtol=CLOSE[dtype], atol=1e-2)
    gpu.same("L2Loss", [x], rtol=CLOSE[dtype])


@pytest.mark.parametrize("dtype", EITHER)
@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "EuclideanNorm"])
def test_reductions_of_half(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    for shape, axes in (((), []), ((3, 5), [0]), ((3, 70), [1]), ((0, 2), [0])):
        gpu.same(op, [values(shape, dtype), np.array(axes, np.int32)], rtol=CLOSE[dtype])


def test_a_sum_of_half_is_taken_in_float(gpu: SimpleNamespace) -> None:
    x = np.full(600, 10, np.float16)

    assert gpu.run("Sum", [x, np.int32([0])]) == 6000
    assert gpu.run("Mean", [np.full(600, 400, np.float16), np.int32([0])]) == 400


@pytest.mark.parametrize("dtype", CLOSE)
def test_casts_round_as_the_host_does(gpu: SimpleNamespace, dtype: str) -> None:
    narrow = dtypes.as_dtype(dtype)
    x = np.array([1 + 2.0**-9, 1 + 3 * 2.0**-9, 1 + 2.0**-12, 65519, 65520, 1e-8, -0.0, np.nan, np.inf], np.float32)

    gpu.same("Cast", [x], DstT=narrow, rtol=0, atol=0)
    with np.errstate(over="ignore"):
        rounded = x.astype(narrow.as_numpy_dtype)
    gpu.same("Cast", [rounded], DstT=dtypes.float64, rtol=0, atol=0)
    gpu.same("Cast", [np.arange(-3, 3)], DstT=narrow, rtol=0, atol=0)
    gpu.same("Cast", [rounded[:4]], DstT=dtypes.int64)


@pytest.mark.parametrize("dtype", EITHER)
def test_a_loop_rounds_after_each_op(dtype: str) -> None:
    narrow = dtypes.as_dtype(dtype).as_numpy_dtype
    rows = [values((5, 3), dtype, seed) for seed in range(4)]
    with fused_programs() as programs, tf.Graph().as_default():
        with tf.device("/gpu:0"):
            x = tf.placeholder(dtype, [5, 3], name="x")
            value = (x * x + tf.constant(0.1, dtype)) * x - x
            total = tf.reduce_sum(tf.cast(value, tf.float32), axis=0)
            mean = tf.reduce_mean(value)
        with tf.Session() as session:
            for fed in rows:
                found = session.run([value, total, mean], {x: fed})
                wanted = (fed * fed + narrow(0.1)) * fed - fed
                np.testing.assert_array_equal(found[0], wanted)
                np.testing.assert_allclose(found[1], wanted.astype(np.float32).sum(0), rtol=1e-5)
                np.testing.assert_allclose(float(found[2]), wanted.astype(np.float32).mean(), rtol=CLOSE[dtype])

    (run,) = [g.run.run for program in programs for g in program.groups if isinstance(g.run, DeviceRun)]
    assert {op.op for op in run.ops} == {"Mul", "AddV2", "Sub", "Cast", "Sum", "Mean"}


@pytest.mark.parametrize("dtype", ["complex64", pytest.param("complex128", marks=pytest.mark.thorough)])
def test_complex_numbers(gpu: SimpleNamespace, dtype: str) -> None:
    part = dtypes.float32 if dtype == "complex64" else dtypes.float64
    x, y = values((3, 5), dtype), values((5,), dtype, 1)
    for op in COMPLEX_OPS:
        out = {"Tout": part} if op in ("Real", "Imag", "ComplexAbs") else {}
        gpu.same(op, [x, y][: count_of(op)], rtol=1e-5, **out)
    gpu.same("Complex", [x.real, x.imag], Tout=dtypes.as_dtype(dtype))
    gpu.same("Cast", [x.real], DstT=dtypes.as_dtype(dtype))
    gpu.same("SelectV2", [x.real > 1, x, y])
    gpu.same("AddN", [x, x, x])


@pytest.mark.parametrize("dtype", ["complex64", pytest.param("complex128", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("op", ["Sum", "Prod", "Mean"])
def test_reductions_of_complex_numbers(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    for shape, axes in (((), []), ((3, 5), [0]), ((2, 70), [1]), ((0, 2), [0]), ((2, 3, 2), [0, 2])):
        gpu.same(op, [values(shape, dtype), np.array(axes, np.int32)], keep_dims=len(shape) == 2, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["complex64", pytest.param("complex128", marks=pytest.mark.thorough)])
def test_complex_numbers_meet_in_rows(gpu: SimpleNamespace, dtype: str) -> None:
    x, y, rows = values((4, 2), dtype), values((3, 2), dtype, 1), np.array([[2], [0], [2]])

    gpu.same("UnsortedSegmentSum", [y, rows[:, 0], np.int32(4)])
    gpu.same("ScatterNd", [rows, y, np.array([4, 2])])
    for op in ("Add", "Sub"):
        gpu.same(f"TensorScatter{op}", [x, rows, y])
    pair = Pair([x, rows, y], (0,), resource=True)
    pair.run(gpu, "ResourceScatterNdAdd")
    ((ours, theirs),) = pair.values()
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
