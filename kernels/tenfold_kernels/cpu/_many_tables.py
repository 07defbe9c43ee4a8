"""Lookups and updates of embedding variables, of one or of many at once: under the locks of all, by loops that threads
share (_compiled/many_tables.py).

A table goes the way of its own methods where it counts all lookups, has to grow for its new ids, or has rows that the
loops do not take; so do all until the loops are loaded. Of a table with a filter so do the ids that wait for admission.
Used by embedding.py and embedding_exchange.py.
"""

from __future__ import annotations

import itertools
import operator
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels import chunks
from tenfold_kernels.arrays import contiguous, invalid
from tenfold_kernels.cpu._compiled import many_tables
from tenfold_kernels.cpu._compiled.many_tables import JOB_WORDS, Job
from tenfold_kernels.cpu._variables import holding
from tenfold_kernels.resources.table_lines import MOST_COLUMNS, Table

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable, Sequence

    from tenfold_kernels.arrays import Array
    from tenfold_kernels.resources.embedding_tables import EmbeddingTable

#: Ids of a piece, some 50 µs.
_PIECE = 1024
#: Where a table is done as a whole.
_MOST_PIECES = 32
_NO_PLACES = np.zeros(0, np.int64)


class Target(NamedTuple):
    """A table, and its slots that are updated with it."""

    table: EmbeddingTable
    slots: tuple[str, ...] = ()


class Found(NamedTuple):
    """What a kernel's handles name: tables of one type and width."""

    targets: Sequence[Target]
    #: In which their locks are taken, as by whoever takes several (_cuts.py).
    order: Sequence[int]
    #: Whether no table is there twice.
    apart: bool


def found(targets: Sequence[Target]) -> Found:
    """Raises InvalidArgumentError for tables that do not go together."""
    first = targets[0].table
    for table, _ in targets:
        if table.width != first.width or table.dtype != first.dtype:
            raise invalid(
                f"The embedding variables {first.name} and {table.name} are read or updated together, but have rows of "
                f"{first.width} {first.dtype.name} and {table.width} {table.dtype.name}"
            )
    ids = [id(target.table) for target in targets]
    return Found(targets, sorted(range(len(ids)), key=ids.__getitem__), len({*ids}) == len(ids))


#: A table is not kept by who only looks it up.
_Kept: TypeAlias = "tuple[weakref.ref[EmbeddingTable], tuple[str, ...]]"


class Targets:
    """What handles name, found once for as long as they are the same ones and nothing is deleted."""

    def __init__(self, find: Callable[[Sequence[Array]], Target], each: int) -> None:
        """`find` says what `each` handles name; it raises what it likes."""
        self._find, self._each = find, each
        self._known: tuple[int, tuple[Array, ...], list[_Kept], Sequence[int], bool] = (-1, (), [], (), True)

    def of(self, generation: int, handles: tuple[Array, ...]) -> Found:
        """In the order of the handles. `generation` is that of the resources."""
        known, given, kept, order, apart = self._known
        if known == generation and len(given) == len(handles) and all(map(operator.is_, given, handles)):
            targets = [Target(table, slots) for ref, slots in kept if (table := ref()) is not None]
            if len(targets) == len(kept):
                return Found(targets, order, apart)
        made = found([self._find(handles[at : at + self._each]) for at in range(0, len(handles), self._each)])
        kept = [(weakref.ref(target.table), target.slots) for target in made.targets]
        self._known = generation, handles, kept, made.order, made.apart
        return made


class Update(NamedTuple):
    """An update of a step: what `EmbeddingTable.update` applies, given gradients and ids of one table; and its numbers
    for the loop of many."""

    apply: Callable[[list[Array], Array, Array, Array], Any]
    #: None where that loop does not do all of it.
    numbers: Sequence[float] | None
    step: int


class ManyTables:
    """What the loops need, for one kernel. Thread-safe."""

    def __init__(self, update: str = "") -> None:
        """`update` names the loop of sparse_updates.py that updates go by."""
        self._find, self._add, self._update = many_tables.finder(), many_tables.adder(), many_tables.updater(update)

    def gather(self, among: Found, ids: Array, ends: Sequence[int]) -> Array:
        """The weights of ids, a vector of int64 of the caller's own; new ones are added. Those of table n are between
        ends[n] and ends[n + 1]."""
        targets, first = among.targets, among.targets[0].table
        allow((ids.size, first.width), first.dtype.as_numpy_dtype)
        out = np.empty((ids.size, first.width), first.dtype.as_numpy_dtype)
        with _locked(among):
            # of a table that is there twice, the first lookup may admit what the second one looks for
            batch = self._found(among, ids, ends, out)
            for n, ((table, _), (begin, end)) in enumerate(zip(targets, itertools.pairwise(ends), strict=True)):
                if batch is None or (n in batch.left and not (among.apart and table.finds_admitted)):
                    out[begin:end] = table.gather(ids[begin:end])
                    continue
                absent = batch.absent(n)
                if absent.size:
                    out[absent] = table.gather_waiting(ids[absent])
                table.note_found(end - begin - absent.size, batch.added.get(n, 0))
        return out

    def look_up(self, among: Found, ids: Array, ends: Sequence[int]) -> Array:
        """As `gather`, but adds and counts nothing: unknown ids have the weights that they would begin with."""
        each = zip(among.targets, itertools.pairwise(ends), strict=True)
        return np.concatenate([target.table.look_up(ids[begin:end]) for target, (begin, end) in each])

    def update(self, among: Found, ids: Array, ends: Sequence[int], grad: Array, update: Update) -> None:
        """Updates the rows of the ids that may be trained; new ones are added. As `gather`, with a row of `grad` for
        each id."""
        targets = among.targets
        with _locked(among):
            takes = grad.dtype == np.float32 == targets[0].table.dtype.as_numpy_dtype and update.numbers is not None
            address = self._update() if takes else 0
            few = all(len(target.slots) < MOST_COLUMNS for target in targets)
            # in a table that is there twice, the second update may find what the first one added
            batch = self._found(among, ids, ends) if address and few and among.apart else None
            together, waits = [], False
            for n, ((table, slots), (begin, end)) in enumerate(zip(targets, itertools.pairwise(ends), strict=True)):
                if batch is None or (n in batch.left and not table.finds_admitted):
                    rows = grad[begin:end]

                    def apply(columns: list[Array], at: Array, places: Array, rows: Array = rows) -> Any:
                        return update.apply(columns, at, places, rows)

                    table.update(slots, ids[begin:end], apply, update.step)
                    continue
                rows, absent = batch.rows[begin:end], batch.absent(n)
                if absent.size:
                    table.note_waiting(ids[absent], update.step)
                    rows, waits = rows[rows >= 0], True
                table.note_update(rows, update.step)
                together.append(n)
            if batch is not None and together and update.numbers is not None:
                given = batch.with_rows(grad) if waits else grad
                batch.update(address, together, contiguous(given), update.numbers)

    def _found(self, among: Found, ids: Array, ends: Sequence[int], out: Array | None = None) -> _Batch | None:
        """The rows of ids, and their weights in `out`; None where no loop can do that."""
        table = among.targets[0].table
        row = table.width * table.dtype.size
        address = self._find()
        if not address or not ids.size:
            return None
        batch = _Batch(among.targets, ids, ends)
        batch.find(address, row, out)
        if batch.left and among.apart and (adder := self._add()):
            batch.add(adder, row, out)
        return batch


class _Batch:
    """Ids of many tables, under their locks."""

    def __init__(self, targets: Sequence[Target], ids: Array, ends: Sequence[int]) -> None:
        self._ids, self._ends = ids, np.array(ends[1:], np.int64)
        each = zip(targets, itertools.pairwise(ends), strict=True)
        lines = [table.line(slots, end - begin) for (table, slots), (begin, end) in each]
        self._tables = np.concatenate([line for line, _ in lines])
        #: One that is there twice may have moved its index since its first line.
        self._held = [arrays for _, arrays in lines]
        self._width = targets[0].table.width
        self.rows: Array = np.empty(ids.size, np.int64)
        self._targets = targets
        #: The places of ids without a row, and where those of each table begin among them.
        self._absent: Array = _NO_PLACES
        self._bounds: list[int] = []
        #: Numbers of tables that a job under way names.
        self._chosen = _NO_PLACES
        #: By number of a table, how many ids have no row.
        self.left: dict[int, int] = {}
        #: By number of a table, how many ids have got one.
        self.added: dict[int, int] = {}

    def _job(self, row: int = 0, out: Array | None = None) -> Array:
        job = np.zeros(JOB_WORDS, np.int64)
        at = chunks.address_of
        job[Job.TABLES], job[Job.ENDS], job[Job.COUNT] = at(self._tables), at(self._ends), self._ends.size
        job[Job.IDS], job[Job.ROWS], job[Job.TOTAL] = at(self._ids), at(self.rows), self.rows.size
        job[Job.STEP], job[Job.ROW_BYTES] = _PIECE, row
        job[Job.OUT] = 0 if out is None else at(out)
        return job

    def find(self, address: int, row: int, out: Array | None) -> None:
        job = self._job(row, out)
        chunks.run(address, job, -(-self.rows.size // _PIECE))
        absent = np.flatnonzero(self.rows < 0)
        if absent.size:
            bounds = [0, *np.searchsorted(absent, self._ends).tolist()]
            counts = enumerate(end - begin for begin, end in itertools.pairwise(bounds))
            self.left = {n: count for n, count in counts if count}
            self._absent, self._bounds = absent, bounds

    def absent(self, n: int) -> Array:
        """The places of the ids of table n without a row."""
        return self._absent[self._bounds[n] : self._bounds[n + 1]] if n in self.left else _NO_PLACES

    def with_rows(self, grad: Array) -> Array:
        """Forgets all ids without a row; the gradients of the others."""
        has = self.rows >= 0
        self._ids, self.rows = self._ids[has], self.rows[has]
        self._ends = np.concatenate([[0], has.cumsum()])[self._ends]
        return grad[has]

    def _job_of(self, chosen: Sequence[int], row: int = 0, out: Array | None = None) -> tuple[Array, int]:
        """A job of these tables, each as a whole, and of how many pieces it is."""
        job, step = self._job(row, out), step_of(len(chosen))
        self._chosen = np.array(chosen, np.int64)
        job[Job.CHOSEN], job[Job.CHOICES], job[Job.STEP] = chunks.address_of(self._chosen), len(chosen), step
        return job, -(-len(chosen) // step)

    def add(self, address: int, row: int, out: Array | None) -> None:
        """Gives rows to the new ids of the tables that are left and can have them so."""
        chosen, growths = [], []
        for n, count in self.left.items():
            is_there = self._tables[n * len(Table) + Table.INDEX]
            if is_there and (growth := self._targets[n].table.growth(count)) is not None:
                chosen.append(n)
                growths.append(growth)
        if not chosen:
            return
        (job, pieces), at = self._job_of(chosen, row, out), chunks.address_of
        lines, added, counts = np.concatenate(growths), np.empty_like(self.rows), np.zeros(len(chosen), np.int64)
        job[Job.GROWTHS], job[Job.ADDED], job[Job.ADDED_COUNTS] = at(lines), at(added), at(counts)
        chunks.run(address, job, pieces)
        for n, count in zip(chosen, counts.tolist(), strict=True):
            begin = 0 if n == 0 else int(self._ends[n - 1])
            self._targets[n].table.note_added(added[begin : begin + count])
            self.added[n] = count
            del self.left[n]

    def update(self, address: int, chosen: Sequence[int], grad: Array, numbers: Sequence[float]) -> None:
        (job, pieces), at = self._job_of(chosen), chunks.address_of
        begins = np.concatenate([[0], self._ends[:-1]])
        gradients, widths = at(grad) + 4 * self._width * begins, np.full(self._ends.size, self._width)
        job[Job.GRADIENTS], job[Job.WIDTHS] = at(gradients), at(widths)
        job[Job.NUMBERS : Job.NUMBERS + len(numbers)].view(np.float64)[:] = numbers
        chunks.run(address, job, pieces)


def step_of(tables: int) -> int:
    """How many tables are one piece, where each is done as a whole."""
    return -(-tables // _MOST_PIECES)


def _locked(among: Found) -> contextlib.AbstractContextManager[None]:
    """Holds the locks of all tables."""
    return holding([among.targets[at].table.lock for at in among.order])
