"""`tenfold doctor` with real tasks and a real control service: what it sees of them, and the exit code."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from support.ports import free_port
from support.task_processes import CLI, PATIENCE, static_cluster, task_name
from tenfold.cli.children import Children
from tenfold.cli.main import cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PS, WORKERS = task_name("ps", 0), [task_name("worker", index) for index in range(2)]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TENFOLD_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as started:
        yield started


def doctor(folder: Path, *arguments: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code, and what → (level, says)."""
    common = ("--json", "--port", str(free_port()), "--database", str(folder / "d.db"))
    result = CliRunner().invoke(cli, ["doctor", *common, *arguments])
    assert result.exit_code in (0, 1), result.output
    found: list[dict[str, Any]] = json.loads(result.output)
    return result.exit_code, {each["what"]: (each["level"], each["says"]) for each in found}


def test_this_machine_alone(tmp_path: Path) -> None:
    code, found = doctor(tmp_path)

    assert code == 0, found
    assert {"versions", "ports", "shared memory", "open files", "processor", "database"} <= found.keys()


@pytest.mark.thorough
def test_tasks_that_reach_each_other(tmp_path: Path) -> None:
    with static_cluster(ps=1, worker=2) as tasks:
        code, found = doctor(tmp_path, "--cluster", json.dumps(tasks.addresses))

    assert code == 0, found
    for task in (PS, *WORKERS):
        assert found[task][0] == "ok"
        assert found[task][1].endswith(f", on {socket.gethostname()}")
    assert found["names"] == ("ok", "of all tasks resolve here: localhost")
    assert found["pairs"] == ("ok", "each task reaches each other one (6 connections)")
    assert found["links"] == ("ok", "6 within a machine; version 1 of their protocol")


@pytest.mark.thorough
def test_the_ports_of_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFOLD_LINK", "tcp")
    port = free_port()
    with static_cluster(absent=[("ps", 0)], ps=1, worker=1) as tasks:
        monkeypatch.setenv("TENFOLD_LINK_PORT", str(port))
        tasks.start(("ps", 0))
        monkeypatch.delenv("TENFOLD_LINK_PORT")
        code, found = doctor(tmp_path, "--link-port", str(port), "--cluster", json.dumps(tasks.addresses))

    assert code == 0, found
    assert found["links"][0] == "ok"
    assert found["links"][1].startswith("2 over TCP, to port ")
    assert str(port) in found["links"][1]
    assert found["link port"][0] == "warn"
    assert "address already in use by process" in found["link port"][1]


def test_a_task_that_is_away_is_missed_by_each_other_one(tmp_path: Path) -> None:
    with static_cluster(ps=1, worker=2, absent=[("worker", 1)]) as tasks:
        code, found = doctor(tmp_path, "--timeout", "2", "--cluster", json.dumps(tasks.addresses))

    assert code == 1
    assert found[WORKERS[1]][0] == "fail"
    assert "does not answer: UNAVAILABLE" in found[WORKERS[1]][1]
    for task in (PS, WORKERS[0]):
        assert found[f"{task} → {WORKERS[1]}"][0] == "fail"
        assert found[task][0] == "ok"
    assert "pairs" not in found


def test_a_task_at_the_address_of_another(tmp_path: Path) -> None:
    with static_cluster(ps=1, worker=1) as tasks:
        address = tasks.addresses["ps"][0]
        wrong = {"ps": [address], "worker": [tasks.addresses["worker"][0], address]}
        code, found = doctor(tmp_path, "--cluster", json.dumps(wrong))

    assert code == 1
    assert found[f"{WORKERS[0]} → {WORKERS[1]}"] == ("fail", f"{PS} answers there")


def test_a_control_service_and_its_tasks(children: Children, tmp_path: Path) -> None:
    command = [*CLI, "control", "--port", "0", "--database", str(tmp_path / "c.db"), "--jobs", "ps=1,worker=1"]
    children.start("control", command, env={"TENFOLD_TOKEN": "open-sesame"})
    url = children.wait_for_line("control", r"listening on (http://\S+)", PATIENCE)[1]
    task = [*CLI, "task", "--job", "ps", "--control", url]
    children.start("ps", task, stage=1, env={"TENFOLD_TOKEN": "open-sesame"})
    children.wait_for_line("ps", "listening on grpc://", PATIENCE)

    (tmp_path / "token").write_text("open-sesame\n")
    code, found = doctor(tmp_path, "--control", url, "--token-file", str(tmp_path / "token"))
    without = doctor(tmp_path, "--control", url)

    assert code == 1
    assert found["service"] == ("ok", f"{url} answers")
    assert found["token"] == ("ok", "accepted")
    assert found["service's clock"] == ("ok", "within 2 s of this machine's")
    assert found[PS][0] == "ok"
    assert found[WORKERS[0]] == ("fail", "missing: no task has registered on this index yet")
    assert (without[0], without[1]["token"][0]) == (1, "fail")


def test_no_control_service_there(tmp_path: Path) -> None:
    code, found = doctor(tmp_path, "--control", f"http://127.0.0.1:{free_port()}")

    assert (code, found["service"][0]) == (1, "fail")
    assert "does not answer" in found["service"][1]
