from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenfold_core import errors
from tenfold_core.access.settings import AccessSettings, shown_token

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
