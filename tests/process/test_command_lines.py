"""What other users of the machine see of our processes: their command lines. No token stands there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "tenfold-nobody-else-is-to-read-this"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Iterator[Children]:
    for name in [name for name in os.environ if name.startswith("TENFOLD_")]:
        monkeypatch.delenv(name)
    with Children() as started:
        yield started


def command_lines(pid: int) -> list[str]:
    """Of that process and of all below it, as /proc shows them to everybody."""
    family = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    return [Path(f"/proc/{each}/cmdline").read_bytes().replace(b"\0", b" ").decode() for each in family]


def test_a_token_on_the_command_line_starts_nothing() -> None:
    command = [sys.executable, *CLI, "control", "--port", "0", "--token", SECRET]

    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)

    assert done.returncode == 2
    assert "can be read by every user of this machine" in " ".join(done.stderr.split())
    assert SECRET not in done.stderr + done.stdout


@pytest.mark.parametrize(
    "by",
    [*(pytest.param(f"TENFOLD_TOKEN{end}", marks=pytest.mark.thorough) for end in ("", "_FILE")), "--token-file"],
)
def test_neither_a_command_nor_its_children_show_the_token(by: str, children: Children, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")
    environment = {"TENFOLD_TOKEN": SECRET, "TENFOLD_TOKEN_FILE": str(file)}
    if by == "--token-file":
        program, given, ready = ["control", "--port", "0", by, str(file)], {}, "control service listening on"
    else:
        program, given, ready = ["up", "--control-port", "0"], {by: environment[by]}, "Ctrl-C stops all of it"
    children.start("it", [*CLI, *program], env={**given, "XDG_STATE_HOME": str(tmp_path)})
    children.wait_for_line("it", ready, PATIENCE)

    shown = command_lines(children.pid("it"))

    assert len(shown) >= (1 if by == "--token-file" else 5)
    assert not [line for line in shown if SECRET in line]
