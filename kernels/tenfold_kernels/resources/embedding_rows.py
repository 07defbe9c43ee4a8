"""The rows of an embedding variable: ids, weights, slots, frequencies and versions, each in an array of its own.

A row has weights, a slot of each optimizer's kind, and, where the table filters or evicts, a frequency and a version:
the global step of its last update. Rows come with their ids, and what goes leaves its row to the next one. Ids that a
filter has not admitted yet are apart (waiting_ids.py). Beside them are marks of what has changed (changed_rows.py) and
exports under way (kept_rows.py). Ids are found by id_map.py. What is done with the rows: embedding_saves.py and
embedding_tables.py.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tenfold_core import errors
from tenfold_core.checkpoint.table_rows import NEVER
from tenfold_core.file_errors import os_error
from tenfold_kernels.resources.changed_rows import ChangedRows
from tenfold_kernels.resources.growing import GrowingArray
from tenfold_kernels.resources.id_map import IdMap, as_ids
from tenfold_kernels.resources.kept_rows import Keepers
from tenfold_kernels.resources.waiting_ids import WaitingIds

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from tenfold_core.dtypes import DType
    from tenfold_kernels.resources.id_map import IdLoops
    from tenfold_kernels.resources.quota import Account

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Bytes of an id in the map, about; of a frequency and of a version; of the mark of a change.
_ID_BYTES, _NUMBER_BYTES, _MARK_BYTES = 20, 8, 4


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Which ids a table admits and which it evicts."""

    #: How often an id is asked for before it has weights; 0: at once.
    filter_freq: int = 0
    #: Steps without an update after which an id may go; 0: never.
    steps_to_live: int = 0
    #: Half the square of the norm of weights below which an id may go; below 0: never.
    l2_weight_threshold: float = -1.0
    #: What lookups of ids without weights give.
    value_without_weights: float = 0.0
    #: Whether frequencies are counted without a filter, and versions kept without an eviction.
    record_freq: bool = False
    record_version: bool = False
    #: Whether checkpoints have the ids that have no weights yet.
    saves_waiting: bool = True


class EmbeddingLoops(NamedTuple):
    """The loops of cpu/_compiled/id_index.py and cpu/_compiled/admitting.py."""

    ids: IdLoops
    admit: Callable[..., int]


class Column:
    """The weights, or a slot: a row for each id, and what a new one has."""

    def __init__(self, dtype: Any, first_DW: Array, make_file: Callable[[], BinaryIO] | None) -> None:
        self.first_DW = np.array(first_DW, dtype, order="C")
        self.rows = GrowingArray(dtype, first_DW.shape[1:], make_file)
        self.rows.reserve(1)

    def begin(self, rows: Array, keys: Array) -> None:
        """Gives these rows what new ones have: of the D first rows the one that the id chooses."""
        self.rows.array[rows] = self.first_DW[np.abs(keys) % len(self.first_DW)]


class EmbeddingRows:
    """Thread-safe: one lock for all of it. Methods of which the name begins with _ are called under it."""

    def __init__(
        self,
        name: str,
        key_dtype: DType,
        dtype: DType,
        first_DW: Array,
        loops: EmbeddingLoops,
        options: TableOptions = TableOptions(),
        account: Account | None = None,
        make_file: Callable[[], BinaryIO] | None = None,
    ) -> None:
        """`first_DW`: the weights that new ids have, chosen by the id modulo D. `account` is charged for all rows.
        `make_file` gives files for rows of weights and slots; without it they are in memory."""
        self.name, self.key_dtype, self.dtype, self.options = name, key_dtype, dtype, options
        self.lock = threading.RLock()
        self.account = account
        self._loops = loops
        self._ids = IdMap(loops.ids)
        self._make_file = make_file
        self._columns = {"": Column(dtype.as_numpy_dtype, first_DW, make_file)}
        #: Elements of a row of weights.
        self.width = int(first_DW.shape[1])
        self._freqs = GrowingArray(np.int64) if options.filter_freq or options.record_freq else None
        keeps = options.steps_to_live or options.record_version
        self._versions = GrowingArray(np.int64) if keeps else None
        #: Ids that have no weights yet; None where all are admitted at once.
        self._waiting = WaitingIds(loops.ids, bool(keeps)) if options.filter_freq else None
        #: How many ids went by `shrink`.
        self.evicted = 0
        #: The newest global step of which an update was told.
        self.newest_step = 0
        #: Ids that were looked up, each as often as it was, and those of them that had weights of their own by then.
        self.lookups = self.found = 0
        #: By slots, of which version of the map a line is, and what `line` gives. Columns that move count as a version.
        self._lines: dict[tuple[str, ...], tuple[int, tuple[Array, tuple[Array, ...]]]] = {}
        #: Of which version, and what `growth` gives.
        self._growth: tuple[int, Array] | None = None
        #: None while nobody asks for increments.
        self._changed: ChangedRows | None = None
        #: For the next export, of kept_rows.py.
        self._marks: Array | None = None
        #: Of exports under way.
        self._kept = Keepers()

    def __len__(self) -> int:
        return len(self._ids) + self.waiting

    @property
    def waiting(self) -> int:
        """How many ids have no weights yet."""
        return 0 if self._waiting is None else len(self._waiting)

    @property
    def nbytes(self) -> int:
        """What rows, their ids and the first rows take, without room to grow. Any thread, without the lock."""
        numbers = (self._freqs is not None) + (self._versions is not None)
        columns = list(self._columns.values())
        row = _NUMBER_BYTES * numbers + sum(column.rows.array[:1].nbytes for column in columns)
        waiting = 0 if self._waiting is None else self._waiting.nbytes
        return self._ids.nbytes + self._ids.rows * row + waiting + sum(column.first_DW.nbytes for column in columns)

    def width_of(self, slot: str) -> int:
        """Elements of a row of a slot. Raises NotFoundError for a slot that there is not."""
        return int(self._column(slot).first_DW.shape[1])

    def add_slot(self, name: str, first_DW: Array) -> None:
        """A slot that begins as `first_DW` says, for ids that are there, too; none if there is one of that name. Its
        rows may be narrower than those of weights."""
        with self.lock:
            if name in self._columns:
                return
            column = self._columns[name] = Column(self.dtype.as_numpy_dtype, first_DW, self._make_file)
            self._growth = None
            keys, rows = self._ids.items()
            column.rows.reserve(self._ids.rows)
            column.begin(rows, keys)
            self._charge(len(rows) * column.rows.array[:1].nbytes)

    def note_added(self, rows: Array) -> None:
        """These rows are those of new ids, and have begun; the caller has the lock."""
        if self._versions is not None:
            self._versions.reserve(self._ids.rows)
            self._versions.array[rows] = NEVER
        self._touch(rows)
        self._charge(rows.size * self._row_bytes)

    def record_changes(self) -> None:
        """From now on the table knows which of its rows change, at 4 bytes each; `changes(None)` begin here."""
        with self.lock:
            if self._changed is None:
                self._charge(len(self) * _MARK_BYTES)
                self._changed = ChangedRows(self._ids.rows, 0 if self._waiting is None else self._waiting.ids.rows)
            self._changed.start()

    def note_save(self, prefix: str) -> None:
        """A save of that name has the table as it is now; the caller holds the lock since it was exported."""
        with self.lock:
            if self._changed is not None:
                self._changed.end_period(prefix)

    def has(self, keys: Array) -> Array:
        """Whether each id is there, bool [keys.shape]."""
        ids = as_ids(keys)
        with self.lock:
            found = self._ids.find(ids) >= 0
            if self._waiting is not None:
                found |= self._waiting.ids.find(ids) >= 0
        return np.asarray(found.reshape(keys.shape))

    def _column(self, slot: str) -> Column:
        column = self._columns.get(slot)
        if column is None:
            raise errors.not_found(f"The embedding variable {self.name} has no slot {slot}: it was not initialized")
        return column

    def _rows(self, ids: Array) -> tuple[Array, Array]:
        """The rows of these ids, and those of them that are new and have begun. None of them waits any more."""
        if self.account is not None:
            self._check_room(ids, self._ids, self._row_bytes)
        rows, added = self._ids.find_or_add(ids)
        if added.size:
            keys = self._ids.keys(added)
            try:
                for column in self._columns.values():
                    before = column.rows.array
                    column.rows.reserve(self._ids.rows)
                    self._ids.version += column.rows.array is not before
            except (OSError, MemoryError) as error:
                self._ids.remove(keys)
                if isinstance(error, OSError):
                    raise os_error(f"rows of the embedding variable {self.name}", error) from None
                raise
            for column in self._columns.values():
                column.begin(added, keys)
            for numbers, nothing in ((self._freqs, self.options.filter_freq), (self._versions, NEVER)):
                if numbers is not None:
                    numbers.reserve(self._ids.rows)
                    numbers.array[added] = nothing
            self._leave_waiting(keys)
            self._touch(added)
            self._charge(added.size * self._row_bytes)
        return rows, added

    def _waiting_rows(self, ids: Array) -> Array:
        """The rows among those that wait of these ids, which have no weights; they are there from now on."""
        assert self._waiting is not None
        if self.account is not None:
            self._check_room(ids, self._waiting.ids, self._number_bytes)
        rows, added = self._waiting.rows_of(ids)
        if added.size:
            self._touch_waiting(added)
            self._charge(added.size * self._number_bytes)
        return rows

    def _admit(self, rows: Array) -> Array:
        """Gives ids that wait weights; their rows there are free then. What the rows of their weights are."""
        waiting = self._waiting
        assert waiting is not None
        rows = np.unique(rows)
        keys, freqs = waiting.ids.keys(rows), waiting.freqs.array[rows]
        versions = None if waiting.versions is None else waiting.versions.array[rows]
        admitted, _ = self._rows(keys)
        if self._freqs is not None:
            self._freqs.array[admitted] = freqs
        if self._versions is not None:
            self._versions.array[admitted] = versions
        return admitted

    def _check_room(self, ids: Array, among: IdMap, row_bytes: int) -> None:
        """Raises ResourceExhaustedError where new ids would take too much."""
        assert self.account is not None
        try:
            self.account.check(ids.size * row_bytes)
        except errors.ResourceExhaustedError:
            # not all of them need be new
            new = np.unique(ids[among.find(ids) < 0]).size
            self.account.check(new * row_bytes)

    def _remove(self, keys: Array) -> None:
        known = keys[self._ids.find(keys) >= 0] if self._changed is not None else keys
        if self._kept and keys.size:
            rows = self._ids.find(keys)
            self._kept.keep(rows[rows >= 0])
            self._kept.keep_free()
        rows = self._ids.remove(keys)
        # what stands in a row stays there until it is given out again
        self._charge(-rows.size * self._row_bytes)
        if self._versions is not None:
            self._versions.array[rows] = NEVER
        if self._changed is not None:
            self._changed.remove(known, rows)

    def _remove_waiting(self, keys: Array) -> None:
        known = self._leave_waiting(keys)
        if self._changed is not None and known.size:
            self._changed.remove_waiting(known)

    def _leave_waiting(self, keys: Array) -> Array:
        """Those of the keys that waited; they do not any more."""
        if self._waiting is None:
            return keys[:0]
        known, rows = self._waiting.remove(keys)
        self._charge(-known.size * self._number_bytes)
        if self._changed is not None:
            self._changed.waiting_marks.array[rows] = 0
        return known

    def _touch(self, rows: Array) -> None:
        if self._changed is not None:
            self._changed.mark(rows, self._ids.rows)

    def _touch_waiting(self, rows: Array) -> None:
        if self._changed is not None and self._waiting is not None:
            self._changed.mark_waiting(rows, self._waiting.ids.rows)

    @property
    def _row_bytes(self) -> int:
        return self._number_bytes + sum(column.rows.array[:1].nbytes for column in self._columns.values())

    @property
    def _number_bytes(self) -> int:
        """Of an id, but for its weights and slots."""
        numbers = (self._freqs is not None) + (self._versions is not None)
        return _ID_BYTES + _NUMBER_BYTES * numbers + (0 if self._changed is None else _MARK_BYTES)

    def _charge(self, nbytes: int) -> None:
        if self.account is not None:
            self.account.add(nbytes)
