"""What a checkpoint or an increment has of an embedding variable, as of one moment, and taking it in again.

Reading begins with a mark that costs nothing and goes on in pieces, between which the table may change (kept_rows.py).
Used by embedding_files.py and cpu/embedding_increments.py. Decisions 0192 and 0197.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tenfold_core.checkpoint.table_rows import NEVER, Snapshot
from tenfold_kernels.arrays import invalid, shape_text
from tenfold_kernels.resources.changed_rows import ChangedRows
from tenfold_kernels.resources.embedding_rows import Array, EmbeddingRows
from tenfold_kernels.resources.id_map import as_ids
from tenfold_kernels.resources.kept_rows import KeptRows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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
            kept = self._keep_from_now(slots)

        def finish() -> Exported:
            try:
                given_out, arrays = kept.whole(self.lock)
            finally:
                self._stop_keeping(kept)
            found, values = self._taken(arrays, slots)
            admitted = self._is_admitted(found.freqs)
            has = np.flatnonzero(given_out & admitted)
            waits = np.flatnonzero(given_out & ~admitted & self.options.saves_waiting)
            if order is not None:
                has, waits = has[order(found.keys[has])], waits[order(found.keys[waits])]
            rest, nothing = found.at(has), np.zeros((0, self.width), self.dtype.as_numpy_dtype)
            return Exported(
                {slot: rest._replace(values=values.pop(slot).take(has, axis=0)) for slot in [*values]},
                found.at(waits)._replace(values=nothing),
            )

        return finish

    def put(self, given: Snapshot, slot: str = "", prefix: str = "", *, any_width: bool = False) -> None:
        """Replaces all rows, or those of a slot, by what the checkpoint `prefix` has. Ids that come with weights are
        admitted; those that wait come last, without values. Missing versions and frequencies are none. With
        `any_width`, of wider rows the first elements count, and what narrower ones lack is as in new rows.

        Raises InvalidArgumentError for rows of another width otherwise, or more of them than keys.
        """
        with self.lock:
            self._check_rows(given, slot, any_width)
            if not slot:
                self._remove(np.setdiff1d(self._ids.items()[0], as_ids(given.keys)))
            self._write(given, slot, prefix)

    def change(self, changes: Changes, slot: str = "", prefix: str = "") -> None:
        """Makes the changes, of all or of a slot, that the increment `prefix` of a checkpoint has. Raises as `put`."""
        with self.lock:
            self._check_rows(changes.rows, slot)
            if not slot:
                # an id that waits has lost the weights that it may have had
                waiting = as_ids(changes.rows.keys)[len(changes.rows.values) :]
                self._remove(np.concatenate([as_ids(changes.removed), waiting]))
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
            if since is not None or self._changed is not None:
                changed = self._changed or ChangedRows(0)
                after = changed.after(since, self.name)
                removed += changed.removed_after(after)
                period = after, changed.turn()
            if also is not None and also.size:
                named = self._ids.find(as_ids(also))
            kept = self._keep_from_now(slots)

        def finish() -> dict[str, Changes]:
            rows = _without(named[named >= 0], named[:0])
            try:
                if period is not None:
                    marks = kept.column(self.lock, 1)
                    marked = np.flatnonzero((marks > period[0]) & (marks <= period[1]))
                    rows = _without(np.concatenate([rows, marked]), rows[:0]) if rows.size else marked
                found, values = self._taken(kept.chosen(self.lock, rows), slots)
            finally:
                self._stop_keeping(kept)
            admitted = self._is_admitted(found.freqs)
            gone = _without(np.concatenate(removed), found.keys).astype(found.keys.dtype)
            order, count = np.argsort(~admitted, kind="stable"), int(admitted.sum())
            rest = found.at(order)
            return {
                slot: Changes(rest._replace(values=values[slot].take(order[:count], axis=0)), gone) for slot in slots
            }

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
        rows, _ = self._rows(ids)
        self._keep(rows)
        common = min(column.first_DW.shape[1], given.values.shape[1])
        if common < column.first_DW.shape[1]:
            column.begin(rows, ids)
        column.rows.array[rows[:count], :common] = given.values[:, :common]
        if slot:
            return
        if self._freqs is not None:
            waited = np.count_nonzero(~self._admitted(rows))
            freqs = given.freqs if given.freqs.size else np.zeros(ids.size, np.int64)
            self._freqs.array[rows] = freqs
            self._freqs.array[rows[:count]] = np.maximum(freqs[:count], self.options.filter_freq)
            self.waiting += int(np.count_nonzero(~self._admitted(rows)) - waited)
        if self._versions is not None:
            self._versions.array[rows] = given.versions if given.versions.size else NEVER
        if self._changed is not None:
            self._touch(rows)
            if prefix:
                self._changed.begin(prefix)

    def _keep_from_now(self, slots: Sequence[str]) -> KeptRows:
        for slot in slots:
            self._column(slot)
        changed = self._changed
        kept = KeptRows(self._ids.rows, self._ids.free_rows, lambda: self._arrays(slots, changed))
        self._kept.append(weakref.ref(kept, self._kept.remove))
        return kept

    def _stop_keeping(self, kept: KeptRows) -> None:
        with self.lock:
            self._kept[:] = [each for each in self._kept if each() is not kept]

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


def _without(keys: Array, others: Array) -> Array:
    """The keys that are not among the others, each once, ascending. Unlike np.unique it lets other threads run."""
    keys = np.sort(keys)
    keys = keys[np.diff(keys, prepend=keys[:1] - 1) != 0]
    if keys.size:
        others = np.sort(others)
        at = np.minimum(np.searchsorted(others, keys), others.size - 1)
        keys = keys[others[at] != keys] if others.size else keys
    return keys
