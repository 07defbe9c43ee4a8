"""Opening a link from a client to a task: ask, connect, shake hands. Everything blocks, within bounds.

The asyncio twin for tasks is tenfold_link.aio.dial; the first frames are in tenfold_link.wire.handshake.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any, cast

from tenfold_core import errors
from tenfold_core.access.credentials import NO_CREDENTIALS, Credentials
from tenfold_core.access.tls import host_of
from tenfold_core.access.tls_socket import TlsSocket
from tenfold_link.blocking.link import BlockingLink
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_link.wire import handshake, sockets
from tenfold_link.wire.frames import FrameKind

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
        agreed = handshake.agree(
            sock, greeting, handshake.parse_welcome(header), arena, settings, version=answer.version or 1
        )
        return make(sock, peer=peer, settings=settings, agreed=agreed)
    except BaseException:
        sockets.close(sock)
        raise
    finally:
        greeting.close()
