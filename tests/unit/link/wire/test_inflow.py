"""Bytes that come in, of a link, a peer and all: counted together, up to a limit that is named."""

from __future__ import annotations

from tenfold_link.wire.inflow import Inflow


def test_up_to_the_limit_and_no_further() -> None:
    flow = Inflow("the peer", 10, "TENFOLD_X")
    assert flow.take(10) is None
    refusal = flow.take(1)
    assert refusal is not None
    assert "1 more bytes would come in over links of the peer, 10 are being worked on" in refusal.message
    assert "TENFOLD_X" in refusal.message
    assert flow.taken == 10
    flow.give(4)
    assert flow.take(4) is None


def test_what_the_whole_refuses_is_not_counted() -> None:
    whole = Inflow("all", 10, "TENFOLD_ALL")
    first, second = Inflow("first", 8, "F", whole), Inflow("second", 8, "S", whole)
    assert first.take(7) is None
    assert whole.taken == 7
    refusal = second.take(4)
    assert refusal is not None
    assert "TENFOLD_ALL" in refusal.message
    assert (second.taken, whole.taken) == (0, 7)
    refusal = first.take(2)
    assert refusal is not None
    assert "links of first" in refusal.message
    assert (first.taken, whole.taken) == (7, 7)
    first.give(7)
    assert (first.taken, whole.taken) == (0, 0)


def test_no_more_is_given_back_than_was_taken() -> None:
    whole = Inflow("all", 10, "A")
    first, second = Inflow("first", 8, "F", whole), Inflow("second", 8, "S", whole)
    assert first.take(3) is None
    assert second.take(2) is None
    first.give(5)
    assert (first.taken, second.taken, whole.taken) == (0, 2, 2)
