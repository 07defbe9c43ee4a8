from __future__ import annotations

import base64
import os
import socket
from typing import Any

import pytest

from tenfold_core import errors
from tenfold_core.access import gate as gates
from tenfold_core.access.gate import Gate, bearer
from tenfold_core.access.roles import Role
from tenfold_core.access.tokens import TokenSet, digest_of, parse_line

PEER, OWN = ("127.0.0.1", 40000), ("127.0.0.1", 2222)
GOOD, READER, OLD = "tenfold-good-token", "tenfold-reader-token", "tenfold-old-token"
LINES = (GOOD, f"{READER} role=read", f"{OLD} name=ci expires=2026-01-01T00:00:00Z")
TOKENS = TokenSet(map(parse_line, LINES))
NOW = 1_790_000_000.0


def gate(user: int | None = None, tokens: TokenSet = TOKENS, **more: Any) -> Gate:
    """A gate to which the system tells that every peer is `user`'s."""
    return Gate("/job:ps/task:0", lambda: tokens, find_user=lambda *_: user, wall_clock=lambda: NOW, **more)


@pytest.mark.parametrize("user", [os.geteuid(), 0])
def test_the_same_user_and_root_are_let_in_over_loopback(user: int) -> None:
    assert gate(user).of_connection(PEER, OWN, socket.AF_INET) is Role.ADMIN


@pytest.mark.parametrize("user", [os.geteuid() + 1, None])
def test_others_and_those_whom_nobody_knows_are_not(user: int | None) -> None:
    assert gate(user).of_connection(PEER, OWN, socket.AF_INET) is Role.NONE


@pytest.mark.parametrize("peer", [("10.0.0.7", 40000), ("fe80::1%eth0", 40000, 0, 2), None, ""])
def test_beyond_loopback_no_user_is_asked_for(peer: Any) -> None:
    assert gate(os.geteuid()).of_connection(peer, OWN, socket.AF_INET) is Role.NONE


def test_ipv4_over_an_ipv6_socket_is_loopback() -> None:
    peer, own = ("::ffff:127.0.0.1", 40000, 0, 0), ("::ffff:127.0.0.1", 2222, 0, 0)

    assert gate(os.geteuid()).of_connection(peer, own, socket.AF_INET6) is Role.ADMIN


def test_where_the_system_tells_no_users_loopback_is_let_in_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(gates, "CAN_TELL", False)
    asked = gate(None)

    assert [asked.of_connection(PEER, OWN, socket.AF_INET) for _ in range(2)] == [Role.ADMIN, Role.ADMIN]
    assert asked.of_connection(("10.0.0.7", 1), OWN, socket.AF_INET) is Role.NONE
    assert len(caplog.records) == 1


def test_an_open_gate_lets_everybody_in() -> None:
    wide = gate(None, open_to_all=True)

    assert wide.of_connection(("10.0.0.7", 1), OWN, socket.AF_INET) is Role.ADMIN
    assert wide.of_call("Bearer wrong", Role.ADMIN) is Role.ADMIN


@pytest.mark.parametrize(
    ("shown", "connection", "role"),
    [
        (None, Role.NONE, Role.NONE),
        (None, Role.ADMIN, Role.ADMIN),
        (f"Bearer {GOOD}", Role.NONE, Role.ADMIN),
        (f"bearer  {READER} ", Role.NONE, Role.READ),
        (f"Bearer {READER}", Role.ADMIN, Role.ADMIN),
        ("Basic " + base64.b64encode(f"me:{GOOD}".encode()).decode(), Role.NONE, Role.ADMIN),
    ],
)
def test_a_token_gives_its_role_and_never_takes_one_away(shown: str | None, connection: Role, role: Role) -> None:
    assert gate().of_call(shown, connection) is role


@pytest.mark.parametrize("shown", ["Bearer wrong", "Bearer", "Basic %%%", "Digest x", f"Bearer {GOOD}x"])
@pytest.mark.parametrize("connection", [Role.NONE, Role.ADMIN])
def test_a_wrong_token_is_refused_whoever_shows_it(shown: str, connection: Role) -> None:
    with pytest.raises(errors.UnauthenticatedError, match="/job:ps/task:0 does not know the token"):
        gate().of_call(shown, connection)


def test_an_expired_token_says_so() -> None:
    with pytest.raises(errors.UnauthenticatedError, match=r"the token 'ci' that this call shows .* has expired"):
        gate().of_call(f"Bearer {OLD}", Role.NONE)


def test_a_gate_without_tokens_does_not_mind_one_that_is_for_somebody_else() -> None:
    assert gate(tokens=TokenSet()).of_call("Bearer of-the-control-service", Role.ADMIN) is Role.ADMIN
    with pytest.raises(errors.UnauthenticatedError):
        gate(tokens=TokenSet()).of_call("Bearer of-the-control-service", Role.NONE)


def test_a_refusal_says_what_was_wanted_and_what_would_do() -> None:
    nobody = gate().refusal(Role.NONE, Role.RUN, "RunStep")
    reader = gate().refusal(Role.READ, Role.RUN, "RunStep")

    assert isinstance(nobody, errors.UnauthenticatedError)
    assert "RunStep is refused by /job:ps/task:0: the call shows no token. Set TENFOLD_TOKEN" in nobody.message
    assert isinstance(reader, errors.PermissionDeniedError)
    assert "it needs the role run, and this caller has read" in reader.message
    assert gate().refusal(Role.RUN, Role.RUN, "RunStep") is None


def test_no_text_of_a_token_is_kept() -> None:
    assert TOKENS.find(GOOD) is not None
    assert all(GOOD not in repr(each) for each in (TOKENS.find(GOOD), digest_of(GOOD)))


@pytest.mark.parametrize(("text", "token"), [("Bearer a b", "a b"), ("Negotiate x", None), ("", None)])
def test_what_a_header_holds(text: str, token: str | None) -> None:
    assert bearer(text) == token


def test_a_token_expires_at_its_moment() -> None:
    tokens = TokenSet([parse_line(f"{OLD} role=read expires=2026-09-21T14:13:20Z")])
    for now, good in ((NOW - 0.5, True), (NOW, False)):
        asked = Gate("here", lambda: tokens, wall_clock=lambda now=now: now)  # type: ignore[misc]
        if good:
            assert asked.of_call(f"Bearer {OLD}", Role.NONE) is Role.READ
        else:
            with pytest.raises(gates.ExpiredTokenError, match=r"^the token that this call shows to here has expired"):
                asked.of_call(f"Bearer {OLD}", Role.NONE)


def test_a_caller_has_the_name_and_digest_of_its_token() -> None:
    reader = gate().caller(f"Bearer {READER}", gates.NOBODY)
    assert reader == gates.Caller(Role.READ, "token without a name", digest_of(READER))
    assert reader.principal == f"token {digest_of(READER).hex()[:32]}"
    named = TokenSet([parse_line(f"{GOOD} name=ci role=run")])
    caller = gate(tokens=named).caller(f"Bearer {GOOD}", gates.NOBODY)
    assert (caller.role, caller.name, caller.principal) == (Role.RUN, "token ci", "token ci")
    known = gates.Caller(Role.RUN, "user 7")
    assert gate(tokens=named).caller(f"Bearer {GOOD}", known) == caller
    assert gate(tokens=named).caller(f"Bearer {GOOD}", known._replace(role=Role.REGISTER)).name == "user 7"


def test_a_token_of_this_place_alone_is_good_here() -> None:
    own = TokenSet([parse_line(f"{READER} role=read")])
    here = Gate("here", TokenSet, own=lambda: own)
    assert here.of_call(f"Bearer {READER}", Role.NONE) is Role.READ
    assert not here.has_tokens
    assert gate().has_tokens


def test_a_caller_may_ask_for_somebody_who_may_less() -> None:
    caller = gates.Caller(Role.RUN, "ann", b"d")
    assert caller.lowered(Role.READ) == gates.Caller(Role.READ, "ann", b"d", Role.RUN)
    assert caller.lowered(Role.ADMIN) == gates.Caller(Role.RUN, "ann", b"d", Role.RUN)
    assert caller.lowered(Role.READ).lowered(Role.ADMIN) == gates.Caller(Role.READ, "ann", b"d", Role.RUN)


def test_a_neighbour_is_named_by_its_user() -> None:
    assert gate(os.geteuid() + 1).neighbour(PEER, OWN, socket.AF_INET) == gates.Caller(
        Role.NONE, f"user {os.geteuid() + 1}"
    )
    assert gate(0).neighbour(PEER, OWN, socket.AF_INET) == gates.Caller(Role.ADMIN, "user 0")


def test_where_the_system_cannot_be_asked_the_call_is_refused() -> None:
    def broken(*_: Any) -> int:
        raise OSError(24, "Too many open files")

    asked = Gate("here", find_user=broken)
    with pytest.raises(errors.ResourceExhaustedError, match="here cannot ask which user calls"):
        asked.neighbour(PEER, OWN, socket.AF_INET)


class Accepted:
    """A socket of a connection over loopback."""

    family = socket.AF_INET

    def __init__(self, error: OSError | None = None) -> None:
        self.error = error

    def getpeername(self) -> Any:
        if self.error is not None:
            raise self.error
        return PEER

    def getsockname(self) -> Any:
        return OWN


def test_a_connection_that_is_gone_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    connected = True
    monkeypatch.setattr(gates, "is_connected", lambda _: connected)
    sock: Any = Accepted()
    me = os.geteuid()
    assert gate(me).accepted(sock).name == f"user {me}"
    connected = False
    assert gate(me).accepted(sock) is gates.NOBODY
    assert gate(me + 1).accepted(sock).name == f"user {me + 1}"
    assert gate(None, open_to_all=True).accepted(sock) is gates.EVERYBODY
    gone: Any = Accepted(OSError("not connected"))
    assert gate(me).accepted(gone) is gates.NOBODY
    assert gate(me, open_to_all=True).accepted(gone) is gates.EVERYBODY
