"""The map of ids beside a dictionary: rows are found, added, removed and given out again, while its index grows."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.kernel_net.loops import without_compiler
from tenfold_core import errors
from tenfold_kernels.cpu._compiled import id_index
from tenfold_kernels.resources import id_map, index_growth
from tenfold_kernels.resources.id_map import IdLoops, IdMap, as_ids

if TYPE_CHECKING:
    from collections.abc import Callable

LOOPS = (id_index._find, id_index.add, id_index._move, id_index._remove)
STAND_INS = id_index._find_in_numpy, id_index._add_in_numpy, id_index._move_in_numpy, id_index._remove_in_python


def in_python(loop: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):
            return loop(*arguments)

    return call


@pytest.fixture(params=["loops", "stand-ins"])
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., IdMap]:
    """Makes maps of the loops' own code, or of what runs until they are loaded."""
    without_compiler(monkeypatch)
    loops = IdLoops(*map(in_python, {"loops": LOOPS, "stand-ins": STAND_INS}[request.param]))
    return lambda seed=1: IdMap(loops, seed)


def longs(*values: int) -> Any:
    return np.array(values, np.int64)


def test_new_ids_have_the_next_rows_and_known_ones_theirs(make: Callable[..., IdMap]) -> None:
    ids = make()

    rows, added = ids.find_or_add(longs(7, -3, 7, 1 << 62))
    assert (rows.tolist(), added.tolist()) == ([0, 1, 0, 2], [0, 1, 2])
    rows, added = ids.find_or_add(longs(-3, 0, 7))
    assert (rows.tolist(), added.tolist()) == ([1, 3, 0], [3])
    assert ids.find(longs(0, 5, -(1 << 63))).tolist() == [3, -1, -1]
    assert (len(ids), ids.rows) == (4, 4)
    assert [each.tolist() for each in ids.items()] == [[7, -3, 1 << 62, 0], [0, 1, 2, 3]]


def test_rows_of_removed_ids_are_given_out_again_the_last_one_first(make: Callable[..., IdMap]) -> None:
    ids = make()
    ids.find_or_add(longs(10, 11, 12, 13))

    assert ids.remove(longs(11, 99, 13, 11)).tolist() == [1, 3]
    assert ids.find(longs(10, 11, 12, 13)).tolist() == [0, -1, 2, -1]
    rows, added = ids.find_or_add(longs(20, 21, 22))
    assert rows.tolist() == added.tolist() == [3, 1, 4]
    assert (len(ids), ids.rows) == (5, 5)


def test_nothing_is_asked_and_nothing_is_there(make: Callable[..., IdMap]) -> None:
    ids = make()

    assert ids.find(longs()).tolist() == ids.remove(longs(1)).tolist() == []
    assert ids.find(longs(0)).tolist() == [-1]
    assert [each.tolist() for each in ids.find_or_add(longs())] == [[], []]
    assert [each.tolist() for each in ids.items()] == [[], []]


@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_a_dictionary(make: Callable[..., IdMap], seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_growth, "_MOVED", 2)  # an old index lives for many calls
    monkeypatch.setattr(index_growth, "_MOVED_PER_KEY", 3)
    choose = random.Random(seed)
    ids, known = make(choose.getrandbits(50)), dict[int, int]()
    space = (30, 200, 2000)[seed % 3]
    for _ in range(150):
        keys = [choose.randrange(-space, space) for _ in range(choose.randrange(25))]
        what = choose.random()
        if what < 0.5:
            rows, added = ids.find_or_add(as_ids(keys))
            new = [row for key, row in zip(keys, rows.tolist(), strict=True) if known.setdefault(key, row) == row]
            assert len(new) == len(keys)
            assert sorted(added.tolist()) == sorted({known[key] for key in keys} & set(added.tolist()))
        elif what < 0.75:
            assert ids.find(as_ids(keys)).tolist() == [known.get(key, -1) for key in keys]
        else:
            there = [known.pop(key) for key in dict.fromkeys(keys) if key in known]
            assert ids.remove(as_ids(keys)).tolist() == there
        assert len(ids) == len(known) == len(set(known.values()))
        assert ids.rows <= 4 * space
    keys, rows = ids.items()
    assert dict(zip(keys.tolist(), rows.tolist(), strict=True)) == known


def test_an_index_grows_in_pieces_and_is_never_more_than_five_eighths_full(make: Callable[..., IdMap]) -> None:
    ids = make()
    olds = set()
    for first in range(0, 3000, 10):
        ids.find_or_add(np.arange(first, first + 10))
        olds.add(ids._old.size)
        assert 8 * len(ids) <= 5 * ids._growth.slots

    assert ids._growth.slots == 8192
    assert len(olds) > 2, "there was an old index beside the new one"
    assert (ids.find(np.arange(3000)) == np.arange(3000)).all()
    assert ids._old.size == 0


def test_all_that_share_a_slot_are_found(make: Callable[..., IdMap], monkeypatch: pytest.MonkeyPatch) -> None:
    most = (1 << 64) - 1
    monkeypatch.setattr(id_index, "hash_of", lambda key, seed: np.uint64(most))
    monkeypatch.setattr(id_index, "_hashes", lambda keys, seed: np.full(keys.size, most, np.uint64))
    ids = make()
    ids.find_or_add(longs(1, 2, 3, 4, 5))
    ids.remove(longs(2))

    assert ids.find(longs(1, 2, 3, 4, 5)).tolist() == [0, -1, 2, 3, 4]
    ids.remove(longs(1, 5))
    assert ids.find(longs(1, 2, 3, 4, 5)).tolist() == [-1, -1, 2, 3, -1]


def test_too_many_rows_are_refused(make: Callable[..., IdMap], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_map, "MOST_ROWS", 3)
    ids = make()
    ids.find_or_add(longs(1, 2))

    with pytest.raises(errors.ResourceExhaustedError, match="at most 3 rows; 2 more were added"):
        ids.find_or_add(longs(3, 4))
    assert len(ids) == 2
    ids.find_or_add(longs(3))
    assert len(ids) == 3


def test_what_it_takes_is_told(make: Callable[..., IdMap]) -> None:
    ids = make()
    empty = ids.nbytes
    ids.find_or_add(np.arange(10_000))

    assert empty < 100
    assert 10_000 * (8 + 6) <= ids.nbytes <= 10_000 * (8 + 12)


def test_ids_are_the_maps_own_copies() -> None:
    keys = np.array([[1, 2]], np.int32)
    ids = as_ids(keys)
    keys[:] = 9

    assert (ids.dtype, ids.tolist()) == (np.dtype(np.int64), [1, 2])
    same = longs(3)
    assert as_ids(same) is not same
    assert not np.shares_memory(as_ids(same), same)


def test_the_compiled_loops_agree_with_the_others() -> None:
    """Whatever runs by now: loops, or what stands in for them."""
    ids, known = IdMap(id_index.id_loops()), dict[int, int]()
    choose = np.random.default_rng(5)
    for _ in range(40):
        keys = choose.integers(-500, 500, 60)
        rows, _ = ids.find_or_add(keys)
        known.update(zip(keys.tolist(), rows.tolist(), strict=True))
        gone = choose.integers(-500, 500, 20)
        ids.remove(gone)
        for key in gone.tolist():
            known.pop(key, None)

    keys, rows = ids.items()
    assert dict(zip(keys.tolist(), rows.tolist(), strict=True)) == known
