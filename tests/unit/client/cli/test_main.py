"""The command line itself: what it offers, how it answers wrong usage. Nothing here starts anything."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from tenfold.cli.main import cli

Run = Callable[..., Result]
COMMANDS = sorted(
    (
        *("demo", "up", "run", "control", "task", "status", "ping"),
        *("submit", "runs", "logs", "stop", "delete", "launchers", "render", "tensorboard"),
        *("edit", "compare", "sweep", "artifacts", "export"),
        *("placement", "tables", "trace", "why", "drain", "tunnel", "model", "backup", "restore", "compact"),
        *("token", "certs", "config", "completion", "doctor"),
    )
)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("JOB", "INDEX", "CLUSTER", "CONTROL", "ADDRESS", "BIND", "HTTP_PORT", "JOBS"):
        monkeypatch.delenv(f"TENFOLD_{name}", raising=False)
    monkeypatch.delenv("TF_CONFIG", raising=False)

    def invoke(*arguments: str, **environment: str) -> Result:
        return CliRunner().invoke(cli, list(arguments), env=environment)

    return invoke


def test_help_lists_every_command(run: Run) -> None:
    result = run("--help")

    assert result.exit_code == 0
    assert sorted(cli.commands) == COMMANDS
    assert all(f"  {command} " in result.output for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(run: Run, command: str) -> None:
    result = run(command, "--help")

    assert result.exit_code == 0
    assert "Usage: cli " + command in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["task"], "which job is this task of"),
        (["task", "--job", "ps"], "where is the cluster"),
        (["task", "--job", "ps", "--index", "-1"], "--index"),
        (["task", "--job", "ps", "--cluster", "{}", "--control", "http://h"], "not both"),
        (["up", "--ps", "0", "--workers", "0"], "at least one task"),
        (["up", "--fresh", "--database", "x.db"], "give one of them"),
        (["up", "--workers", "-1"], "--workers"),
        (["ping", "nowhere"], "is not HOST:PORT"),
        (["ping", "localhost:1", "--timeout", "0"], "--timeout"),
        (["control", "--port", "70000"], "--port"),
        (["control", "--jobs", "ps"], "JOB=SIZE"),
        (["control", "--jobs", "ps=0"], "JOB=SIZE"),
        (["control", "--jobs", "ps=1,ps=2"], "twice"),
        (["frobnicate"], "no such command"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what(run: Run, arguments: list[str], message: str) -> None:
    result = run(*arguments)

    assert result.exit_code == 2, result.output
    assert message in result.output


def test_the_environment_stands_in_for_flags(run: Run) -> None:
    result = run("task", TENFOLD_JOB="chief", TENFOLD_CLUSTER='{"ps": ["localhost:2222"]}')

    assert result.exit_code == 2
    assert "the cluster has no job 'chief'" in result.output


def test_a_flag_wins_over_the_environments_other_source(run: Run) -> None:
    result = run("task", "--job", "chief", "--cluster", '{"ps": ["localhost:2222"]}', TENFOLD_CONTROL="http://h")

    assert "the cluster has no job 'chief'" in result.output


def test_tf_config_stands_in_for_both(run: Run) -> None:
    config = {"cluster": {"ps": ["localhost:2222"]}, "task": {"type": "ps", "index": 5}}

    result = run("task", TF_CONFIG=json.dumps(config))

    assert "job 'ps' has no task 5" in result.output
