from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from tenfold.cli.main import cli
from tenfold.cli.tokens import shown
from tenfold_core.access.roles import Role
from tenfold_core.access.tokens import TokenSet

if TYPE_CHECKING:
    from pathlib import Path


def tenfold(*arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments])


def test_a_token_alone() -> None:
    made = [tenfold("token", "new").stdout for _ in range(2)]

    assert all(each.startswith("tenfold-") and len(each) > 40 for each in made)
    assert made[0] != made[1]


def test_a_new_token_goes_first_and_the_old_one_stays_good(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    old = tenfold("token", "new", "--file", str(path)).stdout.strip()
    added = tenfold("token", "new", "--file", str(path), "--role", "run", "--name", "ci", "--expires", "30d")
    new = added.stdout.strip()

    found = TokenSet.of_file(str(path))

    assert found.shown == new
    first, second = found.find(new), found.find(old)
    assert first is not None
    assert second is not None
    assert (first.role, first.name, first.expires is None) == (Role.RUN, "ci", False)
    assert (second.role, second.expires) == (Role.ADMIN, None)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert new not in added.stderr


def test_a_hashed_token_cannot_be_read_where_it_lets_in(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    made = tenfold("token", "new", "--file", str(path), "--hashed").stdout.strip()

    found = TokenSet.of_file(str(path))

    assert made not in path.read_text()
    assert found.find(made) is not None
    assert found.shown is None


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--role", "king"), "'king' is no role; there are read, run:untrusted, run, register, admin"),
        (("--expires", "soon"), "write 30m, 12h or 90d"),
        (("--expires", "0d"), "write 30m, 12h or 90d"),
        (("--hashed",), "give --file as well"),
        (("--name", "a b"), "has a space"),
    ],
)
def test_what_does_not_fit_is_said(options: tuple[str, ...], text: str) -> None:
    result = tenfold("token", "new", *options)

    assert result.exit_code == 2
    assert text in result.output


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    result = tenfold("token", "new", "--file", str(tmp_path / "no" / "tokens"))

    assert result.exit_code == 1
    assert "cannot be written" in result.output


def test_commands_show_the_token_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tokens"
    path.write_text("no token\n")
    monkeypatch.setenv("TENFOLD_TOKEN_FILE", str(path))

    result = tenfold("status", "--control", "http://127.0.0.1:1")

    assert result.exit_code == 2
    assert f"the token file {path}, line 1" in result.output


def test_the_file_counts_and_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenfold_core.access.tokens._LOOK_S", 0.0)
    path = tmp_path / "tokens"
    path.write_text("token-of-the-file\n")

    without, with_file = shown("token-new,token-old", None), shown("token-of-the-variable", str(path))
    before = with_file()
    path.write_text("token-of-tomorrow\ntoken-of-the-file\n")

    assert (without(), before, with_file()) == ("token-new", "token-of-the-file", "token-of-tomorrow")
    assert with_file.variables() == {"TENFOLD_TOKEN_FILE": str(path)}
    assert without.variables() == {"TENFOLD_TOKEN": "token-new,token-old"}


@pytest.mark.parametrize(
    "command",
    [
        ("status",), ("control",), ("doctor",), ("runs",), ("drain", "ps/0"),
        ("task", "--job", "ps"), ("run", "x.py"), ("tunnel", "--listen", "h:1", "--to", "h:1"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["--token SECRET-SECRET", "--token=SECRET-SECRET"])
def test_a_token_is_refused_on_the_command_line(command: tuple[str, ...], form: str) -> None:
    result = tenfold(command[0], *form.split(), *command[1:])

    assert result.exit_code == 2
    said = " ".join(result.output.split())
    assert "can be read by every user of this machine, in the list of processes" in said
    assert "--token-file FILE (TENFOLD_TOKEN_FILE)" in said
    assert "SECRET-SECRET" not in said


def test_a_file_of_options_may_hold_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENFOLD_TOKEN", raising=False)
    (tmp_path / "t.toml").write_text('[tenfold]\ntoken = "short"\n')

    result = tenfold("--config", str(tmp_path / "t.toml"), "status")

    assert (result.exit_code, "TENFOLD_TOKEN: a token has 8" in result.output) == (2, True)
