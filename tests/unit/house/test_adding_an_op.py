"""An op is added by the recipe of CONTRIBUTING.md, in a copy of the packages: the files it names are enough.

The copy goes first on the path of a process of its own, which runs the new op's test (a kernel against NumPy, a step
through a session, and the step back through its gradient) and the census: what every op has to have, this one has.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("core/tenfold_core", "kernels/tenfold_kernels", "client/tenfold")

#: What is said of every op, by tests that need nothing else of the tree.
CENSUS = (
    *("tests/kernels/test_census.py", "tests/kernels/test_registry.py", "tests/cuda/test_census.py"),
    *("tests/unit/client/gradients/test_rows.py", "tests/unit/core/test_opdefs.py"),
)

#: File of the recipe → what a new op, Cube of the family math, puts into it. New files are written, others get a piece.
ROW = """
op("Cube", "x: T", "y: T", "T: {floats}", "scale: float = 1.0", shape=s.unchanged)
"""
KERNEL = '''"""Cubes."""

from tenfold_kernels.arrays import Array, as_array
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING


@kernel("Cube", T=FLOATING)
def build_cube(node: KernelNode) -> Compute:
    scale = node.attrs["scale"]

    def compute(x: Array) -> Array:
        return as_array(x * x * x * x.dtype.type(scale))

    return compute
'''
ABSENCE = """
no_kernel("Cube", device="GPU", why="nobody has written it")
"""
GRADIENT = '''"""The gradient row of cubes."""

from tenfold.gradients.registry import gradient


@gradient("Cube", holomorphic=True)
def _cube(op, g):
    x = op.inputs[0]
    return g * x * x * (3.0 * op.get_attr("scale"))
'''
PUBLIC = '"tenfold.ops.generated_ops": """\n        '
TEST = '''"""Cubes."""

import numpy as np
import tenfold as tf
import tenfold_core, tenfold_kernels


def test_packages_are_the_copies():
    for package in (tf, tenfold_core, tenfold_kernels):
        assert package.__file__.startswith(COPY)


def test_kernel(ops):
    x = np.float32([-2, 0, 3])
    np.testing.assert_array_equal(ops.run("Cube", [x], scale=0.5), x**3 / 2)


def test_forward_and_back_through_a_session():
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.cube(x, scale=2.0, name="cube")
    (slope,) = tf.gradients(y, x)
    assert y.name == "cube:0" and y.shape.as_list() == [None, 2]
    with tf.Session() as session:
        values, slopes = session.run([y, slope], {x: [[1.0, -2.0]]})
    assert values.tolist() == [[2.0, -16.0]]
    assert slopes.tolist() == [[6.0, 24.0]]
    assert tf.raw_ops.Cube(x=x).op.type == "Cube"
'''


def recipe() -> tuple[list[str], list[str]]:
    """The files of the table under "Adding an op": those for every op, and those for some."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## Adding an op\n(.*?)^## ", text, re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", section, re.MULTILINE)
    for_some = [file for file, what in rows if what.startswith("only")]
    return [file for file, _ in rows if file not in for_some], for_some


@pytest.mark.thorough
def test_the_recipe_is_enough(tmp_path: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for_every_op, for_some = recipe()
    definitions, kernels, absences, gradients, tests = [file.replace("*", "cube") for file in for_every_op]
    public = "client/tenfold/__init__.py"
    assert public in for_some
    for each in CENSUS:
        for file in (each, str(Path(each).with_name("conftest.py"))):
            if (ROOT / file).exists():
                (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / file, tmp_path / file)
    shutil.copy(ROOT / "tests/op_census.txt", tmp_path / "tests")
    shutil.copytree(ROOT / "tests/support", tmp_path / "tests/support")

    with (tmp_path / definitions).open("a", encoding="utf-8") as table:
        table.write(ROW)
    (tmp_path / kernels).write_text(KERNEL, encoding="utf-8")
    with (tmp_path / absences).open("a", encoding="utf-8") as table:
        table.write(ABSENCE)
    (tmp_path / gradients).write_text(GRADIENT, encoding="utf-8")
    exports = (tmp_path / public).read_text(encoding="utf-8")
    assert exports.count(PUBLIC) == 1
    (tmp_path / public).write_text(exports.replace(PUBLIC, f"{PUBLIC}cube "), encoding="utf-8")
    (tmp_path / tests).write_text(f"COPY = {str(tmp_path)!r}\n{TEST}", encoding="utf-8")

    path = os.pathsep.join(str((tmp_path / each).parent) for each in (*PACKAGES, "tests/support"))
    # the census wants a test of each family
    for other in (ROOT / "tests/kernels").glob("test_*.py"):
        (tmp_path / "tests/kernels" / other.name).touch()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", tests, *CENSUS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d{3,} passed", done.stdout), "the census asks hundreds of ops"
