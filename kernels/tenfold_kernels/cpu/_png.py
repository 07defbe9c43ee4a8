"""PNG files to arrays and back: every colour type, depth and filter, interlaced or not; gamma counts for grey only.

zlib does the compression, _compiled/png.py takes off the filters, _png_grey.py makes grey of colours. Used by
image_files.py and summary_media.py. Follows the PNG specification and, where it chooses, TensorFlow's png_io.cc.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, as_array, invalid
from tenfold_kernels.cpu._png_grey import SRGB, Light, believed, to_grey

MAGIC = b"\x89PNG\r\n\x1a\n"
#: Channels → PNG's colour type: grey, grey with alpha, RGB, RGB with alpha.
_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}
#: Colour type → (samples a pixel, depths).
_TYPES = {0: (1, (1, 2, 4, 8, 16)), 2: (3, (8, 16)), 3: (1, (1, 2, 4, 8)), 4: (2, (8, 16)), 6: (4, (8, 16))}
#: First column and row, and steps, of the seven images that an interlaced one is made of.
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_MAX_SIDE = 1 << 27
#: Chunks that say what light the samples stand for.
_ABOUT_LIGHT = (b"gAMA", b"sRGB", b"sBIT")


def encode_png(image: Array, compression: int = -1) -> bytes:
    """The PNG of uint8 or uint16 [height, width, 1 to 4]. Each row has the filter that leaves the smallest bytes."""
    height, width, channels = image.shape
    depth = image.dtype.itemsize * 8
    samples = image.astype(image.dtype.newbyteorder(">"), copy=False)
    rows = _filtered(np.ascontiguousarray(samples).reshape(height, -1).view(np.uint8), channels * depth // 8)
    header = struct.pack(">IIBBBBB", width, height, depth, _COLOURS[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), compression)), (b"IEND", b""))
    out = MAGIC
    for kind, data in chunks:
        out += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return out


def _filtered(rows: Array, step: int) -> Array:
    """The rows [height, bytes] with the number of their filter before them; a pixel has `step` bytes.

    Chosen by libpng's rule of thumb: the smallest sum of what is left, taken as signed bytes.
    """
    up = np.zeros_like(rows)
    up[1:] = rows[:-1]
    left, corner = np.zeros_like(rows), np.zeros_like(rows)
    left[:, step:], corner[:, step:] = rows[:, :-step], up[:, :-step]
    best = np.zeros((len(rows), 1 + rows.shape[1]), np.uint8)
    best[:, 1:] = rows
    least = np.abs(rows.view(np.int8).astype(np.int16)).sum(axis=1)
    average = ((left.astype(np.uint16) + up) >> 1).astype(np.uint8)
    for number, guess in ((1, left), (2, up), (3, average), (4, _paeth(left, up, corner))):
        rest = rows - guess
        size = np.abs(rest.view(np.int8).astype(np.int16)).sum(axis=1)
        better = np.flatnonzero(size < least)
        best[better, 0], best[better, 1:], least[better] = number, rest[better], size[better]
    return best


def _paeth(left: Array, up: Array, corner: Array) -> Array:
    """Of the three neighbours the one nearest to left + up - corner; the first of equals."""
    a, b, c = left.astype(np.int16), up.astype(np.int16), corner.astype(np.int16)
    to_a, to_b, to_c = np.abs(b - c), np.abs(a - c), np.abs(a + b - 2 * c)
    return as_array(np.where((to_a <= to_b) & (to_a <= to_c), left, np.where(to_b <= to_c, up, corner)))


@dataclass(slots=True)
class _File:
    width: int = 0
    height: int = 0
    depth: int = 0
    colour: int = 0
    interlaced: bool = False
    palette: bytes = b""
    transparency: bytes | None = None
    #: What gAMA says, None before it came, and whether the file is in sRGB's colours, which count for more.
    gamma: int | None = None
    is_srgb: bool = False
    #: Of sBIT, the most of the colours.
    bits: int = 0
    data: list[bytes] = field(default_factory=list)


def decode_png(data: bytes, channels: int, dtype: Any) -> Array:
    """[height, width, channels] of uint8 or uint16; 0 channels means those of the file.

    Raises InvalidArgumentError for what is no PNG or a broken one, ResourceExhaustedError for one that is too large.
    """
    file = _parse(data)
    per_pixel = _TYPES[file.colour][0]
    allow((file.height, file.width, max(channels, 4)), np.uint16, 2)
    pixels = _pixels(file, per_pixel)
    if file.colour == 3:
        pixels, full = _from_palette(file, pixels), 8
    else:
        full = file.depth
        if full < 8:
            pixels, full = (pixels * np.uint16(255 // ((1 << full) - 1))).astype(np.uint16), 8
    if not channels:
        channels = pixels.shape[-1]
    elif pixels.shape[-1] in (1, 3) and channels in (2, 4) and file.transparency is not None:
        pixels = np.concatenate([pixels, _alpha(file, pixels, full)], axis=-1)
    wants_bytes = np.dtype(dtype) == np.uint8
    light = Light(SRGB if file.is_srgb else file.gamma or 0, file.bits)
    if channels in (2, 4) and pixels.shape[-1] in (1, 3):
        # Opaque; of a palette of few colours TensorFlow writes no more than a number of that depth can be.
        opaque = np.uint16((1 << (file.depth if file.colour == 3 else full)) - 1)
        pixels = np.concatenate([pixels, np.full((*pixels.shape[:-1], 1), opaque)], axis=-1)
    pixels = _with_channels(pixels, channels, full, light, wants_bytes)
    if wants_bytes:
        return (pixels >> 8 if full == 16 else pixels).astype(np.uint8)
    return pixels if full == 16 else pixels * np.uint16(257)


def _parse(data: bytes) -> _File:
    if not data.startswith(MAGIC):
        raise invalid("Invalid PNG data, size " + str(len(data)))
    file, at, ended = _File(), len(MAGIC), False
    while at + 12 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        is_whole = data[at + 8 + size : at + 12 + size] == struct.pack(">I", zlib.crc32(kind + body))
        can_go = bool(kind[0] & 0x20) and at + 12 + size <= len(data)
        if not is_whole and not can_go:
            raise invalid(f"Invalid PNG data: chunk {kind!r} at byte {at} is cut off or damaged")
        at += size + 12
        if not is_whole:
            continue
        if kind == b"IHDR" and size == 13:
            file.width, file.height, file.depth, file.colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
            file.interlaced = interlace == 1
        elif kind == b"PLTE":
            file.palette = body
        elif kind == b"tRNS":
            file.transparency = body
        elif kind in _ABOUT_LIGHT and not (file.palette or file.data):  # else out of place
            _note_light(file, kind, body)
        elif kind == b"IDAT":
            file.data.append(body)
        elif kind == b"IEND":
            ended = True
            break
    if not ended:
        raise invalid(f"Invalid PNG data: the file of {len(data)} bytes is cut off before its end")
    known = file.colour in _TYPES and file.depth in _TYPES[file.colour][1]
    if not known or not 0 < file.width <= _MAX_SIDE or not 0 < file.height <= _MAX_SIDE:
        raise invalid(
            f"Invalid PNG data: size {file.width} x {file.height}, depth {file.depth}, colour type {file.colour}"
        )
    if file.colour == 3 and not file.palette:
        raise invalid("Invalid PNG data: a palette is missing")
    return file


def _note_light(file: _File, kind: bytes, body: bytes) -> None:
    """Of two gAMA chunks the first counts; one of another length is passed over."""
    if kind == b"gAMA" and len(body) == 4 and file.gamma is None:
        file.gamma = believed(int.from_bytes(body, "big"))
    elif kind == b"sRGB" and len(body) == 1 and body[0] < 4:
        file.is_srgb = True
    elif kind == b"sBIT" and file.colour in (2, 6) and len(body) == _TYPES[file.colour][0]:
        file.bits = max(body[:3])


def _pixels(file: _File, per_pixel: int) -> Array:
    """The samples [height, width, per_pixel] as uint16, not scaled."""
    passes = _PASSES if file.interlaced else ((0, 0, 1, 1),)
    parts = []
    for x, y, step_x, step_y in passes:
        width, height = -(-(file.width - x) // step_x), -(-(file.height - y) // step_y)
        if width > 0 and height > 0:
            parts.append((x, y, step_x, step_y, width, height, -(-width * per_pixel * file.depth // 8)))
    needed = sum(height * (1 + stride) for *_, height, stride in parts)
    decompress = zlib.decompressobj()
    try:
        raw = decompress.decompress(b"".join(file.data), needed)
    except zlib.error as error:
        raise invalid(f"Invalid PNG data: {error}") from None
    if len(raw) != needed:
        raise invalid(f"Invalid PNG data: {len(raw)} bytes of pixels, {needed} are needed")
    pixels = np.zeros((file.height, file.width, per_pixel), np.uint16)
    lines, at = np.frombuffer(raw, np.uint8), 0
    apart = max(1, per_pixel * file.depth // 8)
    for x, y, step_x, step_y, width, height, stride in parts:
        rows = lines[at : at + height * (1 + stride)].reshape(height, 1 + stride)
        at += rows.size
        plain = _unfiltered(rows, apart)
        pixels[y::step_y, x::step_x] = _samples(plain, file.depth, width * per_pixel).reshape(height, width, per_pixel)
    return pixels


def _unfiltered(rows: Array, apart: int) -> Array:
    """Rows without their filters. `apart`: bytes between a byte and the same one of the pixel to the left."""
    from tenfold_kernels.cpu._compiled import png

    out = np.empty((rows.shape[0], rows.shape[1] - 1), np.uint8)
    wrong = png.unfilter()(rows, out, apart)
    if wrong >= 0:
        raise invalid(f"Invalid PNG data: row {wrong} has filter {rows[wrong, 0]}")
    return out


def _samples(rows: Array, depth: int, count: int) -> Array:
    """Bytes [height, stride] → samples [height, count]."""
    if depth == 16:
        return rows.view(">u2").astype(np.uint16)
    if depth == 8:
        return rows.astype(np.uint16)
    bits = np.unpackbits(rows, axis=1)[:, : count * depth].reshape(rows.shape[0], count, depth)
    return np.asarray(bits @ (1 << np.arange(depth - 1, -1, -1)), np.uint16)


def _from_palette(file: _File, pixels: Array) -> Array:
    colours = np.frombuffer(file.palette[: len(file.palette) // 3 * 3], np.uint8).reshape(-1, 3).astype(np.uint16)
    index = pixels[..., 0]
    if int(index.max(initial=0)) >= len(colours):
        raise invalid(f"Invalid PNG data: colour {int(index.max())} of a palette of {len(colours)}")
    if file.transparency is not None:
        alpha = np.full((len(colours), 1), 255, np.uint16)
        given = np.frombuffer(file.transparency, np.uint8)[: len(colours)]
        alpha[: len(given), 0] = given
        colours = np.concatenate([colours, alpha], axis=1)
    chosen: Array = colours[index]
    return chosen


def _alpha(file: _File, pixels: Array, full: int) -> Array:
    """Transparent where a pixel has the colour that the file names."""
    assert file.transparency is not None
    content = file.transparency[: 2 * pixels.shape[-1]]
    if len(content) != 2 * pixels.shape[-1]:
        return np.full((*pixels.shape[:-1], 1), (1 << full) - 1, np.uint16)
    named = np.frombuffer(content, ">u2").astype(np.uint16)
    if file.depth < 8:
        named = named * np.uint16(255 // ((1 << file.depth) - 1))
    hit = (pixels == named).all(axis=-1, keepdims=True)
    return np.where(hit, np.uint16(0), np.uint16((1 << full) - 1))


def _with_channels(pixels: Array, channels: int, full: int, light: Light, wants_bytes: bool) -> Array:
    have = pixels.shape[-1]
    colour, alpha = pixels[..., : have - (have % 2 == 0)], pixels[..., -1:] if have % 2 == 0 else None
    if channels > 2 and colour.shape[-1] == 1:
        colour = np.repeat(colour, 3, axis=-1)
    elif channels < 3 and colour.shape[-1] == 3:
        colour = to_grey(colour, full, light, wants_bytes)
    if channels % 2:
        return colour
    assert alpha is not None
    return np.concatenate([colour, alpha], axis=-1)
