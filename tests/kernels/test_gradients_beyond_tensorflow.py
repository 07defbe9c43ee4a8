"""Gradients where TensorFlow has none, or one that finite differences contradict: complex numbers, zeros, FFT lengths.

What it has is compared in test_gradients_as_tensorflow.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error

RNG = np.random.default_rng(31)
R = tf.raw_ops


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def both(z: Any) -> Any:
    """All of a complex tensor, as numbers that are not symmetric in its parts."""
    return tf.concat([tf.real(z), 2.0 * tf.imag(z)], -1)


def of_complex(op: Any) -> Any:
    """A function of two pairs of real tensors from one of two complex ones."""
    return lambda a, b, c, d: both(op(tf.complex(a, b), tf.complex(c, d)))


def spectrum(name: str, length: list[int]) -> Any:
    return lambda x: both(getattr(R, name)(input=x, fft_length=length, Tcomplex=tf.complex128))


def from_spectrum(name: str, length: list[int]) -> Any:
    return lambda a, b: getattr(R, name)(input=tf.complex(a, b), fft_length=length, Treal=tf.float64)


def lstm(peephole: bool) -> Any:
    names = ["x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b"]

    def build(*inputs: Any) -> Any:
        given = {name: tf.cast(each, tf.float32) for name, each in zip(names, inputs, strict=True)}
        made = R.BlockLSTMV2(seq_len_max=np.int64(2), use_peephole=peephole, **given)
        return tf.concat([made.h, 2.0 * made.cs], -1)

    return build


PAIRS = [normal(2), normal(2), 2 + normal(3, 1), normal(3, 1)]
CELL = [normal(*shape) for shape in ((3, 2, 3), (2, 2), (2, 2), (5, 8), (2,), (2,), (2,), (8,))]
CASES: dict[str, tuple[Any, list[np.ndarray]]] = {
    "Xlogy": (of_complex(lambda x, y: R.Xlogy(x=x, y=y)), PAIRS),
    "Xdivy": (of_complex(lambda x, y: R.Xdivy(x=x, y=y)), PAIRS),
    "MulNoNan": (of_complex(lambda x, y: R.MulNoNan(x=x, y=y)), PAIRS),
    **{
        f"Cumprod {exclusive} {reverse}": (
            lambda a, b, e=exclusive, r=reverse: both(
                R.Cumprod(x=tf.complex(a, b), axis=0, exclusive=e, reverse=r)
            ),
            [normal(4, 2), normal(4, 2)],
        )
        for exclusive in (False, True)
        for reverse in (False, True)
    },
    "Prod": (lambda a, b: both(R.Prod(input=tf.complex(a, b), axis=[0])), [normal(3, 2), normal(3, 2)]),
    "TridiagonalSolve": (
        lambda a, b, c: both(R.TridiagonalSolve(diagonals=tf.complex(a, b), rhs=tf.complex(c, 2.0 * c))),
        [3 + normal(2, 3, 4), normal(2, 3, 4), normal(2, 4, 2)],
    ),
    "Eig": (
        lambda x: tf.abs(R.Eig(input=x, compute_v=False, Tout=tf.complex128)[0]), [np.diag([1.0, 5, 9]) + normal(3, 3)]
    ),
    "SoftsignGrad": (lambda g, x: R.SoftsignGrad(gradients=g, features=x), [normal(4), normal(4)]),
    "BesselI1 at zero": (lambda x: R.BesselI1(x=x), [np.array([0.0, 1e-3, 1.0, -1.0])]),
    "BesselI1e at zero": (lambda x: R.BesselI1e(x=x), [np.array([1e-3, 1.0, -1.0])]),
    "SparseDenseCwiseAdd": (
        lambda v, d: R.SparseDenseCwiseAdd(
            sp_indices=np.array([[0, 1], [1, 0], [1, 2]]), sp_values=v, sp_shape=np.array([2, 3]), dense=d
        ),
        [normal(3), normal(2, 1)],
    ),
    "DepthwiseConv2dNative": (
        lambda x, w: R.DepthwiseConv2dNative(
            input=x, filter=w, strides=[1, 1, 1, 1], padding="SAME", dilations=[1, 2, 2, 1]
        ),
        [normal(1, 5, 4, 2), normal(2, 2, 2, 2)],
    ),
    "Conv2D": (
        lambda x, w: R.Conv2D(input=x, filter=w, strides=[1, 1, 1, 1], padding="VALID", dilations=[1, 2, 1, 1]),
        [normal(1, 5, 4, 2), normal(2, 2, 2, 3)],
    ),
    **{
        f"{name} {length}": (build(name, length), inputs)
        for name, length, build, inputs in (
            ("RFFT", [3], spectrum, [normal(2, 5)]),
            ("RFFT", [4], spectrum, [normal(2, 5)]),
            ("RFFT2D", [2, 3], spectrum, [normal(3, 5)]),
            ("RFFT3D", [2, 3, 4], spectrum, [normal(2, 3, 4)]),
            ("RFFT3D", [2, 2, 3], spectrum, [normal(2, 3, 4)]),
            ("IRFFT", [4], from_spectrum, [normal(2, 5), normal(2, 5)]),
            ("IRFFT", [5], from_spectrum, [normal(2, 4), normal(2, 4)]),
            ("IRFFT2D", [2, 5], from_spectrum, [normal(3, 4), normal(3, 4)]),
            ("IRFFT3D", [2, 3, 4], from_spectrum, [normal(2, 3, 3), normal(2, 3, 3)]),
            ("IRFFT3D", [2, 3, 5], from_spectrum, [normal(2, 3, 3), normal(2, 3, 3)]),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_rule(name: str) -> None:
    build, inputs = CASES[name]

    assert directional_error(build, inputs) < 1e-6


@pytest.mark.parametrize("name", ["RFFT [3]", "IRFFT [5]", "Cumprod False True", "TridiagonalSolve", "Xlogy"])
def test_rule_with_unknown_sizes(name: str) -> None:
    build, inputs = CASES[name]

    assert directional_error(build, inputs, static_shapes=False) < 1e-6


@pytest.mark.parametrize("peephole", [False, True])
def test_a_block_of_cells(peephole: bool) -> None:
    # in float32: as near as differences of it come
    assert directional_error(lstm(peephole), CELL, step=1e-2) < 5e-3


@pytest.mark.parametrize("values", [[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]])
def test_second_derivatives_of_a_product_with_zeros(values: list[float]) -> None:
    def build(x: Any) -> Any:
        return tf.gradients(tf.reduce_prod(x), x)[0]

    assert directional_error(build, [np.array(values)]) < 1e-6


@pytest.mark.parametrize("op", ["SparseSparseMaximum", "SparseSparseMinimum"])
def test_extremes_of_sparse_tensors_have_none(op: str) -> None:
    """Nor has TensorFlow one: it fails with a TypeError of its own there."""
    with tf.Graph().as_default():
        values, places, size = tf.constant([1.0, 2.0]), np.array([[0], [2]]), np.array([3])
        made = getattr(R, op)(
            a_indices=places, a_values=values, a_shape=size,
            b_indices=places, b_values=values, b_shape=size, name="best",
        )  # fmt: skip
        with pytest.raises(NotImplementedError, match=f"Gradient for {op} is currently not implemented yet: 'best'"):
            tf.gradients(made[1], values)
