"""Tokens that open one task alone: who makes which of what, and what each may do there."""

from __future__ import annotations

from typing import Any

from tenfold_core.access.credentials import Credentials
from tenfold_core.access.roles import Role
from tenfold_core.access.task_tokens import PROGRAMS, TaskTokens, credentials_for, service_token, shown_to
from tenfold_core.access.tokens import Token, TokenSet, derived, digest_of

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


def token_set(*lines: tuple[str | None, Role]) -> TokenSet:
    return TokenSet(
        (text, Token(digest_of(text or "hashed"), role, "ci", 7e9 if text == "expiring-token" else None))
        for text, role in lines
    )


def shown(tokens: TokenSet, task: str) -> str:
    text = shown_to(tokens, task).shown
    assert text is not None
    return text


def at(task: str, *lines: tuple[str | None, Role]) -> TaskTokens:
    tokens = token_set(*lines)
    return TaskTokens(lambda: tokens, task)


def test_what_a_token_shows_to_a_task_opens_that_task_alone_as_a_member() -> None:
    cluster = (("the-token", Role.ADMIN), ("expiring-token", Role.ADMIN))
    text = shown(token_set(*cluster), PS)

    found = at(PS, *cluster).current().find(text)

    assert found == Token(digest_of(text), Role.REGISTER, "of another task", None)
    assert at(WORKER, *cluster).current().find(text) is None
    assert shown_to(token_set(*cluster), PS).lines == ((text, found),)
    assert text not in ("the-token", derived("the-token", PROGRAMS))


def test_what_a_program_shows_is_known_too_and_ends_with_its_token() -> None:
    made = derived("expiring-token", PROGRAMS)
    of_program = shown(token_set((made, Role.ADMIN)), PS)
    found = at(PS, ("expiring-token", Role.RUN)).current()

    assert len(found) == 2
    assert {token.role for _, token in found.lines} == {Role.RUN}
    assert {token.expires for _, token in found.lines} == {7e9}
    assert found.find(shown(token_set(("expiring-token", Role.ADMIN)), PS)) is not None
    # a program's own token is shown as it is, so what it would make of it is not asked for
    assert found.find(of_program) is None


def test_a_token_of_a_small_role_is_shown_as_it_is() -> None:
    for role in (Role.READ, Role.REGISTER):
        tokens = token_set(("the-token", role))
        assert shown_to(tokens, PS) is tokens
    for tokens in (token_set(), token_set((None, Role.ADMIN))):
        assert shown_to(tokens, PS) is tokens


def test_the_first_token_that_has_a_text_counts() -> None:
    tokens = token_set((None, Role.ADMIN), ("the-token", Role.ADMIN))
    assert shown(tokens, PS) == shown(token_set(("the-token", Role.ADMIN)), PS)
    assert at(PS, (None, Role.ADMIN)).current().lines == ()


def test_credentials_show_what_is_good_at_the_moment() -> None:
    held = [token_set(("the-token", Role.ADMIN))]
    certificates: Any = object()
    made = credentials_for(Credentials(lambda: held[0], certificates), PS)
    first = made.tokens().shown
    held[0] = token_set(("the-second", Role.ADMIN))

    assert (first, made.tokens().shown) == (shown(token_set(("the-token", Role.ADMIN)), PS), shown(held[0], PS))
    assert made.certificates is certificates


def test_the_service_is_let_in_by_the_lease_and_the_one_before() -> None:
    tokens = at(PS)
    for lease in ("one", "two", "one", "three"):
        tokens.hold(lease)

    found = tokens.current()

    assert [text for text, _ in found.lines] == [service_token("one"), service_token("three")]
    assert found.find(service_token("three")) == Token(
        digest_of(service_token("three")), Role.RUN, "of the control service", None
    )
    assert service_token("one") != service_token("three")


def test_they_are_made_anew_when_a_token_or_a_lease_changes_and_not_else() -> None:
    held = [token_set(("the-token", Role.ADMIN))]
    tokens = TaskTokens(lambda: held[0], PS)
    first = tokens.current()
    assert tokens.current() is first

    tokens.hold("lease")
    second = tokens.current()
    assert len(second) == len(first) + 1
    tokens.hold("lease")
    assert tokens.current() is second

    held[0] = token_set()
    assert [text for text, _ in tokens.current().lines] == [service_token("lease")]
