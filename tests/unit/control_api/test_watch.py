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
