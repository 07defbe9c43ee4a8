"""What one peer may use up: frames that only cost work, time in which nothing moves, and places for calls."""

from __future__ import annotations

import re

import pytest

from support.hand_clock import HandClock
from tenfold_services.http2.frame_types import Code, ConnectionFault
from tenfold_services.http2.peer_limits import CallShares, FrameQuota, Progress


def test_a_burst_is_taken_and_no_more() -> None:
    quota = FrameQuota(3, 1.0, HandClock())
    quota.spend(2)
    quota.spend()
    with pytest.raises(ConnectionFault) as caught:
        quota.spend()
    assert caught.value.code == Code.ENHANCE_YOUR_CALM


def test_time_gives_back_what_was_used_up_and_not_more_than_the_burst() -> None:
    clock = HandClock()
    quota = FrameQuota(10, 2.0, clock)
    quota.spend(10)
    clock.now += 1
    quota.spend(2)
    with pytest.raises(ConnectionFault):
        quota.spend(1)
    clock.now += 1000
    for _ in range(10):
        quota.spend()
    with pytest.raises(ConnectionFault):
        quota.spend(2)


def looks(progress: Progress, count: int, rate: float) -> list[bool]:
    """So many looks, one each second, while so many bytes move a second."""
    return [progress.stalled(True, int(rate * second), 1.0) for second in range(count)]


def test_nothing_moves() -> None:
    assert looks(Progress(3.0, 10.0), 4, 0) == [False, False, True, True]


def test_a_byte_now_and_then_is_not_enough() -> None:
    assert any(looks(Progress(5.0, 10.0), 30, 1))


def test_what_moves_fast_enough_goes_on_for_ever() -> None:
    assert not any(looks(Progress(5.0, 10.0), 1000, 10))


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


def take(shares: CallShares, connection: object, host: str = "") -> int:
    """Begins calls until one is refused, which then is over; how many were accepted."""
    count = 0
    while shares.begin(connection, host) is None:
        count += 1
    shares.end(connection, host)
    return count


def test_the_more_there_are_the_less_one_gets_and_the_next_finds_some() -> None:
    shares = CallShares(1024)
    assert [take(shares, connection) for connection in "abcd"] == [512, 256, 128, 64]


def test_a_host_with_many_connections_gets_two_thirds() -> None:
    shares = CallShares(900)
    assert sum(take(shares, number, "10.0.0.1") for number in range(100)) == 600
    assert take(shares, "another", "10.0.0.2") == 150


def test_what_is_over_is_free_again() -> None:
    shares = CallShares(4)
    for _ in range(100):
        assert shares.begin("a", "h") is None
        shares.end("a", "h")
    assert shares.total == 0
    assert take(shares, "b") == 2


@pytest.mark.parametrize(
    ("most", "others", "text"),
    [(1, 1, r"works on 1 calls \(TENFOLD_HTTP2_CALLS\)"), (4, 0, "This connection has 2 of 4 calls .* the 2 that")],
)
def test_a_refusal_says_how_many_there_are_and_where_that_is_set(most: int, others: int, text: str) -> None:
    shares = CallShares(most)
    for number in range(others):
        shares.begin(number, "")
    take(shares, "a")
    refused = shares.begin("a", "")
    assert refused is not None
    assert re.search(text, refused)


def test_one_place_is_for_anyone() -> None:
    assert take(CallShares(1), "a") == 1


def test_the_refusal_of_a_host_names_it() -> None:
    shares = CallShares(9)
    for number in range(9):
        refused = shares.begin(number, "10.0.0.1")
    assert refused is not None
    assert "The host 10.0.0.1 has" in refused


def test_what_is_spent_while_something_is_left_asks_for_no_time() -> None:
    clock, asked = HandClock(), []

    def now() -> float:
        asked.append(clock.now)
        return clock.now

    quota = FrameQuota(2, 1.0, now, "of a kind")
    quota.spend()
    quota.spend()
    assert len(asked) == 1
    with pytest.raises(ConnectionFault, match=r"^too many frames of a kind$"):
        quota.spend()
    clock.now += 1
    with pytest.raises(ConnectionFault):
        quota.spend()  # what was too much is owed
    clock.now += 2
    quota.spend()


def test_a_quota_says_by_itself_that_frames_ask_for_nothing() -> None:
    with pytest.raises(ConnectionFault, match=r"^too many frames that ask for nothing$"):
        FrameQuota(0, 0.0, HandClock()).spend()


def test_bytes_make_up_for_time_as_the_rate_says() -> None:
    progress = Progress(10.0, 4.0)
    assert not progress.stalled(True, 0, 9.0)
    assert not progress.stalled(True, 8, 2.0)  # two seconds and as many made up for: one is left
    assert not progress.stalled(True, 8, 0.5)
    assert progress.stalled(True, 8, 0.5)
    assert not progress.stalled(False, 8, 5.0)
    assert not progress.stalled(True, 8, 9.5)
    assert progress.stalled(True, 8, 0.5)


@pytest.mark.parametrize(
    ("most", "own", "others", "text"),
    [
        (10, 5, 0, "This connection has 5 of 10 calls (TENFOLD_HTTP2_CALLS); the 5 that are left are for others."),
        (10, 3, 5, "This connection has 3 of 10 calls (TENFOLD_HTTP2_CALLS); the 2 that are left are for others."),
        (3, 0, 3, "The server works on 3 calls (TENFOLD_HTTP2_CALLS)."),
        (10, 4, 0, None),
        (10, 3, 3, None),
    ],
)
def test_a_connection_has_as_many_as_are_free(most: int, own: int, others: int, text: str | None) -> None:
    shares = CallShares(most)
    for number in range(others):
        shares.begin(number, "")
    for _ in range(own):
        shares.begin("own", "")
    found = shares.begin("own", "")
    assert found == (None if text is None else f"Concurrent RPC limit exceeded! {text}")
    assert shares.total == own + others + 1


@pytest.mark.parametrize(("of_host", "refused"), [(5, False), (6, True)])
def test_a_host_has_twice_as_many_as_are_free(of_host: int, refused: bool) -> None:
    shares = CallShares(of_host + 3)
    for number in range(of_host):
        shares.begin(number, "h")
    found = shares.begin("another", "h")
    assert found == (
        "Concurrent RPC limit exceeded! The host h has 6 of 9 calls (TENFOLD_HTTP2_CALLS); the 3 that are left are "
        "for others." if refused else None
    )  # fmt: skip
    assert shares.begin("of this machine", "") is None


def test_calls_that_are_over_leave_no_trace() -> None:
    shares = CallShares(9)
    for host in ("h", ""):
        for _ in range(2):
            shares.begin("a", host)
        shares.end("a", host)
        assert shares._counts["a"] == 1
        shares.end("a", host)
        assert not shares._counts
    assert shares.total == 0
