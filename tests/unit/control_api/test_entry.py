"""Who sends a request, and whether it may: by token, by certificate, by the user at the other end."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from tenfold_control_api.entry import (
    CALLER,
    CONNECTION,
    Connection,
    Entry,
    caller_of,
    lesser_role,
    owned_by,
    registrar,
    require_owner,
    text_of,
)
from tenfold_control_api.problems import ApiError
from tenfold_core import errors
from tenfold_core.access.gate import EVERYBODY, NOBODY, Caller
from tenfold_core.access.roles import Role
from tenfold_core.access.tokens import Token, TokenSet, digest_of

GOOD, OLD = "tenfold-good-token", "tenfold-old-token"
USER, STRANGER = Caller(Role.ADMIN, "user 7"), Caller(Role.NONE, "user 8")
ASKS = {"WWW-Authenticate": 'Bearer realm="tenfold", Basic realm="tenfold"'}


def tokens(*lines: Token) -> Any:
    found = TokenSet((text, token) for text, token in zip((GOOD, OLD), lines, strict=False))
    return SimpleNamespace(current=lambda: found)


def guarded(role: Role = Role.READ) -> Entry:
    return Entry(
        tokens(Token(digest_of(GOOD), role, "ci"), Token(digest_of(OLD), Role.ADMIN, "old", 1.0)),
        open_to_all=False,
        guarded=True,
    )


def unguarded(*, open_to_all: bool = False) -> Entry:
    return Entry(tokens(), open_to_all=open_to_all, guarded=False)


def peer(host: Any = "127.0.0.1", certificate: Any = None) -> Any:
    tls = None if certificate is None else SimpleNamespace(getpeercert=lambda: certificate)
    known = {"socket": "the socket", "peername": None if host is None else (host, 1), "ssl_object": tls}
    return SimpleNamespace(get_extra_info=known.get)


def connection(user: Caller = USER, **given: Any) -> Connection:
    return Connection(peer(**given), lambda _: user, lambda: None)


def certificate(role: str) -> dict[str, Any]:
    return {"subject": ((("commonName", "ann"),), (("organizationalUnitName", role),))}


def refused(call: Any, *given: Any) -> ApiError:
    with pytest.raises(ApiError) as raised:
        call(*given)
    return raised.value


def test_a_connections_user_is_asked_for_once_and_it_is_recognized_when_let_in() -> None:
    asked: list[Any] = []
    recognized: list[bool] = []

    def ask(sock: Any) -> Caller:
        asked.append(sock)
        return USER

    made = Connection(peer(), ask, lambda: recognized.append(True))

    assert (made.user(), made.user(), made.is_own, recognized) == (USER, USER, True, [])
    assert asked == ["the socket"]
    made.let_in()
    assert recognized == [True]
    assert not connection(STRANGER).is_own


@pytest.mark.parametrize(
    ("host", "group"),
    [("127.0.0.1", "user 7"), ("::ffff:127.0.0.1", "user 7"), ("::1", "user 7"), ("10.0.0.1", "10.0.0.1"), (None, "")],
)
def test_connections_are_counted_by_user_on_this_machine_and_by_address_beyond(host: Any, group: str) -> None:
    assert connection(host=host).group == group


def test_where_no_file_was_free_to_ask_the_request_is_refused() -> None:
    def ask(_: Any) -> Caller:
        raise errors.ResourceExhaustedError(None, None, "no file is free")

    made = Connection(peer(), ask, lambda: None)

    assert not made.is_own
    error = refused(made.user)
    assert (error.kind, error.detail) == ("too-many-connections", "no file is free")


def test_a_certificate_gives_its_role_and_is_read_once() -> None:
    made = connection(certificate=certificate("run"))
    found = made.certified()
    assert (found.role, found.name) == (Role.RUN, "certificate ann")
    assert made.certified() is found
    assert connection().certified() is NOBODY
    assert connection(certificate={}).certified() is NOBODY


def test_without_tokens_it_is_the_user_at_the_other_end_or_this_process() -> None:
    entry = unguarded()
    assert entry.caller({}, None) == Caller(Role.ADMIN, "this process")
    assert entry.caller({CONNECTION: connection(USER)}, None) == USER
    assert entry.caller({CONNECTION: connection(STRANGER)}, None) == STRANGER
    found = entry.caller({CONNECTION: connection(STRANGER, certificate=certificate("run"))}, None)
    assert found.name == "certificate ann"
    admin = entry.caller({CONNECTION: connection(USER, certificate=certificate("admin"))}, None)
    assert admin.name == "certificate ann"


def test_with_tokens_the_user_does_not_count_but_a_certificate_does() -> None:
    entry = guarded()
    assert entry.caller({}, None) is NOBODY
    assert entry.caller({CONNECTION: connection(USER)}, None) is NOBODY
    assert entry.caller({CONNECTION: connection(certificate=certificate("run"))}, None).role is Role.RUN


def test_a_token_gives_its_role_and_a_bad_one_is_refused() -> None:
    entry = guarded()
    assert entry.caller({}, f"Bearer {GOOD}") == Caller(Role.READ, "token ci", digest_of(GOOD))
    for shown, kind, words in (
        (f"Bearer {OLD}", "token-expired", "the token 'old' that this call shows to this control service has expired"),
        ("Bearer wrong", "token-unknown", "this control service does not know the token"),
    ):
        error = refused(entry.caller, {}, shown)
        assert (error.kind, error.headers) == (kind, ASKS)
        assert error.detail.startswith(words)


def test_an_open_service_lets_everybody_in() -> None:
    entry = unguarded(open_to_all=True)
    assert entry.open_to_all
    assert not entry.guarded
    assert not unguarded().open_to_all
    left, right = socket.socketpair()
    with left, right:
        assert entry.neighbour(left) is EVERYBODY
        assert unguarded().neighbour(left) is NOBODY


def test_a_refusal_says_what_is_missing() -> None:
    assert guarded().refusal(Caller(Role.RUN, "ann"), Role.RUN, "GET /x") is None
    small = guarded().refusal(Caller(Role.READ, "ann"), Role.RUN, "POST /v1/runs")
    assert small is not None
    assert (small.kind, small.detail) == ("role-too-small", "POST /v1/runs needs the role run; ann has read.")
    none = guarded().refusal(NOBODY, Role.READ, "GET /x")
    assert none is not None
    assert (none.kind, none.headers) == ("token-needed", ASKS)
    assert none.detail == (
        "this control service asks for a token and the request carries none. Send `Authorization: Bearer <token>`."
    )
    other = unguarded().refusal(STRANGER, Role.READ, "GET /x")
    assert other is not None
    assert (other.kind, other.headers) == ("another-user", ASKS)
    assert "this is user 8. Start it with TENFOLD_TOKEN" in other.detail


@pytest.mark.parametrize(
    ("role", "lesser"), [(Role.RUN_UNTRUSTED, Role.RUN_UNTRUSTED), (Role.READ, Role.READ), (Role.RUN, None)]
)
def test_a_master_is_asked_with_a_role_less_than_run(role: Role, lesser: Role | None) -> None:
    assert lesser_role({CALLER: Caller(role, "ann")}) is lesser


def test_a_request_without_a_caller_is_this_services_own_business() -> None:
    assert lesser_role({}) is None
    assert caller_of({}) is NOBODY


def test_an_owner_and_an_admin_may_use_what_is_made() -> None:
    ann = {CALLER: Caller(Role.RUN, "ann")}
    admin = {CALLER: Caller(Role.ADMIN, "root")}
    assert (owned_by(ann), owned_by(admin)) == ("ann", None)
    require_owner(ann, "ann", "session x")
    require_owner(admin, "ann", "session x")
    require_owner(admin, None, "session x")
    for owner in ("bob", None):
        error = refused(require_owner, ann, owner, "session x")
        assert (error.kind, error.detail) == (
            "owned-by-another",
            "session x was made by another caller than ann: that one may use it, and the role admin.",
        )


def test_a_registrar_is_a_tokens_digest_or_a_name() -> None:
    assert registrar({CALLER: Caller(Role.REGISTER, "token ci", b"\x01\xff")}) == "01ff"
    assert registrar({CALLER: Caller(Role.REGISTER, "ann")}) == "ann"


def test_the_audit_log_has_the_request_without_a_whole_lease() -> None:
    asked: Any = {"method": "POST", "path": "/v1/leases/0123456789:renew", "client": ("10.0.0.1", 5)}
    assert text_of(asked) == {"address": "10.0.0.1", "method": "POST", "path": "/v1/leases/012345…:renew"}
    assert text_of({**asked, "client": None})["address"] == "unknown"
