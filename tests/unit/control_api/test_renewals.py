"""Heartbeats that are written together: which ones, when, and what each of them is told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy.exc import SQLAlchemyError

from support.hand_clock import HandClock
from tenfold_control_api import renewals
from tenfold_control_api.database import DatabaseAwayError
from tenfold_control_api.problems import ApiError
from tenfold_control_api.renewals import RenewalQueue, Renewals

if TYPE_CHECKING:
    from collections.abc import Sequence


def a_queue(most: int = 3) -> tuple[RenewalQueue, HandClock]:
    clock = HandClock()
    return RenewalQueue(clock, 0.5, most), clock


def test_one_that_comes_alone_does_not_wait() -> None:
    queue, clock = a_queue()
    assert queue.pause() is None
    assert queue.add("a") == 1
    assert queue.pause() == 0.0
    assert queue.take() == (1, ["a"])
    clock.now += 10.0
    assert (queue.add("b"), queue.pause()) == (2, 0.0)


def test_the_next_ones_wait_for_the_gap() -> None:
    queue, clock = a_queue()
    queue.add("a")
    queue.take()
    assert (queue.add("b"), queue.add("c")) == (2, 2)
    assert queue.pause() == 0.5
    clock.now += 0.375
    assert queue.pause() == 0.125
    clock.now += 1.0
    assert queue.pause() == 0.0
    assert queue.take() == (2, ["b", "c"])
    assert queue.pause() is None


def test_a_clock_that_is_set_back_holds_nothing_up() -> None:
    queue, clock = a_queue()
    queue.add("a")
    queue.take()
    queue.add("b")
    clock.now -= 100.0
    assert queue.pause() == 0.5


def test_a_lease_waits_once() -> None:
    queue, _ = a_queue()
    assert [queue.add(lease) for lease in "abab"] == [1, 1, 1, 1]
    assert queue.take() == (1, ["a", "b"])
    # what is being written may have been decided already
    assert queue.add("a") == 2


def test_a_batch_is_bounded_and_the_numbers_stay_true() -> None:
    queue, _ = a_queue(most=2)
    told = {lease: queue.add(lease) for lease in "abcde"}
    assert told == {"a": 1, "b": 1, "c": 2, "d": 2, "e": 3}
    assert queue.take() == (1, ["a", "b"])
    assert (queue.add("f"), queue.add("g"), queue.add("d")) == (3, 4, 2)
    assert [queue.take() for _ in range(3)] == [(2, ["c", "d"]), (3, ["e", "f"]), (4, ["g"])]


class Store:
    """Counts renewals of `live` leases, each statement once `gate` is open; `held` ones only by themselves."""

    def __init__(self, *live: str) -> None:
        self.live, self.held = set(live), set[str]()
        self.batches: list[list[str]] = []
        self.alone: list[str] = []
        self.asked, self.gate = asyncio.Event(), asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def count_renewals(self, lease_ids: Sequence[str]) -> set[str]:
        self.batches.append(list(lease_ids))
        self.asked.set()
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self.live & set(lease_ids) - self.held

    async def count_renewal(self, lease_id: str) -> bool:
        self.alone.append(lease_id)
        return lease_id in self.live


async def all_of(*calls: Any) -> list[Any]:
    return list(await asyncio.gather(*calls, return_exceptions=True))


async def test_those_of_a_moment_are_one_statement_and_each_is_told_its_own_fate() -> None:
    store = Store("a", "b")
    store.held = {"b"}
    writer = Renewals(store, 0.02)

    told = await all_of(*(writer.renew(lease) for lease in ("a", "b", "ended", "a")))

    assert told == [True, True, False, True]
    assert store.batches == [["a", "b", "ended"]]
    assert store.alone == ["b", "ended"]


async def test_those_that_come_while_others_are_written_are_the_next_statement() -> None:
    store = Store("a", "b", "c")
    store.gate.clear()
    writer = Renewals(store, 0.02, HandClock())
    first = asyncio.create_task(writer.renew("a"))
    await store.asked.wait()
    later = [asyncio.create_task(writer.renew(lease)) for lease in ("b", "a", "c")]
    for _ in range(3):
        await asyncio.sleep(0)
    assert not first.done()
    store.gate.set()

    assert await all_of(first, *later) == [True] * 4
    assert store.batches == [["a"], ["b", "a", "c"]]
    assert writer._writing is None
    assert writer._batches == {}


async def test_a_database_that_is_away_fails_those_that_it_kept_waiting_and_no_later_one() -> None:
    store = Store("a", "b")
    store.error = DatabaseAwayError(OSError("connection refused"))
    writer = Renewals(store, 0.02)
    assert await all_of(writer.renew("a"), writer.renew("b")) == [store.error, store.error]
    store.error = None
    assert await writer.renew("a")


async def test_a_heartbeat_is_given_up_in_time_and_without_those_of_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store("a", "b")
    store.gate.clear()
    writer = Renewals(store, 0.02)
    with monkeypatch.context() as patch:
        patch.setattr(renewals, "STATEMENT_S", 0.0)
        given_up = asyncio.create_task(writer.renew("a"))
        with pytest.raises(SQLAlchemyError, match="a renewal was not written within 0 s"):
            await given_up
    gone, stays = asyncio.create_task(writer.renew("a")), asyncio.create_task(writer.renew("b"))
    await store.asked.wait()
    gone.cancel()
    store.gate.set()

    assert await stays
    assert gone.cancelled()


async def test_a_stop_ends_what_waits() -> None:
    store = Store("a", "b")
    store.gate.clear()
    writer = Renewals(store, 0.02)
    writing = asyncio.create_task(writer.renew("a"))
    await store.asked.wait()
    waiting = asyncio.create_task(writer.renew("b"))
    await asyncio.sleep(0)

    await writer.stop()

    for error in await all_of(writing, waiting):
        assert isinstance(error, ApiError)
        assert error.kind == "stopping"
    await writer.stop()
