"""The tokens of the service and of its programs: in memory, in the programs' file, and when they change."""

from __future__ import annotations

import logging
import stat
from typing import TYPE_CHECKING

import pytest

from tenfold_control_api.service_tokens import ServiceTokens
from tenfold_core.access.roles import Role
from tenfold_core.access.task_tokens import PROGRAMS
from tenfold_core.access.tokens import Token, TokenSet, derived, digest_of

if TYPE_CHECKING:
    from pathlib import Path


class Changing:
    """Tokens that a test changes."""

    def __init__(self, *lines: tuple[str | None, Token]) -> None:
        self.now = TokenSet(lines)

    def __call__(self) -> TokenSet:
        return self.now


def line(text: str, role: Role = Role.ADMIN, expires: float | None = None) -> tuple[str, Token]:
    return text, Token(digest_of(text), role, "ci", expires)


def program(text: str) -> str:
    return derived(text, PROGRAMS)


def test_a_program_may_do_no_more_than_register_and_no_more_than_its_token() -> None:
    tokens = ServiceTokens(Changing(line("the-first", Role.ADMIN, 5e9), line("the-second", Role.READ)))

    found = tokens.current()

    assert found.lines[:2] == (line("the-first", Role.ADMIN, 5e9), line("the-second", Role.READ))
    assert found.find(program("the-first")) == Token(digest_of(program("the-first")), Role.REGISTER, "programs", 5e9)
    assert found.find(program("the-second")) == Token(digest_of(program("the-second")), Role.READ, "programs", None)
    assert len(found) == 4
    assert found.shown == "the-first"


def test_a_digest_alone_makes_no_token_for_programs() -> None:
    hashed = (None, Token(digest_of("the-first")))
    tokens = ServiceTokens(Changing(hashed))

    assert tokens.current().lines == (hashed,)
    assert tokens.current() is tokens.current()


def test_without_tokens_programs_get_no_file(tmp_path: Path) -> None:
    assert ServiceTokens(Changing()).for_programs(tmp_path / "tokens") is None
    assert list(tmp_path.iterdir()) == []


def test_digests_alone_cannot_be_handed_to_programs(tmp_path: Path) -> None:
    tokens = ServiceTokens(Changing((None, Token(digest_of("the-first")))))

    with pytest.raises(ValueError, match=r"^the token file holds digests alone, so programs cannot be given a token; "):
        tokens.for_programs(tmp_path / "tokens")

    assert list(tmp_path.iterdir()) == []


def test_the_file_has_what_programs_show_first_and_digests_of_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "made" / "here" / "tokens"
    tokens = ServiceTokens(Changing(line("the-first")))

    assert tokens.for_programs(file) == file

    held = TokenSet.of_file(str(file))
    assert held.shown == program("the-first")
    assert [text for text, _ in held.lines] == [program("the-first"), None]
    assert held.find("the-first") == Token(digest_of("the-first"), Role.ADMIN, "ci")
    assert "the-first" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_the_file_follows_the_tokens_and_a_set_that_stays_is_not_written_again(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    source = Changing(line("the-first"))
    tokens = ServiceTokens(source)
    tokens.for_programs(file)
    file.unlink()
    tokens.current()
    assert not file.exists()

    source.now = TokenSet([line("the-second")])

    assert tokens.current().shown == "the-second"
    assert TokenSet.of_file(str(file)).shown == program("the-second")


def test_a_file_that_cannot_be_written_is_reported_and_the_new_tokens_are_good(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "folder" / "tokens"
    source = Changing(line("the-first"))
    tokens = ServiceTokens(source)
    tokens.for_programs(file)
    file.unlink()
    file.parent.rmdir()
    file.parent.write_text("in the way")
    source.now = TokenSet([line("the-second")])

    with caplog.at_level(logging.WARNING):
        found = tokens.current()

    assert found.shown == "the-second"
    assert [each.getMessage().partition(":")[0] for each in caplog.records] == [
        "programs that run are not told of the new tokens"
    ]
