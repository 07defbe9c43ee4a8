"""Waiting for a change by events: what is met at once, later, never, or refused because the service stops."""

from __future__ import annotations

import asyncio

import pytest

from tenfold_control_api.problems import ApiError
from tenfold_control_api.watch import Watch


async def test_what_holds_already_does_not_wait() -> None:
    assert await Watch().until(lambda: True, 30)


async def test_it_looks_again_at_each_change_until_it_holds() -> None:
    watch, looks = Watch(), 0

    def third() -> bool:
        nonlocal looks
        looks += 1
        return looks == 3

    waiting = asyncio.create_task(watch.until(third, 30))
    for expected in (1, 2):
        await asyncio.sleep(0)
        assert (looks, watch.waiting) == (expected, 1)
        watch.notify()
    assert await waiting
    assert watch.waiting == 0


async def test_a_change_during_the_look_is_not_missed() -> None:
    watch, looks = Watch(), 0

    def changes_once() -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            watch.notify()
        return looks == 2

    assert await watch.until(changes_once, 30)


async def test_the_end_of_the_time_looks_once_more() -> None:
    watch, holds = Watch(), False
    assert not await watch.until(lambda: holds, 0)
    waiting = asyncio.create_task(watch.until(lambda: holds, 0.001))
    await asyncio.sleep(0)
    holds = True
    assert await waiting


async def test_a_service_that_stops_refuses_those_who_wait_and_those_who_come() -> None:
    watch = Watch()
    waiting = asyncio.create_task(watch.until(lambda: False, 30))
    await asyncio.sleep(0)
    watch.close()
    for call in (waiting, watch.until(lambda: True, 30)):
        with pytest.raises(ApiError, match="stopping"):
            await call
    assert watch.waiting == 0


def test_it_counts_how_often_it_happened() -> None:
    watch = Watch()
    counts = [watch.count]
    for happens in (watch.notify, watch.notify, watch.close):
        happens()
        counts.append(watch.count)
    assert counts == [0, 1, 2, 3]


async def test_who_waits_for_more_is_woken_by_the_next_and_not_by_an_earlier_one() -> None:
    watch = Watch()
    watch.notify()
    assert await watch.after(0, 30)
    assert not await watch.after(1, 0)
    waiting = asyncio.create_task(watch.after(1, 30))
    await asyncio.sleep(0)
    assert not waiting.done()
    watch.notify()
    assert await waiting


def test_nobody_waits_for_or_holds_a_new_one() -> None:
    assert (Watch().waiting, Watch().holders) == (0, 0)
