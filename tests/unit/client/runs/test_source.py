"""The commit of a folder and how its files differ from it, bounded; nothing where Git knows nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tenfold.runs.source import source_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *words: str) -> str:
    identity = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **identity}
    done = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--initial-branch=wide")
    (tmp_path / "trainer.py").write_text("rate = 0.1\n")
    git(tmp_path, "add", "trainer.py")
    git(tmp_path, "commit", "--quiet", "--message=first")
    return tmp_path


def test_a_clean_tree_has_a_commit_and_a_branch(repository: Path) -> None:
    assert source_of(str(repository)) == {
        "commit": git(repository, "rev-parse", "HEAD"),
        "branch": "wide",
        "dirty": False,
        "diff": "",
        "diff_truncated": False,
    }


def test_changed_files_are_a_diff(repository: Path) -> None:
    (repository / "trainer.py").write_text("rate = 0.2\n")
    (repository / "untracked").write_text("x")

    found = source_of(str(repository))

    assert found is not None
    assert found["dirty"]
    assert "-rate = 0.1\n+rate = 0.2\n" in found["diff"]
    assert "untracked" not in found["diff"]


def test_a_long_diff_is_cut(repository: Path) -> None:
    (repository / "trainer.py").write_text("é" * 100_000)

    found = source_of(str(repository), max_diff=1001)

    assert found is not None
    assert found["diff_truncated"]
    assert 990 <= len(found["diff"].encode()) <= 1001


def test_no_branch_is_none(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "--detach")

    found = source_of(str(repository))

    assert found is not None
    assert found["branch"] is None


def test_a_folder_without_a_repository_or_a_commit_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    without = source_of(str(tmp_path))
    git(tmp_path, "init", "--quiet")

    assert (without, source_of(str(tmp_path)), source_of(str(tmp_path / "none"))) == (None, None, None)


def test_no_git_and_no_time_are_none(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = source_of(str(repository), seconds=0)
    monkeypatch.setenv("PATH", "")

    assert (late, source_of(str(repository))) == (None, None)
