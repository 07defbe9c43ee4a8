"""A checkpoint and its increments made one whole checkpoint, without a session: what restoring them would give.

Embedding variables are put together by key, in as many parts as the whole checkpoint has; other variables get the rows
or the values of the increments. Memory: one variable at a time. Used by `tenfold compact`; checkpoint_chain.py says
which files fit together, core/checkpoint/table_rows.py what a table is in them.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core.checkpoint import BundleReader, BundleWriter, increments
from tenfold_core.checkpoint.table_rows import CHANGED, WHOLE, Snapshot, joined, part_of, read_set, tensors_of
from tenfold_core.dtypes import as_dtype
from tenfold_core.file_names import file_path
from tenfold_core.files import EVERYWHERE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_PART = re.compile(r"/part_(\d+)(?=/|$)")


def compact(full: str, chain: Sequence[str], output: str) -> None:
    """Writes what the whole checkpoint `full` and the increments of `chain`, in order, come to as the whole checkpoint
    `output`, and the meta graph of `full` beside it.

    Blocks. A reader sees all of it or nothing. Raises the reader's errors for files that are damaged, NotFoundError
    where an increment lacks a variable of the checkpoint.
    """
    with ExitStack() as stack:
        whole = stack.enter_context(BundleReader(file_path(full)))
        later = [stack.enter_context(BundleReader(file_path(prefix))) for prefix in chain]
        writer = stack.enter_context(BundleWriter(file_path(output)))
        tables = _tables(whole)
        done: set[str] = set()
        keys: dict[str, Array] = {}
        # a slot comes after its variable, whose name it begins with
        for name in sorted(tables):
            primary = max((each for each in tables if name.startswith(f"{each}/")), key=len, default=None)
            for each, value in _table(whole, later, name, tables[name], keys, primary):
                writer.add(each, value, as_dtype(value.dtype))
                done.add(each)
        for name in whole.names():
            if name not in done:
                writer.add(name, _variable(whole, later, name), whole.dtype_and_shape(name)[0])
    meta = file_path(full) + ".meta"
    if EVERYWHERE.exists(meta):
        _copy(meta, file_path(output) + ".meta")


def _tables(reader: BundleReader) -> dict[str, list[str]]:
    """Embedding variables and their slots: the names of the parts of each, in order, by the whole's name."""
    names = set(reader.names())
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        stem = name.removesuffix("-keys")
        if stem != name and f"{stem}-values" in names:
            found.setdefault(increments.whole_name(stem), []).append(stem)
    for parts in found.values():
        parts.sort(key=lambda part: int(match[1]) if (match := _PART.search(part)) else 0)
    return found


def _table(
    whole: BundleReader,
    later: Sequence[BundleReader],
    name: str,
    parts: Sequence[str],
    known: dict[str, Array],
    primary: str | None,
) -> Iterator[tuple[str, Array]]:
    """What a whole checkpoint has of one table or slot. `known` gets the ids that have weights, by the table's name."""
    saved = [read_set(whole, part, WHOLE) for part in parts]
    given, waiting = joined([each[0] for each in saved]), joined([each[1] for each in saved])
    for reader in later:
        sets = [each for each in _row_sets(reader) if increments.whole_name(each) == name]
        if not sets:
            raise increments.missing(name + increments.KEYS)
        for each in sets:
            new, waits, removed = read_set(reader, each, CHANGED)
            given = _changed(given, new, removed, waits.keys)
            waiting = _changed(waiting, waits, removed, new.keys)
    if primary is not None and primary in known:
        given = given.at(np.isin(given.keys, known[primary]))
    known[name] = given.keys
    for number, part in enumerate(parts):
        for rows, names in zip((given, waiting), WHOLE, strict=True):
            mine = rows.at(part_of(rows.keys, len(parts)) == number)
            ascending = mine.at(np.argsort(mine.keys, kind="stable"))
            yield from (each for each in tensors_of(part, ascending, names) if whole.contains(each[0]))


def _changed(rows: Snapshot, new: Snapshot, *gone: Array) -> Snapshot:
    """The rows, but those of `new` where it has an id, and without the ids that are gone."""
    kept = rows.at(~np.isin(rows.keys, np.concatenate([new.keys, *gone])))
    return joined([kept, Snapshot(*(array.astype(old.dtype) for array, old in zip(new, rows, strict=True)))])


def _row_sets(reader: BundleReader) -> list[str]:
    return [name.removesuffix(increments.KEYS) for name in reader.names() if name.endswith(increments.KEYS)]


def _variable(whole: BundleReader, later: Sequence[BundleReader], name: str) -> Array:
    """An ordinary variable after all increments."""
    value = whole.read(name)
    for reader in later:
        if reader.contains(name) and not reader.slices(name):
            value = reader.read(name)
        else:
            increments.put_rows(reader, name, 0, value)
    return value


def _copy(source: str, destination: str) -> None:
    from tenfold_core.checkpoint.files import AtomicFile

    with AtomicFile(destination) as out:
        out.write(EVERYWHERE.read_whole(source))
