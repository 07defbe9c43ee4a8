"""Sounds: WAV files, spectrograms, and mel-frequency cepstral coefficients (MFCC). Outputs are fresh.

WAV files are _wav.py's. Spectrograms and coefficients are computed in double and given in float. Follows
decode_wav_op.cc, spectrogram_op.cc, mfcc_mel_filterbank.cc and mfcc_dct.cc.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_core.opdefs.audio import fft_length
from tenfold_kernels.arrays import Array, as_array, invalid, one_number, shape_text
from tenfold_kernels.cpu._wav import decode_wav, encode_wav
from tenfold_kernels.registry import Compute, KernelNode, kernel

#: What the logarithm of a band of a spectrogram is taken of at least.
_FLOOR = 1e-12


@kernel("DecodeWav")
def build_decode_wav(node: KernelNode) -> Compute:
    """A file → float [samples, channels] and its rate; cut or filled up to what is desired."""
    wanted_channels, wanted_samples = (int(node.attrs[f"desired_{what}"]) for what in ("channels", "samples"))
    if min(wanted_channels, wanted_samples) < -1:
        raise invalid(
            f"desired_channels and desired_samples must be -1 or more, got {wanted_channels} and {wanted_samples}"
        )

    def compute(contents: Array) -> tuple[Array, Array]:
        if contents.ndim:
            raise invalid(f"contents must be scalar, got shape {shape_text(contents.shape)}")
        found, rate = decode_wav(contents.item())
        samples = len(found) if wanted_samples == -1 else wanted_samples
        channels = found.shape[1] if wanted_channels == -1 else wanted_channels
        if found.shape != (samples, channels):
            allow((samples, channels), np.float32)
            out = np.zeros((samples, channels), np.float32)
            both = min(samples, len(found)), min(channels, found.shape[1])
            out[: both[0], : both[1]] = found[: both[0], : both[1]]
            # What a file lacks in channels is the last one that it has.
            out[: both[0], both[1] :] = found[: both[0], both[1] - 1 : both[1]]
            found = out
        return found, np.array(rate, np.int32)

    return compute


@kernel("EncodeWav")
def build_encode_wav(node: KernelNode) -> Compute:
    """float [samples, channels] in [-1, 1] and a rate → a file of 16-bit samples."""

    def compute(audio: Array, sample_rate: Array) -> Array:
        if audio.ndim != 2:
            raise invalid(f"audio must be 2-dimensional, got shape {shape_text(audio.shape)}")
        rate = one_number(sample_rate, "sample_rate")
        if rate <= 0:
            raise invalid(f"sample_rate must be in (0, 2^32), got: {rate}")
        if not 0 < audio.shape[1] < 1 << 16:
            raise invalid(f"num_channels must be in (0, 2^16), got: {audio.shape[1]}")
        if 44 + 2 * audio.size >= 1 << 32:
            raise invalid("Provided channels and frames cannot be encoded as a WAV.")
        return as_array(encode_wav(audio, rate))

    return compute


@kernel("AudioSpectrogram")
def build_audio_spectrogram(node: KernelNode) -> Compute:
    """[samples, channels] → [channels, windows, frequencies]: magnitudes under a Hann window, or their squares."""
    size, stride = int(node.attrs["window_size"]), int(node.attrs["stride"])
    if size < 2 or stride < 1:
        raise invalid(f"window_size must be >= 2 and stride >= 1, got {size} and {stride}")
    squared, length = bool(node.attrs["magnitude_squared"]), fft_length(size)
    allow((size,), np.float64, 3)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)

    def compute(samples: Array) -> Array:
        if samples.ndim != 2:
            raise invalid(f"input must be 2-dimensional, got shape {shape_text(samples.shape)}")
        count = max(0, 1 + (len(samples) - size) // stride)
        shape = samples.shape[1], count, 1 + length // 2
        if 0 in shape:
            return np.zeros(shape, np.float32)
        allow((samples.shape[1], count, length), np.float64, 3)
        by_channel = np.ascontiguousarray(samples.T).astype(np.float64)
        windows = np.lib.stride_tricks.sliding_window_view(by_channel, size, axis=1)[:, ::stride]
        spectrum = np.fft.rfft(windows * window, length, axis=2)
        power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
        return power if squared else np.sqrt(power)

    return compute


@lru_cache(maxsize=16)
def _mel_bank(bins: int, rate: float, channels: int, low: float, high: float) -> Array:
    """What each bin of a spectrum gives to each band: [bins, channels]; triangles, evenly apart in mels."""
    if bins < 2 or rate <= 0 or channels < 1 or not 0 <= low < high < np.inf:
        raise invalid(
            f"Mel filterbank of {channels} bands from {low} to {high} Hz for {bins} frequencies at a rate of {rate}: "
            "there must be at least 1 band and 2 frequencies, and the limits must ascend from 0"
        )
    allow((bins, channels), np.float64, 2)
    centres = _mel(low) + (_mel(high) - _mel(low)) / (channels + 1) * np.arange(1, channels + 2)
    per_bin = 0.5 * rate / (bins - 1)
    first, last = int(1.5 + low / per_bin), int(high / per_bin)
    if last >= bins:
        raise invalid(f"upper_frequency_limit {high} is above half of the sample rate {rate}")
    bank = np.zeros((bins, channels))
    edges = np.concatenate([[_mel(low)], centres])
    for i in range(first, last + 1):
        mel = _mel(i * per_bin)
        # The band whose falling side the bin is on; -1: it is on the first one's rising side.
        band = int(np.searchsorted(centres[:channels], mel, side="left")) - 1
        falling = (edges[band + 2] - mel) / (edges[band + 2] - edges[band + 1])
        if band >= 0:
            bank[i, band] += falling
        if band + 1 < channels:
            bank[i, band + 1] += 1 - falling
    bank.setflags(write=False)
    return bank


def _mel(frequency: float) -> float:
    return float(1127.0 * np.log1p(frequency / 700.0))


@lru_cache(maxsize=16)
def _cosines(bands: int, coefficients: int) -> Array:
    """The discrete cosine transform [bands, coefficients]."""
    angles = np.pi / bands * np.arange(coefficients)[None, :] * (np.arange(bands)[:, None] + 0.5)
    made = as_array(np.sqrt(2.0 / bands) * np.cos(angles))
    made.setflags(write=False)
    return made


@kernel("Mfcc")
def build_mfcc(node: KernelNode) -> Compute:
    """Squared spectrogram [channels, windows, frequencies] and the rate → [channels, windows, coefficients]."""
    high, low = (float(node.attrs[f"{side}_frequency_limit"]) for side in ("upper", "lower"))
    bands, coefficients = int(node.attrs["filterbank_channel_count"]), int(node.attrs["dct_coefficient_count"])
    if bands < 1 or not 1 <= coefficients <= bands:
        raise invalid(
            f"filterbank_channel_count must be positive, and dct_coefficient_count in [1, filterbank_channel_count], "
            f"got {bands} and {coefficients}"
        )

    def compute(spectrogram: Array, sample_rate: Array) -> Array:
        if spectrogram.ndim != 3:
            raise invalid(f"spectrogram must be 3-dimensional, got shape {shape_text(spectrogram.shape)}")
        allow((*spectrogram.shape[:2], bands), np.float64, 3)
        bank = _mel_bank(spectrogram.shape[2], one_number(sample_rate, "sample_rate"), bands, low, high)
        energies = np.sqrt(spectrogram.astype(np.float64)) @ bank
        found = np.log(np.maximum(energies, _FLOOR)) @ _cosines(bands, coefficients)
        return as_array(found.astype(np.float32))

    return compute
