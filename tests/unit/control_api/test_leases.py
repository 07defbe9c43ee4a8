"""The lease table against a clock that the test moves."""

from __future__ import annotations

import heapq

import pytest

from support.hand_clock import HandClock
from tenfold_control_api.figures import FiguresReport, NewestFigures
from tenfold_control_api.leases import LeaseTable


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def table(clock: HandClock) -> LeaseTable:
    return LeaseTable(clock, stall=4.0)


def advance(table: LeaseTable, clock: HandClock, seconds: float) -> list[str]:
    """Moves time on in steps that are no stall, looking at each."""
    over: list[str] = []
    while seconds > 0:
        clock.now += min(2.0, seconds)
        seconds -= 2.0
        over = table.expired()
    return over


def test_a_lease_expires_after_its_time_to_live(table: LeaseTable, clock: HandClock) -> None:
    table.grant("a", 10.0)

    assert advance(table, clock, 9.9) == []
    assert table.next_look() == pytest.approx(0.1)
    assert advance(table, clock, 0.2) == ["a"]


def test_renewal_moves_the_deadline(table: LeaseTable, clock: HandClock) -> None:
    table.grant("a", 10.0)
    advance(table, clock, 8.0)

    assert table.renew("a")
    assert advance(table, clock, 8.0) == []
    assert table.age("a") == 8.0
    assert table.remaining("a") == 2.0


def test_an_expired_lease_is_told_again_until_it_is_ended(table: LeaseTable, clock: HandClock) -> None:
    table.grant("a", 1.0)
    clock.now += 2.0

    assert table.expired() == ["a"]
    assert table.expired() == ["a"]
    table.end("a")
    assert table.expired() == []
    assert not table.renew("a")


def test_order_of_expiry(table: LeaseTable, clock: HandClock) -> None:
    table.grant("slow", 2.0)
    table.grant("quick", 1.0)
    clock.now += 3.0

    assert table.expired() == ["quick", "slow"]


def test_time_in_which_the_service_stood_still_does_not_count(table: LeaseTable, clock: HandClock) -> None:
    table.grant("a", 10.0)
    clock.now += 600.0  # stopped, or the machine was suspended

    assert table.expired() == []
    assert table.remaining("a") == 10.0


def test_the_next_look_is_regular_even_without_leases(table: LeaseTable) -> None:
    assert table.next_look() == 2.0


def test_a_counter_that_moved_is_a_renewal_by_another_replica(table: LeaseTable, clock: HandClock) -> None:
    table.observe("a", 10.0, 5)
    advance(table, clock, 8.0)
    table.observe("a", 10.0, 5)
    assert table.remaining("a") == 2.0

    table.observe("a", 10.0, 6)
    assert table.remaining("a") == 10.0
    assert table.renewals("a") == 6


def test_many_renewals_do_not_grow_the_heap(table: LeaseTable) -> None:
    table.grant("a", 10.0)
    for _ in range(10_000):
        table.renew("a")

    assert len(table._heap) < 200


def test_figures_live_as_long_as_the_lease(table: LeaseTable) -> None:
    table.grant("a", 10.0)
    newest = NewestFigures(FiguresReport(steps=3), 1.0)
    table.note("a", newest)
    table.note("unknown", newest)

    assert table.figures("a") is newest
    assert table.figures("unknown") is None
    assert table.figures(None) is None
    table.end("a")
    assert table.figures("a") is None


def test_figures_are_unknown_while_the_task_renews_at_another_replica(table: LeaseTable, clock: HandClock) -> None:
    table.grant("a", 10.0)
    table.note("a", NewestFigures(FiguresReport(), 1.0))

    clock.now += 9.0
    table.observe("a", 10.0, 5)
    assert table.figures("a") is not None
    clock.now += 2.0
    assert table.remaining("a") == 8.0
    assert table.figures("a") is None


def test_a_lease_that_was_renewed_twice_at_one_time_ends_once(table: LeaseTable, clock: HandClock) -> None:
    table.grant("a", 10.0)
    table.renew("a")

    assert advance(table, clock, 10.0) == ["a"]


def test_a_lease_that_was_renewed_after_a_stall_gets_no_more_than_its_time(table: LeaseTable, clock: HandClock) -> None:
    table.grant("waited", 10.0)
    table.grant("renewed", 10.0)
    table.expired()
    clock.now += 60.0  # the service stood still; the first that it does is to read what has come meanwhile
    table.renew("renewed")

    assert table.expired() == []
    assert table.remaining("waited") == 10.0
    assert table.remaining("renewed") == 10.0


def test_the_heap_is_in_order_after_it_was_cleaned(table: LeaseTable, clock: HandClock) -> None:
    table.grant("slow", 100.0)
    table.grant("quick", 1.0)
    for _ in range(200):
        table.renew("slow")
    clock.now += 2.0

    assert table.expired() == ["quick"]


def test_the_heap_is_cleaned_once_for_several_renewals_of_each_lease(
    table: LeaseTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cleaning looks at every lease, so that it must not come with each renewal."""
    cleanings: list[int] = []
    heapify = heapq.heapify
    monkeypatch.setattr(heapq, "heapify", lambda heap: (cleanings.append(len(heap)), heapify(heap))[1])
    names = [f"lease {number}" for number in range(100)]
    for name in names:
        table.grant(name, 10.0)

    for _ in range(30):
        for name in names:
            table.renew(name)

    assert 1 <= len(cleanings) <= 30 / 4
    assert set(cleanings) == {100}
    assert len(table._heap) < 12 * 100


def test_figures_are_shown_for_a_whole_time_to_live(table: LeaseTable, clock: HandClock) -> None:
    table.grant("a", 10.0)
    table.note("a", NewestFigures(FiguresReport(), 1.0))

    clock.now += 10.0
    assert table.figures("a") is not None
    clock.now += 0.1
    assert table.figures("a") is None


@pytest.mark.parametrize(("gap", "over"), [(4.0, ["a"]), (4.5, [])])
def test_a_gap_that_is_just_a_stall_is_none(table: LeaseTable, clock: HandClock, gap: float, over: list[str]) -> None:
    table.grant("a", 3.0)
    clock.now += gap

    assert table.expired() == over
