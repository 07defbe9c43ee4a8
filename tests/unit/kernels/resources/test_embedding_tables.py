"""Tables of weights by ids: rows that come with lookups and updates, filters, evictions, exports and imports."""

from __future__ import annotations

import errno
import functools
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.checkpoint.table_rows import NEVER, Snapshot
from tenfold_core.files import EVERYWHERE
from tenfold_kernels.cpu._compiled.admitting import _admit, _admit_in_numpy, admit
from tenfold_kernels.cpu._compiled.id_index import id_loops
from tenfold_kernels.resources import growing
from tenfold_kernels.resources.embedding_rows import EmbeddingLoops, TableOptions
from tenfold_kernels.resources.embedding_tables import EmbeddingTable
from tenfold_kernels.resources.quota import StateQuota

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

I64, F32 = dtypes.int64, dtypes.float32


def longs(*values: int) -> Any:
    return np.array(values, np.int64)


@pytest.fixture(params=[_admit, _admit_in_numpy, admit()])
def loops(request: pytest.FixtureRequest) -> EmbeddingLoops:
    return EmbeddingLoops(id_loops(), request.param)


@pytest.fixture
def make(loops: EmbeddingLoops) -> Callable[..., EmbeddingTable]:
    def made(first: Any = ((1, 1), (2, 2), (3, 3)), account: Any = None, key: Any = I64, **options: Any) -> Any:
        return EmbeddingTable("t", key, F32, np.array(first, np.float32), loops, TableOptions(**options), account)

    return made


def sum_of(columns: list[Any], rows: Any, places: Any) -> Any:
    """An update that adds 10 to the weights and 1 to each slot."""
    columns[0][rows] += 10
    for column in columns[1:]:
        column[rows] += 1
    return places.tolist()


def test_new_ids_begin_with_the_row_that_they_choose(make: Callable[..., EmbeddingTable]) -> None:
    table = make()

    assert table.gather(longs(0, 4, -5, 4))[:, 0].tolist() == [1, 2, 3, 2]
    assert table.gather(np.array([[4], [6]], np.int32)).tolist() == [[[2, 2]], [[1, 1]]]
    assert (len(table), table.width) == (4, 2)
    keys, values, versions, freqs = table.export()
    assert keys.tolist() == [0, 4, -5, 6]
    assert values[:, 1].tolist() == [1, 2, 3, 1]
    assert versions.tolist() == freqs.tolist() == [0] * 4


def test_a_lookup_that_only_reads_adds_nothing(make: Callable[..., EmbeddingTable]) -> None:
    table = make()
    table.gather(longs(1))

    assert table.look_up(longs(1, 2, 3)).tolist() == [[2, 2], [3, 3], [1, 1]]
    assert len(table) == 1


def test_new_ids_may_bring_their_weights(make: Callable[..., EmbeddingTable]) -> None:
    table = make()
    table.gather(longs(1))
    given = np.array([[5, 5], [6, 6], [7, 7], [8, 8]], np.float32)

    assert table.gather(longs(1, 2, 3, 2), given)[:, 0].tolist() == [2, 6, 7, 6]
    assert table.gather(longs(9), np.array([4, 4], np.float32)).tolist() == [[4, 4]]


def test_updates_reach_weights_and_slots_of_old_and_new_ids(make: Callable[..., EmbeddingTable]) -> None:
    table = make(record_version=True)
    table.gather(longs(0))
    table.add_slot("m", np.array([[0.5, 0.5]], np.float32))
    table.add_slot("m", np.array([[9, 9]], np.float32))

    assert table.update(["m"], longs(0, 7), sum_of, 3) == [0, 1]
    table.gather(longs(8))
    assert table.export().values[:, 0].tolist() == [11, 12, 3]
    assert table.export("m").values[:, 0].tolist() == [1.5, 1.5, 0.5]
    assert table.export().versions.tolist() == table.versions(longs(0, 7, 8)).tolist() == [3, 3, NEVER]
    assert table.versions(longs(99)).tolist() == [NEVER]
    with pytest.raises(errors.NotFoundError, match="has no slot v: it was not initialized"):
        table.update(["v"], longs(0), sum_of, 4)


def test_ids_are_admitted_when_they_were_asked_for_often_enough(make: Callable[..., EmbeddingTable]) -> None:
    table = make(filter_freq=3, value_without_weights=-1.0)

    assert table.gather(longs(3, 4))[:, 0].tolist() == [-1, -1]
    assert table.gather(longs(3, 3, 4, 3))[:, 0].tolist() == [-1, -1, -1, 1]
    assert table.frequencies(longs(3, 4, 5)).tolist() == [3, 2, 0]
    assert table.look_up(longs(3, 4, 5))[:, 0].tolist() == [1, -1, -1]
    assert table.update([], longs(4, 3, 6), sum_of, 1) == [1], "only one of them may be trained"
    assert table.export().keys.tolist() == [3]
    waiting = table.export_waiting()
    assert dict(zip(waiting.keys.tolist(), waiting.freqs.tolist(), strict=True)) == {4: 2, 6: 0}
    assert waiting.values.tolist() == []
    table.gather(longs(6), counts=longs(5))
    assert table.gather(longs(6))[:, 0].tolist() == [1]


def test_frequencies_may_be_counted_all_the_time(make: Callable[..., EmbeddingTable]) -> None:
    table = make(filter_freq=2, record_freq=True)
    for _ in range(5):
        table.gather(longs(1))

    assert table.frequencies(longs(1)).tolist() == [5]
    counted = make(record_freq=True)
    counted.gather(longs(1, 1, 2))
    assert counted.frequencies(longs(1, 2)).tolist() == [2, 1]
    assert make().frequencies(longs(1)).tolist() == [0]


def test_what_was_not_updated_for_long_goes(make: Callable[..., EmbeddingTable]) -> None:
    table = make(steps_to_live=5)
    table.update([], longs(1, 2), sum_of, 10)
    table.update([], longs(2), sum_of, 14)
    table.gather(longs(3))

    assert table.shrink(15) == 0
    assert table.shrink(16) == 1
    assert table.export().keys.tolist() == [2, 3]
    assert table.versions(longs(3)).tolist() == [15], "its life began when it was first looked at"
    assert table.gather(longs(1)).tolist() == [[2, 2]], "it begins anew"


def test_what_weighs_too_little_goes(make: Callable[..., EmbeddingTable]) -> None:
    table = make(first=((0.1, 0.1), (1, 1)), l2_weight_threshold=0.5)
    table.gather(longs(0, 1, 2))

    assert table.shrink(1) == 2
    assert table.export().keys.tolist() == [1]


def test_what_is_exported_can_be_put_into_another_table(make: Callable[..., EmbeddingTable]) -> None:
    one, other = (make(filter_freq=2, steps_to_live=9) for _ in range(2))
    one.gather(longs(1, 2, 1, 2, 3))
    one.add_slot("m", np.array([[0, 0]], np.float32))
    other.add_slot("m", np.array([[0, 0]], np.float32))
    one.update(["m"], longs(1, 2), sum_of, 4)

    other.put(one.export())
    other.put(one.export("m"), "m")

    for slot in ("", "m"):
        for mine, theirs in zip(one.export(slot), other.export(slot), strict=True):
            assert mine.tolist() == theirs.tolist()
    assert other.gather(longs(1)).tolist() == one.gather(longs(1)).tolist()
    nothing = longs()
    plain = make(filter_freq=7)
    plain.put(Snapshot(longs(5), np.array([[4, 4]], np.float32), nothing, longs(1)))
    assert plain.gather(longs(5)).tolist() == [[4, 4]], "it comes with weights, so it was admitted"
    with pytest.raises(errors.InvalidArgumentError, match=r"rows of 2 elements; 1 keys came with .* shape \[1,3\]"):
        plain.put(Snapshot(longs(6), np.zeros((1, 3), np.float32), nothing, nothing))


def test_rows_are_charged_and_given_back(make: Callable[..., EmbeddingTable]) -> None:
    quota = StateQuota()
    table = make(account=quota.account("t"), steps_to_live=1)
    table.update([], np.arange(10), sum_of, 0)
    ten = quota.bytes
    table.add_slot("m", np.zeros((1, 2), np.float32))

    assert quota.bytes == ten + 10 * 8
    table.shrink(5)
    assert (len(table), quota.bytes) == (0, 0)
    small = make(account=StateQuota(100).account("t"))
    with pytest.raises(errors.ResourceExhaustedError, match="with 't' what is kept would take"):
        small.gather(np.arange(100))
    assert len(small) == 0
    full = make(account=StateQuota(ten - 80).account("t"))
    full.gather(np.arange(8))
    assert full.gather(np.arange(8).repeat(9)).shape == (72, 2), "none of them is new"
    with pytest.raises(errors.ResourceExhaustedError, match="with 't'"):
        full.gather(np.arange(100))


def test_keys_keep_their_type(make: Callable[..., EmbeddingTable]) -> None:
    table = make(key=dtypes.int32)
    table.gather(np.array([3], np.int32))

    assert table.export().keys.dtype == np.int32


def test_rows_on_a_full_disk_are_refused_and_their_ids_are_unknown(
    loops: EmbeddingLoops, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(growing, "_SMALL", 1024)
    first = np.ones((1, 8), np.float32)
    make_file = functools.partial(EVERYWHERE.scratch, str(tmp_path))
    table = EmbeddingTable("t", I64, F32, first, loops, make_file=make_file)
    table.gather(np.arange(100))

    def refuse(*given: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "posix_fallocate", refuse)
        with pytest.raises(errors.ResourceExhaustedError, match="rows of the embedding variable t; No space left"):
            table.gather(np.arange(50, 5000))
        assert len(table) == 100
        assert table.gather(np.arange(100)).sum() == 800
    assert table.gather(np.arange(50, 5000)).sum() == 8 * 4950
    assert len(table) == 5000


def test_slots_may_be_narrower_than_weights(make: Callable[..., EmbeddingTable]) -> None:
    table = make(first=((1, 1, 1),))
    table.add_slot("times", np.zeros((1, 1), np.float32))
    table.update(["times"], longs(4, 5), sum_of, 0)

    assert table.export("times").values.tolist() == [[1], [1]]
    assert (table.width, table.width_of("times")) == (3, 1)
    table.put(table.export("times")._replace(values=np.full((2, 1), 7, np.float32)), "times")
    assert table.export("times").values.tolist() == [[7], [7]]
    with pytest.raises(errors.InvalidArgumentError, match="times has rows of 1 elements; 2 keys came with values of"):
        table.put(table.export(), "times")
