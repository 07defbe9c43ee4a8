"""`tf.signal`: signals cut into frames that overlap, put together again, and their short-time Fourier transforms.

# F frames, L frame length, S frame step, B bins of a spectrum
spectral.py has the transforms, spectral_scales.py windows and scales. Follows the definitions of TensorFlow 1.15's
ops/signal/{shape,reconstruction,spectral}_ops.py.
"""

from __future__ import annotations

import math as python_math
from typing import TYPE_CHECKING, Any

from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math, slicing
from tenfold.ops.spectral import irfft, rfft
from tenfold.ops.spectral_scales import hann_window
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.tensor import Tensor

__all__ = ["frame", "inverse_stft", "inverse_stft_window_fn", "overlap_and_add", "stft"]


def _scalar(value: Any, name: str) -> Tensor:
    tensor = convert_to_tensor(value, name=name)
    tensor.shape.assert_has_rank(0)
    return tensor


def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: Any = -1,
    name: str | None = None,
) -> Tensor:
    """The dimension `axis` of (…, samples, …) as (…, F, L, …), a frame beginning each S samples.

    What does not fill a frame at the end is left out, or with `pad_end` filled with `pad_value`. Raises ValueError for
    a signal without dimensions, or arguments that are not scalars.
    """
    with name_scope(name, "frame", [signal, frame_length, frame_step, pad_value]):
        signal = convert_to_tensor(signal, name="signal")
        length, step = _scalar(frame_length, "frame_length"), _scalar(frame_step, "frame_step")
        axis = _scalar(axis, "axis")
        signal.shape.with_rank_at_least(1)
        static = _static_frames(signal, length, step, pad_end, known_value(axis))
        rank = array.rank(signal)
        axis = math.range(rank)[axis]
        samples = array.shape(signal)[axis]
        if pad_end:
            frames = -(-samples // step)
            missing = math.maximum(0, length + step * (frames - 1) - samples)
            pad_value = convert_to_tensor(pad_value, signal.dtype)
            pad_value.shape.assert_has_rank(0)
            none_before = array.zeros([rank], dtypes.int32)
            behind = slicing.one_hot(axis, rank, missing, array.zeros_like(missing))
            signal = array.pad(signal, array.stack([none_before, behind], axis=1), constant_values=pad_value)
        else:
            frames = math.maximum(0, 1 + (samples - length) // step)
        begins = array.expand_dims(math.range(frames) * step, 1)
        result = slicing.gather(signal, begins + array.expand_dims(math.range(length), 0), axis=axis)
        if static is not None:
            result.set_shape(static)
        return result


def _static_frames(signal: Tensor, length: Tensor, step: Tensor, pad_end: bool, axis: Any) -> list[Any] | None:
    if signal.shape.ndims is None:
        return None
    if axis is None:
        return [None] * (signal.shape.ndims + 1)
    sizes = signal.shape.as_list()
    axis = int(axis) % len(sizes)
    samples, known_length, known_step = sizes[axis], known_value(length), known_value(step)
    frames = None
    if samples is not None and known_step is not None:
        if pad_end:
            frames = max(0, -(-samples // int(known_step)))
        elif known_length is not None:
            frames = max(0, (samples - int(known_length) + int(known_step)) // int(known_step))
    return [*sizes[:axis], frames, None if known_length is None else int(known_length), *sizes[axis + 1 :]]


def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """The frames (…, F, L) put together again, each S samples after the other and added where they overlap.

    Gives (…, (F - 1) · S + L). Raises ValueError for fewer than two dimensions or a step that is not an integer.
    """
    with name_scope(name, "overlap_and_add", [signal, frame_step]):
        signal = convert_to_tensor(signal, name="signal")
        signal.shape.with_rank_at_least(2)
        step = _scalar(frame_step, "frame_step")
        if not step.dtype.is_integer:
            raise ValueError(f"frame_step must be an integer. Got {step.dtype}")
        step = math.cast(step, dtypes.int32)
        shape = array.shape(signal)
        outer, frames, length = shape[:-2], shape[-2], shape[-1]
        known_step, sizes = known_value(step), signal.shape.dims and signal.shape.as_list()
        if sizes and known_step is not None and sizes[-1] == int(known_step):
            # nothing overlaps
            return array.reshape(signal, array.concat([outer, [frames * length]], 0), name="fast_path")
        pieces = -(-length // step)
        fill = array.concat([array.zeros([array.size(outer) + 1], dtypes.int32), [pieces * step - length]], 0)
        filled = array.pad(signal, array.stack([array.zeros_like(fill), fill], axis=1))
        # (frame, piece, outer, sample): a piece of a frame is added to piece `frame + piece` of the output
        cut = array.transpose(array.reshape(filled, [-1, frames, pieces, step]), [1, 2, 0, 3])
        number = array.expand_dims(math.range(frames), 1) + array.expand_dims(math.range(pieces), 0)
        summed = math.unsorted_segment_sum(cut, number, frames + pieces - 1)
        joined = array.reshape(array.transpose(summed, [1, 0, 2]), array.concat([outer, [-1]], 0))
        result = joined[..., : (frames - 1) * step + length]
        if sizes:
            whole = None if None in (known_step, *sizes[-2:]) else (sizes[-2] - 1) * int(known_step) + sizes[-1]
            result.set_shape([*sizes[:-2], whole])
        return result


def _enclosing_power_of_two(length: Tensor) -> Any:
    known = known_value(length)
    if known is not None:
        return convert_to_tensor(2 ** python_math.ceil(python_math.log2(int(known))), length.dtype)
    exponent = math.ceil(math.log(math.cast(length, dtypes.float32)) / python_math.log(2.0))
    return math.cast(math.pow(2.0, exponent), length.dtype)


def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Callable[..., Any] | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The short-time Fourier transform of (…, samples): complex (…, F, B), B being fft_length // 2 + 1.

    `fft_length` is by default the next power of two from L on; `window_fn(length, dtype=…)` gives a window.
    """
    with name_scope(name, "stft", [signals, frame_length, frame_step]):
        signals = convert_to_tensor(signals, name="signals")
        signals.shape.with_rank_at_least(1)
        length, step = _scalar(frame_length, "frame_length"), _scalar(frame_step, "frame_step")
        size = _enclosing_power_of_two(length) if fft_length is None else convert_to_tensor(fft_length)
        framed = frame(signals, length, step, pad_end=pad_end)
        if window_fn is not None:
            framed = framed * window_fn(length, dtype=framed.dtype)
        return rfft(framed, [size])  # type: ignore[no-any-return]


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Callable[..., Any] = hann_window, name: str | None = None
) -> Callable[..., Any]:
    """A window function with which `inverse_stft` undoes an `stft` of windows by `forward_window_fn`."""

    def window_fn(frame_length: Any, dtype: Any) -> Tensor:
        with name_scope(name, "inverse_stft_window_fn", [forward_window_fn]):
            length, step = _scalar(frame_length, "frame_length"), _scalar(frame_step, "frame_step")
            window = forward_window_fn(length, dtype=dtype)
            overlaps = -(-length // step)
            squares = array.pad(math.square(window), [[0, overlaps * step - length]])
            power = math.reduce_sum(array.reshape(squares, [overlaps, step]), 0, keepdims=True)
            whole: Tensor = window / array.reshape(array.tile(power, [overlaps, 1]), [-1])[:length]
            return whole

    return window_fn


def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Callable[..., Any] | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """The signals (…, samples) of transforms (…, F, B). With `inverse_stft_window_fn` it is exact in the middle."""
    with name_scope(name, "inverse_stft", [stfts]):
        stfts = convert_to_tensor(stfts, name="stfts")
        stfts.shape.with_rank_at_least(2)
        length, step = _scalar(frame_length, "frame_length"), _scalar(frame_step, "frame_step")
        size = _enclosing_power_of_two(length) if fft_length is None else _scalar(fft_length, "fft_length")
        frames = irfft(stfts, [size])
        # the transform may be longer or shorter than a frame
        missing = math.maximum(0, length - array.shape(frames)[-1])
        fill = array.concat([array.zeros([array.rank(frames) - 1], dtypes.int32), [missing]], 0)
        frames = array.pad(frames, array.stack([array.zeros_like(fill), fill], axis=1))[..., :length]
        known = known_value(length)
        if known is not None and stfts.shape.ndims is not None:
            frames.set_shape([*stfts.shape.as_list()[:-1], int(known)])
        if window_fn is not None:
            frames = frames * window_fn(length, dtype=stfts.dtype.real_dtype)
        return overlap_and_add(frames, step)
