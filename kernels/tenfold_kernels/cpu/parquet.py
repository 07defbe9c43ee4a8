"""The op of a dataset of a Parquet file. The machine is datasets/parquet.py. Follows DeepRec's parquet_dataset_ops.cc.

The file is opened when the first element is asked for, not when the op runs, as with the other sources of files.
"""

from __future__ import annotations

import os
from typing import Any

from tenfold_core.parquet_files import Column
from tenfold_kernels.arrays import Array, invalid
from tenfold_kernels.cpu._examples import attr_keys
from tenfold_kernels.cpu.dataset_sources import number
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.datasets.parquet import Batching, Parquet


@kernel("ParquetTabularDatasetV1")
def build_parquet(node: KernelNode) -> Compute:
    """Batches of some columns of one file; of a column of lists also where they begin."""
    attrs = node.attrs
    names, types, ranks = attr_keys(node, "field_names"), attrs["field_dtypes"], attrs["field_ragged_ranks"]
    if not len(names) == len(types) == len(ranks):
        raise invalid(
            "field_names, field_dtypes and field_ragged_ranks must be as many, got "
            f"{len(names)}, {len(types)} and {len(ranks)}"
        )
    if any(rank < 0 for rank in ranks):
        raise invalid(f"field_ragged_ranks must not be negative, got {list(ranks)}")
    columns = [Column(*each) for each in zip(names, types, ranks, strict=True)]
    count, index = attrs["partition_count"], attrs["partition_index"]
    if not 0 <= index < count:
        raise invalid(f"partition_index must be at least 0 and less than partition_count, {count}, got {index}")

    def compute(filename: Array, batch_size: Array) -> Any:
        if filename.ndim:
            raise invalid("filename must be a scalar")
        size = number(batch_size, "batch_size")
        if size <= 0:
            raise invalid(f"batch_size must be greater than zero, got {size}")
        batching = Batching(size, count, index, attrs["drop_remainder"])
        return Parquet(os.fsdecode(bytes(filename[()])), columns, batching).as_array()

    return compute
