"""What resources hold, in numbers: which variables, queues and tables are told of, and with which figures."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes
from tenfold_core.checkpoint.table_rows import Snapshot
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cpu._compiled.admitting import _admit, _admit_in_numpy, admit
from tenfold_kernels.cpu._compiled.id_index import id_loops
from tenfold_kernels.resources import figures
from tenfold_kernels.resources.embedding_rows import EmbeddingLoops, TableOptions
from tenfold_kernels.resources.embedding_tables import EmbeddingTable
from tenfold_kernels.resources.figures import queue_figures, table_figures, variable_figures
from tenfold_kernels.resources.lookup_tables import Table
from tenfold_kernels.resources.queue_stores import FifoStore
from tenfold_kernels.resources.queues import Queue
from tenfold_kernels.resources.state import ResourceManager, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def variable(resources: ResourceManager, name: str, value: np.ndarray | None, container: str = "") -> None:
    made = Variable(name, dtypes.float32, TensorShape(None))
    if value is not None:
        made.assign(value, validate_shape=False)
    resources.lookup_or_create(container, name, Variable, lambda: made)


def queue(resources: ResourceManager, name: str, capacity: int, elements: int) -> None:
    made = Queue("FIFOQueue", name, [dtypes.float32], None, capacity, FifoStore())
    for _ in range(elements):
        made.enqueue((np.zeros((), np.float32),))
    resources.lookup_or_create("", name, Queue, lambda: made)


def longs(*values: int) -> Any:
    return np.array(values, np.int64)


def embeddings(resources: ResourceManager, name: str, width: int = 2, **options: Any) -> EmbeddingTable:
    loops = EmbeddingLoops(id_loops(), admit())
    account = resources.quota.account(name)
    first = np.ones((3, width), np.float32)
    made = EmbeddingTable(name, dtypes.int64, dtypes.float32, first, loops, TableOptions(**options), account)
    return resources.lookup_or_create("", name, EmbeddingTable, lambda: made)


def told(resources: ResourceManager) -> dict[str, Any]:
    """Of the only table."""
    (found,) = table_figures([resources])["tables"]
    return dict(found)


def test_variables_of_all_containers_count_once_they_have_a_value() -> None:
    first, second = ResourceManager(), ResourceManager()
    variable(first, "w", np.zeros((10, 10), np.float32))
    variable(first, "w", np.zeros(5, np.float32), container="experiment")
    variable(first, "not yet", None)
    variable(second, "w", np.zeros(1, np.float32))

    assert variable_figures([first, second]) == {"variables": 3, "variable_bytes": 400 + 20 + 4}


def test_a_queue_is_as_full_as_it_is() -> None:
    resources = ResourceManager()
    queue(resources, "tokens", 3, 2)
    queue(resources, "names", -1, 1)

    assert queue_figures([resources]) == [
        {"name": "names", "size": 1, "capacity": None},
        {"name": "tokens", "size": 2, "capacity": 3},
    ]


def test_of_many_queues_the_fullest_are_told_of() -> None:
    resources = ResourceManager()
    for index in range(figures.MOST_QUEUES + 5):
        queue(resources, f"q{index:02}", 100, index)

    found = queue_figures([resources])

    assert [each["name"] for each in found] == [f"q{index:02}" for index in range(5, figures.MOST_QUEUES + 5)]


def test_of_queues_of_one_name_the_fullest_is_told_of_and_empty_capacities_do_no_harm() -> None:
    first, second = ResourceManager(), ResourceManager()
    queue(first, "q", 5, 3)
    queue(second, "q", 9, 1)
    queue(second, "r", 1, 1)
    assert queue_figures([first, second]) == [
        {"name": "q", "size": 3, "capacity": 5},
        {"name": "r", "size": 1, "capacity": 1},
    ]


def test_an_empty_queue_without_a_bound_has_none() -> None:
    resources = ResourceManager()
    queue(resources, "q", -1, 0)
    assert queue_figures([resources]) == [{"name": "q", "size": 0, "capacity": None}]


def test_an_embedding_variable_tells_rows_bytes_and_lookups() -> None:
    resources = ResourceManager()
    table = embeddings(resources, "user")

    table.gather(longs(1, 2, 1, 9))
    table.look_up(longs(2, 77))
    found = told(resources)

    assert found.pop("bytes") == table.nbytes
    assert found == {
        "name": "user",
        "kind": "EmbeddingVariable",
        "rows": 3,
        "waiting": 0,
        "evicted": 0,
        "quota_bytes": resources.quota.bytes,
        # the second 1 finds what the first one made; 2 is there, 77 is not
        "lookups": 6,
        "found": 2,
    }


def test_bytes_are_those_of_ids_rows_slots_and_first_rows() -> None:
    resources = ResourceManager()
    table = embeddings(resources, "user", width=8, record_freq=True, steps_to_live=1)
    table.gather(np.arange(1000))
    without = table.nbytes
    table.add_slot("m", np.zeros((5, 8), np.float32))

    # 1,000 rows of eight floats, with a frequency and a version each; ids take 8 bytes and 6 to 12 of index
    rows, first = 1000 * (32 + 16), 3 * 32
    assert rows + first + 1000 * 14 <= without <= rows + first + 1000 * 20
    assert table.nbytes == without + 1000 * 32 + 5 * 32
    assert abs(table.nbytes - resources.quota.bytes) < 1000 * 6 + first + 5 * 32


@pytest.mark.parametrize("record", [False, True])
def test_ids_wait_until_they_are_admitted(record: bool) -> None:
    resources = ResourceManager()
    table = embeddings(resources, "user", filter_freq=3, record_freq=record)

    def numbers() -> tuple[int, ...]:
        found = told(resources)
        assert found["waiting"] == table.export_waiting().keys.size
        return tuple(found[each] for each in ("rows", "waiting", "lookups", "found"))

    table.gather(longs(1, 2, 3))
    assert numbers() == (3, 3, 3, 0)
    table.gather(longs(1, 1, 1, 2))
    # the last 1 finds weights: it was asked for three times before
    assert numbers() == (3, 2, 7, 1)
    table.gather(longs(2, 2), counts=longs(5, 1))
    assert numbers() == (3, 1, 9, 2)
    table.look_up(longs(1, 2, 3, 4))
    assert numbers() == (3, 1, 13, 4)
    table.update([], longs(8, 1), lambda columns, rows, places: None, 1)
    assert numbers() == (4, 2, 13, 4), "updates are no lookups"


@pytest.mark.parametrize("loop", [_admit, _admit_in_numpy, admit()])
@pytest.mark.parametrize("record", [0, 1])
def test_the_loop_says_how_many_more_rows_have_weights(loop: Callable[..., int], record: int) -> None:
    choose = np.random.default_rng(5)
    freqs, seen = choose.integers(0, 6, 20), []
    for _ in range(9):
        rows, counts = choose.integers(0, 20, 30), choose.integers(-1, 3, 30)
        before = np.count_nonzero(freqs >= 4)
        seen.append(loop(rows, counts, freqs, 4, record, np.empty(30, np.int64)))
        assert seen[-1] == np.count_nonzero(freqs >= 4) - before
    assert max(seen) > 0


def test_what_was_evicted_is_counted_and_waits_no_more() -> None:
    resources = ResourceManager()
    table = embeddings(resources, "user", filter_freq=2, steps_to_live=5)
    for _ in range(2):
        table.gather(longs(1, 2))
    table.gather(longs(3))
    table.shrink(10)
    table.update([], longs(1), lambda columns, rows, places: None, 14)

    assert table.shrink(16) == 2
    found = told(resources)
    assert (found["rows"], found["waiting"], found["evicted"]) == (1, 0, 2)
    table.gather(longs(2))
    assert told(resources)["waiting"] == 1


def test_what_a_checkpoint_brings_is_admitted_or_waits() -> None:
    resources = ResourceManager()
    table = embeddings(resources, "user", filter_freq=3)
    table.gather(longs(1, 5))
    weights = np.ones((2, 2), np.float32)

    table.put(Snapshot(longs(1, 2, 3), weights, longs(), longs(7, 7, 1)))

    found = told(resources)
    assert (found["rows"], found["waiting"], found["evicted"], found["lookups"]) == (3, 1, 0, 2)
    table.put(Snapshot(longs(2, 9, 3, 4), weights, longs(), longs(7, 7, 2, 0)))
    assert [told(resources)[each] for each in ("rows", "waiting")] == [4, 2]
    assert table.export_waiting().keys.tolist() == [3, 4]


def test_lookup_tables_tell_entries_and_what_they_are_charged() -> None:
    resources = ResourceManager()

    def table(name: str, kind: str) -> Table:
        account = resources.quota.account(name)
        made = Table(kind, name, dtypes.int64, dtypes.float32, account=account, loops=id_loops())
        return resources.lookup_or_create("", name, Table, lambda: made)

    table("words", "MutableHashTable").insert(longs(1, 2, 3), np.ones(3, np.float32))
    table("none", "HashTable")

    none, words = table_figures([resources])["tables"]
    assert (words["name"], words["kind"], words["rows"]) == ("words", "MutableHashTable", 3)
    assert words["bytes"] == words["quota_bytes"] == resources.quota.bytes > 0
    assert [words[each] for each in ("waiting", "evicted", "lookups", "found")] == [None] * 4
    assert (none["name"], none["kind"], none["rows"], none["bytes"]) == ("none", "HashTable", 0, 0)


def test_of_many_tables_the_largest_are_told_of_and_how_many_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MOST_TABLES", 3)
    one, other = ResourceManager(), ResourceManager()
    tables = [embeddings(one, f"t{index}") for index in range(5)]
    for index, table in enumerate(tables):
        table.gather(np.arange(100 * index))
    # a guest's table of the same name, and one with a long name
    embeddings(other, "t4").gather(np.arange(7))
    embeddings(other, "x" * 400 + "/part_1").gather(np.arange(1000))

    found = table_figures([one, other])

    names: Sequence[str] = [table["name"] for table in found["tables"]]
    assert names == ["t3", "t4", "x" * 293 + "/part_1"]
    assert [table["rows"] for table in found["tables"]] == [300, 400, 1000]
    assert found["tables_left_out"] == 4
    assert found["table_rows"] == 100 + 200 + 300 + 400 + 7 + 1000
    every = [*tables, *other.every(EmbeddingTable)]
    assert found["table_bytes"] == sum(table.nbytes for table in every)


def test_figures_wait_for_no_lock() -> None:
    resources = ResourceManager()
    table = embeddings(resources, "user")
    with table.lock, ThreadPoolExecutor(1) as pool:
        found = pool.submit(told, resources).result(10.0)
    assert found["rows"] == 0


def test_so_many_are_told_of() -> None:
    assert (figures.MOST_QUEUES, figures.MOST_TABLES) == (32, 256)
