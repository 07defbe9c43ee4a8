"""Looking on while a run goes on: `run_updates` as an iterator, `watch` with something to see.

Of both clients; calls.py says how they become methods. displays.py shows.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tenfold.control.calls import call, stream
from tenfold.control.displays import display_here
from tenfold.control.request import Emit
from tenfold.control.run_calls import RunCalls
from tenfold_core import errors

if TYPE_CHECKING:
    from tenfold.control.displays import RunDisplay
    from tenfold.control.request import Requests, Updates
    from tenfold.control.run_answers import Run

#: Seconds between two looks at a run that has not changed otherwise: its programs report once a second.
_EVERY_S = 1.0


class WatchCalls:
    """The part of the clients that looks on."""

    @stream
    def run_updates(self, run: str | Run, *, every: float = _EVERY_S) -> Updates[Run]:
        """The run as it is now, again whenever it has changed and every `every` seconds, at last as it ended. Raises
        NotFoundError, also when it is deleted meanwhile."""
        found = yield from RunCalls.run.of(self, _name(run))
        while True:
            yield from Emit(found)
            if found.final:
                return
            found = yield from RunCalls.poll_run.of(self, found.name, after=found.version, wait=every)

    @call
    def watch(
        self,
        run: str | Run,
        *,
        steps: int | None = None,
        display: RunDisplay | None = None,
        timeout: float | None = None,
    ) -> Requests[Run]:
        """Shows a run until it has ended, and returns it: its state, global step, steps a second, loss. In a terminal
        it is a line that moves, in a notebook an output that changes, otherwise lines of text.

        `steps`: how many it takes; then there is a bar. `display`, a context manager that gives an object with
        `show(run)`, shows it elsewhere. Raises DeadlineExceededError after `timeout` seconds, by default never.
        """
        name, deadline = _name(run), None if timeout is None else time.monotonic() + timeout
        with display_here(steps) if display is None else display as shown:
            found = yield from RunCalls.run.of(self, name)
            shown.show(found)
            while not found.final:
                left = _EVERY_S if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    text = f"run {name} is {found.state} after {timeout:g} s: {found.reason}."
                    raise errors.DeadlineExceededError(None, None, text)
                wait = min(left, _EVERY_S)
                found = yield from RunCalls.poll_run.of(self, name, after=found.version, wait=wait)
                shown.show(found)
        return found


def _name(run: str | Run) -> str:
    return run if isinstance(run, str) else run.name
