"""Child processes that live and die together: lines, exits, order of stopping, and none outlives the parent.

The children here are tiny Python programs. They meet the test by lines and exits, on a real pipe.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tenfold.cli.children import ChildFailedError, Children

#: Writes a program into a file; what it returns is what Children.start takes.
Program = Callable[[str], list[str]]

#: Says that it is there, then waits for a signal.
WAITS = "import signal; print('ready', flush=True); signal.pause()"
#: The same, but it says whether SIGTERM came because its parent is gone.
TELLS = """
import pathlib, signal, sys
from tenfold.cli.signals import parent_gone

def end(*_):
    pathlib.Path(f"{__file__}.told").write_text(str(parent_gone.is_set()))
    sys.exit(0)

signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
signal.pause()
"""
#: The same as the first, but deaf to SIGTERM.
DEAF = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True)\n"
    "while True: signal.pause()"
)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    def write(source: str) -> list[str]:
        path = tmp_path / f"program_{len(list(tmp_path.iterdir()))}.py"
        path.write_text(source)
        return [str(path)]

    return write


def test_lines_are_echoed_under_the_childs_name_and_can_be_waited_for(program: Program) -> None:
    heard: list[tuple[str, str]] = []
    with Children(echo=lambda name, line: heard.append((name, line))) as children:
        children.start("a", program("print('port 4711', flush=True); import signal; signal.pause()"))

        match = children.wait_for_line("a", r"port (\d+)", timeout=30)

    assert match[1] == "4711"
    assert heard == [("a", "port 4711")]


def test_a_child_that_ends_early_is_reported_with_its_last_lines(program: Program) -> None:
    with Children() as children:
        children.start("a", program("print('no such port'); raise SystemExit(3)"))

        with pytest.raises(ChildFailedError, match=r"(?s)a ended with exit code 3; .*no such port"):
            children.wait_for_line("a", "ready", timeout=30)


def test_a_line_that_does_not_come_is_a_timeout(program: Program) -> None:
    with Children() as children:
        children.start("a", program(WAITS))
        children.wait_for_line("a", "ready", timeout=30)

        with pytest.raises(ChildFailedError, match=r"a did not say 'never' within 0\.05 s"):
            children.wait_for_line("a", "never", timeout=0.05)


def test_the_first_exit_is_named(program: Program) -> None:
    with Children() as children:
        children.start("stays", program(WAITS))
        children.start("leaves", program("raise SystemExit(7)"))

        assert children.wait_for_exit(timeout=30) == ("leaves", 7)
        assert children.wait_for_exit(["stays"], timeout=0.05) is None


def test_stopping_goes_stage_by_stage_and_ends_the_deaf(program: Program) -> None:
    says_bye = (
        "import signal\n"
        "def bye(*_):\n    print('bye', flush=True); raise SystemExit(0)\n"
        "signal.signal(signal.SIGTERM, bye); print('ready', flush=True)\nwhile True: signal.pause()"
    )
    heard: list[tuple[str, str]] = []
    children = Children(echo=lambda name, line: heard.append((name, line)))
    for name, stage, source in [("control", 0, says_bye), ("task", 1, says_bye), ("deaf", 1, DEAF)]:
        children.start(name, program(source), stage=stage)
        children.wait_for_line(name, "ready", timeout=30)
    pids = [children.pid(name) for name in ("control", "task", "deaf")]

    children.stop(grace=1.0)
    children.stop(grace=1.0)

    assert [name for name, line in heard if line == "bye"] == ["task", "control"]
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_no_child_outlives_a_killed_parent_and_it_knows_why(program: Program) -> None:
    (grandchild,) = program(TELLS)
    parent = (
        "from tenfold.cli.children import Children\n"
        "import signal\n"
        "children = Children()\n"
        f"children.start('a', [{grandchild!r}])\n"
        "children.wait_for_line('a', 'ready', 30)\n"
        "print(children.pid('a'), flush=True)\n"
        "signal.pause()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        child = psutil.Process(int(process.stdout.readline()))

        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)

        psutil.wait_procs([child], timeout=30)
    assert not child.is_running()
    assert Path(f"{grandchild}.told").read_text() == "True"


def test_a_name_is_used_once(program: Program) -> None:
    with Children() as children:
        children.start("a", program("pass"))

        with pytest.raises(ValueError, match="'a' was started already"):
            children.start("a", program("pass"))
