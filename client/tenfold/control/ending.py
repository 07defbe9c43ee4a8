"""What runs and sweeps share: they have a version that grows, and an end that one waits for.

Used by run_calls.py and sweep_calls.py, and by the answers of both.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from tenfold.control.answers import Answer, answer
from tenfold.control.request import LONGEST_POLL, Request, milliseconds, one
from tenfold_core import errors
from tenfold_core.run_states import RunState, is_final

if TYPE_CHECKING:
    from tenfold.control.request import Requests


@answer
class Ending(Answer):
    """An object of the service that ends."""

    name: str
    uid: str
    #: Grows with every change of the object.
    version: int
    state: str
    #: Why it is in its state.
    reason: str

    @property
    def final(self) -> bool:
        """Whether it has ended."""
        return is_final(self.state)

    @property
    def succeeded(self) -> bool:
        """Whether it has ended as it should; a sweep has where each run has succeeded or was stopped early."""
        return self.state == RunState.SUCCEEDED


E = TypeVar("E", bound=Ending)


def poll(kind: type[E], path: str, *, after: int | None, wait: float) -> Request[E]:
    """One long-poll: the object once its version is above `after` (None: once it has ended), or as it is after `wait`
    seconds."""
    wait = max(0.0, min(wait, LONGEST_POLL))
    params = {"after": after, "ended": "true" if after is None else None, "wait": milliseconds(wait)}
    return Request("GET", path, one(kind), params=params, wait=wait)


def wait_for(kind: type[E], path: str, what: str, *, after: int | None, timeout: float) -> Requests[E]:
    """Waits until the object's version is above `after`, or without it until it has ended. Returns it. Raises
    DeadlineExceededError after `timeout` seconds, saying how it stands; `what` says which it is: "run r"."""
    deadline = time.monotonic() + timeout
    while True:
        found = yield from poll(kind, path, after=after, wait=deadline - time.monotonic())
        if found.final or (after is not None and found.version > after):
            return found
        if time.monotonic() >= deadline:
            text = f"{what} is {found.state} after {timeout:g} s: {found.reason}."
            raise errors.DeadlineExceededError(None, None, text)
