"""A run in MLflow's file store: its layout, names that lead elsewhere, states, a run that is written again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.run_answers import a_progress, a_run
from tenfold.exports.mlflow import write_run

if TYPE_CHECKING:
    from pathlib import Path

TIMES = {"created": "2026-11-24T11:00:00Z", "started": "2026-11-24T11:00:01Z", "ended": "2026-11-24T11:00:03Z"}
CALLED: dict[str, Any] = {
    **{"display_name": "wide", "tags": ["a"], "notes": "n", "parameters": {"lr": 0.1, "on": True, "opt/name": "adam"}},
    "source": {"commit": "abcd", "branch": None, "dirty": False, "diff_bytes": 0, "diff_truncated": False},
}


def held(file: Path) -> dict[str, Any]:
    """A meta.yaml: each line is a name and a value of JSON, which YAML reads as well."""
    return {
        name: json.loads(value) for name, _, value in (line.partition(": ") for line in file.read_text().splitlines())
    }


def test_the_layout(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "mine", a_run("SUCCEEDED", **TIMES, **CALLED), a_progress())

    experiment, run = held(folder.parent / "meta.yaml"), held(folder / "meta.yaml")
    assert (experiment["name"], experiment["experiment_id"]) == ("mine", folder.parent.name)
    assert (run["run_id"], run["status"], run["run_name"]) == (folder.name, 3, "wide")
    assert (run["end_time"] - run["start_time"], run["lifecycle_stage"]) == (2000, "active")
    params = {each: (folder / "params" / each).read_text() for each in ("lr", "on", "opt/name")}
    assert params == {"lr": "0.1", "on": "true", "opt/name": "adam"}
    assert (folder / "metrics" / "loss").read_text() == "1000000 0.5 1\n1001000 0.25 2\n1002000 nan 3\n"
    assert (folder / "tags" / "mlflow.source.git.commit").read_text() == "abcd"
    assert (folder / "tags" / "a").read_text() == "true"
    assert (folder / "artifacts").is_dir()


@pytest.mark.parametrize(
    ("state", "status"), [("PENDING", 2), ("RUNNING", 1), ("SUCCEEDED", 3), ("FAILED", 4), ("STOPPED", 5)]
)
def test_states(tmp_path: Path, state: str, status: int) -> None:
    folder = write_run(tmp_path, "mine", a_run(state, **{**TIMES, "ended": None}), a_progress())

    assert (held(folder / "meta.yaml")["status"], held(folder / "meta.yaml")["end_time"]) == (status, None)


def test_a_run_that_is_written_again_is_replaced_and_runs_share_their_experiment(tmp_path: Path) -> None:
    first = write_run(tmp_path, "mine", a_run(**TIMES, parameters={"lr": 1, "old": 1}), a_progress())
    again = write_run(tmp_path, "mine", a_run(**TIMES, parameters={"lr": 2}), a_progress())
    other = write_run(tmp_path, "mine", a_run(**TIMES, uid="v"), a_progress())

    assert first == again
    assert [each.name for each in (again / "params").iterdir()] == ["lr"]
    assert other.parent == again.parent
    assert other != again


@pytest.mark.parametrize("name", ["../../outside", "/etc/x", "a/../../b", "..", "a=b?", "."])
def test_no_name_leads_out_of_its_folder(tmp_path: Path, name: str) -> None:
    folder = write_run(tmp_path / "store", "mine", a_run(**TIMES, parameters={name: 1}), a_progress(name=name))

    assert [each.name for each in tmp_path.iterdir()] == ["store"]
    assert len([each for each in (folder / "params").rglob("*") if each.is_file()]) == 1
    assert len([each for each in (folder / "metrics").rglob("*") if each.is_file()]) == 1
