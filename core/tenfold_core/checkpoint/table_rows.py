"""An embedding variable in a checkpoint and in an increment: a tensor each for ids, rows, versions, frequencies.

    whole, `WHOLE`               increment, `CHANGED`
    a/b-keys                     a/b-sparse_incr_keys               ids with weights, ordered by id modulo 1,000
    a/b-values                   a/b-sparse_incr_values             their rows
    a/b-versions  a/b-freqs      a/b-sparse_incr_versions  …_freqs  int64
    a/b-partition_offset         a/b-incr_partition_offset          where the ids of each remainder begin
    a/b-keys_filtered, …         a/b-sparse_incr_keys_filtered, …   ids that are not admitted yet: no rows
    a/b-partition_filter_offset                                     where those begin
                                 a/b-sparse_incr_removed            ids that have gone

A slot of a whole checkpoint has keys and values only. A variable in parts has a set for each, a/b/part_0-keys and so
on, and may be read into another number of parts: id % 1000 % parts says which. Ids that wait are DeepRec's in whole
checkpoints; in increments they and those that have gone are read and written here only. Follows DeepRec's
Embedding-Variable-Export-Format.md and core/kernels/incr_save_restore_ops.h.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tenfold_core.checkpoint import increments
from tenfold_core.embedding_parts import PART_BUCKETS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenfold_core.checkpoint.bundle_reader import BundleReader

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: The version of an id without an update.
NEVER = -1
#: Ids that have gone, in an increment.
REMOVED = "-sparse_incr_removed"


class Snapshot(NamedTuple):
    """What a table has: ids, their rows of weights or of a slot, versions and frequencies. Where some ids wait for
    admission, the rows are those of the first ids, which do not."""

    keys: Array
    values: Array
    versions: Array
    freqs: Array

    def at(self, places: Array | slice) -> Snapshot:
        """The ids at these places, or where a mask is true, all with rows or none of them."""
        values = self.values[places] if len(self.values) else self.values
        return Snapshot(self.keys[places], values, self.versions[places], self.freqs[places])


class Names(NamedTuple):
    """What is behind the name of a table, a slot or a part of one; "" for what there is none of."""

    keys: str
    values: str
    versions: str
    freqs: str
    offsets: str


#: Of ids with weights, and of those that wait.
WHOLE = (
    Names("-keys", "-values", "-versions", "-freqs", "-partition_offset"),
    Names("-keys_filtered", "", "-versions_filtered", "-freqs_filtered", "-partition_filter_offset"),
)
CHANGED = (
    Names(
        increments.KEYS,
        increments.VALUES,
        "-sparse_incr_versions",
        "-sparse_incr_freqs",
        "-incr_partition_offset",
    ),
    Names(f"{increments.KEYS}_filtered", "", "-sparse_incr_versions_filtered", "-sparse_incr_freqs_filtered", ""),
)


def part_of(keys: Array, parts: int) -> Array:
    """Which part of a variable each id is in."""
    return np.asarray(keys % PART_BUCKETS % parts)


def joined(sets: Sequence[Snapshot]) -> Snapshot:
    """All ids, in the order of the sets."""
    return Snapshot(*(np.concatenate(arrays) for arrays in zip(*sets, strict=True)))


def order_of(keys: Array) -> Array:
    """The places of the keys in the order in which files have them."""
    return np.argsort((keys % PART_BUCKETS).astype(np.int16), kind="stable")


def tensors_of(name: str, rows: Snapshot, names: Names) -> Iterator[tuple[str, Array]]:
    """Names and values of the tensors of one part, keys and values first."""
    remainders = rows.keys % PART_BUCKETS
    if (remainders[1:] < remainders[:-1]).any():
        order = order_of(rows.keys)
        rows, remainders = rows.at(order), remainders[order]
    for behind, array in zip(names, rows, strict=False):
        if behind:
            yield name + behind, array
    if names.offsets:
        # np.bincount would stop all other threads meanwhile
        yield name + names.offsets, np.searchsorted(remainders, np.arange(PART_BUCKETS + 1)).astype(np.int32)


def read(
    reader: BundleReader, primary: str, slot: str, part: int, parts: int, names: tuple[Names, Names]
) -> tuple[Snapshot, Array]:
    """What a file has of a variable named `primary`, or of its slot, a name behind that one; or of one of its parts,
    whatever number of them was saved: ids with weights, then those that wait; and ids that have gone.

    Blocks. Raises NotFoundError where there is nothing under that name.
    """
    whole = primary.removesuffix(f"/part_{part}") if parts > 1 else primary
    sets = [read_set(reader, each, names) for each in _saved_names(reader, whole, slot, names[0].keys)]
    if not sets:
        raise increments.missing(whole + slot + names[0].keys)
    given, waiting, removed = zip(*sets, strict=True)
    here = [each.at(part_of(each.keys, parts) == part) for each in (joined(given), joined(waiting))]
    gone = np.concatenate(removed)
    return joined(here), gone[part_of(gone, parts) == part]


def read_set(reader: BundleReader, name: str, names: tuple[Names, Names]) -> tuple[Snapshot, Snapshot, Array]:
    """What there is under one name, which has keys: ids with weights, those that wait, those that have gone. Blocks."""
    have, wait = names
    keys, values = reader.read(name + have.keys), reader.read(name + have.values)

    def some(suffix: str) -> Array:
        return reader.read(name + suffix) if reader.contains(name + suffix) else keys[:0]

    def with_numbers(keys: Array, values: Array, names: Names) -> Snapshot:
        versions, freqs = some(names.versions), some(names.freqs)
        return Snapshot(
            keys,
            values,
            versions if versions.size == keys.size else np.full(keys.size, NEVER, np.int64),
            freqs if freqs.size == keys.size else np.zeros(keys.size, np.int64),
        )

    waiting = with_numbers(some(wait.keys), values[:0], wait)
    return with_numbers(keys, values, have), waiting, some(REMOVED)


def _saved_names(reader: BundleReader, whole: str, slot: str, keys: str) -> Iterator[str]:
    """The name of a variable or of its slot, or those of its parts, as far as the checkpoint has their `keys`."""
    if reader.contains(whole + slot + keys):
        yield whole + slot
        return
    for number in itertools.count():
        name = f"{whole}/part_{number}{slot}"
        if not reader.contains(name + keys):
            return
        yield name
