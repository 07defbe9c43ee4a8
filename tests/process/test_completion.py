"""`tenfold completion`: the scripts, and what a real bash completes with one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.task_processes import PATIENCE
from tenfold.cli.main import cli

#: Completes the words after it as bash does on a tab, and prints what is offered, a word on each line.
_COMPLETE = """
set -eu
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_tenfold_completion tenfold
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(("shell", "line"), [("bash", "complete "), ("zsh", "#compdef tenfold"), ("fish", "complete ")])
def test_each_shell_has_a_script(shell: str, line: str) -> None:
    result = CliRunner().invoke(cli, ["completion", shell])

    assert result.exit_code == 0
    assert any(each.strip().startswith(line) for each in result.output.splitlines())
    assert f"_TENFOLD_COMPLETE={shell}_complete" in result.output


def test_another_shell() -> None:
    result = CliRunner().invoke(cli, ["completion", "csh"])

    assert (result.exit_code, "'csh' is not one of 'bash', 'zsh', 'fish'" in result.output) == (2, True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["sta"], ["status"]),
        (["s"], ["status", "stop", "submit", "sweep"]),
        (["up", "--wo"], ["--workers"]),
        (["submit", "--success", "a"], ["all", "any"]),
        (["completion", ""], ["bash", "fish", "zsh"]),
    ],
)
def test_bash_completes(words: list[str], offered: list[str], tmp_path: Path) -> None:
    script = tmp_path / "tenfold.bash"
    script.write_text(CliRunner().invoke(cli, ["completion", "bash"]).output)
    folder = Path(sys.executable).parent
    if not (folder / "tenfold").exists():
        pytest.skip("tenfold is not installed as a command")

    done = subprocess.run(
        ["bash", "-c", _COMPLETE, "bash", str(script), "tenfold", *words],
        env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, sorted(done.stdout.split())) == (0, offered), done.stderr
