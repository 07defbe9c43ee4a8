"""Another user calls from a port at which the owner listens, or that the owner's own connection has next, and is gone.

    stranger   binds 127.0.0.1:P, does not listen        owner    listens at P, or connects from P later
    stranger   connects from P, sends a request, resets  owner    accepts, and asks the system: whose is P?

The system answers for whoever has the port when it is asked. A real other user does it here, against every port that
takes the owner for the owner; the loop of the server stands still meanwhile, so that the connection is always gone
when it is accepted. tests/control/test_borrowed_ports.py has the control service.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from support.certs import access
from support.stranger import a_stranger, needs_another_user
from tenfold_core.access import audit
from tenfold_core.access import peer_user as module
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.access.gate import Gate
from tenfold_core.access.peer_user import is_connected, peer_user
from tenfold_core.access.roles import Role
from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.hpack import encode
from tenfold_services.server import TaskServer
from tenfold_services.tunnel.tunnel import Tunnel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.stranger import Stranger

pytestmark = [
    needs_another_user,
    pytest.mark.skipif(not module.CAN_TELL, reason="only Linux tells whose a connection is"),
]

CREATE_SESSION = (
    frames.PREFACE
    + frames.settings({})
    + frames.header_block(
        1,
        encode(
            [
                (b":method", b"POST"),
                (b":scheme", b"http"),
                (b":path", b"/tensorflow.MasterService/CreateSession"),
                (b":authority", b"localhost"),
                (b"content-type", b"application/grpc"),
                (b"te", b"trailers"),
            ]
        ),
        0,
        frames.DEFAULT_FRAME,
    )
    + frames.header(5, frames.DATA, frames.END_STREAM, 1)
    + bytes(5)
)


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    with a_stranger() as started:
        yield started


@pytest.fixture(params=["netlink", "proc"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the system is asked."""
    if request.param == "proc":

        def refused(*_: object) -> int | None:
            raise OSError("no sock_diag here")

        monkeypatch.setattr(module, "_by_netlink", refused)
    return str(request.param)


def listen(host: str, port: int) -> socket.socket:
    """As servers do: where others have the port, and do not listen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if host == "::":
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind((host, port))
    sock.listen()
    return sock


@pytest.mark.usefixtures("by")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "127.0.0.1 at ::"])
def test_a_listener_at_the_peers_port_is_not_the_peer(stranger: Stranger, host: str) -> None:
    dialled, _, bound = host.partition(" at ")
    family = socket.AF_INET6 if ":" in dialled else socket.AF_INET
    port = stranger.ask("bind", dialled, family)
    with listen(bound or dialled, 0) as server, listen(dialled, port):
        stranger.ask("send_and_reset", [dialled, server.getsockname()[1]], b"a request".hex(), port)
        accepted, peer = server.accept()
        with accepted:
            assert accepted.recv(100) == b"a request", "what was sent comes in, though nobody is there any more"
            assert peer_user(peer, accepted.getsockname(), accepted.family) is None
            assert Gate("here").accepted(accepted).role is Role.NONE


@pytest.mark.usefixtures("by")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "127.0.0.1 at ::"])
def test_the_next_connection_with_the_same_numbers_is_not_this_one(stranger: Stranger, host: str) -> None:
    dialled, _, bound = host.partition(" at ")
    family = socket.AF_INET6 if ":" in dialled else socket.AF_INET
    # both take the port before either connects: no other process can come in between
    port = stranger.ask("bind", dialled, family)
    with listen(bound or dialled, 0) as server:
        to = (dialled, server.getsockname()[1])
        with socket.socket(family) as own:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            own.bind((dialled, port))
            stranger.ask("send_and_reset", list(to), b"a request".hex(), port)
            own.connect(to)
            first, second = server.accept()[0], server.accept()[0]
            with first, second:
                assert first.recv(100) == b"a request"
                # asked for the four numbers the system answers with the connection that has them now
                assert peer_user(second.getpeername(), second.getsockname(), second.family) == os.geteuid()
                assert (is_connected(first), is_connected(second)) == (False, True)
                roles = [Gate("here").accepted(each).role for each in (first, second)]
    assert roles == [Role.NONE, Role.ADMIN]


def audited(caplog: pytest.LogCaptureFixture, action: str) -> list[dict[str, Any]]:
    """What was done of that name, and by whom."""
    lines = [record.__dict__["fields"] for record in caplog.records if record.name == "tenfold.audit"]
    return [line for line in lines if line["action"] == action and not line["outcome"].startswith("refused")]


@pytest.mark.parametrize("transport", ["http2", "grpcio"])
async def test_no_session_at_a_task(
    stranger: Stranger, transport: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TENFOLD_GRPC", transport)
    monkeypatch.setattr(audit, "refusals", audit.Refusals())
    caplog.set_level(logging.INFO, "tenfold.audit")
    port = stranger.ask("bind", "127.0.0.1", socket.AF_INET, 300)
    async with TaskServer({"ps": [""]}, "ps", 0, access=AccessSettings()) as server:
        to = ["127.0.0.1", server.port]
        with listen("127.0.0.1", port):
            # the loop stands still: the connection comes, sends, and is gone before it is accepted
            stranger.ask("send_and_reset", to, CREATE_SESSION.hex(), port)
            if transport == "grpcio":
                # gRPC's own threads may read what was sent at once: some come in between
                often = ("send_and_reset_often", port, to, CREATE_SESSION.hex(), 9)
                assert await asyncio.to_thread(stranger.ask, *often) > 100
            async with asyncio.timeout(20):
                reader, writer = await asyncio.open_connection(*to)
                writer.write(CREATE_SESSION)
                while not audited(caplog, "create session"):
                    assert await reader.read(1 << 16), "the owner itself is accepted"
                writer.close()
        assert len(audited(caplog, "create session")) == 1


async def test_no_way_through_a_tunnel(stranger: Stranger, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tenfold.audit")
    certificates = access(tmp_path).credentials().certificates
    assert certificates is not None
    port = stranger.ask("bind", "127.0.0.1")
    async with AsyncExitStack() as stack:
        far = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        far.setblocking(False)
        tunnel = Tunnel("127.0.0.1:0", f"localhost:{far.getsockname()[1]}", certificates.client_context)
        own = await tunnel.start()
        stack.push_async_callback(tunnel.stop)
        stack.enter_context(listen("127.0.0.1", port))
        stranger.ask("send_and_reset", ["127.0.0.1", own], b"a request".hex(), port)
        with socket.create_connection(("127.0.0.1", own)):
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(20):
                came, _ = await loop.sock_accept(far)
            came.close()
        lines = audited(caplog, "tunnel")
    assert [line["caller"] for line in lines] == [f"user {os.geteuid()}"], "the second one, which is the owner's"
