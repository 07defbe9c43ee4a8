from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from support.certs import access
from tenfold_core import errors
from tenfold_core.access.credentials import NO_CREDENTIALS, AccessSettings, shown_token

if TYPE_CHECKING:
    from pathlib import Path


def test_nothing_set_shows_nothing_and_lets_nobody_in() -> None:
    tokens = AccessSettings.from_environment({}).tokens()()

    assert (tokens.shown, len(tokens)) == (None, 0)


def test_a_file_counts_before_a_variable(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("token-of-the-file")

    variable, file = {"TENFOLD_TOKEN": "token-of-the-variable"}, {"TENFOLD_TOKEN_FILE": str(path)}

    assert shown_token(variable)() == "token-of-the-variable"
    assert shown_token(variable | file)() == "token-of-the-file"
    assert shown_token({})() is None


def test_what_is_shown_is_known_by_its_settings() -> None:
    one, same, other = (shown_token({"TENFOLD_TOKEN": f"token-{name}"}) for name in ("one", "one", "two"))

    assert one == same
    assert one != other
    assert len({one, same, other}) == 2
    assert "token-one" not in repr(one.settings)


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"TENFOLD_TOKEN": "short"}, "TENFOLD_TOKEN: a token has 8"),
        ({"TENFOLD_TOKEN_FILE": "/no/such"}, "cannot be read"),
    ],
)
def test_what_is_no_token_is_refused_at_start(environment: dict[str, str], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        shown_token(environment)


def test_a_child_is_told_what_its_parent_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokens").write_text("token-of-the-file")
    monkeypatch.chdir(tmp_path)
    settings = [{}, {"TENFOLD_TOKEN": "token-one"}, {"TENFOLD_TOKEN": "token-one", "TENFOLD_TOKEN_FILE": "tokens"}]

    told = [shown_token(each).variables() for each in settings]

    assert told == [{}, {"TENFOLD_TOKEN": "token-one"}, {"TENFOLD_TOKEN_FILE": str(tmp_path / "tokens")}]
    assert [shown_token(each)() for each in told] == [None, "token-one", "token-of-the-file"]


def test_who_shows_nothing_dials_in_the_clear() -> None:
    credentials = AccessSettings.from_environment({"TENFOLD_TOKEN": "token-one,token-two"}).credentials()

    assert credentials.of("far.example:443") is None
    assert NO_CREDENTIALS.of("far.example:443") is None
    assert (credentials.tokens().shown, len(credentials.tokens())) == ("token-one", 2)
    assert (NO_CREDENTIALS.tokens().shown, len(NO_CREDENTIALS.tokens())) == (None, 0)


def test_only_what_shows_a_token_is_equal() -> None:
    shown = shown_token({"TENFOLD_TOKEN": "token-one"})

    assert shown != shown.settings
    assert shown != "token-one"


@pytest.mark.parametrize("name", ["tls_cert", "tls_key", "tls_ca"])
def test_one_file_of_three_is_not_passed_over(name: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="is not set"):
        AccessSettings(**{name: "/no/such"}).credentials()


@pytest.mark.parametrize(("tls", "near"), [("auto", False), ("always", True)])
def test_addresses_of_this_machine_are_dialled_with_tls_where_all_are(tmp_path: Path, tls: Any, near: bool) -> None:
    credentials = dataclasses.replace(access(tmp_path, "task"), tls=tls).credentials()

    assert credentials.of("far.example:443") is credentials.certificates is not None
    assert (credentials.of("localhost:2222") is not None) is near
