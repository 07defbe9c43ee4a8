"""Who may begin another call while there are few places left."""

from __future__ import annotations

import re

import pytest

from tenfold_services.http2.shares import CallShares


def take(shares: CallShares, connection: object, host: str = "") -> int:
    """Begins calls until one is refused, which then is over; how many were let in."""
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
