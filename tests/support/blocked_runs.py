"""A gate for runs of graphs: while it is open, every run on a server's worker waits until it is cancelled.

Not used by the services themselves.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tenfold_core import errors

if TYPE_CHECKING:
    from tenfold_services.background import BackgroundServer


class BlockedRuns:
    """`with BlockedRuns(server) as blocked: …; blocked.entered.wait(10)`."""

    def __init__(self, server: BackgroundServer) -> None:
        self._worker: Any = server.server.worker
        #: A run has come, and waits.
        self.entered = threading.Event()
        #: A run that waited was cancelled.
        self.cancelled = threading.Event()

    def __enter__(self) -> BlockedRuns:
        self._worker.start_run = self._start_run
        self._worker.run_at_once = lambda *_: None
        return self

    def __exit__(self, *_: object) -> None:
        del self._worker.start_run, self._worker.run_at_once

    def _start_run(self, request: Any, done: Any, *_: Any) -> _BlockedRun:
        self.entered.set()
        return _BlockedRun(done, self.cancelled)


class _BlockedRun:
    def __init__(self, done: Any, cancelled: threading.Event) -> None:
        self._done, self._cancelled = done, cancelled

    def cancel(self, error: errors.OpError | None = None) -> None:
        if not self._cancelled.is_set():
            self._cancelled.set()
            self._done(None, error or errors.CancelledError(None, None, "Step was cancelled."))
