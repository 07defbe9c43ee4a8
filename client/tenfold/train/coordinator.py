"""`Coordinator` and `LooperThread`: threads that stop together and report the first error.

Follows TF 1.15's training/coordinator.py in behaviour. `join` waits on one condition that the stop request
wakes, and on the threads themselves.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

#: Seconds between checks for threads that ended without asking for a stop: a thread's end notifies no condition.
_LOOK_SECONDS = 0.05


class Coordinator:
    """A request to stop that threads share, with the error behind it.

    Exceptions of `clean_stop_exception_types` (default: OutOfRangeError) ask for a stop and do not count as errors.
    """

    def __init__(self, clean_stop_exception_types: Sequence[type[BaseException]] | None = None) -> None:
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (errors.OutOfRangeError,)
        self._clean = tuple(clean_stop_exception_types)
        #: Guards all that follows.
        self._lock = threading.Lock()
        self._stop_event = threading.Event()
        self._error: BaseException | None = None
        self._joined = False
        self._registered_threads: set[threading.Thread] = set()

    def request_stop(self, ex: Any = None) -> None:
        """Asks all threads to stop. `ex` is the reason: an exception, or the triple of `sys.exc_info()`.

        The first reason that is an error is raised by `join` and `raise_requested_exception`; one that comes after
        `join` is raised here.
        """
        error = ex[1] if isinstance(ex, tuple) else ex
        if isinstance(error, self._clean):
            error = None
        if error is not None and not isinstance(error, BaseException):
            error = ValueError(f"ex must be a tuple or sys.exc_info must return the current exception: {ex!r}")
        with self._lock:
            if self._joined:
                if error is not None:
                    raise error
                return
            if not self._stop_event.is_set():
                if error is not None and self._error is None:
                    logging.info("Error reported to Coordinator: %s, %s", type(error), error)
                    self._error = error
                self._stop_event.set()

    def is_clean(self, error: BaseException) -> bool:
        """Whether a stop with this reason is an ordinary end."""
        return isinstance(error, self._clean)

    def clear_stop(self) -> None:
        """Forgets the request and its reason, so that new threads can start."""
        with self._lock:
            self._joined = False
            self._error = None
            self._stop_event.clear()

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._stop_event.is_set()

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """An exception in the block asks for a stop with itself as the reason, and is not raised further."""
        try:
            yield
        except BaseException:
            self.request_stop(sys.exc_info())

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Blocks until a stop is requested, or for `timeout` seconds; whether it was."""
        return self._stop_event.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread that `join` waits for."""
        with self._lock:
            self._registered_threads.add(thread)

    def unregister_threads(self, threads: Iterable[threading.Thread]) -> None:
        """`join` does not wait for these: they end with their session, which is closed after it."""
        with self._lock:
            self._registered_threads.difference_update(threads)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Blocks until all threads have ended, or until `stop_grace_period_secs` after a stop was requested.

        Raises the reason for the stop if that is an error; otherwise RuntimeError, which names the live threads, unless
        `ignore_live_threads`.
        """
        with self._lock:
            waited = list(self._registered_threads.union(threads or ()))
        while any(thread.is_alive() for thread in waited) and not self.wait_for_stop(_LOOK_SECONDS):
            pass
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in waited:
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join(max(deadline - time.monotonic(), 0.0))
        stragglers = " ".join(thread.name for thread in waited if thread.is_alive())
        with self._lock:
            self._joined = True
            self._registered_threads = set()
            if self._error is not None:
                raise self._error
        if stragglers:
            message = f"Coordinator stopped with threads still running: {stragglers}"
            if not ignore_live_threads:
                raise RuntimeError(message)
            logging.info(message)

    @property
    def joined(self) -> bool:
        """Whether `join` has returned or raised."""
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raises the error with which a stop was requested, if there is one."""
        with self._lock:
            if self._error is not None:
                raise self._error


class LooperThread(threading.Thread):
    """A daemon thread that calls its target, or `run_loop`, until its coordinator stops.

    With `timer_interval_secs` it calls at that interval, otherwise continuously. Raises ValueError without a
    Coordinator, or for arguments without a target.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise ValueError(f"'coord' argument must be a Coordinator: {coord}")
        if target is None and (args or kwargs):
            raise ValueError("'args' and 'kwargs' argument require that you also pass 'target'")
        super().__init__(daemon=True)
        self._coord, self._interval = coord, timer_interval_secs
        self._call = target
        self._call_args, self._call_kwargs = tuple(args or ()), dict(kwargs or {})
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """A started thread that calls `target`."""
        looper = LooperThread(coord, timer_interval_secs, target=target, args=args, kwargs=kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        with self._coord.stop_on_exception():
            try:
                self._run()
            except Exception as error:
                if not self._coord.should_stop() and not self._coord.is_clean(error):
                    # nobody may join the coordinator for hours, and a program that never asks it goes on without
                    logging.error("%s has failed, and asks all others to stop: %r", type(self).__name__, error)
                raise

    def _run(self) -> None:
        self.start_loop()
        if self._interval is None:
            while not self._coord.should_stop():
                self.run_loop()
        else:
            following = time.monotonic()
            while not self._coord.wait_for_stop(max(following - time.monotonic(), 0.0)):
                following += self._interval
                self.run_loop()
        self.stop_loop()

    def start_loop(self) -> None:
        """Called once, before the first round."""

    def stop_loop(self) -> None:
        """Called once, after the last round."""

    def run_loop(self) -> None:
        """One round: calls the target, if there is one."""
        if self._call is not None:
            self._call(*self._call_args, **self._call_kwargs)
