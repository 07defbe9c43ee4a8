"""What has changed in a table since a save: a table that is given the changes becomes the one that they are from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu._compiled.admitting import admit
from tenfold_kernels.cpu._compiled.id_index import id_loops
from tenfold_kernels.resources.embedding_rows import EmbeddingLoops, TableOptions
from tenfold_kernels.resources.embedding_tables import EmbeddingTable
from tenfold_kernels.resources.quota import StateQuota
from tenfold_kernels.resources.sparse_recorders import SavedRows, SparseRecorder, changed_rows

KINDS = {
    "plain": {},
    "counting": {"record_freq": True, "record_version": True},
    "evicting": {"steps_to_live": 3},
    "filtering": {"filter_freq": 3, "steps_to_live": 4},
    "light": {"l2_weight_threshold": 2.0},
}


def longs(*values: int) -> Any:
    return np.array(values, np.int64)


def table(account: Any = None, **options: Any) -> EmbeddingTable:
    first = np.array([[1, 1], [2, 2], [3, 3]], np.float32)
    loops = EmbeddingLoops(id_loops(), admit())
    made = EmbeddingTable("t", dtypes.int64, dtypes.float32, first, loops, TableOptions(**options), account)
    made.add_slot("t/s", np.full((1, 2), 0.5, np.float32))
    return made


def train(of: EmbeddingTable, keys: Any, step: int = 0) -> None:
    def apply(columns: list[Any], rows: Any, places: Any) -> None:
        columns[0][rows] += keys[places, None] + step
        columns[1][rows] += 1

    of.update(["t/s"], keys, apply, step)


def state(of: EmbeddingTable) -> dict[str, Any]:
    """All that a checkpoint has of it, by key."""
    found: dict[str, Any] = {}
    for name, snapshot in (("", of.export()), ("t/s", of.export("t/s")), ("waiting", of.export_waiting())):
        values = snapshot.values if len(snapshot.values) else np.zeros((snapshot.keys.size, 0))
        rows = zip(snapshot.keys, values, snapshot.versions, snapshot.freqs, strict=True)
        found[name] = {int(key): (value.tolist(), int(version), int(freq)) for key, value, version, freq in rows}
    return found


def follow(copy: EmbeddingTable, of: EmbeddingTable, since: str, prefix: str) -> int:
    """Gives `copy` what has changed in the other table; how many rows that were."""
    with of.lock:
        changes, slot = of.changes(since), of.changes(since, "t/s")
        of.note_save(prefix)
    # in either order
    for given, name in [(slot, "t/s"), (changes, "")][:: 1 if len(prefix) % 2 else -1]:
        copy.change(given, name, prefix)
    return int(changes.rows.keys.size)


@pytest.mark.parametrize("kind", KINDS)
def test_changes_lead_to_the_same_table(kind: str) -> None:
    options: dict[str, Any] = KINDS[kind]
    chance = np.random.default_rng(11)
    live, copy = table(**options), table(**options)
    live.record_changes()
    copy.record_changes()
    since = "full"
    for step in range(1, 120):
        keys = chance.integers(-40, 40, chance.integers(1, 9))
        if chance.random() < 0.5:
            live.gather(keys)
        else:
            train(live, np.unique(keys), step)
        if step == 10:
            with live.lock:
                live.shrink(step)
                full = live.export(), live.export("t/s"), live.export_waiting()
                live.note_save("full")
            waiting = full[2]
            copy.put(
                full[0]._replace(
                    keys=np.concatenate([full[0].keys, waiting.keys]),
                    versions=np.concatenate([full[0].versions, waiting.versions]),
                    freqs=np.concatenate([full[0].freqs, waiting.freqs]),
                ),
                prefix="full",
            )
            copy.put(full[1], "t/s")
            assert state(copy) == state(live)
        if step > 10 and chance.random() < 0.3:
            live.shrink(step)
            if chance.random() < 0.3:
                live.note_save(f"lost-{step}")  # a save that failed: the next one has it all
            else:
                follow(copy, live, since, since := f"incr-{step}")
                assert state(copy) == state(live), (kind, step)
        if step % 40 == 0 and step > 10:
            # the copy goes on as the table itself would: what was restored counts as saved
            follow(copy, live, since, since := f"more-{step}")
            live, copy = copy, live


def test_what_changes_and_what_does_not() -> None:
    live = table()
    live.gather(longs(1, 2, 3))
    live.record_changes()
    live.note_save("a")
    live.gather(longs(1, 4))
    train(live, longs(2))
    live.note_save("b")
    train(live, longs(4))

    assert sorted(live.changes("a").rows.keys.tolist()) == [2, 4]
    assert live.changes("b").rows.keys.tolist() == [4]
    assert live.changes("b", "t/s").rows.values.tolist() == [[1.5, 1.5]]
    live.look_up(longs(1, 77))
    assert live.changes("b").rows.keys.tolist() == [4]
    with pytest.raises(errors.FailedPreconditionError, match=r"t cannot say what has changed since c: .*known: a, b"):
        live.changes("c")
    with pytest.raises(errors.NotFoundError, match="has no slot t/x"):
        live.changes("a", "t/x")
    never = table()
    never.gather(longs(1))
    assert never.changes(None).rows.keys.size == 0
    assert never.changes(None, also=longs(1, 9)).rows.keys.tolist() == [1]
    with pytest.raises(errors.FailedPreconditionError, match="since a"):
        never.changes("a")


def test_ids_that_have_gone_and_came_back() -> None:
    live = table(steps_to_live=2)
    live.record_changes()
    train(live, longs(5, 6), step=1)
    live.note_save("full")
    train(live, longs(7), step=9)
    assert live.shrink(9) == 2
    live.gather(longs(6))

    changes = live.changes("full")

    assert (sorted(changes.rows.keys.tolist()), changes.removed.tolist()) == ([6, 7], [5])


def test_marks_are_counted_and_given_back() -> None:
    quota = StateQuota()
    live = table(quota.account("t"), steps_to_live=2)
    train(live, longs(1, 2), step=1)
    before = quota.bytes
    live.record_changes()
    assert quota.bytes == before + 2 * 4
    train(live, longs(3), step=9)
    assert quota.bytes == before // 2 * 3 + 3 * 4
    assert live.shrink(9) == 2
    assert quota.bytes == before // 2 + 4


def test_recorded_indices() -> None:
    recorder = SparseRecorder()
    recorder.record(np.array([9], np.int32))
    recorder.activate()
    recorder.record(longs(3, 1, 3))
    recorder.record(longs(1))
    assert recorder.keys().tolist() == [1, 3]
    assert recorder.take(2).tolist() == [1, 3]
    assert recorder.keys().size == 0


def test_rows_that_differ() -> None:
    held, value = SavedRows(), np.zeros((4, 2), np.float32)
    held.keep("a", value)
    value[2] = np.nan
    before = held.of("a")
    assert before is not None
    assert changed_rows(before, value).tolist() == [2]
    held.keep("b", value)
    assert held.of("a") is None
    kept = held.of("b")
    assert kept is not None
    assert changed_rows(kept, value).tolist() == [], "the same bits, though no number equals itself"
