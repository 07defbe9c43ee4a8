"""A table of weights by ids that nobody counts beforehand: rows come with their first lookup or update.

What an embedding variable is on its task. An id that was asked for less often than `filter_freq` has no weights yet and
is not trained. Rows are kept by embedding_rows.py and saved by embedding_saves.py. Used by cpu/embedding.py, and for
many tables at once by cpu/_many_tables.py. Follows DeepRec's core/framework/embedding (EmbeddingVar, its filters,
Shrink).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tenfold_core import errors
from tenfold_core.checkpoint.table_rows import NEVER
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import invalid, shape_text
from tenfold_kernels.resources.embedding_saves import SavedTable
from tenfold_kernels.resources.id_map import as_ids
from tenfold_kernels.resources.kept_rows import PAUSE
from tenfold_kernels.resources.table_lines import MOST_GROWING, NO_LINE, growth_of, line_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.resources.embedding_rows import Array
    from tenfold_kernels.resources.growing import GrowingArray
    from tenfold_kernels.resources.id_map import IdMap

#: What rows of half types are updated in.
_FLOAT = np.dtype(np.float32)
#: Rows that an eviction looks at at a time.
_PIECE = 4096


class EmbeddingTable(SavedTable):
    """Thread-safe."""

    #: What handles say that they name, of slots as well.
    HANDLE_TYPE = "EmbeddingVariable"

    def check_gradient(self, name: str, grad: Array, keys: Array) -> None:
        """Raises InvalidArgumentError unless a gradient has a row of weights for each key."""
        if keys.ndim != 1 or grad.shape != (keys.size, self.width):
            raise invalid(
                f"{name} has shape {shape_text(grad.shape)} for keys of shape {shape_text(keys.shape)}; a row of "
                f"{self.width} for each key would be right"
            )

    def gather(self, keys: Array, first: Array | None = None, counts: Array | None = None) -> Array:
        """The weights of each id, [*keys.shape, width]. New ids get theirs, from `first` (a row for each key, or one
        for all) if it is given; `counts` says how often each was asked for, instead of once."""
        ids = as_ids(keys)
        allow((ids.size, self.width), self.dtype.as_numpy_dtype)
        with self.lock:
            often = np.ones(ids.size, np.int64) if counts is None else as_ids(counts)
            if self._waiting is None:
                rows, added = self._rows(ids)
                without = added[:0]
                self._count_rows(rows, often)
            else:
                rows, added, without = self._filtered(ids, often)
            column = self._columns[""]
            if first is not None and added.size:
                each = np.broadcast_to(first.reshape(-1, self.width), (ids.size, self.width))
                chosen = np.isin(rows, added)
                column.rows.array[rows[chosen][::-1]] = each[chosen][::-1]  # the first of a key's
            out = column.rows.array.take(rows, axis=0, mode="clip")
            out[without] = self.options.value_without_weights
            self._count(ids.size, ids.size - (added.size if self._waiting is None else without.size))
        return out.reshape(*keys.shape, self.width)

    def _filtered(self, ids: Array, often: Array) -> tuple[Array, Array, Array]:
        """Counts lookups of ids that wait. The rows of all, those of them that were admitted just now, and the places
        of ids that had no weights yet, of which the rows may be −1."""
        rows = self._ids.find(ids)
        self._count_rows(rows[rows >= 0], often[rows >= 0])
        places = np.flatnonzero(rows < 0)
        if not places.size:
            return rows, places, places
        had, added = self._count_waiting(ids[places], often[places])
        rows[places] = self._ids.find(ids[places])
        return rows, added, places[had == 0]

    def _count_waiting(self, ids: Array, often: Array) -> tuple[Array, Array]:
        """Counts lookups of ids without weights: whether each had some by then, and the rows of those that have now."""
        waiting, least, had = self._waiting, self.options.filter_freq, np.empty(ids.size, np.int64)
        assert waiting is not None
        rows = self._waiting_rows(ids)
        waiting.kept.keep(rows)
        more = self._loops.admit(rows, often, waiting.freqs.array, least, int(self.options.record_freq), had)
        self._touch_waiting(rows)
        if more or had.any():
            return had, self._admit(rows[waiting.freqs.array[rows] >= least])
        return had, rows[:0]

    def gather_waiting(self, ids: Array) -> Array:
        """As `gather` of ids that `line` has not found, a row for each or one for all; the caller has the lock."""
        had, _ = self._count_waiting(ids, np.ones(ids.size, np.int64))
        value = self.options.value_without_weights
        if not had.any():
            self._count(ids.size, 0)
            return np.full((1, self.width), value, self.dtype.as_numpy_dtype)
        out = self._columns[""].rows.array.take(self._ids.find(ids), axis=0, mode="clip")
        out[had == 0] = value
        self._count(ids.size, int(np.count_nonzero(had)))
        return out

    def look_up(self, keys: Array) -> Array:
        """As `gather`, but adds and counts nothing: unknown ids have the weights that they would begin with."""
        ids = as_ids(keys)
        allow((ids.size, self.width), self.dtype.as_numpy_dtype)
        with self.lock:
            rows, column = self._ids.find(ids), self._columns[""]
            absent = rows < 0
            out = np.take(column.rows.array, np.where(absent, 0, rows), axis=0)
            out[absent] = column.first_DW[np.abs(ids[absent]) % len(column.first_DW)]
            if self._waiting is not None:
                out[absent] = self.options.value_without_weights
            self._count(ids.size, ids.size - int(np.count_nonzero(absent)))
        return out.reshape(*keys.shape, self.width)

    def update(
        self, slots: Sequence[str], keys: Array, apply: Callable[[list[Array], Array, Array], Any], step: int
    ) -> Any:
        """Calls `apply(columns, rows, places)` with the weights and these slots, all [rows, …], for the rows of the ids
        that may be trained, and their places in `keys`. The version of all is `step`. What it gives. Rows of half types
        are float32 for `apply`, and are rounded once it is done.

        Raises NotFoundError for a slot that there is not.
        """
        ids = as_ids(keys)
        with self.lock:
            columns = [self._column(name) for name in ("", *slots)]
            if self._waiting is None:
                rows, places = self._rows(ids)[0], np.arange(ids.size)
            else:
                rows, places = self._admitted(ids, step)
            self.note_update(rows, step)
            if self.dtype.size < _FLOAT.itemsize:
                return _in_float([column.rows.array for column in columns], rows, places, apply)
            return apply([column.rows.array[: self._ids.rows] for column in columns], rows, places)

    def _admitted(self, ids: Array, step: int) -> tuple[Array, Array]:
        """The rows of the ids that have weights, and their places; the version of the others is `step`."""
        rows = self._ids.find(ids)
        has = rows >= 0
        if not has.all():
            self.note_waiting(ids[~has], step)
        return rows[has], np.flatnonzero(has)

    def note_waiting(self, ids: Array, step: int) -> None:
        """These ids, which have no weights, would be updated in that step; the caller has the lock."""
        waiting = self._waiting
        assert waiting is not None
        if waiting.versions is None and self._changed is None and waiting.has_all(ids):
            return
        rows = self._waiting_rows(ids)
        waiting.kept.keep(rows)
        if waiting.versions is not None:
            waiting.versions.array[rows] = step
        self._touch_waiting(rows)

    @property
    def finds_admitted(self) -> bool:
        """Whether the ids that are not found by `line` wait, or are new and will."""
        return self._waiting is not None and not self.options.record_freq

    def line(self, slots: tuple[str, ...], keys: int) -> tuple[Array, tuple[Array, ...]]:
        """Where the table and these slots are (table_lines.py), to find and to update so many ids, and the arrays that
        are there; zeros for a table that counts all lookups. Holds while the caller has the lock and adds none.

        Raises NotFoundError for a slot that there is not."""
        if self.options.record_freq:
            return NO_LINE, ()
        self._ids.go_on(keys)
        known = self._lines.get(slots)
        if known is None or known[0] != self._ids.version:
            # lines of another version would hold its arrays
            self._lines = {name: each for name, each in self._lines.items() if each[0] == self._ids.version}
            columns = [self._column(name).rows.array for name in ("", *slots)]
            index, old, ids = self._ids.arrays
            line = line_of(index, old, ids, columns, self._ids.seed, self._ids.state)
            known = self._lines[slots] = self._ids.version, (line, (index, old, ids, *columns))
        return known[1]

    def growth(self, more: int) -> Array | None:
        """What it takes to add so many ids at most where `line` says the table is (table_lines.py); the caller has the
        lock, and calls `note_added`. None where only `gather` and `update` can add them."""
        if self._waiting is not None:
            return None
        columns = self._columns.values()
        rows = self._ids.rows + more
        if len(columns) > MOST_GROWING or not self._ids.has_room(more):
            return None
        if any(rows > column.rows.room for column in columns):
            return None
        if self.account is not None:
            try:
                self.account.check(more * self._row_bytes)
            except errors.ResourceExhaustedError:
                return None
        known = self._growth
        if known is None or known[0] != self._ids.version:
            begun = [(column.rows.array, column.first_DW) for column in columns]
            known = self._growth = self._ids.version, growth_of(self._ids.free, begun)
        return known[1]

    def note_found(self, lookups: int, added: int = 0) -> None:
        """So many ids were looked up, of which so many are new; the caller has the lock."""
        self._count(lookups, lookups - added)

    def note_update(self, rows: Array, step: int) -> None:
        """These rows are about to be updated, in that step; the caller has the lock."""
        self._kept.keep(rows)
        self.newest_step = max(self.newest_step, step)
        if self._versions is not None:
            self._versions.array[rows] = step
        self._touch(rows)

    def shrink(self, step: int = 0) -> int:
        """Evicts what has lived too long by now, or weighs too little; how many ids. It is not earlier than the last
        update's step."""
        waiting, ages = self._waiting, self.options.steps_to_live > 0
        if self._versions is not None and ages:
            step = int(self._versions.array[: self._ids.rows].max(initial=step))
        elif self.options.l2_weight_threshold < 0:
            return 0
        if waiting is not None and waiting.versions is not None and ages:
            step = int(waiting.versions.array[: waiting.ids.rows].max(initial=step))
        evicted = self._in_pieces(self._ids, lambda rows: self._shrink(rows, step))
        if waiting is not None and ages:
            evicted += self._in_pieces(waiting.ids, lambda rows: self._shrink_waiting(rows, step))
        return evicted

    def _in_pieces(self, ids: IdMap, shrink: Callable[[Array], int]) -> int:
        """Evicts some rows of a map after the other; how many."""
        evicted = 0
        for begin in range(0, ids.rows, _PIECE):
            if begin:
                time.sleep(PAUSE)
            with self.lock:
                gone = shrink(np.arange(begin, min(begin + _PIECE, ids.rows)))
                self.evicted += gone
            evicted += gone
        return evicted

    def _shrink(self, rows: Array, step: int) -> int:
        options, gone = self.options, np.zeros(rows.size, np.bool_)
        if self._versions is not None and options.steps_to_live:
            begin, gone = self._aged(self._versions.array[rows], step)
            begun = _given_out(self._ids, rows[begin])
            self._kept.keep(begun)
            self._versions.array[begun] = step
            self._touch(begun)
        if options.l2_weight_threshold >= 0:
            weights = self._columns[""].rows.array[rows].astype(np.float64)
            gone |= 0.5 * np.square(weights).sum(axis=1) < options.l2_weight_threshold
        rows = _given_out(self._ids, rows[gone])
        self._remove(self._ids.keys(rows))
        return int(rows.size)

    def _shrink_waiting(self, rows: Array, step: int) -> int:
        waiting = self._waiting
        assert waiting is not None
        assert waiting.versions is not None
        begin, gone = self._aged(waiting.versions.array[rows], step)
        begun, rows = _given_out(waiting.ids, rows[begin]), _given_out(waiting.ids, rows[gone])
        waiting.kept.keep(begun)
        waiting.versions.array[begun] = step
        self._touch_waiting(begun)
        self._remove_waiting(waiting.ids.keys(rows))
        return int(rows.size)

    def _aged(self, versions: Array, step: int) -> tuple[Array, Array]:
        """Of rows with these versions: of which the life begins now, and of which it has ended."""
        never = versions == NEVER
        return never, ~never & (step - versions > self.options.steps_to_live)

    def frequencies(self, keys: Array) -> Array:
        """How often each id was counted, int64 [keys.shape]; 0 for unknown ones and where nothing is counted."""
        return self._numbers(keys, self._freqs, None if self._waiting is None else self._waiting.freqs, 0)

    def versions(self, keys: Array) -> Array:
        """The global step of each id's last update, int64 [keys.shape]; NEVER for others."""
        return self._numbers(keys, self._versions, None if self._waiting is None else self._waiting.versions, NEVER)

    def _numbers(
        self, keys: Array, numbers: GrowingArray | None, of_waiting: GrowingArray | None, nothing: int
    ) -> Array:
        ids = as_ids(keys)
        found = np.full(ids.size, nothing, np.int64)
        with self.lock:
            maps = [(self._ids, numbers)] + ([] if self._waiting is None else [(self._waiting.ids, of_waiting)])
            for among, each in maps:
                if each is not None:
                    rows = among.find(ids)
                    found[rows >= 0] = each.array[rows[rows >= 0]]
        return found.reshape(keys.shape)

    def _count_rows(self, rows: Array, often: Array) -> None:
        """Counts lookups of rows that have weights, where that is wanted."""
        if self._freqs is not None and self.options.record_freq:
            self._kept.keep(rows)
            self._loops.admit(rows, often, self._freqs.array, 0, 1, np.empty_like(rows))
            self._touch(rows)

    def _count(self, lookups: int, found: int) -> None:
        self.lookups += lookups
        self.found += found


def _given_out(ids: IdMap, rows: Array) -> Array:
    """Those of the rows that are an id's."""
    return np.asarray(rows[ids.find(ids.keys(rows)) == rows])


def _in_float(columns: Sequence[Array], rows: Array, places: Array, apply: Callable[..., Any]) -> Any:
    """Calls `apply` with float32 copies of these rows, and puts them back, rounded."""
    chosen, at = np.unique(rows, return_inverse=True)
    wide = [column[chosen].astype(_FLOAT) for column in columns]
    found = apply(wide, at.astype(np.int64, copy=False), places)
    for column, values in zip(columns, wide, strict=True):
        column[chosen] = values
    return found


@dataclass(frozen=True, slots=True, weakref_slot=True)
class EmbeddingSlot:
    """A slot variable: a column of another variable's table."""

    HANDLE_TYPE: ClassVar[str] = EmbeddingTable.HANDLE_TYPE

    table: EmbeddingTable
    name: str
