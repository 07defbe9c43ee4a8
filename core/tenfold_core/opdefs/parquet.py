"""Op definitions of DeepRec: a dataset of Parquet files, whose elements are batches of columns.

A row: name, inputs, outputs, attributes (DeepRec's core/ops/parquet_ops.cc is the source of every name, order and default),
flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns_resources as r
from tenfold_core.opdefs.table import family

op = family("parquet")

op(
    "ParquetTabularDatasetV1",
    "filename: string, batch_size: int64",
    "handle: variant",
    "field_names: list(string) >= 1",
    "field_dtypes: list(type) >= 1",
    "field_ragged_ranks: list(int) >= 1",
    "partition_count: int = 1",
    "partition_index: int = 0",
    "drop_remainder: bool = false",
    stateful=True,
    shape=r.scalar,
)
