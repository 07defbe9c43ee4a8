"""A worker stands still, another process takes its place, it wakes: none of its updates is applied any more.

The promise of docs/promises.md, on real processes, again and again with the replacement as the next victim, for a
variable and for an accumulator of a parameter server. Every count is exact: what a life was told to have done, and one
step more at most, which was under way when it was stopped.
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from process.replaced_worker import accumulator_of
from support.ports import free_addresses
from support.task_processes import PATIENCE, stand_still
from tenfold.cli.children import Children

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

FOLDER = Path(__file__).parent


class Lives:
    """The lives of worker 0, each a process, and a client of the parameter server that counts their updates."""

    def __init__(self, children: Children, lives: int, server: tf.train.Server) -> None:
        self._children, self._lives = children, lives
        self._ps = server.target.removeprefix("grpc://")
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            counts = tf.get_variable("counts", [lives], initializer=tf.zeros_initializer())
            self._counts = [counts, tf.stack([accumulator_of(life).num_accumulated() for life in range(lives)])]
            self._session = tf.Session(server.target)
            self._session.run(tf.global_variables_initializer())

    def start(self, life: int) -> None:
        """The process has done a step when this returns."""
        (own,) = free_addresses(1)
        program = [str(FOLDER / "replaced_worker.py"), str(life), str(self._lives), self._ps, own]
        self._children.start(f"life {life}", program)
        self.heard(life, "^step 1$")

    def heard(self, life: int, pattern: str) -> re.Match[str]:
        return self._children.wait_for_line(f"life {life}", pattern, PATIENCE)

    def signal(self, life: int, number: int) -> None:
        os.kill(self._children.pid(f"life {life}"), number)

    def stop(self, life: int) -> None:
        stand_still(self._children.pid(f"life {life}"))

    def counted(self, life: int) -> tuple[int, int]:
        """The updates of a life that were applied: to the variable, to the accumulator."""
        variable, accumulated = self._session.run(self._counts)
        return int(variable[life]), int(accumulated[life])

    def end(self, life: int) -> None:
        name = f"life {life}"
        self._children.kill(name)
        assert self._children.wait_for_exit([name], PATIENCE) == (name, -signal.SIGKILL)
        self._children.forget(name)


@pytest.fixture
def lives(request: pytest.FixtureRequest) -> Iterator[Lives]:
    (address,) = free_addresses(1)
    server = tf.train.Server({"ps": [address]}, job_name="ps", task_index=0)
    with Children() as children:
        yield Lives(children, request.param + 1, server)
    server.stop()


@pytest.mark.parametrize(
    ("rounds", "lives"),
    [
        (3, 3),
        pytest.param(200, 200, marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
    indirect=["lives"],
)
def test_no_update_of_a_replaced_worker_is_applied(rounds: int, lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    # over gRPC alone a parameter server has to know a worker's address, and a former life still holds that
    monkeypatch.setenv("TENFOLD_LINK", "auto")
    chance = random.Random(rounds)
    lives.start(0)
    for life in range(rounds):
        lives.heard(life, f"^step {2 ** chance.randrange(8)}$")
        lives.stop(life)  # in the middle of any step
        lives.start(life + 1)
        counted = lives.counted(life)

        lives.signal(life, signal.SIGCONT)
        said = lives.heard(life, r"^(again)|^ended (\d+) (.*)$")

        assert said[1] is None, f"life {life} trains on beside its replacement"
        assert "/job:worker/replica:0/task:0 was replaced" in said[3]
        assert lives.counted(life) == counted
        assert counted[0] - int(said[2]) in (0, 1)  # one step was under way
        assert counted[1] - int(said[2]) in (0, 1)
        lives.end(life)
