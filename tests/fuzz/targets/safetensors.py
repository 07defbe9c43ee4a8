"""safetensors files: byte 0 says whether the rest is the file as it is, or a header and bytes, put together here.

Every tensor of it is read.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

from fuzz import pieces, scratch
from fuzz.harness import refusals
from tenfold_core.safetensors import SafetensorsReader

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator


def one_input(data: bytes) -> None:
    if not data:
        return
    content = data[1:]
    if data[0] & 1:
        header, *rest = pieces.split(content) or [b""]
        content = struct.pack("<Q", len(header)) + header + b"".join(rest)
    path = scratch.put("weights", content)
    with refusals(), SafetensorsReader(path, files=scratch.files()) as reader:
        for name in reader.names():
            reader.read(name)


def mutated(data: bytes, chance: random.Random) -> bytes:
    how = data[:1] or b"\0"
    if how[0] & 1:
        return how + pieces.join(pieces.mutated(pieces.split(data[1:]), chance))
    return how + b"".join(pieces.mutated([data[1:]], chance))


def _header(rows: object) -> bytes:
    return json.dumps(rows).encode()


def seeds() -> Iterator[bytes]:
    row = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    good = _header({"w": row, "__metadata__": {"by": "us"}})
    yield b"\1" + pieces.join([good, bytes(4)])
    yield b"\0" + struct.pack("<Q", len(good)) + good + bytes(4)
    yield b"\1" + pieces.join([_header({"w": {**row, "shape": [1 << 62, 0], "data_offsets": [0, 0]}})])
    yield b"\1" + pieces.join([_header({"w": {**row, "shape": [1 << 40]}}), bytes(4)])
    yield b"\1" + pieces.join([b"[" * 100_000])
    yield b"\1" + pieces.join([b'{"a":{},"a":{}}'])
    yield b"\0" + struct.pack("<Q", (1 << 64) - 1)
