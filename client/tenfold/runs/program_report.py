"""Reports from inside a program: its global step, its scalars, its speed, what it uses. One thread, `program-report`.

As a task of a run it is started by cli/child.py; a program by hand starts it itself (by_hand.py). It reads what
session/observing.py noted and what the system says of the process, a few times a second at first, then with each
heartbeat. A service that does not answer is asked again with the next one; what was noted meanwhile is kept, within a
bound.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tenfold.runs.program_trace import ProgramTracer
from tenfold.runs.recorded_news import RecordedNews
from tenfold_core.access.credentials import shown_token

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.control import ControlClient
    from tenfold.session.observing import Activity, Checkpoint, Point
    from tenfold.summary.distributions import Distribution
    from tenfold_core.access.credentials import Shown

log = logging.getLogger(__name__)

#: The variables that say of which run this is a task, and where its control service is.
RUN, TASK, CONTROL = "TENFOLD_RUN", "TENFOLD_TASK", "TENFOLD_CONTROL"

#: Seconds between looks until there is something to tell, until it is told that there is nothing, and between reports
#: unless the service says otherwise.
_FIRST_S, _QUIET_S, _EVERY_S = 0.25, 1.0, 1.0
#: Seconds that one report may take; the last one delays the end of the program, less so if the service is away.
_REQUEST_S, _LAST_S, _LAST_AWAY_S = 5.0, 5.0, 1.0
#: Seconds that a program which ends waits until its first report can be sent: a busy machine loads the client slowly.
_LOADING_S = 30.0
#: Points and checkpoints that are kept while nobody takes them.
_KEPT = 1000
#: Points with histograms that are kept.
_KEPT_DISTRIBUTIONS = 50
#: Figures of servers that are told as sums over those of this process, and the tables that a report has at most.
_HELD, _TABLES = ("variable_bytes", "table_rows", "table_bytes", "tables_left_out"), 256
#: A speed over less than this is noise.
_SHORTEST_S = 0.1


@dataclass(frozen=True, slots=True)
class Place:
    """A task of a run."""

    run: str
    job: str
    index: int


class Membership(Protocol):
    """What makes this program a task of a run."""

    def find(self, client: ControlClient, active: bool, ending: bool, timeout: float) -> Place | None:
        """Its place; None while it has none. `active`: it ran steps since it had one. Raises what the service says."""
        ...

    def members(self, ending: bool) -> dict[str, Any]:
        """What its reports hold besides what ProgramReporter knows."""
        ...

    def stop(self) -> None:
        """The run is to stop: from now on `members` tells that this program does."""
        ...

    def end(self) -> None:
        """Ends this process, which was told to stop."""
        ...

    @property
    def is_supervised(self) -> bool:
        """Whether the process that runs the run says that the service is away, so that its tasks need not."""
        ...

    @property
    def joins_again(self) -> bool:
        """Whether it asks for another place once the service does not know it at its own any more."""
        ...


class OfRun:
    """A task that a supervisor started: it knows its place, and the supervisor sees its end."""

    is_supervised, joins_again = True, False

    def __init__(self, place: Place) -> None:
        self._place = place

    def find(self, client: ControlClient, active: bool, ending: bool, timeout: float) -> Place:
        return self._place

    def members(self, ending: bool) -> dict[str, Any]:
        return {}

    def stop(self) -> None:
        pass

    def end(self) -> None:
        pass


class ProgramReporter:
    """Reports between `start` and `finish`."""

    def __init__(self, membership: Membership, control: str, token: Shown) -> None:
        self._membership, self._control, self._token = membership, control, token
        self._ending = threading.Event()
        #: The client is there, or will never be.
        self._loaded = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="program-report", daemon=True)
        self._place: Place | None = None
        self._points: list[Point] = []
        self._checkpoints: list[Checkpoint] = []
        self._logdirs: list[str] = []
        #: Steps in all, and how many of them were told.
        self._steps = self._told = 0
        #: The newest that is known.
        self._global_step: int | None = None
        #: Where the training stops, where that is known.
        self._stops_at: int | None = None
        #: When and at which global step the last report saw the program that measured a speed.
        self._seen: tuple[float, int] | None = None
        #: Steps of the training and examples fed since the last report, which was then.
        self._recent = 0
        self._examples: int | None = 0
        self._reported: float | None = None
        self._speed: float | None = None
        self._examples_per_second: float | None = None
        #: Whether the service did not answer the last time, and whether that was said.
        self._away = self._said = False
        self._over = False
        self._tracer = ProgramTracer()
        self._recorded = RecordedNews()
        #: The question of why nothing goes on that was answered last.
        self._answered = ""

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Sends the last report, with the global step that the program ends with. Blocks for a moment; never raises."""
        last_step = sys.modules.get("tenfold.session.last_step")
        if last_step is not None:
            last_step.note_open_sessions()
        self._ending.set()
        self._loaded.wait(_LOADING_S)
        self._thread.join(_LAST_AWAY_S * 2 if self._away else _LAST_S + _REQUEST_S)

    def _keep(self) -> None:
        try:
            self._report_until_the_end()
        except Exception:
            # whatever it is: the program has nothing to do with it
            log.info("this program is not reported on any more", exc_info=True)
        finally:
            self._loaded.set()

    def _report_until_the_end(self) -> None:
        # a program that ends before it has computed anything pays nothing
        patience = _QUIET_S
        while self._activity() is None and patience > 0:
            patience -= _FIRST_S
            if self._ending.wait(_FIRST_S):
                break
        from tenfold.control import ControlClient
        from tenfold.control.retry import NO_RETRY

        keep_quiet()
        with ControlClient(self._control, self._token, _REQUEST_S, retry=NO_RETRY) as client:
            self._loaded.set()
            every = _EVERY_S
            while not self._over:
                ending = self._ending.is_set()
                if ending:
                    # before the last report, with which the run may end
                    self._tracer.send(client, _LAST_S)
                every = self._turn(client, every, ending)
                if ending:
                    return
                self._tracer.settle(client, every, self._ending)

    def _turn(self, client: ControlClient, every: float, ending: bool) -> float:
        """One report, if there is anybody to tell; the seconds until the next one."""
        from tenfold_core import errors

        timeout = _REQUEST_S if not ending else _LAST_AWAY_S if self._away else _LAST_S
        self._activity(ending)
        try:
            if self._place is None:
                self._place = self._membership.find(client, self._steps > self._told, ending, timeout)
                if self._place is None:
                    self._away = False
                    return every
            place = self._place
            report = {**self._report(ending), **self._recorded.of(place.job, place.index)}
            answer = client.report_task(place.run, place.job, place.index, report, timeout=timeout)
        except (errors.UnavailableError, errors.DeadlineExceededError) as error:
            # one that is slow to answer may be as busy as this machine: the last report has its time
            self._away = isinstance(error, errors.UnavailableError)
            if not self._said:
                self._said = True
                level = logging.INFO if self._membership.is_supervised else logging.WARNING
                log.log(level, "the program continues without the control service: %s", error.message)
            return every
        except errors.OpError as error:
            self._away = False
            if isinstance(error, errors.InvalidArgumentError) and self._recorded.refused():
                return every
            self._over = self._place is None or not self._membership.joins_again
            log.info("the control service takes no reports of this task: %s", error)
            self._place = None
            return every
        self._away = False
        self._recorded.accepted()
        client.learn(answer.services)
        self._points, self._checkpoints, self._logdirs, self._told = [], [], [], self._steps
        if not ending:
            self._tracer.order(place, answer.trace)
            if answer.why is not None:
                self._answer(client, place, answer.why.id)
        if answer.stop is not None and not ending:
            self._over = True
            self._membership.stop()
            with contextlib.suppress(errors.OpError):
                client.report_task(place.run, place.job, place.index, self._report(True), timeout=timeout)
            self._membership.end()
        return float(answer.heartbeat)

    def _answer(self, client: ControlClient, place: Place, asked: str) -> None:
        """Answers why nothing goes on, once for each time that it is asked."""
        if asked != self._answered:
            from tenfold.runs import program_why

            self._answered = asked
            program_why.send(client, place, asked)

    def _activity(self, ending: bool = False) -> Activity | None:
        """What the program did; None as long as it has not run a step. Without importing what it does not use."""
        observing = sys.modules.get("tenfold.session.observing")
        observer = getattr(observing, "observer", None)
        if observer is None:
            return None
        found: Activity = observer.collect(ending)
        self._points = _bounded(self._points + found.points)
        self._checkpoints = (self._checkpoints + found.checkpoints)[-_KEPT:]
        self._logdirs += found.logdirs
        self._steps = found.steps
        self._recent += found.recent
        if found.recent:
            known = found.examples is not None and self._examples is not None
            self._examples = (self._examples or 0) + (found.examples or 0) if known else None
        if found.examples_per_second is not None:
            self._examples_per_second = found.examples_per_second
        self._stops_at = found.stops_at
        return found if found.steps or self._points or self._checkpoints else None

    def _report(self, ending: bool) -> dict[str, Any]:
        # only now: it loads NumPy, which the program may not use
        from tenfold_core.open_inference import json_number
        from tenfold_core.process_figures import process_figures
        from tenfold_core.traffic import total_traffic

        sent, received = total_traffic()
        self._measure(time.monotonic())
        held, tables = _held()
        return {
            "steps": self._steps,
            "global_step": self._global_step,
            "last_step": self._stops_at,
            "steps_per_second": self._speed,
            "examples_per_second": self._examples_per_second,
            "points": [
                {"time": each.time, "step": each.step, "values": {k: json_number(v) for k, v in each.values.items()}}
                | ({"distributions": _numbers(each.distributions)} if each.distributions else {})
                for each in self._points
            ],
            "checkpoints": [{"time": each.time, "path": each.path} for each in self._checkpoints],
            "logdirs": self._logdirs,
            "figures": {**process_figures(), "bytes_sent": sent, "bytes_received": received, **held},
            **({"tables": tables} if tables else {}),
            **self._membership.members(ending),
        }

    def _measure(self, now: float) -> None:
        """The speeds since the last report. Steps are global ones where they are known."""
        steps = [(point.time, point.step) for point in self._points if point.step is not None]
        if steps:
            self._global_step = steps[-1][1]
        passed = None if self._reported is None else now - self._reported
        if passed is not None and passed < _SHORTEST_S:
            return
        if passed is not None and self._recent:
            if self._seen is None:
                self._speed = self._recent / passed
            if self._examples is not None:
                self._examples_per_second = self._examples / passed
        if steps:
            moment, step = steps[-1]
            if self._seen is None:
                self._speed = None
            elif moment > self._seen[0]:
                self._speed = max(0.0, (step - self._seen[1]) / (moment - self._seen[0]))
            self._seen = moment, step
        self._recent, self._examples, self._reported = 0, 0, now


def _bounded(points: list[Point]) -> list[Point]:
    """The newest, and of those with histograms, which are large, the newest few."""
    points = points[-_KEPT:]
    large = [at for at, point in enumerate(points) if point.distributions][:-_KEPT_DISTRIBUTIONS]
    return points if not large else [point for at, point in enumerate(points) if at not in set(large)]


def _numbers(found: Mapping[str, Distribution]) -> dict[str, dict[str, float | str]]:
    from tenfold_core.open_inference import json_number

    return {
        name: {member: json_number(getattr(each, member)) for member in each.__slots__} for name, each in found.items()
    }


def _held() -> tuple[dict[str, int], list[dict[str, Any]]]:
    """What this process's servers hold: bytes of variables, rows and bytes of tables, as far as there are any; and the
    largest tables of each."""
    from tenfold_core import errors

    inprocess = sys.modules.get("tenfold.session.inprocess")
    held, tables = dict.fromkeys(_HELD, 0), []
    for server in [] if inprocess is None else inprocess.running():
        with contextlib.suppress(errors.OpError):  # it stops just now
            figures = server.figures()
            held = {name: number + figures[name] for name, number in held.items()}
            tables += figures["tables"]
    held["tables_left_out"] += len(tables[_TABLES:])
    return {name: number for name, number in held.items() if number}, tables[:_TABLES]


class _OwnRequests(logging.Filter):
    """Drops what is logged of requests that are not the program's: the log is."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.threadName not in ("program-report", "control-register", "control-heartbeat")


def keep_quiet() -> None:
    """The program's log says nothing of the requests of its reports. Idempotent."""
    for name in ("httpx", "httpcore.connection", "httpcore.http11"):
        logger = logging.getLogger(name)
        if not any(isinstance(each, _OwnRequests) for each in logger.filters):
            logger.addFilter(_OwnRequests())


def of_run(run: str, control: str) -> dict[str, str]:
    """The variables of a run's tasks that make them report to the service at `control`."""
    return {RUN: run, CONTROL: control}


def begin() -> ProgramReporter | None:
    """Starts reporting, if the environment says that this process is a task of a run; else None."""
    run, control = os.environ.get(RUN), os.environ.get(CONTROL)
    job, _, index = os.environ.get(TASK, "").partition("/")
    if not run or not control or not index.isdecimal():
        return None
    reporter = ProgramReporter(OfRun(Place(run, job, int(index))), control, shown_token())
    reporter.start()
    return reporter
