"""Op definitions: sounds: WAV files, spectrograms, and the cepstral coefficients that speech recognisers take.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs.table import family
from tenfold_core.tensor_shape import TensorShape, from_dims

if TYPE_CHECKING:
    from tenfold_core.shape_inference import ShapeContext

    Shapes = list[TensorShape]

op = family("audio")


def fft_length(window_size: int) -> int:
    """The smallest power of two that is not below the window."""
    return 1 << (window_size - 1).bit_length()


def _sound(c: ShapeContext) -> Shapes:
    """[samples, channels] and the rate."""
    known = []
    for name in ("desired_samples", "desired_channels"):
        wanted = int(c.attrs[name])
        if wanted < -1:
            raise ValueError(f"{name.removeprefix('desired_')} must be non-negative, got {wanted}")
        known.append(None if wanted == -1 else wanted)
    return [from_dims(known), TensorShape([])]


def _spectrogram(c: ShapeContext) -> Shapes:
    """[samples, channels] → [channels, windows, frequencies]."""
    samples, channels = c.input(0).with_rank(2).as_list()
    window, stride = int(c.attrs["window_size"]), int(c.attrs["stride"])
    if window < 2 or stride < 1:
        raise ValueError(f"window_size must be >= 2 and stride >= 1, got {window} and {stride}")
    count = None if samples is None else max(0, 1 + (samples - window) // stride)
    return [from_dims([channels, count, 1 + fft_length(window) // 2])]


def _coefficients(c: ShapeContext) -> Shapes:
    channels, length, _ = c.input(0).with_rank(3).as_list()
    return [from_dims([channels, length, int(c.attrs["dct_coefficient_count"])])]


op(
    "AudioSpectrogram",
    "input: float",
    "spectrogram: float",
    "window_size: int",
    "stride: int",
    "magnitude_squared: bool = false",
    shape=_spectrogram,
)
op(
    "DecodeWav",
    "contents: string",
    "audio: float, sample_rate: int32",
    "desired_channels: int = -1",
    "desired_samples: int = -1",
    shape=_sound,
    sized_by="contents",
)
op("EncodeWav", "audio: float, sample_rate: int32", "contents: string", shape=s.scalar)
op(
    "Mfcc",
    "spectrogram: float, sample_rate: int32",
    "output: float",
    "upper_frequency_limit: float = 4000.0",
    "lower_frequency_limit: float = 20.0",
    "filterbank_channel_count: int = 40",
    "dct_coefficient_count: int = 13",
    shape=_coefficients,
)
