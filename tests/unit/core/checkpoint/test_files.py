"""Files that are there whole or not at all: what becomes of an error, and what has reached the disk when it returns."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from tenfold_core import errors
from tenfold_core.checkpoint.files import AtomicFile, make_folder
from tenfold_core.file_errors import os_errors
from tenfold_core.files import Files

if TYPE_CHECKING:
    from pathlib import Path


class Noted(Files):
    """Says which folders were brought to the disk."""

    def __init__(self) -> None:
        self.folders: list[str] = []

    def sync_folder(self, path: str) -> None:
        self.folders.append(path)
        super().sync_folder(path)


def test_a_file_that_is_left_well_has_its_name_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Noted()
    with AtomicFile(str(tmp_path / "f"), files=files) as out:
        out.write(b"whole")
    monkeypatch.chdir(tmp_path)
    with AtomicFile("g", files=files) as out:
        out.write(b"here")

    assert files.folders == [str(tmp_path), "."]
    assert sorted(os.listdir(tmp_path)) == ["f", "g"]


def test_what_is_prepared_is_brought_to_the_disk_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    file = AtomicFile(str(tmp_path / "f"), files=Noted())
    file.out.write(b"whole")
    monkeypatch.setattr(os, "fsync", synced.append)

    file.prepare()
    assert (tmp_path / os.listdir(tmp_path)[0]).read_bytes() == b"whole"
    file.prepare()
    file.publish(sync=False)

    assert len(synced) == 1
    assert (tmp_path / "f").read_bytes() == b"whole"


def test_a_name_that_no_file_can_have_is_the_steps_error() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"'a\\x00b'; (open: )?embedded null "):
        AtomicFile("a\0b")


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOENT, errors.NotFoundError),
        (errno.EACCES, errors.PermissionDeniedError),
        (errno.ENOSPC, errors.ResourceExhaustedError),
    ],
)
def test_what_the_disk_says_is_the_steps_error_with_the_name(number: int, kind: type[errors.OpError]) -> None:
    with pytest.raises(kind, match="/some/where"), os_errors("/some/where"):
        raise OSError(number, os.strerror(number))


def test_an_error_of_a_write_gets_the_name_and_others_stay_as_they_are(tmp_path: Path) -> None:
    where = str(tmp_path / "f")
    with pytest.raises(errors.ResourceExhaustedError, match=where), AtomicFile(where):
        raise OSError(errno.ENOSPC, "full")
    with pytest.raises(FileNotFoundError), AtomicFile(where):
        raise FileNotFoundError(errno.ENOENT, "not there", "another")
    with pytest.raises(KeyError), AtomicFile(where):
        raise KeyError

    assert os.listdir(tmp_path) == []


def test_a_file_that_cannot_get_its_name_is_removed(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "in it").touch()

    with pytest.raises(errors.OpError, match=str(tmp_path / "f")), AtomicFile(str(tmp_path / "f")) as out:
        out.write(b"whole")

    assert os.listdir(tmp_path) == ["f"]


def test_one_folder_is_made_and_may_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_folder(str(tmp_path / "a"))
    make_folder(str(tmp_path / "a"))
    make_folder("")

    with pytest.raises(errors.NotFoundError, match="b/c"):
        make_folder(str(tmp_path / "b/c"))
    assert os.listdir(tmp_path) == ["a"]
