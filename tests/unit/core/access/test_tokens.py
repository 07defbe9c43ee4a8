from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tenfold_core.access import tokens
from tenfold_core.access.roles import Role, role_named
from tenfold_core.access.tokens import Token, TokenFile, TokenSet, digest_of, line_of, new_token, parse_line

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "tenfold-0123456789abcdef"


def test_a_line_says_the_same_whether_hashed_or_not() -> None:
    token = Token(digest_of(SECRET), Role.RUN, "ci", 1_800_000_000.0)

    plain, hashed = (line_of(SECRET, token, hashed=each) for each in (False, True))

    assert plain == f"{SECRET} role=run name=ci expires=2027-01-15T08:00:00Z"
    assert hashed == f"sha256:{digest_of(SECRET).hex()} role=run name=ci expires=2027-01-15T08:00:00Z"
    assert (parse_line(plain), parse_line(hashed)) == ((SECRET, token), (None, token))


def test_a_token_alone_may_do_everything_for_ever() -> None:
    assert parse_line(SECRET) == (SECRET, Token(digest_of(SECRET), Role.ADMIN, "", None))


def test_new_tokens_are_long_and_never_the_same() -> None:
    made = {new_token() for _ in range(100)}

    assert len(made) == 100
    assert min(map(len, made)) > 40
    assert all(parse_line(each)[0] == each for each in made)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (f"{SECRET} rolle=run", "may be role=, name= and expires="),
        (f"{SECRET} role=king", "'king' is no role; there are read, run:untrusted, run, register, admin"),
        (f"{SECRET} expires=soon", "expires=soon is not a time"),
        ("short", "8 to 512 printable characters"),
        ("sha256:beef", "64 hexadecimal digits"),
    ],
)
def test_a_line_that_is_none_says_why_and_not_what_the_token_is(line: str, text: str) -> None:
    with pytest.raises(ValueError, match=text) as caught:
        parse_line(line)

    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("role", [role for role in Role if role])
def test_a_role_is_found_by_its_word(role: Role) -> None:
    assert role_named(role.word) is role


def test_nobody_is_no_role() -> None:
    with pytest.raises(ValueError, match="'none' is no role"):
        role_named("none")


def test_two_tokens_are_good_at_once_and_the_first_is_shown() -> None:
    found = TokenSet.of_text(f"{SECRET}-new, {SECRET}-old", "TENFOLD_TOKEN")

    assert found.shown == f"{SECRET}-new"
    assert found.find(f"{SECRET}-old") == Token(digest_of(f"{SECRET}-old"))
    assert found.find(SECRET) is found.find("") is found.find("x" * 1000) is None


def test_a_hashed_token_lets_in_and_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# ours\n\nsha256:{digest_of(SECRET).hex()} role=read  # for the dashboard\n")

    found = TokenSet.of_file(str(path))

    assert found.shown is None
    assert found.find(SECRET) == Token(digest_of(SECRET), Role.READ)


@pytest.mark.parametrize(
    ("content", "text"), [(b"", "holds no token"), (b"\n\nrole=run x\n", "line 3"), (b"\xff", "cannot be read")]
)
def test_a_file_that_is_none_says_what_is_wrong(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "tokens"
    path.write_bytes(content)

    with pytest.raises(ValueError, match=text):
        TokenSet.of_file(str(path))


def test_a_file_may_be_so_large_and_no_larger(tmp_path: Path) -> None:
    path, line = tmp_path / "tokens", f"{new_token()}\n"
    path.write_text(line + "#" * (tokens._FILE_BYTES - len(line)))
    assert len(TokenSet.of_file(str(path))) == 1

    path.write_text(line + "#" * (tokens._FILE_BYTES - len(line) + 1))
    with pytest.raises(ValueError, match=f"{path} is larger than {tokens._FILE_BYTES} bytes"):
        TokenSet.of_file(str(path))


class Hand:
    """A clock by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_file_may_change_under_way(tmp_path: Path) -> None:
    path, clock = tmp_path / "tokens", Hand()
    path.write_text(f"{SECRET}-old\n")
    file = TokenFile(str(path), clock)

    path.write_text(f"{SECRET}-new\n{SECRET}-old\n")
    before = file.current()
    clock.now = 2.0
    meanwhile = file.current()
    clock.now = 4.0
    after = file.current()

    assert before.shown == f"{SECRET}-old"
    # another task may not have looked yet
    assert meanwhile.shown == f"{SECRET}-old"
    assert meanwhile.find(f"{SECRET}-new") is not None
    assert after.shown == f"{SECRET}-new"
    assert after.find(f"{SECRET}-old") is not None


def test_a_token_that_was_taken_away_is_good_until_others_have_seen_it(tmp_path: Path) -> None:
    path, clock = tmp_path / "tokens", Hand()
    path.write_text(f"{SECRET}-new\n{SECRET}-old\n")
    file = TokenFile(str(path), clock)

    path.write_text(f"{SECRET}-new\n")
    clock.now = 1.0
    meanwhile = file.current()
    clock.now = 3.0
    after = file.current()

    assert meanwhile.find(f"{SECRET}-old") is not None
    assert meanwhile.shown == after.shown == f"{SECRET}-new"
    assert after.find(f"{SECRET}-old") is None


def test_a_file_with_another_token_shows_it_at_once(tmp_path: Path) -> None:
    path, clock = tmp_path / "tokens", Hand()
    path.write_text(f"{SECRET}-old role=run\n")
    file = TokenFile(str(path), clock)

    path.write_text(f"{SECRET}-new\n")
    clock.now = 1.0

    assert file.current().shown == f"{SECRET}-new"


@pytest.mark.parametrize("content", [None, "x"])
def test_a_file_that_goes_bad_stays_as_it_was(
    tmp_path: Path, content: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock = tmp_path / "tokens", Hand()
    path.write_text(SECRET)
    file = TokenFile(str(path), clock)

    if content is None:
        os.remove(path)
    else:
        path.write_text(content)
    clock.now = 2.0

    assert file.current().shown == SECRET
    assert "stay as they were" in caplog.text
    assert tokens.__name__ in caplog.records[0].name
