"""Temporary folders: gone with their process, or with the next one."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

from tenfold.cli.scratch import scratch_folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_on_leaving(temporary: Path) -> None:
    with scratch_folder("up") as folder:
        (folder / "control.db").write_text("x")
        assert (folder.parent, folder.name[:11]) == (temporary, "tenfold-up-")

    assert list(temporary.iterdir()) == []


def test_what_nobody_holds_goes_with_the_next_start(temporary: Path) -> None:
    abandoned = temporary / "tenfold-up-abandoned"
    (abandoned / "control.db.runs").mkdir(parents=True)
    others = [temporary / "tenfold-run-other", temporary / "mine", temporary / "tenfold-up-file"]
    others[0].mkdir()
    others[1].mkdir()
    others[2].write_text("no folder")
    (temporary / "tenfold-up-link").symlink_to(others[1])

    with scratch_folder("up") as held, scratch_folder("up") as second:
        assert held.is_dir()
        assert second.is_dir()
        assert not abandoned.exists()

    assert sorted(each.name for each in temporary.iterdir()) == [
        *("mine", "tenfold-run-other", "tenfold-up-file", "tenfold-up-link")
    ]


def test_a_folder_elsewhere(temporary: Path) -> None:
    place = temporary / "scratch"
    (place / "tenfold-tasks-abandoned").mkdir(parents=True)

    with scratch_folder("tasks", str(place)) as folder:
        assert folder.parent == place
        assert list(place.iterdir()) == [folder]

    assert list(place.iterdir()) == []
