"""The first frame of either end, and who shares a host with whom. Blocking or not, the caller does the I/O.

listener.py accepts what the two dial.py files open. The descriptor of an arena travels with the frame, as SCM_RIGHTS.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from functools import lru_cache
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from tenfold_core import errors
from tenfold_link.memory import shared_variables
from tenfold_link.memory.arena import Arena
from tenfold_link.memory.arena_reader import ArenaReader
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire.frames import HELLO_BYTES, MAGIC, PREFIX, VERSION, FrameKind, pack
from tenfold_protos import link_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_link.settings import LinkSettings

_CREDENTIALS = struct.Struct("3i")
#: Socket buffers: one system call moves this much, and a small message never waits for room.
_SOCKET_BYTES = 4 << 20
#: Few enough that a slow network brings them long before silence is taken for death (settings.ping_answer_seconds).
_WAKE_BYTES = 512 << 10


def host_identity() -> str:
    """The same for two processes when one can reach the other's abstract Unix sockets; "" where there are none."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()}/{os.stat('/proc/self/ns/net').st_ino}"
    except OSError:
        return ""


def ask(settings: LinkSettings, task: str = "") -> link_pb2.OpenLinkRequest:
    """What the connecting end asks for over gRPC."""
    return link_pb2.OpenLinkRequest(
        version=VERSION,
        task=task,
        pid=os.getpid(),
        host_identity=host_identity(),
        shared_memory=settings.shared_memory,
        tcp_only=settings.mode == "tcp",
    )


def make_arena(settings: LinkSettings) -> Arena | None:
    """None where the system gives none; the link goes on without."""
    try:
        return Arena(settings.arena_bytes, settings.arena_keep_bytes)
    except OSError:
        return None


def tune(sock: socket.socket) -> None:
    """Options of a connected socket."""
    if sock.family == socket.AF_UNIX:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BYTES)
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # where the system allows less, its own growing buffers are better than a small one of a fixed size
    if _system_allows("wmem_max") >= _SOCKET_BYTES:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
    if _system_allows("rmem_max") >= _SOCKET_BYTES:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BYTES)
    # a host that vanished is noticed by the kernel too, for ends that nobody reads
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 5), ("TCP_USER_TIMEOUT", 15_000)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


@lru_cache
def _system_allows(name: str) -> int:
    """The largest socket buffer that one may ask for; 0 where the system does not tell."""
    try:
        with open(f"/proc/sys/net/core/{name}") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


class Patience:
    """Lets a TCP socket wake its reader less often while a large buffer comes in: each wake-up costs a switch."""

    __slots__ = ("_asked", "_sock")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock if sock.family != socket.AF_UNIX else None
        self._asked = 1

    def wait_for(self, awaited: int) -> None:
        """`awaited` bytes of one buffer are still to come; less than that, and _WAKE_BYTES, need wake nobody."""
        wanted = max(1, min(awaited, _WAKE_BYTES))
        if wanted != self._asked and self._sock is not None:
            self._asked = wanted
            # whoever has closed it meanwhile reads no more
            with contextlib.suppress(OSError):
                self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)


def user() -> int:
    """Who this process runs as."""
    return os.getuid()


def owner(sock: socket.socket) -> int:
    """The user at the other end of a Unix socket; -1 where the system does not tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return -1
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(raw)[1])


def targets(
    answer: link_pb2.OpenLinkResponse, address: str, settings: LinkSettings
) -> list[tuple[int, str | tuple[str, int]]]:
    """(family, address) to try, best first. `address` is where the gRPC service was reached, "host:port"."""
    found: list[tuple[int, str | tuple[str, int]]] = []
    if answer.unix_name and settings.mode != "tcp":
        found.append((socket.AF_UNIX, "\0" + answer.unix_name.decode(errors="replace")))
    if answer.tcp_port:
        host = address.rpartition(":")[0].strip("[]")
        found.append((socket.AF_UNSPEC, (host or "localhost", answer.tcp_port)))
    return found


def hello(answer: link_pb2.OpenLinkResponse, arena: Arena | None, *, always_reads: bool) -> bytes:
    """The connecting end's first frame."""
    size = arena.size if arena is not None else 0
    message = link_pb2.LinkHello(version=VERSION, token=answer.token, arena_bytes=size, always_reads=always_reads)
    return pack(FrameKind.HELLO, header=message.SerializeToString())


def welcome(task: str, arena: Arena | None) -> bytes:
    """The accepting end's first frame."""
    message = link_pb2.LinkWelcome(version=VERSION, task=task, arena_bytes=arena.size if arena is not None else 0)
    return pack(FrameKind.WELCOME, header=message.SerializeToString())


def check_owner(sock: socket.socket, answer: link_pb2.OpenLinkResponse) -> None:
    """Raises PermissionDeniedError for a Unix socket that another user than the server's listens on."""
    if sock.family == socket.AF_UNIX and (uid := owner(sock)) != answer.unix_uid:
        raise errors.PermissionDeniedError(None, None, f"it belongs to user {uid}, not to {answer.unix_uid}")


def shares(greeting: Greeting, message: link_pb2.LinkHello | link_pb2.LinkWelcome, arena: Arena | None) -> bool:
    """Whether both ends have brought an arena. Raises ProtocolError for one that was announced and did not come."""
    if arena is None or not message.arena_bytes:
        return False
    if greeting.fd < 0:
        raise ProtocolError("an arena without its descriptor")
    return True


def path_name(*, unix: bool, shared: bool) -> str:
    """What `Link.path` says."""
    return ("unix+shm" if shared else "unix") if unix else "tcp"


def spell(where: str | tuple[str, int]) -> str:
    """An address for messages."""
    return f"Unix socket @{where[1:]}" if isinstance(where, str) else f"TCP {where[0]}:{where[1]}"


def reader_of(greeting: Greeting, size: int) -> Callable[[Callable[[int], None]], ArenaReader]:
    """Maps the arena that came with the greeting, once it is known whom its blocks go back through."""
    return lambda give_back: ArenaReader(greeting.take_descriptor(), size, give_back, greeting.take_commons())


def send_first(sock: socket.socket, frame: bytes, arena: Arena | None) -> None:
    """Sends a first frame with the descriptors of the arena and of our variables' commons; it always fits a fresh
    socket. Raises OSError.
    """
    if arena is None:
        sent = sock.send(frame)
    else:
        fds = [arena.take_descriptor()]
        shared = shared_variables.arena()
        try:
            if shared is not None:
                fds.append(shared.copy_descriptor())
            sent = socket.send_fds(sock, [frame], fds)
        finally:
            for fd in fds:
                os.close(fd)
    if sent != len(frame):
        raise OSError("a fresh socket does not take a frame of a few bytes")


class Greeting:
    """Collects the peer's first frame, which stands alone: nobody says more before it was answered."""

    def __init__(self, kind: FrameKind) -> None:
        self._kind = kind
        self._data = b""
        #: The descriptors that came with it, of the arena and of the commons, or -1. They belong to whoever takes
        #: them, or to `close`.
        self.fd = self.commons = -1

    def receive(self, sock: socket.socket) -> bytes | None:
        """Reads once; the frame's header when it is complete, else None.

        Raises ProtocolError for anything but that frame, UnavailableError with the peer's reason when it sent one or
        hung up, and what the socket raises.
        """
        data, fds, _, _ = socket.recv_fds(sock, HELLO_BYTES, 2)
        for fd in fds:
            if self.fd < 0:
                self.fd = fd
            elif self.commons < 0:
                self.commons = fd
            else:
                os.close(fd)
        if not data:
            raise errors.UnavailableError(None, None, "it hung up during the handshake")
        self._data += data
        if len(self._data) < PREFIX.size:
            return None
        magic, kind, zero, _, size, rows, _ = PREFIX.unpack_from(self._data)
        if (
            magic != MAGIC
            or zero
            or rows
            or size > HELLO_BYTES - PREFIX.size
            or kind not in (self._kind, FrameKind.GOODBYE)
        ):
            raise ProtocolError(f"no {self._kind.name} frame")
        if len(self._data) < PREFIX.size + size:
            return None
        header = self._data[PREFIX.size :]
        if len(header) > size:
            raise ProtocolError(f"more than a {self._kind.name} frame")
        if kind == FrameKind.GOODBYE:
            raise errors.UnavailableError(None, None, f"it refused: {header.decode(errors='replace')}")
        return header

    def take_descriptor(self) -> int:
        """The descriptor; the caller closes it."""
        fd, self.fd = self.fd, -1
        return fd

    def take_commons(self) -> int:
        """The descriptor of the peer's commons, -1 where it has none; the caller closes it."""
        fd, self.commons = self.commons, -1
        return fd

    def close(self) -> None:
        """Closes descriptors that nobody took."""
        for fd in (self.take_descriptor(), self.take_commons()):
            if fd >= 0:
                os.close(fd)


def parse_hello(header: bytes) -> link_pb2.LinkHello:
    """Raises ProtocolError."""
    try:
        return link_pb2.LinkHello.FromString(header)
    except DecodeError as error:
        raise ProtocolError("a HELLO that does not parse") from error


def parse_welcome(header: bytes) -> link_pb2.LinkWelcome:
    """Raises ProtocolError."""
    try:
        return link_pb2.LinkWelcome.FromString(header)
    except DecodeError as error:
        raise ProtocolError("a WELCOME that does not parse") from error
