"""Opening a link from a client to a task: ask, connect, shake hands. Everything blocks, within bounds.

The asyncio twin for tasks is tenfold_link.aio.dial; the first frames are in tenfold_link.wire.handshake.
"""

from __future__ import annotations

import select
import socket
import time
from typing import TYPE_CHECKING, Any, cast

from tenfold_core import errors
from tenfold_core.access.credentials import NO_CREDENTIALS, Credentials
from tenfold_core.access.tls import host_of
from tenfold_core.access.tls_socket import TlsSocket
from tenfold_link.blocking.link import TICK_SECONDS, BlockingLink
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_link.wire import further, handshake, sockets
from tenfold_link.wire.frames import FrameKind
from tenfold_link.wire.streams import streams_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_protos import link_pb2


def open_link(
    ask: Callable[[link_pb2.OpenLinkRequest], link_pb2.OpenLinkResponse],
    address: str,
    *,
    settings: LinkSettings = DEFAULT_LINK_SETTINGS,
    credentials: Credentials = NO_CREDENTIALS,
) -> BlockingLink:
    """A link to the server at `address`, "host:port". `ask(request)` is the OpenLink call.

    Blocks for as long as `ask` does, and for `settings.hello_seconds` for each way to connect. Raises what `ask`
    raises, FailedPreconditionError where links are switched off here, UnavailableError where none can be opened: gRPC
    serves then.
    """
    if settings.mode == "off":
        raise errors.FailedPreconditionError(None, None, "Links are switched off here (TENFOLD_LINK=off).")
    answer = ask(handshake.ask(settings, tls=credentials.of(address) is not None))
    return connect(answer, address, settings=settings, credentials=credentials)


def connect(
    answer: link_pb2.OpenLinkResponse,
    address: str,
    *,
    peer: str = "",
    settings: LinkSettings = DEFAULT_LINK_SETTINGS,
    make: type[BlockingLink] = BlockingLink,
    credentials: Credentials = NO_CREDENTIALS,
) -> BlockingLink:
    """The link that `answer` offers; `address`, "host:port", is where it was given.

    `peer` names the other end in messages; by default as it named itself. Raises UnavailableError saying what was tried
    and why it failed, FailedPreconditionError for a version that is not spoken here. Blocks for
    `settings.hello_seconds` a way at most.
    """
    peer = peer or answer.task or address
    handshake.check_version(answer, peer)
    failures: list[str] = []
    for family, where in handshake.targets(answer, address, settings):
        try:
            return _shake_hands(family, where, answer, peer, settings, make, credentials, host_of(address))
        except handshake.FAILURES as error:
            failures.append(handshake.failure(where, error))
    raise handshake.no_link(peer, address, failures)


def _shake_hands(
    family: int,
    where: Any,
    answer: link_pb2.OpenLinkResponse,
    peer: str,
    settings: LinkSettings,
    make: type[BlockingLink],
    credentials: Credentials,
    host: str,
) -> BlockingLink:
    greeting = handshake.Greeting(FrameKind.WELCOME)
    deadline = time.monotonic() + settings.hello_seconds
    unix = family == socket.AF_UNIX
    if unix:
        sock = socket.socket(family, socket.SOCK_STREAM)
    else:
        sock = socket.create_connection(where, timeout=settings.hello_seconds)
    try:
        sock.settimeout(settings.hello_seconds)
        if unix:
            sock.connect(where)
        elif answer.tls:
            secured = TlsSocket(sock, handshake.client_context(credentials), server_hostname=host)
            while not secured.handshake():
                secured.hear()
            sock = cast("socket.socket", secured)
        arena = handshake.begin(sock, answer, settings, always_reads=False)
        while (header := greeting.receive(sock)) is None:
            # the socket's own time-out starts anew with every byte
            if time.monotonic() > deadline:
                raise TimeoutError
        message = handshake.parse_welcome(header)
        agreed = handshake.agree(sock, greeting, message, arena, settings, version=answer.version or 1)
        if message.streams and (more := _join(sock, answer, message, settings, deadline)):
            sock = streams_over(sock, more, TICK_SECONDS)
        return make(sock, peer=peer, settings=settings, agreed=agreed)
    except BaseException:
        sockets.close(sock)
        raise
    finally:
        greeting.close()


def _join(
    sock: socket.socket,
    answer: link_pb2.OpenLinkResponse,
    message: link_pb2.LinkWelcome,
    settings: LinkSettings,
    until: float,
) -> list[socket.socket]:
    """The further connections that the peer has room for, or none where not all of them come about; returns once
    it has made its end. Raises FAILURES of handshake.py."""
    sock.settimeout(max(0.01, until - time.monotonic()))
    # the rest is for the peer to make its end
    deadline = time.monotonic() + max(0.0, until - time.monotonic()) / 2
    opened: list[socket.socket] = []
    try:
        for _ in range(further.granted(message, settings)):
            opened.append(socket.socket(sock.family, socket.SOCK_STREAM))
            opened[-1].setblocking(False)
            opened[-1].connect_ex(sock.getpeername())
        # all of them at once: a round trip to connect, and one for the first frames
        for more in opened:
            _wait(more, select.POLLOUT, deadline)
            if number := more.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(number, "a further connection")
            sockets.tune(more)
            first = handshake.hello(answer, None, always_reads=False, joins=message.streams_key)
            handshake.send_first(more, first, None)
        for more in opened:
            greeting = handshake.Greeting(FrameKind.WELCOME)
            _wait(more, select.POLLIN, deadline)
            while greeting.receive(more) is None:
                _wait(more, select.POLLIN, deadline)
    except handshake.FAILURES:
        for more in opened:
            more.close()
        opened.clear()
    except BaseException:
        for more in opened:
            more.close()
        raise
    try:
        sock.send(further.joined(len(opened)))
        joined = further.Joined()
        while joined.receive(sock) is None:
            pass
    except BaseException:
        for more in opened:
            more.close()
        raise
    return opened


def _wait(sock: socket.socket, event: int, deadline: float) -> None:
    """Raises TimeoutError."""
    poll = select.poll()
    poll.register(sock, event)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise TimeoutError
