"""Runs a sweep through a control service: each trial is a submitted run, which any launcher starts.

What is started and stopped decides machine.py. A trial's submission id is the sweep's name and its number, so that a
sweep that was cut off, started again under its name, goes on where it was. Used by cli/sweep.py.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenfold.sweeps.command import command_of
from tenfold.sweeps.machine import Start, SweepMachine
from tenfold_core import errors
from tenfold_core.master_jobs import master_order
from tenfold_core.parameter_values import write_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold.control import ControlClient, RunProgress
    from tenfold.sweeps.machine import Decision, Trial
    from tenfold.sweeps.median import Curve

#: The tag of a run that the rule has stopped.
STOPPED_EARLY = "stopped-early"
#: Seconds between looks at the runs that go on.
_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class SweepProgram:
    """What each trial runs: the members of its submission besides its setting."""

    #: The sweep's name: the tag of its runs, and the beginning of their submission ids.
    name: str
    entrypoint: Sequence[str]
    #: The scalar by which trials are compared; None where they are not.
    metric: str | None = None
    submission: Mapping[str, Any] = field(default_factory=dict)
    tags: Sequence[str] = ()


def curve_of(progress: RunProgress, metric: str) -> Curve:
    """The scalar by global step, of the task that leads among those that have it, without points that have no step."""
    for task in sorted(progress.tasks, key=lambda each: master_order(each.job, each.index)):
        if (curve := task.curves.get(metric)) is not None:
            pairs = zip(curve.steps, curve.values, strict=True)
            return sorted((step, float(value)) for step, value in pairs if step is not None)
    return []


class SweepDriver:
    """One sweep. `run` drives it on the caller's thread; `stop` may be called on any."""

    def __init__(
        self, client: ControlClient, program: SweepProgram, machine: SweepMachine, *, say: Callable[[str], None]
    ) -> None:
        """`say` shows a line to who watches."""
        self._client, self._program, self._machine, self._say = client, program, machine, say
        self._wake = threading.Event()
        #: Why it is to stop; None while it is not.
        self._reason: str | None = None

    def stop(self, reason: str) -> None:
        """Starts nothing more, and stops the runs that go on. Never blocks."""
        self._reason = self._reason or reason
        self._wake.set()

    def run(self) -> None:
        """Drives until every trial has ended. Blocks. Raises what the service says of a run that it started, such as
        UnavailableError once it has been away for longer than the client retries."""
        machine = self._machine
        while True:
            if self._reason is not None:
                machine.stop(self._reason)
            for decision in machine.decide():
                self._do(decision)
            if machine.over:
                return
            self._wake.wait(_LOOK_S)
            self._wake.clear()
            for trial in machine.active:
                self._look(trial)

    def _do(self, decision: Decision) -> None:
        trial = self._machine.trials[decision.index]
        if isinstance(decision, Start):
            self._start(trial)
            return
        self._say(f"{self._called(trial)} is stopped: {decision.reason}")
        if trial.early:
            self._client.edit_run(decision.run, add_tags=[STOPPED_EARLY])
        self._client.stop_run(decision.run, reason=decision.reason[:500])

    def _start(self, trial: Trial) -> None:
        program = self._program
        try:
            run = self._client.submit_run(
                command_of(program.entrypoint, trial.point),
                submission_id=f"{program.name}-{trial.index}",
                display_name=f"{program.name}/{trial.index}",
                tags=[program.name, *program.tags],
                parameters=trial.point,
                **program.submission,
            )
        except errors.OpError as error:
            self._machine.refused(trial.index, error.message)
            self._say(f"{self._called(trial)} is not started: {error.message}")
            return
        self._machine.started(trial.index, run.name)
        setting = " ".join(f"{name}={write_value(value)}" for name, value in trial.point.items())
        self._say(f"{self._called(trial)} is {run.name}: {setting}")

    def _look(self, trial: Trial) -> None:
        assert trial.run is not None
        run = self._client.run(trial.run)
        metric = self._program.metric
        # after the state: a run that has ended has told all
        curve = [] if metric is None else curve_of(self._client.progress(trial.run), metric)
        self._machine.observed(trial.index, run.state, curve, early=STOPPED_EARLY in run.tags)
        if run.final:
            self._say(f"{self._called(trial)} has {run.state}: {run.reason}")

    def _called(self, trial: Trial) -> str:
        return f"{self._program.name}/{trial.index}"
