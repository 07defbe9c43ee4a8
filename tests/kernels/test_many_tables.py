"""Many embedding variables at once are looked up and updated to the bit as each by itself."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes
from tenfold_core.errors import InvalidArgumentError
from tenfold_kernels import chunks
from tenfold_kernels.cpu import _many_tables
from tenfold_kernels.cpu._compiled import compiling, many_tables, sparse_updates
from tenfold_kernels.cpu._compiled.admitting import admit
from tenfold_kernels.cpu._compiled.id_index import id_loops
from tenfold_kernels.cpu._many_tables import ManyTables, Target, Targets, Update, found
from tenfold_kernels.resources.embedding_rows import EmbeddingLoops, TableOptions
from tenfold_kernels.resources.embedding_tables import EmbeddingTable

WIDTH = 5
#: Of each table of a group: most of them are plain, some go the way of their own methods.
OPTIONS = (
    TableOptions(),
    TableOptions(record_version=True),
    TableOptions(filter_freq=2),
    TableOptions(),
    TableOptions(record_freq=True),
    TableOptions(l2_weight_threshold=0.2),
)
#: Slots of an update, and its numbers.
UPDATES: dict[str, tuple[int, tuple[Any, ...]]] = {
    "gradient_descent": (0, (0.1,)),
    "momentum": (1, (0.1, 0.9, True)),
    "adagrad": (1, (0.1, 0.0, True)),
    "adam": (2, (0.9, 0.99, 0.1, 0.9, 0.99, 1e-8, 1.0, False)),
    "row_ftrl": (2, (0.1, 0.01, 0.2, 0.0, 0.5, False)),
    "rmsprop": (2, (0.1, 0.1, 0.9, 1e-8)),
}


def tables_of(slots: int, dtype: Any) -> list[Target]:
    made = []
    for number, options in enumerate(OPTIONS):
        first = np.random.default_rng(number).normal(size=(7, WIDTH)).astype(dtype.as_numpy_dtype)
        table = EmbeddingTable(f"t{number}", dtypes.int64, dtype, first, EmbeddingLoops(id_loops(), admit()), options)
        for slot in range(slots):
            table.add_slot(f"s{slot}", np.full((1, WIDTH), 0.1 + slot))
        if number == 3:
            table.record_changes()
        made.append(Target(table, tuple(f"s{slot}" for slot in range(slots))))
    return made


def state(targets: list[Target]) -> list[Any]:
    states: list[Any] = []
    for table, slots in targets:
        for slot in ("", *slots):
            states += [each.tolist() for each in table.export(slot)]
        states += [table.export_waiting().freqs.tolist(), table.lookups, table.found, table.waiting, table.newest_step]
        states.append(table.changes(None).rows.keys.tolist())
    return states


def batch(choose: np.random.Generator, count: int, few: int) -> tuple[Any, list[int]]:
    """Ids of `count` tables, some of them there twice, some tables without any; and where those of each end."""
    sizes = choose.integers(0, few, count)
    sizes[choose.integers(count)] = 0
    return choose.integers(-few, few, int(sizes.sum())), [0, *np.cumsum(sizes).tolist()]


@pytest.fixture(autouse=True)
def machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "loops", compiling.Loops("blocking"))


@pytest.mark.parametrize("backwards", [False, True], ids=["in order", "backwards"])
@pytest.mark.parametrize("name", UPDATES)
def test_many_tables_become_what_each_becomes(monkeypatch: pytest.MonkeyPatch, name: str, backwards: bool) -> None:
    many_become_as_each(monkeypatch, name, dtypes.float32, backwards)


@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.bfloat16, dtypes.float16])
def test_rows_of_other_types(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    many_become_as_each(monkeypatch, "adagrad", dtype, False)


def many_become_as_each(monkeypatch: pytest.MonkeyPatch, name: str, dtype: Any, backwards: bool) -> None:
    slots, numbers = UPDATES[name]
    work = np.float64 if dtype == dtypes.float64 else np.float32
    loop = sparse_updates.loop(name, work, np.int64)

    def apply(columns: list[Any], rows: Any, places: Any, grad: Any) -> None:
        loop(*columns, np.ascontiguousarray(grad[places].astype(work)), rows, *numbers)

    if backwards:
        # pieces may run in any order
        monkeypatch.setattr(_many_tables, "_PIECE", 16)
        monkeypatch.setattr(chunks, "run", lambda address, job, count: run_backwards(address, job, count))
    together, apart = tables_of(slots, dtype), tables_of(slots, dtype)
    many, choose = ManyTables(name), np.random.default_rng(5)
    for step, few in enumerate((3, 40, 40, 3000, 40, 5000, 200)):
        ids, ends = batch(choose, len(together), few)
        grad = choose.normal(size=(ids.size, WIDTH)).astype(dtype.as_numpy_dtype)

        rows = many.gather(found(together), ids, ends)
        many.update(found(together), ids, ends, grad, Update(apply, numbers, step))

        for (table, names), (begin, end) in zip(apart, itertools.pairwise(ends), strict=True):
            np.testing.assert_array_equal(rows[begin:end], table.gather(ids[begin:end]))
            given = grad[begin:end]
            table.update(names, ids[begin:end], lambda *found, given=given: apply(*found, given), step)
        assert state(together) == state(apart)
        assert [table.shrink(step) for table, _ in together] == [table.shrink(step) for table, _ in apart]
    assert together[0].table.lookups > 2000


def run_backwards(address: int, job: Any, count: int) -> None:
    for piece in reversed(range(count)):
        chunks._PLAIN(address)(chunks.address_of(job), piece)


def test_known_ids_need_no_method_of_their_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = [target for target in tables_of(1, dtypes.float32) if target.table.line((), 1)[1]]
    many, ids, ends = ManyTables("adagrad"), np.arange(4 * len(targets)), range(0, 4 * len(targets) + 1, 4)
    for _ in range(2):
        many.gather(found(targets), ids, ends)  # admitted by the filter of one of them
    expected = many.gather(found(targets), ids, ends)
    for name in ("gather", "update"):
        monkeypatch.delattr(EmbeddingTable, name)

    np.testing.assert_array_equal(many.gather(found(targets), ids, ends), expected)
    update = Update(lambda *_: None, UPDATES["adagrad"][1], 0)
    many.update(found(targets), ids, ends, np.ones((ids.size, WIDTH), np.float32), update)

    assert len(targets) == 5, "all but the one that counts all lookups"
    assert (many.gather(found(targets), ids, ends) < expected).all()


def test_new_ids_need_none_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    targets, twins = (
        [each for each in tables_of(1, dtypes.float32) if each.table.line((), 1)[1] and not each.table.finds_admitted]
        for _ in range(2)
    )
    many, ends = ManyTables(), [35 * number for number in range(len(targets) + 1)]
    for first in (-35, 0, 35):
        for among in (targets, twins):
            many.gather(found(among), np.tile(np.arange(first, first + 35), len(targets)), ends)
    new = np.array([500, 1 << 62, 500, 3, -(1 << 63)] * len(targets))
    expected = [table.gather(new[:5]) for table, _ in twins]
    monkeypatch.delattr(EmbeddingTable, "gather")

    rows = many.gather(found(targets), new, range(0, new.size + 1, 5))

    np.testing.assert_array_equal(rows, np.concatenate(expected))
    monkeypatch.undo()
    assert state(targets) == state(twins)


def test_only_the_ids_that_wait_go_through_the_methods_of_a_table_with_a_filter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, _, filtering, *_ = tables_of(1, dtypes.float32)
    many, known = ManyTables("adagrad"), np.array([1, 2, 3])
    for _ in range(2):
        filtering.table.gather(known)
    asked, gather = [], EmbeddingTable.gather_waiting

    def look_up(table: EmbeddingTable, keys: Any) -> Any:
        asked.append((table.name, keys.tolist()))
        return gather(table, keys)

    monkeypatch.setattr(EmbeddingTable, "gather_waiting", look_up)
    monkeypatch.delattr(EmbeddingTable, "update")
    ids = np.array([1, 2, 8, 2, 9, 3, 9, 1, 2])
    among, ends = found([filtering, plain]), (0, 7, 9)
    plain.table.gather(ids)
    before = filtering.table.look_up(known)

    monkeypatch.delattr(EmbeddingTable, "gather")
    rows = many.gather(among, ids, ends)
    many.update(among, ids, ends, np.ones((9, WIDTH), np.float32), Update(lambda *_: None, UPDATES["adagrad"][1], 4))

    assert asked == [("t2", [8, 9, 9])]
    assert not rows[[2, 4, 6]].any()
    assert (filtering.table.look_up(known) < before).all()
    assert (filtering.table.waiting, filtering.table.frequencies(np.array([8, 9])).tolist()) == (1, [1, 2])


def test_a_line_that_nobody_asks_for_any_more_holds_no_memory() -> None:
    table, slots = tables_of(1, dtypes.float32)[0]
    held = weakref.ref(table.line((), 1)[1][0])
    table.line(slots, 1)
    for first in range(0, 2000, 100):
        table.gather(np.arange(first, first + 100))
    table.line(slots, 1)

    assert held() is None
    assert len(table.line((), 1)[1]) == 4


def test_a_table_that_is_there_twice_is_updated_twice() -> None:
    target = tables_of(0, dtypes.float32)[0]
    many, ids = ManyTables("gradient_descent"), np.array([7, 7])
    before = target.table.gather(ids)
    update = Update(
        lambda columns, rows, places, grad: columns[0].__setitem__(rows, columns[0][rows] - grad), (1.0,), 0
    )

    many.update(found([target, target]), ids, (0, 1, 2), np.ones((2, WIDTH), np.float32), update)

    np.testing.assert_allclose(target.table.gather(ids), before - 2, rtol=1e-6)


def test_tables_of_two_widths_do_not_go_together() -> None:
    targets = tables_of(0, dtypes.float32)
    narrow = EmbeddingTable(
        "narrow", dtypes.int64, dtypes.float32, np.zeros((1, 2)), EmbeddingLoops(id_loops(), admit())
    )

    with pytest.raises(InvalidArgumentError, match=r"t0 and narrow .* rows of 5 float32 and 2 float32"):
        found([targets[0], Target(narrow)])


def test_what_handles_name_is_found_once_for_each_generation() -> None:
    targets, asked = tables_of(1, dtypes.float32), []

    def find(handles: Any) -> Target:
        asked.append(handles)
        return targets[int(handles[0])]

    known, handles = Targets(find, 2), tuple(np.array(each) for each in (0, 0, 1, 1))

    assert [known.of(generation, handles).targets for generation in (1, 1, 2)] == [targets[:2]] * 3
    assert len(asked) == 4
    assert known.of(2, handles[2:]).targets == targets[1:2]


def test_without_machine_code_each_table_goes_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_tables, "finder", lambda: lambda: 0)
    target = tables_of(0, dtypes.float32)[0]

    rows = ManyTables().gather(found([target]), np.array([3, 3]), (0, 2))

    np.testing.assert_array_equal(rows, target.table.look_up(np.array([3, 3])))


def test_threads_that_take_some_of_the_tables_lose_no_update() -> None:
    targets, update = tables_of(0, dtypes.float32), many_ones()
    few = [target for target in targets if not target.table.options.filter_freq]
    begun = [float(target.table.look_up(np.arange(30)).sum()) for target in few]
    going, totals = threading.Event(), []

    def train(seed: int) -> None:
        choose, many, total = np.random.default_rng(seed), ManyTables("gradient_descent"), np.zeros(len(few))
        for _ in range(60):
            order = choose.permutation(len(few))[: choose.integers(1, len(few) + 1)]
            sizes = choose.integers(0, 9, order.size)
            ids, ends = choose.integers(0, 30, int(sizes.sum())), [0, *np.cumsum(sizes).tolist()]
            among = found([few[number] for number in order])
            many.update(among, ids, ends, np.full((ids.size, WIDTH), -1, np.float32), update)
            many.gather(among, ids, ends)
            np.add.at(total, order, sizes)
        totals.append(total)

    def save() -> None:
        while not going.is_set():
            for table, _ in few:
                table.begin_export([""])()

    threads = [threading.Thread(target=train, args=[seed]) for seed in range(4)]
    saving = threading.Thread(target=save)
    for thread in (saving, *threads):
        thread.start()
    for thread in threads:
        thread.join(60)
    going.set()
    saving.join(60)

    grown = [float(target.table.look_up(np.arange(30)).sum()) for target in few]
    assert len(totals) == 4
    # an update that is lost would be 5
    np.testing.assert_allclose(np.subtract(grown, begun), WIDTH * np.sum(totals, axis=0), atol=0.1)


def many_ones() -> Update:
    loop = sparse_updates.loop("gradient_descent", np.float32, np.int64)

    def apply(columns: list[Any], rows: Any, places: Any, grad: Any) -> None:
        loop(*columns, np.ascontiguousarray(grad[places]), rows, 1.0)

    return Update(apply, (1.0,), 0)
