"""Op definitions: Fourier transforms.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_array as a
from tenfold_core.opdefs.table import family

op = family("spectral")

op("BatchFFT2D", "input: complex64", "output: complex64", shape=s.unchanged)
op("BatchFFT3D", "input: complex64", "output: complex64", shape=s.unchanged)
op("BatchFFT", "input: complex64", "output: complex64", shape=s.unchanged)
op("BatchIFFT2D", "input: complex64", "output: complex64", shape=s.unchanged)
op("BatchIFFT3D", "input: complex64", "output: complex64", shape=s.unchanged)
op("BatchIFFT", "input: complex64", "output: complex64", shape=s.unchanged)
op("FFT2D", "input: Tcomplex", "output: Tcomplex", "Tcomplex: {complex64, complex128} = complex64", shape=s.unchanged)
op("FFT3D", "input: Tcomplex", "output: Tcomplex", "Tcomplex: {complex64, complex128} = complex64", shape=s.unchanged)
op("FFT", "input: Tcomplex", "output: Tcomplex", "Tcomplex: {complex64, complex128} = complex64", shape=s.unchanged)
op("IFFT2D", "input: Tcomplex", "output: Tcomplex", "Tcomplex: {complex64, complex128} = complex64", shape=s.unchanged)
op("IFFT3D", "input: Tcomplex", "output: Tcomplex", "Tcomplex: {complex64, complex128} = complex64", shape=s.unchanged)
op("IFFT", "input: Tcomplex", "output: Tcomplex", "Tcomplex: {complex64, complex128} = complex64", shape=s.unchanged)
op(
    "IRFFT",
    "input: Tcomplex, fft_length: int32",
    "output: Treal",
    "Treal: {float, double} = float",
    "Tcomplex: {complex64, complex128} = complex64",
    shape=a.irfft,
    sized_by="fft_length",
)
op(
    "IRFFT2D",
    "input: Tcomplex, fft_length: int32",
    "output: Treal",
    "Treal: {float, double} = float",
    "Tcomplex: {complex64, complex128} = complex64",
    shape=a.irfft,
    sized_by="fft_length",
)
op(
    "IRFFT3D",
    "input: Tcomplex, fft_length: int32",
    "output: Treal",
    "Treal: {float, double} = float",
    "Tcomplex: {complex64, complex128} = complex64",
    shape=a.irfft,
    sized_by="fft_length",
)
op(
    "RFFT",
    "input: Treal, fft_length: int32",
    "output: Tcomplex",
    "Treal: {float, double} = float",
    "Tcomplex: {complex64, complex128} = complex64",
    shape=a.rfft,
    sized_by="fft_length",
)
op(
    "RFFT2D",
    "input: Treal, fft_length: int32",
    "output: Tcomplex",
    "Treal: {float, double} = float",
    "Tcomplex: {complex64, complex128} = complex64",
    shape=a.rfft,
    sized_by="fft_length",
)
op(
    "RFFT3D",
    "input: Treal, fft_length: int32",
    "output: Tcomplex",
    "Treal: {float, double} = float",
    "Tcomplex: {complex64, complex128} = complex64",
    shape=a.rfft,
    sized_by="fft_length",
)
