"""Cases of image and audio ops for the comparison with TensorFlow, beside those of nn_cases.py: test_nn_oracle.py."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from nn_cases import Case, F, ints, normal, scalar, uniform

from tenfold_kernels.cpu._jpeg import Encoding, encode_jpeg

CASES: list[Case] = []


def add(op: str, *inputs: Any, outputs: tuple[int, ...] = (), slack: float = 1.0, **attrs: Any) -> None:
    values = tuple(text(each) if isinstance(each, bytes) else each for each in inputs)
    CASES.append(Case(op, values, attrs, outputs, slack))


def count(value: int) -> np.ndarray:
    return np.array(value, np.int32)


def text(data: bytes) -> np.ndarray:
    out = np.empty((), object)
    out[()] = data
    return out


def _bmp(height: int, width: int, channels: int) -> bytes:
    stride = -(-width * channels // 4) * 4
    pixels = bytes(i % 251 for i in range(stride * abs(height)))
    head = struct.pack("<2sIHHIIiiHH", b"BM", 54 + len(pixels), 0, 0, 54, 40, width, height, 1, channels * 8)
    return head + bytes(24) + pixels


def _gif() -> bytes:
    """Two frames of 2 × 2 pixels, the second smaller, with a transparent colour."""
    screen = b"GIF89a" + struct.pack("<HHBBB", 2, 2, 0x81, 0, 0) + bytes(range(12))
    first = b"," + struct.pack("<HHHHB", 0, 0, 2, 2, 0) + b"\2\3" + b"\x44\x34\x05" + b"\0"
    control = b"!\xf9\4\1\0\0\1\0"
    second = b"," + struct.pack("<HHHHB", 1, 0, 1, 2, 0) + b"\2\2" + bytes((0b11_001_100, 0b1010)) + b"\0"
    return screen + first + control + second + b";"


def _files() -> None:
    for channels in (1, 3, 4):
        for height in (5, -5):
            add("DecodeBmp", _bmp(height, 7, channels))
    add("DecodeGif", _gif())
    add("DecodeImage", _gif(), expand_animations=False, dtype=np.float32)
    add("DecodeImage", _bmp(5, 7, 3), dtype=np.uint16)


def _jpegs() -> None:
    y, x = np.mgrid[:45, :61]
    image = np.stack([x * 4, y * 5, (x * y) % 256], -1).astype(np.uint8)
    for quality, sampled in ((95, True), (60, False)):
        file = encode_jpeg(image, Encoding(quality, sampled=sampled))
        for how in (
            {}, {"dct_method": "INTEGER_ACCURATE"}, {"fancy_upscaling": False}, {"ratio": 2}, {"ratio": 4},
            {"ratio": 8}, {"channels": 1},
        ):  # fmt: skip
            add("DecodeJpeg", file, **how)
        # In colour TensorFlow smooths up to the edge of the window, and not beyond it.
        add("DecodeAndCropJpeg", file, ints(3, 16, 20, 32), channels=1)
        add("ExtractJpegShape", file, output_type=np.int32)
    for how in (
        {}, {"quality": 30}, {"chroma_downsampling": False}, {"progressive": True}, {"optimize_size": True},
        {"density_unit": "cm", "x_density": 7, "y_density": 9}, {"xmp_metadata": "<x/>"},
    ):  # fmt: skip
        add("EncodeJpeg", image, **how)
    add("EncodeJpeg", np.ascontiguousarray(image[..., :1]))
    add("EncodeJpegVariableQuality", image, count(45))


def _boxes() -> None:
    boxes, scores = uniform(0, 1, 40, 4), uniform(0, 1, 40)
    add("NonMaxSuppressionV2", boxes, scores, count(20), scalar(0.4))
    for pads in (False, True):
        add("NonMaxSuppressionV4", boxes, scores, count(12), scalar(0.3), scalar(0.2), pad_to_max_output_size=pads)
        for sigma in (0.0, 0.4):
            add(
                "NonMaxSuppressionV5", boxes, scores, count(30), scalar(0.5), scalar(0.1), scalar(sigma), slack=8,
                pad_to_max_output_size=pads,
            )  # fmt: skip
        add(
            "CombinedNonMaxSuppression", uniform(-0.2, 1.2, 2, 30, 1, 4), uniform(0, 1, 2, 30, 3), count(5), count(9),
            scalar(0.3), scalar(0.3), pad_per_class=pads, clip_boxes=pads,
        )  # fmt: skip
    add("NonMaxSuppressionWithOverlaps", uniform(0, 1, 20, 20), uniform(0, 1, 20), count(9), scalar(0.8), scalar(0.1))
    for depth in (1, 3, 4):
        add("DrawBoundingBoxes", uniform(0, 1, 2, 9, 11, depth), uniform(-0.3, 1.3, 2, 14, 4))
    add("DrawBoundingBoxesV2", uniform(0, 1, 2, 9, 11, 3), uniform(-0.3, 1.3, 2, 5, 4), uniform(0, 1, 3, 4))
    box = np.array([[[0.2, 0.3, 0.6, 0.7], [0.1, 0.1, 0.2, 0.9]]], F)
    for seed in range(1, 7):
        for size in (ints(480, 640, 3), ints(33, 29, 3)):
            add("SampleDistortedBoundingBoxV2", size, box, scalar(0.1 * seed), seed=seed, seed2=7)
    add("SampleDistortedBoundingBox", ints(48, 64, 3), box, seed=3, seed2=4, min_object_covered=0.7, max_attempts=3)
    add("StatelessSampleDistortedBoundingBox", ints(48, 64, 3), box, scalar(0.3), ints(5, 6))


def _glimpses() -> None:
    image = normal(2, 9, 8, 3)
    for op in ("ExtractGlimpse", "ExtractGlimpseV2"):
        for centred in (False, True):
            for normalized in (False, True):
                for offset in (0.3, 2.0) if not normalized else (0.1, 0.3):
                    add(
                        op, image, ints(3, 2), np.array([[offset, offset / 2], [0.2, 0.0]], F), centered=centred,
                        normalized=normalized, uniform_noise=False, noise="zero",
                    )  # fmt: skip


def _scaling() -> None:
    image = normal(2, 9, 8, 3)
    for kernel in ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"):
        for antialias in (False, True):
            how = {"kernel_type": kernel, "antialias": antialias}
            for size, scale in ((ints(5, 11), [0.55, 1.4]), (ints(20, 3), [2.0, 0.4])):
                rest = np.array(scale, F), np.array([0.3, -0.4], F)
                add("ScaleAndTranslate", image, size, *rest, slack=32, **how)
                add("ScaleAndTranslateGrad", normal(2, *size.tolist(), 3), image, *rest, slack=32, **how)


def _colours() -> None:
    image = uniform(0, 1, 2, 6, 7, 3)
    for amount in (-0.3, 0.0, 0.6):
        add("AdjustHue", image, scalar(amount), slack=16)
        add("AdjustSaturation", image, scalar(1 + amount), slack=16)
        add("AdjustContrastv2", image, scalar(amount), slack=16)


def _sounds() -> None:
    sound = uniform(-1, 1, 700, 2)
    for squared in (False, True):
        add("AudioSpectrogram", sound, window_size=120, stride=50, magnitude_squared=squared, slack=32)
    power = uniform(0, 40, 2, 5, 129)
    add("Mfcc", power, count(16000), slack=64)
    add("Mfcc", power, count(8000), upper_frequency_limit=3000.0, filterbank_channel_count=20, slack=64)
    add("EncodeWav", uniform(-1.2, 1.2, 30, 2), count(44100))
    data = bytes(i % 256 for i in range(40))
    layout = struct.pack("<IHHIIHH", 16, 1, 2, 8000, 32000, 4, 16)
    file = b"RIFF" + struct.pack("<I", 76) + b"WAVEfmt " + layout + b"data" + struct.pack("<I", 40) + data
    for channels, samples in ((-1, -1), (1, 5), (3, 12)):
        add("DecodeWav", file, desired_channels=channels, desired_samples=samples)


for _part in (_files, _jpegs, _boxes, _glimpses, _scaling, _colours, _sounds):
    _part()
