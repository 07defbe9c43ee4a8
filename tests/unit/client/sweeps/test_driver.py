"""A sweep through a scripted control service: commands, submissions, early stops, refusals, a sweep that goes on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tenfold.sweeps import driver
from tenfold.sweeps.driver import STOPPED_EARLY, SweepDriver, SweepProgram, curve_of
from tenfold.sweeps.machine import Room, SweepMachine
from tenfold.sweeps.median import MedianRule
from tenfold_core import errors


class ScriptedService:
    """Runs that have the loss of their `lr`; they end by themselves unless that is 9."""

    def __init__(self) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        self.submitted: list[dict[str, Any]] = []
        self.refusal: errors.OpError | None = None

    def submit_run(self, entrypoint: list[str], **members: Any) -> Any:
        if self.refusal is not None:
            raise self.refusal
        self.submitted.append({"entrypoint": entrypoint, **members})
        name = f"run-{members['submission_id']}"
        loss = members["parameters"]["lr"]
        state = "RUNNING" if loss == 9 else "SUCCEEDED"
        self.runs.setdefault(name, {"state": state, "loss": loss, "tags": list(members["tags"]), "reason": ""})
        return SimpleNamespace(name=name)

    def run(self, name: str) -> Any:
        run = self.runs[name]
        return SimpleNamespace(**run, final=run["state"] != "RUNNING")

    def progress(self, name: str) -> Any:
        curve = SimpleNamespace(steps=(None, 2, 1), values=(0.0, self.runs[name]["loss"], 10.0))
        return SimpleNamespace(tasks=[SimpleNamespace(job="worker", index=0, curves={"loss": curve})])

    def edit_run(self, name: str, *, add_tags: list[str]) -> None:
        self.runs[name]["tags"] += add_tags

    def stop_run(self, name: str, *, reason: str) -> None:
        self.runs[name] |= {"state": "STOPPED", "reason": reason}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_LOOK_S", 0.0)


def a_sweep(service: ScriptedService, *rates: int) -> tuple[SweepMachine, SweepDriver, list[str]]:
    said: list[str] = []
    points = [{"lr": rate} for rate in rates]
    machine = SweepMachine(points, parallel=1, each=Room(), there=Room(), rule=MedianRule(others=2))
    program = SweepProgram("s", ("python", "t.py"), "loss", {"jobs": {"worker": 1}}, ("mine",))
    return machine, SweepDriver(service, program, machine, say=said.append), said  # type: ignore[arg-type]


def test_each_trial_is_a_run_that_is_called_after_the_sweep() -> None:
    service = ScriptedService()
    machine, sweep, said = a_sweep(service, 1, 2)

    sweep.run()

    assert service.submitted[1] == {
        "entrypoint": ["python", "t.py", "--lr=2"],
        "submission_id": "s-1",
        "display_name": "s/1",
        "tags": ["s", "mine"],
        "parameters": {"lr": 2},
        "jobs": {"worker": 1},
    }
    assert [trial.state for trial in machine.trials] == ["SUCCEEDED"] * 2
    assert said[0] == "s/0 is run-s-0: lr=1"
    # of a point without a step nothing is known
    assert machine.trials[0].curve == [(1, 10.0), (2, 1.0)]


def test_the_worst_is_stopped_and_a_sweep_that_goes_on_knows_it() -> None:
    service = ScriptedService()
    _, first, said = a_sweep(service, 1, 2, 9)
    first.run()
    machine, again, _ = a_sweep(service, 1, 2, 9)

    again.run()

    assert service.runs["run-s-2"]["state"] == "STOPPED"
    assert STOPPED_EARLY in service.runs["run-s-2"]["tags"]
    assert any("run-s-2" not in line and "s/2 is stopped: by step 2" in line for line in said)
    assert [trial.early for trial in machine.trials] == [False, False, True]
    assert len(service.runs) == 3


def test_a_refusal_ends_the_sweep_with_what_the_service_says() -> None:
    service = ScriptedService()
    service.refusal = errors.PermissionDeniedError(None, None, "it starts no programs")
    machine, sweep, said = a_sweep(service, 1, 2)

    sweep.run()

    assert said == ["s/0 is not started: it starts no programs"]
    assert [trial.reason for trial in machine.trials] == ["it starts no programs", "trial 0 could not be started"]


def test_stopping_starts_nothing_more_and_stops_what_runs() -> None:
    service = ScriptedService()
    machine, sweep, _ = a_sweep(service, 9, 1)
    submit = service.submit_run
    # the wish to stop comes while the first run is started
    service.submit_run = lambda *given, **members: (sweep.stop("stopped by SIGINT"), submit(*given, **members))[1]  # type: ignore[method-assign]

    sweep.run()

    assert (service.runs["run-s-0"]["state"], service.runs["run-s-0"]["reason"]) == ("STOPPED", "stopped by SIGINT")
    assert [trial.early for trial in machine.trials] == [False, False]
    assert len(service.runs) == 1


def test_a_curve_that_is_not_there_is_empty() -> None:
    assert curve_of(a_progress(), "accuracy") == []


def a_progress() -> Any:
    service = ScriptedService()
    service.runs["r"] = {"loss": 1}
    return service.progress("r")
