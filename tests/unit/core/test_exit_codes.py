"""Exit codes in words and as states."""

from __future__ import annotations

import signal

import pytest

from tenfold_core.exit_codes import described, ending


@pytest.mark.parametrize(
    ("code", "expected", "words"),
    [
        (0, ("finished", "finished with exit code 0"), "ended with exit code 0"),
        (3, ("lost", "ended with exit code 3"), "ended with exit code 3"),
        (-signal.SIGKILL, ("lost", "ended by SIGKILL"), "was ended by SIGKILL"),
        (-40, ("lost", "ended by signal 40"), "was ended by signal 40"),
        (128 + signal.SIGTERM, ("stopped", "stopped by SIGTERM"), "was stopped by SIGTERM"),
        (128 + signal.SIGINT, ("stopped", "stopped by SIGINT"), "was stopped by SIGINT"),
    ],
)
def test_what_a_code_means(code: int, expected: tuple[str, str], words: str) -> None:
    assert (ending(code), described(code)) == (expected, words)


def test_a_process_that_has_not_ended() -> None:
    assert described(None) == "still runs"
