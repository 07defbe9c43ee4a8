"""What a checkpoint or an increment has of an embedding variable, as of one moment, and taking it in again.

Reading begins with a mark that costs nothing and goes on in pieces, between which the table may change (kept_rows.py).
Used by embedding_files.py and cpu/embedding_increments.py. Decisions 0192 and 0197.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tenfold_core.checkpoint.table_rows import NEVER, Snapshot, joined
from tenfold_kernels.arrays import invalid, shape_text
from tenfold_kernels.resources.changed_rows import ChangedRows
from tenfold_kernels.resources.embedding_rows import Array, EmbeddingRows
from tenfold_kernels.resources.id_map import as_ids
from tenfold_kernels.resources.kept_rows import KeptRows, none_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


#: Rows that come between the preparation of an export and its moment.
_NEW_ROWS = 1 << 14


class Exported(NamedTuple):
    """What a checkpoint has of a table: ids that have weights, by slot ("" for the weights themselves), and those that
    wait for admission, without values."""

    rows: dict[str, Snapshot]
    waiting: Snapshot


class Changes(NamedTuple):
    """What a table has become since a save: ids with their rows as of now, those that wait for admission behind those
    that have weights, without values; and the ids that have gone."""

    rows: Snapshot
    removed: Array


class SavedTable(EmbeddingRows):
    """Rows that are saved and restored."""

    def export(self, slot: str = "") -> Snapshot:
        """All ids that have weights, in the order of their rows. Raises NotFoundError for a slot that there is not."""
        return self.begin_export([slot])().rows[slot]

    def export_waiting(self) -> Snapshot:
        """The ids that have none yet; no values."""
        return self.begin_export([])().waiting

    def begin_export(
        self, slots: Sequence[str], order: Callable[[Array], Array] | None = None
    ) -> Callable[[], Exported]:
        """What the table has now of its weights and of these slots, by a function that copies it in pieces, between
        which the table may change; to be called once, without the lock. `order` says in which order keys are to come,
        if not in that of their rows. Raises NotFoundError for a slot that there is not."""
        with self.lock:
            kept, kept_waiting = self._keep_from_now(slots)

        def finish() -> Exported:
            try:
                given_out, arrays = kept.whole(self.lock)
                waits, waiting = kept_waiting.whole(self.lock) if kept_waiting is not None else (given_out[:0], arrays)
            finally:
                self._stop_keeping(kept, kept_waiting)
            found, values = self._taken(arrays, slots)
            has = _ordered(np.flatnonzero(given_out), found.keys, order)
            rest = found.at(has)
            of_waiting = found.at(has[:0])
            if kept_waiting is not None:
                of_waiting, _ = self._taken(waiting, [])
                chosen = np.flatnonzero(waits & self.options.saves_waiting)
                of_waiting = of_waiting.at(_ordered(chosen, of_waiting.keys, order))
            nothing = np.zeros((0, self.width), self.dtype.as_numpy_dtype)
            return Exported(
                {slot: rest._replace(values=values.pop(slot).take(has, axis=0)) for slot in [*values]},
                of_waiting._replace(values=nothing),
            )

        return finish

    def prepare_export(self) -> None:
        """Makes what the next export needs and takes time to make; without the lock."""
        self._marks = none_kept(self._ids.rows + _NEW_ROWS)

    def put(self, given: Snapshot, slot: str = "", prefix: str = "", *, any_width: bool = False) -> None:
        """Replaces all rows, or those of a slot, by what the checkpoint `prefix` has. Ids that come with weights are
        admitted; those that wait come last, without values. Missing versions and frequencies are none. With
        `any_width`, of wider rows the first elements count, and what narrower ones lack is as in new rows.

        Raises InvalidArgumentError for rows of another width otherwise, or more of them than keys.
        """
        with self.lock:
            self._check_rows(given, slot, any_width)
            if not slot:
                ids = as_ids(given.keys)
                self._remove(np.setdiff1d(self._ids.items()[0], ids[: len(given.values)]))
                if self._waiting is not None:
                    self._remove_waiting(np.setdiff1d(self._waiting.ids.items()[0], ids))
            self._write(given, slot, prefix)

    def change(self, changes: Changes, slot: str = "", prefix: str = "") -> None:
        """Makes the changes, of all or of a slot, that the increment `prefix` of a checkpoint has. Raises as `put`."""
        with self.lock:
            self._check_rows(changes.rows, slot)
            if not slot:
                # an id that waits has lost the weights that it may have had
                waiting = as_ids(changes.rows.keys)[len(changes.rows.values) :]
                self._remove(np.concatenate([as_ids(changes.removed), waiting]))
                self._remove_waiting(as_ids(changes.removed))
            self._write(changes.rows, slot, prefix)

    def changes(self, since: str | None, slot: str = "", also: Array | None = None) -> Changes:
        """What has changed since the save or the checkpoint restored `since`; None: since `record_changes`, and nothing
        without it. The ids `also` count as changed.

        Raises FailedPreconditionError for a save that the table does not know, NotFoundError for an unknown slot.
        """
        return self.begin_changes(since, [slot], also)()[slot]

    def begin_changes(
        self, since: str | None, slots: Sequence[str], also: Array | None = None
    ) -> Callable[[], dict[str, Changes]]:
        """What `changes` of each of these would give now, by a function as that of `begin_export`. Raises as they."""
        with self.lock:
            period, removed, named = None, [np.zeros(0, np.int64)], np.zeros(0, np.int64)
            named_waiting = named
            if since is not None or self._changed is not None:
                changed = self._changed or ChangedRows(0)
                after = changed.after(since, self.name)
                removed += changed.removed_after(after)
                period = after, changed.turn()
            if also is not None and also.size:
                ids = as_ids(also)
                named = self._ids.find(ids)
                named_waiting = named[:0] if self._waiting is None else self._waiting.ids.find(ids)
            kept, kept_waiting = self._keep_from_now(slots)

        def chosen(kept: KeptRows, named: Array) -> list[Array]:
            rows = _without(named[named >= 0], named[:0])
            if period is not None:
                marks = kept.column(self.lock, 1)
                marked = np.flatnonzero((marks > period[0]) & (marks <= period[1]))
                rows = _without(np.concatenate([rows, marked]), rows[:0]) if rows.size else marked
            return kept.chosen(self.lock, rows)

        def finish() -> dict[str, Changes]:
            try:
                found, values = self._taken(chosen(kept, named), slots)
                if kept_waiting is not None:
                    waiting, _ = self._taken(chosen(kept_waiting, named_waiting), [])
                    # those with weights first, and the rows are theirs
                    found = joined([found, waiting])
            finally:
                self._stop_keeping(kept, kept_waiting)
            gone = _without(np.concatenate(removed), found.keys).astype(found.keys.dtype)
            return {slot: Changes(found._replace(values=values[slot]), gone) for slot in slots}

        return finish

    def _check_rows(self, given: Snapshot, slot: str, any_width: bool = False) -> None:
        width, shape = self._column(slot).first_DW.shape[1], given.values.shape
        if len(shape) != 2 or (shape[1] != width and not any_width) or len(given.values) > given.keys.size:
            raise invalid(
                f"The embedding variable {slot or self.name} has rows of {width} elements; {given.keys.size} keys came "
                f"with values of shape {shape_text(shape)}"
            )

    def _write(self, given: Snapshot, slot: str, prefix: str) -> None:
        ids, count = as_ids(given.keys), len(given.values)
        column = self._column(slot)
        rows, _ = self._rows(ids[:count])
        self._kept.keep(rows)
        common = min(column.first_DW.shape[1], given.values.shape[1])
        if common < column.first_DW.shape[1]:
            column.begin(rows, ids[:count])
        column.rows.array[rows, :common] = given.values[:, :common]
        if slot:
            return
        freqs = given.freqs if given.freqs.size else np.zeros(ids.size, np.int64)
        versions = given.versions if given.versions.size else np.full(ids.size, NEVER, np.int64)
        if self._freqs is not None:
            self._freqs.array[rows] = np.maximum(freqs[:count], self.options.filter_freq)
        if self._versions is not None:
            self._versions.array[rows] = versions[:count]
        self._touch(rows)
        self._write_waiting(ids[count:], freqs[count:], versions[count:])
        if self._changed is not None and prefix:
            self._changed.begin(prefix)

    def _write_waiting(self, ids: Array, freqs: Array, versions: Array) -> None:
        """Ids without weights. Those that come often enough by now are admitted, with the weights of new ones."""
        waiting = self._waiting
        if waiting is None or not ids.size:
            if ids.size:
                self._rows(ids)
            return
        rows = self._waiting_rows(ids)
        waiting.kept.keep(rows)
        waiting.freqs.array[rows] = freqs
        if waiting.versions is not None:
            waiting.versions.array[rows] = versions
        self._touch_waiting(rows)
        ready = rows[freqs >= self.options.filter_freq]
        if ready.size:
            self._admit(ready)

    def _keep_from_now(self, slots: Sequence[str]) -> tuple[KeptRows, KeptRows | None]:
        """The rows as they are now, and those of ids that wait."""
        for slot in slots:
            self._column(slot)
        changed, waiting = self._changed, self._waiting
        marks, self._marks = self._marks, None
        kept = KeptRows(self._ids.rows, self._ids.free_rows, lambda: self._arrays(slots, changed), marks)
        self._kept.begin(kept)
        if waiting is None:
            return kept, None
        numbers = [(changed.waiting_marks if changed else None), waiting.versions, waiting.freqs]
        of_waiting = KeptRows(
            waiting.ids.rows,
            waiting.ids.free_rows,
            lambda: [waiting.ids.row_keys, *(each.array for each in numbers if each is not None)],
        )
        return kept, waiting.kept.begin(of_waiting)

    def _stop_keeping(self, kept: KeptRows, of_waiting: KeptRows | None) -> None:
        with self.lock:
            self._kept.end(kept)
            if self._waiting is not None and of_waiting is not None:
                self._waiting.kept.end(of_waiting)

    def _arrays(self, slots: Sequence[str], changed: ChangedRows | None) -> list[Array]:
        """What stands by rows: keys, marks, versions and frequencies, if there are any, weights and slots."""
        numbers = (changed.marks if changed else None), self._versions, self._freqs
        columns = [self._columns[slot].rows.array for slot in slots]
        return [self._ids.row_keys, *(each.array for each in numbers if each is not None), *columns]

    def _taken(self, arrays: Sequence[Array], slots: Sequence[str]) -> tuple[Snapshot, dict[str, Array]]:
        """Of what was read of `_arrays` all but the values, and these by slot."""
        rest, zeros = list(arrays), np.zeros(len(arrays[0]), np.int64)
        keys = rest.pop(0).astype(self.key_dtype.as_numpy_dtype)
        if len(rest) > len(slots) + (self._versions is not None) + (self._freqs is not None):
            del rest[0]  # marks
        versions = zeros if self._versions is None else rest.pop(0)
        freqs = zeros if self._freqs is None else rest.pop(0)
        return Snapshot(keys, zeros[:0], versions, freqs), dict(zip(slots, rest, strict=True))


def _ordered(places: Array, keys: Array, order: Callable[[Array], Array] | None) -> Array:
    return places if order is None else places[order(keys[places])]


def _without(keys: Array, others: Array) -> Array:
    """The keys that are not among the others, each once, ascending. Unlike np.unique it lets other threads run."""
    keys = np.sort(keys)
    keys = keys[np.diff(keys, prepend=keys[:1] - 1) != 0]
    if keys.size:
        others = np.sort(others)
        at = np.minimum(np.searchsorted(others, keys), others.size - 1)
        keys = keys[others[at] != keys] if others.size else keys
    return keys
