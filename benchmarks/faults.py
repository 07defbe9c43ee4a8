#!/usr/bin/env python3
"""Kills of random roles in synchronous training: how soon they are noticed, how soon training goes on, what is lost.

Trained is what tests/process/kill_training.py trains: three workers, a parameter server, and a control service with
which all of them are registered. Each kill is `kill -9` of any of the four after a random number of steps; the task is
started again once the control service has declared it lost, as a supervisor would that looks at nothing else. Detection
is the time from the kill to that moment, recovery from the kill to the first step after the restart. While a worker
that is not the chief is away the others train on, so a long lease needs more steps. At the end the sums must be what
one process gives on the same batches. tests/process/test_benchmarks.py runs it with one kill.

    python benchmarks/faults.py [--kills 30] [--seed 0] [--lease 3] [--heartbeat 1] [--steps-per-kill 100] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from process import kill_training
from process.kill_trainer import RATE, curve_after
from process.kill_training import CHIEF, PATIENCE, PS, Heard, Story, Task, Training, name_of, newest_whole
from tenfold.cli.children import Children
from tenfold.control import ControlClient

#: Every role.
STORY = Story((PS, CHIEF, ("worker", 1), ("worker", 2)), synchronous=True)


@dataclass
class Figures:
    """What came of it."""

    kills: int = 0
    seed: int = 0
    lease: float = 0.0
    heartbeat: float = 0.0
    last_step: int = 0
    #: Kills by role.
    victims: dict[str, int] = field(default_factory=dict)
    #: Of each kill: seconds until the control service had the task as lost, and until anybody's next step.
    detection: list[float] = field(default_factory=list)
    recovery: list[float] = field(default_factory=list)
    #: Of each kill of the parameter server or the chief: steps that had been seen and were trained again.
    lost: list[int] = field(default_factory=list)
    #: Waits that ran out, and what was waited for.
    hangs: list[str] = field(default_factory=list)
    #: Workers whose sums at the end were not those of one process.
    wrong_sums: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        detected, back = self.detection, self.recovery
        victims = ", ".join(f"{name} {count}" for name, count in sorted(self.victims.items()))
        lines = [
            f"{self.kills} kills (seed {self.seed}: {victims}) in "
            f"{self.last_step} synchronous steps of 3 workers, {self.seconds:.0f} s; lease {self.lease:g} s, heartbeat "
            f"{self.heartbeat:g} s",
            f"detection: p50 {percentile(detected, 50):.2f} s, p99 {percentile(detected, 99):.2f} s",
            f"recovery, detection included: p50 {percentile(back, 50):.2f} s, p99 {percentile(back, 99):.2f} s",
            f"steps trained again: {sum(self.lost)} in all, at most {max(self.lost, default=0)} a kill",
            f"hangs: {len(self.hangs)}, wrong sums: {len(self.wrong_sums)}",
        ]
        return "\n".join([*lines, *self.hangs, *self.wrong_sums])


def percentile(values: list[float], percent: float) -> float:
    """The smallest of the values that `percent` of them do not exceed; 0 for none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else 0.0


def run(kills: int, seed: int, lease: float, heartbeat: float, folder: str, steps_per_kill: int = 100) -> Figures:
    """One training with `kills` kills. Raises ValueError where it ended before them: its steps were too few."""
    figures = Figures(seed=seed, lease=lease, heartbeat=heartbeat, last_step=steps_per_kill * (kills + 1))
    heard, began = Heard(), time.monotonic()
    with Children(heard.hear) as children:
        database = os.path.join(folder, "control.db")
        settings = {"TENFOLD_CONTROL_LEASE_TTL": str(lease), "TENFOLD_CONTROL_HEARTBEAT": str(heartbeat)}
        program = ["-m", "tenfold.cli", "control", "--port", "0", "--database", database]
        children.start("control", program, env={**settings, "TENFOLD_CONFIG": os.devnull})
        url = children.wait_for_line("control", r"listening on (http://\S+)", PATIENCE)[1]
        # the last one: the caller may have turned registering off
        told = {"TENFOLD_CONTROL": url, "TENFOLD_CLUSTER_NAME": "default", "TENFOLD_REPORT": "1"}
        before = {name: os.environ.pop(name) for name in told if name in os.environ}
        os.environ |= told
        try:
            with ControlClient(url) as control:
                # tasks register on threads of their own: it would be known a while after the first steps only
                control.declare_cluster("default", {"ps": 1, "worker": STORY.workers})
                client = Watcher(control)
                training = Training(STORY, children, heard, os.path.join(folder, "checkpoints"), figures.last_step)
                for task in training.tasks:
                    training.start(task)
                chance = random.Random(seed)
                for _ in range(kills):
                    one_kill(chance, training, children, heard, client, figures, os.path.join(folder, "checkpoints"))
                training.end()
        except AssertionError as error:
            if any(line.startswith("done ") for _, line in heard.lines):
                text = f"training ended after {figures.kills} of {kills} kills: give --steps-per-kill more steps"
                raise ValueError(text) from error
            figures.hangs.append(f"after {figures.kills} kills: {error}")
        finally:
            for name in told:
                del os.environ[name]
            os.environ |= before
    figures.seconds = time.monotonic() - began
    if not figures.hangs:
        figures.wrong_sums += wrong_sums(heard, figures.last_step)
    return figures


class Watcher:
    """What the control service says of tasks."""

    def __init__(self, control: ControlClient) -> None:
        self._control = control

    def wait(self, task: Task, ready: bool, patience: float) -> None:
        """Returns once the task is ready, or is not; by long-poll. Raises AssertionError after `patience` seconds."""
        name, deadline = f"/job:{task[0]}/replica:0/task:{task[1]}", time.monotonic() + patience
        spec = self._control.spec("default")
        while (spec.states.get(name) == "ready") is not ready:
            left = deadline - time.monotonic()
            assert left > 0, f"{name} is {spec.states.get(name)} after {patience:g} s"
            spec = self._control.poll_spec("default", after=spec.version, wait=left)


def one_kill(
    chance: random.Random,
    training: Training,
    children: Children,
    heard: Heard,
    watcher: Watcher,
    figures: Figures,
    checkpoints: str,
) -> None:
    """kill -9 of a random task after a random number of steps, and all that follows until somebody trains on."""
    heard.wait_for_steps(chance.randint(kill_training.LEAST, kill_training.MOST))
    victim = chance.choice(STORY.victims)
    name, restores = name_of(victim), victim in (PS, CHIEF)
    watcher.wait(victim, True, PATIENCE)
    sessions, saved, seen = heard.count(name_of(CHIEF)), newest_whole(checkpoints), heard.step
    killed_at = time.monotonic()
    os.kill(children.pid(name), signal.SIGKILL)
    ended = children.wait_for_exit([name], PATIENCE)
    assert ended == (name, -signal.SIGKILL), f"{name}: {ended}\n{heard.tail()}"
    watcher.wait(victim, False, PATIENCE)
    figures.detection.append(time.monotonic() - killed_at)
    children.forget(name)
    training.start(victim)
    if restores:
        began = heard.wait_for_sessions(sessions + 1, name_of(CHIEF))
        assert began >= saved, f"step {saved} was saved, training went on from {began}"
        figures.lost.append(max(0, seen - began))
    heard.wait_for_steps(1)
    figures.recovery.append(time.monotonic() - killed_at)
    figures.kills += 1
    figures.victims[name] = figures.victims.get(name, 0) + 1


def wrong_sums(heard: Heard, last_step: int) -> list[str]:
    """What workers said at the end that one process would not have."""
    right = f"done {last_step} {RATE * last_step} {curve_after(last_step)}"
    told = {name: line for name, line in heard.lines if line.startswith("done ")}
    missing = [f"{name_of(('worker', i))} said nothing" for i in range(STORY.workers) if f"worker/{i}" not in told]
    return missing + [f"{name}: {line!r}, not {right!r}" for name, line in told.items() if line != right]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lease", type=float, default=3.0, help="Seconds of a lease, as the control service has it.")
    parser.add_argument("--heartbeat", type=float, default=1.0, help="Seconds between a task's heartbeats.")
    parser.add_argument("--steps-per-kill", type=int, default=100, help="What is trained in all, for each kill.")
    parser.add_argument("--json", type=Path, help="Write the figures, of each kill, into this file.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(options.kills, options.seed, options.lease, options.heartbeat, folder, options.steps_per_kill)
    print(found)
    if options.json is not None:
        load = os.getloadavg()[1]
        machine = {"cores": os.cpu_count(), "load": load, "python": platform.python_version()}
        options.json.write_text(json.dumps({"machine": machine, **asdict(found)}, indent=1) + "\n")
    sys.exit(1 if found.hangs or found.wrong_sums else 0)


if __name__ == "__main__":
    main()
