"""Files that arrive in pieces: complete or not there, sent again, and none that leads elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs.arriving import keep

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run" / "output"


@pytest.fixture(autouse=True)
def run(folder: Path) -> None:
    folder.parent.mkdir()


def test_a_file_is_there_once_all_its_pieces_are(folder: Path) -> None:
    first = keep(folder, "worker/0", "a/b.bin", b"01234", 0, 8)
    before = list(folder.parent.rglob("b.bin"))
    again = keep(folder, "worker/0", "a/b.bin", b"34", 3, 8)
    last = keep(folder, "worker/0", "a/b.bin", b"567", 5, 8)
    lost = keep(folder, "worker/0", "a/b.bin", b"567", 5, 8)

    assert (first, before, again, last, lost) == (False, [], False, True, True)
    assert (folder / "a" / "b.bin").read_bytes() == b"01234567"
    assert list((folder.parent / "arriving").iterdir()) == []


def test_an_empty_file_and_one_that_is_sent_anew(folder: Path) -> None:
    keep(folder, "worker/0", "a", b"", 0, 0)
    empty = (folder / "a").read_bytes()
    keep(folder, "worker/1", "a", b"new", 0, 3)

    assert (empty, (folder / "a").read_bytes()) == (b"", b"new")


def test_tasks_that_send_one_path_do_not_mix(folder: Path) -> None:
    keep(folder, "worker/0", "a", b"00", 0, 4)
    keep(folder, "worker/1", "a", b"11", 0, 4)
    keep(folder, "worker/0", "a", b"00", 2, 4)

    assert (folder / "a").read_bytes() == b"0000"


@pytest.mark.parametrize("path", ["", "/etc/x", "a//b", "../x", "a/../../x", ".", "a/", "a\0b", "/".join("a" * 99)])
def test_a_path_that_leads_elsewhere(folder: Path, path: str) -> None:
    with pytest.raises(ApiError, match="is not the path of a file"):
        keep(folder, "worker/0", path, b"x", 0, 1)

    assert [each.name for each in folder.parent.iterdir()] == []


@pytest.mark.parametrize(("offset", "size"), [(1, 9), (0, 1)])
def test_a_piece_that_does_not_follow(folder: Path, offset: int, size: int) -> None:
    with pytest.raises(ApiError, match=f"begins at {offset}"):
        keep(folder, "worker/0", "a", b"xy", offset, size)


def test_no_link_of_the_folder_is_followed(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)

    with pytest.raises(OSError, match=r".*"):
        keep(folder, "worker/0", "link/x", b"x", 0, 1)

    assert not (tmp_path / "x").exists()
