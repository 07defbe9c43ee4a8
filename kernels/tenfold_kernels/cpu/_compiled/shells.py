"""What a caller holds of a loop: a shell that calls a stand-in first, and the loop once there is machine code of it.

A stand-in counts the seconds that it takes, so that what is used most and costs most is compiled first. Made by
compiling.py, given their loops by loading.py.
"""

from __future__ import annotations

import threading
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import partial

#: Seconds that a call of a heavy loop waits at most, on a machine that has no time for the thread that loads.
_PATIENCE_SECONDS = 2.0


class StandIn:
    """A stand-in that counts its seconds; threads that share it may lose some of each other's."""

    def __init__(self, stand_in: Callable[..., Any]) -> None:
        self.stand_in = stand_in
        self._spent = 0.0
        #: When the call under way began that began last; 0 when there is none.
        self._began = 0.0

    def __call__(self, *arguments: Any) -> Any:
        self._began = began = perf_counter()
        try:
            return self.stand_in(*arguments)
        finally:
            self._spent += perf_counter() - began
            self._began = 0.0

    @property
    def seconds(self) -> float:
        """What calls have taken until now, one under way included."""
        began = self._began
        return self._spent + (perf_counter() - began if began else 0.0)


class Heavy(StandIn):
    """What a heavy loop's shell calls first: its calls wait until it is settled what runs. Thread-safe."""

    def __init__(self, stand_in: Callable[..., Any]) -> None:
        super().__init__(stand_in)
        self._settled = threading.Event()
        self._loop: Callable[..., Any] | None = None

    def settle(self, loop: Callable[..., Any] | None) -> None:
        """Calls that wait, and those to come, are calls of `loop`; None: of the stand-in."""
        self._loop = loop
        self._settled.set()

    def __call__(self, *arguments: Any) -> Any:
        if not self._settled.wait(_PATIENCE_SECONDS):
            self._settled.set()
        return self._loop(*arguments) if self._loop is not None else super().__call__(*arguments)


def switch(shell: partial[Any], function: Callable[..., Any]) -> None:
    """Calls of `shell` are calls of `function` from now on; those under way end as they began."""
    # typeshed does not know the method; copying and pickling a partial rely on it
    shell.__setstate__((function, (), {}, {}))  # type: ignore[attr-defined]


def settle(shell: partial[Any], loop: Callable[..., Any] | None) -> None:
    """Has `shell` call `loop`; None: it stays with its stand-in for good, and no call waits for more."""
    waiting = shell.func
    if isinstance(waiting, StandIn):
        switch(shell, loop or waiting.stand_in)
    if isinstance(waiting, Heavy):
        waiting.settle(loop)


def go_on(shell: partial[Any]) -> None:
    """No call of `shell` waits for its loop, which takes a while."""
    waiting = shell.func
    if isinstance(waiting, Heavy):
        waiting.settle(None)


def is_heavy(shell: partial[Any]) -> bool:
    """Whether calls of `shell` began with waiting for its loop."""
    return isinstance(shell.func, Heavy)


def spent(shell: partial[Any]) -> float:
    """Seconds that calls of `shell` have spent in its stand-in."""
    waiting = shell.func
    return waiting.seconds if isinstance(waiting, StandIn) else 0.0
