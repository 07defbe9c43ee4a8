"""A program whose folder has files named like Python's own modules, and like those of packages that Tenfold needs."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tenfold.cli.modules_apart import PACKAGES

if TYPE_CHECKING:
    from pathlib import Path

#: Names of Python's that a file can have; Python takes a few of itself only, whatever there is.
NAMES = (sys.stdlib_module_names | PACKAGES) - {"__future__", "builtins", "sys", "importlib"}

#: Uses both sides, early, late, by compiled modules and from a module beside it.
PROGRAM = """
import statistics, json, beside, click
import importlib
assert (statistics.WHOSE, json.WHOSE, click.WHOSE) == ("the program's",) * 3, statistics
import {module} as tf
from {module}.{benchmark} import Benchmark
assert importlib.import_module("secrets").WHOSE == "the program's"
v = tf.Variable(2.0)
step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(0.25).minimize(v * v, global_step=step)
tf.summary.scalar("v", v)
with tf.train.MonitoredTrainingSession(checkpoint_dir={folder!r}) as session:
    session.run(train)
    assert session.run(v) == 1.0
tf.estimator, tf.contrib.learn.Estimator, tf.profiler
Benchmark().report_benchmark(iters=1, wall_time=1.0)
assert beside.json.WHOSE == statistics.WHOSE
import random, uuid
assert random.WHOSE == uuid.WHOSE == "the program's"
print("both sides")
"""


@pytest.mark.parametrize(
    ("as_tensorflow", "beside_it"),
    [
        pytest.param(True, True),
        pytest.param(False, True, marks=pytest.mark.thorough),
        pytest.param(True, False, marks=pytest.mark.thorough),
    ],
)
def test_each_side_has_its_own(tmp_path: Path, as_tensorflow: bool, beside_it: bool) -> None:
    folder = tmp_path / "program"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text('WHOSE = "the program\'s"\n')
    (folder / "beside.py").write_text("import json\n")
    module, benchmark = ("tensorflow", "python.platform.benchmark") if as_tensorflow else ("tenfold", "test.benchmark")
    text = PROGRAM.format(module=module, benchmark=benchmark, folder=str(tmp_path / "checkpoints"))
    (folder / "main.py").write_text(text)
    # -P: as the command `tenfold` does, Python looks for nothing where it is started
    command = [sys.executable, "-P", "-m", "tenfold.cli", "run", "--ps", "0", "--workers", "1"]
    command += ["--as-tensorflow"] if as_tensorflow else []

    done = subprocess.run(
        [*command, str(folder / "main.py")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=folder if beside_it else tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )

    assert "both sides" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    "safe",
    [
        "-P",
        pytest.param("PYTHONSAFEPATH", marks=pytest.mark.thorough),
        pytest.param("", marks=pytest.mark.thorough),
    ],
)
def test_a_program_that_leaves_its_folder_out_finds_nothing_there(tmp_path: Path, safe: str) -> None:
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "main.py").write_text("import beside\n")
    command = [sys.executable, "-P", "-m", "tenfold.cli", "run", "--ps", "0", "--workers", "1"]
    command += ["python", "-P"] if safe == "-P" else []

    done = subprocess.run(
        [*command, "main.py"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, **({safe: "1"} if safe == "PYTHONSAFEPATH" else {})},
    )

    assert ("No module named 'beside'" in done.stdout + done.stderr) == bool(safe)


def test_a_module_is_found_where_it_is_started(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "statistics.py").write_text('WHOSE = "the package\'s"\n')
    (tmp_path / "statistics.py").write_text('WHOSE = "the program\'s"\n')
    (tmp_path / "package" / "main.py").write_text(
        "import statistics\nfrom . import statistics as own\nfrom tenfold.test import benchmark\n"
        "print(statistics.WHOSE, own.WHOSE, benchmark.statistics.mean([1, 2]))\n"
    )
    command = [sys.executable, "-P", "-m", "tenfold.cli", "run", "--ps", "0", "--workers", "1", "-m", "package.main"]

    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path)

    assert "the program's the package's 1.5" in done.stdout, done.stdout + done.stderr
