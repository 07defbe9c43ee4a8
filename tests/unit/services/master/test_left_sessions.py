"""A task that was out of reach when sessions closed is asked again, until it has forgotten them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tenfold_core import errors
from tenfold_services.master.left_sessions import LeftSessions
from tenfold_services.master.limits import DEFAULT_MASTER_LIMITS

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
LIMITS = replace(DEFAULT_MASTER_LIMITS, last_retry_seconds=0.001, cleanup_seconds=0.002, sessions=3)


class Ps:
    """Cannot be reached until so many calls were made; has sessions to forget."""

    def __init__(self, unreachable: int, error: errors.OpError | None = None) -> None:
        self.calls, self._unreachable, self._error = 0, unreachable, error
        self.forgotten: list[str] = []
        self.asked = asyncio.Event()

    async def delete_worker_session(self, handle: str) -> None:
        self.calls += 1
        self.asked.set()
        if self.calls <= self._unreachable:
            raise errors.unavailable(f"{PS} cannot be reached.")
        if self._error is not None:
            raise self._error
        self.forgotten.append(handle)


def left_sessions(ps: Ps, tasks: list[str] | None = None, finished: Any = None, **limits: Any) -> LeftSessions:
    workers = SimpleNamespace(worker={PS: ps}.__getitem__, tasks=lambda: [PS, WORKER] if tasks is None else tasks)
    env = SimpleNamespace(task=WORKER, workers=workers, finished=finished)
    return LeftSessions(cast("Any", env), replace(LIMITS, **limits))


async def settled(left: LeftSessions) -> None:
    async with asyncio.timeout(30):
        await left._loops.settled()
    assert not len(left)


async def test_sessions_are_forgotten_once_the_task_can_be_reached() -> None:
    ps = Ps(unreachable=3)
    left = left_sessions(ps)

    left.add("a", [PS])
    left.add("b", [PS])
    assert len(left) == 1
    await settled(left)

    assert ps.forgotten == ["a", "b"]


async def test_no_more_are_kept_than_a_master_may_have() -> None:
    ps = Ps(unreachable=0)
    left = left_sessions(ps)

    for handle in "abcdef":
        left.add(handle, [PS])
    await settled(left)

    assert ps.forgotten == ["d", "e", "f"]


@pytest.mark.parametrize("how", ["it left the cluster", "it has finished", "it is away for too long"])
async def test_a_task_that_does_not_come_back_is_given_up(how: str) -> None:
    ps = Ps(unreachable=10**9)
    left = left_sessions(
        ps,
        tasks=[WORKER] if "left" in how else None,
        finished={PS} if "finished" in how else None,
        forget_seconds=0.01 if "away" in how else 3600.0,
    )

    left.add("a", [PS])
    await settled(left)

    assert not ps.forgotten
    assert bool(ps.calls) is ("away" in how)


async def test_an_answer_is_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    ps = Ps(unreachable=0, error=errors.internal("a bug"))
    left = left_sessions(ps)

    left.add("a", [PS])
    await settled(left)

    assert ps.calls == 1
    assert "a bug" in caplog.text


async def test_closing_ends_the_asking() -> None:
    ps = Ps(unreachable=10**9)
    left = left_sessions(ps)
    left.add("a", [PS])
    async with asyncio.timeout(30):
        await ps.asked.wait()

    await left.close()

    assert not len(left)
    left.add("b", [PS])
    assert not len(left)
