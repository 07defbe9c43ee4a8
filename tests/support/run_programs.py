"""Programs of runs for tests, the control service that they report to as a process, and where programs and tests meet.

The programs are small, and meet the test at sockets of its own: a task that has come so far says so and waits.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import httpx
from click.testing import CliRunner, Result

from support.task_processes import CLI, PATIENCE
from tenfold.cli.main import cli

if TYPE_CHECKING:
    from pathlib import Path

    from tenfold.cli.children import Children

#: Trains against a parameter server; says its name at the gate, and goes on when it is told a word: go, fail.
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
    x = tf.placeholder(tf.float32, [])
    checked = tf.check_numerics(v * x, "bad loss", name="checked")
with tf.Session(server.target) as session:
    session.run(v.initializer)
    print("step", session.run(checked, {x: 1.0}), flush=True)
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as gate:
        gate.sendall(f"{job}/{index} {os.environ['TENFOLD_ATTEMPT']}".encode())
        word = gate.recv(16).decode()
    print("told to", word, flush=True)
    if word == "fail":
        session.run(checked, {x: float("nan")})
"""

#: Trains for ever under a monitored session, asynchronously, until somebody lets it go.
MONITORED = """
import json, os, socket, sys
import tenfold as tf

config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
cluster = tf.train.ClusterSpec(config["cluster"])
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{index}")):
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", initializer=1.0)
    loss = tf.square(w, name="loss")
    train = tf.train.GradientDescentOptimizer(1e-6).minimize(loss, global_step=step)
gate = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
gate.sendall(f"{job}/{index} 1".encode())
gate.setblocking(False)
going = True
with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0, checkpoint_dir=sys.argv[2]) as session:
    while going:
        session.run([train, loss])
        try:
            going = not gate.recv(1)
        except BlockingIOError:
            pass
"""


class Service:
    """A control service as a process, which may be killed and started again on its database."""

    def __init__(self, children: Children, folder: Path, **environment: str) -> None:
        self._children, self._folder = children, folder
        self._environment = {"TENFOLD_CONTROL_HEARTBEAT": "0.5", **environment}
        self.url, self.runs = "", folder / "c.db.runs"
        self._count = 0
        self.start()

    def start(self) -> None:
        self._count += 1
        # a supervisor reports to the address that it was given: the next service gets the same port
        port = self.url.rpartition(":")[2] or "0"
        program = [*CLI, "control", "--port", port, "--database", str(self._folder / "c.db"), "--allow-runs"]
        self._children.start(self.name, program, env=self._environment)
        self.url = self._children.wait_for_line(self.name, r"listening on (http://\S+)", PATIENCE)[1]

    @property
    def name(self) -> str:
        return f"control{self._count}"

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, trust_env=False, timeout=PATIENCE)

    def kill(self) -> None:
        os.kill(self._children.pid(self.name), signal.SIGKILL)
        self._children.wait_for_exit([self.name], PATIENCE)


def tenfold(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))
