"""Private mappings of one memory file: whether one was written to, which serve again, and how many there are."""

from __future__ import annotations

import gc
import mmap
import os
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_link.memory import private_mappings

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no memfd")

PAGE = mmap.PAGESIZE


@pytest.fixture
def file() -> Iterator[int]:
    """A memory file of 16 pages; page i holds the number i."""
    fd = os.memfd_create("test")
    os.write(fd, np.repeat(np.arange(16, dtype=np.uint8), PAGE).tobytes())
    yield fd
    os.close(fd)


def memory(mapping: Any) -> np.ndarray:
    return np.frombuffer(mapping.memory, np.uint8)


def give_back(mappings: Any, offset: int, mapping: Any) -> None:
    mappings.returned.append((offset, mapping))


def take(mappings: Any, file: int, page: int, pages: int = 1, size: int = 1 << 30) -> Any:
    return mappings.take(file, page * PAGE, pages * PAGE, size)


@pytest.mark.parametrize("place", [0, 3 * mmap.PAGESIZE, 4 * mmap.PAGESIZE - 1])
def test_a_mapping_tells_whether_it_was_written_to(file: int, place: int) -> None:
    mapping = private_mappings._Mapping(file, PAGE, 4 * PAGE)
    assert (mapping.nbytes, mapping.address) == (4 * PAGE, memory(mapping).__array_interface__["data"][0])
    assert not mapping.written
    assert memory(mapping)[::PAGE].tolist() == [1, 2, 3, 4]
    assert not mapping.written, "reading leaves the pages the file's"
    memory(mapping)[place] = 9
    assert mapping.written
    assert os.pread(file, 1, PAGE + place) != b"\x09"


def test_a_write_beside_a_mapping_is_not_its(file: int) -> None:
    around = mmap.mmap(file, 3 * PAGE, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    memory = np.frombuffer(around, np.uint8)
    middle = private_mappings._Mapping(file, PAGE, PAGE)
    middle.address = memory.__array_interface__["data"][0] + PAGE
    assert memory.max() == 2
    memory[PAGE - 1] = memory[2 * PAGE] = 7
    assert not middle.written
    memory[2 * PAGE - 1] = 7
    assert middle.written


@pytest.mark.parametrize("how", ["open", "pread"])
def test_where_the_system_does_not_tell_it_counts_as_written(
    file: int, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    def refused(*_: object) -> int:
        raise PermissionError

    mapping = private_mappings._Mapping(file, 0, PAGE)
    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(os, how, refused)
        assert mapping.written
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", lambda *_: b"")
        assert mapping.written, "of less than was asked for"
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("entry", "written"),
    [
        pytest.param(0, False, id="not in memory"),
        pytest.param(1 << 63 | 1 << 61 | 0x1234_5677, False, id="a page of the file"),
        pytest.param(1 << 61, False, id="of the file, not in memory"),
        pytest.param(0x1234_5677, False, id="a number of a page alone"),
        pytest.param(1 << 63 | 0x1234_5677, True, id="a page of its own"),
        pytest.param(1 << 62 | 0x1234_5677, True, id="a page of its own that was swapped out"),
    ],
)
def test_what_the_system_tells_of_one_page(
    file: int, monkeypatch: pytest.MonkeyPatch, entry: int, written: bool
) -> None:
    mapping = private_mappings._Mapping(file, 0, 3 * PAGE)
    for place in range(3):
        told = np.zeros(3, np.uint64)
        told[place] = entry
        monkeypatch.setattr(os, "pread", lambda *_, told=told: told.tobytes())
        assert mapping.written == written


def test_every_mapping_takes_a_permit_and_gives_it_back(file: int) -> None:
    gc.collect()
    permits = len(private_mappings._permits)
    assert permits <= private_mappings.MOST
    mapping = private_mappings._Mapping(file, 0, PAGE)
    assert len(private_mappings._permits) == permits - 1
    del mapping
    assert len(private_mappings._permits) == permits
    for descriptor, offset in ((1_000_000, 0), (file, 1)):
        with pytest.raises((OSError, ValueError)):
            private_mappings._Mapping(descriptor, offset, PAGE)
        assert len(private_mappings._permits) == permits
    assert take(private_mappings._FileMappings(), 1_000_000, 0) is None


def test_without_a_permit_there_is_none(file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_mappings, "_permits", deque([None]))
    mappings = private_mappings._FileMappings()
    first = take(mappings, file, 0)
    assert first is not None
    assert take(mappings, file, 1) is None
    give_back(mappings, 0, first)
    assert take(mappings, file, 0) is first, "one that came back needs no other"


def test_one_that_came_back_serves_the_same_place_alone(file: int) -> None:
    mappings = private_mappings._FileMappings()
    first = take(mappings, file, 2, 2)
    give_back(mappings, 2 * PAGE, first)
    longer, elsewhere = take(mappings, file, 2, 3), take(mappings, file, 3, 2)
    assert first is not longer is not elsewhere is not first
    assert memory(elsewhere)[0] == 3
    assert take(mappings, file, 2, 2) is first
    assert take(mappings, file, 2, 2) is not first


def test_the_oldest_that_came_back_goes_first(file: int) -> None:
    mappings = private_mappings._FileMappings()
    made = [take(mappings, file, page) for page in range(6)]
    for page, mapping in enumerate(made):
        give_back(mappings, page * PAGE, mapping)
    again = [take(mappings, file, page) for page in range(6)]
    assert [old is new for old, new in zip(made, again, strict=True)] == [False, False, True, True, True, True]


def test_after_a_written_one_so_many_values_are_copied(file: int) -> None:
    mappings = private_mappings._FileMappings()
    clean, written = take(mappings, file, 0), take(mappings, file, 1)
    memory(written)[0] = 9
    give_back(mappings, 0, clean)
    give_back(mappings, PAGE, written)
    copied = [take(mappings, file, 0) for _ in range(private_mappings._COPIES_AFTER_WRITE)]
    assert copied == [None] * 64
    assert take(mappings, file, 0) is clean
    other = take(mappings, file, 1)
    assert other is not written
    assert memory(other)[0] == 1


def test_a_quarter_of_a_file_is_mapped_at_once(file: int) -> None:
    mappings = private_mappings._FileMappings()
    size = 16 * PAGE
    assert take(mappings, file, 0, 5, size) is None
    assert take(mappings, file, 0, 4, size) is not None
    mappings.in_use.update({1: PAGE, 2: 2 * PAGE})
    assert take(mappings, file, 0, 1, size) is not None
    assert take(mappings, file, 0, 2, size) is None
