"""Trains while tasks are killed: `python tests/process/kill_training.py STORY [--kills 20] [--seed 0]`.

asynchronous, 2 workers: nothing older than the newest checkpoint may come back, and the run ends at its last step
  ps        the parameter server; the workers must get over it by themselves
  workers   any worker; the chief comes back with the newest checkpoint
  saving    the parameter server while it writes a checkpoint: the newest one published loads, whole
  publishing the chief while it saves, for the others write and it publishes
  restoring the chief, and then it or the parameter server while it restores the checkpoint
synchronous, 3 workers: exactly the last step, and what one process gives on the same batches
  worker    one of those that are no chief
  chief     the chief
  any       any worker
  server    the parameter server, with the accumulators and the tokens on it

Killed is `kill -9`, after a random number of further steps; then the task is started again at the same address. The
program is kill_trainer.py. test_kill_training.py runs this. Ends with a line of figures, or fails.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from process.kill_trainer import RATE, curve_after
from support.ports import free_addresses
from tenfold.cli.children import Children
from tenfold.train.checkpoint_management import latest_checkpoint
from tenfold.train.checkpoint_utils import load_checkpoint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TRAINER = Path(__file__).with_name("kill_trainer.py")
#: Steps between checkpoints, and how many more are trained before a task is killed.
SAVE_STEPS, LEAST, MOST = 25, 5, 60
#: Seconds for anything to happen that should.
PATIENCE = 90.0

Task = tuple[str, int]
PS, CHIEF = ("ps", 0), ("worker", 0)


@dataclass(frozen=True)
class Story:
    """Who is killed, and when."""

    victims: tuple[Task, ...]
    synchronous: bool = False
    #: "saving", "restoring", or "" for any moment.
    moment: str = ""
    #: Bytes of a variable that makes saving and restoring take longer.
    ballast: int = 0
    #: How many times more steps are needed, because others train on while a task is away.
    pace: int = 1

    @property
    def workers(self) -> int:
        return 3 if self.synchronous else 2


STORIES = {
    "ps": Story((PS,)),
    "workers": Story((CHIEF, ("worker", 1)), pace=10),
    "saving": Story((PS,), moment="saving", ballast=32 << 20),
    "publishing": Story((CHIEF,), moment="saving", ballast=32 << 20, pace=10),
    "restoring": Story((PS, CHIEF), moment="restoring", ballast=32 << 20, pace=10),
    "worker": Story((("worker", 1), ("worker", 2)), synchronous=True),
    "chief": Story((CHIEF,), synchronous=True),
    "any": Story((CHIEF, ("worker", 1), ("worker", 2)), synchronous=True),
    "server": Story((PS,), synchronous=True),
}


@dataclass
class Report:
    """What came of it."""

    kills: int = 0
    last_step: int = 0
    #: Of every kill: how far the newest step that any trainer had seen was beyond the step training went on from.
    lost: list[int] = field(default_factory=list)
    #: Seconds from every kill to the next step.
    seconds: list[float] = field(default_factory=list)
    #: Kills that left a part of a checkpoint behind.
    torn: int = 0
    #: "done STEP VALUE CURVE" of the workers, by name.
    done: dict[str, tuple[int, float, float]] = field(default_factory=dict)

    def __str__(self) -> str:
        worst = max(self.seconds, default=0.0)
        mean = sum(self.seconds) / max(1, len(self.seconds))
        torn = f", {self.torn} of them within a write" if self.torn else ""
        return (
            f"{self.kills} kills{torn}, {self.last_step} steps, lost at most {max(self.lost, default=0)} steps a kill, "
            f"back after {mean:.1f} s on average and {worst:.1f} s at most, done {self.done}"
        )


class Heard:
    """What the tasks say. `hear` runs on reader threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._began = time.monotonic()
        self.lines: list[tuple[str, str]] = []
        #: Seconds at which each of the lines came.
        self._at: list[float] = []
        self.step = 0
        self.steps = 0
        #: (name, step) of every "session STEP".
        self.sessions: list[tuple[str, int]] = []

    def hear(self, name: str, line: str) -> None:
        words = line.split()
        # a traceback may have such words too
        number = int(words[1]) if len(words) == 2 and words[1].isdecimal() else None
        with self._changed:
            self.lines.append((name, line))
            self._at.append(time.monotonic() - self._began)
            if words[:1] == ["step"] and number is not None:
                self.step, self.steps = number, self.steps + 1
            elif words[:1] == ["session"] and number is not None:
                self.sessions.append((name, number))
            self._changed.notify_all()

    def wait_for_steps(self, count: int) -> None:
        """Waits for `count` more steps of any trainer."""
        with self._changed:
            wanted = self.steps + count
            if not self._changed.wait_for(lambda: self.steps >= wanted, PATIENCE):
                raise AssertionError(f"no {count} steps within {PATIENCE:g} s:\n{self.tail()}")

    def wait_for_word(self, word: str, since: int) -> None:
        """Waits until a process has begun a line with `word`, after the first `since` lines."""

        def said() -> bool:
            return any(line.startswith(word) for _, line in self.lines[since:])

        with self._changed:
            if not self._changed.wait_for(said, PATIENCE):
                raise AssertionError(f"no process was {word} within {PATIENCE:g} s:\n{self.tail()}")

    def wait_for_sessions(self, count: int, who: str) -> int:
        """Waits until `who` has had `count` sessions; the step that the newest began with."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._of(who)) >= count, PATIENCE):
                raise AssertionError(f"{who} got no new session within {PATIENCE:g} s:\n{self.tail()}")
            return self._of(who)[-1]

    def _of(self, who: str) -> list[int]:
        return [step for name, step in self.sessions if name == who]

    def count(self, who: str) -> int:
        with self._changed:
            return len(self._of(who))

    def tail(self) -> str:
        """What the tasks said last, but for most of the steps."""
        with self._changed:
            told = [f"{at:8.1f} s {name} | {line}" for at, (name, line) in zip(self._at, self.lines, strict=True)]
            kept = [text for text, (_, line) in zip(told, self.lines, strict=True) if not line.startswith("step")]
            return "\n".join([*kept[-50:], "...", *told[-5:]])


class Training:
    """One run of the program as all tasks of a cluster."""

    def __init__(
        self,
        story: Story,
        children: Children,
        heard: Heard,
        folder: str,
        last_step: int,
        stop_file: str = "",
        addresses: dict[str, list[str]] | None = None,
    ) -> None:
        """Trains up to `last_step`, or to the step that is written into `stop_file`; at `addresses`, by default free
        ones of loopback."""
        self._children, self._heard = children, heard
        self._addresses = addresses or {"ps": free_addresses(1), "worker": free_addresses(story.workers)}
        self._options = [f"--last-step={last_step}", f"--save-steps={SAVE_STEPS}", f"--folder={folder}"]
        self._options += [f"--stop-file={stop_file}"] * bool(stop_file)
        self._options += ["--sync"] * story.synchronous + [f"--ballast={story.ballast}"] * bool(story.ballast)
        self.tasks = [(job, index) for job, each in self._addresses.items() for index in range(len(each))]

    def address_of(self, task: Task) -> str:
        return self._addresses[task[0]][task[1]]

    def start(self, task: Task) -> None:
        config = {"cluster": self._addresses, "task": {"type": task[0], "index": task[1]}}
        env = {"TF_CONFIG": json.dumps(config), "TENFOLD_STOP_WITH_WORKERS": "1"}
        self.launch(name_of(task), [str(TRAINER), *self._options], env)

    def launch(self, name: str, program: Sequence[str], env: Mapping[str, str]) -> None:
        """Starts `python PROGRAM…` as the child of that name; on a host of its own where there are hosts."""
        self._children.start(name, program, env=env)

    def kill(self, task: Task) -> None:
        """kill -9, and the task is started again."""
        name = name_of(task)
        os.kill(self._children.pid(name), signal.SIGKILL)
        assert self._children.wait_for_exit([name], PATIENCE) == (name, -signal.SIGKILL), self._heard.tail()
        self._children.forget(name)
        self.start(task)

    def end(self) -> None:
        """Waits until every task has ended well."""
        for task in self.tasks:
            ended, before = None, -1
            while ended is None and self._heard.steps != before:
                # as long as there are further steps, nothing is stuck
                before = self._heard.steps
                ended = self._children.wait_for_exit([name_of(task)], PATIENCE)
            assert ended == (name_of(task), 0), f"{name_of(task)}: {ended}\n{self._heard.tail()}"


def name_of(task: Task) -> str:
    return f"{task[0]}/{task[1]}"


def run(story_name: str, kills: int, seed: int, folder: str, steps_per_kill: int = 400) -> Report:
    """One training with `kills` kills. Raises AssertionError for a promise that was broken."""
    story, chance = STORIES[story_name], random.Random(seed)
    heard, report = Heard(), Report(last_step=steps_per_kill * kills * story.pace)
    with Children(heard.hear) as children:
        training = Training(story, children, heard, folder, report.last_step)
        for task in training.tasks:
            training.start(task)
        for _ in range(kills):
            heard.wait_for_steps(chance.randint(LEAST, MOST))
            victim = chance.choice(story.victims)
            # the chief comes by a session with what a checkpoint holds, if it or the parameter server was killed
            restores = victim in (PS, CHIEF)
            since, sessions = len(heard.lines), heard.count(name_of(CHIEF))
            if story.moment == "saving":
                heard.wait_for_word("saving", since)
                report.torn += _writing(folder)
            elif story.moment == "restoring":
                training.kill(CHIEF)
                heard.wait_for_word("restoring", since)
            saved, seen, killed_at = newest_whole(folder), heard.step, time.monotonic()
            training.kill(victim)
            if restores:
                began = heard.wait_for_sessions(sessions + 1, name_of(CHIEF))
                assert began >= saved, f"step {saved} was saved, training went on from {began}"
                report.lost.append(max(0, seen - began))
            heard.wait_for_steps(1)
            report.seconds.append(time.monotonic() - killed_at)
            report.kills += 1
        training.end()
    check(story, report, heard)
    newest_whole(folder)
    return report


def _writing(folder: str) -> int:
    """Waits, awake, until a part of a checkpoint is there that is not published; 1 if it is still there then."""
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        if glob.glob(os.path.join(folder, "*_temp_*")):
            return 1
    return 0


def newest_whole(folder: str) -> int:
    """The step of the newest checkpoint published, every tensor of which was read and has its checksum; 0 for none."""
    prefix = latest_checkpoint(folder)
    if prefix is None:
        return 0
    reader = load_checkpoint(prefix)
    for name in reader.get_variable_to_shape_map():
        reader.get_tensor(name)
    return int(prefix.rpartition("-")[2])


def check(story: Story, report: Report, heard: Heard) -> None:
    """What holds of the end. Asynchronous workers may each add a step of their own before they see the last one."""
    for name, line in heard.lines:
        if line.startswith("done "):
            report.done[name] = int(line.split()[1]), float(line.split()[2]), float(line.split()[3])
    assert len(report.done) == story.workers, heard.tail()
    steps = {step for step, _, _ in report.done.values()}
    if not story.synchronous:
        assert report.last_step <= max(steps) < report.last_step + story.workers, report
        for step, value, _ in report.done.values():
            # an update that a kill, or a checkpoint, cut in two counts in one of the two
            assert abs(value / RATE - step) <= story.workers * (2 * report.kills + 1), report
        return
    assert steps == {report.last_step}, report
    # each of the updates once, with its own batch: what one process gives
    assert {value for _, value, _ in report.done.values()} == {RATE * report.last_step}, report
    assert {curve for _, _, curve in report.done.values()} == {curve_after(report.last_step)}, report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("story", choices=list(STORIES))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(options.story, run(options.story, options.kills, options.seed, folder))


if __name__ == "__main__":
    main()
