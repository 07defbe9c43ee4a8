"""Files of an output folder that may hold anything: lists, what is not a file of it, ranges."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs import artifacts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files, and links of both kinds that lead out, a pipe, and a folder that is a link."""
    found = tmp_path / "output"
    (found / "plots").mkdir(parents=True)
    (found / "model.bin").write_bytes(b"0123456789")
    (found / "plots" / "a b.txt").write_text("x")
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret")
    (found / "link").symlink_to(secret / "key")
    (found / "elsewhere").symlink_to(secret)
    os.mkfifo(found / "pipe")
    return found


def read(folder: Path, path: str) -> bytes:
    file, size = artifacts.opened(folder, path)
    return b"".join(artifacts.pieces(file, 0, size))


def test_files_are_listed_and_links_are_not(folder: Path) -> None:
    assert [(each.path, each.size) for each in artifacts.listed(folder)] == [("model.bin", 10), ("plots/a b.txt", 1)]


def test_no_folder_is_an_empty_list(tmp_path: Path) -> None:
    assert artifacts.listed(tmp_path / "none") == []


def test_a_list_has_bounds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "MAX_FILES", 1)
    few = artifacts.listed(folder)
    monkeypatch.setattr(artifacts, "MAX_FILES", 9)
    monkeypatch.setattr(artifacts, "MAX_DEPTH", 0)

    assert len(few) == 1
    assert [each.path for each in artifacts.listed(folder)] == ["model.bin"]


def test_folders_in_folders_are_listed_so_deep_and_no_deeper(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "MAX_DEPTH", 2)
    deep = folder
    for _ in range(4):
        deep /= "d"
        deep.mkdir()
        (deep / "f").write_text("x")

    assert [each.path for each in artifacts.listed(folder / "d")] == ["d/d/f", "d/f", "f"]


def test_a_file_is_read_in_pieces(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "PIECE", 3)

    assert read(folder, "model.bin") == b"0123456789"
    assert read(folder, "plots/a b.txt") == b"x"
    file, _ = artifacts.opened(folder, "model.bin")
    assert b"".join(artifacts.pieces(file, 4, 9)) == b"45678"


@pytest.mark.parametrize(
    "path",
    [
        *("link", "elsewhere/key", "pipe", "plots", "none", "../secret/key", "plots/../model.bin", "./model.bin"),
        *("/etc/passwd", "", "plots//a b.txt", "model.bin/x", "a\0b", "model.bin/"),
    ],
)
def test_anything_but_a_file_of_the_folder_is_not_there(folder: Path, path: str) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    with pytest.raises(ApiError) as raised:
        artifacts.opened(folder, path)

    assert raised.value.kind == "no-such-artifact"
    # nothing stays open
    assert before in (0, len(os.listdir("/proc/self/fd")))


def test_a_file_that_becomes_shorter_is_an_error(folder: Path) -> None:
    file, size = artifacts.opened(folder, "model.bin")
    (folder / "model.bin").write_bytes(b"0")

    with pytest.raises(OSError, match="became shorter"):
        list(artifacts.pieces(file, 0, size))


@pytest.mark.parametrize(
    ("header", "part"),
    [
        *((None, None), ("bytes=0-3", (0, 4)), ("bytes=4-", (4, 10)), ("bytes=-3", (7, 10)), ("bytes=-99", (0, 10))),
        *(("bytes=8-99", (8, 10)), ("bytes=-", None), ("bytes=5-2", None), ("bytes=0-1,4-5", None)),
        ("lines=1-2", None),
    ],
)
def test_a_range(header: str | None, part: tuple[int, int] | None) -> None:
    assert artifacts.asked_range(header, 10) == part


def test_a_range_behind_the_end_is_refused() -> None:
    with pytest.raises(ApiError, match="10 bytes") as raised:
        artifacts.asked_range("bytes=10-", 10)

    assert raised.value.http_status == 416
