"""PNG files: with an even byte 0 the file as it is; else the pieces are what its chunks hold, put together here.

Byte 0 also says how many channels and which type are asked for. Pieces: what IHDR holds, the palette, the transparency,
rows of pixels (compressed here, so that filters and sizes are what is tried).
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np

from fuzz import pieces
from fuzz.harness import Fault, refusals
from fuzz.kernels import kernel, text
from tenfold_core import dtypes
from tenfold_core.memory_limits import limit_tensor
from tenfold_kernels.cpu._png import MAGIC, encode_png

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_CHANNELS = (0, 1, 3, 4)
_DECODE = {
    (channels, dtype): kernel("DecodePng", channels=channels, dtype=dtype)
    for channels in _CHANNELS
    for dtype in (dtypes.uint8, dtypes.uint16)
}


def one_input(data: bytes) -> None:
    if not data:
        return
    limit_tensor(8 << 20)
    how = data[0]
    channels, dtype = _CHANNELS[how >> 1 & 3], dtypes.uint16 if how & 8 else dtypes.uint8
    content = _file(pieces.split(data[1:]), how >> 4) if how & 1 else data[1:]
    with refusals():
        picture = _DECODE[channels, dtype](text(content))
        if picture.ndim != 3 or picture.dtype != dtype.as_numpy_dtype or (channels and picture.shape[2] != channels):
            raise Fault(f"a picture of shape {picture.shape} of {picture.dtype}")


def _file(parts: list[bytes], repeated: int) -> bytes:
    header, palette, transparency, *rows = [*parts, b"", b"", b""]
    pixels = b"".join(rows) * (1, 1, 1, 1, 2, 30, 1000)[repeated % 7]
    chunks = [(b"IHDR", header)]
    chunks += [(b"PLTE", palette)] * bool(palette) + [(b"tRNS", transparency)] * bool(transparency)
    chunks += [(b"IDAT", zlib.compress(pixels, 1)), (b"IEND", b"")]
    return MAGIC + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def mutated(data: bytes, chance: random.Random) -> bytes:
    how = data[:1] if chance.random() < 0.8 else bytes((chance.randrange(256),))
    return (how or b"\1") + pieces.join(pieces.mutated(pieces.split(data[1:]), chance))


def seeds() -> Iterator[bytes]:
    chance = np.random.default_rng(0)
    for channels in (1, 2, 3, 4):
        for kind in (np.uint8, np.uint16):
            yield b"\0" + encode_png(chance.integers(0, 255, (5, 4, channels)).astype(kind))
    for colour, depth, samples in ((0, 1, 1), (0, 4, 1), (2, 8, 3), (3, 2, 1), (3, 8, 1), (4, 8, 2), (6, 16, 4)):
        for interlaced in (0, 1):
            header = struct.pack(">IIBBBBB", 3, 2, depth, colour, 0, 0, interlaced)
            row = b"\1" + bytes(-(-3 * samples * depth // 8))
            palette = bytes(range(12)) if colour == 3 else b""
            yield b"\1" + pieces.join([header, palette, bytes(6), row * (2 if not interlaced else 6)])
    yield bytes((1 | 6 << 4,)) + pieces.join([struct.pack(">IIBBBBB", 4000, 4000, 8, 0, 0, 0, 0), b"", b"", bytes(16)])
    yield bytes((1,)) + pieces.join([struct.pack(">IIBBBBB", 1 << 27, 1 << 27, 16, 6, 0, 0, 1), b"", b"", bytes(16)])
