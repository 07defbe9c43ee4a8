"""An embedding variable in whole checkpoints and in increments: what its table gives at one moment, and what is read.

Names and their order are those of core/checkpoint/table_rows.py. Used by cpu/embedding.py and
cpu/embedding_increments.py.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core.checkpoint import table_rows
from tenfold_core.checkpoint.table_rows import CHANGED, WHOLE, Snapshot
from tenfold_kernels.resources.embedding_saves import Changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tenfold_core.checkpoint import BundleReader
    from tenfold_kernels.resources.embedding_tables import EmbeddingTable

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def tensors_of(table: EmbeddingTable, slots: Mapping[str, str]) -> Iterator[tuple[str, Iterator[tuple[str, Array]]]]:
    """By the names under which a table's weights and slots are saved (`slots` has the slot of each): names and values
    of what a checkpoint has of them at this moment, at which the caller has the table's lock. All is copied when the
    first is asked for, without the lock."""
    finish = table.begin_export([*dict.fromkeys(slots.values())], table_rows.order_of)

    def tensors() -> Iterator[tuple[str, Iterator[tuple[str, Array]]]]:
        found = finish()
        waiting = found.waiting if table.options.filter_freq else None
        for name, slot in slots.items():
            yield name, _tensors_of(found.rows[slot], None if slot else waiting, slot, name)

    return tensors()


def _tensors_of(found: Snapshot, waiting: Snapshot | None, slot: str, name: str) -> Iterator[tuple[str, Array]]:
    # a slot has keys and values
    yield from itertools.islice(table_rows.tensors_of(name, found, WHOLE[0]), 2 if slot else None)
    if waiting is not None:
        yield from table_rows.tensors_of(name, waiting, WHOLE[1])


def changed_tensors_of(changes: Changes, slot: str, name: str) -> Iterator[tuple[str, Array]]:
    """Names and values of what an increment has of a table's weights or of a slot."""
    rows = changes.rows
    count = len(rows.values)
    waiting = rows._replace(values=rows.values[:0]).at(slice(count, None))
    yield from table_rows.tensors_of(name, rows.at(slice(count)), CHANGED[0])
    if waiting.keys.size and not slot:
        yield from table_rows.tensors_of(name, waiting, CHANGED[1])
    if changes.removed.size and not slot:
        yield name + table_rows.REMOVED, changes.removed


def read(reader: BundleReader, primary: str, slot: str, part: int, parts: int) -> Snapshot:
    """`table_rows.read` of a whole checkpoint."""
    return table_rows.read(reader, primary, slot, part, parts, WHOLE)[0]


def read_changes(reader: BundleReader, primary: str, slot: str, part: int, parts: int) -> Changes:
    """`table_rows.read` of an increment."""
    return Changes(*table_rows.read(reader, primary, slot, part, parts, CHANGED))
