"""The notebooks of the documentation run, and write what is kept in them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from support.notebooks import DOCS, NOTEBOOKS, executed, shape

sys.path.insert(0, str(DOCS / "site"))

import verified
from notebooks import markdown_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_kept_was_written_by_this_code(notebook: Path) -> None:
    row = verified.table()[notebook.relative_to(DOCS).as_posix()]

    assert row["digest"] == verified.digest(markdown_of(notebook.read_text(encoding="utf-8"))), (
        f"run `make verify-docs PAGE=notebooks/{notebook.name}`"
    )


@pytest.mark.thorough
@pytest.mark.timeout(200)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_writes_what_is_kept(notebook: Path) -> None:
    pytest.importorskip("nbclient")

    assert shape(executed(notebook)) == shape(notebook.read_text(encoding="utf-8"))
