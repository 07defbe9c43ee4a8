"""Who is accepted by the control service, and as what: by token, by certificate, or as the same user of this machine.

The decision is the Gate's of tenfold_core.access, the same as at a task; here is what HTTP adds. Where there are
tokens, every request shows one, its own user's among them: any web page that the user opens has that user's
connections. Asked by middleware.py for each request; http1.py makes a `Connection` for each connection, at its start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_control_api.asgi import logged_path
from tenfold_control_api.problems import ApiError
from tenfold_core import errors
from tenfold_core.access.gate import NOBODY, Caller, ExpiredTokenError, Gate, UnknownTokenError
from tenfold_core.access.peer_user import unmapped
from tenfold_core.access.roles import Role
from tenfold_core.access.tls import name_of, role_of
from tenfold_core.loopback import is_loopback

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable

    from starlette.types import Scope

    from tenfold_control_api.service_tokens import ServiceTokens

#: The scope's member with the request's Connection; a request without one did not come over a socket.
CONNECTION = "tenfold.connection"
#: The scope's member with the Caller, once it was accepted.
CALLER = "tenfold.caller"
_ITSELF = Caller(Role.ADMIN, "this process")
_ASKS = {"WWW-Authenticate": 'Bearer realm="tenfold", Basic realm="tenfold"'}


class Connection:
    """The other end of a connection. Which user it is, the system is asked once, at the start: later the peer may be
    gone, and its port somebody else's. It takes some 200 µs."""

    def __init__(
        self, transport: asyncio.Transport, ask: Callable[[socket.socket], Caller], recognize: Callable[[], None]
    ) -> None:
        """`ask` is Entry.neighbour; `recognize()` is called once a request was accepted."""
        self._transport, self._recognize = transport, recognize
        self._certified: Caller | None = None
        self._not_asked = ""
        self._user = NOBODY
        try:
            self._user = ask(transport.get_extra_info("socket"))
        except errors.ResourceExhaustedError as error:
            self._not_asked = error.message

        host = unmapped(str((transport.get_extra_info("peername") or ("",))[0]))
        #: Those whose connections are counted together: of a user of this machine, or of an address.
        self.group = self._user.name if is_loopback(host) else host

    @property
    def is_own(self) -> bool:
        """Whether it is the same user's, or root's."""
        return self._user.role is not Role.NONE

    def let_in(self) -> None:
        """A request over it was accepted: it is no stranger's."""
        self._recognize()

    def user(self) -> Caller:
        """What it may do as a user of this machine. Raises ApiError where there was no file to ask the system with."""
        if self._not_asked:
            raise ApiError("too-many-connections", self._not_asked)
        return self._user

    def certified(self) -> Caller:
        """What its certificate lets it do."""
        if self._certified is None:
            tls = self._transport.get_extra_info("ssl_object")
            shown = None if tls is None else tls.getpeercert()
            self._certified = Caller(role_of(shown), f"certificate {name_of(shown)}") if shown else NOBODY
        return self._certified


class Entry:
    """Decides for each request. One event loop."""

    def __init__(self, tokens: ServiceTokens, *, open_to_all: bool, guarded: bool) -> None:
        """`guarded`: there are tokens or certificates, and so no page of a browser gets in by itself."""
        self._gate = Gate("this control service", tokens.current, open_to_all=open_to_all)
        self.open_to_all, self.guarded = open_to_all, guarded
        #: Who is at the other end of a socket that has just been accepted.
        self.neighbour = self._gate.accepted

    def caller(self, scope: Scope, authorization: str | None) -> Caller:
        """Who sends this request. Raises ApiError for a token that is not good."""
        connection = scope.get(CONNECTION)
        known = NOBODY if connection is None else connection.certified()
        if known.role is not Role.ADMIN and not self._gate.has_tokens:
            known = max(known, _ITSELF if connection is None else connection.user())
        try:
            return self._gate.caller(authorization, known)
        except ExpiredTokenError as error:
            raise ApiError("token-expired", error.message, headers=_ASKS) from None
        except UnknownTokenError as error:
            raise ApiError("token-unknown", error.message, headers=_ASKS) from None

    def refusal(self, caller: Caller, needed: Role, what: str) -> ApiError | None:
        """Why this caller may not do `what`, "POST /v1/runs"; None: it may."""
        if caller.role >= needed:
            return None
        if caller.role is not Role.NONE:
            return ApiError(
                "role-too-small", f"{what} needs the role {needed.word}; {caller.name} has {caller.role.word}."
            )
        if self.guarded:
            text = (
                "this control service asks for a token and the request carries none. Send `Authorization: Bearer "
                "<token>`."
            )
            return ApiError("token-needed", text, headers=_ASKS)
        return ApiError(
            "another-user",
            "this control service has no token, so it accepts the user who runs it, on this machine; this is "
            f"{caller.name}. Start it with TENFOLD_TOKEN or TENFOLD_TOKEN_FILE, and send the token as bearer token.",
            headers=_ASKS,
        )


def lesser_role(scope: Scope) -> Role | None:
    """The role that a master is to be asked with for this request; None: with this service's own."""
    caller = scope.get(CALLER)
    return None if caller is None or caller.role >= Role.RUN else caller.role


def caller_of(scope: Scope) -> Caller:
    """Who sends a request that needs a role."""
    caller: Caller = scope.get(CALLER, NOBODY)
    return caller


def owned_by(scope: Scope) -> str | None:
    """Whose objects the caller may see and change, beside what is everybody's; None: those of all, as an admin."""
    caller = caller_of(scope)
    return None if caller.role is Role.ADMIN else caller.principal


def require_owner(scope: Scope, owner: str | None, what: str) -> None:
    """Raises PERMISSION_DENIED unless `what` ("session x") is the caller's, or the caller an admin. What nobody is
    known to own is the admins'."""
    mine = owned_by(scope)
    if mine is not None and mine != owner:
        raise ApiError(
            "owned-by-another",
            f"{what} was made by another caller than {caller_of(scope).name}: that one may use it, and the role "
            f"{Role.ADMIN.word}.",
        )


def registrar(scope: Scope) -> str:
    """Who registers a task: a token by its digest, anybody else by name."""
    caller = caller_of(scope)
    return caller.digest.hex() or caller.principal


def text_of(scope: Scope) -> dict[str, Any]:
    """The request as it stands in the audit log."""
    client: Any = scope.get("client") or ("unknown",)
    return {"address": client[0], "method": scope["method"], "path": logged_path(scope)}
