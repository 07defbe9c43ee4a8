"""Both kinds of entries do the same, and which a table has hangs on its types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes
from tenfold_kernels.cpu._compiled.id_index import id_loops
from tenfold_kernels.resources.table_entries import IdEntries, ObjectEntries, entries_for

I64, I32, F32, STRING = dtypes.int64, dtypes.int32, dtypes.float32, dtypes.string


def longs(*values: int) -> Any:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("key", "value", "key_shape", "kind"),
    [
        (I64, F32, (), IdEntries),
        (I32, dtypes.bool_, (), IdEntries),
        (dtypes.uint8, dtypes.complex64, (), IdEntries),
        (dtypes.uint64, F32, (), ObjectEntries),
        (I64, STRING, (), ObjectEntries),
        (STRING, I64, (), ObjectEntries),
        (F32, I64, (), ObjectEntries),
        (I64, I64, (2,), ObjectEntries),
    ],
)
def test_ids_with_numbers_are_kept_in_arrays(key: Any, value: Any, key_shape: tuple[int, ...], kind: type) -> None:
    assert type(entries_for(key, value, key_shape, (), id_loops())) is kind
    assert type(entries_for(key, value, key_shape, ())) is ObjectEntries


@pytest.fixture(params=["ids", "objects"])
def both(request: pytest.FixtureRequest) -> Any:
    def make(value_shape: tuple[int, ...] = ()) -> Any:
        if request.param == "ids":
            return IdEntries(id_loops(), I64, F32, value_shape)
        return ObjectEntries(I64, F32, (), value_shape)

    return make


def found(entries: Any, keys: Any, defaults: Any, shape: tuple[int, ...] = ()) -> Any:
    out = np.empty((len(keys), *shape), np.float32)
    entries.find(keys, np.array(defaults, np.float32), out)
    return out.tolist()


def test_the_last_value_of_a_key_counts_and_bytes_are_told(both: Any) -> None:
    entries = both()
    one = entries.put(longs(1), np.array([5], np.float32))

    assert entries.put(longs(2, 3, 2), np.array([1, 2, 3], np.float32)) == 2 * one > 0
    assert entries.put(longs(1), np.array([6], np.float32)) == 0
    assert len(entries) == 3
    assert found(entries, longs(1, 2, 3, 4), [9]) == [6, 3, 2, 9]
    assert found(entries, longs(4, 1, 5), [7, 8, 9]) == [7, 6, 9]
    assert (entries.have(longs(1, 3)), entries.have(longs(1, 4)), entries.have(longs())) == (True, False, True)
    gone, nbytes = entries.remove(longs(2, 9, 1, 2))
    assert (gone, nbytes) == ([3, 6], 2 * one)
    assert [each.tolist() for each in entries.items()] == [[3], [2]]
    assert entries.items()[0].dtype == np.int64


def test_rows_are_copies(both: Any) -> None:
    entries = both((2,))
    rows = np.array([[1, 2], [3, 4]], np.float32)
    entries.put(longs(10, 11), rows)
    rows[:] = 0

    assert found(entries, longs(11, 12), [[8, 9]], (2,)) == [[3, 4], [8, 9]]
    values = entries.items()[1]
    values[:] = 0
    assert found(entries, longs(10), [[8, 9]], (2,)) == [[1, 2]]


def test_many_ids(both: Any) -> None:
    entries = both()
    keys = np.random.default_rng(3).permutation(10_000)
    for part in np.split(keys, 10):
        entries.put(part, (part * 2).astype(np.float32))

    assert found(entries, keys, [-1]) == (keys * 2).tolist()
    entries.remove(keys[:5000])
    assert found(entries, keys[:5000], [-1]) == [-1] * 5000
    assert len(entries) == 5000
