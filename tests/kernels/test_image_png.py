"""PNG files: what is written can be read, other writers' filters and depths too; broken files are errors."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu import _png


def picture(channels: int, dtype: Any = np.uint8, height: int = 5, width: int = 7) -> Any:
    return np.random.default_rng(1).integers(0, np.iinfo(dtype).max, (height, width, channels), dtype, endpoint=True)


def png(header: tuple[int, ...], rows: bytes, *more: tuple[bytes, bytes]) -> bytes:
    out = _png.MAGIC
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", *header)), *more, (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    for kind, data in chunks:
        out += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return out


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_written_and_read(ops: Any, channels: int, dtype: Any) -> None:
    image = picture(channels, dtype)

    file = ops.run("EncodePng", [image])

    assert (ops.run("DecodePng", [file], dtype=dtypes.as_dtype(dtype)) == image).all()


def test_a_batch_of_pictures(ops: Any) -> None:
    files = ops.run("EncodePng", [np.stack([picture(3), picture(3)])])

    assert files.shape == (2,)
    assert files[0] == files[1]


def test_channels_are_made_and_dropped(ops: Any) -> None:
    file = ops.run("EncodePng", [picture(3)])

    assert (ops.run("DecodePng", [file], channels=4)[..., 3] == 255).all()
    grey = ops.run("DecodePng", [file], channels=1)
    weights = np.array([0.299, 0.587, 0.114])
    assert np.abs(grey[..., 0] - picture(3) @ weights).max() < 1.5


def test_every_filter() -> None:
    # 3 pixels of grey: 10 20 30 | then the same row as differences to the left, above, their mean, and Paeth's choice
    rows = bytes([0, 10, 20, 30, 1, 10, 10, 10, 2, 0, 0, 0, 3, 5, 5, 5, 4, 0, 0, 0])

    image = _png.decode_png(png((3, 5, 8, 0, 0, 0, 0), rows), 0, np.uint8)

    assert image[:, :, 0].tolist() == [[10, 20, 30]] * 3 + [[10, 20, 30]] + [[10, 20, 30]]


def unfiltered(rows: Any, apart: int) -> Any:
    """What the PNG specification says about filters, a byte at a time."""
    out = np.zeros((rows.shape[0], rows.shape[1] - 1), np.int64)
    for r, row in enumerate(rows.astype(np.int64)):
        for i, value in enumerate(row[1:]):
            left = out[r, i - apart] if i >= apart else 0
            up = out[r - 1, i] if r else 0
            corner = out[r - 1, i - apart] if r and i >= apart else 0
            nearest = min((left, up, corner), key=lambda near: abs(left + up - corner - near))
            out[r, i] = (value + (0, left, up, (left + up) // 2, nearest)[row[0]]) % 256
    return out


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 40])
@pytest.mark.parametrize("apart", [1, 3, 4, 8])
def test_filters_do_what_the_specification_says(apart: int, width: int) -> None:
    random = np.random.default_rng(apart * 100 + width)
    rows = random.integers(0, 256, (40, 1 + width), np.uint8)
    rows[:, 0] = random.integers(0, 5, 40)

    assert (_png._unfiltered(rows, apart) == unfiltered(rows, apart)).all()


def test_few_bits_and_palettes() -> None:
    bits = _png.decode_png(png((3, 1, 2, 0, 0, 0, 0), bytes([0, 0b00_01_11_00])), 0, np.uint8)
    assert bits[0, :, 0].tolist() == [0, 85, 255]

    colours = (b"PLTE", bytes([1, 2, 3, 9, 8, 7]))
    chosen = _png.decode_png(png((2, 1, 1, 3, 0, 0, 0), bytes([0, 0b01_000000]), colours), 0, np.uint8)
    assert chosen[0].tolist() == [[1, 2, 3], [9, 8, 7]]
    seen = (b"tRNS", b"\x05")
    clear = _png.decode_png(png((2, 1, 1, 3, 0, 0, 0), bytes([0, 0b01_000000]), colours, seen), 4, np.uint8)
    assert clear[0, :, 3].tolist() == [5, 255]


def test_interlaced() -> None:
    # 2 × 2: the first pass has one pixel, the sixth the one to its right, the seventh the second row
    rows = bytes([0, 1, 0, 2, 0, 3, 4])

    image = _png.decode_png(png((2, 2, 8, 0, 0, 0, 1), rows), 0, np.uint8)

    assert image[:, :, 0].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"GIF89a", "Invalid PNG data"),
        (png((3, 1, 8, 0, 0, 0, 0), b"\0ab"), "3 bytes of pixels, 4 are needed"),
        (png((3, 1, 8, 0, 0, 0, 0), b"\7abc"), "filter 7"),
        (png((3, 1, 5, 0, 0, 0, 0), b"\0abc"), "depth 5"),
        (png((0, 1, 8, 0, 0, 0, 0), b"\0"), "size 0 x 1"),
        (png((1, 1, 8, 3, 0, 0, 0), b"\0\0"), "palette is missing"),
        (png((1, 1, 8, 3, 0, 0, 0), b"\0\5", (b"PLTE", b"abc")), "colour 5 of a palette of 1"),
        (png((3, 1, 8, 0, 0, 0, 0), b"\0abc")[:-20], "needed|cut off"),
        (png((3, 1, 8, 0, 0, 0, 0), b"\0abc")[:-12], "cut off before its end"),
        (png((3, 1, 8, 0, 0, 0, 0), b"\0abc")[:-1], "cut off before its end"),
    ],
)
def test_broken_files(data: bytes, says: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=says):
        _png.decode_png(data, 0, np.uint8)


def test_a_small_file_cannot_ask_for_the_world() -> None:
    bomb = png((1 << 26, 1 << 26, 8, 6, 0, 0, 0), b"\0")
    with pytest.raises(errors.ResourceExhaustedError, match="OOM"):
        _png.decode_png(bomb, 0, np.uint8)


def test_a_smooth_picture_is_small(ops: Any) -> None:
    y, x = np.mgrid[:256, :256]
    image = np.stack([x, y, (x + y) // 2], -1).astype(np.uint8)

    file = ops.run("EncodePng", [image]).item()

    assert len(file) < 1000  # TensorFlow's has 864 bytes; without filters it is 190 times as large
    assert (_png.decode_png(file, 0, np.uint8) == image).all()


def test_each_row_has_the_filter_that_leaves_least() -> None:
    rows = np.array([[10, 20, 30, 40], [10, 20, 30, 40], [9, 200, 7, 100]], np.uint8)

    filtered = _png._filtered(rows, 1)

    assert filtered[:, 0].tolist() == [1, 2, 2]
    assert filtered[0, 1:].tolist() == [10] * 4
    assert not filtered[1, 1:].any()


def test_a_damaged_chunk_that_is_not_needed_is_passed_over() -> None:
    file = png((3, 1, 8, 0, 0, 0, 0), b"\0abc", (b"tEXt", b"a word"))

    assert _png.decode_png(file.replace(b"a word", b"a lord"), 0, np.uint8).reshape(-1).tolist() == [97, 98, 99]
