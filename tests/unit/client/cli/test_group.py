"""What every command has: near misses at every level, a variable for each option, options of programs left alone."""

from __future__ import annotations

from collections import Counter

import click
import pytest
from click.testing import CliRunner

from tenfold.cli.config import commands
from tenfold.cli.group import Group, ProgramCommand, options_of
from tenfold.cli.main import cli


@click.group(cls=Group)
@click.option("--verbose", is_flag=True)
def root(verbose: bool) -> None:
    """A command with a group below it."""


@root.group()
def store() -> None:
    """A group below it."""


@store.command()
@click.option("--workers", type=int, default=1)
def backup(workers: int) -> None:
    click.echo(f"workers={workers}")


@root.command(cls=ProgramCommand, context_settings={"allow_interspersed_args": False})
@click.option("--ps", type=int, default=1)
@click.option("--chief", is_flag=True)
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def run(ps: int, chief: bool, program: tuple[str, ...]) -> None:
    click.echo(f"ps={ps} chief={chief} program={' '.join(program)}")


def said(command: click.Command, *arguments: str, **environment: str) -> str:
    """The last line of what it prints."""
    return CliRunner().invoke(command, list(arguments), env=environment).output.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["sttaus"], "Error: no such command: sttaus, did you mean status?"),
        (["xyzzy"], "Error: no such command: xyzzy"),
        (["up", "--worker", "3"], "Error: no such option: --worker, did you mean --workers?"),
        (["up", "--frobnicate"], "Error: no such option: --frobnicate"),
        (["run", "--worker", "3", "trainer.py"], "Error: no such option: --worker, did you mean --workers?"),
        (["submit", "--restart=1", "--", "python"], "Error: no such option: --restart, did you mean --restarts?"),
        (["--confg", "x", "up"], "Error: no such option: --confg, did you mean --config?"),
    ],
)
def test_a_near_miss_is_named(arguments: list[str], line: str) -> None:
    result = CliRunner().invoke(cli, arguments)

    assert (result.exit_code, result.output.splitlines()[-1]) == (2, line)


def test_near_misses_below_a_group() -> None:
    assert said(root, "stroe") == "Error: no such command: stroe, did you mean store?"
    assert said(root, "store", "bakcup") == "Error: no such command: bakcup, did you mean backup?"
    assert said(root, "store", "backup", "--worker=1") == "Error: no such option: --worker, did you mean --workers?"
    assert said(root, "--verbos", "store") == "Error: no such option: --verbos, did you mean --verbose?"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["trainer.py", "--ps", "7"], "ps=1 chief=False program=trainer.py --ps 7"),
        (["--ps", "2", "--chief", "-m", "mnist", "--ps", "7"], "ps=2 chief=True program=-m mnist --ps 7"),
        (["--ps=2", "-m", "mnist", "--chief"], "ps=2 chief=False program=-m mnist --chief"),
        (["--", "trainer.py", "--chief"], "ps=1 chief=False program=trainer.py --chief"),
    ],
)
def test_what_follows_the_program_is_the_programs(arguments: list[str], line: str) -> None:
    assert said(root, "run", *arguments) == line


def test_every_option_of_every_command_has_a_variable_of_its_own() -> None:
    found = [(" ".join(words), option) for words, command in commands(cli) for option in options_of(command)]
    found += [("", option) for option in options_of(cli)]

    assert len(found) > 50
    for command, option in found:
        assert str(option.envvar).startswith("TENFOLD_") or option.envvar == "TF_CONFIG", (command, option.name)
    # two options of one command never share one, nor do options that the commands do not share
    assert max(Counter((command, option.envvar) for command, option in found).values()) == 1
    keys: dict[str, set[str]] = {}
    for _, option in found:
        keys.setdefault(str(option.envvar), set()).add(max(option.opts, key=len))
    shared = {variable: names for variable, names in keys.items() if len(names) > 1}
    assert shared == {"TENFOLD_HTTP_PORT": {"--port", "--control-port"}}


def test_a_variable_is_read_and_named_in_the_help() -> None:
    assert said(cli, "up", "--ps", "0", TENFOLD_UP_WORKERS="0").startswith("Error: a cluster needs at least one task")
    assert said(root, "store", "backup", TENFOLD_BACKUP_WORKERS="5") == "workers=5"
    assert "TENFOLD_UP_WORKERS" in CliRunner().invoke(cli, ["up", "--help"]).output
