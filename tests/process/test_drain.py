"""A rolling restart under training: a parameter server and a worker are drained, started elsewhere, training goes on.

The trainer is this process, over `tenfold://`; everything else are processes as a user would start them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from support.task_processes import CLI, PATIENCE
from tenfold.cli.local import LocalCluster
from tenfold.control import ControlClient
from tenfold.train.checkpoint_management import latest_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from tenfold.cli.children import Children

RATE, SAVE_STEPS = 0.5, 5


class Steps(tf.train.SessionRunHook):
    """The steps that were seen, and where each session began."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.step = 0

    def begin(self) -> None:
        self._step = tf.train.get_global_step()

    def after_create_session(self, session: tf.Session, coord: object) -> None:
        self.began.append(int(session.run(self._step)))

    def before_run(self, run_context: object) -> tf.train.SessionRunArgs:
        return tf.train.SessionRunArgs(self._step)

    def after_run(self, run_context: object, run_values: tf.train.SessionRunValues) -> None:
        self.step = int(run_values.results)


def restarted(children: Children, client: ControlClient, url: str, job: str, index: int) -> str:
    """Drains the task by the command, and starts another process on its place; what the control service said of it."""
    name = f"{job}/{index}"
    command = ["drain", name, "--control", url, "--grace", "20", "--reason", "a new release"]
    children.start("drain", [*CLI, *command])
    assert children.wait_for_exit(["drain"], PATIENCE) == ("drain", 0), children.last_lines("drain", 5)
    assert children.wait_for_exit([name], PATIENCE) == (name, 0), children.last_lines(name, 20)
    gone = client.task_status("default", job, index)
    children.forget("drain")
    children.forget(name)
    children.start(name, [*CLI, "task", "--job", job, "--index", str(index), "--control", url])
    children.wait_for_line(name, r"listening on grpc://(\S+)", PATIENCE)
    assert client.task_status("default", job, index).address != gone.address
    return f"{gone.state}: {gone.reason}"


@pytest.mark.timeout(240)
@pytest.mark.thorough
def test_training_goes_on_from_the_checkpoint_after_a_rolling_restart(tmp_path: Path) -> None:
    hook, told = Steps(), []
    with (
        LocalCluster(ps=1, workers=1) as cluster,
        ControlClient(cluster.control_url) as client,
        tf.Graph().as_default(),
    ):
        target = f"tenfold://{cluster.control_url.removeprefix('http://')}/default/worker/0"
        with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:0")):
            step = tf.train.get_or_create_global_step()
            value = tf.get_variable("value", initializer=0.0)
            train = tf.train.GradientDescentOptimizer(RATE).minimize(-value, global_step=step)
        deadline = time.monotonic() + 3 * PATIENCE
        with tf.train.MonitoredTrainingSession(
            master=target,
            checkpoint_dir=str(tmp_path),
            hooks=[hook],
            save_checkpoint_secs=None,
            save_checkpoint_steps=SAVE_STEPS,
            save_summaries_steps=None,
            log_step_count_steps=None,
        ) as session:
            for job in ("ps", "worker"):
                before, saved = hook.step, latest_checkpoint(str(tmp_path))
                while hook.step < before + 3 * SAVE_STEPS or latest_checkpoint(str(tmp_path)) == saved:
                    assert time.monotonic() < deadline, hook.began
                    session.run(train)
                newest = int(latest_checkpoint(str(tmp_path)).rpartition("-")[2])
                told.append(restarted(cluster.children, client, cluster.control_url, job, 0))
                sessions = len(hook.began)
                while len(hook.began) == sessions:
                    assert time.monotonic() < deadline, hook.began
                    session.run(train)
                # a drained worker takes no variable with it; a new parameter server has what the checkpoint holds
                assert hook.began[-1] >= newest
            at_end = session.run([step, value])

    assert told == ["stopped: drained: a new release"] * 2
    assert at_end[1] == RATE * at_end[0]
