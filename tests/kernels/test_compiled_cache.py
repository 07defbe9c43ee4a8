"""Machine code on disk belongs to the text that it was made of: an edit of an inlined function is seen at once."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

BODIES = """
def twice(x):
    return x {operator} x

def body(x):
    return x - x
"""
LOOPS = """
import sys
import numpy as np
import bodies
from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline

twice = bodies.twice = inline(bodies.twice)
body = {body}

def loop(x_N, out_N):
    for i in range(x_N.size):
        out_N[i] = body(x_N[i])

x, out = np.arange(3.0), np.zeros(3)
compiled = compile_loop(loop, "r1 w1", np.float64)
compiled(x, out)
print(out.tolist(), int("numba" not in sys.modules))
"""


def run(folder: Path) -> tuple[str, bool]:
    """What the loop gives in a process of its own, and whether its machine code came from the disk."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "loops.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    given, _, hits = done.stdout.strip().rpartition(" ")
    return given, hits == "1"


@pytest.mark.thorough
def test_an_edited_body_is_compiled_anew(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(LOOPS.format(body="twice"), encoding="utf-8")
    (tmp_path / "bodies.py").write_text(BODIES.format(operator="+"), encoding="utf-8")
    assert run(tmp_path) == ("[0.0, 2.0, 4.0]", False)
    assert run(tmp_path) == ("[0.0, 2.0, 4.0]", True)

    (tmp_path / "bodies.py").write_text(BODIES.format(operator="*"), encoding="utf-8")

    assert run(tmp_path) == ("[0.0, 1.0, 4.0]", False)
    assert run(tmp_path) == ("[0.0, 1.0, 4.0]", True)


@pytest.mark.thorough
def test_an_edit_of_what_a_body_calls_counts_too(tmp_path: Path) -> None:
    calling = BODIES.replace("return x - x", "return twice(x)")
    (tmp_path / "loops.py").write_text(LOOPS.format(body="inline(bodies.body)"), encoding="utf-8")
    (tmp_path / "bodies.py").write_text(calling.format(operator="+"), encoding="utf-8")
    assert run(tmp_path) == ("[0.0, 2.0, 4.0]", False)

    (tmp_path / "bodies.py").write_text(calling.format(operator="*"), encoding="utf-8")

    assert run(tmp_path) == ("[0.0, 1.0, 4.0]", False)
