"""The snippets of docs/sdk.md, run one after the other beside a real cluster; what a type checker knows of the SDK."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tenfold.cli.local import LocalCluster

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 100.0


def snippets() -> list[str]:
    page = (ROOT / "docs" / "sdk.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


@pytest.mark.thorough
def test_the_snippets_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text("print('trained')")
    with LocalCluster(ps=1, workers=1) as cluster:
        program = "\n".join(snippets()).replace("http://127.0.0.1:8080", cluster.control_url)
        program = program.replace("tenfold://127.0.0.1:8080", cluster.control_url.replace("http://", "tenfold://"))
        program = program.replace("/home/me/mnist", str(tmp_path))

        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT)

    assert len(snippets()) == 5
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "2.0"
    assert "SUCCEEDED every worker has finished" in lines
    assert "/job:worker/replica:0/task:0 0 None" in lines
    assert "worker/0 trained" in lines
    assert any(re.fullmatch(r"\S+ run run-\w+ SUCCEEDED .*", line) for line in lines)
    assert lines[-2:] == ["ready ['SUCCEEDED']", "cluster declared"], lines


TYPED = """
from collections.abc import AsyncIterator, Iterator

from tenfold.control import AsyncControlClient, ControlClient, Event, Run

with ControlClient("http://h") as control:
    reveal_type(control.run("r"))
    reveal_type(control.runs(limit=1))
    reveal_type(control.clusters()[0].jobs)
    step: int | None = progress.global_step if (progress := control.run("r").progress) is not None else None
    reveal_type(control.wait_for_run("r", timeout=1.0).tasks[0].exit_code)
    events: Iterator[Event] = control.events(after=0)
    control.run(1)  # wrong
    control.run("r").nmae  # wrong

async def main(control: AsyncControlClient) -> None:
    reveal_type(await control.run("r"))
    events: AsyncIterator[Event] = control.events(after=0)
    control.run("r").name  # wrong
    session = await control.create_session("default")
    reveal_type(await session.status())
"""


@pytest.mark.thorough
def test_a_type_checker_knows_both_clients(tmp_path: Path) -> None:
    program = tmp_path / "typed.py"
    program.write_text(TYPED)
    folders = ["protos", "core", "link", "client", "kernels", "compiler", "services", "control_api"]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(str(ROOT / folder) for folder in folders)}
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--follow-imports", "silent"]
    command += [
        "--namespace-packages",
        "--explicit-package-bases",
        "--cache-dir",
        str(tmp_path / "cache"),
        str(program),
    ]

    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment)

    told = re.findall(r"typed\.py:(\d+): (\w+): (.*)", done.stdout)
    revealed = re.findall(r'Revealed type is "(.*)"', re.sub(r"tenfold\.control\.\w+\.|builtins\.", "", done.stdout))
    wrong = [number for number, line in enumerate(TYPED.splitlines(), 1) if line.endswith("# wrong")]
    assert revealed == [
        *("Run", "list[Run]", "typing.Mapping[str, int]", "int | None", "Run", "SessionStatus"),
    ], done.stdout
    assert [int(line) for line, kind, _ in told if kind == "error"] == wrong, done.stdout
