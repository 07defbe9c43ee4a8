"""`tenfold logs` of a run that `tenfold run` started: bounded, while it runs and after it, and gone with the run."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children
from tenfold.cli.main import cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BOUND = 256 << 10
PROGRAM = """
for number in range(20_000):
    print(f"line {number} {'x' * 100}")
print("ERROR: the last one")
"""


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a control service of this user, whose state lies in the test's folder."""
    for name in [name for name in os.environ if name.startswith("TENFOLD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Children() as children:
        children.start("control", [*CLI, "control", "--port", "0"])
        yield children.wait_for_line("control", r"listening on (http://\S+)", PATIENCE)[1]


def tenfold(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


@pytest.mark.thorough
def test_output_is_kept_within_its_bound_until_the_run_is_deleted(service: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    options = ["--ps", "0", "--workers", "1", "--control", service, "--log-bytes", str(BOUND)]

    done = subprocess.run(
        [sys.executable, *CLI, "run", *options, str(program)], capture_output=True, text=True, timeout=PATIENCE
    )
    (folder,) = (tmp_path / "state" / "tenfold" / "runs").iterdir()
    shown = tenfold("logs", folder.name, "--control", service, "--tail", "3")
    size = sum(each.stat().st_size for each in (folder / "logs").iterdir())
    deleted = tenfold("delete", folder.name, "--control", service)

    assert (done.returncode, len(done.stdout) > 2_000_000) == (0, True), done.stderr
    assert BOUND // 2 < size <= BOUND
    assert [line.split(" ", 1)[1][:28] for line in shown.output.splitlines()] == [
        "INFO    worker/0 line 19998 ",
        "INFO    worker/0 line 19999 ",
        "ERROR   worker/0 ERROR: the ",
    ]
    assert (deleted.exit_code, folder.exists()) == (0, False)


def test_logs_that_are_not_here_are_said_to_be_elsewhere(service: str) -> None:
    from tenfold.control import ControlClient

    with ControlClient(service) as client:
        run = client.submit_run(["python", "t.py"], launcher="external", jobs={"worker": 1})
    shown = tenfold("logs", run.name, "--control", service)

    assert shown.exit_code == 1
    assert "it was started by hand, and `tenfold run` keeps them on its machine" in shown.output
