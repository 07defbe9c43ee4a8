"""A checkpoint of format V1, one file: byte 0 says what the pieces are (tables.py). All that it names is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fuzz import pieces, scratch, tables
from fuzz.harness import refusals
from tenfold_core import dtypes
from tenfold_core.checkpoint.slices import TensorSlice
from tenfold_core.checkpoint.v1 import SavedTensor, SliceTableReader, write_slice_table
from tenfold_core.memory_limits import limit_tensor
from tenfold_protos.saved_tensor_slice_pb2 import SavedTensorSlices

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator


def one_input(data: bytes) -> None:
    if not data:
        return
    limit_tensor(16 << 20)
    path = scratch.put("slices", tables.table_of(data[0], pieces.split(data[1:])))
    with refusals(), SliceTableReader(path, files=scratch.files()) as reader:
        for name in reader.names():
            with refusals():
                told = reader.dtype_and_shape(name)
                assert told is not None
                reader.read_slice(name, TensorSlice.full(len(told[1])))


def mutated(data: bytes, chance: random.Random) -> bytes:
    how = data[0] if data else 0
    return tables.pack(how, tables.mutated(how, pieces.split(data[1:]), chance, lambda key: SavedTensorSlices))


def seeds() -> Iterator[bytes]:
    path = str(scratch.folder() / "seed")
    halves = [
        SavedTensor("parts", (4, 2), TensorSlice(((start, 2), None)), np.full((2, 2), start, np.int32), dtypes.int32)
        for start in (0, 2)
    ]
    whole = [
        SavedTensor(name, value.shape, TensorSlice.full(value.ndim), value, dtypes.as_dtype(value.dtype))
        for name, value in (
            ("a", np.arange(6, dtype=np.float32).reshape(2, 3)),
            ("b", np.array([1j, 2], np.complex64)),
            ("c", np.array([True, False])),
            ("h", np.ones(3, np.float16)),
            ("n", np.array(7, np.int64)),
        )
    ]
    text = np.array([b"one", b""], object)
    whole.append(SavedTensor("s", (2,), TensorSlice.full(1), text, dtypes.string))
    write_slice_table(path, [*halves, *whole])
    with open(path, "rb") as file:
        yield tables.pack(tables.WHOLE, [file.read()])
    yield tables.pack(tables.BLOCKS, tables.blocks(path))
    yield tables.pack(tables.ENTRIES, tables.entries(path))
