"""GIF, BMP, WAV files and the headers of JPEG files: byte 0 says which; the rest is the file, or its pieces one by one.

The pixels of JPEG files are libjpeg-turbo's to read: its own fuzzers try it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from fuzz import pieces
from fuzz.harness import Fault, refusals
from fuzz.kernels import kernel, text
from tenfold_core import dtypes
from tenfold_core.memory_limits import limit_tensor
from tenfold_kernels.cpu._wav import encode_wav

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_GIF, _BMP, _WAV = kernel("DecodeGif"), kernel("DecodeBmp"), kernel("DecodeWav")
_SHAPE = kernel("ExtractJpegShape", output_type=dtypes.int32)
_STARTS = (b"GIF89a", b"BM", b"RIFF", b"\xff\xd8\xff")


def one_input(data: bytes) -> None:
    if not data:
        return
    limit_tensor(8 << 20)
    which = data[0] >> 1 & 3
    content = _STARTS[which] + b"".join(pieces.split(data[1:])) if data[0] & 1 else data[1:]
    with refusals():
        if which == 0:
            _expect(_GIF(text(content)), 4, np.uint8)
        elif which == 1:
            _expect(_BMP(text(content)), 3, np.uint8)
        elif which == 2:
            _expect(_WAV(text(content))[0], 2, np.float32)
        else:
            _expect(_SHAPE(text(content)), 1, np.int32)


def _expect(found: np.ndarray, rank: int, dtype: type) -> None:
    if found.ndim != rank or found.dtype != dtype:
        raise Fault(f"an array of shape {found.shape} of {found.dtype}")


def mutated(data: bytes, chance: random.Random) -> bytes:
    how = data[:1] if chance.random() < 0.8 else bytes((chance.randrange(8),))
    return (how or b"\1") + pieces.join(pieces.mutated(pieces.split(data[1:]), chance))


def seeds() -> Iterator[bytes]:
    screen = struct.pack("<HHBBB", 2, 2, 0x81, 0, 0) + bytes(range(12))
    control = b"!\xf9\4\1\0\0\1\0"
    for flags in (0, 0x40, 0x81):
        table = bytes(12) if flags & 0x80 else b""
        image = b"," + struct.pack("<HHHHB", 0, 0, 2, 2, flags) + table + b"\2\3" + b"\x44\x34\x05" + b"\0"
        yield b"\1" + pieces.join([screen, control, image, image, b";"])
    for bits, height in ((8, 2), (24, 2), (32, -2)):
        head = struct.pack("<IHHI", 0, 0, 0, 54) + struct.pack("<IiiHH", 40, 3, height, 1, bits)
        yield b"\3" + pieces.join([head, bytes(24), bytes(24)])
    yield b"\4" + encode_wav(np.zeros((5, 2), np.float32), 8000)
    yield b"\5" + pieces.join([encode_wav(np.zeros((5, 1), np.float32), 8000)[4:36], b"data\2\0\0\0", b"\1\2"])
    frame = b"\xc0" + struct.pack(">HBHHB", 17, 8, 6, 5, 3) + bytes(9)
    yield b"\7" + pieces.join([b"\xe0\0\2\xff", frame, b"\xff\xda\0\2", b"\xff\xd9"])
