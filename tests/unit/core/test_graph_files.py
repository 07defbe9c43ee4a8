"""What a graph may open: below the root, links resolved; never the system's places; regular files of a bounded size."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from tenfold_core import errors
from tenfold_core.files import EVERYWHERE
from tenfold_core.graph_files import GraphFiles
from tenfold_core.records import ByteStream, RecordReader, RecordWriter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a file, beside a secret that it links to in several ways."""
    inside, outside = tmp_path / "root", tmp_path / "outside"
    (inside / "sub").mkdir(parents=True)
    outside.mkdir()
    (inside / "sub/data").write_bytes(b"data")
    (outside / "secret").write_bytes(b"secret")
    (inside / "file_link").symlink_to(outside / "secret")
    (inside / "folder_link").symlink_to(outside)
    (inside / "inner_link").symlink_to("sub/data")
    (tmp_path / "root-of-another").mkdir()
    (tmp_path / "root-of-another/data").write_bytes(b"other")
    return inside


def test_a_file_below_the_root_is_read_also_by_a_link_that_stays_below(root: Path) -> None:
    files = GraphFiles(str(root))
    assert files.read_whole(str(root / "sub/data")) == b"data"
    assert files.read_whole(str(root / "inner_link")) == b"data"
    assert files.read_whole(str(root / "sub/../sub/data")) == b"data"


@pytest.mark.parametrize(
    "name",
    ["../outside/secret", "file_link", "folder_link/secret", "sub/../../outside/secret", "../root-of-another/data"],
)
def test_what_lies_elsewhere_is_refused_for_every_use(root: Path, name: str) -> None:
    files, path = GraphFiles(str(root)), str(root / name)
    uses: list[Callable[[str], object]] = [
        files.read_whole, files.descriptor, files.create, files.exists, files.size, files.make_folders,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(errors.PermissionDeniedError, match=r"--files \(TENFOLD_FILES\)"):
            use(path)
    assert (root.parent / "outside/secret").read_bytes() == b"secret"


def test_a_null_byte_in_a_name_is_refused_in_the_same_words_by_every_use(root: Path) -> None:
    files, path = GraphFiles(str(root)), str(root / "a\0b")
    uses: list[Callable[[str], object]] = [
        files.read_whole, files.descriptor, files.create, files.size, files.make_folders, files.matching,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(errors.InvalidArgumentError, match="a file's name may not hold a null byte"):
            use(path)


@pytest.mark.parametrize("name", ["folder_link/secret", "../outside/secret"])
def test_what_lies_elsewhere_is_not_replaced_or_removed(root: Path, name: str) -> None:
    files, path = GraphFiles(str(root)), str(root / name)
    with pytest.raises(errors.PermissionDeniedError):
        files.replace(str(root / "sub/data"), path)
    with pytest.raises(errors.PermissionDeniedError):
        files.replace(path, str(root / "sub/new"))
    with pytest.raises(errors.PermissionDeniedError):
        files.unlink(path)
    with pytest.raises(errors.PermissionDeniedError):
        files.remove_folder(str(root / "folder_link/x"))
    assert (root.parent / "outside/secret").read_bytes() == b"secret"


def test_a_name_that_only_begins_like_the_root_is_not_below_it(root: Path) -> None:
    with pytest.raises(errors.PermissionDeniedError):
        GraphFiles(str(root)).read_whole(f"{root}-of-another/data")


def test_files_are_written_and_folders_made_below_the_root(root: Path) -> None:
    files = GraphFiles(str(root))
    files.make_folders(str(root / "a/b/c"))
    files.make_folders(str(root))
    with files.create(str(root / "a/b/c/out")) as out:
        out.write(b"long text")
    with files.create(str(root / "a/b/c/out")) as out:
        out.write(b"short")
    files.replace(str(root / "a/b/c/out"), str(root / "moved"))
    assert (root / "moved").read_bytes() == b"short"
    assert not (root / "a/b/c/out").exists()
    files.unlink(str(root / "moved"))
    files.remove_folder(str(root / "a/b/c"))
    assert not (root / "a/b/c").exists()
    assert (root / "a/b").exists()


def test_a_link_put_in_place_between_check_and_opening_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, checked = GraphFiles(str(root)), GraphFiles._check

    def check_then_swap(self: GraphFiles, path: str, real: str, **more: bool) -> None:
        checked(self, path, real, **more)
        (root / "sub").rename(root / "gone")
        (root / "sub").symlink_to(root.parent / "outside")

    monkeypatch.setattr(GraphFiles, "_check", check_then_swap)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        files.read_whole(str(root / "sub/secret"))


def test_a_last_name_that_becomes_a_link_is_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, checked = GraphFiles(str(root)), GraphFiles._check

    def check_then_swap(self: GraphFiles, path: str, real: str, **more: bool) -> None:
        checked(self, path, real, **more)
        (root / "sub/data").unlink()
        (root / "sub/data").symlink_to(root.parent / "outside/secret")

    monkeypatch.setattr(GraphFiles, "_check", check_then_swap)
    with pytest.raises(errors.PermissionDeniedError, match="regular files only"):
        files.read_whole(str(root / "sub/data"))


def test_patterns_find_only_what_may_be_opened(root: Path) -> None:
    files = GraphFiles(str(root))
    assert files.matching(str(root / "*")) == [str(root / "inner_link"), str(root / "sub")]
    assert files.matching(str(root / "*/../../outside/*")) == []
    assert files.matching(str(root / "*_link/secret")) == []
    assert files.matching(str(root / "sub/data")) == [str(root / "sub/data")]
    for pattern in ("/etc/*", str(root.parent / "*"), "/etc/passwd", "*"):
        with pytest.raises(errors.PermissionDeniedError):
            files.matching(pattern)


@pytest.mark.parametrize("path", ["/proc/self/environ", "/proc/self/maps", "/sys/kernel/notes", "/dev/null"])
def test_the_systems_places_are_refused_without_a_root(path: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(path)
    for name in (path, str(tmp_path / "link"), f"/tmp/..{path}"):
        for use in (GraphFiles().read_whole, GraphFiles().create, GraphFiles().matching):
            with pytest.raises(errors.PermissionDeniedError, match=path[:4]):
                use(name)
    with pytest.raises(errors.PermissionDeniedError):
        GraphFiles("/").read_whole(path)


def test_patterns_do_not_show_the_systems_places() -> None:
    assert GraphFiles().matching("/*/self/environ") == []


def test_hidden_folders_of_a_home_are_refused_unless_the_root_lies_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/key").write_bytes(b"key")
    (tmp_path / ".keras/datasets").mkdir(parents=True)
    (tmp_path / ".keras/datasets/mnist").write_bytes(b"digits")
    (tmp_path / "seen").write_bytes(b"seen")
    monkeypatch.setenv("HOME", str(tmp_path))
    for files in (GraphFiles(), GraphFiles(str(tmp_path))):
        assert files.read_whole(str(tmp_path / "seen")) == b"seen"
        with pytest.raises(errors.PermissionDeniedError, match=r"~/\.ssh"):
            files.read_whole(str(tmp_path / ".ssh/key"))
    told = GraphFiles(str(tmp_path / ".keras"))
    assert told.read_whole(str(tmp_path / ".keras/datasets/mnist")) == b"digits"


def test_only_regular_files_are_opened_and_nothing_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "socket"))
        for name in ("fifo", "socket"):
            for use in (GraphFiles().read_whole, GraphFiles().create, GraphFiles().descriptor):
                with pytest.raises(errors.PermissionDeniedError, match="regular files only"):
                    use(str(tmp_path / name))
    with pytest.raises(IsADirectoryError):
        GraphFiles().read_whole(str(tmp_path))


def test_larger_files_than_may_be_read_are_refused_before_they_are_read(tmp_path: Path) -> None:
    os.truncate(os.open(tmp_path / "sparse", os.O_CREAT | os.O_WRONLY), 1 << 40)
    with pytest.raises(errors.ResourceExhaustedError, match=r"1099511627776 bytes.*1000.*TENFOLD_FILE_BYTES"):
        GraphFiles(most_bytes=1000).read_whole(str(tmp_path / "sparse"))
    with pytest.raises(errors.ResourceExhaustedError, match="TENFOLD_FILE_BYTES"):
        GraphFiles().read_whole(str(tmp_path / "sparse"))


def test_lines_and_records_are_bounded_too(tmp_path: Path) -> None:
    (tmp_path / "line").write_bytes(b"x" * 5000)
    with RecordWriter(str(tmp_path / "records"), "GZIP") as out:
        out.write(b"y" * 5000)
    files = GraphFiles(most_bytes=1000)
    with ByteStream(str(tmp_path / "line"), files=files) as stream, pytest.raises(errors.ResourceExhaustedError):
        stream.read_line()
    reader = RecordReader(str(tmp_path / "records"), "GZIP", files=files)
    with reader, pytest.raises(errors.ResourceExhaustedError, match="TENFOLD_FILE_BYTES"):
        reader.read()


def test_a_root_that_is_no_folder_is_an_error_of_the_setting(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"TENFOLD_FILES.*folder that exists"):
        GraphFiles(str(tmp_path / "missing"))


def test_programs_of_the_user_open_what_they_may(tmp_path: Path) -> None:
    assert EVERYWHERE.read_whole("/proc/self/statm")
