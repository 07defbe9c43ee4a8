"""kill -9 of the chief at each stage of a save: the newest checkpoint that was published loads, whole (P3, row 4).

    chief (saves for ever) ──► ps:0, ps:1, which write their shards and stay

A stage is seen by the files that it makes: the shards, the index of all, the state file. After each kill the chief
starts again from what is there. The whole training goes on in tests/process/kill_training.py, story `publishing`.
"""

from __future__ import annotations

import glob
import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from process import kill_training
from support.task_processes import PATIENCE, Tasks, static_cluster
from tenfold.train.checkpoint_management import latest_checkpoint
from tenfold.train.checkpoint_utils import load_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What is there in the middle of each stage.
STAGES = {
    "shards": "model-*_temp_*/part-*",
    "index": "model-*.index.tempstate*",
    "published": "model-*.index",
    "state": "checkpoint.tempstate*",
}
#: Seconds that a stage is waited for; it may be over before it is seen.
GLANCE = 1.0


class Chief:
    """The program, which is started again and again."""

    def __init__(self, tasks: Tasks, folder: Path) -> None:
        self._tasks, self._folder = tasks, folder
        self._count = 0
        self.saved = 0

    @property
    def name(self) -> str:
        return f"chief{self._count}"

    def start(self) -> int:
        """The step that it begins with, once it has saved one of its own."""
        self._count += 1
        program = ["-m", "support.faults.saving_chief", json.dumps(self._tasks.addresses), str(self._folder)]
        self._tasks.children.start(self.name, program, env={"PYTHONPATH": str(Path(__file__).resolve().parents[1])})
        began = int(self._tasks.children.wait_for_line(self.name, r"^restored (\d+)", PATIENCE)[1])
        self._tasks.children.wait_for_line(self.name, r"^saved", PATIENCE)
        return began

    def kill(self) -> None:
        os.kill(self._tasks.children.pid(self.name), signal.SIGKILL)
        assert self._tasks.children.wait_for_exit([self.name], PATIENCE) == (self.name, -signal.SIGKILL)
        self.saved = max(int(line.split()[1]) for line in self._tasks.lines(self.name) if line.startswith("saved "))


def newest(folder: Path) -> int:
    """The step of the newest checkpoint, in which every variable is of that step."""
    prefix = latest_checkpoint(str(folder))
    assert prefix is not None
    reader = load_checkpoint(prefix)
    step = int(reader.get_tensor("global_step"))
    for name in reader.get_variable_to_shape_map():
        assert np.all(reader.get_tensor(name) == step), f"{name} of {prefix} is of another step"
    return step


def there(folder: Path, pattern: str) -> set[str]:
    """What there is now: a folder of a save may go while it is looked into, which glob.glob does not mind."""
    return set(glob.glob(str(folder / pattern)))


def wait_for(folder: Path, pattern: str, known: set[str]) -> bool:
    """Waits, awake, until a file of the stage is there that was not before."""
    deadline = time.monotonic() + GLANCE
    while time.monotonic() < deadline:
        if there(folder, pattern) - known:
            return True
    return False


@pytest.fixture
def chief(tmp_path: Path) -> Iterator[Chief]:
    absent = [("worker", 0)]
    with static_cluster(ps=2, worker=1, absent=absent) as tasks:
        yield Chief(tasks, tmp_path)


def killed(chief: Chief, folder: Path, stages: list[str]) -> None:
    for stage in stages:
        began = chief.start()
        assert began >= chief.saved, f"step {chief.saved} was saved, the chief began with {began}"
        wait_for(folder, STAGES[stage], there(folder, STAGES[stage]))
        chief.kill()
        found = newest(folder)
        # that it was published may not have been said
        assert found in (chief.saved, chief.saved + 1), f"{found} is the newest, and {chief.saved} was saved"


@pytest.mark.thorough
def test_at_some_stages(chief: Chief, tmp_path: Path) -> None:
    killed(chief, tmp_path, ["shards", "state"])


@pytest.mark.long
@pytest.mark.timeout(300)
def test_at_every_stage(chief: Chief, tmp_path: Path) -> None:
    killed(chief, tmp_path, [*STAGES] * 3)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_training_goes_on(tmp_path: Path) -> None:
    report = kill_training.run("publishing", 2, 3, str(tmp_path), steps_per_kill=150)

    assert report.kills == 2
