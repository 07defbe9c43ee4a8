"""Whether output has colours: NO_COLOR, CLICOLOR_FORCE, and what is a terminal."""

from __future__ import annotations

import os
import pty

import pytest
from rich.text import Text

from tenfold.cli.colours import asked_for
from tenfold.cli.tables import plain_console, shown_table
from tenfold.cli.up import prefixed

ROWS = [("run-1", "FAILED", "why")]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"NO_COLOR": ""}, None),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, False),
        ({"CLICOLOR_FORCE": "1"}, True),
        ({"CLICOLOR_FORCE": "0"}, None),
    ],
)
def test_what_the_environment_asks_for(environment: dict[str, str], expected: bool | None) -> None:
    assert asked_for(environment) is expected


def printed(monkeypatch: pytest.MonkeyPatch, terminal: bool, **environment: str) -> str:
    """A table and a line of a process, as they come out at a terminal or a pipe."""
    for name in ("NO_COLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)
    reader, writer = pty.openpty() if terminal else os.pipe()
    try:
        with os.fdopen(writer, "w") as out:
            monkeypatch.setattr("sys.stdout", out)
            plain_console().print(shown_table(None, ("run", "state", "why"), ROWS, 40), Text("done", "green"))
            prefixed()("worker/0", "hello")
        return b"".join(iter(lambda: _read(reader), b"")).decode()
    finally:
        os.close(reader)


def _read(reader: int) -> bytes:
    try:
        return os.read(reader, 4096)
    except OSError:  # how the end of a terminal reads
        return b""


def test_a_terminal_has_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = printed(monkeypatch, terminal=True)

    assert "\x1b[1;31mFAILED\x1b[0m" in shown
    assert "\x1b[36mworker/0 |\x1b[0m hello" in shown


@pytest.mark.parametrize(("terminal", "environment"), [(False, {}), (True, {"NO_COLOR": "1"})])
def test_no_codes_where_none_are_wanted(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, environment: dict[str, str]
) -> None:
    shown = printed(monkeypatch, terminal, **environment)

    assert "\x1b" not in shown
    assert [line.rstrip() for line in shown.splitlines()] == [
        "run    state   why",
        "run-1  FAILED  why",
        "done",
        "worker/0 | hello",
    ]


def test_a_pipe_has_colours_where_they_are_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = printed(monkeypatch, terminal=False, CLICOLOR_FORCE="1")

    assert "\x1b[1;31mFAILED\x1b[0m" in shown
    assert "\x1b[36mworker/0 |\x1b[0m hello" in shown
