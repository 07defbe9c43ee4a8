"""Tells the control service how a run goes, and hears whether it is to stop. One thread, `run-reporter`.

A new report is sent at once, the same one again with each heartbeat. While the service does not answer, the run goes on
and the newest report is kept; only the newest counts.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_core.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.control import ControlClient
    from tenfold.control.run_answers import SupervisorOrders

log = logging.getLogger(__name__)

#: While the service cannot be reached it is asked again this often.
_PAUSE_S = 0.5


def this_process() -> dict[str, Any]:
    """This process as the supervisor of a run."""
    return {"host": socket.gethostname(), "pid": os.getpid()}


class RunReporter:
    """Reports on one run between `start` and `finish`. `put` may be called from any thread."""

    def __init__(self, client: ControlClient, run: str, supervisor: dict[str, Any], on_stop: Callable[[str], None]):
        """`supervisor` says which process this is; `on_stop(reason)` is called once, when the run is to stop."""
        self._client, self._run, self._supervisor, self._on_stop = client, run, supervisor, on_stop
        self._changed = threading.Condition()
        #: The newest report, and how many came; guarded by _changed.
        self._report: dict[str, Any] | None = None
        self._count = 0
        self._closing = False
        self._sent = 0
        self._told = False
        self._heartbeat = 2.0
        self._thread = threading.Thread(target=self._keep, name="run-reporter", daemon=True)

    def begin(self, patience: float) -> bool:
        """Tells that this process runs it, before it starts anything. False if it shall not: another one has the run,
        it has ended, or no service has taken the word within `patience` seconds. Blocks."""
        first = {"state": str(RunState.PENDING), "reason": "its tasks are being started", "attempt": 0, "tasks": []}
        deadline = time.monotonic() + patience
        while True:
            try:
                self._take(self._client.report_run(self._run, {**first, "supervisor": self._supervisor}))
                return True
            except (errors.UnavailableError, errors.DeadlineExceededError) as error:
                log.warning("run %s: the control service is not there: %s", self._run, error)
                if time.monotonic() >= deadline:
                    return False
                self._pause()
            except errors.OpError as error:
                log.warning("run %s: the control service refuses the report: %s", self._run, error)
                return False

    def start(self) -> None:
        self._thread.start()

    def put(self, report: dict[str, Any]) -> None:
        """The run is now like this. Never blocks."""
        with self._changed:
            self._report = report
            self._count += 1
            self._changed.notify()

    def finish(self, timeout: float) -> bool:
        """Ends the thread once the last report has been taken, or after `timeout` seconds; tells whether it was."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout)
        return not self._thread.is_alive() and self._sent == self._count

    def _keep(self) -> None:
        due, away = time.monotonic(), False
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closing or self._count > self._sent, max(0.0, due - time.monotonic())
                )
                report, count, closing = self._report, self._count, self._closing
            if report is None or (closing and count == self._sent):
                if closing:
                    return
                due = time.monotonic() + self._heartbeat
                continue
            due = time.monotonic() + self._heartbeat
            try:
                self._take(self._client.report_run(self._run, {**report, "supervisor": self._supervisor}))
                self._sent, away = count, False
            except (errors.UnavailableError, errors.DeadlineExceededError) as error:
                # once, however often it is asked again: the programs of the run say nothing of it
                level = logging.INFO if away else logging.WARNING
                log.log(level, "run %s continues without the control service: %s", self._run, error.message)
                away = True
                self._pause()
            except errors.OpError as error:
                # it was deleted, or has ended for the service: there is nobody to report to any more
                log.warning("run %s: the control service refuses the report: %s", self._run, error)
                self._sent = count
                if isinstance(error, errors.NotFoundError | errors.FailedPreconditionError):
                    self._stop(error.message)
                    return

    def _pause(self) -> None:
        threading.Event().wait(_PAUSE_S)

    def _take(self, orders: SupervisorOrders) -> None:
        self._heartbeat = orders.heartbeat
        self._client.learn(orders.services)
        if orders.stop is not None:
            self._stop(orders.stop)

    def _stop(self, reason: str) -> None:
        if not self._told:
            self._told = True
            self._on_stop(reason)
