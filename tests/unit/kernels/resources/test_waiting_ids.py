"""Ids that wait for admission: they cost a few numbers, and are counted, saved and evicted as if they had a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.checkpoint.table_rows import NEVER
from tenfold_kernels.cpu._compiled.admitting import admit
from tenfold_kernels.cpu._compiled.id_index import id_loops
from tenfold_kernels.resources.embedding_rows import EmbeddingLoops, TableOptions
from tenfold_kernels.resources.embedding_tables import EmbeddingTable
from tenfold_kernels.resources.quota import StateQuota
from tenfold_kernels.resources.waiting_ids import WaitingIds

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.resources.embedding_saves import Changes, Exported

LEAST, LIVES = 3, 20


def table(account: Any = None, width: int = 2, **options: Any) -> EmbeddingTable:
    first = np.arange(1, 1 + 3 * width, dtype=np.float32).reshape(3, width)
    loops = EmbeddingLoops(id_loops(), admit())
    options = {"filter_freq": LEAST, "steps_to_live": LIVES, "value_without_weights": -1.0} | options
    made = EmbeddingTable("t", dtypes.int64, dtypes.float32, first, loops, TableOptions(**options), account)
    made.add_slot("t/s", np.full((1, width), 0.5, np.float32))
    return made


def longs(*values: int) -> Any:
    return np.array(values, np.int64)


def train(of: EmbeddingTable, keys: Any, step: int) -> None:
    def apply(columns: list[Any], rows: Any, places: Any) -> None:
        np.add.at(columns[0], rows, 1)
        np.add.at(columns[1], rows, 2)

    of.update(["t/s"], keys, apply, step)


class Model:
    """What a table with a filter is, in dictionaries: of each id frequency, version, updates; of all, lookups."""

    def __init__(self, record: bool) -> None:
        self.record, self.ids = record, dict[int, list[int]]()

    def gather(self, keys: Any) -> list[float]:
        found = []
        for key in keys.tolist():
            of = self.ids.setdefault(key, [0, NEVER, 0])
            has = of[0] >= LEAST
            found.append(1.0 + 2 * (abs(key) % 3) + of[2] if has else -1.0)
            of[0] += self.record or not has
        return found

    def train(self, keys: Any, step: int) -> None:
        for key in keys.tolist():
            of = self.ids.setdefault(key, [0, NEVER, 0])
            of[1] = step
            of[2] += of[0] >= LEAST

    def shrink(self, step: int) -> int:
        step = max([step, *(version for _, version, _ in self.ids.values())])
        gone = [key for key, of in self.ids.items() if of[1] != NEVER and step - of[1] > LIVES]
        for key in gone:
            del self.ids[key]
        for of in self.ids.values():
            of[1] = step if of[1] == NEVER else of[1]
        return len(gone)

    def state(self) -> dict[int, tuple[int, ...]]:
        return {key: tuple(of) for key, of in self.ids.items()}


def state_of(exported: Exported | Changes) -> dict[int, tuple[int, ...]]:
    """As `Model.state`."""
    found, sets = {}, []
    if isinstance(exported.rows, dict):
        sets = [exported.rows[""], exported.waiting]  # type: ignore[union-attr]
        slot = exported.rows["t/s"]
        assert (slot.values[:, 0] == 0.5 + 2 * _updates(sets[0])).all()
    else:
        sets = [exported.rows]
    for each in sets:
        counts = _updates(each) if len(each.values) else np.zeros(0, np.int64)
        counts = np.concatenate([counts, np.zeros(each.keys.size - counts.size, np.int64)])
        for place, key in enumerate(each.keys.tolist()):
            assert key not in found
            found[key] = (int(each.freqs[place]), int(each.versions[place]), int(counts[place]))
            assert (found[key][0] >= LEAST) == (place < len(each.values))
    return found


def _updates(rows: Any) -> Any:
    return (rows.values[:, 0] - 1 - 2 * (np.abs(rows.keys[: len(rows.values)]) % 3)).astype(np.int64)


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_table_with_a_filter_agrees_with_dictionaries(seed: int, record: bool) -> None:
    """Lookups, updates and evictions; exports and increments that end after more of them; copies that follow."""
    choose, of, model = np.random.default_rng(seed), table(record_freq=record), Model(record)
    of.record_changes()
    copy = table(record_freq=record)
    under_way: list[tuple[Callable[[], Any], dict[int, tuple[int, ...]]]] = []
    last: str | None = None
    for step in range(1, 250):
        keys = choose.integers(-60, 60, choose.integers(0, 30)).astype(np.int64)
        what = choose.random()
        if what < 0.5:
            assert of.gather(keys)[:, 0].tolist() == model.gather(keys)
        elif what < 0.8:
            train(of, keys, step)
            model.train(keys, step)
        elif what < 0.87:
            assert of.shrink(step) == model.shrink(step)
        elif what < 0.94:
            under_way.append((of.begin_export(["", "t/s"]), model.state()))
        else:
            changes = [of.begin_changes(last, ["", "t/s"]), model.state()]
            last = f"save-{step}"
            of.note_save(last)
            train(of, keys, step)
            model.train(keys, step)
            by_slot = changes[0]()  # type: ignore[operator]
            for slot in ("t/s", ""):
                copy.change(by_slot[slot], slot, last)
            assert state_of(copy.begin_export(["", "t/s"])()) == changes[1]
        if len(under_way) > 2 or (under_way and choose.random() < 0.2):
            finish, expected = under_way.pop(0)
            assert state_of(finish()) == expected
        assert (len(of), of.waiting) == (len(model.ids), sum(each[0] < LEAST for each in model.ids.values()))
        assert of.frequencies(keys).tolist() == [model.ids.get(key, [0])[0] for key in keys.tolist()]
        assert of.versions(keys).tolist() == [model.ids.get(key, [0, NEVER])[1] for key in keys.tolist()]
        assert of.has(keys).tolist() == [key in model.ids for key in keys.tolist()]
    whole = of.begin_export(["", "t/s"])()
    other = table(record_freq=record)
    other.put(whole.rows["t/s"], "t/s")
    both = [np.concatenate(each) for each in zip(whole.rows[""], whole.waiting, strict=True)]
    other.put(whole.rows[""]._replace(keys=both[0], versions=both[2], freqs=both[3]))
    assert state_of(other.begin_export(["", "t/s"])()) == model.state()


def test_an_id_that_waits_takes_no_row() -> None:
    of, plain = table(width=64), table(width=64, filter_freq=0)
    for each in (of, plain):
        each.gather(np.arange(100_000))

    assert (len(of), of.waiting) == (100_000, 100_000)
    assert len(of._columns[""].rows.array) == len(of._columns["t/s"].rows.array) < 100
    assert of.nbytes < 100_000 * 36 + 10_000 < plain.nbytes // 10


def test_numbers_of_an_id_take_less_than_36_bytes() -> None:
    waiting = WaitingIds(id_loops(), keeps_versions=True)
    for first in range(0, 200_000, 1000):
        waiting.rows_of(np.arange(first, first + 1000))
        # small indices are moved at once
        assert waiting.nbytes < 36 * len(waiting) or len(waiting) < 10_000


def test_admission_charges_a_row_and_refuses_where_there_is_no_room() -> None:
    quota = StateQuota(2000)
    of = table(account=quota.account("t"), width=64)
    of.gather(longs(1, 2, 3))
    waiting = quota.bytes
    assert waiting < 3 * 40
    of.gather(longs(1, 1))
    assert quota.bytes == waiting + 64 * 4 * 2

    with pytest.raises(errors.ResourceExhaustedError, match="with 't'"):
        of.gather(np.repeat(np.arange(10, 14), LEAST))
    assert (len(of), of.waiting) == (7, 6), "they were counted, and wait for room"
    assert of.update([], longs(10), lambda columns, rows, places: rows.size, 1) == 0
    of.shrink(1 + 2 * LIVES)
    of.shrink(1 + 4 * LIVES)
    assert (len(of), quota.bytes) == (0, 0)


def test_who_comes_with_weights_begins_with_them_when_it_is_admitted() -> None:
    of = table()
    given = np.array([[7, 8], [9, 9]], np.float32)

    assert of.gather(longs(5, 5), first=given).tolist() == [[-1, -1]] * 2
    assert of.gather(longs(6, 5), first=given).tolist() == [[-1, -1]] * 2
    assert of.gather(longs(5)).tolist() == [[9, 9]]
