"""BMP files: every depth and direction, where pixels begin, channels made and dropped, and what is no such file."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cpu import _bmp


def header(width: int, height: int, bits: int, offset: int = 54) -> bytes:
    """As far as the number of bits, and the rest of its 54 bytes."""
    head = struct.pack("<2sIHHi", b"BM", 0, 0, 0, offset) + struct.pack("<IiiHH", 40, width, height, 1, bits)
    return head + bytes(54 - len(head))


def stored(image: Any, *, top_down: bool = False, gap: int = 0) -> bytes:
    """The file of uint8 [height, width, channels], red first; a gap before the pixels, and no padding at the end."""
    height, width, channels = image.shape
    order = [0] if channels == 1 else [2, 1, 0, 3][:channels]
    rows = [row[:, order].tobytes() for row in (image if top_down else image[::-1])]
    stride = (width * channels + 3) // 4 * 4
    pixels = b"".join(row.ljust(stride, b"\x99") for row in rows[:-1]) + rows[-1]
    return header(width, -height if top_down else height, channels * 8, 54 + gap) + bytes(gap) + pixels


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("found", [1, 3, 4])
@pytest.mark.parametrize("top_down", [False, True])
def test_pixels_in_their_order(top_down: bool, found: int, width: int) -> None:
    image = np.random.default_rng(width).integers(0, 256, (3, width, found), np.uint8)
    for gap in (0, 7):
        data = stored(image, top_down=top_down, gap=gap)
        for channels in (0, found):
            decoded = _bmp.decode_bmp(data, channels)
            assert (decoded.dtype, decoded.tolist()) == (np.uint8, image.tolist())
        colours = image[..., :3] if found > 1 else np.repeat(image, 3, axis=2)
        assert _bmp.decode_bmp(data, 3).tolist() == colours.tolist()
        alpha = image[..., 3:] if found == 4 else np.full((3, width, 1), 255)
        assert _bmp.decode_bmp(data, 4).tolist() == np.concatenate([colours, alpha], axis=2).tolist()
        with pytest.raises(errors.InvalidArgumentError, match=r"^Incomplete bmp content, requires at least"):
            _bmp.decode_bmp(data[:-1], 0)
        assert _bmp.decode_bmp(data + b"more", 0).tolist() == image.tolist()


def test_what_is_decoded_may_be_written_to() -> None:
    decoded = _bmp.decode_bmp(stored(np.zeros((2, 2, 1), np.uint8)), 0)
    assert decoded.flags.writeable
    assert decoded.flags.c_contiguous


@pytest.mark.parametrize(
    ("data", "channels", "text"),
    [
        (header(1, 1, 8)[:31], 0, "^Incomplete bmp content, requires at least 32 bytes to find .*, got 31 bytes$"),
        (header(1, 1, 24), 1, "^channels attribute 1 does not match bits per pixel from file 3$"),
        (header(1, 1, 8), 2, "^channels attribute 2 does not match bits per pixel from file 1$"),
        (header(1, 1, 16), 0, "^Number of channels inherent in the image must be 1, 3 or 4, was 2$"),
        (header(1, 1, 16), 2, "^Number of channels inherent in the image must be 1, 3 or 4, was 2$"),
        (header(1, 1, 7), 0, "^Number of channels inherent in the image must be 1, 3 or 4, was 0$"),
        (header(1, 1, 40), 0, "^Number of channels inherent in the image must be 1, 3 or 4, was 5$"),
        (header(0, 1, 8), 0, "^Width must be positive, got 0$"),
        (header(-2, 1, 8), 0, "^Width must be positive, got -2$"),
        (header(1, 0, 8), 0, "^Height must be nonzero$"),
        (header(1, 1, 8, -1), 0, "^header size must be nonnegative, got -1$"),
        (header(1 << 14, 1 << 14, 8), 0, r"^Total possible pixel bytes must be less than 2\^30, got 16384 x 16384 pix"),
        (header(1 << 14, -(1 << 14), 8), 0, r"^Total possible pixel bytes must be less than 2\^30"),
        (
            header((1 << 14) - 1, 1 << 14, 8),
            0,
            rf"^Incomplete bmp content, requires at least {54 + (1 << 14) * (1 << 14) - 1} bytes, got 54 bytes$",
        ),
        (header(3, 2, 24) + bytes(20), 0, "^Incomplete bmp content, requires at least 75 bytes, got 74 bytes$"),
    ],
)
def test_what_is_no_bmp(data: bytes, channels: int, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        _bmp.decode_bmp(data, channels)


def test_the_shortest_file() -> None:
    """Pixels may begin anywhere, in the header, too."""
    data = header(1, 1, 8, 0)[:32]
    assert _bmp.decode_bmp(data, 0).tolist() == [[[ord("B")]]]
    assert _bmp.decode_bmp(data, 3).tolist() == [[[ord("B")] * 3]]


def test_memory_is_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(_bmp, "allow", lambda dims, dtype: asked.append((dims, dtype)))
    data = stored(np.zeros((2, 3, 1), np.uint8), top_down=True)
    for channels in (0, 3, 4):
        _bmp.decode_bmp(data, channels)
    assert asked == [((2, 3, 1), np.uint8), ((2, 3, 3), np.uint8), ((2, 3, 4), np.uint8)]
