"""What type checkers and editors see of `tf` is what a program finds there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from support import type_stubs
from support.typed_programs import ROOT, check, programs

if TYPE_CHECKING:
    from pathlib import Path


def test_the_stubs_are_those_of_the_tables() -> None:
    wanted = type_stubs.stubs()
    kept = {path: path.read_text(encoding="utf-8") for path in type_stubs.FOLDER.rglob("*.pyi")}

    assert kept.keys() == wanted.keys()
    assert [path for path, text in wanted.items() if kept[path] != text] == [], "run `make stubs`"


def test_the_readme_has_programs() -> None:
    assert all("import tenfold as tf" in program for program in programs(ROOT / "README.md"))
    assert len(programs(ROOT / "README.md")) == 1


@pytest.mark.thorough
def test_a_checker_finds_a_wrong_name_or_argument(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    wrong = ["tf.matmull", "tf.train.AdamOptimiser(0.1)", "tf.nn.rellu", "tf.zeros([2], 1.5)", "tf.Session(config=3)"]
    program.write_text("import tenfold as tf\n\n" + "\n".join([*wrong, "tf.nn.relu(tf.zeros([2], tf.float64))\n"]))

    output, code = check([program])

    assert code == 1
    found = {int(line) for line in re.findall(rf"{program.name}:(\d+): error", output)}
    assert found == set(range(3, 3 + len(wrong))), output
