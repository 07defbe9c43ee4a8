"""docs/track_record.md: every test that it names exists, every row names one, and the page is found."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "track_record.md").read_text(encoding="utf-8")
HEADS = ("| fault |", "| change |")
ROWS = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith(HEADS)]
NAMED = re.compile(r"`(tests/[\w/]+\.py):([\w.]+)`")


def has(path: str, name: str) -> bool:
    """Whether the file has a function, or a class with a method, of that name."""
    file = ROOT / path
    body: list[ast.stmt] = ast.parse(file.read_text(encoding="utf-8")).body if file.is_file() else []
    for part in name.split("."):
        found = [
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == part
        ]
        if not found:
            return False
        body = found[0].body
    return True


@pytest.mark.parametrize("row", ROWS)
def test_each_fault_has_a_test_that_is_there(row: str) -> None:
    named = NAMED.findall(row.rpartition(" | ")[2])

    assert named
    assert not [f"{path}:{name}" for path, name in named if not has(path, name)]


def test_each_table_has_its_columns() -> None:
    lines = TEXT.splitlines()
    widths = {
        line.count(" | "): head
        for head, line in ((lines[place - 2], lines[place]) for place in range(2, len(lines)))
        if line.startswith("| ") and head.startswith("| ") and head.count(" | ") != line.count(" | ")
    }

    assert ROWS
    assert not widths


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/index.md", "docs/promises.md"])
def test_the_page_is_found(page: str) -> None:
    assert "track_record.md)" in (ROOT / page).read_text(encoding="utf-8")
