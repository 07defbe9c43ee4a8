"""Free parts of an arena against a model that keeps each page by itself."""

from __future__ import annotations

import mmap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold_link.memory.extents import PAGE, Extents, pages


@pytest.mark.parametrize(
    ("size", "whole"), [(0, PAGE), (1, PAGE), (PAGE, PAGE), (PAGE + 1, 2 * PAGE), (10 * PAGE, 10 * PAGE)]
)
def test_sizes_are_whole_pages(size: int, whole: int) -> None:
    assert pages(size) == whole


def test_pages_are_the_system_s() -> None:
    """It takes no part of one back: on some machines they are 16 or 64 KB."""
    assert PAGE == mmap.PAGESIZE


def test_the_extent_that_fits_best_is_taken_and_the_lowest_of_equals() -> None:
    free = Extents()
    for offset, size in ((0, 4), (10, 2), (20, 2), (30, 8)):
        free.give(offset * PAGE, size * PAGE)

    assert free.take(2 * PAGE) == 10 * PAGE
    assert free.take(2 * PAGE) == 20 * PAGE
    assert free.take(2 * PAGE) == 0
    assert free.take(5 * PAGE) == 30 * PAGE
    assert free.take(5 * PAGE) is None


def test_neighbours_are_joined_on_both_sides() -> None:
    free = Extents()
    free.give(0, PAGE)
    free.give(2 * PAGE, PAGE)
    assert free.take(2 * PAGE) is None
    free.give(PAGE, PAGE)
    assert free.take(3 * PAGE) == 0


def test_only_the_free_end_is_cut_and_what_is_kept_stays() -> None:
    free = Extents()
    free.give(4 * PAGE, 4 * PAGE)
    assert free.cut(9 * PAGE, 0) == 9 * PAGE, "nothing is free at that end"
    assert free.cut(8 * PAGE, 8 * PAGE) == 8 * PAGE
    assert free.cut(8 * PAGE, 6 * PAGE) == 6 * PAGE
    assert free.free == 2 * PAGE
    assert free.cut(6 * PAGE, 0) == 4 * PAGE
    assert free.free == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6)), max_size=60))
def test_no_page_is_taken_twice_or_lost(actions: list[tuple[int, int]]) -> None:
    whole = 24
    free = Extents()
    free.give(0, whole * PAGE)
    taken: list[tuple[int, int]] = []
    for action, size in actions:
        if action < 3:
            offset = free.take(size * PAGE)
            if offset is not None:
                new = range(offset // PAGE, offset // PAGE + size)
                held = {page for begin, count in taken for page in range(begin, begin + count)}
                assert not held & set(new)
                assert new[-1] < whole
                taken.append((new[0], size))
        elif taken:
            begin, count = taken.pop((action + size) % len(taken))
            free.give(begin * PAGE, count * PAGE)
        assert free.free == (whole - sum(count for _, count in taken)) * PAGE
    for begin, count in taken:
        free.give(begin * PAGE, count * PAGE)
    assert free.take(whole * PAGE) == 0
