"""What becomes of a call on its way, and a script that says which call, or frame, meets which fate.

Used by the interceptors beside this file: call_proxy.py for gRPC's calls, frame_proxy.py for the frames of links.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from support.moments import PATIENCE
from tenfold_core import errors

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence


class Fate(Enum):
    """A fate as a sentence."""

    REQUEST_LOST = "The connection ends before the request arrives."
    REQUEST_RESET = "The stream is reset before the request arrives."
    REQUEST_SWALLOWED = "The request never arrives, and nobody says so."
    REPLY_LOST = "The call has run; the connection ends before its reply comes."
    REPLY_RESET = "The call has run; the stream is reset before its reply comes."
    REPLY_LATE = "The call has run; its reply does not come before its caller has given up."
    REPEATED = "The request arrives again while the first one runs; the caller hears the first one's answer."
    SENT_AGAIN = "The request arrives again while the first one runs; the caller hears the second one's answer."


#: Fates in which the request never arrives.
NEVER_ARRIVES = frozenset({Fate.REQUEST_LOST, Fate.REQUEST_RESET, Fate.REQUEST_SWALLOWED})


class Met(NamedTuple):
    """How an act ended that met its fate: with a value or an error, and after so many seconds."""

    value: object
    error: errors.OpError | None
    took: float


class Script:
    """Which call of which method meets which fate; all others pass. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._name, self._left = "", 0
        self._fate: Enum = Fate.REPEATED
        self._storm: tuple[random.Random, float, Sequence[Enum]] | None = None
        #: The fate has happened, as far as it is the interceptor's: what was lost is lost, what came twice has left.
        self.happened = threading.Event()
        #: How often each method was called since the script was set.
        self.calls: dict[str, int] = {}

    def set(self, name: str, fate: Enum, nth: int = 1) -> None:
        """From now on the `nth` call of `name` meets `fate`, and no other one."""
        with self._lock:
            self._name, self._fate, self._left = name, fate, nth
            self.calls = {}
        self.happened.clear()

    def storm(self, dice: random.Random, odds: float, fates: Sequence[Enum]) -> None:
        """From now on each call meets one of these fates, with these odds."""
        with self._lock:
            self._storm = dice, odds, fates

    def clear(self) -> None:
        """From now on all calls pass."""
        with self._lock:
            self._left, self._storm = 0, None

    def fate_of(self, name: str) -> Enum | None:
        """The fate of a call of `name` that comes now; None where it passes."""
        with self._lock:
            self.calls[name] = self.calls.get(name, 0) + 1
            if self._storm is not None:
                dice, odds, fates = self._storm
                return dice.choice(fates) if dice.random() < odds else None
            if name != self._name or not self._left:
                return None
            self._left -= 1
            return None if self._left else self._fate

    def wait(self) -> None:
        """Blocks until the fate has happened."""
        assert self.happened.wait(PATIENCE), f"{self._name} was never called"

    def meet(self, act: Callable[[], object], bound: float, after: Callable[[], None] | None) -> Met:
        """Lets `act` meet the fate that is set: runs it on a thread, calls `after` once the fate has happened, and
        waits up to `bound` seconds for the end. All calls pass from then on. Raises TimeoutError where it does not end.
        """
        began, value = time.monotonic(), None
        error: errors.OpError | None = None
        with ThreadPoolExecutor(1) as pool:
            acting = pool.submit(act)
            self.wait()
            if after is not None:
                after()
            try:
                value = acting.result(bound)
            except errors.OpError as raised:
                error = raised
        took = time.monotonic() - began
        self.clear()
        return Met(value, error, took)
