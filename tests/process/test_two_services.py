"""Two control services as processes on one PostgreSQL database, of which one is killed: all goes on at the other.

Skipped where there is no PostgreSQL.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from support.gates import Gate
from support.process_trees import left_alive
from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: A task says its name at the gate, trains on until it is told a word, and with "fail" computes what cannot be.
TRAINER = """
import json, os, socket, sys
import tenfold as tf

config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
server = tf.train.Server(config["cluster"], job_name=job, task_index=index)
if job == "ps":
    server.join()
with tf.device("/job:ps/task:0"):
    v = tf.get_variable("v", initializer=2.0)
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [])
    checked = tf.check_numerics(v * x, "bad loss", name="checked")
    count = tf.assign_add(step, 1)
gate = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
word = b""
with tf.Session(server.target) as session:
    session.run(tf.global_variables_initializer())
    gate.sendall(f"{job}/{index} {os.environ['TENFOLD_ATTEMPT']}".encode())
    gate.settimeout(0.01)
    while not word:
        session.run([step, count, checked], {x: 1.0})
        try:
            word = gate.recv(16)
        except TimeoutError:
            pass
    for line in range(60):
        print("line", line, flush=True)
    if word == b"fail":
        session.run(checked, {x: float("nan")})
"""
NAMES = ("a", "b")


class Services:
    """Services `a` and `b`; each may be killed."""

    def __init__(self, children: Children, database: str, folder: Path) -> None:
        self._children = children
        self.api: dict[str, httpx.Client] = {}
        environment = {
            "TENFOLD_CONTROL_HEARTBEAT": "0.5",
            "TENFOLD_CONTROL_LEASE_TTL": "4",
            "TENFOLD_CONTROL_REFRESH_INTERVAL": "0.1",
            "TENFOLD_CONTROL_RUNS_FOLDER": str(folder / "runs"),
        }
        program = [*CLI, "control", "--port", "0", "--database", database, "--allow-runs"]
        for name in NAMES:  # at once: one of them makes the tables
            children.start(name, program, env=environment)
        for name in NAMES:
            url = children.wait_for_line(name, r"listening on (http://\S+)", PATIENCE)[1]
            self.api[name] = httpx.Client(base_url=url, trust_env=False, timeout=PATIENCE)

    @property
    def urls(self) -> str:
        return ",".join(str(api.base_url) for api in self.api.values())

    def kill(self, name: str) -> None:
        os.kill(self._children.pid(name), signal.SIGKILL)
        self._children.wait_for_exit([name], PATIENCE)


@pytest.fixture
def gate() -> Iterator[Gate]:
    with contextlib.closing(Gate()) as made:
        yield made


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Iterator[Children]:
    for name in [name for name in os.environ if name.startswith("TENFOLD_") and name != "TENFOLD_CACHE_DIR"]:
        monkeypatch.delenv(name)
    with Children() as started:
        yield started


@pytest.fixture
def services(children: Children, postgres: str, tmp_path: Path) -> Iterator[Services]:
    started = Services(children, postgres, tmp_path)
    yield started
    with ControlClient(started.urls) as client:
        for run in client.runs(states=["PENDING", "RUNNING"]):
            client.stop_run(run.name)
            client.wait_for_run(run.name)
    for api in started.api.values():
        api.close()


def submit(api: httpx.Client, folder: Path, gate: Gate, **more: Any) -> httpx.Response:
    (folder / "trainer.py").write_text(TRAINER)
    body = {
        "entrypoint": ["python", "trainer.py", str(gate.port)],
        "working_dir": str(folder),
        "jobs": {"ps": 1, "worker": 2},
        **more,
    }
    answer = api.post("/v1/runs", json=body)
    assert answer.is_success, answer.text
    return answer


def until_ended(api: httpx.Client, run: str) -> dict[str, Any]:
    ended: dict[str, Any] = api.get(f"/v1/runs/{run}", params={"wait": "60s", "ended": "true"}).json()
    return ended


def until_progress(api: httpx.Client, run: str) -> None:
    """Until its programs have told this service a global step."""
    deadline = time.monotonic() + PATIENCE
    found: dict[str, Any] = {}
    while not (found.get("progress") or {}).get("global_step"):
        assert time.monotonic() < deadline, found
        found = api.get(f"/v1/runs/{run}", params={"after": 10_000, "wait": "100ms"}).json()


def until_told(api: httpx.Client, run: str, last: str) -> list[str]:
    """What became of the run, by its events, up to that."""
    actions: list[str] = []
    after = 0
    while last not in actions:
        params: dict[str, Any] = {"after": after, "run": run, "kind": "run", "wait": "30s"}
        page = api.get("/v1/events", params=params).json()
        actions += [event["action"] for event in page["events"]]
        after = page["next"]
    return actions


def task(run: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in run["tasks"] if f"{each['job']}/{each['index']}" == name)


@pytest.mark.thorough
def test_a_run_goes_on_when_the_service_that_started_it_is_killed(
    services: Services, gate: Gate, tmp_path: Path
) -> None:
    a, b = services.api["a"], services.api["b"]
    body = {"submission_id": "once", "restarts": {"limit": 2, "backoff": 0.05}}
    run = submit(a, tmp_path, gate, **body).json()["name"]
    gate.wait_for("worker/0 1", "worker/1 1")
    running = b.get(f"/v1/runs/{run}").json()

    services.kill("a")
    again = submit(b, tmp_path, gate, **body)
    until_progress(b, run)
    os.kill(task(running, "worker/1")["pid"], signal.SIGKILL)
    gate.wait_for("worker/0 2", "worker/1 2")
    second = b.get(f"/v1/runs/{run}").json()
    for name in ("worker/0 2", "worker/1 2"):
        gate.tell(name)
    ended = until_ended(b, run)
    actions = until_told(b, run, "SUCCEEDED")

    assert (running["state"], [each["state"] for each in running["tasks"]]) == ("RUNNING", ["running"] * 3)
    assert (again.status_code, again.json()["name"]) == (200, run)
    assert (second["state"], second["attempt"], second["restarts_used"]) == ("RUNNING", 2, 1)
    assert (ended["state"], ended["reason"]) == ("SUCCEEDED", "every worker has finished")
    assert [each["starts"] for each in ended["tasks"]] == [2, 2, 2]
    assert not left_alive([each["pid"] for each in (*running["tasks"], *ended["tasks"])])
    assert actions == ["PENDING", "RUNNING", "attempt", "SUCCEEDED"]


@pytest.mark.thorough
def test_a_run_whose_service_is_killed_at_once_is_started_once(services: Services, gate: Gate, tmp_path: Path) -> None:
    # the service may have started a supervisor, or not yet
    run = submit(services.api["a"], tmp_path, gate, submission_id="once").json()["name"]
    services.kill("a")
    again = submit(services.api["b"], tmp_path, gate, submission_id="once")

    gate.wait_for("worker/0 1", "worker/1 1")
    for name in ("worker/0 1", "worker/1 1"):
        gate.tell(name)
    ended = until_ended(services.api["b"], run)

    assert (again.status_code, again.json()["name"]) == (200, run)
    assert (ended["state"], [each["starts"] for each in ended["tasks"]]) == ("SUCCEEDED", [1, 1, 1])
    assert gate.there == {}


@pytest.mark.thorough
def test_a_failure_and_a_stop_at_the_service_that_is_left(services: Services, gate: Gate, tmp_path: Path) -> None:
    fails = submit(services.api["a"], tmp_path, gate, grace=0).json()["name"]
    gate.wait_for("worker/0 1", "worker/1 1")
    services.kill("a")
    gate.tell("worker/1 1", "fail")
    b = services.api["b"]
    failed = until_ended(b, fails)
    logs = b.get(f"/v1/runs/{fails}/logs", params={"task": "worker/1", "tail": 50}).json()["lines"]
    gate.there.pop("worker/0 1").close()

    stops = submit(b, tmp_path, gate).json()["name"]
    gate.wait_for("worker/0 1", "worker/1 1")
    b.post(f"/v1/runs/{stops}:stop", json={"reason": "enough"})
    stopped = until_ended(b, stops)

    worker = task(failed, "worker/1")
    assert (failed["state"], worker["state"], worker["exit_code"]) == ("FAILED", "failed", 1)
    assert (worker["error"]["node"], worker["error"]["task"]) == ("checked", "/job:ps/replica:0/task:0")
    assert worker["last_lines"] == [line["text"] for line in logs]
    assert len(worker["last_lines"]) == 50
    assert (stopped["state"], stopped["reason"]) == ("STOPPED", "enough")


@pytest.mark.thorough
def test_leases_and_sessions_are_kept_when_one_is_killed(services: Services, children: Children) -> None:
    with ControlClient(services.urls) as client:
        client.declare_cluster("default", {"worker": 1})
        children.start("task", [*CLI, "task", "--job", "worker", "--control", services.urls])
        client.wait_for_spec("default", until_complete=True, timeout=PATIENCE)
        session = services.api["a"].post("/v1/sessions", json={"cluster": "default"}).json()["name"]
        before = client.task_status("default", "worker", 0)

        services.kill("a")
        b = services.api["b"]
        version, changed = 0, True
        while changed:  # until nothing changes for longer than a lease lives
            params = {"after": version, "wait": "6s"}
            spec = b.get("/v1/clusters/default/spec", params=params).json()
            version, changed = spec["version"], spec["changed"]
        found = b.get(f"/v1/sessions/{session}").json()
        closed = b.delete(f"/v1/sessions/{session}")
        after = client.task_status("default", "worker", 0)

    assert spec["missing_tasks"] == []
    assert (found["state"], closed.status_code) == ("ready", 200)
    assert (after.state, after.incarnation, after.since) == ("ready", before.incarnation, before.since)
