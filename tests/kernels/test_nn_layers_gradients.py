"""Gradients behind tf.layers, tf.linalg, tf.signal and second derivatives, against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op

RNG = np.random.default_rng(29)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def positive(*shape: int) -> np.ndarray:
    return RNG.uniform(0.5, 2.0, shape)


def well_conditioned(n: int) -> np.ndarray:
    return normal(n, n) + 3 * np.eye(n)


IDS = np.array([0, 0, 1, 2, 2], np.int32)
MIXED = np.array([1, 0, -1, 1, 2], np.int32)

FIRST = {
    "Cumprod": (lambda x: tf.cumprod(x, axis=1), [positive(3, 4)]),
    "Cumprod exclusive reverse": (lambda x: tf.cumprod(x, 0, exclusive=True, reverse=True), [positive(3, 4)]),
    "EuclideanNorm": (lambda x: tf.math.reduce_euclidean_norm(x, 1), [normal(3, 4)]),
    "SegmentMean": (lambda x: tf.segment_mean(x, IDS), [normal(5, 3)]),
    "SegmentMax": (lambda x: tf.segment_max(x, IDS), [normal(5, 3)]),
    "SegmentMin": (lambda x: tf.segment_min(x, IDS), [normal(5, 3)]),
    "UnsortedSegmentMax": (lambda x: tf.unsorted_segment_max(x, MIXED, 3), [normal(5, 3)]),
    "UnsortedSegmentMin": (lambda x: tf.unsorted_segment_min(x, MIXED, 3), [normal(5, 3)]),
    "UnsortedSegmentProd": (lambda x: tf.unsorted_segment_prod(x, MIXED, 3), [positive(5, 3)]),
    "unsorted_segment_mean": (lambda x: tf.unsorted_segment_mean(x, MIXED, 3), [normal(5, 3)]),
    "Xlogy": (lambda x, y: tf.raw_ops.Xlogy(x=x, y=y), [normal(3, 4), positive(4)]),
    "Xdivy": (lambda x, y: tf.math.xdivy(x, y), [normal(3, 4), positive(4)]),
    "Roll": (lambda x: tf.roll(x, [1, 2], [0, 1]) * np.arange(12.0).reshape(3, 4), [normal(3, 4)]),
    "MatrixDiagPart": (lambda x: tf.matrix_diag_part(x), [normal(2, 3, 4)]),
    "MatrixTriangularSolve": (
        lambda a, b: tf.matrix_triangular_solve(a, b, lower=False, adjoint=True), [well_conditioned(3), normal(3, 2)]
    ),
    "cholesky_solve": (lambda a, b: tf.cholesky_solve(a, b), [well_conditioned(3), normal(3, 2)]),
    "SelfAdjointEigV2": (lambda a: tf.self_adjoint_eigvals(a + tf.matrix_transpose(a)), [normal(3, 3)]),
    "Svd": (lambda a: tf.svd(a, compute_uv=False), [normal(4, 3)]),
    "Qr": (lambda a: tf.qr(a)[0] * np.arange(12.0).reshape(4, 3), [normal(4, 3)]),
    "Qr r": (lambda a: tf.qr(a)[1] * np.arange(9.0).reshape(3, 3), [normal(4, 3)]),
    "ExtractImagePatches": (
        lambda x: tf.extract_image_patches(x, [1, 2, 3, 1], [1, 1, 2, 1], [1, 1, 1, 1], "SAME"), [normal(2, 4, 5, 2)]
    ),
    "Angle": (lambda x, y: tf.angle(tf.complex(x, y)), [positive(3), positive(3)]),
    "ComplexAbs": (lambda x, y: tf.raw_ops.ComplexAbs(x=tf.complex(x, y), Tout=tf.float64), [normal(3), normal(3)]),
    "Conj": (lambda x, y: tf.imag(tf.conj(tf.complex(x, y)) * (2 + 1j)), [normal(3), normal(3)]),
    "einsum": (lambda x, y: tf.einsum("bij,bjk->bik", x, y), [normal(2, 3, 4), normal(2, 4, 2)]),
    "einsum sums": (lambda x, y: tf.einsum("ij,jk->k", x, y), [normal(3, 4), normal(4, 2)]),
    "tensordot": (lambda x, y: tf.tensordot(x, y, [[0, 2], [1, 0]]), [normal(3, 2, 4), normal(4, 3)]),
    "norm": (lambda x: tf.norm(x, axis=1), [normal(3, 4)]),
    "atrous": (lambda x, w: tf.nn.atrous_conv2d(x, w, 2, "SAME"), [normal(1, 5, 5, 2), normal(2, 2, 2, 3)]),
    "separable": (
        lambda x, d, p: tf.nn.separable_conv2d(x, d, p, [1, 1, 1, 1], "VALID"),
        [normal(1, 4, 4, 2), normal(2, 2, 2, 2), normal(1, 1, 4, 3)],
    ),
    "conv1d": (lambda x, w: tf.nn.conv1d(x, w, 2, "SAME"), [normal(2, 6, 2), normal(3, 2, 3)]),
    "transposed": (
        lambda x, w: tf.nn.conv2d_transpose(x, w, [1, 6, 6, 2], 2), [normal(1, 3, 3, 3), normal(2, 2, 2, 3)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("case", FIRST)
def test_first_derivatives(case, static):
    if not static and case in ("einsum", "einsum sums", "Qr", "Qr r", "atrous", "separable"):
        pytest.skip("needs ranks and channels that are known when the graph is built")
    build, values = FIRST[case]

    assert directional_error(build, values, static_shapes=static) < 1e-5


SECOND = {
    "Elu": (lambda x: tf.nn.elu(x), normal(3, 4)),
    "Selu": (lambda x: tf.nn.selu(x), normal(3, 4)),
    "LeakyRelu": (lambda x: tf.nn.leaky_relu(x), normal(3, 4)),
    "Softplus": (lambda x: tf.nn.softplus(x), normal(3, 4)),
    "Softsign": (lambda x: tf.nn.softsign(x), normal(3, 4)),
    "Sqrt": (lambda x: tf.sqrt(x), positive(3, 4)),
    "Rsqrt": (lambda x: tf.rsqrt(x), positive(3, 4)),
    "Reciprocal": (lambda x: tf.reciprocal(x), positive(3, 4)),
}


@pytest.mark.parametrize("case", SECOND)
def test_second_derivatives(case):
    build, value = SECOND[case]

    def slope(x):
        return tf.gradients(tf.square(build(x)), x)[0]

    assert directional_error(slope, [value]) < 1e-5


@pytest.mark.parametrize(("length", "suffix", "shape"), [([6], "", (2, 6)), ([5], "", (2, 5)), ([4, 6], "2D", (4, 6))])
def test_transforms_of_real_signals_and_back(length, suffix, shape):
    weights = normal(*shape[: -len(length)], *length)

    def there(x):
        spectrum = apply_op("RFFT" + suffix, input=x, fft_length=length, Tcomplex=tf.complex128)
        return tf.real(spectrum) + 2.0 * tf.imag(spectrum)

    def and_back(x):
        spectrum = apply_op("RFFT" + suffix, input=x, fft_length=length, Tcomplex=tf.complex128)
        bent = spectrum * tf.complex(tf.real(spectrum), tf.zeros_like(tf.real(spectrum)))
        return apply_op("IRFFT" + suffix, input=bent, fft_length=length, Treal=tf.float64) * weights

    assert directional_error(there, [normal(*shape)]) < 1e-6
    assert directional_error(and_back, [normal(*shape)]) < 1e-6
