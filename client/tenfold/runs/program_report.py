"""Reports from inside a program of a run: its global step, its scalars, what it uses. One thread, `program-report`.

Started by cli/child.py in each task of a run that has a control service. It reads what session/observing.py noted and
what the system says of the process, a few times a second at first, then with each heartbeat. A service that does not
answer is asked again with the next one; what was noted meanwhile is kept, within a bound.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from tenfold_core.access.settings import shown_token

if TYPE_CHECKING:
    from tenfold.session.observing import Activity, Checkpoint, Point

log = logging.getLogger(__name__)

#: The variables that say of which run this is a task, and where its control service is.
RUN, TASK, CONTROL = "TENFOLD_RUN", "TENFOLD_TASK", "TENFOLD_CONTROL"

#: Seconds between looks until there is something to tell, until it is told that there is nothing, and between reports
#: unless the service says otherwise.
_FIRST_S, _QUIET_S, _EVERY_S = 0.25, 1.0, 1.0
#: Seconds that one report may take; the last one delays the end of the program.
_REQUEST_S, _LAST_S = 5.0, 1.0
#: Points and checkpoints that are kept while nobody takes them.
_KEPT = 1000


class ProgramReporter:
    """Reports between `start` and `finish`, both on the main thread."""

    def __init__(self, run: str, job: str, index: int, control: str, token: str | None) -> None:
        self._run, self._job, self._index, self._control, self._token = run, job, index, control, token
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="program-report", daemon=True)
        self._points: list[Point] = []
        self._checkpoints: list[Checkpoint] = []
        self._logdirs: list[str] = []
        #: Steps in all, and when and at which global step the last report saw the program.
        self._steps = 0
        self._seen: tuple[float, int] | None = None
        self._speed: float | None = None
        self._refused = False

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Sends the last report. Blocks for a moment; never raises."""
        self._ending.set()
        self._thread.join(_LAST_S + _REQUEST_S)

    def _keep(self) -> None:
        # a program that ends before it has computed anything pays nothing
        patience = _QUIET_S
        while self._activity() is None and patience > 0:
            patience -= _FIRST_S
            if self._ending.wait(_FIRST_S) and self._activity() is None:
                return
        from tenfold.control import ControlClient
        from tenfold.control.retry import NO_RETRY

        with ControlClient(self._control, self._token, _REQUEST_S, retry=NO_RETRY) as client:
            every = _EVERY_S
            while not self._refused:
                ending = self._ending.is_set()
                every = self._send(client, every, _LAST_S if ending else _REQUEST_S)
                if ending:
                    return
                self._ending.wait(every)

    def _send(self, client: Any, every: float, timeout: float) -> float:
        """One report; the seconds until the next one."""
        from tenfold_core import errors

        try:
            answer = client.report_task(self._run, self._job, self._index, self._report(), timeout=timeout)
        except (errors.UnavailableError, errors.DeadlineExceededError):
            return every
        except errors.OpError as error:
            log.info("the control service takes no reports of this task: %s", error)
            self._refused = True
            return every
        self._points, self._checkpoints, self._logdirs = [], [], []
        return float(answer["heartbeat"])

    def _activity(self) -> Activity | None:
        """What the program did; None as long as it has not run a step. Without importing what it does not use."""
        observing = sys.modules.get("tenfold.session.observing")
        observer = getattr(observing, "observer", None)
        if observer is None:
            return None
        found: Activity = observer.collect()
        self._points = (self._points + found.points)[-_KEPT:]
        self._checkpoints = (self._checkpoints + found.checkpoints)[-_KEPT:]
        self._logdirs += found.logdirs
        self._steps = found.steps
        return found if found.steps or self._points or self._checkpoints else None

    def _report(self) -> dict[str, Any]:
        # only now: it loads NumPy, which the program may not use
        from tenfold_core.open_inference import json_number
        from tenfold_core.process_figures import process_figures

        self._activity()
        steps = [(point.time, point.step) for point in self._points if point.step is not None]
        if steps:
            moment, step = steps[-1]
            if self._seen is not None and moment > self._seen[0]:
                self._speed = max(0.0, (step - self._seen[1]) / (moment - self._seen[0]))
            self._seen = moment, step
        return {
            "steps": self._steps,
            "global_step": None if self._seen is None else self._seen[1],
            "steps_per_second": self._speed,
            "points": [
                {"time": each.time, "step": each.step, "values": {k: json_number(v) for k, v in each.values.items()}}
                for each in self._points
            ],
            "checkpoints": [{"time": each.time, "path": each.path} for each in self._checkpoints],
            "logdirs": self._logdirs,
            "figures": process_figures(),
        }


def of_run(run: str, control: str) -> dict[str, str]:
    """The variables of a run's tasks that make them report to the service at `control`."""
    return {RUN: run, CONTROL: control}


def begin() -> ProgramReporter | None:
    """Starts reporting, if the environment says that this process is a task of a run; else None."""
    run, control = os.environ.get(RUN), os.environ.get(CONTROL)
    job, _, index = os.environ.get(TASK, "").partition("/")
    if not run or not control or not index.isdecimal():
        return None
    reporter = ProgramReporter(run, job, int(index), control, shown_token())
    reporter.start()
    return reporter
