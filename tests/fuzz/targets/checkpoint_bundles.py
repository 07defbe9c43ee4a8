"""A checkpoint of format V2: byte 0 says what the pieces are (tables.py), the last of which is the data file.

Where the table is made of entries, checksums of tensors are set right where their bytes are there. Everything that the
index names is read, whole and in its parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.message import DecodeError

from fuzz import pieces, scratch, tables
from fuzz.harness import refusals
from tenfold_core import crc32c
from tenfold_core.checkpoint.bundle_reader import BundleReader, data_filename, meta_filename
from tenfold_core.checkpoint.bundle_writer import BundleWriter
from tenfold_core.checkpoint.slices import TensorSlice
from tenfold_core.errors import InternalError
from tenfold_core.memory_limits import limit_tensor
from tenfold_protos.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from google.protobuf.message import Message


def one_input(data: bytes) -> None:
    if not data:
        return
    limit_tensor(16 << 20)
    how, parts = data[0], pieces.split(data[1:])
    content = parts.pop() if parts else b""
    if how % 3 == tables.ENTRIES:
        parts[1::2] = [_with_checksum(value, content) for value in parts[1::2]]
    prefix = str(scratch.folder() / "bundle")
    scratch.put("bundle.index", tables.table_of(how, parts))
    scratch.put("bundle.data-00000-of-00001", content)
    with refusals(), BundleReader(prefix, files=scratch.files()) as reader:
        for name in reader.names():
            with refusals():
                _, shape = reader.dtype_and_shape(name)
                reader.place(name)
                for part in reader.slices(name):
                    if _fits(part, shape):
                        reader.read_slice(name, part)
            with refusals():
                reader.read(name)
        for _ in reader.raw_entries():
            pass


def _fits(part: TensorSlice, shape: tuple[int, ...]) -> bool:
    """Whether who asks for the part may: for others there is an InternalError, as in TensorFlow."""
    try:
        part.bounds(shape)
    except InternalError:
        return False
    return True


def _with_checksum(value: bytes, content: bytes) -> bytes:
    try:
        entry = BundleEntryProto.FromString(value)
    except DecodeError:
        return value
    if not entry.size or entry.dtype == 7 or entry.offset < 0 or entry.offset + entry.size > len(content):
        return value
    entry.crc32c = crc32c.masked(content[entry.offset : entry.offset + entry.size])
    return entry.SerializeToString()


def mutated(data: bytes, chance: random.Random) -> bytes:
    how, parts = data[0] if data else 0, pieces.split(data[1:])
    content = [parts.pop()] if parts else [b""]
    if chance.random() < 0.1:
        content = pieces.mutated(content, chance)[:1] or [b""]
    else:
        parts = tables.mutated(how, parts, chance, _kind_of)
    return tables.pack(how, [*parts, *content])


def _kind_of(key: bytes) -> type[Message]:
    return BundleEntryProto if key else BundleHeaderProto


def seeds() -> Iterator[bytes]:
    prefix = str(scratch.folder() / "seed")
    with BundleWriter(prefix) as writer:
        writer.add("a", np.arange(6, dtype=np.float32).reshape(2, 3))
        writer.add("b/text", np.array([b"one", b"", b"three"], object))
        writer.add("c", np.zeros((0, 3), np.int64))
        writer.add("d", np.array(True))
        for start in (0, 2):
            part = TensorSlice(((start, 2), None))
            writer.add_slice("parts", (4, 2), part, np.full((2, 2), start, np.int32))
    index = meta_filename(prefix)
    with open(data_filename(prefix, 0, 1), "rb") as file:
        content = file.read()
    with open(index, "rb") as file:
        yield tables.pack(tables.WHOLE, [file.read(), content])
    yield tables.pack(tables.BLOCKS, [*tables.blocks(index), content])
    yield tables.pack(tables.ENTRIES, [*tables.entries(index), content])
