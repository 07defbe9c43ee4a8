"""The asyncio tasks of one owner: each is named, its failure is logged, and none outlives `cancel_all`.

Used by the master and its sessions, peers.py and cluster.py. `in_time` is for what may be left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, TypeVar

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

T = TypeVar("T")

_log = logging.getLogger(__name__)


async def in_time(seconds: float, call: Callable[[], Awaitable[T]], otherwise: T) -> T:
    """What `call` gives; `otherwise` where it raises an OpError, or takes longer. Cancelled before it begins, it calls
    nothing."""
    try:
        async with asyncio.timeout(seconds):
            return await call()
    except (errors.OpError, TimeoutError):
        return otherwise


class OwnedTasks:
    """Called from the event loop's thread only."""

    def __init__(self, owner: str) -> None:
        """`owner` is what the log calls it."""
        self._owner = owner
        #: Started or adopted, and not ended.
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name=name)
        self.adopt(task)
        return task

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """Takes over a task that another component started."""
        self._tasks.add(task)
        task.add_done_callback(self._on_end)

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is None or isinstance(error, errors.OpError):
            # A task that is awaited raises there; one that is not may fail with an OpError, e.g. a lost peer.
            return
        level = logging.DEBUG if isinstance(error, TimeoutError) else logging.ERROR
        _log.log(level, "%s: %s failed: %r", self._owner, task.get_name(), error)

    async def all_of(self, calls: Mapping[str, Coroutine[Any, Any, Any]], what: str, seconds: float) -> list[str]:
        """Makes the calls, by the task that is called, at once. Raises the first error. Returns the tasks that did not
        answer in time; no call goes on afterwards.
        """
        if not calls:
            return []
        running = {task: self.spawn(call, f"{what}:{task}") for task, call in calls.items()}
        try:
            _, late = await asyncio.wait(running.values(), timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
            for call in running.values():
                if call.done():
                    call.result()
            return [task for task, call in running.items() if call in late]
        finally:
            for call in running.values():
                call.cancel()
            await asyncio.gather(*running.values(), return_exceptions=True)

    async def settled(self, seconds: float | None = None) -> None:
        """Returns once no task is left, or after so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._tasks:
                    await asyncio.wait(self._tasks)

    async def cancel_all(self, seconds: float) -> None:
        """Cancels every task but the caller and waits for their end, at most `seconds`."""
        left = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        if left:
            _, stuck = await asyncio.wait(left, timeout=seconds)
            for task in stuck:
                _log.warning("%s: %s did not stop within %g s", self._owner, task.get_name(), seconds)
