"""Clusters that are simulated, a seed for each (tests/simulated): thousands of them, and each can be played again.

A seed that once failed stays in found_seeds.txt, with what it found. What each seed has to hold: simulated/scenario.py.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "tests/simulated/run.py"
FOUND = ROOT / "tests/simulated/found_seeds.txt"


#: On a machine that is busy with other tests, too.
pytestmark = pytest.mark.timeout(400)


def play(*arguments: str, seconds: float = 350.0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(RUN), *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        finally:
            # the processes that it started for a part of the seeds, too
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@pytest.mark.thorough
def test_two_hundred_seeds() -> None:
    played = play("--seeds", "1-200")

    assert played.returncode == 0, played.stdout + played.stderr


def test_seeds_that_found_something() -> None:
    seeds = re.findall(r"^(\d+) ", FOUND.read_text(), re.M)

    played = play(*(f"--seed={seed}" for seed in seeds))

    assert seeds
    assert played.returncode == 0, played.stdout + played.stderr


def test_a_seed_is_the_same_each_time() -> None:
    """In other processes, where objects lie elsewhere in memory."""
    first, second = (play("--seeds", "1-12", "--traces") for _ in range(2))

    assert first.stdout.count("\n") == 12
    assert first.stdout == second.stdout


def test_a_seed_does_not_depend_on_those_before() -> None:
    alone, after_others = play("--seed", "9", "--traces"), play("--seeds", "5-9", "--traces")

    assert alone.stdout
    assert after_others.stdout.endswith(alone.stdout)


@pytest.mark.parametrize(
    ("what", "seeds", "says"),
    [
        ("request-ids", "1-500", r"request \d+ of counter"),
        ("cleanup", "1-500", "has steps with a rendezvous"),
        # few seeds stop a task for so long: most of those that do not are left out
        ("signs-of-life", "725-999", "was not answered within"),
    ],
)
def test_what_is_taken_away_is_noticed(what: str, seeds: str, says: str) -> None:
    """A promise that nothing keeps any more is broken by some of the seeds, which say so and how to play them."""
    played = play("--seeds", seeds, "--without", what, "--stop")

    assert played.returncode == 1
    assert re.search(says, played.stdout)
    assert re.search(r"^seed (\d+) failed: python tests/simulated/run.py --seed \1 --verbose$", played.stdout, re.M)


@pytest.mark.long
@pytest.mark.parametrize("thousand", range(10))
def test_ten_thousand_seeds(thousand: int) -> None:
    played = play("--seeds", f"{1000 * thousand + 1}-{1000 * (thousand + 1)}", "--processes", "2")

    assert played.returncode == 0, played.stdout + played.stderr
