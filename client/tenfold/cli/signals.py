"""Ctrl-C, SIGTERM and SIGHUP as one orderly end. Used by every command that runs until it is told to stop."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tenfold_core.exit_codes import STOP_SIGNALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


#: Set once the process that started this one is gone, where child.py watches that: the SIGTERM then was nobody's wish.
parent_gone = threading.Event()


def exit_on_sigterm() -> None:
    """Makes SIGTERM end this process by SystemExit, with 143, where it would end it at once: a command that only waits
    for answers puts its terminal back and closes its connections. Main thread only; `stop_signals` has its own way."""

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one is not asked to wait
        raise SystemExit(128 + number)

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)


class StopSignalError(KeyboardInterrupt):
    """Raised in the main thread by the first stop signal. Its text is the signal's name."""


class StopSignals:
    """What `stop_signals` yields. `wait` belongs to the main thread, `end` to any."""

    def __init__(self, woken: int, waker: int) -> None:
        self._woken, self._waker = woken, waker
        self._ended = False
        #: The first stop signal that came.
        self.received: signal.Signals | None = None

    @property
    def exit_code(self) -> int:
        """What a shell expects of a process that ended because of a signal: 128 and its number. 0 without one."""
        return 0 if self.received is None else 128 + self.received

    def wait(self) -> None:
        """Blocks until `end` was called, or a stop signal came that raised nothing."""
        while not self._ended and self.received is None:
            os.read(self._woken, 64)

    def end(self) -> None:
        """Ends `wait`: the work is over without a signal. Never blocks; does nothing once the signals are put back."""
        self._ended = True
        self.wake()

    def wake(self) -> None:
        """Lets `wait` look again. Never blocks."""
        # full: the waiting thread is woken in any case
        with contextlib.suppress(BlockingIOError):
            if self._waker >= 0:
                os.write(self._waker, b"\\0")

    def close(self) -> None:
        self._waker = -1


@contextmanager
def stop_signals(tell: Callable[[signal.Signals], None] | None = None) -> Iterator[StopSignals]:
    """Makes the first stop signal raise StopSignalError in the main thread, or with `tell` calls that on a thread of
    its own and raises nothing; a second signal ends the process at once.

    `wait` of what it yields waits on a pipe that the system's own handler writes to: a signal that comes a moment
    before the wait begins cannot be missed. Only for the main thread; puts everything back.
    """

    def on_signal(number: int, frame: FrameType | None) -> None:
        for each in STOP_SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        stop.received = signal.Signals(number)
        if tell is None:
            raise StopSignalError(stop.received.name)
        # the system's handler has woken the watcher already, but maybe before the line above: then it waits again
        stop.wake()

    def watch() -> None:
        assert tell is not None
        stop.wait()
        if stop.received is not None:
            tell(stop.received)

    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    stop = StopSignals(woken, waker)
    former_waker = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    former = {each: signal.signal(each, on_signal) for each in STOP_SIGNALS}
    watcher = threading.Thread(target=watch, name="stop-signals", daemon=True) if tell is not None else None
    if watcher is not None:
        watcher.start()
    try:
        yield stop
    finally:
        if watcher is not None:
            stop.end()
            watcher.join()
        for each, handler in former.items():
            signal.signal(each, handler)
        signal.set_wakeup_fd(former_waker)
        stop.close()
        os.close(woken)
        os.close(waker)
