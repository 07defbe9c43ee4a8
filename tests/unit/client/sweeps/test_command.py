"""The command of a setting."""

from __future__ import annotations

import pytest

from tenfold.sweeps.command import command_of


@pytest.mark.parametrize(
    ("command", "made"),
    [
        (["t.py"], ["t.py", "--lr=0.1", "--on=true"]),
        (["t.py", "--rate={lr}"], ["t.py", "--rate=0.1", "--on=true"]),
        (["t.py", "--hparams=lr={lr},on={on}", "{x}"], ["t.py", "--hparams=lr=0.1,on=true", "{x}"]),
    ],
)
def test_the_command_of_a_setting(command: list[str], made: list[str]) -> None:
    assert command_of(command, {"lr": 0.1, "on": True}) == made
