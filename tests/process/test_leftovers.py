"""Commands that are stopped, and commands that are killed: nothing stays that was not asked for, in the folder for
temporary files or in the working directory. What SIGKILL leaves goes with the next start."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import psutil
import pytest

from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Says that it is there, then waits for a signal.
TRAINER = "import signal; print('here', flush=True); signal.pause()"


class Machine:
    """Folders of a user who works in `work`, with commands that are started there."""

    def __init__(self, root: Path, children: Children) -> None:
        self.work, self.temporary, self.home = root / "work", root / "tmp", root / "home"
        for each in (self.work, self.temporary, self.home):
            each.mkdir()
        (self.work / "trainer.py").write_text(TRAINER)
        self.children = children

    def start(self, name: str, *arguments: str, until: str) -> str:
        """Starts the command; returns what the pattern finds in its output."""
        env = {"TMPDIR": str(self.temporary), "HOME": str(self.home), "XDG_STATE_HOME": "", "XDG_CACHE_HOME": ""}
        self.children.start(name, [*CLI, *arguments], env=env)
        found = self.children.wait_for_line(name, until, PATIENCE)
        return found[found.re.groups]

    def end(self, name: str, number: signal.Signals) -> int:
        """Sends the signal; returns the exit code once the command and all that it started are gone."""
        process = psutil.Process(self.children.pid(name))
        family = process.children(recursive=True)
        os.kill(process.pid, number)
        ended = self.children.wait_for_exit([name], PATIENCE)
        assert ended is not None
        assert not psutil.wait_procs(family, timeout=PATIENCE)[1]
        return ended[1]

    def left(self) -> list[str]:
        """What lies in the two folders, but for the program."""
        found = [path for folder in (self.temporary, self.work) for path in folder.rglob("*")]
        return sorted(path.name for path in found if path.name != "trainer.py")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    for name in [name for name in os.environ if name.startswith("TENFOLD_")]:
        monkeypatch.delenv(name)
    with Children() as children:
        machine = Machine(tmp_path, children)
        monkeypatch.chdir(machine.work)
        yield machine


UP = ("up", "--ps", "0", "--workers", "1", "--control-port", "0")


@pytest.mark.thorough
def test_up_and_what_was_submitted_to_it(machine: Machine) -> None:
    url = machine.start("killed", *UP, until=r"^control service +(\S+)$")
    machine.children.wait_for_line("killed", "Ctrl-C stops all of it", PATIENCE)
    options = ("--ps", "0", "--workers", "1", "--wait", "--control", url)
    machine.start("submit", "submit", *options, "--", "python", "trainer.py", until="worker/0 here")
    assert machine.end("killed", signal.SIGKILL) == -signal.SIGKILL
    killed = machine.left()
    machine.children.wait_for_exit(["submit"], PATIENCE)

    machine.start("stopped", *UP, until="Ctrl-C stops all of it")
    assert machine.end("stopped", signal.SIGTERM) == 128 + signal.SIGTERM

    # what it keeps for its next start lies with the user's state
    assert (machine.home / ".local" / "state" / "tenfold" / "up" / "control.db").is_file()
    assert (killed, machine.left()) == ([], [])


@pytest.mark.thorough
def test_run(machine: Machine) -> None:
    url = machine.start("up", *UP, until=r"^control service +(\S+)$")
    machine.children.wait_for_line("up", "Ctrl-C stops all of it", PATIENCE)
    run = ("run", "--ps", "0", "--workers", "1", "--control", url, "trainer.py")
    ups_own = machine.left()

    machine.start("killed", *run, until="here")
    assert machine.end("killed", signal.SIGKILL) == -signal.SIGKILL
    killed = machine.left()
    machine.start("stopped", *run, until="here")
    assert machine.end("stopped", signal.SIGTERM) == 128 + signal.SIGTERM

    assert [name for name in killed if name not in ups_own and name.startswith("tenfold-run-")]
    assert [name for name in machine.left() if name.startswith("tenfold-run-")] == []
    assert machine.end("up", signal.SIGINT) == 128 + signal.SIGINT
    assert machine.left() == []


@pytest.mark.thorough
def test_control_keeps_its_database_with_the_users_state(machine: Machine) -> None:
    for number in (signal.SIGKILL, signal.SIGTERM):
        name = number.name
        machine.start(name, "control", "--port", "0", "--jobs", "ps=1", until="listening on")
        assert machine.end(name, number) == (-number if number == signal.SIGKILL else 128 + number)

        assert machine.left() == []
    assert (machine.home / ".local" / "state" / "tenfold" / "control.db").exists()
