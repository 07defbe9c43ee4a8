"""--log-level and --log-format, as real processes: requests of the service, tasks and their names, programs of runs."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LISTENING = r"listening on (http://\S+)"


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Iterator[Children]:
    for name in [name for name in os.environ if name.startswith("TENFOLD_")]:
        monkeypatch.delenv(name)
    with Children() as started:
        yield started


def lines(children: Children, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in children.last_lines(name, 200) if line.startswith("{")]


def test_the_service_logs_requests_by_their_names(children: Children, tmp_path: Path) -> None:
    options = ("--port", "0", "--database", str(tmp_path / "c.db"), "--log-level", "info", "--log-format", "json")
    children.start("control", [*CLI, "control", *options])
    url = children.wait_for_line("control", LISTENING, PATIENCE)[1]

    httpx.get(f"{url}/v1/clusters/none/jobs", headers={"X-Request-ID": "mine"}, trust_env=False, timeout=PATIENCE)
    children.wait_for_line("control", '"request_id": "mine"', PATIENCE)

    found = lines(children, "control")
    (access,) = [line for line in found if line.get("request_id") == "mine"]
    assert (access["logger"], access["level"], access["status"]) == ("tenfold_control_api.access", "INFO", 404)
    # uvicorn's lines have the same form
    messages = {(line["logger"], line["message"]) for line in found}
    assert ("tenfold_control_api.main", f"serving at {url}") in messages
    assert any(logger == "uvicorn.error" and text.startswith("Started server process") for logger, text in messages)


@pytest.mark.thorough
def test_up_hands_it_to_its_processes(children: Children) -> None:
    options = ("--ps", "1", "--workers", "0", "--control-port", "0", "--log-level", "info")
    children.start("up", [*CLI, "up", *options])
    children.wait_for_line("up", "Ctrl-C stops all of it", PATIENCE)

    children.wait_for_line("up", r"^control  \| \S+Z INFO tenfold_control_api.access: PUT /v1/clusters/default ", 1)


PROGRAM = """
import logging
logging.getLogger("mine").info("step %d", 1)
logging.getLogger("mine").warning("slow")
"""


def test_programs_of_a_run_log_as_it_was_asked_for(children: Children, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run = [*CLI, "run", "--ps", "0", "--workers", "1"]

    children.start("asked", [*run, "--log-level", "info", "--log-format", "json", str(program)])
    children.start("not", [*run, str(program)])
    for name in ("asked", "not"):
        children.wait_for_line(name, "slow", PATIENCE)

    said = [json.loads(line.partition("| ")[2]) for line in children.last_lines("asked", 200)]
    assert [(each["level"], each["message"], each["task"]) for each in said] == [
        ("INFO", "step 1", "/job:worker/task:0"),
        ("WARNING", "slow", "/job:worker/task:0"),
    ]
    # a program that nobody asked about logs as Python does
    assert children.last_lines("not", 200) == ["worker/0 | slow"]
