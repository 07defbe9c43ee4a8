"""Fourier transforms against sums of waves, and against their own inverses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op
from tenfold_core import dtypes

RNG = np.random.default_rng(8)


def wave_sums(x: Any, sign: int) -> Any:
    """The transform of the last dimension, from its definition."""
    n = np.arange(x.shape[-1])
    return x @ np.exp(sign * 2j * np.pi * np.outer(n, n) / x.shape[-1])


def test_the_last_dimension_is_transformed(ops: Any) -> None:
    x = RNG.standard_normal((2, 3, 8)) + 1j * RNG.standard_normal((2, 3, 8))

    np.testing.assert_allclose(ops.run("FFT", [x]), wave_sums(x, -1), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(ops.run("IFFT", [x]), wave_sums(x, 1) / 8, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("suffix", ["", "2D", "3D"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_there_and_back(ops: Any, suffix: str, dtype: Any) -> None:
    x = (RNG.standard_normal((2, 4, 6, 5)) + 1j * RNG.standard_normal((2, 4, 6, 5))).astype(dtype)

    back = ops.run("IFFT" + suffix, [ops.run("FFT" + suffix, [x])])

    assert back.dtype == dtype
    np.testing.assert_allclose(back, x, atol=1e-5 if dtype == np.complex64 else 1e-12)


@pytest.mark.parametrize(("suffix", "length"), [("", [6]), ("2D", [4, 6]), ("3D", [2, 4, 6])])
def test_real_signals_there_and_back(ops: Any, suffix: str, length: list[int]) -> None:
    x = RNG.standard_normal((3, *length)).astype(np.float32)

    spectrum = ops.run("RFFT" + suffix, [x, length])

    assert spectrum.shape == (3, *length[:-1], length[-1] // 2 + 1)
    np.testing.assert_allclose(ops.run("IRFFT" + suffix, [spectrum, length]), x, atol=1e-5)


def test_transforms_of_nothing_show_no_memory(ops: Any) -> None:
    """The length that is asked for gives a result elements that no input stands for."""
    assert not ops.run("RFFT", [np.zeros((3, 0), np.float32), [8]]).any()
    assert not ops.run("IRFFT", [np.zeros((3, 0), np.complex64), [8]]).any()


def test_gradient_of_a_complex_transform() -> None:
    weights = RNG.standard_normal((2, 4))

    def loss(x: Any) -> Any:
        spectrum = apply_op("FFT", input=apply_op("Cast", x=x, DstT=dtypes.complex128))
        return apply_op("Real", input=spectrum, Tout=dtypes.float64) * weights

    assert directional_error(loss, [RNG.standard_normal((2, 4))]) < 1e-6
