"""How much memory ids take in their index at every size, and how much a call moves: by the rule of growth alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenfold_kernels.resources.index_growth import IndexGrowth, size_of

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Bytes of an id in the row, and what an id may cost beyond its weights and slots: less than the 24 that are promised.
KEY, MOST = 8, 20.0


def filled(batch: int, most: int) -> Iterator[tuple[IndexGrowth, int, int]]:
    """An index into which batches of new ids come, as IdMap calls it: how many there are, and slots moved for these."""
    growth, ids = IndexGrowth(), 0
    while ids + batch <= most:
        moved = go_on(growth, batch)
        ids += batch
        slots = growth.slots_for(ids)
        if slots > growth.slots:
            moved += go_on(growth, size_of(growth.old_slots))
            growth.begin(slots)
            moved += go_on(growth, batch)
        if growth.is_late(ids):
            moved += go_on(growth, size_of(growth.old_slots))
        yield growth, ids, moved


def go_on(growth: IndexGrowth, keys: int) -> int:
    if not growth.old_slots:
        return 0
    before, last = growth.moved, growth.next(keys)
    growth.go_on(last)
    return last - before


@pytest.mark.parametrize("batch", [20_000, 100_000])
def test_an_id_takes_less_than_24_bytes_at_every_size(batch: int) -> None:
    worst = max(KEY + growth.nbytes / ids for growth, ids, _ in filled(batch, 200_000_000) if ids >= 1_000_000)

    assert 17 < worst < MOST


@pytest.mark.parametrize("batch", [100, 4096])
def test_a_call_moves_a_few_slots_for_each_of_its_keys(batch: int) -> None:
    for _, ids, moved in filled(batch, 2000 * batch):
        # small ones are moved at once
        assert moved <= 16 * batch + 512 or ids < 100 * batch


def test_the_old_index_is_moved_before_it_is_full() -> None:
    for growth, ids, _ in filled(1000, 3_000_000):
        assert not growth.old_slots or ids <= 0.76 * growth.old_slots
        assert 8 * ids <= 5 * growth.slots


def test_an_index_without_an_old_one_counts_whole() -> None:
    growth = IndexGrowth()
    assert growth.nbytes == 4 * growth.slots
    growth.begin(4 * growth.slots)
    assert (growth.old_slots, growth.nbytes) == (16, 4 * 16)

    growth.go_on(8)
    assert growth.nbytes == 4 * (8 * 4 + 8)
    assert growth.go_on(size_of(16))
    assert growth.nbytes == 4 * 64
