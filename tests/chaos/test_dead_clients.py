"""Crowds of clients are killed, or stand still: in the middle of steps, of long polls, of streams, of requests (P7).

    crowd_main.py × N, kill -9 ──► ps:0 (sessions over links and gRPC), control service (long polls, streams, halves)

Nothing of them stays: descriptors, threads, shared memory and memory of both servers are as after the first crowd,
their steps took nothing from the queue, their sessions give way to new ones. `make test` kills 75 clients, `make chaos`
1,000.
"""

from __future__ import annotations

import gc
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

import tenfold as tf
from support.faults.crowd_main import graph
from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: A master with room for one crowd and the test, whose sessions make room once they are not used.
LIMITS = {"TENFOLD_MASTER_SESSIONS": "64", "TENFOLD_MASTER_IDLE_SESSION_SECONDS": "0.5"}
#: Freed memory goes back to the system at once, or what the C library keeps would look like growth.
RETURNED = {"MALLOC_TRIM_THRESHOLD_": str(128 << 10), "MALLOC_MMAP_THRESHOLD_": str(128 << 10)}
KINDS = 5
#: MiB and threads by which a server may grow from the first crowd to the last: pools fill slowly.
GROWN_MIB, GROWN_THREADS = 32, 8


@dataclass(frozen=True)
class Held:
    """What a process holds."""

    files: int
    threads: int
    segments: int
    mib: float

    @staticmethod
    def by(pid: int) -> Held:
        process = psutil.Process(pid)
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
        shared = {line.split()[4] for line in maps if "memfd:tenfold" in line}
        return Held(process.num_fds(), process.num_threads(), len(shared), process.memory_info().rss / 2**20)


class Place:
    """A ps and its control service, and a session of the test on the ps."""

    def __init__(self, children: Children, folder: Path) -> None:
        self.children = children
        program = [*CLI, "control", "--port", "0", "--database", str(folder / "c.db")]
        children.start("control", program, env={"TENFOLD_CONTROL_HEARTBEAT": "0.5", **RETURNED})
        self.url = "http://" + children.wait_for_line("control", r"listening on http://(\S+)", PATIENCE)[1]
        self.control = ControlClient(self.url)
        self.control.declare_cluster("c", {"ps": 1})
        program = [*CLI, "task", "--cluster-name", "c", "--job", "ps", "--index", "0", "--control", self.url]
        children.start("ps", program, env={**LIMITS, **RETURNED})
        self.task = "grpc://" + children.wait_for_line("ps", r"listening on \w+://(\S+)", PATIENCE)[1]
        self.session = tf.Session(self.task, graph=graph())
        self.session.run("init")
        self.pids = {name: children.pid(name) for name in ("ps", "control")}
        #: Steps of dead clients so far.
        self.entered = 0

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Waits, asking both servers for something each time."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"{what}: {self.held()}"
            self.answers()

    def answers(self) -> float:
        """Both servers answer; seconds of the slower one."""
        began = time.monotonic()
        self.session.run("entered:0")
        self.control.cluster("c")
        return time.monotonic() - began

    def held(self) -> dict[str, Held]:
        return {name: Held.by(pid) for name, pid in self.pids.items()}

    def crowd(self, each: int, *, stand_still: bool) -> None:
        """Starts `each` clients of each kind, waits until they are in the middle of it, and kills them."""
        before = self.held()
        version = self.control.cluster("c")["version"]
        program = ["-m", "support.faults.crowd_main", self.task, self.url, str(version), str(each)]
        self.children.start("crowd", program)
        self.children.wait_for_line("crowd", "ready", PATIENCE)
        self.entered += 2 * each
        self.until(lambda: int(self.session.run("entered:0")) == self.entered, "not all steps have begun")
        files = before["control"].files + 3 * each
        self.until(lambda: Held.by(self.pids["control"]).files >= files, "not all requests have come")
        pid = self.children.pid("crowd")
        if stand_still:
            os.kill(pid, signal.SIGSTOP)
            # nobody waits for those who stand still
            assert max(self.answers() for _ in range(20)) < 2.0
        os.killpg(pid, signal.SIGKILL)
        assert self.children.wait_for_exit(["crowd"], PATIENCE) == ("crowd", -signal.SIGKILL)
        self.children.forget("crowd")

    def sessions(self) -> int:
        """Open at the ps, as its heartbeats tell."""
        (task,) = (task for job in self.control.job_status("c")["jobs"] for task in job["tasks"])
        figures: Any = task["figures"]
        return 0 if figures is None else int(figures["sessions"])

    def close(self) -> None:
        self.session.close()
        self.control.close()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    for name in [name for name in os.environ if name.startswith("TENFOLD_") and name != "TENFOLD_CACHE_DIR"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[1]))
    with Children() as children:
        made = Place(children, tmp_path)
        yield made
        made.close()


def killed(place: Place, crowds: int, each: int) -> None:
    before = place.held()

    def at_rest() -> bool:
        """But for what is opened once, as the first time that somebody comes over gRPC."""
        now = place.held()
        return all(
            now[name].files <= before[name].files + 2 and now[name].segments <= before[name].segments for name in now
        )

    first = before
    for number in range(crowds):
        place.crowd(each, stand_still=bool(number % 2))
        place.until(at_rest, f"crowd {number} left something behind; before it was {before}")
        first = place.held() if not number else first
    gc.collect()
    last = place.held()

    for name, held in last.items():
        assert held.threads <= first[name].threads + GROWN_THREADS, (name, first, last)
        assert held.mib <= first[name].mib + GROWN_MIB, (name, first, last)
    # a cancelled step takes nothing
    for _ in range(3):
        place.session.run("put")
    assert int(place.session.run("size:0")) == 3
    place.until(lambda: 0 < place.sessions() <= 64, "sessions without owners do not make room")
    assert place.control.job_status("c")["jobs"][0]["tasks"][0]["state"] == "ready"


@pytest.mark.thorough
def test_some_clients(place: Place) -> None:
    killed(place, crowds=3, each=5)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_thousand_clients(place: Place) -> None:
    killed(place, crowds=8, each=25)
