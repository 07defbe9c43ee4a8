"""An array that grows: what it holds stays, what is new is zeros, and a large one is not copied."""

from __future__ import annotations

import errno
import mmap
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core.files import EVERYWHERE
from tenfold_kernels.resources import growing
from tenfold_kernels.resources.growing import GrowingArray, fill_pages, give_back, small_pages

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (0,)])
def test_rows_stay_and_new_ones_are_zeros(shape: tuple[int, ...]) -> None:
    rows = GrowingArray(np.float32, shape)
    assert rows.array.shape == (0, *shape)

    rows.reserve(5)
    rows.array[:5] = 7
    rows.reserve(100)
    assert rows.array.shape[0] >= 100
    assert rows.array.shape[1:] == shape
    assert (rows.array[:5] == 7).all()
    assert not rows.array[5:].any()
    before = rows.array
    rows.reserve(100)
    assert rows.array is before, "there is room"


def test_a_small_one_doubles() -> None:
    rows, sizes = GrowingArray(np.int64), set()
    for count in range(1, 200):
        rows.reserve(count)
        sizes.add(len(rows.array))

    assert sizes == {16, 32, 64, 128, 256}


def test_a_large_one_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_SMALL", 1024)
    rows = GrowingArray(np.int64)
    rows.reserve(1)
    rows.array[0] = 4711
    places = set()
    for count in range(1, 100_000, 999):
        rows.reserve(count)
        rows.array[count - 1] = 4711
        places.add(rows.array.ctypes.data)

    assert len(places) == 2
    assert np.count_nonzero(rows.array[:100_000]) == 101


def test_without_a_range_of_addresses_it_goes_on_doubling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_SMALL", 1024)

    def refuse(*given: Any, **more: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    rows = GrowingArray(np.int64)
    rows.reserve(100)
    rows.array[:100] = 1
    rows.reserve(1000)

    assert len(rows.array) == 1000
    assert rows.array.sum() == 100


def test_a_range_takes_memory_where_it_is_written_to_only() -> None:
    rows = GrowingArray(np.float32, (16,))
    rows.reserve(1 << 17)

    assert rows.array.nbytes > 1 << 36
    rows.array[1 << 20] = 1
    assert rows.array[1 << 20].tolist() == [1] * 16


def test_a_large_one_may_be_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(growing, "_SMALL", 1024)
    made: list[int] = []

    def make_file() -> Any:
        file = EVERYWHERE.scratch(str(tmp_path))
        made.append(os.dup(file.fileno()))
        return file

    rows = GrowingArray(np.int64, make_file=make_file)
    for count in range(1, 20_000, 97):
        rows.reserve(count)
        rows.array[count - 1] = 4711
        has_room = os.fstat(made[-1]).st_blocks * 512 if made else 0
        assert not made or has_room >= count * 8, "the disk may be full later"

    assert len(made) == 1
    assert np.count_nonzero(rows.array[:20_000]) == len(range(1, 20_000, 97))
    written = os.pread(made[0], 98 * 8, 0)
    assert np.frombuffer(written, np.int64)[[0, 97]].tolist() == [4711, 4711]
    assert os.fstat(made[0]).st_blocks * 512 < 20_000 * 8 + 65_536, "and takes no more than is used"
    os.close(made[0])


def test_a_full_disk_is_told_and_what_was_there_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(growing, "_SMALL", 1024)
    rows = GrowingArray(np.int64, make_file=lambda: EVERYWHERE.scratch(str(tmp_path)))
    rows.reserve(100)
    rows.array[:100] = 3

    def refuse(*given: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match="No space left"):
        rows.reserve(1000)
    assert (rows.array[:100] == 3).all()
    monkeypatch.undo()
    rows.reserve(1000)
    assert (rows.array[:100] == 3).all()


@pytest.mark.parametrize("large", [True, False])
def test_memory_is_given_back_from_the_beginning_on(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_SMALL", 1024 if large else 1 << 30)
    page = mmap.PAGESIZE // 4
    vector = small_pages(8 * page, np.int32)
    fill_pages(vector, 3, 5 * page)
    assert not vector.any()
    vector[:] = 7

    give_back(vector, 3, 2 * page + 5)
    give_back(vector, 2 * page + 5, 2 * page + 9)
    assert (vector[2 * page :] == 7).all(), "what was not given back stays"
    if large and hasattr(mmap, "MADV_DONTNEED"):
        assert not vector[: 2 * page].any()


def test_pages_are_filled_one_by_one_where_the_system_cannot_do_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_SMALL", 1024)
    monkeypatch.setattr(growing, "_POPULATE_WRITE", 1 << 20)
    vector = small_pages(1 << 16, np.int32)
    fill_pages(vector, 0, 1 << 16)

    vector[:] = 1
    assert vector.sum() == 1 << 16
