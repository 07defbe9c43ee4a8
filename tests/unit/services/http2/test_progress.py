"""Whether a connection moves as it should, by hand-made looks at it."""

from __future__ import annotations

from tenfold_services.http2.progress import Progress


def looks(progress: Progress, count: int, rate: float) -> list[bool]:
    """So many looks, one each second, while so many bytes move a second."""
    return [progress.stalled(True, int(rate * second), 1.0) for second in range(count)]


def test_nothing_moves() -> None:
    assert looks(Progress(3.0, 10.0), 4, 0) == [False, False, True, True]


def test_a_byte_now_and_then_is_not_enough() -> None:
    assert True in looks(Progress(5.0, 10.0), 30, 1)


def test_what_moves_fast_enough_goes_on_for_ever() -> None:
    assert True not in looks(Progress(5.0, 10.0), 1000, 10)


def test_what_went_fast_may_rest_no_longer_than_others() -> None:
    progress = Progress(3.0, 10.0)
    assert not progress.stalled(True, 1_000_000, 1.0)
    assert [progress.stalled(True, 1_000_000, 1.0) for _ in range(3)] == [False, False, True]


def test_time_in_which_nothing_is_due_does_not_count() -> None:
    progress = Progress(3.0, 10.0)
    assert not any(progress.stalled(due, 0, 1.0) for due in (True, True, False) * 10)


def test_a_total_that_shrinks_is_no_progress() -> None:
    progress = Progress(3.0, 1.0)
    progress.stalled(True, 100, 1.0)
    assert [progress.stalled(True, total, 1.0) for total in (50, 100, 100)] == [False, False, True]
