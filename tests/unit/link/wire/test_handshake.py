"""First frames where descriptors get lost: this process may open no more files, or the peer sent too many."""

from __future__ import annotations

import array
import errno
import os
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from support.few_files import few_files
from tenfold_core import errors, protocol
from tenfold_core.access.credentials import NO_CREDENTIALS
from tenfold_core.open_files import is_out_of_files
from tenfold_link.link_settings import LinkSettings
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire import handshake
from tenfold_link.wire.frames import FrameKind, FrameReader, pack
from tenfold_protos import link_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_link.wire.frames import Frame

HELLO = pack(FrameKind.HELLO, header=b"")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.mark.parametrize("free", [0, 1])
def test_descriptors_that_found_no_room(pair: tuple[socket.socket, socket.socket], free: int) -> None:
    ours, theirs = pair
    greeting = handshake.Greeting(FrameKind.HELLO)
    fds = [os.open(os.devnull, os.O_RDONLY) for _ in range(2)]
    socket.send_fds(theirs, [HELLO], fds)

    with few_files(free), pytest.raises(OSError, match="Too many open files") as lost:
        greeting.receive(ours)

    assert is_out_of_files(lost.value)
    for fd in fds:
        os.close(fd)
    greeting.close()


def test_more_descriptors_than_a_hello_has(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    greeting = handshake.Greeting(FrameKind.HELLO)
    fds = array.array("i", [0, 1, 2])
    theirs.sendmsg([HELLO], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])

    with pytest.raises(ProtocolError, match="more than 2 descriptors"):
        greeting.receive(ours)

    greeting.close()


def test_no_arena_where_no_file_may_be_opened() -> None:
    with few_files(), pytest.raises(OSError, match="Too many open files"):
        handshake.make_arena(LinkSettings())


def test_a_dial_that_runs_out_of_files_names_it() -> None:
    text = handshake.failure(("ps-0", 2223), OSError(errno.EMFILE, "Too many open files"))

    assert text.startswith("TCP ps-0:2223: this process has all ")
    assert "RLIMIT_NOFILE" in text


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_an_arena_without_a_file_is_refused_where_no_more_may_be_opened(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(handshake, "Arena", fail)

    with pytest.raises(OSError, match=os.strerror(number)):
        handshake.make_arena(LinkSettings())


def test_a_link_goes_on_without_an_arena_where_the_system_gives_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(handshake, "Arena", fail)

    assert handshake.make_arena(LinkSettings()) is None


@pytest.mark.parametrize(
    ("mode", "name", "port", "families"),
    [
        ("auto", b"name", 7, [socket.AF_UNIX, socket.AF_UNSPEC]),
        ("auto", b"", 7, [socket.AF_UNSPEC]),
        ("auto", b"name", 0, [socket.AF_UNIX]),
        ("tcp", b"name", 7, [socket.AF_UNSPEC]),
        ("tcp", b"name", 0, []),
    ],
)
def test_what_is_dialled(mode: str, name: bytes, port: int, families: list[int]) -> None:
    answer = link_pb2.OpenLinkResponse(unix_name=name, tcp_port=port)

    found = handshake.targets(answer, "[::1]:99", LinkSettings(mode=mode))

    assert [family for family, _ in found] == families
    assert not port or found[-1][1] == ("::1", 7)


def only_frame(piece: bytes) -> Frame:
    reader = FrameReader(LinkSettings(), lambda *_: bytearray())
    reader.buffer()[: len(piece)] = piece
    (found,) = reader.received(len(piece))
    return found


ARENA: Any = SimpleNamespace(size=1 << 20)


@pytest.mark.parametrize(("arena", "size"), [(ARENA, 1 << 20), (None, 0)])
def test_first_frames_say_who_speaks_what(arena: Any, size: int) -> None:
    answer = link_pb2.OpenLinkResponse(token=b"secret", version=2)
    hello = only_frame(handshake.hello(answer, arena, always_reads=True))
    welcome = only_frame(handshake.welcome("/job:ps", arena, 2))
    said = link_pb2.LinkHello.FromString(hello.header)
    told = link_pb2.LinkWelcome.FromString(welcome.header)

    assert (hello.kind, welcome.kind) == (FrameKind.HELLO, FrameKind.WELCOME)
    assert (said.version, said.token, said.arena_bytes, said.always_reads) == (2, b"secret", size, True)
    assert (told.version, told.task, told.arena_bytes) == (2, "/job:ps", size)
    assert list(said.can) == list(told.can) == sorted(protocol.links().can)
    old = link_pb2.OpenLinkResponse(token=b"secret")
    assert link_pb2.LinkHello.FromString(only_frame(handshake.hello(old, None, always_reads=False)).header).version == 1


@pytest.mark.parametrize(("mode", "tcp_only"), [("auto", False), ("tcp", True)])
@pytest.mark.parametrize("flag", [True, False])
def test_what_is_asked_for(mode: Any, tcp_only: bool, flag: bool) -> None:
    asked = handshake.ask(LinkSettings(mode=mode, shared_memory=flag), "/job:ps", tls=not flag)

    assert (asked.tcp_only, asked.shared_memory, asked.tls) == (tcp_only, flag, not flag)
    assert (asked.task, asked.pid, asked.version) == ("/job:ps", os.getpid(), protocol.links().newest)
    assert handshake.ask(LinkSettings()).tls is False


def test_a_version_that_is_not_spoken_here_is_refused_and_none_is_the_first() -> None:
    for spoken in range(max(protocol.links().oldest, 0), protocol.links().newest + 1):
        handshake.check_version(link_pb2.OpenLinkResponse(version=spoken), "/job:ps")
    with pytest.raises(errors.FailedPreconditionError, match="/job:ps"):
        handshake.check_version(link_pb2.OpenLinkResponse(version=protocol.links().newest + 1), "/job:ps")
    if protocol.links().oldest == 1:
        handshake.check_version(link_pb2.OpenLinkResponse(), "/job:ps")


def test_a_peer_that_asks_for_tls_needs_certificates_here() -> None:
    context = object()
    there: Any = SimpleNamespace(certificates=SimpleNamespace(client_context=lambda: context))

    assert handshake.client_context(there) is context
    with pytest.raises(errors.FailedPreconditionError, match="no certificate is set here"):
        handshake.client_context(NO_CREDENTIALS)


def test_what_both_first_frames_come_to(pair: tuple[socket.socket, socket.socket]) -> None:
    def agreed(message: Any, arena: Any = ARENA, sock: Any = pair[0], fd: int = 5, **options: Any) -> Any:
        greeting: Any = SimpleNamespace(fd=fd, take_descriptor=lambda: fd, take_variables=lambda: -1)
        return handshake.agree(sock, greeting, message, arena, LinkSettings(), version=1, **options)

    shared, plain = link_pb2.LinkWelcome(arena_bytes=4096), link_pb2.LinkWelcome()
    with socket.socket(socket.AF_INET) as tcp:
        assert agreed(shared, sock=tcp)[:4] == ("tcp", None, None, False)
    assert agreed(plain)[:4] == agreed(shared, arena=None)[:4] == ("unix", None, None, False)
    found = agreed(shared, fd=0)
    assert (found.path, found.arena, found.lends_variables, found.version) == ("unix+shm", ARENA, True, 1)
    assert agreed(shared, lends_variables=False).lends_variables is False
    with pytest.raises(ProtocolError, match="an arena without its descriptor"):
        agreed(shared, fd=-1)
    with pytest.raises(ProtocolError, match="a first frame of version 2, where version 1 was agreed on"):
        agreed(link_pb2.LinkWelcome(version=2))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (pack(FrameKind.GOODBYE, header=b"the token is spent"), "the token is spent"),
        (b"", "it hung up during the handshake"),
        (b"junk" * 9, None),
    ],
)
def test_a_peer_that_hangs_up_may_have_said_why(
    pair: tuple[socket.socket, socket.socket], said: bytes, why: str | None
) -> None:
    ours, theirs = pair
    theirs.sendall(said)
    theirs.close()

    if why is None:
        handshake._raise_farewell(ours)
    else:
        with pytest.raises(errors.UnavailableError, match=why):
            handshake._raise_farewell(ours)


@pytest.mark.parametrize(
    ("address", "host"), [("ps:8000", "ps"), ("[::1]:8000", "::1"), (":8000", "localhost"), ("8000", "localhost")]
)
def test_a_task_is_dialled_where_it_was_asked(address: str, host: str) -> None:
    answer = link_pb2.OpenLinkResponse(tcp_port=9000)

    assert handshake.targets(answer, address, LinkSettings()) == [(socket.AF_UNSPEC, (host, 9000))]


def test_so_much_of_a_peer_s_file_is_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake.shared_variables, "half_of_machine", lambda: 8 << 20)

    assert handshake.largest_mapping(LinkSettings(mapping_bytes=5)) == 5
    assert handshake.largest_mapping(LinkSettings(arena_bytes=1 << 20)) == 8 << 20
    assert handshake.largest_mapping(LinkSettings(arena_bytes=9 << 20)) == 9 << 20
