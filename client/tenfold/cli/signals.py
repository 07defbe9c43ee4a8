"""Ctrl-C, SIGTERM and SIGHUP as one orderly end. Used by every command that runs until it is told to stop."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

#: The signals that ask a process to end: from a terminal's Ctrl-C, a supervisor, a terminal that was closed.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stop_signals() -> Iterator[Callable[[], NoReturn]]:
    """Makes the first stop signal raise KeyboardInterrupt in the main thread; a second one ends the process at once.

    Yields a function that blocks until then. It waits on a pipe that the system's own handler writes to: a signal
    that comes a moment before the wait begins cannot be missed. Only for the main thread; puts everything back.
    """

    def on_signal(number: int, frame: FrameType | None) -> None:
        for each in STOP_SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt

    def wait() -> NoReturn:
        while True:
            os.read(woken, 64)

    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    former_waker = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    former = {each: signal.signal(each, on_signal) for each in STOP_SIGNALS}
    try:
        yield wait
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)
        signal.set_wakeup_fd(former_waker)
        os.close(woken)
        os.close(waker)
