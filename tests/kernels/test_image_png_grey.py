"""Colours of PNG files to grey with the gamma that the file gives: the numbers are TensorFlow 2.21's."""

from __future__ import annotations

import struct
import zlib
from itertools import chain
from typing import Any

import numpy as np
import pytest

from tenfold_kernels.cpu import _png

_PIXELS = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [200, 150, 90], [77, 77, 77]]
_BYTES = bytes(chain(*_PIXELS))
_WORDS = struct.pack(">15H", *(v * 257 - (v > 9) * 5 for v in _BYTES))
_GAMMA = (b"gAMA", struct.pack(">I", 45455))
_LINEAR = (b"gAMA", struct.pack(">I", 100000))
_SRGB = (b"sRGB", b"\0")
_PRIMARIES = (b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000))
_FEW_BITS = (b"sBIT", bytes((5, 6, 5)))
_PALETTE = (b"PLTE", _BYTES)

_PLAIN = ([76, 149, 29, 158, 77], [19532, 38293, 7453, 40606, 19789])
_LIGHT = ([147, 200, 95, 162, 77], [37779, 51400, 24415, 41634, 19789])


def png(depth: int, colour: int, row: bytes, *more: tuple[bytes, bytes]) -> bytes:
    """Five pixels in a row."""
    header = struct.pack(">IIBBBBB", 5, 1, depth, colour, 0, 0, 0)
    out = _png.MAGIC
    for kind, data in ((b"IHDR", header), *more, (b"IDAT", zlib.compress(b"\0" + row)), (b"IEND", b"")):
        out += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return out


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        pytest.param(png(8, 2, _BYTES), _PLAIN, id="nothing said"),
        pytest.param(png(8, 2, _BYTES, _GAMMA), _LIGHT, id="gamma"),
        pytest.param(png(8, 2, _BYTES, _SRGB), _LIGHT, id="sRGB"),
        pytest.param(png(8, 2, _BYTES, _LINEAR), _PLAIN, id="samples are light"),
        pytest.param(png(8, 2, _BYTES, _SRGB, _LINEAR), _LIGHT, id="sRGB counts for more"),
        pytest.param(png(8, 2, _BYTES, _GAMMA, _LINEAR), _LIGHT, id="the first gamma counts"),
        pytest.param(png(8, 2, _BYTES, _PRIMARIES), _PLAIN, id="primaries say nothing of it"),
        pytest.param(png(8, 2, _BYTES, (b"gAMA", b"\0\0\0\7")), _PLAIN, id="a gamma that cannot be"),
        pytest.param(png(8, 3, bytes(range(5)), _GAMMA, _PALETTE), _LIGHT, id="palette"),
        pytest.param(png(8, 3, bytes(range(5)), _PALETTE, _GAMMA), _PLAIN, id="gamma behind the palette is too late"),
        pytest.param(png(16, 2, _WORDS), ([76, 150, 29, 158, 77], [19592, 38464, 7473, 40628, 19784]), id="16 bits"),
        pytest.param(
            png(16, 2, _WORDS, _GAMMA),
            ([147, 200, 95, 162, 77], [37852, 51436, 24425, 41670, 19784]),
            id="16 bits with gamma",
        ),
        pytest.param(
            png(16, 2, _WORDS, _FEW_BITS, _GAMMA),
            ([147, 201, 95, 162, 77], [37801, 51490, 24396, 41636, 19789]),
            id="of 16 bits few mean something",
        ),
    ],
)
def test_grey_is_libpngs(file: bytes, wanted: tuple[list[int], list[int]]) -> None:
    found: Any = [_png.decode_png(file, 1, dtype).reshape(-1).tolist() for dtype in (np.uint8, np.uint16)]

    assert found == list(wanted)
    assert _png.decode_png(file, 2, np.uint8)[..., 0].reshape(-1).tolist() == wanted[0]


def test_colours_stay_as_they_are() -> None:
    assert (
        _png.decode_png(png(8, 2, _BYTES, _GAMMA), 3, np.uint8) == _png.decode_png(png(8, 2, _BYTES), 3, np.uint8)
    ).all()
