"""Programs started by hand, as a user starts them: listed as runs, with progress, curve and end, unchanged themselves.

Nothing but `python program.py` runs here, with TENFOLD_CONTROL in its environment or a target that names the service.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.ports import free_addresses
from support.run_programs import MONITORED, TRAINER, Service, tenfold
from support.task_processes import CLI, PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx

    from support.gates import Gate
    from tenfold.cli.children import Children

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits.py"


class Programs:
    """Processes of programs, each with its output in a file. None outlives the test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        """`python COMMAND`, in an environment without Tenfold's variables but these."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("TENFOLD_")}
        if "TENFOLD_CACHE_DIR" in os.environ:
            environment.setdefault("TENFOLD_CACHE_DIR", os.environ["TENFOLD_CACHE_DIR"])
        with (self._folder / f"{name}.out").open("wb") as out:
            made = subprocess.Popen(
                [sys.executable, *command],
                env={**inherited, **environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
            )
        self._started[name] = made
        return made

    def wait(self, name: str) -> tuple[int, str]:
        """The exit code, negative for a signal, and what it wrote."""
        code = self._started[name].wait(PATIENCE)
        return code, self.output(name)

    def output(self, name: str) -> str:
        return (self._folder / f"{name}.out").read_text()

    def close(self) -> None:
        for process in self._started.values():
            process.kill()
            process.wait()


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    folder = tmp_path / "programs"
    folder.mkdir()
    with contextlib.closing(Programs(folder)) as made:
        yield made


def runs(api: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get("/v1/runs").json()["runs"]
    return found


def run_until(api: httpx.Client, wanted: Any) -> dict[str, Any]:
    """The newest run as soon as there is one of which `wanted` holds."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = runs(api)
        if found and wanted(found[0]):
            return found[0]
        # programs report once a second: events tell of what changes meanwhile, and else a moment passes
        api.get("/v1/events", params={"kind": "run", "wait": "200ms"})
    raise AssertionError(f"this did not come: {runs(api)}")


def ended(api: httpx.Client, run: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/v1/runs/{run['name']}", params={"ended": "true", "wait": "60s"}).json()
    return found


def curve_of(api: httpx.Client, run: dict[str, Any], name: str) -> list[int]:
    """The steps of the points of a curve, of the first task that has it."""
    tasks = api.get(f"/v1/runs/{run['name']}/progress").json()["tasks"]
    return next((each["curves"][name]["steps"] for each in tasks if name in each["curves"]), [])


def wait_until_registered(api: httpx.Client) -> None:
    """Registering goes on beside the programs: until all tasks of their cluster have."""
    deadline, version = time.monotonic() + PATIENCE, 0
    while time.monotonic() < deadline:
        spec = api.get("/v1/clusters/default/spec", params={"after": version, "wait": "1s"}).json()
        if spec.get("complete"):
            return
        version = spec.get("version", 0)
    raise AssertionError(f"not all tasks register: {spec}")


def task_until(api: httpx.Client, job: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first task of a job as soon as it is one of which `wanted` holds."""
    deadline, version = time.monotonic() + PATIENCE, 0
    while time.monotonic() < deadline:
        answer = api.get("/v1/clusters/default/spec", params={"after": version, "wait": "1s"})
        task = api.get(f"/v1/clusters/default/tasks/{job}/0").json()
        if task.get("state") and wanted(task):
            return dict(task)
        version = answer.json().get("version", 0)
    raise AssertionError(f"this did not come: {task}")


def as_task(cluster: dict[str, list[str]], job: str, index: int, service: Service) -> dict[str, str]:
    config = {"cluster": cluster, "task": {"type": job, "index": index}}
    return {"TF_CONFIG": json.dumps(config), "TENFOLD_CONTROL": service.url, "TENFOLD_ATTEMPT": "1"}


def a_cluster(ps: int, workers: int) -> dict[str, list[str]]:
    free = free_addresses(ps + workers)
    return {"ps": free[:ps], "worker": free[ps:]}


@pytest.mark.thorough
def test_a_client_of_a_cluster_is_listed_with_progress_curve_and_end(
    children: Children, programs: Programs, api: httpx.Client, service: Service
) -> None:
    control = ("--control", service.url)
    cluster = ("--cluster", f"tenfold://{service.url.removeprefix('http://')}/default")
    for job in ("ps", "worker"):
        children.start(job, [*CLI, "task", *control, "--job", job, "--bind", "127.0.0.1:0"])
    api.put("/v1/clusters/default", json={"jobs": {"ps": 1, "worker": 1}})

    programs.start("long", str(DIGITS), *cluster, "--steps", "100000000")
    running = run_until(api, lambda run: run["progress"] and run["progress"]["examples_per_second"])
    shown = tenfold("status", *control).output
    tenfold("stop", running["name"], *control)
    stopped, long = ended(api, running), programs.wait("long")
    programs.start("short", str(DIGITS), *cluster, "--steps", "100000000", TENFOLD_REPORT="1")
    second = run_until(api, lambda run: run["name"] != running["name"] and len(curve_of(api, run, "Mean")) > 1)
    programs.start("other", str(DIGITS), *cluster, "--steps", "1", TENFOLD_CONTROL=service.url)
    other = programs.wait("other")
    both = api.get(f"/v1/runs/{second['name']}").json()
    steps = curve_of(api, second, "Mean")

    assert (running["launcher"], running["state"], running["jobs"]) == ("external", "RUNNING", {"client": 1})
    assert running["entrypoint"][1] == str(DIGITS)
    assert running["progress"]["global_step"] is not None
    assert set(running["progress"]["values"]) == {"Mean"}
    speeds = [running["progress"][name] for name in ("steps_per_second", "examples_per_second")]
    # batches of 64; what the two are measured over begins and ends at different moments
    assert speeds[0] is None or 8 < speeds[1] / speeds[0] < 512
    assert f"{running['name']}  RUNNING" in shown
    assert "step " in shown
    assert (stopped["state"], stopped["reason"], long[0]) == ("STOPPED", "stopped by request", -signal.SIGTERM)
    assert len(steps) > 1
    # another client of the same program on the same cluster trains the same variables: it is the same run
    assert (other[0], len(runs(api)), both["jobs"]) == (0, 2, {"client": 2})
    assert [each["state"] for each in both["tasks"]] == ["running", "succeeded"]


def test_the_processes_of_a_cluster_by_hand_are_one_run(
    programs: Programs, api: httpx.Client, service: Service, gate: Gate, tmp_path: Path
) -> None:
    program, model = tmp_path / "trainer.py", tmp_path / "model"
    program.write_text(MONITORED)
    cluster = a_cluster(1, 2)
    for job, index in (("ps", 0), ("worker", 0), ("worker", 1)):
        environment = as_task(cluster, job, index, service)
        programs.start(f"{job}{index}", str(program), str(gate.port), str(model), **environment)
    gate.wait_for("worker/0 1", "worker/1 1")
    all_there = run_until(api, lambda run: [task["state"] for task in run["tasks"]].count("running") == 3)
    running = run_until(api, lambda run: run["progress"] and run["progress"]["checkpoint"])
    wait_until_registered(api)
    jobs = api.get("/v1/clusters/default/jobs").json()["jobs"]
    for name in ("worker/0 1", "worker/1 1"):
        gate.tell(name)
    over = ended(api, running)
    codes = [programs.wait(f"worker{index}")[0] for index in (0, 1)]
    shown = tenfold("runs", over["name"], "--control", service.url).output

    assert (len(runs(api)), all_there["name"], codes) == (1, running["name"], [0, 0])
    assert (running["launcher"], running["jobs"]) == ("external", {"ps": 1, "worker": 2})
    # the other worker may have stepped before the chief's first checkpoint
    assert running["progress"]["checkpoint"].startswith(f"{model}/model.ckpt-")
    # the tasks are registered, too, at the addresses of their cluster
    assert {task["address"] for job in jobs for task in job["tasks"]} == {*cluster["ps"], *cluster["worker"]}
    assert (over["state"], over["reason"]) == ("SUCCEEDED", "its programs have ended")
    assert over["progress"]["global_step"] > 0
    assert "SUCCEEDED" in shown


@pytest.mark.thorough
def test_a_failure_by_hand_shows_node_and_task(
    programs: Programs, api: httpx.Client, service: Service, gate: Gate, tmp_path: Path
) -> None:
    program = tmp_path / "trainer.py"
    program.write_text(TRAINER)
    cluster = a_cluster(1, 1)
    for job in ("ps", "worker"):
        programs.start(job, str(program), str(gate.port), **as_task(cluster, job, 0, service))
    gate.wait_for("worker/0 1")
    wait_until_registered(api)
    gate.tell("worker/0 1", "fail")
    code, output = programs.wait("worker")
    failed = run_until(api, lambda run: run["state"] != "RUNNING")
    shown = tenfold("runs", failed["name"], "--control", service.url).output
    task = api.get("/v1/clusters/default/jobs/worker/tasks/0").json()

    assert (code, "InvalidArgumentError" in output) == (1, True)
    named = "worker/0 failed: InvalidArgumentError, node checked, task /job:ps/replica:0/task:0: "
    assert (failed["state"], failed["reason"][: len(named)]) == ("FAILED", named)
    assert failed["tasks"][1]["error"]["node"] == "checked"
    assert "node checked, task /job:ps/replica:0/task:0" in shown
    assert (task["state"], task["exit_code"]) == ("lost", 1)


#: Runs a step at the shared server of its process, then does what it is told.
LOCAL = """
import sys
import tenfold as tf

with tf.Session() as session:
    session.run(tf.constant(1.0, name="loss"))
print("ran", flush=True)
"""


THOROUGH = pytest.mark.thorough


@pytest.mark.parametrize(
    ("last", "code", "state", "error"),
    [
        pytest.param("", 0, "SUCCEEDED", None, marks=THOROUGH),
        ("sys.exit(3)", 3, "FAILED", "client/0 failed: SystemExit: sys.exit with exit code 3"),
        pytest.param("sys.exit('no data')", 1, "FAILED", "client/0 failed: SystemExit: no data", marks=THOROUGH),
        pytest.param("try:\n    sys.exit(3)\nexcept SystemExit:\n    pass", 0, "SUCCEEDED", None, marks=THOROUGH),
        pytest.param("raise ValueError('bad\\nflag')", 1, "FAILED", "client/0 failed: ValueError: bad", marks=THOROUGH),
        pytest.param("raise KeyboardInterrupt", None, "STOPPED", "client/0 was stopped", marks=THOROUGH),
    ],
    ids=["in-order", "exit-code", "exit-text", "caught", "error", "interrupt"],
)
def test_how_a_program_ends(
    programs: Programs,
    api: httpx.Client,
    service: Service,
    tmp_path: Path,
    last: str,
    code: int | None,
    state: str,
    error: str | None,
) -> None:
    program = tmp_path / "program.py"
    program.write_text(LOCAL + last)
    programs.start("local", str(program), TENFOLD_CONTROL=service.url)
    told = programs.wait("local")
    found = run_until(api, lambda run: run["state"] != "RUNNING")

    # a process may end by SIGINT or with the code of a shell for that
    assert (told[0] if code is not None else None, found["state"]) == (code, state)
    assert found["reason"] == (error or "its programs have ended")


@pytest.mark.thorough
def test_a_program_that_is_killed_is_noticed(
    children: Children, programs: Programs, tmp_path: Path, gate: Gate
) -> None:
    service = Service(children, tmp_path, TENFOLD_CONTROL_LEASE_TTL="2")
    program = tmp_path / "trainer.py"
    program.write_text(TRAINER)
    cluster = a_cluster(1, 1)
    started = {
        job: programs.start(job, str(program), str(gate.port), **as_task(cluster, job, 0, service))
        for job in ("ps", "worker")
    }
    gate.wait_for("worker/0 1")
    with service.client() as api:
        run_until(api, lambda run: run["tasks"][1]["state"] == "running")
        started["worker"].kill()
        failed = run_until(api, lambda run: run["state"] != "RUNNING")

    assert failed["state"] == "FAILED"
    assert failed["reason"].startswith("worker/0 failed: nothing was heard of it for ")


@pytest.mark.thorough
def test_a_server_that_is_started_again_at_once_gets_its_place_back(
    children: Children, programs: Programs, tmp_path: Path, gate: Gate
) -> None:
    service = Service(children, tmp_path, TENFOLD_CONTROL_LEASE_TTL="12")
    program = tmp_path / "trainer.py"
    program.write_text(TRAINER)
    told = as_task(a_cluster(1, 1), "ps", 0, service)
    first = programs.start("ps", str(program), str(gate.port), **told)
    with service.client() as api:
        before = task_until(api, "ps", lambda task: task["state"] == "ready")
        first.kill()
        first.wait(PATIENCE)
        programs.start("again", str(program), str(gate.port), **told)
        after = task_until(api, "ps", lambda task: task["incarnation"] != before["incarnation"])

    assert (after["state"], after["address"]) == ("ready", before["address"])


#: Learns its cluster and its place from the resolver alone.
RESOLVED = """
import os
import tenfold as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
cluster, job, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
with tf.device("/job:ps/task:0"):
    v = tf.get_variable("v", initializer=2.0)
with tf.Session(resolver.master(rpc_layer="grpc")) as session:
    session.run(v.initializer)
    print(job, index, session.run(v * 3.0), "TF_CONFIG" in os.environ, flush=True)
"""


@pytest.mark.thorough
def test_a_program_without_a_cluster_gets_one_from_the_service(
    programs: Programs, api: httpx.Client, service: Service, tmp_path: Path
) -> None:
    program = tmp_path / "resolved.py"
    program.write_text(RESOLVED)
    declared = {"jobs": {"ps": 1, "worker": 2}, "stop_with_workers": True}
    for name, job in (("ps", "ps"), ("one", "worker"), ("two", "worker")):
        programs.start(name, "-W", "error", str(program), TENFOLD_CONTROL=service.url, TENFOLD_JOB=job)
    # programs wait for their cluster to be declared
    api.put("/v1/clusters/default", json=declared)
    said = {programs.wait(name) for name in ("one", "two")}
    found = run_until(api, lambda run: run["state"] != "RUNNING")
    jobs = api.get("/v1/clusters/default/jobs").json()["jobs"]

    # each of them took the next free index, and served at the address that it had registered
    assert said == {(0, "worker 0 6.0 True\n"), (0, "worker 1 6.0 True\n")}
    assert programs.wait("ps")[0] == 0
    assert (found["state"], found["jobs"], len(runs(api))) == ("SUCCEEDED", declared["jobs"], 1)
    assert {task["state"] for job in jobs for task in job["tasks"] if job["name"] == "worker"} == {"finished"}


@pytest.mark.thorough
def test_a_place_that_is_not_to_be_had_is_an_error(programs: Programs, api: httpx.Client, service: Service) -> None:
    api.put("/v1/clusters/default", json={"jobs": {"worker": 1}})
    script = "import tenfold as tf; tf.distribute.cluster_resolver.TFConfigClusterResolver().cluster_spec()"
    told = {"TENFOLD_CONTROL": service.url, "TENFOLD_JOB": "ps"}
    programs.start("undeclared", "-c", script, **told)
    programs.start("no-number", "-c", script, **told, TENFOLD_INDEX="x")
    undeclared, number = programs.wait("undeclared"), programs.wait("no-number")

    assert (undeclared[0], "NotFoundError" in undeclared[1]) == (1, True), undeclared
    assert (number[0], "TENFOLD_INDEX must be a number from 0, not 'x'" in number[1]) == (1, True), number


@pytest.fixture
def mute() -> Iterator[str]:
    """The address of a service that takes connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("kind", ["away", pytest.param("mute", marks=THOROUGH)])
def test_a_service_that_does_not_answer_does_not_disturb(programs: Programs, mute: str, kind: str) -> None:
    url = mute if kind == "mute" else f"http://{free_addresses(1)[0]}"
    server = "\nserver = tf.train.Server({'worker': [sys.argv[1]]})\nprint(server.target)\nserver.stop()\n"
    command = ("-W", "error", "-c", LOCAL + server, free_addresses(1)[0])
    programs.start("without", *command)
    programs.wait("without")
    began = time.monotonic()
    programs.start("with", *command, TENFOLD_CONTROL=url)
    code, output = programs.wait("with")
    took = time.monotonic() - began

    # said once at most, at any moment, and the end is not held up for long: far below the time-outs of all requests
    said = "the program continues without the control service: "
    lines = [line for line in output.splitlines() if not line.startswith(said)]
    assert (code, lines[0], lines[1].startswith("grpc://"), len(lines)) == (0, "ran", True, 2), output
    assert output.count(said) <= 1
    assert took < 30


@pytest.mark.thorough
def test_nothing_is_told_where_it_is_turned_off(programs: Programs, api: httpx.Client, service: Service) -> None:
    programs.start("quiet", "-c", LOCAL, TENFOLD_CONTROL=service.url, TENFOLD_REPORT="0")
    code, _ = programs.wait("quiet")

    assert (code, runs(api)) == (0, [])


@pytest.mark.thorough
def test_tenfold_run_shows_progress_curve_and_end(
    children: Children, api: httpx.Client, service: Service, gate: Gate, tmp_path: Path
) -> None:
    program, model = tmp_path / "trainer.py", tmp_path / "model"
    program.write_text(MONITORED)
    command = [*CLI, "run", "--ps", "1", "--workers", "1", str(program), str(gate.port), str(model)]
    children.start("run", command, env={"TENFOLD_CONTROL": service.url})
    gate.wait_for("worker/0 1")
    running = run_until(api, lambda run: run["progress"] and len(curve_of(api, run, "loss")) > 1)
    shown = tenfold("status", "--control", service.url).output
    gate.tell("worker/0 1")
    over = ended(api, running)

    assert children.wait_for_exit(["run"], PATIENCE) == ("run", 0)
    assert len(runs(api)) == 1
    assert (running["launcher"], running["progress"]["values"]["loss"]) == ("external", pytest.approx(1.0, abs=0.2))
    assert ("step " in shown, "cluster default is not declared" in shown) == (True, True), shown
    assert (over["state"], over["reason"]) == ("SUCCEEDED", "every worker has finished")
