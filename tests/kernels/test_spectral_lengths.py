"""Fourier transforms of real signals: how much is read and given for a length, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors

RNG = np.random.default_rng(12)
COMPLEX = (np.complex64, np.complex128)


def matrix(size: int, sign: int) -> Any:
    """Of the transform of a vector, from its definition."""
    n = np.arange(size)
    return np.exp(sign * 2j * np.pi * np.outer(n, n) / max(size, 1))


def transformed(x: Any, axes: int, sign: int) -> Any:
    for axis in range(-axes, 0):
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ matrix(x.shape[axis], sign), -1, axis)
    return x


def close(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    tolerance = 2e-5 if found.dtype in (np.complex64, np.float32) else 1e-11
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def refused(ops: Any, text: str, op: str, inputs: list[Any], **attrs: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        ops.run(op, inputs, **attrs)
    assert error.value.message == text


@pytest.mark.parametrize("prefix", ["", "Batch"])
@pytest.mark.parametrize(("suffix", "axes"), [("", 1), ("2D", 2), ("3D", 3)])
def test_complex_transforms(ops: Any, prefix: str, suffix: str, axes: int) -> None:
    for dtype in COMPLEX if not prefix else COMPLEX[:1]:
        for batch in ((), (2,)):
            shape = (*batch, 3, 4, 5)[-(axes + len(batch)) :]
            x = (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)
            forth, back = ops.run(f"{prefix}FFT{suffix}", [x]), ops.run(f"{prefix}IFFT{suffix}", [x])
            close(forth, transformed(x, axes, -1).astype(dtype))
            close(back, (transformed(x, axes, 1) / np.prod(shape[-axes:])).astype(dtype))
            assert forth.dtype == back.dtype == dtype
        assert ops.run(f"{prefix}FFT{suffix}", [np.zeros((2, 0, 4, 0), dtype)]).shape == (2, 0, 4, 0)
        assert ops.run(f"{prefix}IFFT{suffix}", [np.zeros((0, 1, 4, 2), dtype)]).dtype == dtype
    low = np.zeros((2,) * (axes - 1), np.complex64)
    text = f"Input must have rank of at least {axes} but got: [{','.join(['2'] * (axes - 1))}]"
    refused(ops, text, f"{prefix}FFT{suffix}", [low])
    refused(ops, text, f"{prefix}IFFT{suffix}", [low])


@pytest.mark.parametrize(("suffix", "axes"), [("", 1), ("2D", 2), ("3D", 3)])
@pytest.mark.parametrize("wide", [False, True])
def test_real_signals_are_cropped_to_a_length(ops: Any, suffix: str, axes: int, wide: bool) -> None:
    real, whole = (np.float64, np.complex128) if wide else (np.float32, np.complex64)
    shape = (2, 4, 5, 6)[-(axes + 1) :]
    x = RNG.standard_normal(shape).astype(real)
    for lengths in itertools.product(*([size, size - 1, 1, 2] for size in shape[-axes:])):
        cropped = x[(slice(None), *(slice(length) for length in lengths))]
        found = ops.run(f"RFFT{suffix}", [x, list(lengths)], Tcomplex=dtypes.as_dtype(whole))
        close(found, transformed(cropped, axes, -1)[..., : lengths[-1] // 2 + 1].astype(whole))
        assert found.dtype == whole


@pytest.mark.parametrize(("suffix", "axes"), [("", 1), ("2D", 2), ("3D", 3)])
@pytest.mark.parametrize("wide", [False, True])
def test_real_signals_of_their_spectrum(ops: Any, suffix: str, axes: int, wide: bool) -> None:
    """More than is read does not count."""
    real, whole = (np.float64, np.complex128) if wide else (np.float32, np.complex64)
    for last in (1, 2, 5, 6):
        shape = (2, 3, 4, last)[-(axes + 1) :]
        x = RNG.standard_normal(shape).astype(real)
        spectrum = transformed(x, axes, -1)[..., : last // 2 + 1]
        more = np.concatenate([spectrum, np.full((*shape[:-1], 2), 99)], axis=-1).astype(whole)
        for given in (spectrum.astype(whole), more):
            found = ops.run(f"IRFFT{suffix}", [given, list(shape[-axes:])], Treal=dtypes.as_dtype(real))
            close(found, x)
            assert found.dtype == real


def test_what_a_transform_of_nothing_gives(ops: Any) -> None:
    for x, length, shape in (
        (np.zeros((3, 0), np.float32), [8], (3, 5)),
        (np.zeros((3, 4), np.float32), [0], (3, 0)),
        (np.zeros((0, 4), np.float32), [4], (0, 3)),
    ):
        found = ops.run("RFFT", [x, length])
        assert (found.shape, found.dtype, found.any()) == (shape, np.complex64, False)
    for x, length, shape in (
        (np.zeros((3, 0), np.complex64), [8], (3, 8)),
        (np.ones((3, 4), np.complex64), [0], (3, 0)),
        (np.zeros((0, 4), np.complex64), [5], (0, 5)),
    ):
        found = ops.run("IRFFT", [x, length])
        assert (found.shape, found.dtype, found.any()) == (shape, np.float32, False)
    assert ops.run("RFFT2D", [np.ones((3, 4), np.float32), [0, 4]]).shape == (0, 3)
    assert not ops.run("RFFT2D", [np.zeros((0, 4), np.float32), [3, 4]]).any()


def test_what_a_real_transform_refuses(ops: Any) -> None:
    x, z = np.ones((2, 3, 4), np.float32), np.ones((2, 3, 4), np.complex64)
    text = "Input must have rank of at least 2 but got: [4]"
    refused(ops, text, "RFFT2D", [x[0, 0], [3, 4]])
    refused(ops, text, "IRFFT2D", [z[0, 0], [3, 4]])
    refused(ops, "fft_length must have shape [1], got [2]", "RFFT", [x, [3, 4]])
    refused(ops, "fft_length must have shape [2], got [1]", "IRFFT2D", [z, [4]])
    refused(ops, "fft_length must have shape [1], got []", "RFFT", [x, 4])
    refused(ops, "fft_length must be >= 0, got [-1]", "RFFT", [x, [-1]])
    refused(ops, "fft_length must be >= 0, got [-2,4]", "IRFFT2D", [z, [-2, 4]])
    refused(ops, "Input dimension 2 must have length of at least 5 but got: 4", "RFFT", [x, [5]])
    refused(ops, "Input dimension 1 must have length of at least 4 but got: 3", "RFFT2D", [x, [4, 4]])
    refused(ops, "Input dimension 0 must have length of at least 3 but got: 2", "RFFT3D", [x, [3, 3, 4]])
    refused(ops, "Input dimension 2 must have length of at least 5 but got: 4", "IRFFT", [z, [8]])
    refused(ops, "Input dimension 1 must have length of at least 4 but got: 3", "IRFFT2D", [z, [4, 4]])
    assert ops.run("IRFFT", [z, [7]]).shape == (2, 3, 7)
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("RFFT2D", [np.zeros((1 << 20, 1, 0), np.float32), [1, (1 << 31) - 1]])
