"""The lock of Numba's cache on disk: one process at a time, no longer than its deadline, and never a reason to fail."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numba
import numpy as np

from tenfold_kernels.cpu._compiled import cache_lock as module
from tenfold_kernels.cpu._compiled import compiling
from tenfold_kernels.cpu._compiled.cache_lock import cache_lock

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

#: Holds the lock until its standard input ends.
HOLDER = """
import sys
from pathlib import Path
from tenfold_kernels.cpu._compiled.cache_lock import cache_lock
with cache_lock(Path(sys.argv[1])) as held:
    print(held, flush=True)
    sys.stdin.read()
"""


def test_another_process_waits_its_time_and_gets_the_lock_when_it_is_free(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "loop.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    with holder:
        assert holder.stdout.readline() == "True\n"
        with cache_lock(path, 0.0) as held:
            assert not held
        holder.communicate(timeout=30)

    assert holder.returncode == 0
    with cache_lock(path, 0.0) as held:
        assert held


def test_a_lock_is_looked_at_again_until_it_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[OSError | None] = [BlockingIOError(), BlockingIOError(), None]
    slept: list[float] = []

    def flock(*_: int) -> None:
        if answer := answers.pop(0):
            raise answer

    monkeypatch.setattr(module, "fcntl", SimpleNamespace(flock=flock, LOCK_EX=2, LOCK_NB=4))
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 7.0, sleep=slept.append))
    with cache_lock(tmp_path / "loop.lock") as held:
        assert held
    assert slept == [module._LOOK_SECONDS] * 2


def test_a_lock_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with cache_lock(tmp_path / "file" / "loop.lock") as held:
        assert not held


def double(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(x.shape[0]):
        out[i] = x[i] + x[i]


def test_a_loop_is_compiled_and_kept_under_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    x, out = np.arange(3.0), np.zeros(3)

    compiling.compile_loop(double, "r1 w1", np.float64)(x, out)
    locks = list(tmp_path.rglob("*.double.lock"))

    assert out.tolist() == [0.0, 2.0, 4.0]
    assert len(locks) == 1
    assert list(locks[0].parent.glob("*double*"))
