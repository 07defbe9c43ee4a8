"""The dataset of a Parquet file: an element is a batch of its rows, a component a column.

Used by cpu/parquet.py; tenfold_core/parquet_files.py reads the file. Follows DeepRec's parquet_batch_reader.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_core import dtypes, errors
from tenfold_core.graph_files import graph_files
from tenfold_core.parquet_files import Column, ParquetReader
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.datasets.core import Array, Dataset, Element, Machine, Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Batching:
    """How rows become batches: those of the row groups `part`, `part + parts`, …, `size` at a time."""

    size: int
    parts: int
    part: int
    #: Whether a last batch of fewer rows is left away.
    whole_only: bool


class Parquet(Dataset):
    """The batches of one file. Of a column of lists come the values, then the places where the lists begin."""

    is_slow = True

    def __init__(self, path: str, columns: Sequence[Column], batching: Batching) -> None:
        types, shapes = [], []
        rows = batching.size if batching.whole_only else None
        for column in columns:
            rank = column.ragged_rank
            types += [column.dtype, *[dtypes.int32] * rank]
            shapes.append(TensorShape([None if rank else rows]))
            if rank:
                shapes.append(TensorShape([None if rows is None else rows + 1]))
                shapes += [TensorShape([None])] * (rank - 1)
        super().__init__(types, shapes)
        self._path, self._columns, self._batching = path, tuple(columns), batching

    def iterate(self, run: Run) -> Machine:
        batches: Iterator[Element] | None = None
        given, is_over = 0, False

        def following() -> Element | None:
            nonlocal batches, given, is_over
            if is_over:
                return None
            if batches is None:
                batches = self._batches()
            try:
                found = next(batches, None)
            except errors.OpError:
                is_over = True
                raise
            if found is None:
                is_over = True
                return None
            given += 1
            return found

        def restore(state: int) -> None:
            nonlocal batches, given, is_over
            batches, given, is_over = None, 0, False
            for _ in range(state):
                run.check()
                following()

        return Machine(following, lambda: given, restore)

    def _batches(self) -> Iterator[Element]:
        how = self._batching
        with ParquetReader(self._path, files=graph_files()) as reader:
            groups = range(how.part, reader.row_groups, how.parts)
            for arrays in reader.batches(self._columns, how.size, groups):
                if how.whole_only and _rows(arrays, self._columns[0]) < how.size:
                    return
                yield tuple(arrays)


def _rows(arrays: Sequence[Array], first: Column) -> int:
    """The rows of a batch, by its first column."""
    return len(arrays[1]) - 1 if first.ragged_rank else len(arrays[0])
