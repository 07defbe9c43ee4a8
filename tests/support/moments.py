"""Moments of an event loop that are not announced, as events: a task waits, a method was called.

Instead of yielding to the loop until something is so, a test names the call that makes it so. See also support/links.py
for the end of a link.
"""

from __future__ import annotations

import asyncio
import gc
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

_T = TypeVar("_T")

#: Seconds for anything to happen that should.
PATIENCE = 30.0


async def started(coroutine: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
    """A task that has run as far as it comes by itself: it waits for something, or has ended."""
    begun = asyncio.Event()

    async def run() -> _T:
        begun.set()  # who waits for this goes on after the task's turn, not within it
        return await coroutine

    task = asyncio.create_task(run())
    await begun.wait()
    return task


async def until(condition: Callable[[], Any], *calls: tuple[Any, str]) -> None:
    """Waits until `condition()` is true: looks now, and after each call of these (object, plain method on the loop).

    Raises TimeoutError after PATIENCE seconds, also when it came true by something else.
    """
    called = asyncio.Event()

    def watched(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            try:
                return method(*arguments, **options)
            finally:
                called.set()

        return call

    with ExitStack() as stack:
        for owner, name in calls:
            stack.enter_context(mock.patch.object(owner, name, watched(getattr(owner, name))))
        async with asyncio.timeout(PATIENCE):
            while not condition():
                called.clear()
                await called.wait()


async def longest_turn(work: asyncio.Future[Any]) -> float:
    """Seconds that the loop's thread computed in one turn at most, until `work` is done. What a busy machine adds does
    not count, and not the garbage of the tests before."""
    gc.collect()
    gc.disable()
    try:
        return await _longest_turn(work)
    finally:
        gc.enable()


async def _longest_turn(work: asyncio.Future[Any]) -> float:
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    longest, before = 0.0, time.thread_time()

    def turn() -> None:
        nonlocal longest, before
        now = time.thread_time()
        longest, before = max(longest, now - before), now
        if work.done():
            over.set()
        else:
            loop.call_soon(turn)

    loop.call_soon(turn)
    await over.wait()
    await work
    return longest
