"""WAV files of 16-bit samples to arrays and back. Used by audio.py and summary_media.py.

Follows TensorFlow's wav_io.cc: which chunks are passed over, and what of a header must agree.
"""

from __future__ import annotations

import struct

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid

_PCM, _BITS = 1, 16
#: Chunks that may come before the format.
_PASSED = (b"JUNK", b"bext", b"iXML", b"qlty", b"mext", b"levl", b"link", b"axml")


def encode_wav(samples: Array, rate: int) -> bytes:
    """The WAV of float [frames, channels] in [-1, 1], as 16-bit integers."""
    channels = samples.shape[1]
    scaled = samples.astype(np.float32) * np.float32(1 << 15)
    # As C's roundf: halves go away from zero.
    rounded = np.copysign(np.floor(np.abs(scaled) + np.float32(0.5)), scaled)
    data = np.clip(rounded, -(1 << 15), (1 << 15) - 1).astype("<i2").tobytes()
    # what 32 bits do not hold is cut off there, as TensorFlow does
    second, frame = rate * channels * 2 & 0xFFFFFFFF, channels * 2 & 0xFFFF
    layout = struct.pack("<IHHIIHH", 16, _PCM, channels, rate, second, frame, _BITS)
    length = struct.pack("<I", len(data))
    return b"".join((b"RIFF", struct.pack("<I", 36 + len(data)), b"WAVE", b"fmt ", layout, b"data", length, data))


class _Reader:
    """Takes a file's bytes from the front. Raises InvalidArgumentError where there are too few."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            raise invalid(f"Data too short when trying to read string: {size} bytes at {self.at} of {len(self.data)}")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def expect(self, text: bytes) -> None:
        found = self.take(len(text))
        if found != text:
            raise invalid(f"Header mismatch: Expected {text.decode()} but found {found!r}")

    def number(self) -> int:
        return int.from_bytes(self.take(4), "little")


def decode_wav(data: bytes) -> tuple[Array, int]:
    """float32 [samples, channels] and the rate. Raises InvalidArgumentError for what is no WAV of 16 bits."""
    reader = _Reader(data)
    reader.expect(b"RIFF")
    reader.number()
    reader.expect(b"WAVE")
    while (kind := reader.take(4)) in _PASSED:
        reader.take(reader.number())
    if kind != b"fmt ":
        raise invalid(f"Header mismatch: Expected fmt  but found {kind!r}")
    channels, rate = _format(reader)
    found = None
    while reader.at < len(data):
        kind, size = reader.take(4), reader.number()
        if size > (1 << 31) - 1:
            raise invalid(f"WAV data chunk {kind!r} is too large: {size} bytes, but the limit is {(1 << 31) - 1}")
        if kind != b"data":
            reader.at += size
        elif found is not None:
            raise invalid("More than one data chunk found in WAV")
        else:
            count = size // (2 * channels)
            found = reader.take(count * 2 * channels)
    if found is None:
        raise invalid("No data chunk found in WAV")
    allow((len(found) // 2,), np.float32)
    samples = np.frombuffer(found, "<i2").astype(np.float32) * np.float32(1 / (1 << 15))
    return samples.reshape(-1, channels), rate


def _format(reader: _Reader) -> tuple[int, int]:
    """Channels and rate of the format chunk, which begins with its size."""
    size = reader.number()
    if size not in (16, 18):
        raise invalid(f"Bad format chunk size for WAV: Expected 16 or 18, but got {size}")
    kind, channels, rate, per_second, per_sample, bits = struct.unpack("<HHIIHH", reader.take(16))
    if kind != _PCM:
        raise invalid(f"Bad audio format for WAV: Expected 1 (PCM), but got {kind}")
    if channels < 1:
        raise invalid(f"Bad number of channels for WAV: Expected at least 1, but got {channels}")
    if bits != _BITS:
        raise invalid(f"Can only read 16-bit WAV files, but received {bits}")
    if per_sample != 2 * channels:
        raise invalid(f"Bad bytes per sample in WAV header: Expected {2 * channels} but got {per_sample}")
    if per_second != (per_sample * rate) % (1 << 32):
        raise invalid(
            f"Bad bytes per second in WAV header: Expected {per_sample * rate} but got {per_second} "
            f"(sample_rate={rate}, bytes_per_sample={per_sample})"
        )
    if rate > (1 << 31) - 1:
        raise invalid(f"Bad sample rate for WAV: {rate}")
    reader.take(size - 16)
    return channels, rate
