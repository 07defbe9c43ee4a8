"""Tasks of one owner: failures are logged once, and the end of the owner ends them within its bound."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import pytest

from tenfold_core import errors
from tenfold_services.owned_tasks import OwnedTasks, in_time


async def fail(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (RuntimeError("no"), logging.ERROR),
        (TimeoutError(), logging.DEBUG),
        (errors.UnavailableError(None, None, "gone"), None),
    ],
)
async def test_a_failure_is_logged_by_its_kind(
    error: Exception, level: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "tenfold_services.owned_tasks")
    owned = OwnedTasks("session 1")

    await asyncio.wait([owned.spawn(fail(error), "the work")])
    await asyncio.sleep(0)  # the task's callbacks

    assert [record.levelno for record in caplog.records] == ([] if level is None else [level])
    assert all("session 1: the work failed" in record.getMessage() for record in caplog.records)
    assert len(owned) == 0


async def test_all_but_the_caller_are_cancelled_and_waited_for() -> None:
    owned = OwnedTasks("session 1")
    cleaned = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    async def end() -> None:
        await owned.cancel_all(30)
        assert cleaned.is_set()

    owned.spawn(work(), "the work")
    adopted = asyncio.create_task(work(), name="adopted")
    owned.adopt(adopted)
    await asyncio.sleep(0)
    await owned.spawn(end(), "the end")

    assert adopted.cancelled()
    assert len(owned) == 0


async def test_a_task_that_does_not_stop_is_told_and_left(caplog: pytest.LogCaptureFixture) -> None:
    owned, release = OwnedTasks("session 1"), asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()

    task = owned.spawn(stubborn(), "the work")
    await asyncio.sleep(0)
    await owned.cancel_all(0.001)

    assert "session 1: the work did not stop within 0.001 s" in caplog.text
    release.set()
    await task


async def test_settled_is_when_none_is_left_those_that_came_meanwhile_included() -> None:
    owned, came, release = OwnedTasks("session 1"), asyncio.Event(), asyncio.Event()
    ended: list[str] = []

    async def last() -> None:
        came.set()
        await release.wait()
        ended.append("last")

    async def first() -> None:
        owned.spawn(last(), "last")
        ended.append("first")

    await owned.settled()
    task = owned.spawn(first(), "first")
    assert (task.get_name(), len(owned)) == ("first", 1)
    settled = asyncio.create_task(owned.settled(60.0))
    await came.wait()
    assert not settled.done()
    release.set()
    await settled
    assert (ended, len(owned)) == (["first", "last"], 0)


async def test_what_does_not_settle_is_left_as_it_is() -> None:
    owned = OwnedTasks("session 1")
    task = owned.spawn(asyncio.Event().wait(), "never")
    await owned.settled(0.001)
    assert (task.done(), len(owned)) == (False, 1)
    await owned.cancel_all(30)
    assert task.cancelled()
    await owned.cancel_all(30)


async def test_what_is_cancelled_before_it_begins_calls_nothing() -> None:
    called: list[int] = []

    async def call() -> int:
        called.append(1)
        return 1

    asked = asyncio.create_task(in_time(1.0, call, 0))
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked

    assert called == []
    assert await in_time(1.0, call, 0) == 1
