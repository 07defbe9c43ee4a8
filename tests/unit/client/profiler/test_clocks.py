"""Clocks of hosts that agree, differ, are known from one side only, or contradict themselves."""

from __future__ import annotations

import random

from tenfold.profiler.clocks import Correction, Orders, corrections

A, B, C = "a", "b", "c"
US = 1000


def ordered(*events: tuple[str, int, str, int]) -> Orders:
    """(clock, time) came before (clock, time). Microseconds."""
    orders = Orders()
    for first, before, then, after in events:
        orders.add(first, then, before * US, after * US)
    return orders


def test_clocks_that_contradict_nothing_stay_as_they_are() -> None:
    found = corrections(ordered((A, 100, B, 130), (B, 140, A, 150)), A)

    assert found == {A: Correction(0, 0), B: Correction(0, 30 * US)}


def test_a_clock_that_is_ahead_is_put_in_the_middle_of_what_is_possible() -> None:
    # b is 1000 ahead: it seems to receive 1020 later, and to answer before it was asked
    found = corrections(ordered((A, 100, B, 1120), (B, 1130, A, 160)), A)

    # -1020 .. -970
    assert found[B] == Correction(-995 * US, 25 * US)


def test_a_clock_is_known_by_way_of_another_one() -> None:
    events = [(A, 0, B, 510), (B, 520, A, 30), (B, 0, C, 510), (C, 520, B, 30)]

    found = corrections(ordered(*events), A)

    assert abs(found[C].offset - -1000 * US) <= (found[C].error or 0)
    assert found[C].error == 20 * US


def test_one_direction_alone_bounds_from_one_side() -> None:
    assert corrections(ordered((A, 100, B, 130)), A)[B] == Correction(0, None)
    assert corrections(ordered((A, 100, B, 60)), A)[B] == Correction(40 * US, None)


def test_a_clock_that_nobody_heard_of_stays() -> None:
    found = corrections(ordered((B, 1, C, 2), (C, 3, B, 4)), A)

    assert found[B] == found[C] == Correction(0, None)


def test_a_clock_that_was_set_meanwhile_is_not_believed() -> None:
    assert corrections(ordered((A, 100, B, 50), (B, 60, A, 40)), A) == {A: Correction(0, None), B: Correction(0, None)}


def test_a_clock_that_counts_microseconds_is_no_contradiction() -> None:
    orders = Orders({(A, B): -900, (B, A): 5_000})

    assert corrections(orders, A)[B].offset == 0


def test_the_truth_is_within_the_error() -> None:
    numbers = random.Random(7)
    for _ in range(50):
        shifts = {A: 0, B: numbers.randint(-5000, 5000), C: numbers.randint(-5000, 5000)}
        events = []
        for _ in range(20):
            first, then = numbers.sample([A, B, C], 2)
            sent, took = numbers.randint(0, 10_000), numbers.randint(1, 300)
            events.append((first, sent + shifts[first], then, sent + took + shifts[then]))
        found = corrections(ordered(*events), A)

        for clock, shift in shifts.items():
            error = found[clock].error
            assert error is None or abs(found[clock].offset + shift * US) <= error + 1
        for first, before, then, after in events:
            assert before * US + found[first].offset <= after * US + found[then].offset + 2 * US
