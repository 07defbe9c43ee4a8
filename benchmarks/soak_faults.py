#!/usr/bin/env python3
"""Training under random faults for as long as asked for: nothing hangs, no sum is wrong, nothing grows, no step slows.

Trained is what faults.py trains: three workers and a parameter server, synchronously, all registered with a control
service. Between faults a window of steps is timed and every process is looked at. The faults, by chance and by weight:
`kill -9` of a worker, the chief, the parameter server or the control service; a kill after which the task is started at
once, as supervisors do; SIGSTOP for up to 18 s; a client killed in a step of its own; connections that say nonsense or
nothing. At the end the sums must be what one process gives on the same batches.

    python benchmarks/soak_faults.py [--seconds 1800] [--seed 0] [--faults kill_worker,stand_still] [--json FILE]

`make soak` runs it for half an hour. It ends with status 1 after a violation. Neighbours: faults.py, which measures
kills alone; soak.py and soak_link.py, which make many steps and calls without faults.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from faults import STORY, Watcher
from soak import look
from soak_figures import Found, Life

from process.kill_trainer import RATE, curve_after
from process.kill_training import CHIEF, PATIENCE, PS, Heard, Task, Training, name_of, newest_whole
from tenfold.cli.children import ChildFailedError, Children
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Steps of all workers in a window that is timed, and in which training shows that it goes on.
WINDOW, GOES_ON = 600, 30
#: Seconds of a standstill: mostly below what is promised to be noticed, sometimes beyond.
STANDSTILL, LONG_STANDSTILL = (0.2, 8.0), (16.0, 18.0)
LAST_STEP = 1 << 40
#: A client of its own, in a step that waits for ever.
CLIENT = """
import sys
import tenfold as tf
with tf.device(sys.argv[2]):
    queue = tf.FIFOQueue(1, tf.float32, shared_name="soak")
    step = tf.get_variable("soak", initializer=tf.zeros([1000])).assign_add(tf.ones([1000]))
with tf.Session(sys.argv[1]) as session:
    session.run(tf.global_variables_initializer())
    session.run(step)
    print("waits", flush=True)
    session.run(queue.dequeue())
"""


class Ear(Heard):
    """Hears hours of training: of steps it keeps the number alone, and of other lines the newest."""

    MOST = 4000

    def hear(self, name: str, line: str) -> None:
        super().hear(name, line)
        with self._changed:
            if line.startswith("step "):
                del self.lines[-1], self._at[-1]
            elif len(self.lines) > self.MOST:
                del self.lines[: self.MOST // 2], self._at[: self.MOST // 2]


class Soak:
    """One soak. Runs inside `with` of its children."""

    def __init__(self, seed: int, folder: Path, children: Children, ear: Ear, lease: float, heartbeat: float) -> None:
        self.found, self._chance = Found(seed), random.Random(seed)
        self._folder, self._children, self._ear = folder, children, ear
        self._environment = {
            "TENFOLD_CONTROL_LEASE_TTL": str(lease),
            "TENFOLD_CONTROL_HEARTBEAT": str(heartbeat),
            "TENFOLD_CONFIG": os.devnull,
        }
        self._began = time.monotonic()
        self._lives: dict[str, Life] = {}
        self._clients = 0
        self._pause = threading.Event()
        self._stop_file, self._client = folder / "last_step", folder / "client.py"
        self._client.write_text(CLIENT)
        port = self._start_control(0)
        self._port = port
        os.environ["TENFOLD_CONTROL"] = f"http://127.0.0.1:{port}"
        self._control = ControlClient(f"http://127.0.0.1:{port}")
        self._watcher = Watcher(self._control)
        self._control.declare_cluster("default", {"ps": 1, "worker": STORY.workers})
        checkpoints = str(folder / "checkpoints")
        self._checkpoints = checkpoints
        self._training = Training(STORY, children, ear, checkpoints, LAST_STEP, stop_file=str(self._stop_file))
        for task in self._training.tasks:
            self._training.start(task)
        ear.wait_for_steps(WINDOW)

    def _chosen(self, seconds: float, kinds: dict[str, float]) -> Iterator[str]:
        while time.monotonic() - self._began < seconds:
            yield self._chance.choices(list(kinds), list(kinds.values()))[0]

    def run(self, seconds: float, kinds: dict[str, float], *, each_once: bool = False) -> Found:
        """Faults of these kinds, by their weights, for so many seconds, or one of each; then the end. Blocks."""
        found = self.found
        try:
            for kind in kinds if each_once else self._chosen(seconds, kinds):
                self._look()
                getattr(self, kind)()
                found.faults[kind] = found.faults.get(kind, 0) + 1
                began = time.monotonic()
                self._ear.wait_for_steps(GOES_ON)
                found.recovery.append(time.monotonic() - began)
            self._look()
            self._end()
        except (AssertionError, ChildFailedError) as error:
            found.violations.append(f"training did not go on after {sum(found.faults.values())} faults: {error}")
        for life in list(self._lives.values()):
            self._judge(life)
        found.violations += found.slowing()
        found.seconds = time.monotonic() - self._began
        self._control.close()
        return found

    # -- faults: each returns when what was broken is whole again, and training may go on

    def kill_worker(self) -> None:
        self._kill(("worker", self._chance.randrange(1, STORY.workers)))

    def kill_chief(self) -> None:
        self._kill(CHIEF)

    def kill_ps(self) -> None:
        self._kill(PS)

    def kill_and_start_at_once(self) -> None:
        """The service still takes the task for alive then: it has to wait for the lease of its former life."""
        victim = ("worker", self._chance.randrange(1, STORY.workers))
        self._kill(victim, wait=False)

    def kill_control(self) -> None:
        self._bury("control", signal.SIGKILL)
        self._start_control(self._port)

    def stand_still(self) -> None:
        victim = self._chance.choice([*self._training.tasks, None])
        name = "control" if victim is None else name_of(victim)
        pid = self._children.pid(name)
        bounds = LONG_STANDSTILL if self._chance.random() < 0.2 else STANDSTILL
        os.kill(pid, signal.SIGSTOP)
        try:
            self._pause.wait(self._chance.uniform(*bounds))
        finally:
            os.kill(pid, signal.SIGCONT)

    def kill_client(self) -> None:
        self._clients += 1
        name = f"client{self._clients}"
        job, index = self._chance.choice(self._training.tasks)
        target = "grpc://" + self._training.address_of((job, index))
        self._children.start(name, [str(self._client), target, f"/job:{job}/task:{index}"])
        self._children.wait_for_line(name, "waits", PATIENCE)
        self._bury(name, signal.SIGKILL)

    def say_nonsense(self) -> None:
        """To a task, on twenty connections: noise, the beginning of a call, nothing; then they are reset or closed."""
        host, _, port = self._training.address_of(self._chance.choice(self._training.tasks)).rpartition(":")
        for number in range(20):
            with socket.create_connection((host, int(port)), PATIENCE) as connection:
                connection.sendall([self._chance.randbytes(200), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b""][number % 3])
                if number % 2:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    # -- what they are made of

    def _start_control(self, port: int) -> int:
        program = ["-m", "tenfold.cli", "control", "--port", str(port), "--database", str(self._folder / "control.db")]
        self._children.start("control", program, env=self._environment)
        return int(self._children.wait_for_line("control", r"listening on http://127\.0\.0\.1:(\d+)", PATIENCE)[1])

    def _bury(self, name: str, number: signal.Signals) -> None:
        os.kill(self._children.pid(name), number)
        ended = self._children.wait_for_exit([name], PATIENCE)
        assert ended == (name, -number), f"{name}: {ended}\n{self._ear.tail()}"
        self._children.forget(name)
        if (life := self._lives.pop(name, None)) is not None:
            self._judge(life)

    def _kill(self, victim: Task, *, wait: bool = True) -> None:
        self._watcher.wait(victim, True, PATIENCE)
        sessions, saved = self._ear.count(name_of(CHIEF)), newest_whole(self._checkpoints)
        self._bury(name_of(victim), signal.SIGKILL)
        if wait:
            self._watcher.wait(victim, False, PATIENCE)
        self._training.start(victim)
        if victim in (PS, CHIEF):
            began = self._ear.wait_for_sessions(sessions + 1, name_of(CHIEF))
            assert began >= saved, f"step {saved} was saved, training went on from {began}"
        self._watcher.wait(victim, True, PATIENCE)

    def _look(self) -> None:
        """Times a window of steps, then sees what each process holds."""
        began = time.monotonic()
        self._ear.wait_for_steps(WINDOW)
        now = time.monotonic()
        self.found.speeds.append((now - self._began, WINDOW / (now - began)))
        for name in ["control", *map(name_of, self._training.tasks)]:
            pid = self._children.pid(name)
            life = self._lives.get(name)
            if life is None or life.pid != pid:
                life = self._lives[name] = Life(name, pid)
            life.looks.append((now - self._began, look(pid)))

    def _end(self) -> None:
        """Every worker stops at the same step, one that none has reached."""
        last = self.found.last_step = self._ear.step + 1000
        fresh = self._stop_file.with_suffix(".new")
        fresh.write_text(str(last))
        fresh.replace(self._stop_file)
        self._training.end()
        right = f"done {last} {RATE * last} {curve_after(last)}"
        told = {name: line for name, line in self._ear.lines if line.startswith("done ")}
        for index in range(STORY.workers):
            if (said := told.get(f"worker/{index}", "nothing")) != right:
                self.found.violations.append(f"a wrong sum: worker/{index} said {said!r}, not {right!r}")

    def _judge(self, life: Life) -> None:
        growth = life.growth()
        if growth:
            self.found.growth.append((life.name, life.looks[-1][0] - life.looks[0][0], growth))
        self.found.violations += life.leaks()


#: Kind → weight. What lives long is to see many others die.
KINDS = {
    "kill_worker": 3.0,
    "kill_and_start_at_once": 2.0,
    "stand_still": 3.0,
    "kill_client": 3.0,
    "say_nonsense": 2.0,
    "kill_control": 0.4,
    "kill_chief": 0.4,
    "kill_ps": 0.3,
}


def run(
    seconds: float,
    seed: int,
    kinds: dict[str, float],
    folder: Path,
    lease: float,
    heartbeat: float,
    *,
    each_once: bool = False,
) -> Found:
    """One soak in a folder of its own. Blocks for its seconds and a moment more, or for one fault of each kind."""
    ear = Ear()
    kept = {name: value for name, value in os.environ.items() if name.startswith("TENFOLD_")}
    os.environ |= {"TENFOLD_CLUSTER_NAME": "default", "TENFOLD_REPORT": "1"}
    try:
        with Children(ear.hear) as children:
            return Soak(seed, folder, children, ear, lease, heartbeat).run(seconds, kinds, each_once=each_once)
    finally:
        for name in [name for name in os.environ if name.startswith("TENFOLD_")]:
            del os.environ[name]
        os.environ |= kept


def chosen(text: str) -> dict[str, float]:
    """The kinds of a comma-separated list. Raises ValueError for one that there is not."""
    names = [name for name in text.split(",") if name] or list(KINDS)
    if wrong := [name for name in names if name not in KINDS]:
        raise ValueError(f"there is no fault {wrong[0]!r}; there are {', '.join(KINDS)}")
    return {name: KINDS[name] for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", type=chosen, default=KINDS, help=f"some of {', '.join(KINDS)}")
    parser.add_argument("--lease", type=float, default=3.0, help="seconds of a lease, as the control service has it")
    parser.add_argument("--heartbeat", type=float, default=1.0, help="seconds between a task's heartbeats")
    parser.add_argument("--json", type=Path, help="write all figures into this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tenfold-soak-", ignore_cleanup_errors=True) as folder:
        found = run(options.seconds, options.seed, options.faults, Path(folder), options.lease, options.heartbeat)
    print(found)
    if options.json is not None:
        figures: dict[str, Any] = {"load": os.getloadavg()[1], "cores": os.cpu_count(), **asdict(found)}
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    sys.exit(bool(found.violations))


if __name__ == "__main__":
    main()
