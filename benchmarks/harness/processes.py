"""The processes of a side: role.py in servers and clients, JSON lines in, JSON lines out.

They get a clean environment: no switch of either runtime but the side's own, and bytecode caches as by default.
Called by rounds.py, and by the subjects that measure whole processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.sides import FRESH, side_as_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.program import Case
    from harness.sides import Side, Topology

#: The folder of the subjects.
HERE = Path(__file__).resolve().parents[1]
#: Seconds for a process to come up, and for one command to a client: a 1 GB table on a busy machine takes a while, and
#: so do the imports of nine processes on two cores.
START_TIMEOUT_S, COMMAND_TIMEOUT_S = 240.0, 240.0


class SideFailedError(Exception):
    """A process of a side ended, did not answer in time, or reported an error."""


class Process:
    """One role.py: JSON lines in, JSON lines out. It ends when its input closes, even if this program is killed."""

    def __init__(self, side: Side, name: str, order: Mapping[str, Any], python: str, folder: Path) -> None:
        self.name = f"{side.name} {name}"
        self._log = folder / f"{side.name}-{name}.log".replace(":", "_").replace(" ", "_")
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("TENFOLD_", "TF_"))}
        own = {key: tempfile.mkdtemp(dir=folder) if value == FRESH else value for key, value in side.env.items()}
        with self._log.open("wb") as log:
            self.popen = subprocess.Popen(
                [python, str(HERE / "role.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**clean, "PYTHONUNBUFFERED": "1", **own},
            )
        self._pending = b""
        self.send(order)

    def send(self, message: Mapping[str, Any]) -> None:
        assert self.popen.stdin is not None
        try:
            self.popen.stdin.write(json.dumps(message).encode() + b"\n")
            self.popen.stdin.flush()
        except BrokenPipeError:
            raise self._failure("has ended") from None

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        """The next answer. Raises SideFailedError if it says "error", or does not come in time."""
        timeout = COMMAND_TIMEOUT_S if timeout is None else timeout
        assert self.popen.stdout is not None
        deadline = time.monotonic() + timeout
        while b"\n" not in self._pending:
            ready, _, _ = select.select([self.popen.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise self._failure(f"did not answer within {timeout:.0f} s")
            chunk = os.read(self.popen.stdout.fileno(), 1 << 20)
            if not chunk:
                raise self._failure("has ended")
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise SideFailedError(f"{self.name}: {answer['error']}")
        return answer

    def ask(self, timeout: float | None = None, **message: Any) -> dict[str, Any]:
        self.send(message)
        return self.receive(timeout)

    def stop(self) -> None:
        """Closes its input, waits a little, then kills it: it is this program's own child."""
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        try:
            self.popen.stdin.close()
            self.popen.wait(5)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.popen.kill()
            self.popen.wait()
        self.popen.stdout.close()

    def _failure(self, what: str) -> SideFailedError:
        tail = self._log.read_text(errors="replace").strip().splitlines()[-6:]
        return SideFailedError(" | ".join([f"{self.name} {what}", *tail]))


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different, and none that the system gives to a connection: many tasks dial
    each other before the last one listens."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    for port in random.sample(range(10_000, low), low - 10_000):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError(f"there are no {count} free ports below {low}")


class Deployment:
    """The running processes of one side in one topology."""

    def __init__(self, side: Side, topology: Topology, module: str, pythons: Mapping[str, str], folder: Path) -> None:
        self.side, self._topology, self._module = side, topology, module
        self._python, self._folder = pythons[side.runtime], folder
        self._client_python = pythons[side.client or side.runtime]
        self.servers: list[Process] = []
        self.clients: list[Process] = []
        self.first_s = self.floor_s = 0.0
        self._launch()

    def _launch(self) -> None:
        """Starts all processes, on new ports, and waits for none."""
        topology = self._topology
        addresses = dict(zip(topology.tasks, free_ports(len(topology.tasks)), strict=True))
        cluster: dict[str, list[str]] = {}
        for task in sorted(addresses, key=lambda name: (name.partition(":")[0], int(name.partition(":")[2]))):
            cluster.setdefault(task.partition(":")[0], []).append(f"127.0.0.1:{addresses[task]}")
        cores = sorted(os.sched_getaffinity(0))
        base: dict[str, Any] = {"side": side_as_json(self.side), "cluster": cluster, "module": self._module}
        for task in topology.servers:
            order = {**base, "role": "server", "task": task, "cores": topology.cores(task, cores)}
            self.servers.append(Process(self.side, task, order, self._python, self._folder))
        for index, client in enumerate(topology.clients):
            task = client.removeprefix("@")
            order = {
                **base,
                "role": "client",
                "index": index,
                "folder": str(self._folder),
                "task": None if client.startswith("@") else task,
                "target": f"grpc://127.0.0.1:{addresses[task]}",
                "cores": topology.cores(client, cores),
            }
            self.clients.append(Process(self.side, f"client{index}", order, self._client_python, self._folder))

    def restart(self) -> None:
        """Stops all processes and starts them again, after any failure."""
        self.stop()
        self.servers, self.clients = [], []
        self._launch()
        self.wait_ready()

    def wait_ready(self) -> None:
        for process in self.servers + self.clients:
            process.receive(START_TIMEOUT_S)

    def build(self, case: Case, folder: Path, timeout: float | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """Builds the program in all clients, one after the other; the first initializes, and its result is returned.

        `timeout` for a program that takes its time.
        Sets `first_s` to what the first client's first step took from its session's creation, and `floor_s`.
        """
        path = folder / f"{self.side.name}.npz".replace(" ", "_")
        for index, client in enumerate(self.clients):
            answer = client.ask(timeout, do="build", case=case.name, npz=str(path) if index == 0 else "")
            if index == 0:
                self.first_s, self.floor_s = answer["first_s"], answer["floor_s"]
        with np.load(path) as results:
            return {name: results[name] for name in results.files}

    def run(self, seconds: float, least_steps: int, timeout: float | None = None) -> list[dict[str, Any]]:
        """Timed steps in all clients at once; each one's statistics, with the usage of the servers in the first one's.

        `timeout` for a command that takes its time.
        """
        before = [server.ask(do="usage") for server in self.servers]
        for client in self.clients:
            client.send({"do": "round", "seconds": seconds, "least": least_steps})
        answers, errors = [], []
        for client in self.clients:
            try:
                answers.append(client.receive(timeout))
            except SideFailedError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        whole = answers[0]["usage"]
        #: Seconds of processor time by job, those of the clients as "client".
        by_job: dict[str, float] = {"client": sum(each["usage"]["cpu_s"] for each in answers)}
        for server, task, used in zip(self.servers, self._topology.servers, before, strict=True):
            now, job = server.ask(do="usage"), task.partition(":")[0]
            whole["peak_mib"] += now["peak_mib"]
            for name in ("faults", "cpu_s"):
                whole[name] += now[name] - used[name]
            by_job[job] = by_job.get(job, 0.0) + now["cpu_s"] - used["cpu_s"]
        whole["by_job"] = by_job
        return answers

    def broken(self) -> bool:
        return any(process.popen.poll() is not None for process in self.servers + self.clients)

    def close_case(self) -> None:
        for client in self.clients:
            client.ask(do="close")

    def stop(self) -> None:
        for process in self.clients + self.servers:
            process.stop()
