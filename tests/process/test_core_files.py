"""A command that a signal ends leaves no core file: its memory holds tokens."""

from __future__ import annotations

import json
import os
import resource
import signal
from typing import TYPE_CHECKING

import pytest

from support.ports import free_addresses
from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children
from tenfold_core.access import core_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "tenfold-of-an-operator-7d31"


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Core files are allowed here, and would be written to this folder."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard == 0:
        pytest.skip("the hard limit of core files is 0 here: there are none anyway")
    monkeypatch.chdir(tmp_path)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    yield tmp_path
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


@pytest.mark.parametrize("command", ["control", "task"])
def test_no_core_file(allowed: Path, command: str) -> None:
    arguments = {
        "control": ["control", "--port", "0", "--database", str(allowed / "control.db")],
        "task": ["task", "--job", "ps", "--cluster", json.dumps({"ps": free_addresses(1)})],
    }
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    with Children() as children:
        children.start(command, [*CLI, *arguments[command]], stage=1, env={"TENFOLD_TOKEN": TOKEN})
        children.wait_for_line(command, "listening on", PATIENCE)
        limits = resource.prlimit(children.pid(command), resource.RLIMIT_CORE)
        os.kill(children.pid(command), signal.SIGSEGV)
        assert children.wait_for_exit([command], PATIENCE) == (command, -signal.SIGSEGV)

    assert limits == (1, hard)
    assert not list(allowed.rglob("core*"))
    assert not [path for path in allowed.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]


def test_core_files_may_be_asked_for(allowed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = resource.getrlimit(resource.RLIMIT_CORE)
    monkeypatch.setenv(core_files.WANTED, "1")
    core_files.write_none()
    assert resource.getrlimit(resource.RLIMIT_CORE) == before

    monkeypatch.delenv(core_files.WANTED)
    core_files.write_none()
    assert resource.getrlimit(resource.RLIMIT_CORE) == (1, before[1])
