"""A worker that finished stays finished, whichever task is killed and started again afterwards: no task waits for it.

worker:1 finishes ─► kill -9 ps:0, started again ─► kill -9 worker:0 (chief), started again ─► it trains to the end,
and the parameter server, told to stop with the workers, ends by itself.
"""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from support.task_processes import PATIENCE, free_addresses
from tenfold.cli.children import Children

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PS, CHIEF, SECOND = "ps/0", "worker/0", "worker/1"
SAVE_STEPS = 5

#: `program.py FOLDER LAST_STEP [GATE]`: a task that trains to a step. The chief with a gate waits there, once it has
#: trained so far, until it is killed; says what it hears of others, and where training stands.
PROGRAM = """
import json, logging, os, sys, threading
import tenfold as tf

logging.basicConfig(format="%(message)s")
logging.getLogger("tenfold_services.peers").setLevel(logging.INFO)
config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
folder, last_step, *gate = sys.argv[1:]
server = tf.train.Server(config["cluster"], job_name=job, task_index=index)
print("serving", flush=True)
if job == "ps":
    try:
        server.join()
    finally:
        print("joined", flush=True)
    sys.exit("join returned")


class Say(tf.train.SessionRunHook):
    def begin(self):
        self.step = tf.train.get_global_step()

    def after_create_session(self, session, coord):
        print("session", session.run(self.step), flush=True)


with tf.device(tf.train.replica_device_setter(cluster=config["cluster"])):
    train = tf.assign_add(tf.train.get_or_create_global_step(), 1)
# a session that waits for a task which does not come says so before the test's patience ends
patient = tf.ConfigProto(operation_timeout_in_ms=30000)
with tf.train.MonitoredTrainingSession(
    server.target, index == 0, folder if index == 0 else None, config=patient, save_summaries_steps=None,
    save_checkpoint_secs=None, save_checkpoint_steps=5, log_step_count_steps=None,
    hooks=[Say(), tf.train.StopAtStepHook(last_step=int(last_step))],
) as session:
    step = 0
    while not session.should_stop():
        step = session.run(train)
        if gate and step >= int(gate[0]):
            print("waits", flush=True)
            threading.Event().wait()
print("done", step, flush=True)
"""


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as started:
        yield started


def kill(children: Children, name: str) -> None:
    os.kill(children.pid(name), signal.SIGKILL)
    assert children.wait_for_exit([name], PATIENCE) == (name, -signal.SIGKILL)
    children.forget(name)


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_a_finished_worker_is_not_waited_for_after_two_kills(children: Children, tmp_path: Path) -> None:
    addresses = iter(free_addresses(3))
    cluster = {"ps": [next(addresses)], "worker": [next(addresses), next(addresses)]}
    program, folder = tmp_path / "program.py", str(tmp_path / "checkpoints")
    program.write_text(PROGRAM)

    def start(name: str, last_step: int, *gate: str) -> None:
        job, _, index = name.partition("/")
        config = {"cluster": cluster, "task": {"type": job, "index": int(index)}}
        env = {"TF_CONFIG": json.dumps(config), "TENFOLD_STOP_WITH_WORKERS": "1"}
        children.start(name, [str(program), folder, str(last_step), *gate], env=env)

    start(PS, 0)
    start(CHIEF, 100, "12")
    start(SECOND, 8)
    assert children.wait_for_exit([SECOND], PATIENCE) == (SECOND, 0), children.failure(SECOND)
    children.wait_for_line(CHIEF, "^waits$", PATIENCE)

    kill(children, PS)
    start(PS, 0)
    told = "^/job:ps/replica:0/task:0 was told that these have finished: /job:worker/replica:0/task:1$"
    children.wait_for_line(PS, told, PATIENCE)
    kill(children, CHIEF)
    start(CHIEF, 20)

    resumed = int(children.wait_for_line(CHIEF, r"^session (\d+)$", PATIENCE)[1])
    assert resumed >= SAVE_STEPS
    assert children.wait_for_exit([CHIEF], PATIENCE) == (CHIEF, 0), children.failure(CHIEF)
    children.wait_for_line(CHIEF, "^done 20$", 1)
    assert children.wait_for_exit([PS], PATIENCE) == (PS, 0)
    children.wait_for_line(PS, "^joined$", 1)
