"""WAV files, spectrograms and cepstral coefficients; the same beside TensorFlow is tests/interop/audio_cases.py's."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors


def wav(samples: Any, rate: int = 44100, **changed: int) -> bytes:
    """A file; `changed` are fields of its format chunk that are wrong."""
    data = np.asarray(samples, "<i2").tobytes()
    channels = np.asarray(samples).shape[1]
    fields = {
        "size": 16, "kind": 1, "channels": channels, "rate": rate, "per_second": rate * channels * 2,
        "per_sample": channels * 2, "bits": 16,
    } | changed  # fmt: skip
    layout = struct.pack("<IHHIIHH", *fields.values())
    head = b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt "
    return head + layout + b"data" + struct.pack("<I", len(data)) + data


def test_written_and_read(ops: Any) -> None:
    sound = np.float32([[-1, 0.5], [0, 1], [0.25, -0.125]])

    file = ops.run("EncodeWav", [sound, np.int32(8000)])
    read, rate = ops.run("DecodeWav", [file])

    assert rate == 8000
    np.testing.assert_allclose(read, sound, atol=1 / 32767)


@pytest.mark.parametrize(
    ("channels", "samples", "expected"),
    [
        (-1, -1, [[1, 2], [3, 4]]),
        (1, -1, [[1], [3]]),
        (3, -1, [[1, 2, 2], [3, 4, 4]]),
        (-1, 1, [[1, 2]]),
        (-1, 3, [[1, 2], [3, 4], [0, 0]]),
    ],
)
def test_cut_and_filled_up(ops: Any, channels: int, samples: int, expected: Any) -> None:
    sound, _ = ops.run("DecodeWav", [wav([[1, 2], [3, 4]])], desired_channels=channels, desired_samples=samples)

    np.testing.assert_array_equal(sound * (1 << 15), expected)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "Data too short"),
        (b"RIFX" + bytes(40), "Header mismatch: Expected RIFF"),
        (wav([[1]])[:-1], "Data too short"),
        (wav([[1]])[:36], "No data chunk"),
        (wav([[1]], kind=3), r"Expected 1 \(PCM\), but got 3"),
        (wav([[1]], bits=8), "Can only read 16-bit WAV files"),
        (wav([[1]], size=20), "Expected 16 or 18, but got 20"),
        (wav([[1]], channels=0), "Expected at least 1, but got 0"),
        (wav([[1]], per_sample=3), "Bad bytes per sample"),
        (wav([[1]], per_second=3), "Bad bytes per second"),
        (wav([[1]]) + b"data\x02\0\0\0\1\1", "More than one data chunk"),
    ],
)
def test_broken_files(ops: Any, data: bytes, says: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=says):
        ops.run("DecodeWav", [data])


def test_a_spectrogram_shows_a_tone_where_it_is(ops: Any) -> None:
    tone = np.sin(2 * np.pi * 1000 * np.arange(1600) / 16000).astype(np.float32)[:, None]

    spectrogram = ops.run("AudioSpectrogram", [tone], window_size=480, stride=160, magnitude_squared=True)

    assert spectrogram.shape == (1, 8, 257)
    assert (spectrogram[0].argmax(axis=1) == round(1000 / (16000 / 512))).all()
    roots = ops.run("AudioSpectrogram", [tone], window_size=480, stride=160, magnitude_squared=False)
    np.testing.assert_allclose(roots**2, spectrogram, rtol=1e-5)


def test_too_little_sound_has_no_window(ops: Any) -> None:
    assert ops.run("AudioSpectrogram", [np.zeros((9, 2), np.float32)], window_size=10, stride=1).shape == (2, 0, 9)


def test_coefficients_of_silence(ops: Any) -> None:
    found = ops.run("Mfcc", [np.zeros((1, 2, 257), np.float32), np.int32(16000)])

    assert found.shape == (1, 2, 13)
    np.testing.assert_allclose(found[..., 0], np.sqrt(2 * 40) * np.log(1e-12), rtol=1e-6)
    np.testing.assert_allclose(found[..., 1:], 0, atol=1e-3)


def test_limits_that_no_bank_of_filters_has(ops: Any) -> None:
    silence = np.zeros((1, 1, 257), np.float32)
    for limits in ({"lower_frequency_limit": 5000.0}, {"upper_frequency_limit": 9000.0}):
        with pytest.raises(errors.InvalidArgumentError, match=r"Mel filterbank|above half of the sample rate"):
            ops.run("Mfcc", [silence, np.int32(16000)], **limits)
    with pytest.raises(errors.InvalidArgumentError, match="dct_coefficient_count in"):
        ops.run("Mfcc", [silence, np.int32(16000)], dct_coefficient_count=41)
