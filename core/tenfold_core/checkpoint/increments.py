"""Increments of checkpoints: names of what they have, and their rows of ordinary variables put where they belong.

    v-sparse_incr_keys  v-sparse_incr_values      rows of v that have changed, and the numbers of them
    v/part_1-sparse_incr_…  -sparse_incr_first_row      of a part of v: the numbers begin at that row of v
    _incremental/previous  _incremental/previous_digest      what the increment follows
    _incremental/also  _incremental/also_digest      of the first of a chain: the end of the chain before, which it
                                                     follows as well; empty for others

An increment is a bundle. The first line is DeepRec's, also for embedding variables, which have more
(table_rows.py); what has no such line is there whole. An increment without `_incremental/…`
is DeepRec's and has all that changed since the whole checkpoint. Used by the kernels and by the client, which reads
chains (train/checkpoint_chain.py).
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_core.checkpoint.bundle_reader import meta_filename
from tenfold_core.checkpoint.slices import TensorSlice, overlap, parse_shape_and_slice
from tenfold_core.files import EVERYWHERE, Files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_core.checkpoint.bundle_reader import BundleReader

KEYS, VALUES, FIRST_ROW = "-sparse_incr_keys", "-sparse_incr_values", "-sparse_incr_first_row"
#: Names of no variables: the saves before as the tasks know them, which are not written; and as files show them.
SINCE, PREVIOUS, DIGEST = "_incremental/since", "_incremental/previous", "_incremental/previous_digest"
ALSO, ALSO_DIGEST = "_incremental/also", "_incremental/also_digest"

_PART = re.compile(r"/part_\d+(?=/|$)")
#: Of a shard that is not merged yet: what a sharded save puts behind the name that it was given.
_SHARD = re.compile(r"_temp_[0-9a-f]{32}/part-\d{5}-of-\d{5}$")


def saved_as(prefix: str) -> str:
    """The name of the checkpoint that a file or a shard of that name is of."""
    return _SHARD.sub("", prefix)


def digest_of(prefix: str, files: Files = EVERYWHERE) -> str:
    """A checksum of a checkpoint: of its index, which has those of all tensors. Blocks while the index is read."""
    return hashlib.sha256(files.read_whole(meta_filename(prefix))).hexdigest()


def rows_of(spec: str) -> tuple[int, int] | None:
    """The first row and the number of rows of a part of a tensor, "30 4 0,8:-"; None for a part that has not all of
    its rows' elements. Raises InvalidArgumentError for other texts."""
    shape, part, part_shape = parse_shape_and_slice(spec)
    if not part_shape or part_shape[1:] != shape[1:]:
        return None
    return part.bounds(shape)[0][0], part_shape[0]


def whole_name(part_name: str) -> str:
    """v/Adagrad, of v/part_3/Adagrad."""
    return _PART.sub("", part_name, count=1)


def put_rows(reader: BundleReader, name: str, first: int, value: np.ndarray[Any, Any]) -> None:
    """Writes what an increment has of a variable into `value`, which is its rows from `first` on, [R, …].

    `name` is the variable's or its part's; it may have been saved in another number of parts. Blocks. Raises
    NotFoundError where the increment has nothing of it, InvalidArgumentError for rows of another shape.
    """
    whole = whole_name(name)
    found = False
    if reader.contains(whole):
        found = True
        _, shape = reader.dtype_and_shape(whole)
        mine = ((first, first + len(value)), *((0, size) for size in value.shape[1:]))
        for part in reader.slices(whole) or [TensorSlice.full(len(shape))]:
            if len(shape) != value.ndim:
                raise _wrong(name, value, shape)
            if (meets := overlap(mine, part.bounds(shape))) is not None:
                value[meets[0]] = reader.read_slice(whole, part)[meets[1]]
    for set_name in _row_sets(reader, whole):
        found = True
        keys, rows = reader.read(set_name + KEYS).astype(np.int64), reader.read(set_name + VALUES)
        begin = int(reader.read(set_name + FIRST_ROW)) if reader.contains(set_name + FIRST_ROW) else 0
        if set_name != whole and not reader.contains(set_name + FIRST_ROW):
            if set_name != name:
                continue  # DeepRec does not say where its parts begin
            begin = first
        if rows.shape[1:] != value.shape[1:] or len(rows) != keys.size:
            raise _wrong(name, value, rows.shape)
        at = keys + (begin - first)
        inside = (at >= 0) & (at < len(value))
        value[at[inside]] = rows[inside]
    if not found:
        raise missing(name)


def missing(name: str) -> errors.NotFoundError:
    """For an increment that lacks a variable."""
    return errors.NotFoundError(None, None, f"Key {name} not found in checkpoint")


def _row_sets(reader: BundleReader, whole: str) -> Iterator[str]:
    """The names of `whole` and of its parts whose changed rows the increment has."""
    for name in reader.names():
        if name.endswith(KEYS) and whole_name(name.removesuffix(KEYS)) == whole:
            yield name.removesuffix(KEYS)


def _wrong(name: str, value: np.ndarray[Any, Any], shape: tuple[int, ...]) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        None, None, f"{name} has rows of shape {list(value.shape[1:])}, but the increment has a value of {list(shape)}"
    )
