"""When a dead task is started again: pauses that double, a bound, a new row after a minute of running."""

from __future__ import annotations

from support.hand_clock import HandClock
from tenfold.cli.restarts import FIRST_PAUSE_S, LONGEST_PAUSE_S, STEADY_S, Restarts


def test_pauses_double_up_to_a_bound_and_end() -> None:
    clock = HandClock()
    restarts = Restarts(7, clock)
    pauses = []
    restarts.started("ps/0")
    while (again := restarts.died("ps/0")) is not None:
        pauses.append(again.seconds)
        assert restarts.due() == []
        assert restarts.seconds == again.seconds
        clock.now += again.seconds
        assert restarts.due() == ["ps/0"]
        restarts.started("ps/0")

    assert pauses == [FIRST_PAUSE_S, 2, 4, 8, 16, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    assert (restarts.due(), restarts.seconds) == ([], None)


def test_a_very_long_row_has_the_longest_pause() -> None:
    clock = HandClock()
    restarts = Restarts(1100, clock)
    for _ in range(1100):
        restarts.started("ps/0")
        again = restarts.died("ps/0")

    assert again is not None
    assert again.seconds == LONGEST_PAUSE_S


def test_one_that_ran_for_long_begins_anew() -> None:
    clock = HandClock()
    restarts = Restarts(1, clock)
    restarts.started("ps/0")
    assert restarts.died("ps/0") is not None
    restarts.started("ps/0")
    clock.now += STEADY_S

    again = restarts.died("ps/0")

    assert again is not None
    assert (again.seconds, again.number) == (FIRST_PAUSE_S, 1)


def test_each_task_counts_for_itself_and_the_first_is_due_first() -> None:
    clock = HandClock()
    restarts = Restarts(2, clock)
    for name in ("ps/0", "worker/0"):
        restarts.started(name)
    restarts.died("ps/0")
    clock.now += 0.5
    restarts.died("worker/0")

    assert restarts.seconds == FIRST_PAUSE_S - 0.5
    clock.now += 0.5
    assert restarts.due() == ["ps/0"]


def test_none_at_all() -> None:
    restarts = Restarts(0, HandClock())
    restarts.started("ps/0")
    assert restarts.died("ps/0") is None
