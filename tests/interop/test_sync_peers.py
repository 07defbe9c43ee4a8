"""Synchronous training of a chief of ours and a worker of TensorFlow's: both are killed, and neither waits for ever.

ps:0 (ours) ◄── worker:0 (ours, chief; killed first) ◄── tokens ── worker:1 (TensorFlow's; killed next). The chief that
came back numbers its steps anew (train/chief_generation.py); a worker that comes later knows of no such thing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.task_processes import static_cluster

from .tensorflow_processes import QUIET, START_S, interpreter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

PROGRAM = Path(__file__).with_name("sync_worker.py")


class Worker:
    """One worker's process. Its lines come on a thread."""

    def __init__(self, python: str, cluster: Mapping[str, Sequence[str]], index: int, folder: Path) -> None:
        ours = ["--tenfold"] if python == sys.executable else []
        self._process = subprocess.Popen(
            [python, str(PROGRAM), json.dumps(cluster), str(index), str(folder), *ours],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | QUIET,
        )
        #: Guards the two below.
        self._changed = threading.Condition()
        self._lines: list[str] = []
        self._ended = False
        #: Lines that were waited for.
        self._heard = 0
        self._reader = threading.Thread(target=self._read, name=f"read:worker/{index}", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(line.rstrip())
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, word: str) -> list[float]:
        """Waits until the worker says another line that begins with `word`; the numbers behind it."""

        def said() -> bool:
            while self._heard < len(self._lines) and not self._lines[self._heard].startswith(word):
                self._heard += 1
            return self._heard < len(self._lines)

        with self._changed:
            self._changed.wait_for(lambda: said() or self._ended, START_S)
            assert said(), f"it does not say {word!r}:\n" + "\n".join(self._lines[-30:])
            self._heard += 1
            return [float(number) for number in self._lines[self._heard - 1].split()[1:]]

    def end_at(self, step: int) -> None:
        """Tells the worker the last step."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{step}\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """kill -9; returns once it is gone. Idempotent."""
        self._process.kill()
        self._process.wait(START_S)
        self._reader.join(START_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    """Starts a worker; ends them all."""
    started: list[Worker] = []

    def start(python: str, cluster: Mapping[str, Sequence[str]], index: int) -> Worker:
        started.append(Worker(python, cluster, index, tmp_path))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def test_their_worker_trains_on_in_the_second_life_of_our_chief(start: Callable[..., Worker]) -> None:
    theirs = interpreter("2.21")
    with static_cluster(absent=[("worker", 0), ("worker", 1)], ps=1, worker=2) as tasks:
        chief, worker = start(sys.executable, tasks.addresses, 0), start(theirs, tasks.addresses, 1)
        worker.wait_for("step")

        chief.kill()
        chief = start(sys.executable, tasks.addresses, 0)
        chief.wait_for("session")
        worker.wait_for("step")
        # the tokens to spare, which the chief gave when it came, are used up soon: a worker may begin without one
        for _ in range(2):
            worker.kill()
            worker = start(theirs, tasks.addresses, 1)
            worker.wait_for("session")
            (seen,) = worker.wait_for("step")
        for each in (chief, worker):
            each.end_at(int(seen) + 100)
        ends = [each.wait_for("done") for each in (chief, worker)]

    # each update once, and each with its own batch, as one process that trains on the same batches
    for step, *trained in ends:
        assert step >= seen + 100
        assert trained == [step / 2, sum(each % 4 + 1 for each in range(int(step))) / 2]
