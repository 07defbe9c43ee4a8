"""Accepts links on a Unix socket and a TCP port, from peers that show the one-time key which OpenLink gave them.

services/task_port.py starts it beside the gRPC server and gives rpc/own_services.py its `open_link`. A connection
without a token gets a few seconds, 4 KB and one of a few places, of which those of another user or address leave some
for others; a token is good for one connection and for a short time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
import ssl
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from tenfold_core import errors, protocol
from tenfold_core.access import audit
from tenfold_core.access.gate import NOBODY, Caller, Gate
from tenfold_core.access.peer_user import unmapped
from tenfold_core.access.places import Places
from tenfold_core.access.roles import Role
from tenfold_core.access.tls import FIRST_BYTE, reason_of
from tenfold_core.access.tls_socket import TlsSocket
from tenfold_core.env_settings import limit_reached
from tenfold_core.loopback import is_loopback
from tenfold_core.memory_limits import tensor_limit
from tenfold_core.open_files import TOLD, is_out_of_files, words
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire import further, handshake, sockets
from tenfold_link.wire.apart import apart
from tenfold_link.wire.frames import FrameKind, pack
from tenfold_link.wire.inflow import Inflow
from tenfold_link.wire.streams import streams_over
from tenfold_protos import link_pb2

from .accept_loop import AcceptLoop, shown
from .link import Link
from .methods import permitted
from .outbound import PeerShare

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.access.tls import Certificates

    from .methods import OnLink

T = TypeVar("T")

_log = logging.getLogger(__name__)

_BACKLOG = 128


class _Agreement(NamedTuple):
    """What OpenLink has promised to the peer that shows its token."""

    #: When it runs out, on the loop's clock.
    until: float
    #: For messages.
    who: str
    #: The two ends may share memory.
    shares_memory: bool
    role: Role
    #: Whom gRPC has accepted, with that role.
    caller: Caller
    #: Of the peer, whose links are counted.
    name: str
    #: Of the links' protocol.
    version: int


class LinkListener:
    """Accepts links to `task`. `on_link(link)` gives the methods that a new link serves; it is called before any call.

    `host` is the address of the TCP port, `settings.port` its number (0: any); `tcp=False` opens none. `async with`, or
    `start` and `stop`, on one loop.
    """

    def __init__(
        self,
        task: str,
        on_link: OnLink,
        settings: LinkSettings = DEFAULT_LINK_SETTINGS,
        host: str = "127.0.0.1",
        *,
        tcp: bool = True,
        certificates: Certificates | None = None,
    ) -> None:
        self.task, self._certificates = task, certificates
        self._on_link, self._settings, self._host, self._tcp = on_link, settings, host, tcp
        #: Open ones, in the order in which they were opened.
        self._links: dict[Link, None] = {}
        #: What was agreed on by the token that the link will show. Oldest first.
        self._tokens: dict[bytes, _Agreement] = {}
        #: By name, those that have links.
        self._shares: dict[str, PeerShare] = {}
        #: What comes in over all links of those who may only run graphs; once there is one.
        self._inflow: Inflow | None = None
        #: By key, links whose further connections are joining.
        self._parties: dict[bytes, further.Party] = {}
        #: Handshakes under way, and who may have one more.
        self._handshakes: set[asyncio.Task[None]] = set()
        self._places: Places[asyncio.Task[None]] = Places(settings.handshakes, asyncio.Task.cancel)
        #: Links of each peer that were agreed on and are not opened yet.
        self._agreed: Counter[str] = Counter()
        #: There is one while links are on.
        self._accepting: AcceptLoop[asyncio.Task[None]] | None = None
        self._unix_name = b""
        self._tcp_port = 0
        self._host_identity = sockets.host_identity()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def links(self) -> frozenset[Link]:
        """The open links."""
        return frozenset(self._links)

    @property
    def tcp_port(self) -> int:
        """Where links over TCP come in; 0 where none do."""
        return self._tcp_port

    async def start(self) -> None:
        """Opens the sockets that can be had; peers that they do not reach use gRPC. Raises OSError, having opened
        nothing, where a TCP port was asked for by number and cannot be had.
        """
        self._loop = asyncio.get_running_loop()
        if self._settings.mode == "off":
            return
        port = f"the port for links of {self.task}"
        # it tells whose connection it is; who may open a link, its token says
        self._accepting = AcceptLoop(
            port, Gate(port), self._places, self._take,
            limit="TENFOLD_LINK_HANDSHAKES", say_no_room=_say_no_room, action="open link",
        )  # fmt: skip
        if self._host_identity and self._settings.mode == "auto":
            name = f"tenfold-{secrets.token_hex(16)}".encode()
            with contextlib.suppress(OSError):
                self._listen(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), "\0" + name.decode())
                self._unix_name = name
        if self._tcp:
            try:
                # gRPC took this very name a moment ago, so that looking it up takes no time
                found = await self._loop.getaddrinfo(self._host.strip("[]"), 0, type=socket.SOCK_STREAM)
                sock, address = _tcp_socket(*found[0])
                if self._settings.port:
                    # connections of the task's process before this one may still be in TIME_WAIT on it
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    address = (address[0], self._settings.port, *address[2:])
                self._tcp_port = self._listen(sock, address)
            except OSError as error:
                if self._settings.port:
                    await self.stop()
                    raise
                _log.warning("%s opens no TCP port for links on %s: %s", self.task, self._host, error)

    async def stop(self, reason: str = "its server stopped") -> None:
        """Ends all links with `reason`, and accepts none. Bounded; never raises."""
        if self._accepting is not None:
            self._accepting.close()
        self._tokens.clear()
        self._agreed.clear()
        for handshake_task in self._handshakes:
            handshake_task.cancel()
        if self._handshakes:
            await asyncio.wait(self._handshakes)
        if self._links:
            await asyncio.gather(*(link.close(reason) for link in self._links))

    async def __aenter__(self) -> LinkListener:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # -- agreeing ----------------------------------------------------------------------------------------------------

    def open_link(
        self,
        request: link_pb2.OpenLinkRequest,
        role: Role = Role.ADMIN,
        name: str = "",
        caller: Caller | None = None,
    ) -> link_pb2.OpenLinkResponse:
        """The ways in and a token, for a `caller` that gRPC has accepted with this `role`; the link keeps both.
        `name` says who it is, and from where: its links are counted together.

        Raises FailedPreconditionError where links are off, or no path and no version fit, ResourceExhaustedError when
        too many tokens wait to be shown, or there are too many links.
        """
        if self._accepting is None or not self._accepting.sockets:
            raise errors.FailedPreconditionError(None, None, f"{self.task} opens no links (TENFOLD_LINK=off).")
        if request.version < 1:
            raise errors.InvalidArgumentError(None, None, f"There is no version {request.version} of links.")
        ours = protocol.links()
        theirs = protocol.announced(request.oldest_version, request.version, request.can, request.release)
        who = request.task[:200] or f"the client with pid {request.pid}"
        try:
            version = protocol.agree_on_links(theirs, who).version
        except protocol.VersionError as error:
            _log.warning("%s opens no link: %s", self.task, error.message)
            raise
        now = self._now()
        for token, agreement in list(self._tokens.items()):
            if agreement.until > now:
                break
            self._taken(token)
        if len(self._tokens) >= self._settings.tokens:
            raise limit_reached(
                f"{self.task}: {len(self._tokens)} links were agreed on and not opened yet",
                self._settings.tokens,
                "TENFOLD_LINK_TOKENS",
            )
        if len(self._links) + len(self._tokens) >= self._settings.links:
            raise limit_reached(
                f"{self.task} has {len(self._links)} links, and gRPC serves", self._settings.links, "TENFOLD_LINK_LINKS"
            )
        its = self._agreed[name] + (self._shares[name].links if name in self._shares else 0)
        if name and its >= self._settings.links_per_peer:
            raise limit_reached(
                f"{name} has {its} links to {self.task}, and gRPC serves",
                self._settings.links_per_peer,
                "TENFOLD_LINK_LINKS_PER_PEER",
            )
        same_host = bool(self._unix_name) and request.host_identity == self._host_identity and not request.tcp_only
        # while all that closes what others passed stands still, nothing is accepted there
        same_host = same_host and apart.has_room
        if not same_host and not self._tcp_port:
            raise errors.FailedPreconditionError(None, None, f"{self.task} has no TCP port for links.")
        # a sender can write to what it has lent, and who may not run code here must not choose what a kernel indexes by
        shared = same_host and request.shared_memory and self._settings.shared_memory and role >= Role.RUN
        token = secrets.token_bytes(32)
        self._tokens[token] = _Agreement(
            now + self._settings.token_seconds, who, shared, role, caller or Caller(role, name), name, version
        )
        self._agreed[name] += 1
        return link_pb2.OpenLinkResponse(
            version=version,
            can=sorted(ours.can),
            release=ours.release,
            task=self.task,
            unix_name=self._unix_name if same_host else b"",
            unix_uid=sockets.user(),
            tcp_port=self._tcp_port,
            token=token,
            shared_memory=shared,
            tls=request.tls and self._certificates is not None,
        )

    def _taken(self, token: bytes) -> _Agreement | None:
        """What was agreed on by that token, which is good no more."""
        agreement = self._tokens.pop(token, None)
        if agreement is not None:
            self._agreed[agreement.name] -= 1
            if not self._agreed[agreement.name]:
                del self._agreed[agreement.name]
        return agreement

    # -- accepting ---------------------------------------------------------------------------------------------------

    def _listen(self, sock: socket.socket, address: Any) -> int:
        """Opens `sock` there; its port."""
        try:
            sock.setblocking(False)
            sock.bind(address)
            sock.listen(_BACKLOG)
        except OSError:
            sock.close()
            raise
        assert self._accepting is not None
        self._accepting.watch(sock)
        name = sock.getsockname()
        return int(name[1]) if isinstance(name, tuple) else 0

    def _take(self, sock: socket.socket, address: Any, caller: Caller) -> asyncio.Task[None]:
        assert self._loop is not None
        greeting = self._loop.create_task(self._greet(sock), name=f"greet:{self.task}")
        self._handshakes.add(greeting)
        greeting.add_done_callback(self._handshakes.discard)
        return greeting

    async def _greet(self, sock: socket.socket) -> None:
        """The handshake of one connection. Ends in a link, in a further connection of one, or in a closed socket."""
        greeting = handshake.Greeting(FrameKind.HELLO)
        kept = False
        try:
            async with asyncio.timeout(self._settings.hello_seconds):
                sockets.tune(sock)
                if sock.family != socket.AF_UNIX:
                    sock = await self._secured(sock)
                while (header := await when_readable(sock, greeting.receive)) is None:
                    pass
                hello = handshake.parse_hello(header)
                if hello.joins:
                    self._join(sock, hello)
                else:
                    await self._admit(sock, greeting, hello)
                kept = True
        except ssl.SSLError as error:
            self._refused(sock, f"no handshake of TLS: {reason_of(error)}")
        except (OSError, EOFError, TimeoutError, errors.OpError) as error:
            if is_out_of_files(error):
                _log.warning("%s: a connection came to no link: %s", self.task, words(error))
                _say_no_room(sock)
            else:
                _log.info("%s: a connection came to no link: %s", self.task, error)
        except ProtocolError as error:
            self._refused(sock, f"it sent {error}")
            with contextlib.suppress(OSError):
                sock.send(pack(FrameKind.GOODBYE, header=f"you sent {error}".encode()))
        finally:
            greeting.close()
            if not kept:
                sock.close()

    def _refused(self, sock: socket.socket, why: str) -> None:
        _log.warning("%s: a connection is refused: %s", self.task, why)
        address = ""
        with contextlib.suppress(OSError):
            address = shown(sock, sock.getpeername())
        audit.refusals.note(NOBODY, "open link", why, address=address)

    async def _admit(self, sock: socket.socket, greeting: handshake.Greeting, hello: link_pb2.LinkHello) -> Link:
        agreement = self._taken(hello.token)
        if agreement is None or agreement.until < self._now():
            raise ProtocolError("a token that is not good (any more)")
        unix = sock.family == socket.AF_UNIX
        plain = not unix and not isinstance(sock, TlsSocket)
        shares = unix and agreement.shares_memory and hello.arena_bytes > 0 and sockets.may_share_memory(sock)
        arena = handshake.make_arena(self._settings) if shares else None
        # our variables are in one file, all of them: they are for the tasks of the cluster
        is_member = agreement.role >= Role.REGISTER
        version = agreement.version
        agreed = handshake.agree(
            sock, greeting, hello, arena, self._settings, lends_variables=is_member, version=version
        )
        # who may only run graphs has what comes in counted on one connection
        streams = further.granted(hello, self._settings) if is_member and plain else 0
        if streams and (more := await self._joining(sock, agreement, streams)):
            sock = streams_over(sock, more)
        share = self._share(agreement.name)
        link = Link(
            sock,
            peer=agreement.who,
            settings=self._settings,
            agreed=agreed,
            peer_always_reads=hello.always_reads,
            share=share,
        )
        link.peer_role, link.peer_caller = agreement.role, agreement.caller
        if not is_member:
            its = share.inflow
            link.limit(Inflow(its.who, its.limit, its.variable, its))
        try:
            methods = self._on_link(link)
            first = further.joined(link.connections - 1) if streams else handshake.welcome(self.task, arena, version)
            handshake.send_first(sock, first, arena, with_variables=is_member)
        except BaseException:
            link.abort("the handshake failed")
            raise
        self._entered(link, share, agreement.name)
        link.serve(permitted(methods, agreement.role, self.task))
        return link

    async def _joining(self, sock: socket.socket, agreement: _Agreement, streams: int) -> list[socket.socket]:
        """Says WELCOME to further connections, and waits for them; those that have come, or none. Raises as `_greet`
        expects."""
        key, party = secrets.token_bytes(32), further.Party(streams)
        self._parties[key] = party
        try:
            first = handshake.welcome(self.task, None, agreement.version, streams, key)
            handshake.send_first(sock, first, None)
            joined = further.Joined()
            while (count := await when_readable(sock, joined.receive)) is None:
                pass
            return party.take(count)
        finally:
            del self._parties[key]
            party.close()

    def _join(self, sock: socket.socket, hello: link_pb2.LinkHello) -> None:
        """A further connection of a link whose handshake is not over. Raises ProtocolError, OSError."""
        party = self._parties.get(hello.joins)
        if party is None:
            raise ProtocolError("a key of further connections that is not good (any more)")
        handshake.send_first(sock, handshake.welcome(self.task, None, hello.version or 1), None)
        party.join(sock)

    def _share(self, name: str) -> PeerShare:
        """What the peer has already; kept once it `_entered`."""
        known = self._shares.get(name)
        if known is not None:
            return known
        settings, limit = self._settings, tensor_limit()
        if self._inflow is None:
            most = settings.inbound_bytes or limit + limit // 2
            self._inflow = Inflow("all who may only run graphs", most, "TENFOLD_LINK_INBOUND_BYTES")
        most = settings.peer_inbound_bytes or limit
        inflow = Inflow(name or "this peer", most, "TENFOLD_LINK_PEER_INBOUND_BYTES", self._inflow)
        return PeerShare(settings.peer_outbound_bytes or limit, inflow)

    def _entered(self, link: Link, share: PeerShare, name: str) -> None:
        self._shares[name] = share
        share.links += 1
        self._links[link] = None

        def left(_: object) -> None:
            self._links.pop(link, None)
            share.links -= 1
            if not share.links:
                del self._shares[name]

        link.on_close(left)

    async def _secured(self, sock: socket.socket) -> socket.socket:
        """`sock`, with TLS where the peer begins so, as one beyond this machine must where there are certificates.
        Raises OSError, ProtocolError."""
        if self._certificates is None:
            return sock
        if await when_readable(sock, _first_byte) != FIRST_BYTE:
            if not is_loopback(unmapped(sock.getpeername()[0])):
                raise ProtocolError("no TLS, which is asked for here")
            return sock
        return await secured(sock, self._certificates.server_context())

    def _now(self) -> float:
        assert self._loop is not None
        return self._loop.time()


def _tcp_socket(family: int, kind: int, number: int, name: str, address: Any) -> tuple[socket.socket, Any]:
    """A socket for what getaddrinfo gave, and where it is to listen: "::" is every address, of IPv4 too, and those of
    IPv4 alone on a system that has no IPv6. Raises OSError."""
    everywhere = address[0] == "::"
    try:
        sock = socket.socket(family, kind, number)
    except OSError:
        if not everywhere:
            raise
        return socket.socket(socket.AF_INET, kind, number), ("0.0.0.0", 0)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if everywhere else 1)
    return sock, address


def _say_no_room(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.send(pack(FrameKind.GOODBYE, header=TOLD.encode()))


def _first_byte(sock: socket.socket) -> int:
    """What the peer begins with, without taking it; -1 where it hung up."""
    return (sock.recv(1, socket.MSG_PEEK) or b"\xff")[0]


async def secured(sock: socket.socket, context: ssl.SSLContext, server: str | None = None) -> socket.socket:
    """TLS over `sock`, which does not block, once its handshake is over; the connecting end names the `server`. Raises
    OSError, EOFError. A TlsSocket (tenfold_core.access.tls_socket)."""
    tls = TlsSocket(sock, context, server_hostname=server)
    while not tls.handshake():
        await when_readable(sock, lambda _: tls.hear())
    return cast("socket.socket", tls)


async def when_readable(sock: socket.socket, receive: Callable[[socket.socket], T | None]) -> T | None:
    """`receive(sock)`, which does not block, as soon as something can be read."""
    if isinstance(sock, TlsSocket) and sock.waiting:
        # the end of the peer's handshake brought its first message along
        with contextlib.suppress(BlockingIOError):
            return receive(sock)
    loop = asyncio.get_running_loop()
    readable = loop.create_future()

    def tell() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(sock, tell)
    try:
        await readable
    finally:
        loop.remove_reader(sock)
    try:
        return receive(sock)
    except BlockingIOError:
        return None
