"""Submitted runs as real processes: from submission to verdict, by httpx; the service may be killed in between."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import pytest

from support.process_trees import left_alive
from support.run_programs import MONITORED, TRAINER, Service, tenfold
from support.task_processes import CLI, PATIENCE
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from support.gates import Gate
    from tenfold.cli.children import Children


def submit(api: httpx.Client, folder: Path, gate: Gate, text: str = TRAINER, **more: Any) -> dict[str, Any]:
    (folder / "trainer.py").write_text(text)
    body = {
        "entrypoint": ["python", "trainer.py", str(gate.port)],
        "working_dir": str(folder),
        "jobs": {"ps": 1, "worker": 2},
        **more,
    }
    answer = api.post("/v1/runs", json=body)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


def until(api: httpx.Client, run: dict[str, Any], **params: Any) -> dict[str, Any]:
    """The run when it has ended, or with `after` when its version is above that one."""
    wanted = {"ended": "true"} if "after" not in params else {}
    answer = api.get(f"/v1/runs/{run['name']}", params={"wait": "60s", **wanted, **params})
    found: dict[str, Any] = answer.json()
    return found


def task(run: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in run["tasks"] if f"{each['job']}/{each['index']}" == name)


@pytest.mark.thorough
def test_a_worker_that_is_killed_is_started_again_with_all_others_and_the_run_succeeds(
    service: Service, api: httpx.Client, gate: Gate, tmp_path: Path
) -> None:
    run = submit(api, tmp_path, gate, restarts={"limit": 2, "backoff": 0.05})
    gate.wait_for("worker/0 1", "worker/1 1")
    running = api.get(f"/v1/runs/{run['name']}").json()

    os.kill(task(running, "worker/1")["pid"], signal.SIGKILL)
    gate.wait_for("worker/0 2", "worker/1 2")
    second = api.get(f"/v1/runs/{run['name']}").json()
    for name in ("worker/0 2", "worker/1 2"):
        gate.tell(name)
    ended = until(api, run)

    assert (running["state"], [each["state"] for each in running["tasks"]]) == ("RUNNING", ["running"] * 3)
    assert (second["state"], second["attempt"], second["restarts_used"]) == ("RUNNING", 2, 1)
    assert (ended["state"], ended["reason"]) == ("SUCCEEDED", "every worker has finished")
    assert [each["starts"] for each in ended["tasks"]] == [2, 2, 2]
    assert [task(ended, f"worker/{index}")["exit_code"] for index in (0, 1)] == [0, 0]
    assert not left_alive([each["pid"] for each in (*running["tasks"], *ended["tasks"])])
    shown = tenfold("runs", run["name"], "--control", service.url)
    assert (shown.exit_code, "attempt   2, 1 of 2 restarts used" in shown.output) == (0, True), shown.output


def test_a_program_that_fails_tells_node_and_task_and_its_last_lines(
    service: Service, api: httpx.Client, gate: Gate, tmp_path: Path
) -> None:
    run = submit(api, tmp_path, gate, grace=0)
    gate.wait_for("worker/0 1", "worker/1 1")
    gate.tell("worker/1 1", "fail")

    failed = until(api, run)
    worker = task(failed, "worker/1")
    logs = api.get(f"/v1/runs/{run['name']}/logs", params={"task": "worker/1", "tail": 50}).json()["lines"]
    text = api.get(f"/v1/runs/{run['name']}/logs", params={"format": "text"}).text

    assert (failed["state"], worker["state"], worker["exit_code"]) == ("FAILED", "failed", 1)
    assert worker["error"]["type"] == "InvalidArgumentError"
    assert worker["error"]["node"] == "checked"
    assert worker["error"]["task"] == "/job:ps/replica:0/task:0"
    named = "worker/1 ended with exit code 1: InvalidArgumentError, node checked, task /job:ps/replica:0/task:0: "
    assert failed["reason"].startswith(named)
    assert task(failed, "worker/0")["state"] == "stopped"
    assert worker["last_lines"] == [line["text"] for line in logs]
    assert "told to fail" in worker["last_lines"]
    # the traceback begins with the program's own line
    first = worker["last_lines"].index("Traceback (most recent call last):")
    assert worker["last_lines"][first + 1] == '  File "trainer.py", line 22, in <module>'
    assert [line["level"] for line in logs if line["text"].startswith("Traceback")] == ["ERROR"]
    assert " ERROR   worker/1 Traceback (most recent call last):\n" in text
    shown = tenfold("runs", run["name"], "--control", service.url)
    assert shown.exit_code == 1
    assert "InvalidArgumentError, node checked" in " ".join(shown.output.split())


def test_a_killed_service_finds_its_run_again_and_starts_nothing_twice(
    service: Service, api: httpx.Client, gate: Gate, tmp_path: Path
) -> None:
    run = submit(api, tmp_path, gate, submission_id="once", jobs={"ps": 1, "worker": 1})
    gate.wait_for("worker/0 1")
    before = api.get(f"/v1/runs/{run['name']}").json()

    service.kill()
    service.start()
    found = api.get(f"/v1/runs/{run['name']}").json()
    again = submit(api, tmp_path, gate, submission_id="once", jobs={"ps": 1, "worker": 1})
    gate.tell("worker/0 1")
    ended = until(api, run)

    assert (found["state"], again["name"]) == ("RUNNING", run["name"])
    assert [each["pid"] for each in found["tasks"]] == [each["pid"] for each in before["tasks"]]
    assert (ended["state"], [each["starts"] for each in ended["tasks"]]) == ("SUCCEEDED", [1, 1])


@pytest.mark.thorough
def test_an_end_that_no_service_heard_of_is_known_to_the_next_one(
    service: Service, api: httpx.Client, gate: Gate, tmp_path: Path
) -> None:
    run = submit(api, tmp_path, gate, jobs={"worker": 1}, text=TRAINER.replace('"/job:ps/task:0"', '""'))
    gate.wait_for("worker/0 1")
    (supervised,) = api.get(f"/v1/runs/{run['name']}").json()["tasks"]
    supervisor = psutil.Process(supervised["pid"]).parent()
    assert supervisor is not None

    service.kill()
    gate.tell("worker/0 1", "fail")
    assert not left_alive([supervised["pid"]])
    # it writes down the end, and waits for somebody who listens
    while not (service.runs / run["name"] / "state.json").exists():
        assert psutil.wait_procs([supervisor], timeout=0.05)[1], "it has ended without a word"
    supervisor.kill()
    assert not left_alive([supervisor.pid])
    service.start()
    ended = until(api, run)

    assert ended["state"] == "FAILED"
    assert "worker/0 ended with exit code 1: InvalidArgumentError" in ended["reason"]


@pytest.mark.thorough
def test_a_supervisor_that_is_killed_takes_its_tasks_along_and_fails_the_run(
    service: Service, api: httpx.Client, gate: Gate, tmp_path: Path
) -> None:
    run = submit(api, tmp_path, gate)
    gate.wait_for("worker/0 1", "worker/1 1")
    running = api.get(f"/v1/runs/{run['name']}").json()
    supervisor = psutil.Process(task(running, "ps/0")["pid"]).parent()
    assert supervisor is not None

    supervisor.kill()
    failed = until(api, run)

    assert failed["state"] == "FAILED"
    assert f"its supervisor (process {supervisor.pid} on {socket.gethostname()}) ended" in failed["reason"]
    assert not left_alive([each["pid"] for each in running["tasks"]])


@pytest.mark.thorough
def test_stopping_and_deleting(service: Service, api: httpx.Client, gate: Gate, tmp_path: Path) -> None:
    run = submit(api, tmp_path, gate)
    gate.wait_for("worker/0 1", "worker/1 1")
    running = api.get(f"/v1/runs/{run['name']}").json()

    stopped = tenfold("stop", run["name"], "--reason", "too slow", "--wait", "--control", service.url)
    ended = api.get(f"/v1/runs/{run['name']}").json()
    deleted = tenfold("delete", run["name"], "--control", service.url)

    assert (stopped.exit_code, stopped.output) == (0, f"{run['name']} is STOPPED\n")
    assert (ended["reason"], {each["state"] for each in ended["tasks"]}) == ("too slow", {"stopped"})
    assert not left_alive([each["pid"] for each in running["tasks"]])
    assert (deleted.exit_code, list(service.runs.iterdir())) == (0, [])
    assert api.get(f"/v1/runs/{run['name']}").status_code == 404


def test_a_training_shows_its_progress_without_a_change_to_the_program(
    service: Service, api: httpx.Client, gate: Gate, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    entrypoint = ["python", "trainer.py", str(gate.port), str(folder)]
    run = submit(api, tmp_path, gate, text=MONITORED, entrypoint=entrypoint)
    path = f"/v1/runs/{run['name']}"
    gate.wait_for("worker/0 1", "worker/1 1")
    curves: dict[str, Any] = {"tasks": []}
    # reports come once a second: two points of each worker
    while [len(each["curves"].get("loss", {"steps": ()})["steps"]) > 1 for each in curves["tasks"]].count(True) < 2:
        assert api.get(path, params={"wait": "100ms", "after": 10_000}).json()["state"] != "FAILED"
        curves = api.get(f"{path}/progress").json()
    running = api.get(path).json()
    shown = tenfold("runs", run["name"], "--control", service.url)
    listed = tenfold("runs", "--control", service.url)
    for name in ("worker/0 1", "worker/1 1"):
        gate.tell(name)
    ended = until(api, run)

    # the chief's hooks fetch the global step
    steps = curves["tasks"][-2]["curves"]["loss"]["steps"]
    assert steps == sorted(steps)
    assert running["progress"]["global_step"] > 0
    assert running["progress"]["values"]["loss"] == pytest.approx(1.0, abs=0.1)
    # the chief saves when its session is there: the other worker may have trained by then
    saved = Path(running["progress"]["checkpoint"])
    assert (saved.parent, saved.with_name(f"{saved.name}.index").exists()) == (folder, True)
    step = re.search(r"step ([\d,]+)", shown.output)  # it trains on meanwhile
    assert step is not None
    assert running["progress"]["global_step"] <= int(step[1].replace(",", "")) <= ended["progress"]["global_step"]
    assert re.search(r"· loss [01]\b", shown.output), shown.output
    assert "step " in listed.output
    assert {each["job"] for each in curves["tasks"]} >= {"worker"}
    assert curves["tasks"][-1]["figures"]["resident_bytes"] > 1e6
    assert (ended["state"], ended["progress"]["global_step"] >= steps[-1]) == ("SUCCEEDED", True)


@pytest.mark.thorough
def test_a_run_by_hand_is_listed_and_can_be_stopped(
    children: Children, service: Service, api: httpx.Client, gate: Gate, tmp_path: Path
) -> None:
    program = tmp_path / "trainer.py"
    program.write_text(TRAINER)
    children.start("run", [*CLI, "run", str(program), str(gate.port)], env={"TENFOLD_CONTROL": service.url})
    gate.wait_for("worker/0 1", "worker/1 1")
    (found,) = api.get("/v1/runs").json()["runs"]
    gate.tell("worker/0 1")
    now = found
    while now["tasks"][1]["state"] != "succeeded":
        now = api.get(f"/v1/runs/{found['name']}", params={"after": now["version"], "wait": "10s"}).json()

    api.post(f"/v1/runs/{found['name']}:stop", json={"reason": "enough"})
    ended = until(api, found)

    assert children.wait_for_exit(["run"], PATIENCE) == ("run", 143)
    assert (found["launcher"], found["state"], len(found["tasks"])) == ("external", "RUNNING", 3)
    assert (ended["state"], ended["reason"]) == ("STOPPED", "enough")
    assert [each["state"] for each in ended["tasks"]] == ["stopped", "succeeded", "stopped"]


def test_submit_shows_the_output_and_ends_as_the_run_does(service: Service, tmp_path: Path) -> None:
    program = tmp_path / "trainer.py"
    program.write_text("import os\nprint('hello from', os.environ['NAME'])\n")
    common = ("--control", service.url, "--working-dir", str(tmp_path), "--ps", "0", "--workers", "1", "--wait")

    good = tenfold("submit", *common, "--env", "NAME=me", "--", "python", "trainer.py")
    bad = tenfold("submit", *common, "--", "sh", "-c", "echo no; exit 7")
    missing = tenfold("submit", *common, "--", "python", "trianer.py")
    unsent = tenfold("submit", *common, "--upload", "--", "python", "trianer.py")
    listed = json.loads(tenfold("runs", "--control", service.url, "--json").output)["runs"]

    name = good.output.splitlines()[0]
    assert (good.exit_code, f"{name} has SUCCEEDED: every worker has finished" in good.output) == (0, True), good.output
    assert " INFO    worker/0 hello from me" in good.output
    assert (bad.exit_code, "worker/0 ended with exit code 7" in bad.output) == (1, True), bad.output
    words = f"there is no file 'trianer.py' in the folder {tmp_path}, "
    assert (missing.exit_code, f"{words}in which the run starts." in missing.output) == (1, True), missing.output
    assert "by-symptom.md#no-such-program" in missing.output
    assert (unsent.exit_code, f"{words}which would be sent" in unsent.output) == (2, True), unsent.output
    assert [run["state"] for run in listed] == ["FAILED", "SUCCEEDED"]
    assert listed[1]["name"] == name
    assert not (service.runs / "packages").exists()


@pytest.mark.thorough
def test_a_folder_is_uploaded_and_the_program_runs_in_it(service: Service, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text("secret")
    (folder / "data.txt").write_text("42")
    (folder / "trainer.py").write_text("import os\nprint(open('data.txt').read(), sorted(os.listdir()))\n")
    common = ("--control", service.url, "--working-dir", str(folder), "--ps", "0", "--workers", "1", "--wait")

    shown = [tenfold("submit", *common, "--upload", "--", "python", "trainer.py") for _ in range(2)]

    for each in shown:
        assert (each.exit_code, "42 ['data.txt', 'trainer.py']" in each.output) == (0, True), each.output
    assert len(list((service.runs / "packages").iterdir())) == 1


@pytest.mark.thorough
def test_logs_are_followed_as_they_come(service: Service, api: httpx.Client, gate: Gate, tmp_path: Path) -> None:
    run = submit(api, tmp_path, gate, jobs={"ps": 1, "worker": 1})
    seen: list[str] = []
    stepped = threading.Event()

    def follow() -> None:
        with ControlClient(service.url) as client:
            for line in client.follow_run_logs(run["name"], tasks=["worker/0"]):
                seen.append(line["text"])
                stepped.set()

    thread = threading.Thread(target=follow)
    thread.start()
    gate.wait_for("worker/0 1")
    assert stepped.wait(PATIENCE)
    gate.tell("worker/0 1")
    thread.join(PATIENCE)

    assert not thread.is_alive()
    assert seen == ["step 2.0", "told to go"]


#: Records a parameter, a curve, a log and an artifact, and is done.
BRIEF = """
import argparse, os
import tenfold as tf

options = argparse.ArgumentParser()
options.add_argument("--lr", type=float)
with open(os.path.join(os.environ["TENFOLD_OUTPUT"], "note.txt"), "w") as file:
    file.write("kept")
loss = tf.constant(options.parse_args().lr, name="loss")
with tf.Session() as session:
    print("trained to", session.run(loss))
"""
#: Says that it runs, and runs on.
ENDLESS = """
import socket, sys

with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as gate:
    gate.sendall(b"worker/0 1")
    gate.recv(1)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.thorough)])
def test_runs_of_up_end_with_it_and_are_there_at_its_next_start(
    children: Children, gate: Gate, end: signal.Signals, tmp_path: Path
) -> None:
    def up(name: str, *options: str) -> str:
        children.start(name, [*CLI, "up", *options, "--control-port", "0"], env={"XDG_STATE_HOME": str(tmp_path)})
        children.wait_for_line(name, "Ctrl-C stops all of it", PATIENCE)
        return children.wait_for_line(name, r"^control service +(\S+)$", 1)[1]

    (tmp_path / "brief.py").write_text(BRIEF)
    with httpx.Client(base_url=up("up", "--ps", "1", "--workers", "0"), trust_env=False, timeout=PATIENCE) as api:
        one_worker: dict[str, Any] = {"jobs": {"worker": 1}}
        cut = submit(api, tmp_path, gate, ENDLESS, **one_worker)["name"]
        brief = ["python", "brief.py", "--lr", "0.25"]
        done = submit(api, tmp_path, gate, ENDLESS, entrypoint=brief, **one_worker)["name"]
        gate.wait_for("worker/0 1")
        before = api.get(f"/v1/runs/{done}", params={"ended": "true", "wait": "60s"}).json()
        curves = api.get(f"/v1/runs/{done}/progress").json()
        pids = [each["pid"] for each in api.get(f"/v1/runs/{cut}").json()["tasks"]]
    os.kill(children.pid("up"), end)
    ended = children.wait_for_exit(["up"], PATIENCE)
    # another size than before, and as early as possible: what a killed one left still ends
    again = up("again", "--ps", "0", "--workers", "1")
    with httpx.Client(base_url=again, trust_env=False, timeout=PATIENCE) as api:
        stopped = api.get(f"/v1/runs/{cut}", params={"ended": "true", "wait": "60s"}).json()
        logs = api.get(f"/v1/runs/{done}/logs", params={"format": "text"}).text
        found = [api.get(f"/v1/runs/{done}").json(), api.get(f"/v1/runs/{done}/progress").json()]
        note = api.get(f"/v1/runs/{done}/artifacts/note.txt").text
        cluster = api.get("/v1/clusters/default").json()
    listed = tenfold("runs", "--control", again).output

    assert ended == ("up", 130 if end == signal.SIGINT else -signal.SIGKILL)
    assert not left_alive(pids)
    assert stopped["state"] in ("STOPPED", "FAILED")
    assert found == [before, curves]
    assert (before["state"], before["parameters"]) == ("SUCCEEDED", {"lr": 0.25})
    assert curves["tasks"][0]["curves"]["loss"]["values"] == [0.25]
    assert ("trained to 0.25" in logs, note) == (True, "kept")
    assert all(any(name in line for line in listed.splitlines()) for name in (cut, done))
    assert (cluster["state"], cluster["jobs"]) == ("ready", {"worker": 1})
    how = "was killed" if end == signal.SIGKILL else "ended"
    assert children.wait_for_line("again", rf"Found 2 runs in .*; 1 was running when the last `tenfold up` {how}:", 1)
    assert children.wait_for_line("again", rf"^  {cut} is (STOPPED|FAILED|still ending)\.", 1)


@pytest.mark.thorough
def test_two_ups_do_not_share_a_database(children: Children, tmp_path: Path) -> None:
    given = ["up", "--ps", "0", "--workers", "1", "--control-port", "0"]
    for name in ("first", "second"):
        children.start(name, [*CLI, *given], env={"XDG_STATE_HOME": str(tmp_path)})
        children.wait_for_line(name, "Ctrl-C stops all of it", PATIENCE)
    children.start("third", [*CLI, *given, "--database", str(tmp_path / "tenfold" / "up" / "control.db")])
    refused = children.wait_for_exit(["third"], PATIENCE)

    holder = rf"control.db: `tenfold up` of process {children.pid('first')} \(http://127.0.0.1:\d+\) uses it"
    assert children.wait_for_line("second", holder, 1)
    assert refused == ("third", 1)
    assert children.wait_for_line("third", f"Error: .*{holder}", 1)
