"""What test_who_is_let_in.py does with tokens over gRPC, for the other ways into a task: each method by each kind of
certificate, and links: each kind of the token that opens one, over each kind of socket, and each call by each role.

Methods and calls are those that a running task has, so that a new one cannot be left out.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from support.certs import access
from tenfold_core import errors
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.access.gate import Gate
from tenfold_core.access.roles import Role
from tenfold_link.aio import listener as listener_module
from tenfold_link.aio.dial import connect
from tenfold_link.link_settings import LinkSettings
from tenfold_link.wire import handshake
from tenfold_link.wire.calls import LinkCall
from tenfold_services import server as server_module
from tenfold_services.server import TaskServer
from tenfold_services.task_port import endpoints

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tenfold_link.aio.listener import LinkListener
    from tenfold_protos import link_pb2

CODES = grpc.StatusCode
REFUSED = (CODES.UNAUTHENTICATED, CODES.PERMISSION_DENIED)
HOUR = timedelta(hours=1)


# -- certificates over gRPC ------------------------------------------------------------------------------------------


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[TaskServer]:
    """A task with a certificate and a token, that takes every connection for another user's."""
    monkeypatch.setattr(server_module, "Gate", partial(Gate, find_user=lambda *_: os.geteuid() + 1))
    ours = access(tmp_path / "ours", token="tenfold-the-token")
    async with TaskServer({"ps": [""]}, "ps", 0, access=ours) as started:
        yield started


def certificate(kind: str, folder: Path) -> AccessSettings:
    """Of a client that trusts the task's authority."""
    ours, theirs = folder / "ours", folder / "theirs"
    ca = {"tls_ca": str(ours / "ca.pem")}
    if kind == "none":
        return AccessSettings(**ca)
    if kind == "expired":
        return access(ours, "old", Role.ADMIN, lasts=-HOUR / 60)
    if kind == "not good yet":
        return access(ours, "new", Role.ADMIN, begins=HOUR)
    if kind == "another cluster's":
        return replace(access(theirs, "theirs", Role.ADMIN), **ca)
    if kind == "of no role":
        return access(ours, "nobody", Role.NONE)
    return access(ours, kind.replace(":", "-"), next(role for role in Role if role.word == kind))


def content(path: str | None) -> bytes | None:
    return None if path is None else Path(path).read_bytes()


async def outcomes(server: TaskServer, settings: AccessSettings, token: str | None = None) -> dict[str, Any]:
    """Path → how an empty request of it ends."""
    assert server._port is not None
    shown = grpc.ssl_channel_credentials(*map(content, (settings.tls_ca, settings.tls_key, settings.tls_cert)))
    metadata = None if token is None else (("authorization", f"Bearer {token}"),)
    found: dict[str, Any] = {}
    async with grpc.aio.secure_channel(f"localhost:{server.port}", shown) as channel:
        for path in needs(server):
            try:
                await channel.unary_unary(path)(b"", timeout=30, metadata=metadata)
                found[path] = CODES.OK
            except grpc.aio.AioRpcError as error:
                found[path] = error.code()
    return found


def needs(server: TaskServer) -> dict[str, Role]:
    """Path → the least role for it, of all methods that the task serves."""
    assert server._port is not None
    return {path: each.needs for service in server._port.services for path, each in service.handlers.items()}


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("none", CODES.UNAUTHENTICATED),
        ("of no role", CODES.UNAUTHENTICATED),
        ("expired", CODES.UNAVAILABLE),
        ("not good yet", CODES.UNAVAILABLE),
        ("another cluster's", CODES.UNAVAILABLE),
    ],
)
async def test_no_method_is_open_to_a_certificate_that_is_not_good(
    server: TaskServer, tmp_path: Path, kind: str, code: Any
) -> None:
    assert await outcomes(server, certificate(kind, tmp_path)) == dict.fromkeys(needs(server), code)


@pytest.mark.parametrize("kind", ["expired", "not good yet", "another cluster's"])
async def test_a_good_token_does_not_mend_it(server: TaskServer, tmp_path: Path, kind: str) -> None:
    found = await outcomes(server, certificate(kind, tmp_path), "tenfold-the-token")

    assert found == dict.fromkeys(needs(server), CODES.UNAVAILABLE)


@pytest.mark.parametrize("token", ["tenfold-wrong", "tenfold-the-token"])
async def test_a_token_beside_a_certificate(server: TaskServer, tmp_path: Path, token: str) -> None:
    """The better of the two counts, but a wrong token is refused whoever shows it."""
    found = await outcomes(server, certificate("read", tmp_path), token)

    if token == "tenfold-wrong":
        assert found == dict.fromkeys(needs(server), CODES.UNAUTHENTICATED)
    else:
        assert not [path for path, code in found.items() if code in REFUSED]


@pytest.mark.parametrize("role", [role for role in Role if role])
async def test_a_good_certificate_opens_what_its_role_may_do(server: TaskServer, tmp_path: Path, role: Role) -> None:
    found = await outcomes(server, certificate(role.word, tmp_path))

    refused = {path for path, code in found.items() if code is CODES.PERMISSION_DENIED}
    too_small = {path for path, least in needs(server).items() if role < least}
    if role is Role.RUN_UNTRUSTED:
        # the session that an empty request names is not one of its own
        assert refused - too_small <= {path for path, least in needs(server).items() if least is role}
    assert refused >= too_small if role is Role.RUN_UNTRUSTED else refused == too_small
    assert CODES.UNAUTHENTICATED not in found.values()


# -- links -----------------------------------------------------------------------------------------------------------

#: A quick test has one way of each kind.
WAYS = {
    "unix": LinkSettings(shared_memory=False),
    "unix with shared memory": LinkSettings(shared_memory=True),
    "tcp": LinkSettings(mode="tcp"),
    "tcp with TLS": LinkSettings(mode="tcp"),
}
SOME_WAYS = [way if way in ("unix", "tcp with TLS") else pytest.param(way, marks=pytest.mark.thorough) for way in WAYS]


def links_of(server: TaskServer) -> LinkListener:
    assert server._port is not None
    assert server._port.links is not None
    return server._port.links


def asked(server: TaskServer, way: str, role: Role = Role.ADMIN) -> link_pb2.OpenLinkResponse:
    """What the task answers to an OpenLink that gRPC has accepted."""
    return links_of(server).open_link(handshake.ask(WAYS[way], tls=way == "tcp with TLS"), role)


async def link_to(server: TaskServer, answer: link_pb2.OpenLinkResponse, way: str, mine: AccessSettings) -> Any:
    """A link as `answer` offers it."""
    settings = replace(WAYS[way], hello_seconds=30)
    return await connect(answer, f"localhost:{server.port}", settings=settings, credentials=mine.credentials())


@pytest.mark.parametrize("way", SOME_WAYS)
@pytest.mark.parametrize("kind", ["none", "a wrong one", "an expired one", "another task's", "replayed", "good"])
async def test_a_link_needs_a_token_that_is_good(
    server: TaskServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, kind: str
) -> None:
    mine = certificate("register", tmp_path)
    opened = []
    if kind == "an expired one":
        listener = links_of(server)
        monkeypatch.setattr(listener, "_settings", replace(listener._settings, token_seconds=-1.0))
    answer = asked(server, way)
    if kind == "none":
        answer.token = b""
    elif kind == "a wrong one":
        answer.token = secrets.token_bytes(32)
    elif kind == "another task's":
        async with TaskServer({"ps": [""]}, "ps", 0, access=AccessSettings()) as other:
            answer.token = asked(other, "unix").token
    elif kind == "replayed":
        opened.append(await link_to(server, answer, way, mine))

    if kind == "good":
        opened.append(await link_to(server, answer, way, mine))
        assert opened[0].path == {"unix with shared memory": "unix+shm"}.get(way, way[:4].strip())
    else:
        with pytest.raises(errors.UnavailableError, match="a token that is not good"):
            await link_to(server, answer, way, mine)
    assert len(links_of(server).links) == len(opened)
    for link in opened:
        await link.close()


@pytest.mark.parametrize(
    ("kind", "opens"), [("expired", False), ("not good yet", False), ("another cluster's", False), ("register", True)]
)
async def test_a_link_over_tls_needs_a_certificate_that_is_good(
    server: TaskServer, tmp_path: Path, kind: str, opens: bool
) -> None:
    answer = asked(server, "tcp with TLS")
    if opens:
        await (await link_to(server, answer, "tcp with TLS", certificate(kind, tmp_path))).close()
    else:
        with pytest.raises(errors.UnavailableError, match="No link to"):
            await link_to(server, answer, "tcp with TLS", certificate(kind, tmp_path))
        assert not links_of(server).links


async def test_beyond_this_machine_no_link_is_in_the_clear(
    server: TaskServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "is_loopback", lambda host: False)
    mine = certificate("register", tmp_path)

    with pytest.raises(errors.UnavailableError, match="no TLS, which is asked for here"):
        await link_to(server, asked(server, "tcp"), "tcp", mine)
    await (await link_to(server, asked(server, "tcp with TLS"), "tcp with TLS", mine)).close()


@pytest.mark.parametrize("way", SOME_WAYS)
@pytest.mark.parametrize("role", [role for role in Role if role >= Role.RUN_UNTRUSTED])
async def test_each_call_over_a_link_by_each_role_that_may_open_one(
    server: TaskServer, tmp_path: Path, way: str, role: Role
) -> None:
    """Below those gRPC refuses OpenLink itself, which test_who_is_let_in.py has."""
    found: dict[int, bool] = {}
    for number in LinkCall:
        link = await link_to(server, asked(server, way, role), way, certificate("register", tmp_path))
        try:
            async with asyncio.timeout(30):
                await link.call(number)
            refused = False
        except errors.PermissionDeniedError:
            refused = True
        except errors.OpError:
            refused = False  # an empty call is none, and may end the link
        found[number] = refused
        await link.close()

    methods = endpoints(server.master, server.worker)(link)
    assert set(methods) == set(LinkCall)
    assert found == {number: role < method.needs for number, method in methods.items()}
