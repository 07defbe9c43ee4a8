"""One sweep that goes on: starts, looks at and stops its runs, as its machine decides. service.py calls `look`.

A trial's submission id is the sweep's name and its number, so that what was started before a restart is not started
twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.sweeps.command import command_of
from tenfold_control_api.problems import ApiError
from tenfold_control_api.sweeps.machine import ENDED, RUNNING, Start
from tenfold_core.master_jobs import master_order
from tenfold_core.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_control_api.runs.progress import TaskProgress
    from tenfold_control_api.runs.service import RunService
    from tenfold_control_api.sweeps.machine import Decision, SweepMachine, Trial
    from tenfold_control_api.sweeps.median import Curve
    from tenfold_control_api.sweeps.record import SweepRecord

#: The tag of a run that the rule has stopped.
STOPPED_EARLY = "stopped-early"


def curve_of(tasks: Sequence[TaskProgress], metric: str) -> Curve:
    """The scalar by global step, of the task that leads among those that have it, without points that have no step."""
    for task in sorted(tasks, key=lambda each: master_order(each.job, each.index)):
        if (curve := task.curves.get(metric)) is not None:
            return sorted((step, float(value)) for _, step, value in curve.shown() if step is not None)
    return []


class SweepDriver:
    """Between two looks it keeps the machine, and with it the curves of the trials that have ended."""

    def __init__(self, sweep: SweepRecord, runs: RunService) -> None:
        self._runs, self._name = runs, sweep.name
        self.machine: SweepMachine = sweep.machine()
        self._metric: str | None = sweep.definition["metric"]
        #: Trials that had ended before, whose curves are read once.
        self._unread = [trial for trial in self.machine.trials if trial.phase == ENDED]

    async def look(self, sweep: SweepRecord) -> None:
        """Looks at the runs that go on, and carries out what is decided. Raises only what a database raises."""
        if sweep.stop is not None:
            self.machine.stop(sweep.stop)
        if sweep.stops_early:
            unread, self._unread = self._unread, []
            for trial in unread:
                trial.curve = await self._curve(trial)
        for trial in self.machine.active:
            await self._observe(trial)
        for decision in self.machine.decide():
            await self._do(sweep, decision)

    async def _observe(self, trial: Trial) -> None:
        assert trial.run is not None
        try:
            run = await self._runs.get(trial.run)
        except ApiError as error:
            # it is deleted, which only a run that has ended can be
            self.machine.observed(trial.index, RunState.STOPPED, trial.curve)
            trial.reason = trial.reason or error.detail
            return
        # after the state: a run that has ended has told all
        early = STOPPED_EARLY in run.details.get("tags", ())
        self.machine.observed(trial.index, run.state, await self._curve(trial), early=early)
        if run.state in (RunState.FAILED, RunState.STOPPED) and trial.reason is None:
            trial.reason = run.reason

    async def _curve(self, trial: Trial) -> Curve:
        if self._metric is None or trial.run is None:
            return []
        return curve_of(await self._runs.progress.of(trial.run), self._metric)

    async def _do(self, sweep: SweepRecord, decision: Decision) -> None:
        trial = self.machine.trials[decision.index]
        if isinstance(decision, Start):
            await self._start(sweep, trial)
            return
        try:
            if trial.early:
                await self._runs.edit(decision.run, {"add_tags": [STOPPED_EARLY]})
            await self._runs.ask_to_stop(decision.run, decision.reason[:500])
        except ApiError as error:
            # of a run that is deleted the next look learns
            if error.code != "NOT_FOUND":
                trial.reason, trial.early = None, False
                raise

    async def _start(self, sweep: SweepRecord, trial: Trial) -> None:
        program, details = sweep.definition["program"], sweep.details
        submission = {**program, "entrypoint": command_of(program["entrypoint"], trial.point)}
        called = {
            **details,
            "display_name": f"{self._name}/{trial.index}",
            "tags": list(dict.fromkeys([self._name, *details.get("tags", ())])),
            "parameters": {**details.get("parameters", {}), **trial.point},
        }
        try:
            run, _ = await self._runs.submit(
                submission, f"{self._name}-{trial.index}", sweep.definition["launcher"], sweep.submitter, called
            )
        except ApiError as error:
            if error.type.retryable:
                self.machine.postponed(trial.index)
            else:
                self.machine.refused(trial.index, error.detail)
        except BaseException:
            self.machine.postponed(trial.index)
            raise
        else:
            self.machine.started(trial.index, run.id)
            assert trial.phase == RUNNING
