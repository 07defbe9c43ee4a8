"""Hosts with names, interfaces and addresses of both families of their own: 64 tasks on eight of them, a task that
moves, proxies that the environment names, and links over a wire that takes its time.

    h1 control, tasks 0 … 7      h2 tasks 8 … 15      …      h8 tasks 56 … 63        a bridge joins them

Each host's own name stands for its loopback, as Debian writes it, and a second interface leads nowhere: who registers
by name, or by the first address that comes, is reached by nobody.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.faults.far_client import FarClient
from support.faults.hosts import wait_for_state
from support.faults.lan import Lan, why_not
from support.links import ECHO, ThreadedListener
from support.task_processes import CLI, PATIENCE, task_name
from tenfold.cli.children import Children
from tenfold.control import ControlClient
from tenfold_link.blocking.dial import connect
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.wire import sockets
from tenfold_link.wire.streams import connections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TOKEN, CONTROL_PORT = "tenfold-of-hosts-apart", 8070
HOSTS = tuple(f"h{number}" for number in range(1, 9))
#: A proxy that nobody is: whoever asks it waits, or is refused.
PROXIES = {
    name: "http://192.0.2.77:9"
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "grpc_proxy")
}
MB = 1 << 20
#: Seconds for 64 interpreters to start on a machine with two cores.
STARTS = 400.0


class Apart:
    """A control service on the first host, and tasks that register with it, each on a host."""

    def __init__(self, lan: Lan, children: Children, family: int, lease: float) -> None:
        self.lan, self.children, self._family, self._lease = lan, children, family, lease
        self.url = f"http://{lan.address('h1', CONTROL_PORT, family)}"

    def start_control(self, database: str) -> None:
        host = "::" if self._family == 6 else self.lan.hosts["h1"].address
        program = [*CLI, "control", "--host", host, "--port", str(CONTROL_PORT), "--database", database]
        lease = f"{self._lease:g}"
        self.start("h1", "control", program, TENFOLD_CONTROL_LEASE_TTL=lease, TENFOLD_CONTROL_HEARTBEAT="2")
        self.children.wait_for_line("control", "listening on http://", PATIENCE)

    def start(self, host: str, name: str, program: list[str], **env: str) -> None:
        self.lan.inside(host, lambda: self.children.start(name, program, stage=1, env=env))

    def start_task(self, host: str, job: str, index: int, *options: str) -> None:
        program = [*CLI, "task", "--job", job, "--index", str(index), "--control", self.url, *options]
        # 64 tasks on one machine: each has a thread
        self.start(host, f"{job}/{index}", program, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

    def address(self, job: str, index: int, seconds: float = PATIENCE) -> str:
        """What the task says that it listens on."""
        line = self.children.wait_for_line(f"{job}/{index}", r"listening on grpc://(\S+)", seconds)
        return str(line[1])

    def host(self, name: str) -> str:
        """Of that host, what stands in front of the port."""
        return self.lan.address(name, 0, self._family).removesuffix(":0")

    def ask(self, question: Callable[[ControlClient], Any]) -> Any:
        """Asked on the control service's own host."""

        def work() -> Any:
            with ControlClient(self.url, token=TOKEN) as control:
                return question(control)

        return self.lan.inside("h1", work, STARTS)


@contextmanager
def apart(folder: Path, *names: str, family: int, lease: float = 30.0) -> Iterator[Apart]:
    if why := why_not():
        pytest.skip(why)
    with pytest.MonkeyPatch.context() as patch, Lan(*names) as lan:
        for name in [name for name in os.environ if name.startswith("TENFOLD_") and name != "TENFOLD_CACHE_DIR"]:
            patch.delenv(name)
        for name in ("no_proxy", "NO_PROXY"):
            patch.delenv(name, raising=False)
        for name, value in {**PROXIES, "TENFOLD_REPORT": "0", "TENFOLD_TOKEN": TOKEN}.items():
            patch.setenv(name, value)
        with Children() as children:
            there = Apart(lan, children, family, lease)
            there.start_control(str(folder / "control.db"))
            yield there


#: Reads a variable of each task, over the master of one.
PROGRAM = """
import sys
import tenfold as tf
target, size = sys.argv[1], int(sys.argv[2])
parts = []
for index in range(size):
    with tf.device(f"/job:worker/task:{index}"):
        parts.append(tf.get_variable(f"v{index}", initializer=float(index)) + 0.0)
total = tf.add_n(parts)
with tf.Session(target) as session:
    session.run(tf.global_variables_initializer())
    print("total", float(session.run(total)), float(session.run(total)))
"""


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("family", "size"), [pytest.param(6, 64, marks=pytest.mark.long), (6, 16), (4, 16)], ids=["large", "ipv6", "ipv4"]
)
def test_tasks_on_eight_hosts_reach_each_other(tmp_path: Path, family: int, size: int) -> None:
    each = size // len(HOSTS)
    with apart(tmp_path, *HOSTS, family=family) as there:
        there.ask(lambda control: control.declare_cluster("default", {"worker": size}))
        for index in range(size):
            there.start_task(HOSTS[index // each], "worker", index)
        said = [there.address("worker", index, STARTS) for index in range(size)]
        spec = there.ask(lambda control: control.wait_for_spec("default", until_complete=True, timeout=STARTS))
        target = f"tenfold://{there.lan.address('h1', CONTROL_PORT, family)}/default"
        program = [sys.executable, "-c", PROGRAM, target, str(size)]
        told = there.lan.run("h8", *program, seconds=STARTS)
        names = [there.lan.run(host, "hostname").strip() for host in HOSTS]
        hosts = [there.host(HOSTS[index // each]) for index in range(size)]

    assert [address.rpartition(":")[0] for address in said] == hosts
    assert [spec.addresses["worker"][index] for index in range(size)] == said
    assert told.split() == ["total", *[str(float(sum(range(size))))] * 2]
    assert names == list(HOSTS)


@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_task_that_moves_to_another_host_keeps_its_place(tmp_path: Path, number: signal.Signals) -> None:
    tasks = [("ps", 0), ("worker", 0)]
    with apart(tmp_path, "h1", "h2", "h3", family=6, lease=5.0) as there:
        there.ask(lambda control: control.declare_cluster("default", {"ps": 1, "worker": 1}))
        there.start_task("h2", "ps", 0)
        there.start_task("h1", "worker", 0)
        before, master = there.address("ps", 0), there.address("worker", 0)
        there.ask(lambda control: control.wait_for_spec("default", until_complete=True))
        with FarClient(there.lan, "h3") as client:
            opened = client.call("open", f"grpc://{master}", tasks)
            total = client.call("total")
            os.kill(there.children.pid("ps/0"), number)
            assert there.children.wait_for_exit(["ps/0"], PATIENCE) is not None
            there.children.forget("ps/0")
            if number == signal.SIGKILL:
                # until then it may still be there, cut off
                there.ask(lambda control: wait_for_state(control, task_name("ps", 0), {"lost"}, PATIENCE))
            there.start_task("h3", "ps", 0)
            after = there.address("ps", 0)
            spec = there.ask(lambda control: control.wait_for_spec("default", until_complete=True))
            again = client.call("open", f"grpc://{master}", tasks)
            moved = client.call("total")
        hosts = [there.host("h2"), there.host("h3")]

    assert (opened.code, total.value) == ("", 3.0), (opened, total)
    assert [address.rpartition(":")[0] for address in (before, after)] == hosts
    assert spec.addresses["ps"][0] == after
    assert (again.code, moved.value) == ("", 3.0), (again, moved)


#: A program that takes its place from the environment, and serves there until the others have seen it.
PLACE = """
import tenfold as tf
from tenfold.runs.given_place import tf_config
config = tf_config()
task = config["task"]
server = tf.train.Server(config["cluster"], task["type"], task["index"])
print("places", *config["cluster"]["worker"], flush=True)
server.join()
"""


@pytest.mark.thorough
@pytest.mark.parametrize("family", [4, 6], ids=["ipv4", "ipv6"])
def test_programs_that_take_their_place_register_what_others_dial(tmp_path: Path, family: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(PLACE, encoding="utf-8")
    with apart(tmp_path, "h1", "h2", "h3", family=family) as there:
        there.ask(lambda control: control.declare_cluster("default", {"worker": 2}))
        for index, bind in enumerate(("", "[::]:0")):
            there.start(
                f"h{index + 2}", f"worker/{index}", [str(program)], TENFOLD_CONTROL=there.url, TENFOLD_JOB="worker",
                TENFOLD_INDEX=str(index), TENFOLD_BIND=bind,
            )  # fmt: skip
        line = there.children.wait_for_line("worker/1", r"places (\S+) (\S+)", PATIENCE)
        told = there.lan.run("h1", sys.executable, "-c", PROGRAM, f"grpc://{line[1]}", "2", seconds=PATIENCE)
        hosts = [there.host("h2"), there.host("h3")]

    assert [address.rpartition(":")[0] for address in line.groups()] == hosts
    assert told.split() == ["total", "1.0", "1.0"]


@pytest.mark.thorough
def test_a_link_between_far_hosts_has_several_connections() -> None:
    if why := why_not(delay=0.005):
        pytest.skip(why)
    settings = dataclasses.replace(DEFAULT_LINK_SETTINGS, mode="tcp")
    data = np.random.default_rng(5).integers(0, 256, 8 * MB, np.uint8)
    with Lan("one", "two", delay=0.005) as lan:
        for host in (lan.hosts["two"].address, lan.hosts["two"].address6):
            server = ThreadedListener(settings, host=host)
            lan.inside("two", server.__enter__)
            try:
                answer = server.agree(settings)
                link = lan.inside("one", lambda at=host, offer=answer: connect(offer, f"{at}:1", settings=settings))
                _, (back,) = link.call(ECHO, b"", [data], timeout=PATIENCE)
                trips = [sockets.round_trip(sock) for sock in connections(link._sock)]
                link.close()
            finally:
                server.__exit__(None, None, None)

            assert link.connections == 1 + settings.streams
            assert np.array_equal(back, data)
            assert min(trips) >= 0.01
