"""Parquet files: the input is the file as it is, behind byte 0, the number of rows that are read at a time.

pyarrow reads the format; what is looked for is a fault of it that would end a task, and an error that is none of ours.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from fuzz import scratch
from fuzz.harness import refusals
from tenfold_core import errors
from tenfold_core.parquet_files import ParquetReader

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator


def one_input(data: bytes) -> None:
    if not data:
        return
    path = scratch.put("table", data[1:])
    with refusals(), ParquetReader(path, files=scratch.files()) as reader:
        columns = []
        for name in reader.names:
            try:
                columns.append(reader.column(name))
            except errors.UnimplementedError:
                continue
        if columns:
            for _ in reader.batches(columns, data[0] or 1 << 40, range(reader.row_groups)):
                pass


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Some bytes set, cut out or put in: what is behind the footer's length is Thrift, where each of them counts."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(1, len(made)) if len(made) > 1 else 0
        how = chance.random()
        if how < 0.6:
            made[at : at + 1] = bytes((chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))),))
        elif how < 0.8:
            del made[at : at + chance.randrange(1, 9)]
        else:
            made[at:at] = chance.randbytes(chance.randrange(1, 9))
    return bytes(made)


def seeds() -> Iterator[bytes]:
    plain = pa.table({"a": [1, 2, 3], "s": ["x", "", "yy"], "l": [[1], [], [2, 3]], "d": [[[1.0]], [], [[], [2.0]]]})
    for number, options in enumerate(
        (
            {"compression": "none"},
            {"compression": "zstd", "data_page_version": "2.0"},
            {"compression": "none", "use_dictionary": False, "store_schema": False},
            {"compression": "gzip", "write_statistics": False, "row_group_size": 1},
        )
    ):
        held = io.BytesIO()
        pq.write_table(plain, held, **options)
        yield bytes((number,)) + held.getvalue()
