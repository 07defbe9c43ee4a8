"""WAV files, spectrograms and cepstral coefficients; the same beside TensorFlow is tests/interop/audio_cases.py's."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from support.room import assert_wants
from tenfold_core import errors
from tenfold_kernels.cpu import audio
from tenfold_kernels.cpu._wav import decode_wav, encode_wav


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


def refused(text: str, run: Any, *inputs: Any, **attrs: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        run(*inputs, **attrs)
    assert error.value.message == text


def chunk(kind: bytes, data: bytes, size: int | None = None) -> bytes:
    return kind + struct.pack("<I", len(data) if size is None else size) + data


def riff(*chunks: bytes) -> bytes:
    return b"RIFF\0\0\0\0WAVE" + b"".join(chunks)


def layout(channels: int = 1, rate: int = 8000, more: bytes = b"") -> bytes:
    fields = (1, channels, rate, rate * channels * 2 % (1 << 32), channels * 2, 16)
    return chunk(b"fmt ", struct.pack("<HHIIHH", *fields) + more)


def test_samples_are_rounded_away_from_zero_and_cut() -> None:
    given = np.float64([0, 0.49, 0.5, -0.5, 1.5, -1.5, 2.5, 32766.6, 32767, 32768, 1e9, -32768, -32769, -1e9]) / 32768
    expected = [0, 0, 1, -1, 2, -2, 3, 32767, 32767, 32767, 32767, -32768, -32768, -32768]
    file = encode_wav(given.reshape(-1, 2), 8000)
    assert file == wav(np.array(expected).reshape(-1, 2), 8000)
    assert np.frombuffer(file[44:], "<i2").tolist() == expected


def test_what_does_not_fit_a_header_is_cut_off() -> None:
    for channels, rate in ((2, (1 << 31) - 1), (40000, 44100), (65535, 1)):
        file = encode_wav(np.zeros((0, channels), np.float32), rate)
        fields = 1, channels, rate, rate * channels * 2 % (1 << 32), channels * 2 % (1 << 16), 16
        head = b"RIFF" + struct.pack("<I", 36) + b"WAVE"
        assert file == head + chunk(b"fmt ", struct.pack("<HHIIHH", *fields)) + chunk(b"data", b"")


@pytest.mark.parametrize("more", [b"", b"\1\2"])
def test_chunks_that_are_passed_over(more: bytes) -> None:
    data = np.array([1, -2, 3, -32768], "<i2").tobytes()
    passed = [chunk(kind, b"x" * n) for n, kind in enumerate(
        (b"JUNK", b"bext", b"iXML", b"qlty", b"mext", b"levl", b"link", b"axml"))]  # fmt: skip
    other, far = chunk(b"LIST", b"abc"), chunk(b"LIST", b"", (1 << 31) - 1)
    for channels, rate in ((1, 8000), (2, (1 << 31) - 1), (1, 0)):
        made = layout(channels, rate, more)
        for file in (
            riff(made, chunk(b"data", data)),
            riff(*passed, made, chunk(b"data", data)),
            riff(made, other, chunk(b"data", data), other),
            riff(made, chunk(b"data", data), far),
        ):
            samples, found = decode_wav(file)
            assert (samples * 32768).tolist() == np.reshape([1, -2, 3, -32768], (-1, channels)).tolist()
            assert (samples.dtype, found) == (np.float32, rate)
    assert decode_wav(riff(layout(), chunk(b"data", b"")))[0].shape == (0, 1)


def test_files_that_are_none() -> None:
    data, limit = chunk(b"data", b"\1\0"), (1 << 31) - 1
    for file, text in (
        (b"RIF", "Data too short when trying to read string: 4 bytes at 0 of 3"),
        (b"RIFF\0\0\0\0WAVX", "Header mismatch: Expected WAVE but found b'WAVX'"),
        (riff(chunk(b"LIST", b""), layout(), data), "Header mismatch: Expected fmt  but found b'LIST'"),
        (riff(chunk(b"JUNK", b"", 9), layout()[:8]), "Data too short when trying to read string: 9 bytes at 20 of 28"),
        (riff(layout(2), chunk(b"data", b"123456")), "Data too short when trying to read string: 4 bytes at 48 of 50"),
        (riff(layout()), "No data chunk found in WAV"),
        (riff(layout(), chunk(b"LIST", b"", limit)), "No data chunk found in WAV"),
        (riff(layout(), chunk(b"LIST", b"", limit + 1), data),
         f"WAV data chunk b'LIST' is too large: {limit + 1} bytes, but the limit is {limit}"),
        (riff(layout(), data, data), "More than one data chunk found in WAV"),
        (riff(layout(rate=limit + 1), data), f"Bad sample rate for WAV: {limit + 1}"),
        (wav([[1]], size=17), "Bad format chunk size for WAV: Expected 16 or 18, but got 17"),
        (wav([[1]], size=15), "Bad format chunk size for WAV: Expected 16 or 18, but got 15"),
        (wav([[1]], kind=0), "Bad audio format for WAV: Expected 1 (PCM), but got 0"),
        (wav([[1]], channels=2, per_second=176400), "Bad bytes per sample in WAV header: Expected 4 but got 2"),
        (wav([[1]], 8000, per_second=16001),
         "Bad bytes per second in WAV header: Expected 16000 but got 16001 (sample_rate=8000, bytes_per_sample=2)"),
    ):  # fmt: skip
        refused(text, decode_wav, file)


def test_a_sound_is_made_as_large_as_it_is_wanted(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = wav([[1, 2], [3, 4]])
    whole = np.array([[1, 2, 2], [3, 4, 4], [0, 0, 0]])
    for channels in range(-1, 4):
        for samples in range(-1, 4):
            sound, rate = ops.run("DecodeWav", [file], desired_channels=channels, desired_samples=samples)
            expected = whole[: 2 if samples == -1 else samples, : 2 if channels == -1 else channels]
            assert ((sound * 32768).tolist(), sound.shape) == (expected.tolist(), expected.shape)
            assert (rate.tolist(), rate.dtype, sound.dtype) == (44100, np.int32, np.float32)
    for channels, samples in ((-2, -1), (-1, -2)):
        text = f"desired_channels and desired_samples must be -1 or more, got {channels} and {samples}"
        refused(text, ops.run, "DecodeWav", [file], desired_channels=channels, desired_samples=samples)
    refused("contents must be scalar, got shape [1]", ops.run, "DecodeWav", [[file]])
    assert_wants(monkeypatch, 4 * 4, lambda: ops.run("DecodeWav", [file]))
    assert_wants(monkeypatch, 7 * 3 * 4, lambda: ops.run("DecodeWav", [file], desired_channels=3, desired_samples=7))


def test_what_no_file_is_made_of(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audio, "encode_wav", lambda samples, rate: b"%d" % rate)
    sound = np.zeros((2, 1), np.float32)
    assert ops.run("EncodeWav", [sound, np.int32(1)]).item() == b"1"
    for rate in (0, -1):
        refused(f"sample_rate must be in (0, 2^32), got: {rate}", ops.run, "EncodeWav", [sound, np.int32(rate)])
    refused("sample_rate must be a scalar, got shape [1]", ops.run, "EncodeWav", [sound, [1]])
    refused("audio must be 2-dimensional, got shape [2]", ops.run, "EncodeWav", [sound[:, 0], 1])
    for channels in (0, 1 << 16):
        text = f"num_channels must be in (0, 2^16), got: {channels}"
        refused(text, ops.run, "EncodeWav", [np.zeros((0, channels), np.float32), 1])
    assert ops.run("EncodeWav", [np.zeros((0, (1 << 16) - 1), np.float32), 1]).item() == b"1"
    long, fits = (np.broadcast_to(np.float32(0), ((1 << 31) - each, 1)) for each in (22, 23))
    refused("Provided channels and frames cannot be encoded as a WAV.", ops.run, "EncodeWav", [long, 1])
    assert ops.run("EncodeWav", [fits, 1]).item() == b"1"


def test_a_spectrogram_is_the_transform_of_each_window(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(4).standard_normal((20, 2)).astype(np.float32)
    for size, stride, length in ((6, 4, 8), (2, 1, 2), (8, 8, 8), (9, 30, 16), (20, 1, 32), (3, 2, 4), (21, 1, 32)):
        hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
        waves = np.exp(-2j * np.pi * np.outer(np.arange(size), np.arange(length // 2 + 1)) / length)
        starts = range(0, len(x) - size + 1, stride)
        expected = np.zeros((2, len(starts), length // 2 + 1))
        for place, start in enumerate(starts):
            expected[:, place] = np.abs((x[start : start + size] * hann[:, None]).T @ waves) ** 2
        for squared in (True, False):
            found = ops.run("AudioSpectrogram", [x], window_size=size, stride=stride, magnitude_squared=squared)
            assert (found.shape, found.dtype) == (expected.shape, np.float32)
            np.testing.assert_allclose(found, expected if squared else np.sqrt(expected), rtol=2e-5, atol=1e-6)
    assert ops.run("AudioSpectrogram", [x[:, :0]], window_size=6, stride=4).shape == (0, 4, 5)
    for size, stride in ((1, 1), (2, 0), (0, 1), (2, -1)):
        text = f"window_size must be >= 2 and stride >= 1, got {size} and {stride}"
        refused(text, ops.run, "AudioSpectrogram", [x], window_size=size, stride=stride)
    refused(
        "input must be 2-dimensional, got shape [20]", ops.run, "AudioSpectrogram", [x[:, 0]], window_size=2, stride=1
    )
    assert_wants(monkeypatch, 2 * 4 * 8 * 8 * 3, lambda: ops.run("AudioSpectrogram", [x], window_size=6, stride=4))
    assert_wants(monkeypatch, 99 * 8 * 3, lambda: ops.run("AudioSpectrogram", [x], window_size=99, stride=4))


def mel(frequency: Any) -> Any:
    return 1127.0 * np.log1p(np.asarray(frequency) / 700.0)


def triangles(bins: int, rate: float, channels: int, low: float, high: float) -> Any:
    """The bank of filters: over mels each rises from the middle of the one before, and falls to that of the next."""
    edges = np.linspace(mel(low), mel(high), channels + 2)
    places = mel(np.arange(bins) * rate / 2 / (bins - 1))[:, None]
    rises = (places - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falls = (edges[2:] - places) / (edges[2:] - edges[1:-1])
    bank = np.maximum(np.minimum(rises, falls), 0)
    bank[: int(1.5 + low / (rate / 2 / (bins - 1)))] = 0
    bank[int(high / (rate / 2 / (bins - 1))) + 1 :] = 0
    return bank


BANKS = [
    (33, 8000, 5, 20, 4000),
    (33, 8000, 20, 300.5, 3100),
    (9, 100, 1, 0, 50),
    (2, 10, 1, 0, 5),
    (65, 8001, 7, 0, 3000),
]


@pytest.mark.parametrize("bank", BANKS, ids=str)
def test_a_bank_of_filters(bank: Any) -> None:
    audio._mel_bank.cache_clear()
    found = audio._mel_bank(*bank)
    np.testing.assert_allclose(found, triangles(*bank), atol=1e-9)
    assert not found.flags.writeable


def test_banks_that_are_none(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    audio._mel_bank.cache_clear()
    for wrong in (
        (1, 8000, 5, 20, 4000), (33, 0, 5, 20, 4000), (33, -1, 5, 20, 4000), (33, 8000, 0, 20, 4000),
        (33, 8000, 5, -1, 4000), (33, 8000, 5, 20, 20), (33, 8000, 5, 30, 20), (33, 8000, 5, 0, np.inf),
    ):  # fmt: skip
        bins, rate, channels, low, high = wrong
        text = (
            f"Mel filterbank of {channels} bands from {low} to {high} Hz for {bins} frequencies at a rate of {rate}: "
            "there must be at least 1 band and 2 frequencies, and the limits must ascend from 0"
        )
        refused(text, audio._mel_bank, *wrong)
    text = "upper_frequency_limit 4126 is above half of the sample rate 8000"
    refused(text, audio._mel_bank, 33, 8000, 5, 20, 4126)
    assert audio._mel_bank(33, 8000, 5, 20, 4124).shape == (33, 5)
    assert_wants(monkeypatch, 3 * 7 * 8 * 2, lambda: audio._mel_bank.__wrapped__(3, 8000, 7, 20, 4000))
    few = np.ones((2, 3, 2), np.float32)
    run = {"filterbank_channel_count": 9, "dct_coefficient_count": 1}
    assert_wants(monkeypatch, 2 * 3 * 9 * 8 * 3, lambda: ops.run("Mfcc", [few, np.int32(8000)], **run))


def test_coefficients_are_waves_of_the_logarithms_of_bands(ops: Any) -> None:
    x = np.random.default_rng(4).uniform(0, 9, (2, 3, 33)).astype(np.float32)
    x[0, 0] = 0
    audio._cosines.cache_clear()
    for bands, count in ((5, 5), (5, 1), (1, 1), (6, 4)):
        logs = np.log(np.maximum(np.sqrt(x.astype(np.float64)) @ triangles(33, 8000, bands, 100, 3000), 1e-12))
        waves = np.cos(np.pi * np.outer(np.arange(bands) + 0.5, np.arange(count)) / bands) * np.sqrt(2 / bands)
        attrs = {"upper_frequency_limit": 3000.0, "lower_frequency_limit": 100.0}
        found = ops.run(
            "Mfcc", [x, np.int32(8000)], filterbank_channel_count=bands, dct_coefficient_count=count, **attrs
        )
        np.testing.assert_allclose(found, logs @ waves, rtol=1e-5, atol=1e-5)
        assert not audio._cosines(bands, count).flags.writeable
    for bands, count in ((0, 0), (0, 1), (5, 0), (5, 6), (-1, -1)):
        text = (
            "filterbank_channel_count must be positive, and dct_coefficient_count in [1, filterbank_channel_count], "
            f"got {bands} and {count}"
        )
        attrs = {"filterbank_channel_count": bands, "dct_coefficient_count": count}
        refused(text, ops.run, "Mfcc", [x, np.int32(8000)], **attrs)
    refused("spectrogram must be 3-dimensional, got shape [3,33]", ops.run, "Mfcc", [x[0], np.int32(8000)])
    refused("sample_rate must be a scalar, got shape [1]", ops.run, "Mfcc", [x, [8000]])
