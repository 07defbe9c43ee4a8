"""How a link begins: what the connecting end asks for, the first frame of either end, and what the two agree on.

Used by listener.py and the two dial.py. Blocking or not, the caller does the I/O. The descriptors of an arena and of
this process's variables travel with the frame, as SCM_RIGHTS.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from google.protobuf.message import DecodeError

from tenfold_core import errors, protocol
from tenfold_core.open_files import is_out_of_files, out_of_files, words
from tenfold_link.memory import shared_variables
from tenfold_link.memory.arena import Arena
from tenfold_link.memory.arena_reader import ArenaReader
from tenfold_link.memory.extents import pages
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire import further, sockets
from tenfold_link.wire.apart import apart
from tenfold_link.wire.frames import HELLO_BYTES, MAGIC, PREFIX, FrameKind, pack
from tenfold_protos import link_pb2

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from tenfold_core.access.credentials import Credentials
    from tenfold_link.link_settings import LinkSettings

#: That come with a first frame: of an arena, and of variables.
_DESCRIPTORS = 2
#: What one way to connect may fail with; a time-out is an OSError.
FAILURES = (OSError, EOFError, ProtocolError, errors.OpError)


class Agreed(NamedTuple):
    """What the handshake came to: what an end of a link is made of."""

    #: "unix+shm", "unix" or "tcp".
    path: str
    #: Our arena, and what maps the peer's, once it is known where its blocks go back; None without shared memory.
    arena: Arena | None
    peer_arena: Callable[[Callable[[int], None]], ArenaReader] | None
    #: The peer has the file of our variables, and reads them there.
    lends_variables: bool = False
    #: The version, and what both ends can do besides.
    version: int = 1
    can: frozenset[str] = frozenset()


def ask(settings: LinkSettings, task: str = "", *, tls: bool = False) -> link_pb2.OpenLinkRequest:
    """What the connecting end asks for over gRPC; TCP with `tls` where it called so."""
    ours = protocol.links()
    return link_pb2.OpenLinkRequest(
        version=ours.newest,
        oldest_version=ours.oldest,
        can=sorted(ours.can),
        release=ours.release,
        task=task,
        pid=os.getpid(),
        host_identity=sockets.host_identity(),
        shared_memory=settings.shared_memory,
        tcp_only=settings.mode == "tcp",
        tls=tls,
    )


def check_version(answer: link_pb2.OpenLinkResponse, peer: str) -> None:
    """Whether the version that the peer has chosen is one of ours; raises FailedPreconditionError if not."""
    chosen = answer.version or 1
    protocol.agree_on_links(protocol.announced(chosen, chosen, answer.can, answer.release), peer)


def client_context(credentials: Credentials) -> ssl.SSLContext:
    """For the TLS that the peer asks for. Raises FailedPreconditionError where there are no certificates here."""
    if credentials.certificates is None:
        raise errors.failed_precondition("it asks for TLS, and no certificate is set here (TENFOLD_TLS_CERT)")
    return credentials.certificates.client_context()


def make_arena(settings: LinkSettings) -> Arena | None:
    """None where the system gives none; the link goes on without. Raises OSError where no more files may be opened: its
    peers' descriptors would not come in either."""
    try:
        return Arena(settings.arena_bytes, settings.arena_keep_bytes)
    except OSError as error:
        if is_out_of_files(error):
            raise
        return None


def largest_mapping(settings: LinkSettings) -> int:
    """Bytes of a peer's file that are mapped at most. It costs address space, and memory for each page that is read,
    also of a hole; a peer of this machine has half of its memory at most in such a file."""
    return settings.mapping_bytes or pages(max(shared_variables.half_of_machine(), settings.arena_bytes))


def targets(
    answer: link_pb2.OpenLinkResponse, address: str, settings: LinkSettings
) -> list[tuple[int, str | tuple[str, int]]]:
    """(family, address) to try, best first. `address` is where the gRPC service was reached, "host:port". No Unix
    socket while nothing more can be closed that turns out to be another user's (apart.py)."""
    found: list[tuple[int, str | tuple[str, int]]] = []
    if answer.unix_name and settings.mode != "tcp" and apart.has_room:
        found.append((socket.AF_UNIX, "\0" + answer.unix_name.decode(errors="replace")))
    if answer.tcp_port:
        host = address.rpartition(":")[0].strip("[]")
        found.append((socket.AF_UNSPEC, (host or "localhost", answer.tcp_port)))
    return found


def hello(
    answer: link_pb2.OpenLinkResponse, arena: Arena | None, *, always_reads: bool, streams: int = 0, joins: bytes = b""
) -> bytes:
    """The connecting end's first frame; with `joins`, that of a further connection."""
    size = arena.size if arena is not None else 0
    message = link_pb2.LinkHello(
        version=answer.version or 1,
        token=b"" if joins else answer.token,
        arena_bytes=size,
        always_reads=always_reads,
        can=sorted(protocol.links().can),
        streams=streams,
        joins=joins,
    )
    return pack(FrameKind.HELLO, header=message.SerializeToString())


def welcome(task: str, arena: Arena | None, version: int = 1, streams: int = 0, key: bytes = b"") -> bytes:
    """The accepting end's first frame."""
    message = link_pb2.LinkWelcome(
        version=version,
        task=task,
        arena_bytes=arena.size if arena is not None else 0,
        can=sorted(protocol.links().can),
        streams=streams,
        streams_key=key,
    )
    return pack(FrameKind.WELCOME, header=message.SerializeToString())


def begin(
    sock: socket.socket, answer: link_pb2.OpenLinkResponse, settings: LinkSettings, *, always_reads: bool
) -> Arena | None:
    """The connecting end's HELLO on a fresh socket; our arena, if it went along.

    Raises OSError, UnavailableError with the peer's reason where it hung up; PermissionDeniedError for a Unix socket
    that another user than the server's listens on, or another one than this process's.
    """
    sockets.tune(sock)
    unix = sock.family == socket.AF_UNIX
    if unix and (uid := sockets.owner(sock)) != answer.unix_uid:
        raise errors.PermissionDeniedError(None, None, f"it belongs to user {uid}, not to {answer.unix_uid}")
    if unix and not sockets.is_own(sock):
        raise errors.PermissionDeniedError(None, None, f"it belongs to user {uid}; of other users TCP is taken alone")
    shares = unix and answer.shared_memory and settings.shared_memory and sockets.may_share_memory(sock)
    arena = make_arena(settings) if shares else None
    try:
        streams = further.wanted(sock, answer, settings)
        send_first(sock, hello(answer, arena, always_reads=always_reads, streams=streams), arena)
    except (BrokenPipeError, ConnectionResetError):
        _raise_farewell(sock)
        raise
    return arena


def _raise_farewell(sock: socket.socket) -> None:
    """Raises UnavailableError if the peer, which has hung up, has said why."""
    greeting = Greeting(FrameKind.WELCOME)
    try:
        greeting.receive(sock)
    except (OSError, ProtocolError):
        return
    finally:
        greeting.close()


def agree(
    sock: socket.socket,
    greeting: Greeting,
    message: link_pb2.LinkHello | link_pb2.LinkWelcome,
    arena: Arena | None,
    settings: LinkSettings,
    *,
    lends_variables: bool = True,
    version: int,
) -> Agreed:
    """What our `arena` and the peer's `message` come to. `lends_variables`: as of `send_first`. Raises ProtocolError
    for an arena that was announced and did not come, and for another `version` than was agreed on.
    """
    if (message.version or 1) != version:
        raise ProtocolError(f"a first frame of version {message.version}, where version {version} was agreed on")
    can = protocol.announced(version, version, message.can, "").can & protocol.links().can
    if sock.family != socket.AF_UNIX:
        return Agreed("tcp", None, None, False, version, can)
    if arena is None or not message.arena_bytes:
        return Agreed("unix", None, None, False, version, can)
    if greeting.fd < 0:
        raise ProtocolError("an arena without its descriptor")
    size = message.arena_bytes

    def peer_arena(give_back: Callable[[int], None]) -> ArenaReader:
        most = largest_mapping(settings)
        return ArenaReader(greeting.take_descriptor(), size, give_back, greeting.take_variables(), most)

    return Agreed("unix+shm", arena, peer_arena, lends_variables, version, can)


def failure(where: str | tuple[str, int], error: Exception) -> str:
    """What one way to connect failed with, one of FAILURES, for `no_link`."""
    way = f"Unix socket @{where[1:]}" if isinstance(where, str) else f"TCP {where[0]}:{where[1]}"
    return f"{way}: {words(error) or 'no answer in time'}"


def no_link(peer: str, address: str, failures: list[str]) -> errors.OpError:
    """What to raise when every way has failed."""
    ways = "; ".join(failures) or "it offers no way that fits"
    return errors.UnavailableError(None, None, f"No link to {peer} at {address}: {ways}.")


def send_first(sock: socket.socket, frame: bytes, arena: Arena | None, *, with_variables: bool = True) -> None:
    """Sends a first frame with the descriptors of the arena and, `with_variables`, of our shared ones; it always fits a
    fresh socket. Raises OSError.
    """
    if arena is None:
        sent = sock.send(frame)
    else:
        fds = [arena.take_descriptor()]
        shared = shared_variables.arena() if with_variables else None
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
    """Collects the peer's first frame, which stands alone: the peer says no more before it is answered."""

    def __init__(self, kind: FrameKind) -> None:
        self._kind = kind
        self._data = b""
        #: The descriptors that came with it, of the arena and of the peer's variables, or -1. `close` closes those that
        #: were not taken.
        self.fd = self.variables = -1

    def receive(self, sock: socket.socket) -> bytes | None:
        """Reads once; the frame's header when it is complete, else None. Descriptors are taken over a Unix socket
        alone, which is_own (sockets.py).

        Raises ProtocolError for anything but that frame, and for descriptors that are no memory files; UnavailableError
        with the peer's reason when it sent one or hung up, and what the socket raises.
        """
        fds: list[int] = []
        flags = 0
        if sock.family != socket.AF_UNIX:
            data = sock.recv(HELLO_BYTES)
        elif sockets.is_own(sock):
            data, fds, flags, _ = socket.recv_fds(sock, HELLO_BYTES, _DESCRIPTORS)
        else:
            raise ProtocolError("a Unix socket of another user's")
        all_fit = self._take(fds)
        if flags & socket.MSG_CTRUNC:
            # the system leaves out those that it has no number for here, and those that there is no room for
            if len(fds) < _DESCRIPTORS:
                raise out_of_files()
            raise ProtocolError(f"more than {_DESCRIPTORS} descriptors")
        if not all_fit:
            raise ProtocolError("a descriptor that is no memory file")
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

    def _take(self, fds: list[int]) -> bool:
        """Keeps memory files, and has all else closed apart; whether there was nothing else."""
        fitting = [fd for fd in fds if _is_memory_file(fd)]
        for fd in fds:
            if fd not in fitting:
                apart.close(partial(os.close, fd))
        for fd in fitting:
            if self.fd < 0:
                self.fd = fd
            elif self.variables < 0:
                self.variables = fd
            else:
                os.close(fd)
        return len(fitting) == len(fds)

    def take_descriptor(self) -> int:
        """The descriptor; the caller closes it."""
        fd, self.fd = self.fd, -1
        return fd

    def take_variables(self) -> int:
        """The descriptor of the peer's variables, -1 where it has none; the caller closes it."""
        fd, self.variables = self.variables, -1
        return fd

    def close(self) -> None:
        """Closes descriptors that were not taken."""
        for fd in (self.take_descriptor(), self.take_variables()):
            if fd >= 0:
                os.close(fd)


def _is_memory_file(fd: int) -> bool:
    """Whether it is what arenas are in: such a file can be read, mapped and closed without waiting for anybody."""
    try:
        fcntl.fcntl(fd, fcntl.F_GET_SEALS)
        return stat.S_ISREG(os.fstat(fd).st_mode)
    except OSError:
        return False


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
