"""`tf.signal`: windows, cosine transforms, shifted spectra, and the mel scale.

spectral_frames.py has frames and their transforms. Follows the definitions of TensorFlow 1.15's
ops/signal/{window,dct,mel,mfcc,fft}_ops.py.
"""

from __future__ import annotations

import math as python_math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, math
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.generated_ops import roll
from tenfold.ops.math_complex import complex as complex_
from tenfold.ops.math_complex import real
from tenfold.ops.spectral import irfft, rfft
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "dct",
    "fftshift",
    "hamming_window",
    "hann_window",
    "idct",
    "ifftshift",
    "linear_to_mel_weight_matrix",
    "mfccs_from_log_mel_spectrograms",
]

# -- windows -----------------------------------------------------------------------------------------------------------


def hann_window(
    window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """The Hann window of so many samples; `periodic` for spectra, else symmetric. Raises ValueError for a type."""
    return _raised_cosine(name, "hann_window", window_length, periodic, dtype, 0.5, 0.5)


def hamming_window(
    window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """The Hamming window of so many samples; `periodic` for spectra, else symmetric. Raises ValueError for a type."""
    return _raised_cosine(name, "hamming_window", window_length, periodic, dtype, 0.54, 0.46)


def _raised_cosine(
    name: str | None, default_name: str, length: Any, periodic: Any, dtype: Any, a: float, b: float
) -> Tensor:
    dtype = as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"dtype must be a floating point type. Found {dtype}")
    with name_scope(name, default_name, [length, periodic]):
        length = convert_to_tensor(length, dtype=dtypes.int32, name="window_length")
        length.shape.assert_has_rank(0)
        known = known_value(length)
        if known == 1:
            one: Tensor = array.ones([1], dtype=dtype)
            return one
        is_periodic = math.cast(convert_to_tensor(periodic, dtype=dtypes.bool_, name="periodic"), dtypes.int32)
        is_periodic.shape.assert_has_rank(0)
        # an odd window is symmetric either way
        period = length + is_periodic * (1 - math.mod(length, 2)) - 1

        def window() -> Any:
            angle = convert_to_tensor(2 * np.pi, dtype) * math.cast(math.range(length), dtype)
            return math.cast(a - b * math.cos(angle / math.cast(period, dtype)), dtype)

        if known is not None:
            whole: Tensor = window()
            return whole
        chosen: Tensor = cond(math.equal(length, 1), lambda: array.ones([1], dtype=dtype), window)
        return chosen


# -- cosine transforms -------------------------------------------------------------------------------------------------


def dct(
    input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, name: str | None = None
) -> Tensor:
    """The discrete cosine transform of float32 values along the last dimension, type I, II or III, as SciPy's.

    `n` cuts or fills the dimension first; `norm` may be "ortho", but for type I. Raises ValueError for anything else,
    NotImplementedError for another axis.
    """
    with name_scope(name, "dct", [input]):
        x = convert_to_tensor(input, dtype=dtypes.float32)
        _check_dct(x, type, n, axis, norm)
        size: Any = x.shape[-1].value if x.shape.ndims and x.shape[-1].value else array.shape(x)[-1]
        if n is not None:
            x = x[..., :n]
            rank = x.shape.ndims or 0
            if not (isinstance(size, int) and size >= n):
                x = array.pad(x, [[0, 0]] * (rank - 1) + [[0, math.maximum(0, n - array.shape(x)[-1])]])
                x.set_shape([*x.shape.as_list()[:-1], n])
            size = n
        if type == 1:
            mirrored: Tensor = real(rfft(array.concat([x, x[..., -2:0:-1]], -1)))
            return mirrored
        length = math.cast(size, dtypes.float32)
        angle = math.range(length) * python_math.pi * 0.5 / length
        if type == 2:
            scale = 2.0 * math.exp(complex_(0.0, -angle))
            spectrum = rfft(x, fft_length=[2 * size])[..., :size]
            result = real(spectrum * scale)
            if norm == "ortho":
                first = 0.5 * math.rsqrt(length)
                result = result * _first_and_others(first, first * python_math.sqrt(2.0), size)
            return result
        if norm == "ortho":
            first = math.sqrt(length)
            x = x * _first_and_others(first, first * python_math.sqrt(0.5), size)
        else:
            x = x * length
        scale = 2.0 * math.exp(complex_(0.0, angle))
        back = irfft(scale * complex_(x, 0.0), fft_length=[2 * size])
        return real(back)[..., :size] if back.dtype.is_complex else back[..., :size]


def _first_and_others(first: Any, others: Any, size: Any) -> Tensor:
    return array.concat([array.expand_dims(first, 0), array.fill(array.expand_dims(size - 1, 0), others)], 0)


def _check_dct(x: Tensor, kind: int, n: int | None, axis: int, norm: str | None) -> None:
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if n is not None and n < 1:
        raise ValueError("n should be a positive integer or None")
    if kind not in (1, 2, 3):
        raise ValueError("Only Types I, II and III (I)DCT are supported.")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}")
    if kind == 1:
        if norm == "ortho":
            raise ValueError("Normalization is not supported for the Type-I DCT.")
        if x.shape.ndims and x.shape[-1].value is not None and x.shape[-1].value < 2:
            raise ValueError("Type-I DCT requires the dimension to be greater than one.")


def idct(
    input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, name: str | None = None
) -> Tensor:
    """The inverse of `dct` but for a factor, as SciPy's: type II is undone by III, and I by itself."""
    return dct(input, {1: 1, 2: 3, 3: 2}.get(type, type), n, axis, norm, name)


# -- spectra -----------------------------------------------------------------------------------------------------------


def fftshift(x: Any, axes: int | Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """`x` with frequency 0 moved to the middle of these dimensions (default: all), as NumPy's."""
    return _shifted(x, axes, name, "fftshift", lambda size: size // 2)


def ifftshift(x: Any, axes: int | Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, name, "ifftshift", lambda size: -(size // 2))


def _shifted(x: Any, axes: Any, name: str | None, default_name: str, by: Any) -> Tensor:
    with name_scope(name, default_name, [x]):
        x = convert_to_tensor(x)
        if axes is None:
            axes = list(range(x.shape.ndims))
        several = [axes] if isinstance(axes, int) else list(axes)
        sizes = array.shape(x)
        static = x.shape.as_list() if x.shape.ndims is not None else None
        shifts = [by(sizes[axis] if static is None or static[axis] is None else static[axis]) for axis in several]
        return roll(x, array.stack(shifts), array.stack(several))  # type: ignore[no-any-return]


# -- the mel scale -----------------------------------------------------------------------------------------------------

_BREAK_HERTZ = 700.0
_HIGH_Q = 1127.0


def _mel(hertz: Any) -> Any:
    return _HIGH_Q * np.log1p(np.asarray(hertz, np.float64) / _BREAK_HERTZ)


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: Any = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """The matrix (num_spectrogram_bins, num_mel_bins) of triangular bands on the mel scale, to multiply spectra with.

    Raises ValueError for sizes and edges that are not positive, in order and below half the sample rate, or a sample
    rate that is not known when the graph is built.
    """
    dtype = as_dtype(dtype)
    rate = known_value(sample_rate) if isinstance(sample_rate, Tensor) else sample_rate
    if rate is None:
        raise ValueError("`sample_rate` was a non-constant Tensor. Must be a Python float or a constant Tensor.")
    _check_mel(num_mel_bins, rate, lower_edge_hertz, upper_edge_hertz, dtype)
    bins = known_value(num_spectrogram_bins) if isinstance(num_spectrogram_bins, Tensor) else num_spectrogram_bins
    if bins is not None and bins <= 0:
        raise ValueError(f"num_spectrogram_bins must be positive. Got: {bins}")
    with name_scope(name, "linear_to_mel_weight_matrix") as scope:
        edges = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), num_mel_bins + 2)
        lower, center, upper = edges[None, :-2], edges[None, 1:-1], edges[None, 2:]
        if bins is not None:
            # bin 0, the constant part, has no weight
            mels = _mel(np.linspace(0.0, float(rate) / 2.0, int(bins)))[1:, None]
            slopes = np.minimum((mels - lower) / (center - lower), (upper - mels) / (upper - center))
            weights = np.pad(np.maximum(0.0, slopes), [[1, 0], [0, 0]])
            return array.constant(weights.astype(dtype.as_numpy_dtype), dtype, name=scope)
        frequencies = math.linspace(array.constant(0.0, dtype), float(rate) / 2.0, num_spectrogram_bins)[1:]
        dynamic = array.expand_dims(_HIGH_Q * math.log(1.0 + frequencies / _BREAK_HERTZ), 1)
        as_type = dtype.as_numpy_dtype
        rising = (dynamic - lower.astype(as_type)) / (center - lower).astype(as_type)
        falling = (upper.astype(as_type) - dynamic) / (upper - center).astype(as_type)
        between = math.maximum(array.constant(0.0, dtype), math.minimum(rising, falling))
        return array.pad(between, [[1, 0], [0, 0]], name=scope)


def _check_mel(bins: int, rate: Any, lower: float, upper: float, dtype: Any) -> None:
    if bins <= 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {bins}")
    if rate <= 0.0:
        raise ValueError(f"sample_rate must be positive. Got: {rate}")
    if lower < 0.0:
        raise ValueError(f"lower_edge_hertz must be non-negative. Got: {lower}")
    if lower >= upper:
        raise ValueError(f"lower_edge_hertz {lower:.1f} >= upper_edge_hertz {upper:.1f}")
    if upper > rate / 2:
        raise ValueError(
            "upper_edge_hertz must not be larger than the Nyquist frequency (sample_rate / 2). "
            f"Got: {upper} for sample_rate: {rate}"
        )
    if not dtype.is_floating:
        raise ValueError(f"dtype must be a floating point type. Got: {dtype}")


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """The mel-frequency cepstral coefficients of float32 log spectra (…, mel bins). Raises ValueError for 0 bins."""
    with name_scope(name, "mfccs_from_log_mel_spectrograms", [log_mel_spectrograms]):
        spectra = convert_to_tensor(log_mel_spectrograms, dtype=dtypes.float32)
        bins: Any = spectra.shape[-1].value if spectra.shape.ndims else None
        if bins == 0:
            raise ValueError(f"num_mel_bins must be positive. Got: {spectra}")
        if bins is None:
            bins = array.shape(spectra)[-1]
        result: Tensor = dct(spectra, type=2) * math.rsqrt(math.cast(bins, dtypes.float32) * 2.0)
        return result
