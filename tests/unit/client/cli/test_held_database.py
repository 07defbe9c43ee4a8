"""The database of `tenfold up`: one process at a time, private files, and the word of the one before."""

from __future__ import annotations

import fcntl
import os
import threading
from typing import TYPE_CHECKING

import pytest

from tenfold.cli.held_database import DatabaseError, HeldDatabase, Holder, read

if TYPE_CHECKING:
    from pathlib import Path

URL = "http://127.0.0.1:8080"


def held(folder: Path) -> HeldDatabase:
    def never(line: str) -> None:
        raise AssertionError(f"nothing is there to wait for: {line}")

    return HeldDatabase(str(folder / "up" / "control.db"), never)


def test_the_files_are_the_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "tenfold" / "up").mkdir(parents=True, mode=0o755)

    with HeldDatabase(None, print) as own:
        assert own.file == tmp_path / "tenfold" / "up" / "control.db"
        assert own.file.parent.stat().st_mode & 0o777 == 0o700
        assert {each.stat().st_mode & 0o777 for each in own.file.parent.iterdir()} == {0o600}


def test_a_second_one_is_told_who_holds_it(tmp_path: Path) -> None:
    with held(tmp_path) as first:
        with pytest.raises(DatabaseError, match=rf"control.db: `tenfold up` of process {os.getpid()} uses it"):
            held(tmp_path).__enter__()
        first.serves(URL)
        with pytest.raises(DatabaseError, match=rf"of process {os.getpid()} \({URL}\) uses it"):
            held(tmp_path).__enter__()

    with held(tmp_path) as second:
        assert second.former is not None
        assert (second.former.pid, second.former.url, second.former.ended) == (os.getpid(), URL, True)


def test_one_that_never_served_leaves_the_word_of_the_one_before(tmp_path: Path) -> None:
    with held(tmp_path) as first:
        assert first.former is None
        first.serves(URL)
    with held(tmp_path):
        pass

    with held(tmp_path) as third:
        assert third.former is not None
        assert third.former.url == URL


def test_what_a_killed_one_left_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "control.db"
    (tmp_path / "control.db.up").write_text('{"pid": 7, "since": 5.5, "url": "", "ended": false}')
    service = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(service, fcntl.LOCK_EX)
    said: list[str] = []

    def end_the_service(line: str) -> None:
        said.append(line)
        threading.Timer(0, os.close, (service,)).start()

    with HeldDatabase(str(file), end_the_service) as mine:
        assert mine.former == Holder(7, 5.5)
    assert said == ["The last `tenfold up` of process 7 was killed; its processes are still ending."]


def test_what_is_left_for_ever_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenfold.cli.held_database._LEFTOVERS_S", 0.01)
    file = tmp_path / "control.db"
    (tmp_path / "control.db.up").write_text('{"pid": 7, "since": 5.5, "url": "", "ended": false}')
    with open(f"{file}.lock", "w") as service:
        fcntl.flock(service, fcntl.LOCK_EX)
        with pytest.raises(DatabaseError, match="a control service still uses it"):
            HeldDatabase(str(file), lambda _: None).__enter__()

    with held(tmp_path):
        pass


def test_a_place_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "up").write_text("no folder")

    with pytest.raises(DatabaseError, match=r"up/control\.db: File exists"):
        held(tmp_path).__enter__()


@pytest.mark.parametrize("text", ["", "12345\n", "[]", '{"pid": 1}', '{"pid": "x", "since": 1, "url": "", "ended": 1}'])
def test_what_nobody_here_wrote_says_nothing(text: str) -> None:
    assert read(text) is None
