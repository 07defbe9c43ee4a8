"""docs/promises.md: the tests that it names exist, each promise has some, says what is not tried, and can be broken."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from mutants.breakages import BREAKAGES, Breakage
from mutants.promises import broken

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (P\d+) .*?\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
NAMED = re.findall(r"`(tests/[\w/]+\.py)(?::(\w+))?`", TEXT)


def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_named_test_exists() -> None:
    missing = [f"{path}::{name}" for path, name in NAMED if not (ROOT / path).is_file() or not _has(path, name)]

    assert NAMED
    assert not missing


def _has(path: str, name: str) -> bool:
    return not name or name in functions(path)


def test_each_promise_has_tests() -> None:
    assert sorted(SECTIONS) == sorted(f"P{number}" for number in range(1, 11))
    untried = [name for name, text in SECTIONS.items() if not re.search(r"`tests/[\w/]+\.py:", text)]

    assert not untried


def test_each_promise_says_what_is_not_tried() -> None:
    assert not [name for name, text in SECTIONS.items() if "Not tried yet:" not in text]


@pytest.mark.parametrize("promise", SECTIONS)
def test_each_promise_lists_what_breaks_it(promise: str) -> None:
    _, _, listed = SECTIONS[promise].partition("Broken on purpose:\n\n")
    lines = [f"- {' '.join(line.split())}" for line in f"\n{listed}".split("\n- ")[1:]]

    assert lines
    assert lines == [row.line for row in BREAKAGES if row.promise == promise]


@pytest.mark.parametrize("row", BREAKAGES, ids=lambda row: f"{row.promise} {row.what}")
def test_what_is_broken_is_there_once_and_its_test_too(row: Breakage) -> None:
    ast.parse(broken((ROOT / row.path).read_text(encoding="utf-8"), row))
    path, _, name = row.test.partition("::")

    assert name in functions(path)
