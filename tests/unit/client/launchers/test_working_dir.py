from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tenfold.launchers import agent_protocol as protocol
from tenfold.launchers.hosts import Host
from tenfold.launchers.interface import LaunchRequest
from tenfold.launchers.ssh import rsync_target
from tenfold.launchers.working_dir import WorkingDir, rsync_command

if TYPE_CHECKING:
    from pathlib import Path


class SaidLine:
    """An agent's line that keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []

    def send(self, kind: str, **members: Any) -> None:
        self.said.append((kind, members))

    def send_slowly(self, kind: str, **members: Any) -> bool:
        self.send(kind, **members)
        return True

    def end(self, why: str) -> None:
        raise AssertionError(why)

    def close(self) -> None:
        pass


def begun(place: Path, *, sync: bool, **options: str) -> list[tuple[str, dict[str, Any]]]:
    line = SaidLine()
    request = LaunchRequest("run", {"worker": 1}, str(place), ["a.py"], options=options)
    directory = WorkingDir(request, sync=sync)
    directory.begin(line, None, 2)
    directory.close()
    return line.said


def test_a_shared_directory_is_named(tmp_path: Path) -> None:
    members = {"files": ["a.py"], "package": 0, "tasks": 2}
    assert begun(tmp_path, sync=False) == [("begin", {"working_dir": str(tmp_path), "scratch": "", **members})]
    there = {"working_dir": "/net/me", "scratch": "/scratch"}
    assert begun(tmp_path, sync=False, folder="/net/me", scratch="/scratch") == [("begin", {**there, **members})]


def test_a_host_without_rsync_gets_it_in_pieces(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print(1)")
    first, *pieces = begun(tmp_path, sync=True)

    assert first[0] == "begin"
    assert first[1]["package"] > 0
    assert [kind for kind, _ in pieces] == ["piece"] * -(-first[1]["package"] // protocol.PIECE_BYTES)


@pytest.mark.parametrize(
    ("name", "shown"),
    [("n1", "n1"), ("me@n1", "me@n1"), ("::1", "[::1]"), ("me@fe80::2", "me@[fe80::2]")],
)
def test_hosts_as_rsync_names_them(name: str, shown: str) -> None:
    assert rsync_target(Host(name), {})[0] == shown


def test_the_command_sends_what_is_in_the_folder_by_the_same_ssh() -> None:
    command = rsync_command("/home/me/", ("n1", ["ssh", "-F", "/a b/it's", "-T"]), "/there")

    assert command[-2:] == ["/home/me/", "n1:/there/"]
    assert command[command.index("--rsh") + 1] == "ssh -F '/a b/it''s' -T"
    assert "--exclude=.git/" in command
    assert not [word for word in command if "delete" in word]


@pytest.mark.thorough
def test_rsync_starts_the_shell_as_it_is_quoted(tmp_path: Path) -> None:
    if shutil.which("rsync") is None:
        pytest.skip("rsync is not installed: make engines")
    shell = tmp_path / "it's a shell"
    shell.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$(dirname "$0")/words"\nexit 1\n')
    shell.chmod(0o755)
    (tmp_path / "from").mkdir()

    command = rsync_command(str(tmp_path / "from"), ("n1", [str(shell), "-T"]), "/there")
    subprocess.run(command, capture_output=True, check=False, timeout=30)

    assert (tmp_path / "words").read_text().splitlines()[:2] == ["-T", "n1"]
