"""A process that is killed at each step of saving a checkpoint leaves the one before or the new one, whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from support.s3 import S3Server

PROGRAM = Path(__file__).with_name("saving_program.py")
#: More changes than a save makes.
MOST = 60
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


def saved_or_killed(folder: str, at: int) -> bool:
    """Whether the program came to its end."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), folder, str(at)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode == 0


def newest(folder: str) -> int:
    """The step of the newest checkpoint, all of which was read."""
    prefix = tf.train.latest_checkpoint(folder)
    assert prefix is not None, f"no checkpoint in {folder}"
    step = int(prefix.rpartition("-")[2])
    reader = tf.train.load_checkpoint(prefix)
    assert reader.get_tensor("first").tolist() == [float(step)] * 2_000_000
    assert reader.get_tensor("second").tolist() == [step] * 3
    return step


def steps_of_kills(folder: str) -> list[int]:
    found = []
    for at in range(1, MOST):
        tf.gfile.DeleteRecursively(folder) if tf.gfile.Exists(folder) else None
        tf.gfile.MakeDirs(folder)
        over = saved_or_killed(folder, at)
        found.append(newest(folder))
        if over:
            return found
    raise AssertionError(f"more than {MOST} changes")


def check(found: list[int]) -> None:
    """The old one up to a certain change, and from then on the new one; the state file is among the last changes."""
    turn = found.index(2)
    assert found == [1] * turn + [2] * (len(found) - turn)
    assert turn >= 3, "data, index and state are three changes at least"


def test_on_a_disk(tmp_path: Path) -> None:
    check(steps_of_kills(str(tmp_path / "run")))


def test_on_s3(store: S3Server) -> None:
    found = steps_of_kills("s3://training/run")
    check(found)
    # an upload in parts that was cut off is not an object, and is not seen by a reader
    assert not [key for key in store.objects() if ".tempstate" in key]


def test_a_disk_and_s3_have_the_same_bytes_in_the_end(store: S3Server, tmp_path: Path) -> None:
    here, there = str(tmp_path / "run"), "s3://training/run"
    tf.gfile.MakeDirs(here)
    for folder in (here, there):
        assert saved_or_killed(folder, MOST * 10)
    found = store.objects("run/")
    assert {key.removeprefix("run/") for key in found} == set(os.listdir(here))
    for name in os.listdir(here):
        if name.endswith(".meta"):
            continue  # a protocol buffer's map has another order in each process; test_s3.py compares it in one
        content = (Path(here) / name).read_bytes()
        if name == "checkpoint":
            content = content.replace(f"{here}/".encode(), b"")  # relative in a store, as its folder may be moved
        assert found[f"run/{name}"] == content, name
    assert np.frombuffer(found["run/model.ckpt-2.data-00000-of-00001"][:8], np.float32).tolist() == [2, 2]
