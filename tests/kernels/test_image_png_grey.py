"""Colours of PNG files to grey with the gamma that the file gives: the numbers are TensorFlow 2.21's."""

from __future__ import annotations

import struct
import zlib
from itertools import chain
from typing import Any

import numpy as np
import pytest

from tenfold_kernels.cpu import _png
from tenfold_kernels.cpu._png_grey import Light, to_grey

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


def _samples(depth: int) -> Any:
    """Twenty pixels, the last four of them grey, one of each end."""
    most = (1 << depth) - 1
    made = ((np.arange(60, dtype=np.int64) * 40503 * 7919 + 12345) % (most + 1)).reshape(20, 3)
    made[16:] = made[16:, :1]
    made[0], made[1], made[19] = 0, most, most
    return made


#: Depth of the file, and bits that mean something (0: nothing said).
_FILES = [(8, 0), (8, 5), (16, 0), (16, 1), (16, 7), (16, 8), (16, 11), (16, 12), (16, 15), (16, 16)]
#: Gamma → for each of the files the sum of the grey pixels, the first once, the second twice, …, as bytes and as words.
_SUMS: dict[int, list[int]] = {
    15: [34896, 8968272, 34896, 8968272, 27062, 6968505, 27062, 6968505, 27062, 6968505, 27062, 6968505, 27062,
        6968505, 27062, 6968505, 27062, 6968505, 27062, 6968505],
    16: [18808, 4833656, 18808, 4833656, 10540, 2712440, 10522, 2704154, 10522, 2704154, 10522, 2704154, 10540,
        2711947, 10540, 2712199, 10540, 2712421, 10540, 2712440],
    17: [18808, 4833656, 18808, 4833656, 10540, 2712440, 10522, 2704154, 10522, 2704154, 10522, 2704154, 10540,
        2711947, 10540, 2712199, 10540, 2712421, 10540, 2712440],
    20: [18808, 4833656, 18808, 4833656, 10540, 2712440, 10522, 2704154, 10522, 2704154, 10522, 2704154, 10540,
        2711947, 10540, 2712199, 10540, 2712421, 10540, 2712440],
    1000: [21248, 5460736, 21248, 5460736, 18444, 4743868, 13184, 3386176, 13184, 3386176, 13184, 3386176, 18444,
        4739090, 18444, 4743047, 18444, 4743647, 18444, 4743868],
    20000: [41547, 10677579, 41547, 10677579, 30104, 7750170, 28282, 7262723, 28282, 7262723, 28282, 7262723, 30104,
        7735389, 30104, 7740155, 30104, 7749741, 30104, 7750170],
    45455: [38135, 9800695, 38135, 9800695, 28548, 7339141, 28517, 7325411, 28517, 7325411, 28517, 7325411, 28548,
        7336937, 28548, 7337859, 28548, 7339104, 28548, 7339141],
    94999: [35113, 9024041, 35113, 9024041, 27190, 6989565, 27188, 6982993, 27188, 6982993, 27188, 6982993, 27190,
        6988738, 27190, 6989136, 27190, 6989568, 27190, 6989565],
    95000: [34535, 8875495, 34535, 8875495, 26671, 6854709, 26648, 6848536, 26648, 6848536, 26648, 6848536, 26671,
        6853839, 26671, 6854244, 26671, 6854662, 26671, 6854709],
    95001: [34535, 8875495, 34535, 8875495, 26671, 6854765, 26648, 6848536, 26648, 6848536, 26648, 6848536, 26671,
        6853839, 26671, 6854244, 26671, 6854690, 26671, 6854765],
    95238: [34896, 8968272, 34896, 8968272, 27062, 6968505, 27062, 6968505, 27062, 6968505, 27062, 6968505, 27062,
        6968505, 27062, 6968505, 27062, 6968505, 27062, 6968505],
    95239: [34896, 8968272, 34896, 8968272, 27062, 6968505, 27062, 6968505, 27062, 6968505, 27062, 6968505, 27062,
        6968505, 27062, 6968505, 27062, 6968505, 27062, 6968505],
    100000: [34896, 8968272, 34896, 8968272, 27062, 6968505, 27062, 6968505, 27062, 6968505, 27062, 6968505, 27062,
        6968505, 27062, 6968505, 27062, 6968505, 27062, 6968505],
    105000: [34896, 8968272, 34896, 8968272, 27062, 6968505, 27062, 6968505, 27062, 6968505, 27062, 6968505, 27062,
        6968505, 27062, 6968505, 27062, 6968505, 27062, 6968505],
    105001: [34359, 8830263, 34359, 8830263, 26601, 6840108, 26570, 6832978, 26570, 6832978, 26570, 6832978, 26601,
        6839057, 26601, 6839712, 26601, 6840138, 26601, 6840108],
    105263: [34318, 8819726, 34318, 8819726, 26576, 6833518, 26551, 6826409, 26551, 6826409, 26551, 6826409, 26576,
        6832492, 26576, 6833156, 26576, 6833584, 26576, 6833518],
    105264: [34722, 8923554, 34722, 8923554, 27003, 6948054, 26973, 6935114, 26973, 6935114, 26973, 6935114, 27003,
        6947310, 27003, 6948083, 27003, 6948007, 27003, 6948054],
    220000: [32905, 8456585, 32905, 8456585, 26134, 6722002, 26120, 6711381, 26120, 6711381, 26120, 6711381, 26134,
        6722913, 26134, 6722141, 26134, 6722017, 26134, 6722002],
    10000000: [31844, 8183908, 31844, 8183908, 25465, 6481214, 28562, 7344771, 28562, 7344771, 28562, 7344771, 25465,
        6554883, 25465, 6503679, 25465, 6484006, 25465, 6481214],
    625000000: [49918, 12828926, 49918, 12828926, 44455, 6472587, 44437, 11420309, 44437, 11420309, 44437, 11420309,
        44455, 11428102, 44455, 9735652, 44455, 6645547, 44455, 6472587],
    625000001: [34896, 8968272, 34896, 8968272, 27062, 6968505, 27062, 6968505, 27062, 6968505, 27062, 6968505, 27062,
        6968505, 27062, 6968505, 27062, 6968505, 27062, 6968505],
}  # fmt: skip


@pytest.mark.parametrize("gamma", _SUMS)
def test_gammas_of_every_size(gamma: int) -> None:
    """Those that libpng does not believe, those that it takes for 1, and the furthest."""
    found = []
    for depth, bits in _FILES:
        samples = _samples(depth)
        more = [(b"gAMA", struct.pack(">I", gamma)), *([(b"sBIT", bytes((bits, 1, 1)))] if bits else [])]
        header = struct.pack(">IIBBBBB", 20, 1, depth, 2, 0, 0, 0)
        row = b"\0" + samples.astype(">u2" if depth == 16 else "u1").tobytes()
        data = _png.MAGIC
        for kind, body in ((b"IHDR", header), *more, (b"IDAT", zlib.compress(row)), (b"IEND", b"")):
            data += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for dtype in (np.uint8, np.uint16):
            grey = _png.decode_png(data, 1, dtype).reshape(-1).astype(np.int64)
            found.append(int(grey @ np.arange(1, 21)))
    assert found == _SUMS[gamma]


#: Gamma (0: nothing said) → for files of 8 bits, and of 16 of which so many mean something, the sum of all pixels, each
#: times its place in a run of 251 and one, as bytes and as words.
_WIDE = [(8, 0), (16, 0), (16, 7), (16, 12), (16, 16)]
_WIDE_SUMS: dict[int, list[int]] = {
    0: [323907033, 83244107481, 1374477297, 353244062108, 1374477297, 353244062108,
        1374477297, 353244062108, 1374477297, 353244062108],
    16: [12809035, 3291921995, 1055616922, 271659509373, 1061327030, 272760617116,
        1055616922, 271419858081, 1055616922, 271659509373],
    1000: [101901851, 26188775707, 1166523669, 317769729560, 1133863154, 291373083342,
        1166523669, 302899969170, 1166523669, 317769729560],
    45455: [344868858, 88631296506, 1413708628, 363424147883, 1414037227, 363355349743,
        1413708628, 363419071589, 1413708628, 363424147883],
    95001: [317587151, 81619897807, 1365739160, 351129860401, 1366117067, 351092086219,
        1365739160, 351129646016, 1365739160, 351129860401],
    220000: [313430892, 80551739244, 1349627244, 346993897148, 1350519636, 347076195248,
        1349627244, 346999578373, 1349627244, 346993897148],
    10000000: [299750316, 77035831212, 1332948223, 341152362224, 1388805850, 357005533995,
        1332948223, 341938295487, 1332948223, 341152362224],
}  # fmt: skip


def _every_grey_and_many_colours(depth: int) -> Any:
    greys = np.repeat(np.arange(1 << depth, dtype=np.int64)[:, None], 3, axis=1)
    colours = (np.arange(60000, dtype=np.int64) * 40503 * 7919 + 12345 >> 3) % (1 << depth)
    return np.concatenate([greys, colours.reshape(-1, 3)])


@pytest.mark.parametrize("gamma", _WIDE_SUMS)
def test_every_grey_and_many_colours(gamma: int) -> None:
    found = []
    for depth, bits in _WIDE:
        samples = _every_grey_and_many_colours(depth)
        for kept in (True, False):
            grey = to_grey(samples.astype(np.uint16)[None], depth, Light(gamma, bits), kept).reshape(-1)
            if depth == 8:
                grey = grey if kept else grey * np.uint16(257)
            elif kept:
                grey = grey >> 8
            found.append(int(grey.astype(np.int64) @ (np.arange(grey.size) % 251 + 1)))
    assert found == _WIDE_SUMS[gamma]


def test_half_a_unit_is_rounded_up_and_less_is_not() -> None:
    """Of 16 bits; 8 bits are cut off. The weights are 9797, 19234 and 3737 of 32768."""
    for depth, limit in ((16, 1 << 14), (8, 0)):
        most = (1 << depth) - 1
        side = np.arange(min(most + 1, 512))
        green, blue = (each.ravel() for each in np.meshgrid(side, side))
        for red in range(0, most + 1, most // 3):
            total = red * 9797 + green * 19234 + blue * 3737 + limit
            near = (total % 32768 <= 40) | (total % 32768 >= 32728)
            colours = np.stack([np.full(near.sum(), red), green[near], blue[near]], axis=1).astype(np.uint16)
            assert to_grey(colours, depth, Light(0, 0), False).ravel().tolist() == (total[near] >> 15).tolist()
