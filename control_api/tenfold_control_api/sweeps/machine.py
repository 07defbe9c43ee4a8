"""What a sweep starts and stops: a queue of trials that share cores and memory, and a rule for the worst. Pure.

Events in (`started`, `refused`, `postponed`, `observed`, `stop`), decisions out (`decide`). driver.py
carries them out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tenfold_core.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.sweeps.space import Point
    from tenfold_control_api.sweeps.median import Curve, MedianRule

#: Of a trial: it stands in the queue; it is being started; its run goes on; that has ended; it could not be started.
WAITING, STARTING, RUNNING, ENDED, REFUSED = "waiting", "starting", "running", "ended", "refused"


@dataclass(frozen=True, slots=True)
class Room:
    """Cores and bytes of memory: what a trial takes, or what there is; None has no bound."""

    cores: int | None = None
    memory: int | None = None

    def holds(self, trials: int, each: Room) -> bool:
        """Whether so many trials find room."""
        return all(
            there is None or (taken or 0) * trials <= there
            for there, taken in ((self.cores, each.cores), (self.memory, each.memory))
        )


@dataclass(slots=True)
class Trial:
    """One setting."""

    index: int
    point: Point
    phase: str = WAITING
    #: The run's name.
    run: str | None = None
    #: How its run has ended.
    state: RunState | None = None
    curve: Curve = field(default_factory=list)
    #: Why it was stopped or not started; None for one that was neither.
    reason: str | None = None
    #: Whether the rule has stopped it.
    early: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """Start the run of this trial; answered by `started` or `refused`."""

    index: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop this run; its end is told by `observed`."""

    index: int
    run: str
    reason: str


Decision: TypeAlias = Start | Stop


class SweepMachine:
    """All trials of a sweep."""

    def __init__(
        self, points: Sequence[Point], *, parallel: int, each: Room, there: Room, rule: MedianRule | None = None
    ) -> None:
        """At most `parallel` trials at once, each of which takes `each` of what is `there`. Raises ValueError where not
        one trial finds room."""
        if parallel < 1:
            raise ValueError(f"{parallel} trials at once make no sweep: it is at least 1")
        if not there.holds(1, each):
            raise ValueError(
                f"one trial takes {each.cores or 0} cores and {each.memory or 0} bytes of memory, and there are "
                f"{'any number of' if there.cores is None else there.cores} cores and "
                f"{'any number of' if there.memory is None else there.memory} bytes"
            )
        self.trials = [Trial(at, dict(point)) for at, point in enumerate(points)]
        self._parallel, self._each, self._there, self._rule = parallel, each, there, rule
        #: Why nothing more is started.
        self._stopping: str | None = None

    def restore(self, trial: Trial) -> None:
        """What is known of a trial from an earlier life of this sweep, before anything is decided. One that was being
        started is started again."""
        if trial.phase == STARTING:
            trial.phase = WAITING
        self.trials[trial.index] = trial

    @property
    def over(self) -> bool:
        """Whether every trial has ended, or will not be started."""
        return all(trial.phase in (ENDED, REFUSED) for trial in self.trials)

    @property
    def active(self) -> list[Trial]:
        """Those that take room."""
        return [trial for trial in self.trials if trial.phase in (STARTING, RUNNING)]

    def decide(self) -> list[Decision]:
        """What is to be done now; each decision is given once."""
        decisions: list[Decision] = []
        for trial in self.trials:
            if trial.phase == RUNNING and trial.reason is None and trial.run is not None:
                why = self._stopping or self._verdict(trial)
                if why is not None:
                    trial.reason, trial.early = why, self._stopping is None
                    decisions.append(Stop(trial.index, trial.run, why))
        for trial in self.trials:
            if trial.phase != WAITING:
                continue
            if self._stopping is not None:
                trial.phase, trial.reason = REFUSED, self._stopping
            elif self._has_room():
                trial.phase = STARTING
                decisions.append(Start(trial.index))
        return decisions

    def started(self, index: int, run: str) -> None:
        self.trials[index].phase, self.trials[index].run = RUNNING, run

    def refused(self, index: int, why: str) -> None:
        """The trial could not be started. What was refused once would be refused again: nothing more is started."""
        self.trials[index].phase, self.trials[index].reason = REFUSED, why
        self.stop(f"trial {index} could not be started")

    def postponed(self, index: int) -> None:
        """The trial cannot be started just now: it goes back to the queue."""
        self.trials[index].phase = WAITING

    def observed(self, index: int, state: str, curve: Curve, *, early: bool = False) -> None:
        """How the trial's run stands, its curve so far, and whether the rule has stopped it, in an earlier life of this
        sweep perhaps."""
        trial = self.trials[index]
        trial.curve, trial.early = curve, trial.early or early
        if trial.phase == RUNNING and RunState(state).final:
            trial.phase, trial.state = ENDED, RunState(state)

    def stop(self, reason: str) -> None:
        """Starts nothing more, and stops what runs. The first reason counts."""
        self._stopping = self._stopping or reason

    def _has_room(self) -> bool:
        count = len(self.active) + 1
        return count <= self._parallel and self._there.holds(count, self._each)

    def _verdict(self, trial: Trial) -> str | None:
        if self._rule is None:
            return None
        return self._rule.verdict(trial.curve, [other.curve for other in self.trials if other is not trial])
