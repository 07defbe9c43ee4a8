"""docs/compiled_loops.md has a row for every compiled loop that indexes by data, with a reason that holds."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from support.loop_scan import loops_of, places_from_data, reads_once

ROOT = Path(__file__).parents[3]
KERNELS = ROOT / "kernels" / "tenfold_kernels"
#: Section of the page → the folder of its loops.
FOLDERS = {"On the CPU": KERNELS / "cpu" / "_compiled", "On a GPU": KERNELS / "cuda" / "_code"}
REASONS = {"On the CPU": {"reads once", "own", "bounded"}, "On a GPU": {"local", "own", "bounded"}}
PAGE = (ROOT / "docs" / "compiled_loops.md").read_text(encoding="utf-8")


def found(folder: Path) -> dict[tuple[str, str], ast.FunctionDef]:
    return {
        (path.stem, name): loop
        for path in sorted(folder.glob("*.py"))
        for name, loop in loops_of(path)
        if places_from_data(loop)
    }


def rows(section: str) -> dict[tuple[str, str], str]:
    text = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert text is not None
    return {
        (module, loop): reason
        for module, loop, reason in re.findall(r"^\| (\w+) \| `([\w.]+)` \| .* \| ([\w ]+) \|$", text[1], re.MULTILINE)
    }


def test_every_loop_that_indexes_by_data_has_a_row_and_a_reason() -> None:
    for section, folder in FOLDERS.items():
        loops, written = found(folder), rows(section)

        assert set(loops) - set(written) == set(), f"loops without a row in docs/compiled_loops.md, {section}"
        assert set(written) - set(loops) == set(), "rows of docs/compiled_loops.md that are no such loops"
        assert set(written.values()) <= REASONS[section]


def test_a_row_says_reads_once_exactly_where_the_loop_does() -> None:
    loops, written = found(FOLDERS["On the CPU"]), rows("On the CPU")

    assert {key for key, reason in written.items() if reason == "reads once"} == {
        key for key, loop in loops.items() if reads_once(loop)
    }


def test_a_loop_that_trusts_an_index_is_found() -> None:
    text = """
def trusts(table_LW, indices_N):
    for i in range(indices_N.size):
        if indices_N[i] < 0 or indices_N[i] >= table_LW.shape[0]:
            return i
    for i in range(indices_N.size):
        row = indices_N[i]
        table_LW[row, 0] = 0
    return -1

def counts(values_N, out_N):
    at = 0
    for i in range(values_N.size):
        if values_N[i] > 0:
            out_N[at] = i
            at += 1

def moves(values_N, out_N):
    for i in range(values_N.size):
        out_N[i] = values_N[i]
"""
    trusts, counts, moves = (each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef))

    assert places_from_data(trusts) == ["table_LW[row, 0]"]
    assert places_from_data(counts) == ["out_N[at]"]
    assert places_from_data(moves) == []
    assert not reads_once(trusts)
