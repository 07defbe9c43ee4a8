"""Who is accepted at a port, and as what: by the connection (the same user of this machine) or by a call's token.

The one place of that decision for tasks and for the control service. It holds no connection: what was decided for one
is its caller's to keep. docs/decisions/0069-who-is-let-in.md.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold_core import errors
from tenfold_core.access.channel import AS_ROLE
from tenfold_core.access.peer_user import CAN_TELL, is_connected, peer_user, unmapped
from tenfold_core.access.roles import Role, role_named
from tenfold_core.access.tokens import TokenSet
from tenfold_core.loopback import is_loopback
from tenfold_core.open_files import exhausted

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

_log = logging.getLogger(__name__)


_NAMELESS = "token without a name"


class Caller(NamedTuple):
    """Who calls, as it is written in the audit log, and what it may do."""

    role: Role
    name: str
    #: Of the token that it showed.
    digest: bytes = b""
    #: What it may do itself, where it asks for somebody of a lesser role.
    itself: Role = Role.NONE

    @property
    def principal(self) -> str:
        """Whose the objects are that this caller makes. Tokens with one name are one principal, so that a token can be
        changed; one without a name is a principal by itself."""
        return f"token {self.digest.hex()[:32]}" if self.name == _NAMELESS else self.name

    def lowered(self, role: Role) -> Caller:
        """The same where it asks for somebody who may do no more than `role`."""
        return self._replace(role=min(self.role, role), itself=max(self.role, self.itself))


NOBODY = Caller(Role.NONE, "nobody known")
EVERYBODY = Caller(Role.ADMIN, "everybody")


class UnknownTokenError(errors.UnauthenticatedError):
    """The token is not one that is accepted."""


class ExpiredTokenError(errors.UnauthenticatedError):
    """The token was good once."""


def _no_tokens() -> TokenSet:
    return TokenSet()


class Gate:
    """Decides for `where`, the name of what is guarded ("/job:ps/replica:0/task:0"). Never blocks; any thread.

    `tokens` gives those that are good now, `own` those that are good here alone (task_tokens.py). `open_to_all` lets
    everybody in as ADMIN (--insecure).
    """

    def __init__(
        self,
        where: str,
        tokens: Callable[[], TokenSet] = _no_tokens,
        *,
        open_to_all: bool = False,
        own: Callable[[], TokenSet] = _no_tokens,
        find_user: Callable[[tuple[Any, ...], tuple[Any, ...], int], int | None] = peer_user,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._where, self._tokens, self._own, self.open_to_all = where, tokens, own, open_to_all
        self._find_user, self._wall = find_user, wall_clock
        self._told = False

    @property
    def has_tokens(self) -> bool:
        """Whether there are tokens that are accepted."""
        return len(self._tokens()) > 0

    def of_connection(self, peer: Any, own: Any, family: int) -> Role:
        """What every call of a connection from `peer` to `own` may do, without a token. Addresses as the socket module
        gives them."""
        return self.neighbour(peer, own, family).role

    def accepted(self, sock: socket.socket) -> Caller:
        """Who is at the other end of `sock`. To be asked when it has just been accepted, and kept with it: later the
        peer may be gone, and its port somebody else's. Nobody where the connection is gone already. Raises
        ResourceExhaustedError as `neighbour`."""
        try:
            caller = self.neighbour(sock.getpeername(), sock.getsockname(), sock.family)
        except OSError:
            return EVERYBODY if self.open_to_all else NOBODY
        # what the system said of its four numbers it has said of this connection only if that still has them
        return caller if self.open_to_all or caller.role is Role.NONE or is_connected(sock) else NOBODY

    def neighbour(self, peer: Any, own: Any, family: int) -> Caller:
        """Who has the connection between these addresses now: for what has no socket to ask with. Raises
        ResourceExhaustedError where no file can be opened to ask the system with."""
        if self.open_to_all:
            return EVERYBODY
        if not isinstance(peer, tuple) or not is_loopback(unmapped(peer[0])):
            return NOBODY
        if not CAN_TELL:
            if not self._told:
                self._told = True
                _log.warning("%s accepts every user of this machine: the system does not tell them apart.", self._where)
            return Caller(Role.ADMIN, "some user of this machine")
        try:
            user = self._find_user(peer, own, family)
        except OSError as error:
            raise exhausted(error, f"{self._where} cannot ask which user calls") from None
        if user is None:
            return NOBODY
        return Caller(Role.ADMIN if user in (os.geteuid(), 0) else Role.NONE, f"user {user}")

    def of_call(self, authorization: str | None, connection: Role) -> Role:
        """What a call may do that shows `authorization`, the value of that header. Raises UnauthenticatedError for a
        token that is not good, or no longer: a caller who shows one learns of it, however it is connected."""
        return self.caller(authorization, Caller(connection, "")).role

    def called(self, authorization: str | None, as_role: str | None, connection: Caller) -> Caller:
        """Who sends a call that shows `authorization`, and asks to be taken for a lesser role (channel.AS_ROLE). Raises
        as `caller`, and InvalidArgumentError for a role that there is not."""
        caller = self.caller(authorization, connection)
        if as_role is None:
            return caller
        try:
            return caller.lowered(role_named(as_role))
        except ValueError as error:
            raise errors.invalid_argument(f"{AS_ROLE}: {error}") from None

    def caller(self, authorization: str | None, connection: Caller) -> Caller:
        """The same with names. Raises UnknownTokenError, ExpiredTokenError."""
        if not authorization or self.open_to_all:
            return connection
        text = bearer(authorization)
        token = None if text is None else self._tokens().find(text) or self._own().find(text)
        if token is None:
            if connection.role is not Role.NONE and not self.has_tokens:
                return connection  # nothing to compare it with: the caller's own user is enough
            raise UnknownTokenError(None, None, f"{self._where} does not know the token that this call shows.")
        if token.expires is not None and token.expires <= self._wall():
            name = f" {token.name!r}" if token.name else ""
            raise ExpiredTokenError(None, None, f"the token{name} that this call shows to {self._where} has expired.")
        if connection.role > token.role:
            return connection
        return Caller(token.role, f"token {token.name}" if token.name else _NAMELESS, token.digest)

    def refusal(self, role: Role, needed: Role, what: str) -> errors.OpError | None:
        """Why somebody with `role` may not do `what`, which needs the role `needed`; None: it may."""
        if role >= needed:
            return None
        if role is Role.NONE:
            return errors.UnauthenticatedError(
                None,
                None,
                f"{what} is refused by {self._where}: the call shows no token. Set TENFOLD_TOKEN or TENFOLD_TOKEN_FILE "
                "where it comes from. Without one only the same user of the same machine is accepted, over a loopback "
                "address.",
            )
        return errors.permission_denied(
            f"{what} is refused by {self._where}: it needs the role {needed.word}, and this caller has {role.word}."
        )


def bearer(authorization: str) -> str | None:
    """The token of an Authorization header: Bearer, or Basic with the token as the password, as browsers send it."""
    scheme, _, given = authorization.strip().partition(" ")
    if scheme.lower() == "bearer":
        return given.strip()
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(given.strip(), validate=True).decode("utf-8").partition(":")[2]
    except (binascii.Error, ValueError):
        return None
