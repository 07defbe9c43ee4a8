"""What type checkers and editors see of `tf` is what a program finds there."""

from __future__ import annotations

import pytest

from support import type_stubs
from support.typed_programs import ROOT, check, programs


def test_the_stubs_are_those_of_the_tables() -> None:
    wanted = type_stubs.stubs()
    kept = {path: path.read_text(encoding="utf-8") for path in type_stubs.FOLDER.rglob("*.pyi")}

    assert kept.keys() == wanted.keys()
    assert [path for path, text in wanted.items() if kept[path] != text] == [], "run `make stubs`"


def test_the_readme_has_programs() -> None:
    assert all("import tenfold as tf" in program for program in programs(ROOT / "README.md"))
    assert len(programs(ROOT / "README.md")) >= 2


@pytest.mark.thorough
def test_a_checker_finds_a_wrong_name(tmp_path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import tenfold as tf\n\ntf.matmull\ntf.train.AdamOptimiser(0.1)\ntf.nn.rellu\n")

    output, code = check([program])

    assert code == 1
    assert all(f"{program.name}:{line}:" in output for line in (3, 4, 5)), output
