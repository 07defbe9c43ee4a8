"""Tokens that open one task alone. Who answers at an address that a cluster names may keep what it is shown there: with
such a token it opens nothing else.

Two kinds, each made by HMAC of what both ends know and nobody else does: of the task's lease, which its control service
shows; of a token of the cluster, which other tasks show. gate.py accepts them, the callers of tasks show them.
docs/decisions/0127-a-token-opens-one-task.md.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from tenfold_core.access.roles import Role
from tenfold_core.access.tokens import Token, TokenSet, derived, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .credentials import Credentials

#: What programs that the control service starts are accepted by; made of its own token.
PROGRAMS = "tenfold: programs started by the control service"
_SERVICE = "tenfold: calls of the control service"
#: What each kind may do at the task, and as whom it stands in the audit log. A control service opens sessions and runs
#: steps, for nobody more; a task calls the workers of others.
_SERVICE_ROLE, _SERVICE_NAME = Role.RUN, "of the control service"
_MEMBER_ROLE, _MEMBER_NAME = Role.REGISTER, "of another task"
#: A task registers anew while calls under its former lease are still on their way.
_LEASES = 2


def service_token(lease: str) -> str:
    """What the control service shows to the task that holds this lease."""
    return derived(lease, _SERVICE)


def _member_token(text: str, task: str) -> str:
    return derived(text, f"tenfold: calls of other tasks to {task}")


def shown_to(tokens: TokenSet, task: str) -> TokenSet:
    """What a task with these tokens shows to `task`. A token that may do no more than a member of the cluster is shown
    as it is; of one that may do more, something that opens `task` alone."""
    first = next((line for line in tokens.lines if line[0] is not None), None)
    if first is None or first[0] is None or first[1].role <= _MEMBER_ROLE:
        return tokens
    text = _member_token(derived(first[0], PROGRAMS), task)
    return TokenSet([(text, Token(digest_of(text), _MEMBER_ROLE, _MEMBER_NAME))])


def credentials_for(credentials: Credentials, task: str) -> Credentials:
    """`credentials` as they are shown to `task`."""
    tokens = credentials.tokens
    return replace(credentials, tokens=lambda: shown_to(tokens(), task))


class TaskTokens:
    """What one task accepts beside the tokens of its cluster. Never blocks; any thread."""

    def __init__(self, tokens: Callable[[], TokenSet], task: str) -> None:
        self._tokens, self._task = tokens, task
        self._lock = threading.Lock()
        #: The newest last.
        self._leases: tuple[str, ...] = ()
        #: Of which tokens and leases `_made` was made.
        self._made_of: tuple[TokenSet, tuple[str, ...]] | None = None
        self._made = TokenSet()

    def hold(self, lease: str) -> None:
        """The task holds this lease from now on, or asks for it."""
        with self._lock:
            self._leases = (*(each for each in self._leases if each != lease), lease)[-_LEASES:]

    def current(self) -> TokenSet:
        """The tokens that are good at this task alone."""
        source = (self._tokens(), self._leases)
        with self._lock:
            if self._made_of is None or self._made_of[0] is not source[0] or self._made_of[1] != source[1]:
                self._made_of, self._made = source, self._make(*source)
            return self._made

    def _make(self, tokens: TokenSet, leases: tuple[str, ...]) -> TokenSet:
        made: list[tuple[str, Role, str, float | None]] = []
        made += [(service_token(lease), _SERVICE_ROLE, _SERVICE_NAME, None) for lease in leases]
        for text, token in tokens.lines:
            if text is not None:
                role = min(token.role, _MEMBER_ROLE)
                # a program has what was made of its service's token, another task perhaps the token itself
                for known in (text, derived(text, PROGRAMS)):
                    made.append((_member_token(known, self._task), role, _MEMBER_NAME, token.expires))
        return TokenSet((text, Token(digest_of(text), role, name, expires)) for text, role, name, expires in made)
