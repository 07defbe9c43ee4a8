"""rewritten.py writes what pytest reads: a test file's own, as long as the file stays as it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from _pytest.assertion import rewrite

from support import rewritten

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_pytest_reads_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(rewritten, "_FEW", 1)
    path = tmp_path / "test_one.py"
    path.write_text("def test() -> None:\n    assert 1 == 2\n")
    cached = rewrite.get_cache_dir(path) / f"test_one{rewrite.PYC_TAIL}"

    rewritten.rewrite_all(tmp_path)

    code = rewrite._read_pyc(path, cached)
    assert code is not None
    assert "@pytest_ar" in code.co_names, "assertions are rewritten"
    first = cached.read_bytes()
    rewritten.rewrite_all(tmp_path)
    assert cached.read_bytes() == first
    path.write_text("def test() -> None:\n    assert 1 == 33\n")
    assert rewrite._read_pyc(path, cached) is None
    rewritten.rewrite_all(tmp_path)
    code = rewrite._read_pyc(path, cached)
    assert code is not None
    assert 33 in code.co_consts or any(33 in getattr(each, "co_consts", ()) for each in code.co_consts)
    assert not list(cached.parent.glob("*[0-9]")), "nothing unfinished stays"
