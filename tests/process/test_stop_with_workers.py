"""Parameter servers end with their workers if they are told so: by the control service, or by their own option."""

from __future__ import annotations

import json
import os
import signal
import socket
from typing import TYPE_CHECKING

import psutil
import pytest
from click.testing import CliRunner

from support.ports import free_addresses
from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children
from tenfold.cli.local import CONTROL, TASK_STAGE
from tenfold.cli.main import cli
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LISTENING = r"listening on \w+://(\S+)"

#: A worker that trains against a parameter server and ends; or, as ps, a server that joins.
PROGRAM = """
import json, os, socket, sys
import tenfold as tf

config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
server = tf.train.Server(config["cluster"], job_name=job, task_index=index)
if job == "ps":
    print("joins", flush=True)
    try:
        server.join()
    finally:
        print("joined", flush=True)
    sys.exit("join returned")
with tf.device("/job:ps/task:0"):
    v = tf.get_variable("v", initializer=1.0)
with tf.Session(server.target) as session:
    session.run(v.initializer)
    print("trained", session.run(v.assign_add(1.0)), flush=True)
socket.create_connection(("127.0.0.1", int(sys.argv[1]))).recv(1)
"""

#: A worker that registers itself, trains on a parameter server that registered too, and leaves in order.
REGISTERS = """
import os, sys
import tenfold as tf
from tenfold.control import ControlClient, TaskRegistration

address = sys.argv[1]
control = ControlClient(os.environ["TENFOLD_CONTROL"])
with control, TaskRegistration(control, "default", "worker", 0, address):
    spec = control.wait_for_spec("default", until_complete=True)
    server = tf.train.Server(spec.cluster_spec(), job_name="worker", task_index=0)
    with tf.device("/job:ps/task:0"):
        more = tf.assign_add(tf.train.get_or_create_global_step(), 1)
    with tf.train.MonitoredTrainingSession(server.target, hooks=[tf.train.StopAtStepHook(last_step=5)]) as session:
        while not session.should_stop():
            session.run(more)
"""


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TENFOLD_STOP")]:
        monkeypatch.delenv(name)


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as started:
        yield started


def start_control(children: Children, folder: Path, jobs: str, *options: str) -> str:
    database = str(folder / "control.db")
    children.start(CONTROL, [*CLI, "control", "--port", "0", "--database", database, "--jobs", jobs, *options])
    return "http://" + children.wait_for_line(CONTROL, LISTENING, PATIENCE)[1]


def start_task(children: Children, name: str, *options: str) -> None:
    job, _, index = name.partition("/")
    children.start(name, [*CLI, "task", "--job", job, "--index", index, *options], stage=TASK_STAGE)
    children.wait_for_line(name, LISTENING, PATIENCE)


def end(children: Children, name: str, number: int) -> None:
    """Ends a task by a signal; returns once it is gone."""
    os.kill(children.pid(name), number)
    assert children.wait_for_exit([name], PATIENCE) == (name, 143 if number == signal.SIGTERM else -number)


def finish(children: Children, name: str, url: str) -> None:
    """Says that the task has finished; returns once it has ended by itself."""
    job, _, index = name.partition("/")
    with ControlClient(url) as control:
        control.end_task("default", job, int(index), state="finished", reason="its client is done")
    assert children.wait_for_exit([name], PATIENCE) == (name, 0)


def states(url: str) -> dict[str, str]:
    with ControlClient(url) as control:
        return {task["name"]: task["state"] for job in control.job_status("default")["jobs"] for task in job["tasks"]}


def test_the_last_worker_takes_the_parameter_servers_along(children: Children, tmp_path: Path) -> None:
    url = start_control(children, tmp_path, "ps=2,chief=1", "--stop-with-workers")
    for name in ("ps/0", "ps/1", "chief/0"):
        start_task(children, name, "--control", url)

    finish(children, "chief/0", url)

    assert [children.wait_for_exit([name], PATIENCE) for name in ("ps/0", "ps/1")] == [("ps/0", 0), ("ps/1", 0)]
    assert set(states(url).values()) == {"finished"}


@pytest.mark.thorough
def test_a_training_that_is_over_is_finished_in_the_status(children: Children, tmp_path: Path) -> None:
    url = start_control(children, tmp_path, "ps=1,worker=1", "--stop-with-workers")
    start_task(children, "ps/0", "--control", url)
    program = tmp_path / "program.py"
    program.write_text(REGISTERS)

    children.start("worker/0", [str(program), *free_addresses(1)], env={"TENFOLD_CONTROL": url})

    assert children.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", 0), children.failure("worker/0")
    assert children.wait_for_exit(["ps/0"], PATIENCE) == ("ps/0", 0)
    shown = CliRunner().invoke(cli, ["status", "--control", url])
    assert (shown.exit_code, shown.output.count("finished with exit code 0")) == (0, 2), shown.output
    with ControlClient(url) as control:
        (ps, worker) = (control.job_status("default", job) for job in ("ps", "worker"))
        assert control.cluster("default")["state"] == "finished"
    assert [(job["state"], job["tasks"][0]["exit_code"]) for job in (ps, worker)] == [("finished", 0)] * 2


@pytest.mark.long
def test_a_killed_worker_is_waited_for_and_one_that_came_back_counts(children: Children, tmp_path: Path) -> None:
    url = start_control(children, tmp_path, "ps=1,worker=1", "--stop-with-workers")
    for name in ("ps/0", "worker/0"):
        start_task(children, name, "--control", url)

    with ControlClient(url) as control:
        complete = control.spec("default")
        end(children, "worker/0", signal.SIGKILL)
        lost = control.wait_for_spec("default", after=complete.version, timeout=PATIENCE)
        assert lost.states["/job:worker/replica:0/task:0"] == "lost"
        children.forget("worker/0")
        start_task(children, "worker/0", "--control", url)
        assert control.task_status("default", "ps", 0)["state"] == "ready"
    finish(children, "worker/0", url)

    assert children.wait_for_exit(["ps/0"], PATIENCE) == ("ps/0", 0)


@pytest.mark.thorough
def test_a_stopped_worker_leaves_the_parameter_server_and_its_variables(children: Children, tmp_path: Path) -> None:
    import tenfold as tf

    url = start_control(children, tmp_path, "ps=1,worker=1", "--stop-with-workers")
    for name in ("ps/0", "worker/0"):
        start_task(children, name, "--control", url)
    with ControlClient(url) as control:
        target = "grpc://" + control.spec("default").addresses["ps"][0]
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            weight = tf.get_variable("weight", initializer=7.0)
        only_ps = tf.ConfigProto(device_filters=["/job:ps"])
        with tf.Session(target, graph=weight.graph, config=only_ps) as session:
            session.run(weight.initializer)

            end(children, "worker/0", signal.SIGTERM)

            shown = CliRunner().invoke(cli, ["status", "--control", url])
            assert shown.exit_code == 1, shown.output
            assert "/job:worker/task:0 is stopped: stopped by SIGTERM" in shown.output
            assert control.task_status("default", "ps", 0)["state"] == "ready"
            assert session.run(weight) == 7.0


@pytest.mark.thorough
def test_a_cluster_can_be_told_later(children: Children, tmp_path: Path) -> None:
    url = start_control(children, tmp_path, "ps=1,worker=1")
    for name in ("ps/0", "worker/0"):
        start_task(children, name, "--control", url)
    finish(children, "worker/0", url)
    assert states(url)["/job:ps/replica:0/task:0"] == "ready"

    with ControlClient(url) as control:
        control.declare_cluster("default", {"ps": 1, "worker": 1}, stop_with_workers=True)

    assert children.wait_for_exit(["ps/0"], PATIENCE) == ("ps/0", 0)
    assert states(url)["/job:ps/replica:0/task:0"] == "finished"


@pytest.mark.thorough
def test_programs_ask_the_control_service_and_tasks_take_an_option(children: Children, tmp_path: Path) -> None:
    """Two parameter servers, a program that joins and a `tenfold task`; the worker is a program that trains."""
    url = start_control(children, tmp_path, "ps=2,worker=1", "--stop-with-workers")
    cluster = {"ps": free_addresses(2), "worker": free_addresses(1)}
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with socket.create_server(("127.0.0.1", 0)) as gate:
        gate.settimeout(PATIENCE)
        for job in ("ps", "worker"):
            config = json.dumps({"cluster": cluster, "task": {"type": job, "index": 0}})
            arguments = [str(program), str(gate.getsockname()[1])]
            children.start(f"{job}/0", arguments, env={"TF_CONFIG": config, "TENFOLD_CONTROL": url})
        start_task(children, "ps/1", "--cluster", json.dumps(cluster), "--stop-with-workers")
        children.wait_for_line("ps/0", "joins", PATIENCE)
        worker, _ = gate.accept()
        children.wait_for_line("worker/0", r"trained 2\.0", PATIENCE)

        worker.close()
        ended = sorted(children.wait_for_exit([name], PATIENCE) or () for name in ("worker/0", "ps/0", "ps/1"))

    assert ended == [("ps/0", 0), ("ps/1", 0), ("worker/0", 0)]
    children.wait_for_line("ps/0", "^joined$", 1)


@pytest.mark.thorough
def test_up_ends_when_its_workers_have(children: Children) -> None:
    children.start("up", [*CLI, "up", "--ps", "1", "--workers", "1", "--control-port", "0", "--stop-with-workers"])
    children.wait_for_line("up", "Ctrl-C stops all of it", PATIENCE)
    url = children.wait_for_line("up", r"^control service +(\S+)$", 1)[1]
    family = psutil.Process(children.pid("up")).children(recursive=True)

    with ControlClient(url) as control:
        control.end_task("default", "worker", 0, state="finished")

    children.wait_for_line("up", r"^worker/0 has finished\.", PATIENCE)
    children.wait_for_line("up", r"^ps/0 has finished\.", PATIENCE)
    assert children.wait_for_exit(["up"], PATIENCE) == ("up", 0)
    assert not psutil.wait_procs(family, timeout=30)[1]
