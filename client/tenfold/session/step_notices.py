"""Says what a step waits for that takes long: after five seconds, and then at intervals that grow.

Sessions tell `begin` and `end` of each step that may wait for others (base_session.py); one thread of the process looks
now and then, asks the master of a step that is late, and warns on the logger `tenfold.session`. A step that computes,
or waits for room in a queue, waits for nobody, and nothing is said. waiting.py does the same for CreateSession.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tenfold_core.help_links import HANGS, link

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_log = logging.getLogger("tenfold.session")

#: Seconds of a step before it is said for the first time; each pause is so many times the one before, up to the last.
FIRST_S, GROWTH, LONGEST_PAUSE_S = 5.0, 3.0, 3600.0
#: Seconds between two looks, for the master's answer, and without any step until the thread ends.
_LOOK_S, _ASK_S, _IDLE_S = 0.5, 4.0, 10.0
#: Names and waits in one line.
_NAMED = 5
#: What a program without its hook waits for.
_TOKENS = "sync_token"
_HINT = (
    ". Tokens come from the chief: is it there, and has each session the hook of "
    "SyncReplicasOptimizer.make_session_run_hook, or the chief's queue runner been started?"
)


@runtime_checkable
class WaitTellingMaster(Protocol):
    """A master that tells what a session's steps wait for. Optional beside MasterInterface."""

    def step_waits(self, handle: str, timeout: float) -> list[str]:
        """A sentence each; blocks for `timeout` seconds at most."""
        ...


class _Named(Protocol):
    """A fetches.FetchPlan."""

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def target_names(self) -> Sequence[str]: ...


@dataclass(slots=True)
class _Step:
    plan: _Named
    master: object
    handle: str
    began: float
    #: Seconds of it after which it is said next.
    due: float


class StepNotices:
    """Of a process. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, first: float = FIRST_S) -> None:
        self._clock, self._first = clock, first
        self._numbers = itertools.count()
        #: Under way. Changed by single operations only, which are atomic.
        self._steps: dict[int, _Step] = {}
        self._lock = threading.Lock()
        #: Guarded by _lock.
        self._thread: threading.Thread | None = None

    def begin(self, plan: _Named, master: object, handle: str) -> int:
        """A step begins: what `end` wants. `plan` has what it fetches and runs."""
        number = next(self._numbers)
        self._steps[number] = _Step(plan, master, handle, self._clock(), self._first)
        if self._thread is None:
            self._start()
        return number

    def end(self, number: int) -> None:
        """The step is over."""
        self._steps.pop(number, None)

    def under_way(self) -> list[tuple[list[str], float]]:
        """The steps that may wait: what each fetches and runs, and for how many seconds it has run. Never blocks."""
        now = self._clock()
        return [([*step.plan.names, *step.plan.target_names], now - step.began) for step in list(self._steps.values())]

    def look(self) -> None:
        """Warns of each step that is late. Blocks for the masters' answers."""
        now = self._clock()
        for number, step in list(self._steps.items()):
            if now - step.began < step.due:
                continue
            step.due = min(step.due * GROWTH, step.due + LONGEST_PAUSE_S)
            waits = _asked(step)
            if waits and number in self._steps:
                _log.warning("%s (what to do: %s)", _sentence(step, now - step.began, waits), link(HANGS))

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="tenfold-step-notices", daemon=True)
                self._thread.start()

    def _watch(self) -> None:
        pause = threading.Event()
        idle = 0.0
        while True:
            pause.wait(_LOOK_S)
            idle = 0.0 if self._steps else idle + _LOOK_S
            if idle >= _IDLE_S:
                with self._lock:
                    # who begins a step now starts another one
                    self._thread = None
                if not self._steps:
                    return
                with self._lock:
                    if self._thread is not None:
                        return
                    self._thread = threading.current_thread()
            self.look()


def _asked(step: _Step) -> list[str]:
    if not isinstance(step.master, WaitTellingMaster):
        return []
    try:
        return step.master.step_waits(step.handle, _ASK_S)
    except Exception as error:  # it is told for information only, and the step says what is wrong
        _log.debug("what a step waits for is not known: %s", error)
        return []


def _sentence(step: _Step, seconds: float, waits: list[str]) -> str:
    given = [*step.plan.names, *step.plan.target_names]
    names = ", ".join(given[:_NAMED]) + (", …" if len(given) > _NAMED else "")
    more = f"; and {len(waits) - _NAMED} more" if len(waits) > _NAMED else ""
    hint = _HINT if any(_TOKENS in each for each in waits) else ""
    return f"a step of {names} has run for {seconds:.0f} s; waiting for {'; '.join(waits[:_NAMED])}{more}{hint}"


#: The process's own.
notices = StepNotices()
