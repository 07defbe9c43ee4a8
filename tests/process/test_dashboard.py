"""The dashboard in a real Chromium beside real runs: a curve that moves, a failure with node and task, the buttons."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING

import httpx
import pytest

import tenfold as tf
from support.browser import Browser, chromium, missing
from support.gates import Gate
from support.task_processes import CLI, PATIENCE
from support.trace_check import check_trace
from tenfold.cli.children import Children
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.timeout(240),
]

#: Trains on until the gate says: fail. Its loss becomes no number then.
TRAINER = """
import json, os, select, socket, sys, time
import tenfold as tf

config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
server = tf.train.Server(config["cluster"], job_name=job, task_index=index)
if job == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=config["cluster"])):
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [])
    w = tf.get_variable("w", initializer=5.0)
    loss = tf.square(w * x, name="loss")
    checked = tf.check_numerics(loss, "the loss is not a number", name="check_loss")
    train = tf.train.GradientDescentOptimizer(0.001).minimize(loss, global_step=step)
    tf.summary.scalar("loss_summary", loss)
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as gate:
    gate.sendall(f"{job}/{index} {os.environ['TENFOLD_ATTEMPT']}".encode())
    with tf.train.MonitoredTrainingSession(server.target, checkpoint_dir="train", save_summaries_steps=50) as session:
        while True:
            session.run([train, loss, step], {x: 1.0})
            if select.select([gate], [], [], 0.01)[0]:
                print("told to", gate.recv(16).decode(), flush=True)
                session.run(checked, {x: float("nan")})
"""

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
#: Keeps what a link would save, under `saved`, and tells its name in the page: a headless browser has no folder for it.
SAVING = """
const make = URL.createObjectURL;
URL.createObjectURL = (blob) => { window.saved = blob; return make.call(URL, blob); };
HTMLAnchorElement.prototype.click = function () { document.body.dataset.saved = this.download; };
"""

#: How many points the plot of the loss has.
POINTS = "Number(document.querySelector('[data-plot=loss]').dataset.points)"


@pytest.fixture
def gate() -> Iterator[Gate]:
    with contextlib.closing(Gate()) as made:
        yield made


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A control service, as a process, that starts programs; runs end with it."""
    for name in [name for name in os.environ if name.startswith("TENFOLD_") and name != "TENFOLD_CACHE_DIR"]:
        monkeypatch.delenv(name)
    program = [*CLI, "control", "--port", "0", "--database", str(tmp_path / "c.db"), "--allow-runs"]
    with Children() as children:
        env = {"TENFOLD_CONTROL_HEARTBEAT": "0.5", "TENFOLD_CONTROL_RUNS_END_WITH_SERVICE": "1"}
        children.start("control", program, env=env)
        yield children.wait_for_line("control", r"listening on (http://\S+)", PATIENCE)[1]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with chromium(tmp_path / "chromium") as started:
        started.resize(1280, 900)
        yield started


def submit(url: str, folder: Path, gate: Gate) -> str:
    (folder / "trainer.py").write_text(TRAINER)
    body = {
        "entrypoint": ["python", "trainer.py", str(gate.port)],
        "working_dir": str(folder),
        "jobs": {"ps": 1, "worker": 1},
        "stop_grace": 5,
    }
    run = httpx.post(f"{url}/v1/runs", json=body, trust_env=False, timeout=PATIENCE).raise_for_status().json()
    return str(run["name"])


@pytest.mark.thorough
def test_a_curve_moves_and_a_failure_names_node_and_task(
    url: str, browser: Browser, gate: Gate, tmp_path: Path
) -> None:
    browser.open(f"{url}/#/")
    browser.until_shown("No run yet.")
    run = submit(url, tmp_path, gate)
    browser.until_shown(run)
    gate.wait_for("worker/0 1")

    browser.open(f"{url}/#/runs/{run}")
    browser.until(f"{POINTS} >= 2")
    seen = browser.execute(f"return {POINTS}")
    browser.until(f"{POINTS} >= {seen + 2}")
    browser.until("document.querySelector('[data-plot=loss_summary]')")
    browser.until_shown(f"tenfold tensorboard {run}", "#tensorboard")
    assert "running" in browser.text("h1")

    gate.tell("worker/0 1", "fail")
    browser.until_shown("failed", "h1")
    browser.until_shown("check_loss", "#failures")
    browser.until_shown("told to fail", "#logs")

    failures = browser.text("#failures")
    assert "InvalidArgumentError" in failures
    assert "worker/0" in failures
    assert "the loss is not a number" in failures
    assert "exit code 1" in failures
    assert browser.complaints() == []


@pytest.mark.thorough
def test_a_run_is_stopped_and_deleted_by_buttons(url: str, browser: Browser, gate: Gate, tmp_path: Path) -> None:
    run = submit(url, tmp_path, gate)
    gate.wait_for("worker/0 1")
    browser.open(f"{url}/#/runs/{run}")

    browser.press("Stop", ".head")
    browser.until_shown("get SIGTERM", "dialog[open]")
    browser.press("Cancel", "dialog[open]")
    assert "running" in browser.text("h1")
    browser.press("Stop", ".head")
    browser.press("Stop the run", "dialog[open]")
    browser.until_shown("stopped", "h1")
    assert "stopped in the dashboard" in browser.text("main")
    assert "SIGTERM" in browser.text("#run-tasks")

    browser.press("Delete", ".head")
    browser.press("Delete", "dialog[open]")
    browser.until_shown("No run yet.")
    assert httpx.get(f"{url}/v1/runs/{run}", trust_env=False, timeout=PATIENCE).status_code == 404
    assert [line for line in browser.complaints() if "404" not in line] == []


@pytest.mark.thorough
def test_a_trace_is_taken_by_its_button(url: str, browser: Browser, gate: Gate, tmp_path: Path) -> None:
    run = submit(url, tmp_path, gate)
    gate.wait_for("worker/0 1")
    browser.open(f"{url}/#/runs/{run}")
    browser.until(f"{POINTS} >= 1")
    browser.execute(SAVING)

    browser.press("Trace", ".head")
    browser.until("document.querySelector('#trace canvas')?.width > 300")
    names = browser.text("#trace-ops")
    browser.press("Save as file", "#trace")
    browser.until("document.body.dataset.saved")
    found = json.loads(browser.execute_async("saved.text().then(done);"))

    assert browser.execute("return document.body.dataset.saved") == f"{run}-trace.json"
    check_trace(found)
    assert [task["task"] for task in found["metadata"]["tasks"]] == [PS, WORKER]
    slices = [event for event in found["traceEvents"] if event["ph"] == "X"]
    assert browser.execute("return document.querySelector('#trace canvas').dataset.slices") == str(len(slices))
    assert all(op in names for op in ("op", "calls", "on worker/0"))
    (step,) = [event for event in slices if event["cat"] == "Step"]
    assert step["name"] == "Session.run"
    assert browser.complaints() == []


@pytest.mark.thorough
def test_the_suspect_is_asked_for_by_a_button(url: str, browser: Browser, gate: Gate, tmp_path: Path) -> None:
    run = submit(url, tmp_path, gate)
    gate.wait_for("worker/0 1")
    browser.open(f"{url}/#/runs/{run}")
    browser.until_shown("Nothing is collected until you ask.", "#why")

    browser.press("Why?", "#why")
    browser.until_shown("Ask again", "#why")

    assert browser.execute("return document.querySelector('#why [role=status]').textContent")
    assert "worker/0" in browser.text("#why")
    assert browser.complaints() == []


@pytest.mark.thorough
def test_a_session_shows_where_its_nodes_are(url: str, browser: Browser) -> None:
    graph = tf.Graph()
    with graph.as_default(), tf.device("/job:ps/task:0"):
        table = tf.get_variable("table", [250, 8])
        for number in range(300):
            tf.negative(table, name=f"negative_{number}")
    httpx.put(f"{url}/v1/clusters/default", json={"jobs": {"ps": 1, "worker": 1}}, trust_env=False).raise_for_status()
    with Children() as children, ControlClient(url) as control:
        for job in ("ps", "worker"):
            children.start(job, [*CLI, "task", "--control", url, "--job", job, "--bind", "127.0.0.1:0"])
        with control.create_session("default", graph, wait=30.0) as session:
            browser.open(f"{url}/#/sessions/{session.id}")
            browser.until_shown("negative_0", "#placement")
            assert f"{PS}/device:CPU:0" in browser.text("#placement")
            assert "as requested" in browser.text("#placement")
            assert "7.8 KiB of variables" in browser.text("main")

            browser.press("Next 200", "#placement")
            browser.until_shown("negative_200", "#placement")
            browser.press("Previous 200", "#placement")
            browser.until_shown("negative_0", "#placement")
            assert browser.complaints() == []
