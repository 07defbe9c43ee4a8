"""Defaults from a file: where it is looked for, what wins, what is wrong with it and where, and `tenfold config`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner, Result

from tenfold.cli.config import Config, find, load
from tenfold.cli.main import cli

if TYPE_CHECKING:
    from pathlib import Path

Tenfold = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; the home directory lies beside it."""
    here, home = tmp_path / "here", tmp_path / "home"
    here.mkdir()
    (home / ".config" / "tenfold").mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "TENFOLD_CONFIG", "TENFOLD_CONTROL", "TENFOLD_TOKEN", "TENFOLD_UP_WORKERS"):
        monkeypatch.delenv(name, raising=False)
    return here


@pytest.fixture
def tenfold(folder: Path) -> Tenfold:
    return lambda *arguments, **environment: CliRunner().invoke(cli, list(arguments), env=environment)


def value(tenfold: Tenfold, command: str, option: str, *arguments: str, **environment: str) -> tuple[object, str]:
    shown = tenfold(*arguments, "config", command, "--json", **environment)
    assert shown.exit_code == 0, shown.output
    (found,) = [each for each in json.loads(shown.output)["settings"] if each["option"] == option]
    return found["value"], found["source"]


def test_the_given_file_wins_over_the_folders_and_that_over_the_homes(folder: Path, tenfold: Tenfold) -> None:
    assert find(None) is None
    assert value(tenfold, "up", "workers") == (2, "default")
    home = folder.parent / "home" / ".config" / "tenfold" / "config.toml"
    home.write_text("[up]\nworkers = 3\n")
    assert value(tenfold, "up", "workers") == (3, f"{home} [up]")
    (folder / "tenfold.toml").write_text("[up]\nworkers = 4\n")
    assert value(tenfold, "up", "workers") == (4, "tenfold.toml [up]")
    (folder / "other.toml").write_text("[up]\nworkers = 5\n")
    assert value(tenfold, "up", "workers", TENFOLD_CONFIG="other.toml") == (5, "other.toml [up]")
    assert value(tenfold, "up", "workers", "--config", "other.toml") == (5, "other.toml [up]")


def test_a_flag_wins_over_a_variable_and_that_over_the_file(folder: Path, tenfold: Tenfold) -> None:
    (folder / "tenfold.toml").write_text('[control]\njobs = "file"\n')

    by_file = tenfold("control")
    by_variable = tenfold("control", TENFOLD_JOBS="variable")
    by_flag = tenfold("control", "--jobs", "flag", TENFOLD_JOBS="variable")

    for result, source in ((by_file, "file"), (by_variable, "variable"), (by_flag, "flag")):
        assert (result.exit_code, f"'{source}' is not JOB=SIZE" in result.output) == (2, True), result.output


def test_of_two_ways_to_the_cluster_the_nearer_one_wins(folder: Path, tenfold: Tenfold) -> None:
    (folder / "tenfold.toml").write_text('[task]\ncontrol = "http://file:1"\n')

    result = tenfold("task", "--job", "chief", TENFOLD_CLUSTER='{"ps": ["localhost:2222"]}')

    assert "the cluster has no job 'chief'" in result.output


def test_the_shared_section_holds_for_each_command_that_has_the_option(folder: Path, tenfold: Tenfold) -> None:
    (folder / "tenfold.toml").write_text('[tenfold]\ncontrol = "http://all:1"\n[status]\ncontrol = "http://own:1"\n')

    assert value(tenfold, "runs", "control") == ("http://all:1", "tenfold.toml [tenfold]")
    assert value(tenfold, "status", "control") == ("http://own:1", "tenfold.toml [status]")


def test_what_is_in_force(folder: Path, tenfold: Tenfold) -> None:
    (folder / "tenfold.toml").write_text('[up]\nworkers = 4\n[submit]\nenv = ["SEED=1", "HOME"]\n')

    shown = tenfold("config", TENFOLD_RUNS_N="", TENFOLD_RUNS_LIMIT="5", TENFOLD_STATUS_WATCH="1", COLUMNS="80")
    one = tenfold("config", "ping")

    assert [line.rstrip() for line in shown.output.splitlines()] == [
        "file: tenfold.toml",
        "command  option   value               from",
        "up       workers  4                   tenfold.toml [up]",
        "status   watch    1                   TENFOLD_STATUS_WATCH",
        "submit   env      ['SEED=1', 'HOME']  tenfold.toml [submit]",
    ]
    assert [line.rstrip() for line in one.output.splitlines()] == [
        "file: tenfold.toml",
        "command  option   value  from",
        "ping     live     False  default",
        "ping     timeout  5.0    default",
    ]


def test_a_secret_is_not_shown(folder: Path, tenfold: Tenfold) -> None:
    assert value(tenfold, "status", "token", TENFOLD_TOKEN="open sesame") == ("(set)", "TENFOLD_TOKEN")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[up]\nworker = 3\n", "tenfold.toml:2: [up] has no option 'worker', did you mean workers?"),
        ("\n[upp]\nworkers = 3\n", "tenfold.toml:2: unknown section 'upp', did you mean up?"),
        ("worker = 3\n", "tenfold.toml:1: unknown key 'worker'; sections are tenfold and the names of the commands"),
        ("up = 3\n", "tenfold.toml:1: up is a command: its options belong in a section, [up]"),
        ("[tenfold]\n\ncontroll = 1\n", "tenfold.toml:3: no command has an option 'controll', did you mean control?"),
        ('[up]\nworkers = "3"\n', 'tenfold.toml:2: workers is "3"; it must be a whole number'),
        ("[up]\nworkers = true\n", "tenfold.toml:2: workers is true; it must be a whole number"),
        ("[up]\nworkers = -1\n", "tenfold.toml:2: workers: -1 is not in the range x>=0."),
        ("[up]\nstop-with-workers = 1\n", "tenfold.toml:2: stop-with-workers is 1; it must be true or false"),
        ('[submit]\nsuccess = "most"\n', "tenfold.toml:2: success: 'most' is not one of 'chief', 'all', 'any'."),
        ('[submit]\nenv = "A=1"\n', 'tenfold.toml:2: env is "A=1"; it must be a list of texts'),
        ("[ping]\ntimeout = '5'\n", 'tenfold.toml:2: timeout is "5"; it must be a number'),
        ("up = \n", "tenfold.toml is not valid TOML: Invalid value (at line 1, column 6)"),
    ],
)
def test_errors_name_the_file_the_line_and_what_would_be_right(
    folder: Path, tenfold: Tenfold, text: str, error: str
) -> None:
    (folder / "tenfold.toml").write_text(text)

    result = tenfold("status")

    assert (result.exit_code, result.output.splitlines()[-1]) == (2, f"Error: {error}")


def test_a_file_that_is_not_there(folder: Path, tenfold: Tenfold) -> None:
    result = tenfold("--config", "none.toml", "status")

    assert result.exit_code == 2
    assert result.output.endswith("Error: there is no file 'none.toml' (--config, TENFOLD_CONFIG)\n")


def test_sections_of_groups_below(tmp_path: Path) -> None:
    from tenfold.cli.group import Group

    @click.group(cls=Group)
    def root() -> None:
        pass

    @root.group()
    def store() -> None:
        pass

    @store.command()
    @click.option("--out", default="here")
    def backup(out: str) -> None:
        click.echo(out)

    path = tmp_path / "t.toml"
    path.write_text('[store.backup]\nout = "there"\n')
    found = load(path, root)
    path.write_text("[store.backup]\nouts = 1\n")

    assert found.default_map(root) == {"store": {"backup": {"out": "there"}}}
    assert CliRunner().invoke(root, ["store", "backup"], default_map=found.default_map(root)).output == "there\n"
    assert Config().default_map(root) == {"store": {"backup": {}}}
    with pytest.raises(click.UsageError, match=r"t\.toml:2: \[store\.backup\] has no option 'outs', did you mean out"):
        load(path, root)
