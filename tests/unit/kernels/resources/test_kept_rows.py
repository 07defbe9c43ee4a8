"""Exports in pieces: what they give is the table as it was when they began, whatever happens to it meanwhile."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu._compiled.admitting import admit
from tenfold_kernels.cpu._compiled.id_index import id_loops
from tenfold_kernels.resources import kept_rows
from tenfold_kernels.resources.embedding_rows import EmbeddingLoops, TableOptions
from tenfold_kernels.resources.embedding_tables import EmbeddingTable
from tenfold_kernels.resources.kept_rows import KeptRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.checkpoint.table_rows import Snapshot


def table(**options: Any) -> EmbeddingTable:
    first = np.array([[1, 1], [2, 2], [3, 3]], np.float32)
    loops = EmbeddingLoops(id_loops(), admit())
    made = EmbeddingTable("t", dtypes.int64, dtypes.float32, first, loops, TableOptions(**options))
    made.add_slot("t/s", np.full((1, 2), 0.5, np.float32))
    return made


def train(of: EmbeddingTable, keys: Any, step: int) -> None:
    def apply(columns: list[Any], rows: Any, places: Any) -> None:
        columns[0][rows] += step
        columns[1][rows] -= step

    of.update(["t/s"], keys, apply, step)


def same(one: Snapshot, other: Snapshot) -> None:
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def between_pieces(monkeypatch: pytest.MonkeyPatch, call: Callable[[float], None]) -> None:
    """In place of a pause; other threads of this process pause as ever."""
    monkeypatch.setattr(kept_rows, "time", SimpleNamespace(sleep=call))


def test_rows_are_kept_before_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read is of the first moment: rows that change before their piece, in it and after it."""
    ids, column = np.arange(6) * 10, np.arange(12, dtype=np.float32).reshape(6, 2)
    before, lock = column.copy(), threading.RLock()
    kept = KeptRows(5, np.array([1]), lambda: [ids, column])
    order = iter([[2, 4, 5], [2], [0, 3, 3], [4]])

    def change(pause: float = 0) -> None:
        rows = np.array(next(order))
        kept.keep(rows)
        ids[rows], column[rows] = -1, -1

    change()
    monkeypatch.setattr(kept_rows, "_PIECE", 32)  # two rows
    between_pieces(monkeypatch, change)
    given_out, (keys, values) = kept.whole(lock)

    assert given_out.tolist() == [True, False, True, True, True]
    assert keys.tolist() == [0, 10, 20, 30, 40]
    assert values.tolist() == before[:5].tolist()
    change()
    assert not kept._log, "nothing is kept for what was read"
    given_out, (nothing,) = KeptRows(0, ids[:0], lambda: [column]).whole(lock)
    assert not given_out.size
    assert nothing.shape == (0, 2)


def test_chosen_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    marks, column = np.arange(8), np.arange(8, dtype=np.float32).reshape(8, 1)
    lock = threading.RLock()
    kept = KeptRows(8, marks[:0], lambda: [marks, column])
    order = iter([[1, 5], [0, 2], [6, 7]])

    def change(pause: float = 0) -> None:
        rows = np.array(next(order))
        kept.keep(rows)
        marks[rows], column[rows] = 100, -1

    change()
    monkeypatch.setattr(kept_rows, "_PIECE", 48)  # six marks, or four rows
    between_pieces(monkeypatch, change)
    found = kept.column(lock, 0)
    assert found.tolist() == [*range(8)]
    rows, values = kept.chosen(lock, np.array([1, 3, 5, 6, 7]))
    assert rows.tolist() == values[:, 0].tolist() == [1, 3, 5, 6, 7]
    assert [each.shape for each in KeptRows(8, marks[:0], lambda: [column]).chosen(lock, marks[:0])] == [(0, 1)]


@pytest.mark.parametrize("options", [{}, {"steps_to_live": 3, "filter_freq": 2}])
def test_what_happens_meanwhile_is_not_seen(options: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(4)
    live, step, changes = table(**options), 0, False

    def now(slot: str = "") -> Snapshot:
        """What the table has at this moment."""
        nonlocal changes
        before, changes = changes, False
        found = live.export(slot)
        changes = before
        return found

    def change(pause: float = 0) -> None:
        """As another thread does between two pieces: rows come, change, go, and come again as others'."""
        nonlocal step
        if not changes:
            return
        step += 1
        live.gather(chance.integers(0, 150, 20))
        train(live, np.unique(chance.integers(0, 150, 10)), step)
        if step % 3 == 0:
            live.shrink(step)
        if step % 7 == 0:
            live.put(now()._replace(keys=np.arange(1000, 1000 + len(now().keys))))

    changes = True
    for _ in range(30):
        change()
    monkeypatch.setattr(kept_rows, "_PIECE", 1000)
    between_pieces(monkeypatch, change)
    for _ in range(3):
        expected = {slot: now(slot) for slot in ("", "t/s")}
        # two at a time, of different moments
        first = live.begin_export(["", "t/s"])
        change()
        later = now("t/s")
        second = live.begin_export(["t/s"])
        found = first().rows
        same(found[""], expected[""])
        same(found["t/s"], expected["t/s"])
        same(second().rows["t/s"], later)
    assert not live._kept

    live.begin_export([""])  # nobody finishes it
    change()
    assert not live._kept
    with pytest.raises(errors.NotFoundError, match="has no slot t/x"):
        live.begin_export(["", "t/x"])


def test_updates_go_on_between_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    live, between, go_on = table(), threading.Event(), threading.Event()
    live.gather(np.arange(100))
    expected = live.export()
    monkeypatch.setattr(kept_rows, "_PIECE", 160)

    def pause(seconds: float) -> None:
        between.set()
        assert go_on.wait(30)

    between_pieces(monkeypatch, pause)
    found: list[Any] = []
    finish = live.begin_export([""])
    saving = threading.Thread(target=lambda: found.append(finish()))
    saving.start()
    assert between.wait(30)
    train(live, np.arange(100), 5)
    assert live.look_up(np.array([0])).tolist() == [[6, 6]]
    go_on.set()
    saving.join(30)

    same(found[0].rows[""], expected)
    assert live.export().values[0].tolist() == [6, 6]
