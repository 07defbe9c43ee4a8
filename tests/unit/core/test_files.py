"""Files that any process may open: what each operation does on the disk, and what it leaves open."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

import pytest

from tenfold_core import errors
from tenfold_core.files import EVERYWHERE, Files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Small(Files):
    """Reads no more than three bytes at once."""

    @property
    def most_bytes(self) -> int:
        return 3


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_what_is_there_and_what_is_not(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")

    assert EVERYWHERE.exists(str(tmp_path / "f"))
    assert not EVERYWHERE.exists(str(tmp_path / "g"))
    assert EVERYWHERE.is_folder(str(tmp_path))
    assert not EVERYWHERE.is_folder(str(tmp_path / "f"))
    assert not EVERYWHERE.is_folder(str(tmp_path / "g"))
    assert EVERYWHERE.read_whole(str(tmp_path / "f")) == b"abc"


def test_matching_files_come_in_order(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        (tmp_path / name).touch()

    assert EVERYWHERE.matching(str(tmp_path / "[ab]")) == [str(tmp_path / "a"), str(tmp_path / "b")]


def test_a_limit_is_what_may_be_read_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fits").write_bytes(b"abc")
    (tmp_path / "too much").write_bytes(b"abcdefghi")

    assert Small().read_whole(str(tmp_path / "fits")) == b"abc"
    with pytest.raises(errors.ResourceExhaustedError, match="too much; 9 bytes are more than the 3"):
        Small().read_whole(str(tmp_path / "too much"))


def test_a_file_that_grows_while_it_is_read_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(b"abcdefghi")
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result([stat.S_IFREG, *[0] * 9]))  # as it was before

    with pytest.raises(errors.ResourceExhaustedError, match="4 bytes are more than the 3"):
        Small().read_whole(str(tmp_path / "f"))


def test_folders_are_made_one_or_with_their_parents(tmp_path: Path) -> None:
    EVERYWHERE.make_folder(str(tmp_path / "one"))
    with pytest.raises(FileExistsError):
        EVERYWHERE.make_folder(str(tmp_path / "one"))
    with pytest.raises(FileNotFoundError):
        EVERYWHERE.make_folder(str(tmp_path / "two" / "three"))
    for _ in range(2):  # the second time it is there
        EVERYWHERE.make_folders(str(tmp_path / "two" / "three"))

    assert (tmp_path / "two" / "three").is_dir()


def test_a_folder_is_brought_to_the_disk_and_nothing_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.readlink(f"/proc/self/fd/{file}")))
    before = descriptors()

    EVERYWHERE.sync_folder(str(tmp_path))
    EVERYWHERE.sync_folder(str(tmp_path / "not there"))  # is left alone

    assert synced == [str(tmp_path)]
    assert descriptors() == before


@pytest.mark.parametrize(("mask", "mode"), [(0o027, 0o640), (0, 0o666)])
def test_new_files_are_open_to_whom_the_mask_permits(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        EVERYWHERE.create(str(tmp_path / "f")).close()
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == mode


class Below(Files):
    """Finds every name through an open folder, as a subclass that restricts them does, and keeps what was asked."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.asked: list[tuple[str, bool]] = []

    @contextlib.contextmanager
    def _at(self, path: str, *, follow: bool = False) -> Iterator[tuple[int | None, str]]:
        self.asked.append((path, follow))
        folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield folder, path
        finally:
            os.close(folder)


def test_a_subclass_decides_where_every_name_is_and_which_links_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Below(tmp_path)
    monkeypatch.chdir("/")
    before = descriptors()

    with files.create("new") as file:
        file.write(b"abcde")
    assert files.read_whole("new") == b"abcde"
    assert files.size("new") == 5
    assert files.exists("new")
    files.replace("new", "newer")
    assert os.listdir(tmp_path) == ["newer"]
    files.unlink("newer")
    assert not files.exists("newer")
    files.make_folder("folder")
    assert files.is_folder("folder")
    files.sync_folder("folder")
    files.remove_folder("folder")

    assert os.listdir(tmp_path) == []
    assert descriptors() == before
    # what names the entry itself, which may be a link, does not follow it: renames and removals
    assert files.asked == [
        ("new", True), ("new", True), ("new", True), ("new", True), ("new", False), ("newer", False), ("newer", False),
        ("newer", True), ("folder", True), ("folder", True), ("folder", True), ("folder", False),
    ]  # fmt: skip


def test_links_are_followed_to_files_and_themselves_renamed_and_removed(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("f")
    link, moved = str(tmp_path / "link"), str(tmp_path / "moved")

    assert (EVERYWHERE.size(link), EVERYWHERE.read_whole(link)) == (3, b"abc")
    EVERYWHERE.replace(link, moved)
    assert os.readlink(moved) == "f"
    EVERYWHERE.unlink(moved)
    assert os.listdir(tmp_path) == ["f"]


def test_what_is_opened_is_not_inherited(tmp_path: Path) -> None:
    with EVERYWHERE.create(str(tmp_path / "f")) as written, EVERYWHERE.open_to_read(str(tmp_path / "f")) as read:
        assert not os.get_inheritable(written.fileno())
        assert not os.get_inheritable(read.fileno())
