"""A sweep as a value, and what may happen to it. Pure, no I/O. As runs/record.py is for runs.

The record is what a later service goes on from: it makes a `SweepMachine` of it anew.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tenfold_control_api.problems import ApiError
from tenfold_control_api.sweeps.machine import ENDED, REFUSED, RUNNING, WAITING, Room, SweepMachine, Trial
from tenfold_control_api.sweeps.median import MedianRule
from tenfold_core.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.sweeps.space import Point

#: What is kept of a trial that has left the queue: its row of `trials`.
KEPT = ("phase", "run", "state", "reason", "early")


@dataclass(frozen=True, slots=True)
class SweepRecord:
    """One sweep. Times are wall-clock seconds, for people."""

    #: The tag of its runs, and the beginning of their submission ids.
    name: str
    #: Of the definition: another one under the same name is refused.
    fingerprint: str
    #: What was asked for, without the settings: `SweepDefinition` as JSON, and each trial's Room as `each` and `there`.
    definition: Mapping[str, Any]
    #: The settings, by trial.
    points: Sequence[Point]
    created: float
    state: RunState = RunState.RUNNING
    reason: str = "its runs go on"
    version: int = 1
    ended: float | None = None
    #: By trial: KEPT, and `best` once it has ended; None for one in the queue.
    trials: tuple[Mapping[str, Any] | None, ...] = ()
    #: Why it is to stop; None while it is not.
    stop: str | None = None
    #: The service that drives it.
    owner: str | None = None
    #: The principal that made it.
    submitter: str | None = None
    #: What its runs are called: name, tags, notes, parameters, source (runs/details.py), and the text of their diff.
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rule(self) -> MedianRule:
        """By which its trials are compared; whether it stops any says `stops_early`."""
        found = self.definition["stop_early"] or {}
        return MedianRule(self.definition["goal"], found.get("grace_steps", 0), found.get("min_others", 2))

    @property
    def stops_early(self) -> bool:
        return self.definition["stop_early"] is not None

    def machine(self) -> SweepMachine:
        """What decides how it goes on, without curves. Raises ValueError where not one trial finds room."""
        machine = SweepMachine(
            self.points,
            parallel=self.definition["parallel"],
            each=Room(**self.definition["each"]),
            there=Room(**self.definition["there"]),
            rule=self.rule if self.stops_early else None,
        )
        for index, kept in enumerate(self.trials):
            if kept is not None:
                known = {name: kept[name] for name in KEPT}
                known["state"] = None if known["state"] is None else RunState(known["state"])
                machine.restore(Trial(index, dict(self.points[index]), **known))
        return machine

    def progressed(self, machine: SweepMachine, now: float) -> SweepRecord:
        """As the machine has it, and ended once it is over. The best value of a trial is kept when it has ended, when
        nothing adds to its curve any more."""
        known = self.trials or (None,) * len(self.points)
        trials = tuple(self._kept(trial, old) for trial, old in zip(machine.trials, known, strict=True))
        changed = self if trials == self.trials else replace(self, version=self.version + 1, trials=trials)
        if not machine.over or self.state.final:
            return changed
        return replace(changed, version=self.version + 1, ended=now, **self._end(machine.trials))

    def _kept(self, trial: Trial, old: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if trial.phase not in (RUNNING, ENDED, REFUSED):
            return None
        if old is not None and old["phase"] == ENDED:
            return old
        # asdict would copy the curve
        kept: dict[str, Any] = {name: getattr(trial, name) for name in KEPT}
        kept["state"] = None if trial.state is None else str(trial.state)
        return {**kept, "best": self.rule.best(trial.curve) if trial.phase == ENDED else None}

    def _end(self, trials: Sequence[Trial]) -> dict[str, Any]:
        good = sum(trial.early or trial.state is RunState.SUCCEEDED for trial in trials)
        if self.stop is not None:
            return {"state": RunState.STOPPED, "reason": self.stop}
        if good == len(trials):
            return {"state": RunState.SUCCEEDED, "reason": f"all {good} trials have succeeded or were stopped early"}
        why = next((trial.reason for trial in trials if trial.phase == REFUSED), None)
        bad = f"{len(trials) - good} of {len(trials)} trials have not succeeded"
        return {"state": RunState.FAILED, "reason": bad if why is None else f"{bad}: {why}"}

    def cancel(self, reason: str) -> SweepRecord:
        """Starts nothing more, and stops its runs. One that has ended, or is to stop, stays as it is."""
        if self.state.final or self.stop is not None:
            return self
        return replace(self, version=self.version + 1, stop=reason, reason=f"stopping: {reason}")

    def resume(self, owner: str) -> SweepRecord:
        """Puts the trials that were never started back into the queue. One that goes on, or has none, stays as it is.
        Raises FAILED_PRECONDITION for one that is stopping."""
        if not self.state.final:
            if self.stop is not None:
                text = f"sweep {self.name} is stopping: it can be resumed once its runs have ended."
                raise ApiError("sweep-active", text)
            return self
        trials = tuple(None if kept is not None and kept["phase"] == REFUSED else kept for kept in self.trials)
        if trials == self.trials:
            return self
        again = replace(self, version=self.version + 1, trials=trials, stop=None, ended=None, owner=owner)
        return replace(again, state=RunState.RUNNING, reason="its runs go on")

    def claim(self, owner: str, instead_of: str | None) -> SweepRecord:
        """`owner` drives it from now on, if `instead_of` did."""
        if self.state.final or self.owner != instead_of:
            return self
        return replace(self, version=self.version + 1, owner=owner)

    def phase(self, index: int) -> str:
        """Of a trial."""
        kept = self.trials[index] if self.trials else None
        return WAITING if kept is None else kept["phase"]


def room(each: Room) -> dict[str, int | None]:
    """A Room as JSON."""
    return asdict(each)
