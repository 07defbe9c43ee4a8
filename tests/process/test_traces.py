"""`POST /v1/runs/{run}:trace` of a real training: one ps, two workers, over links and over gRPC; by httpx.

The trainer trains until it is stopped; a worker that was told to runs no step any more, until it is stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from click.testing import CliRunner

from support.task_processes import CLI, PATIENCE
from support.trace_check import check_trace
from tenfold.cli.children import Children
from tenfold.cli.main import cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PS, W0, W1 = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"

TRAINER = """
import json, os, socket, sys, threading
import numpy as np
import tenfold as tf

config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
server = tf.train.Server(config["cluster"], job_name=job, task_index=index)
if job == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=config["cluster"], worker_device=f"/job:worker/task:{index}")):
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", [20, 20])
    x = tf.placeholder(tf.float32, [None, 20], name="x")
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)), name="loss")
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step, name="train")
with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0) as session:
    session.run([train, loss], {x: np.ones([8, 20], np.float32)})
    socket.create_connection(("127.0.0.1", int(sys.argv[1]))).sendall(b"!")
    if f"{job}/{index}" in sys.argv[2:]:
        threading.Event().wait()
    while True:
        session.run([train, loss], {x: np.ones([8, 20], np.float32)})
"""


@pytest.fixture(params=["auto", pytest.param("off", marks=pytest.mark.long)])
def api(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[httpx.Client]:
    """A control service whose runs' tasks reach each other by links, or by gRPC alone."""
    for name in [name for name in os.environ if name.startswith("TENFOLD_") and name != "TENFOLD_CACHE_DIR"]:
        monkeypatch.delenv(name)
    program = [*CLI, "control", "--port", "0", "--database", str(tmp_path / "c.db"), "--allow-runs"]
    with Children() as children:
        children.start("control", program)
        url = children.wait_for_line("control", r"listening on (http://\S+)", PATIENCE)[1]
        # the header is for `training` alone
        with httpx.Client(base_url=url, trust_env=False, timeout=PATIENCE, headers={"Links": request.param}) as client:
            yield client
            for run in client.get("/v1/runs?state=RUNNING").json()["runs"]:
                client.post(f"/v1/runs/{run['name']}:stop")
                client.get(f"/v1/runs/{run['name']}?ended=true&wait=30s")


def training(api: httpx.Client, folder: Path, *idle: str) -> str:
    """The name of a run whose workers have trained; those of `idle` go on no more."""
    (folder / "trainer.py").write_text(TRAINER)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as gate:
        gate.settimeout(PATIENCE)
        body = {
            "entrypoint": ["python", "trainer.py", str(gate.getsockname()[1]), *idle],
            "working_dir": str(folder),
            "jobs": {"ps": 1, "worker": 2},
            "environment": {"TENFOLD_LINK": api.headers["Links"]},
            "stop_grace": 2,
        }
        answer = api.post("/v1/runs", json=body)
        assert answer.is_success, answer.text
        for _ in range(2):
            connection, _ = gate.accept()
            connection.close()
    return str(answer.json()["name"])


def of(found: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [event for event in found["traceEvents"] if event["ph"] == phase]


def test_one_file_over_all_tasks(api: httpx.Client, tmp_path: Path) -> None:
    run = training(api, tmp_path)

    answer = api.post(f"/v1/runs/{run}:trace", params={"wait": "30s"}, json={"steps": 2})

    assert answer.status_code == 200, answer.text
    found = answer.json()
    check_trace(found)
    about = found["metadata"]
    assert (about["missing"], about["notes"]) == ([], [])
    assert [(step["task"], step["step"]) for step in about["steps"]] == [(W0, 0), (W0, 1), (W1, 0), (W1, 1)]
    pids = {task["task"]: task["pid"] for task in about["tasks"]}
    assert list(pids) == [PS, W0, W1]
    # one host, one clock
    assert {task["clock_offset_us"] for task in about["tasks"]} == {0}
    applied = [event for event in of(found, "X") if event["name"] == "ApplyGradientDescent"]
    assert {event["pid"] for event in applied} == {pids[PS]}
    assert sorted(event["args"]["client"] for event in applied) == [W0, W0, W1, W1]
    (ends, starts) = ({event["id"]: event for event in of(found, phase)} for phase in ("f", "s"))
    ways = {(starts[number]["pid"], ends[number]["pid"]) for number in starts}
    assert ways == {(pids[PS], pids[W0]), (pids[W0], pids[PS]), (pids[PS], pids[W1]), (pids[W1], pids[PS])}
    # the weights and their gradients, of each step
    assert sum(event["args"]["bytes"] == 1600 for event in of(found, "X") if event["name"] == "_Send") >= 8
    assert api.get(answer.headers["Location"]).json() == found


@pytest.mark.thorough
def test_a_program_that_runs_no_step_is_missing_and_nobody_hangs(api: httpx.Client, tmp_path: Path) -> None:
    run = training(api, tmp_path, "worker/1")

    found = api.post(f"/v1/runs/{run}:trace", params={"wait": "4s"}).json()

    check_trace(found)
    (missing,) = found["metadata"]["missing"]
    assert missing["task"] == W1
    assert missing["reason"].startswith("it ran no step within ")
    assert {step["task"] for step in found["metadata"]["steps"]} == {W0}


@pytest.mark.thorough
def test_the_command(api: httpx.Client, tmp_path: Path) -> None:
    run = training(api, tmp_path)
    file = tmp_path / "t.json"
    control = ["--control", str(api.base_url)]

    result = CliRunner().invoke(cli, ["trace", run, *control, "-o", str(file), "--task", "worker/0"])

    assert result.exit_code == 0, result.output
    assert result.output.startswith("1 steps of 1 clients on 2 processes: ")
    check_trace(json.loads(file.read_text()))
    unknown = CliRunner().invoke(cli, ["trace", run, *control, "--task", "worker/7"])
    assert unknown.exit_code == 1
    assert "has no task 'worker/7'" in unknown.output
