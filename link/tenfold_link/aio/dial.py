"""Opens links from a task to another: ask, connect, shake hands; and remembers how that went.

For clients there is tenfold_link.blocking.dial. With a peer that is no Tenfold task, or cannot be reached by a link,
the task talks over gRPC; it asks again after a while, because the peer may come back as another program.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, Any

from tenfold_core import errors, protocol
from tenfold_core.access.credentials import NO_CREDENTIALS, Credentials
from tenfold_core.access.tls import host_of
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_link.wire import further, handshake, sockets
from tenfold_link.wire.frames import FrameKind
from tenfold_link.wire.streams import streams_over

from .link import Link
from .listener import secured, when_readable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_protos import link_pb2

    from .methods import OnLink, PeerLink

_log = logging.getLogger(__name__)

#: Answers of OpenLink that will be the same next time: the peer is not Tenfold's, or does not want links.
_SETTLED = (errors.UnimplementedError, errors.FailedPreconditionError)


def _serves_nothing(link: PeerLink) -> dict[int, Any]:
    return {}


async def connect(
    answer: link_pb2.OpenLinkResponse,
    address: str,
    *,
    peer: str = "",
    on_link: OnLink = _serves_nothing,
    settings: LinkSettings = DEFAULT_LINK_SETTINGS,
    credentials: Credentials = NO_CREDENTIALS,
) -> Link:
    """The link that `answer` offers; `address`, "host:port", is where it was given. Serves `on_link`'s methods.

    `peer` names the other end in messages; by default as it named itself. Raises UnavailableError saying what was tried
    and why it failed, FailedPreconditionError for a version that is not spoken here. Bounded by
    `settings.hello_seconds`.
    """
    peer = peer or answer.task or address
    handshake.check_version(answer, peer)
    failures: list[str] = []
    # a token is good for one connection: the second way is for when the first one could not even be connected
    for family, where in handshake.targets(answer, address, settings):
        try:
            async with asyncio.timeout(settings.hello_seconds):
                sock = await connected(family, where)
                if answer.tls and sock.family != socket.AF_UNIX:
                    sock = await _secured(sock, address, credentials)
                return await _shake_hands(sock, answer, peer, on_link, settings)
        except handshake.FAILURES as error:
            failures.append(handshake.failure(where, error))
    raise handshake.no_link(peer, address, failures)


async def way(answer: link_pb2.OpenLinkResponse, address: str, settings: LinkSettings) -> str:
    """By which of the ways that `answer` offers a connection comes about, "unix" or "tcp:PORT". It is closed again, and
    no link comes of it. Raises UnavailableError as `connect` does. Bounded by `settings.hello_seconds` for each way.
    """
    failures: list[str] = []
    for family, where in handshake.targets(answer, address, settings):
        try:
            async with asyncio.timeout(settings.hello_seconds):
                sockets.close(await connected(family, where))
            return "unix" if isinstance(where, str) else f"tcp:{where[1]}"
        except handshake.FAILURES as error:
            failures.append(handshake.failure(where, error))
    raise handshake.no_link(answer.task, address, failures)


class LinkDialer:
    """The link to one address, opened when it is first wanted, and again after it ended.

    `ask(request)` is the OpenLink call (rpc/own_services.py). While there is no link, `get` gives None and the caller
    uses gRPC; after a failed attempt the next one is made `settings.retry_seconds` later.
    """

    def __init__(
        self,
        ask: Callable[[link_pb2.OpenLinkRequest], Any],
        address: str,
        *,
        task: str,
        peer: str = "",
        on_link: OnLink = _serves_nothing,
        settings: LinkSettings = DEFAULT_LINK_SETTINGS,
        credentials: Credentials = NO_CREDENTIALS,
    ) -> None:
        self._credentials = credentials
        self._ask, self._address, self._task, self._peer = ask, address, task, peer
        self._on_link, self._settings = on_link, settings
        #: The open link, or None. Looked at without waiting, on every step.
        self.link: Link | None = None
        #: Why there is none, after an attempt.
        self.why_not = "it was not tried yet"
        #: No attempt before this time of the loop.
        self._not_before = 0.0
        #: The attempt under way, shared by all callers that wait for it.
        self._attempt: asyncio.Task[Link | None] | None = None
        self._closed = False

    async def get(self) -> Link | None:
        """The link; opened now if there is none and it is time to try. Never raises but for being cancelled."""
        if self.link is not None:
            return self.link
        loop = asyncio.get_running_loop()
        if self._attempt is None:
            if self._closed or self._settings.mode == "off" or loop.time() < self._not_before:
                return None
            self._attempt = loop.create_task(self._open(), name=f"open-link:{self._address}")
        return await asyncio.shield(self._attempt)

    async def close(self, reason: str = "it is no longer needed") -> None:
        """Ends the link and attempts to open one."""
        self._closed = True
        if self._attempt is not None:
            self._attempt.cancel()
            await asyncio.wait([self._attempt])
        if self.link is not None:
            await self.link.close(reason)

    async def _open(self) -> Link | None:
        try:
            tls = self._credentials.of(self._address) is not None
            answer = await self._ask(handshake.ask(self._settings, self._task, tls=tls))
            link = await connect(
                answer,
                self._address,
                peer=self._peer,
                on_link=self._on_link,
                settings=self._settings,
                credentials=self._credentials,
            )
        except errors.OpError as error:
            self.why_not = error.message
            level = logging.DEBUG if isinstance(error, _SETTLED) else logging.INFO
            if isinstance(error, protocol.VersionError):
                level = logging.WARNING
            _log.log(level, "gRPC serves for a while: %s", error.message)
            self._not_before = asyncio.get_running_loop().time() + self._settings.retry_seconds
            return None
        finally:
            self._attempt = None
        self.link = link
        link.on_close(self._ended)
        return self.link

    def _ended(self, reason: errors.OpError) -> None:
        # the next `get` tries at once: a task that restarted is there again
        self.link, self.why_not = None, reason.message


async def connected(family: int, where: Any) -> socket.socket:
    """A socket, which does not block, connected to `where`: the name of a Unix socket, or a host, each of whose
    addresses is tried, and a port. Raises OSError, that of the last address."""
    loop = asyncio.get_running_loop()
    ways: list[tuple[int, Any]] = [(family, where)]
    if family != socket.AF_UNIX:
        ways = [(info[0], info[4]) for info in await loop.getaddrinfo(*where, type=socket.SOCK_STREAM)]
    failure = OSError("it has no address")
    for family, address in ways:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            await loop.sock_connect(sock, address)
            return sock
        except BaseException as error:
            sockets.close(sock)
            if not isinstance(error, OSError):
                raise
            failure = error
    raise failure


async def _secured(sock: socket.socket, address: str, credentials: Credentials) -> socket.socket:
    """`sock` with TLS, whose other end has shown the certificate of `address`. Raises OSError; it is closed then."""
    try:
        return await secured(sock, handshake.client_context(credentials), host_of(address))
    except BaseException:
        sock.close()
        raise


async def _shake_hands(
    sock: socket.socket, answer: link_pb2.OpenLinkResponse, peer: str, on_link: OnLink, settings: LinkSettings
) -> Link:
    greeting = handshake.Greeting(FrameKind.WELCOME)
    try:
        arena = handshake.begin(sock, answer, settings, always_reads=True)
        while (header := await when_readable(sock, greeting.receive)) is None:
            pass
        message = handshake.parse_welcome(header)
        agreed = handshake.agree(sock, greeting, message, arena, settings, version=answer.version or 1)
        if message.streams and (more := await _join(sock, answer, message, settings)):
            sock = streams_over(sock, more)
        link = Link(sock, peer=peer, settings=settings, agreed=agreed, peer_always_reads=True)
        try:
            link.serve(on_link(link))
        except BaseException:
            link.abort("the handshake failed")
            raise
        return link
    except BaseException:
        sockets.close(sock)
        raise
    finally:
        greeting.close()


async def _join(
    sock: socket.socket,
    answer: link_pb2.OpenLinkResponse,
    message: link_pb2.LinkWelcome,
    settings: LinkSettings,
) -> list[socket.socket]:
    """The further connections that the peer has room for, or none where not all of them come about; returns once
    it has made its end. Raises FAILURES of handshake.py."""
    opened: list[socket.socket] = []

    async def join() -> None:
        more = socket.socket(sock.family, socket.SOCK_STREAM)
        opened.append(more)
        more.setblocking(False)
        await asyncio.get_running_loop().sock_connect(more, sock.getpeername())
        sockets.tune(more)
        greeting = handshake.Greeting(FrameKind.WELCOME)
        handshake.send_first(more, handshake.hello(answer, None, always_reads=True, joins=message.streams_key), None)
        while await when_readable(more, greeting.receive) is None:
            pass

    wanted = further.granted(message, settings)
    try:
        async with asyncio.timeout(settings.hello_seconds / 2):
            await asyncio.gather(*(join() for _ in range(wanted)))
    except handshake.FAILURES as error:
        _log.info("%s: no further connections: %s", answer.task, error)
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
        while await when_readable(sock, joined.receive) is None:
            pass
    except BaseException:
        for more in opened:
            more.close()
        raise
    return opened
