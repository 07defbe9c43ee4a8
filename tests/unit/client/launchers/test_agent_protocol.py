from __future__ import annotations

import pytest

from tenfold.launchers.agent_protocol import read, written


def test_a_message_is_a_line_and_comes_back() -> None:
    line = written("line", name="worker/0", text="two\nlines and ü")
    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert read(line) == ("line", {"name": "worker/0", "text": "two\nlines and ü"})


@pytest.mark.parametrize(
    "line", ["", "\n", "Welcome to node1\n", "{}\n", '{"a": 1}\n', '{"tenfold": "x', '{"tenfold": "x"']
)
def test_what_a_shell_writes_is_no_message(line: str) -> None:
    assert read(line) is None
