"""The steps of one session that run on their callers' threads: which run now, and why they have to end.

The base of caller_steps.SessionSteps. Each kind of step (caller_steps.py, caller_cluster_steps.py,
caller_waiting_steps.py) begins and ends here.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from typing import TYPE_CHECKING, Protocol

from tenfold_core import errors
from tenfold_services.master.step_state import from_task

if TYPE_CHECKING:
    from tenfold_services.worker.part_run import PartRun

_log = logging.getLogger("tenfold.master")

#: Numbers of steps, each unlike those of all other masters. Its own generator: programs seed the global one alike.
_step_ids = random.Random()


def new_step_id() -> int:
    """The number of a step that runs on its caller's thread. Any thread."""
    return _step_ids.getrandbits(56) or 1


class StepThatMayWait(Protocol):
    @property
    def part_run(self) -> PartRun | None:
        """Our own part of the step, if it has one."""
        ...

    def interrupt(self) -> None:
        """The session ends, and `RunningSteps.stop` says why. On the event loop's thread."""
        ...


class RunningSteps:
    """Of one session. Made on the event loop's thread; `begin` and `over` on any."""

    def __init__(self, task: str, seconds: float | None, handle: str = "") -> None:
        self.task, self.handle = task, handle
        #: The session's own deadline for each step.
        self.seconds = seconds
        #: Steps that began here. Any thread adds to it; counts as StepCount does.
        self.steps = 0
        #: Numbers of the steps that run now. Changed by single operations only, which are atomic.
        self.running: set[int] = set()
        #: Why all steps have to end; empty while they need not.
        self.stop: list[errors.OpError] = []
        #: `idle` waits for `running` to be empty.
        self.watched = False
        #: Steps that run now and may wait: across tasks, or for kernels.
        self.linked: set[StepThatMayWait] = set()
        self._numbers = itertools.count()
        self._loop = asyncio.get_running_loop()
        self._idle = asyncio.Event()

    def begin(self) -> int:
        """A step begins; the number by which it is over. Any thread."""
        number = next(self._numbers)
        self.running.add(number)
        return number

    def over(self, number: int) -> None:
        """The step has ended. Any thread."""
        self.running.discard(number)
        if self.watched:
            self.tell_watcher()

    def failure(self, error: errors.OpError) -> errors.OpError:
        """A step's error as the client sees it."""
        if self.stop:
            why: errors.OpError = self.stop[0]
            return errors.from_code(why.code, why.message)
        if error.code == errors.INTERNAL:
            _log.error("A step on %s: %s", self.task, error.message, exc_info=error.__cause__ or error)
        return from_task(error, self.task)

    def unexpected(self, error: Exception) -> errors.OpError:
        text = f"{self.task}: {type(error).__name__}: {error}"
        return self.failure(errors.internal(text))

    async def idle(self) -> None:
        """Returns once nothing runs; once no step begins any more."""
        self.watched = True
        while self.running:
            self._idle.clear()
            if self.running:
                await self._idle.wait()

    def tell_watcher(self) -> None:
        """A step is over; any thread."""
        try:
            self._loop.call_soon_threadsafe(self._idle.set)
        except RuntimeError:
            return  # the loop has ended, and `idle` with it
