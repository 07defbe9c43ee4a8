"""A sweep of six runs on two cores as real processes: the worst stopped early, compared by REST and by command."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.run_programs import Service, tenfold
from support.task_processes import CLI, PATIENCE
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

#: Ten steps of a loss that falls as 1/step; a bad one makes five, and then waits until it is told to stop.
TRAINER = """
import argparse
import signal

import tenfold as tf

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--layers", type=int)
args = parser.parse_args()
bad = args.lr > 0.5
writer = tf.summary.FileWriter(f"logs-{args.lr}-{args.layers}")
with tf.Session() as session:
    session.run(tf.constant(0, name="nothing"))
    for step in range(1, 6 if bad else 11):
        value = tf.Summary.Value(tag="loss", simple_value=args.lr * args.layers / step)
        writer.add_summary(tf.Summary(value=[value]), step)
writer.close()
while bad:
    signal.pause()
"""
#: Seconds for six programs, two at a time.
_SWEEP_S = 6 * PATIENCE
#: Parameters of the six, in the order in which they are started.
SETTINGS = [(lr, layers) for lr in (0.1, 0.9) for layers in (2, 3, 4)]


def sweep(service: Service, folder: Path) -> subprocess.CompletedProcess[str]:
    options = ["--param", "lr=0.1,0.9", "--param=layers=2..4", "--parallel=3", "--total-cores=2", "--name=first"]
    rule = ["--metric=loss", "--stop-early", "--grace-steps=5", "--json", "--ps=0", "--workers=1"]
    return subprocess.run(
        [sys.executable, *CLI, "sweep", *options, *rule, f"--control={service.url}", "--", "trainer.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_SWEEP_S,
        check=False,
    )


def most_at_once(runs: list[dict[str, Any]]) -> int:
    moments = sorted([(run["created"], 1) for run in runs] + [(run["ended"], -1) for run in runs])
    count = most = 0
    for _, change in moments:
        count += change
        most = max(most, count)
    return most


@pytest.mark.thorough
def test_six_runs_on_two_cores_the_worst_stopped_early(service: Service, api: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER)

    done = sweep(service, tmp_path)
    assert done.returncode == 0, done.stderr
    trials = json.loads(done.stdout)["trials"]
    runs = api.get("/v1/runs", params={"filter": "tag=first", "sort": "loss"}).json()["runs"]
    stopped = api.get("/v1/runs", params={"filter": "tag=stopped-early and lr>0.5"}).json()["runs"]
    names = [run["name"] for run in runs]
    compared = api.get("/v1/runs:compare", params={"run": [names[0], names[-1]]}).json()
    shown = tenfold("compare", f"--control={service.url}", names[0], names[-1])
    with ControlClient(service.url) as client:
        best = client.runs(filter="tag=first and state=SUCCEEDED", sort="loss", limit=1)
    again = sweep(service, tmp_path)

    assert [(run["parameters"]["lr"], run["parameters"]["layers"]) for run in runs] == SETTINGS
    assert [run["state"] for run in runs] == ["SUCCEEDED"] * 3 + ["STOPPED"] * 3
    assert most_at_once(runs) == 2
    assert [trial["run"] for trial in trials] == names
    assert [trial["stopped_early"] for trial in trials] == [False] * 3 + [True] * 3
    assert {run["name"] for run in stopped} == set(names[3:])
    assert "by step 5 its best is" in runs[-1]["reason"]
    assert [run.name for run in best] == names[:1]
    # by REST and by command: what differs comes first
    assert [(row["name"], row["differs"]) for row in compared["parameters"]] == [("layers", True), ("lr", True)]
    (loss,) = compared["scalars"]
    assert [round(value, 6) for value in loss["newest"]] == [0.02, 0.72]
    assert "≠ lr          0.1  0.9" in shown.output
    assert "loss by step" in shown.output
    # under its name it is the same sweep: nothing is left to do
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["trials"] == trials
    assert len(api.get("/v1/runs").json()["runs"]) == 6
