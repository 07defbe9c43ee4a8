"""A program that fails in two workers: one traceback for each, of the program alone, and one line that says it all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children

if TYPE_CHECKING:
    from pathlib import Path

#: Each worker fails in a step on the parameter server, once the other one has failed in its own, too.
FAILS = """
import json, os
import tenfold as tf

config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
cluster = tf.train.ClusterSpec(config["cluster"])
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
with tf.device("/job:ps/task:0"):
    x = tf.placeholder(tf.float32, [2], name="x")
    checked = tf.check_numerics(x, "bad gradient", name="checked")
    arrived = tf.FIFOQueue(2, tf.int32, shapes=[()], shared_name="arrived")
    arrive, both = arrived.enqueue(index), tf.FIFOQueue(2, tf.int32, shapes=[()], shared_name="both")
    meet = both.dequeue()
    let_go = both.enqueue_many([[0, 0]])
    gather = arrived.dequeue_many(2)

with tf.Session(server.target) as session:
    session.run(arrive)
    if index == 0:
        session.run(gather)
        session.run(let_go)
    session.run(meet)
    session.run(checked, {x: [1.0, float("nan")]})
"""

TRACEBACK = """\
Traceback (most recent call last):
  File "trainer.py", line 25, in <module>
    session.run(checked, {x: [1.0, float("nan")]})
tenfold_core.errors.InvalidArgumentError: From /job:ps/replica:0/task:0:
bad gradient : Tensor had NaN values
\t [[{{node checked}}]]

Operation 'checked' was defined at:
  File "trainer.py", line 12, in <module>
    checked = tf.check_numerics(x, "bad gradient", name="checked")
What to do: docs/how-to/by-symptom.md#runtime-invalid-argument
"""
WHY = (
    "ended with exit code 1: InvalidArgumentError, node checked, task /job:ps/replica:0/task:0: "
    "bad gradient : Tensor had NaN values"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("TENFOLD_")]:
        monkeypatch.delenv(name)
    (tmp_path / "trainer.py").write_text(FAILS.lstrip())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tenfold(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *CLI, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def of(task: str, lines: list[str], pattern: str) -> str:
    """What the task wrote: the first group of the pattern, of its lines."""
    return "".join(f"{match[1]}\n" for line in lines if (match := re.match(pattern.format(task), line)))


@pytest.mark.thorough
def test_run() -> None:
    done = tenfold("run", "trainer.py")

    assert done.returncode == 1
    for task in ("worker/0", "worker/1"):
        assert of(task, done.stdout.splitlines(), r"{} \| (.*)") == TRACEBACK
    # whichever failed first
    assert sorted(line for line in done.stderr.splitlines() if line.startswith("Error: ")) == [
        f"Error: worker/0 {WHY}",
        f"Error: worker/1 {WHY}",
    ]


@pytest.mark.thorough
def test_submit() -> None:
    with Children() as children:
        children.start("up", [*CLI, "up", "--ps", "1", "--workers", "0", "--control-port", "0"])
        children.wait_for_line("up", "Ctrl-C stops all of it", PATIENCE)
        url = children.wait_for_line("up", r"^control service +(\S+)$", 1)[1]

        done = tenfold("submit", "--control", url, "--wait", "--", "python", "trainer.py")

    lines = done.stdout.splitlines()
    assert done.returncode == 1, done.stderr
    for task in ("worker/0", "worker/1"):
        assert of(task, lines, r"\S+Z [A-Z]+ +{} (.*)") == TRACEBACK
    assert sorted(re.findall(r" run (Error: .*)", done.stdout)) == [f"Error: worker/{index} {WHY}" for index in (0, 1)]
    assert re.search(rf"^run-\w+ has FAILED: worker/[01] {re.escape(WHY)}$", done.stderr, re.MULTILINE)
