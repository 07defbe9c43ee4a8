"""Producers whose link has ended, and the runs that what they pushed over it may never reach.

A tensor is pushed unasked and unanswered, so its producer, done by then, does not hear that it was lost with the link.
A run that waits for it when the link ends is ended at once; one that waits for it later, because it still computes or
begins only then, when it should have come over another link. Used by graph_manager.py.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..interfaces import TaskName
    from .graph_run import GraphRun

#: Tasks that are remembered; peers name them.
_TASKS = 1024


class LostProducers:
    """On the event loop's thread only."""

    def __init__(self, seconds: float) -> None:
        """Runs that begin so long after a link's end are looked at, and what is late by as much will not come."""
        self._seconds = seconds
        #: By task, oldest first: until when its link's end counts, and why it ended.
        self.recent: dict[TaskName, tuple[float, errors.OpError]] = {}

    def lost(self, task: TaskName, error: errors.OpError, runs: Iterable[GraphRun]) -> None:
        """The link over which `task` pushed has ended with `error`. `runs` are those under way."""
        self.recent.pop(task, None)
        while len(self.recent) >= _TASKS:
            del self.recent[next(iter(self.recent))]
        self.recent[task] = time.monotonic() + self._seconds, error
        for run in list(runs):
            if _expects(run, task):
                self._look(run, task, error)

    def began(self, run: GraphRun) -> None:
        """A run has begun, and waits for something."""
        now = time.monotonic()
        for task, (until, error) in list(self.recent.items()):
            if until < now:
                del self.recent[task]
            elif _expects(run, task):
                self._look_later(run, task, error)

    def _look(self, run: GraphRun, task: TaskName, error: errors.OpError) -> None:
        if run.rendezvous.waits_for(f"{task}/"):
            run.cancel(errors.from_code(error.code, error.message))
        elif not run.ended:
            self._look_later(run, task, error)

    def _look_later(self, run: GraphRun, task: TaskName, error: errors.OpError) -> None:
        asyncio.get_running_loop().call_later(self._seconds, partial(self._look, run, task, error))


def _expects(run: GraphRun, task: TaskName) -> bool:
    """Whether some tensor of that task is pushed to the run."""
    return run.plan is not None and any(key.startswith(f"{task}/") for key in run.plan.expected)
