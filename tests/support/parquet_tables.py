"""Parquet files for tests, written by pyarrow: ten rows of numbers, texts and lists, in row groups of four."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 10
LISTS = [list(range(i % 3)) for i in range(ROWS)]
NESTED = [[[i], [i, i]] for i in range(ROWS)]


def table() -> Any:
    """`id` int64, `name` strings, `seen` lists of int64, `deep` lists of lists, `pair` lists of two floats."""
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "name": [f"n{i}" for i in range(ROWS)],
            "seen": LISTS,
            "deep": NESTED,
            "pair": pa.array([[i + 0.5, i - 0.5] for i in range(ROWS)], pa.list_(pa.float32())),
        }
    )


def write(path: Path, columns: Any = None, **options: Any) -> str:
    """Writes `columns`, a table or what one is made of; its name."""
    data = table() if columns is None else columns if isinstance(columns, pa.Table) else pa.table(columns)
    pq.write_table(data, path, row_group_size=4, **options)
    return str(path)
