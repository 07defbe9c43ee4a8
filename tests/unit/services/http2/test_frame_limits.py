"""Frames that only cost work: a burst is taken, then a rate; closed streams are remembered up to a number."""

from __future__ import annotations

import pytest

from support.hand_clock import HandClock
from tenfold_services.http2.frame_limits import ClosedStreams, FrameQuota
from tenfold_services.http2.frame_types import Code, ConnectionFault


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


def test_the_oldest_closed_stream_is_forgotten_first() -> None:
    closed = ClosedStreams(2)
    for number in (1, 3, 5):
        closed.add(number)
    assert [number in closed for number in (1, 3, 5)] == [False, True, True]
    closed.discard(3)
    closed.discard(3)
    assert 3 not in closed
