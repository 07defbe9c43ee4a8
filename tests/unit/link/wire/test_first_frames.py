"""The first frame of either end: what it says, what comes with it, what else is refused, and what the two agree on."""

from __future__ import annotations

import dataclasses
import itertools
import os
import socket
from typing import TYPE_CHECKING, Any, cast

import pytest

from tenfold_core import errors, protocol
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_link.memory import shared_variables
from tenfold_link.memory.arena import Arena
from tenfold_link.memory.extents import PAGE
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire import handshake, sockets
from tenfold_link.wire.apart import Apart
from tenfold_link.wire.frames import MAGIC, PREFIX, FrameKind, pack
from tenfold_link.wire.handshake import Agreed, Greeting
from tenfold_protos import link_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no memfd")

MB = 1 << 20
ME = os.getuid()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Of Unix sockets."""
    ours, theirs = socket.socketpair()
    ours.settimeout(10)
    theirs.settimeout(10)
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def tcp() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ours = socket.create_connection(listening.getsockname(), 10)
        theirs, _ = listening.accept()
    theirs.settimeout(10)
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def arena() -> Iterator[Arena]:
    made = Arena(MB, 0)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def descriptors() -> Iterator[None]:
    """Each test closes what it opens."""
    shared_variables.arena()  # is the process's, and stays
    before = open_files()
    yield
    assert open_files() <= before + 4, "the fixtures' own are closed after this one"


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def memory_file() -> int:
    return os.memfd_create("test", os.MFD_ALLOW_SEALING)


def receive(greeting: Greeting, sock: socket.socket) -> bytes:
    while True:
        found = greeting.receive(sock)
        if found is not None:
            return found


# -- what the two say --------------------------------------------------------------------------------------------------


def test_the_one_that_connects_says_what_it_is_and_wants() -> None:
    settings = dataclasses.replace(DEFAULT_LINK_SETTINGS, mode="auto", shared_memory=True)
    asked, ours = handshake.ask(settings, "/job:ps/replica:0/task:0"), protocol.links()
    assert (asked.version, asked.oldest_version, asked.release) == (ours.newest, ours.oldest, ours.release)
    assert list(asked.can) == sorted(ours.can)
    assert (asked.task, asked.pid) == ("/job:ps/replica:0/task:0", os.getpid())
    assert asked.host_identity == sockets.host_identity()
    assert (asked.shared_memory, asked.tcp_only, asked.tls) == (True, False, False)
    plain = dataclasses.replace(settings, mode="tcp", shared_memory=False)
    asked = handshake.ask(plain, tls=True)
    assert (asked.shared_memory, asked.tcp_only, asked.tls, asked.task) == (False, True, True, "")


def test_a_version_that_is_not_ours_is_refused_with_the_peer_s_name() -> None:
    handshake.check_version(link_pb2.OpenLinkResponse(), "ps")
    handshake.check_version(link_pb2.OpenLinkResponse(version=1), "ps")
    with pytest.raises(errors.FailedPreconditionError, match="ps"):
        handshake.check_version(link_pb2.OpenLinkResponse(version=2, release="9.9"), "ps")


def test_first_frames_say_who_comes_and_what_comes_along(arena: Arena) -> None:
    answer = link_pb2.OpenLinkResponse(version=3, token=b"secret")
    for given, size in ((None, 0), (arena, MB)):
        for always in (False, True):
            frame = handshake.hello(answer, given, always_reads=always)
            hello = handshake.parse_hello(frame[PREFIX.size :])
            assert PREFIX.unpack_from(frame)[:2] == (MAGIC, FrameKind.HELLO)
            assert (hello.version, hello.token, hello.arena_bytes, hello.always_reads) == (3, b"secret", size, always)
            assert list(hello.can) == sorted(protocol.links().can)
        frame = handshake.welcome("/job:ps/task:0", given, 3)
        welcome = handshake.parse_welcome(frame[PREFIX.size :])
        assert PREFIX.unpack_from(frame)[:2] == (MAGIC, FrameKind.WELCOME)
        assert (welcome.version, welcome.task, welcome.arena_bytes) == (3, "/job:ps/task:0", size)
        assert list(welcome.can) == sorted(protocol.links().can)
    silent = handshake.hello(link_pb2.OpenLinkResponse(), None, always_reads=False)
    assert handshake.parse_hello(silent[PREFIX.size :]).version == 1
    assert handshake.parse_welcome(handshake.welcome("t", None)[PREFIX.size :]).version == 1


@pytest.mark.parametrize(("parse", "name"), [(handshake.parse_hello, "HELLO"), (handshake.parse_welcome, "WELCOME")])
def test_what_is_no_message_is_refused(parse: Callable[[bytes], Any], name: str) -> None:
    with pytest.raises(ProtocolError, match=f"a {name} that does not parse"):
        parse(b"\xff\xff")


# -- the frame and its descriptors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 4096 - 24])
def test_a_first_frame_may_come_in_pieces(pair: tuple[socket.socket, socket.socket], size: int) -> None:
    ours, theirs = pair
    header = os.urandom(size)
    frame = pack(FrameKind.HELLO, header=header)
    greeting = Greeting(FrameKind.HELLO)
    cuts = [0, 1, PREFIX.size - 1, PREFIX.size, PREFIX.size + size // 2, len(frame)]
    for begin, end in itertools.pairwise(cuts):
        if begin < end:
            theirs.sendall(frame[begin:end])
            assert greeting.receive(ours) == (header if end == len(frame) else None)


def frame_of(kind: int = FrameKind.HELLO, size: int = 0, rows: int = 0, magic: int = MAGIC, zero: int = 0) -> bytes:
    return PREFIX.pack(magic, kind, zero, 0, size, rows, 0)


@pytest.mark.parametrize("kind", [FrameKind.HELLO, FrameKind.WELCOME])
@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (frame_of(magic=MAGIC + 1), "no {} frame"),
        (frame_of(zero=1), "no {} frame"),
        (frame_of(rows=1), "no {} frame"),
        (frame_of(size=4096 - 24 + 1), "no {} frame"),
        (frame_of(kind=FrameKind.PING), "no {} frame"),
        (None, "no {} frame"),
        (frame_of(size=2) + b"abc", "more than a {} frame"),
    ],
)
def test_what_is_no_first_frame_is_refused(
    pair: tuple[socket.socket, socket.socket], frame: bytes | None, text: str, kind: FrameKind
) -> None:
    ours, theirs = pair
    other = FrameKind.WELCOME if kind is FrameKind.HELLO else FrameKind.HELLO
    if frame is None:
        frame = frame_of(kind=other)
    elif frame[2] == FrameKind.HELLO:
        frame = frame[:2] + bytes([kind]) + frame[3:]
    theirs.sendall(frame)
    with pytest.raises(ProtocolError, match=text.format(kind.name)):
        Greeting(kind).receive(ours)


def test_a_peer_that_hung_up_or_refused_is_unavailable(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.sendall(pack(FrameKind.GOODBYE, header="f\u00fcll".encode()))
    with pytest.raises(errors.UnavailableError, match="it refused: f\u00fcll"):
        Greeting(FrameKind.WELCOME).receive(ours)
    theirs.close()
    with pytest.raises(errors.UnavailableError, match="it hung up during the handshake"):
        Greeting(FrameKind.WELCOME).receive(ours)


@pytest.mark.parametrize("kind", ["pair", "tcp"])
def test_a_frame_comes_over_either_kind_of_socket(kind: str, request: pytest.FixtureRequest) -> None:
    ours, theirs = request.getfixturevalue(kind)
    theirs.sendall(pack(FrameKind.HELLO, header=b"header"))
    assert receive(Greeting(FrameKind.HELLO), ours) == b"header"


def test_descriptors_that_come_are_the_arena_s_and_the_variables(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    fds = [memory_file(), memory_file()]
    inodes = [os.fstat(fd).st_ino for fd in fds]
    socket.send_fds(theirs, [frame_of()], fds)
    for fd in fds:
        os.close(fd)
    before = open_files()
    greeting = Greeting(FrameKind.HELLO)
    assert receive(greeting, ours) == b""
    assert (greeting.fd >= 0, greeting.variables >= 0) == (True, True)
    assert [os.fstat(fd).st_ino for fd in (greeting.fd, greeting.variables)] == inodes
    first, second = greeting.take_descriptor(), greeting.take_variables()
    assert (greeting.fd, greeting.variables) == (-1, -1)
    assert (greeting.take_descriptor(), greeting.take_variables()) == (-1, -1)
    greeting.close()
    assert open_files() == before + 2
    os.close(first)
    os.close(second)


def test_descriptors_that_nobody_took_are_closed(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    before = open_files()
    greeting = Greeting(FrameKind.HELLO)
    for piece in (frame_of()[:5], frame_of()[5:9], frame_of()[9:]):
        fd = memory_file()
        socket.send_fds(theirs, [piece], [fd])
        os.close(fd)
        greeting.receive(ours)
    assert open_files() == before + 2, "of three that came one by one, two are kept"
    greeting.close()
    assert open_files() == before
    greeting.close()


@pytest.mark.parametrize("which", ["device", "pipe", "folder", "file"])
@pytest.mark.parametrize("place", [0, 1])
def test_what_is_no_memory_file_is_refused_and_closed_elsewhere(
    pair: tuple[socket.socket, socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    which: str,
    place: int,
) -> None:
    closed: list[int] = []

    class Here(Apart):
        def close(self, closing: Callable[[], None]) -> None:
            closed.append(1)
            closing()

    monkeypatch.setattr(handshake, "apart", Here())
    ours, theirs = pair
    before = open_files()
    folder = "/proc/self" if which == "file" else str(tmp_path_factory.mktemp("folder"))
    other = {
        "device": lambda: os.open(os.devnull, os.O_RDONLY),
        "pipe": lambda: os.pipe()[0],
        "folder": lambda: os.open(folder, os.O_RDONLY),
        "file": lambda: os.open(f"{folder}/status", os.O_RDONLY),
    }[which]()
    fds = [memory_file()]
    fds.insert(place, other)
    socket.send_fds(theirs, [frame_of()], fds)
    for fd in fds:
        os.close(fd)
    greeting = Greeting(FrameKind.HELLO)
    with pytest.raises(ProtocolError, match="a descriptor that is no memory file"):
        greeting.receive(ours)
    assert closed == [1]
    assert greeting.fd >= 0, "the memory file is kept until the greeting is closed"
    greeting.close()
    assert open_files() - before <= (1 if which == "pipe" else 0)


def test_the_number_nought_is_a_descriptor_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without a standard input gets it next."""
    closed: list[int] = []
    monkeypatch.setattr(handshake.os, "close", closed.append)
    monkeypatch.setattr(handshake, "_is_memory_file", lambda fd: True)
    greeting = Greeting(FrameKind.HELLO)
    assert greeting._take([0, 1, 2])
    assert (greeting.fd, greeting.variables, closed) == (0, 1, [2])
    greeting.close()
    assert closed == [2, 0, 1]
    greeting.fd, greeting.variables = -1, -1
    assert greeting._take([7])
    assert greeting._take([0])
    assert greeting._take([5])
    assert (greeting.fd, greeting.variables, closed) == (7, 0, [2, 0, 1, 5])
    greeting.close()
    assert closed == [2, 0, 1, 5, 7, 0]


@pytest.mark.parametrize(("count", "error"), [(0, OSError), (1, OSError), (2, ProtocolError)])
def test_descriptors_that_the_system_left_out_are_missed(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch, count: int, error: type[Exception]
) -> None:
    ours, _ = pair
    made = [memory_file() for _ in range(count)]
    monkeypatch.setattr(
        handshake.socket, "recv_fds", lambda *_: (frame_of(), made, socket.MSG_CTRUNC | socket.MSG_WAITALL, None)
    )
    greeting = Greeting(FrameKind.HELLO)
    with pytest.raises(error, match="more than 2 descriptors" if count == 2 else "Too many open files"):
        greeting.receive(ours)
    greeting.close()
    for fd in made:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


def test_a_socket_of_another_user_is_not_read(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pair
    theirs.sendall(frame_of())
    monkeypatch.setattr(sockets, "is_own", lambda sock: False)
    with pytest.raises(ProtocolError, match="a Unix socket of another user's"):
        Greeting(FrameKind.HELLO).receive(ours)


def test_the_arena_goes_along_and_the_variables_where_it_is_asked(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pair
    variables = Arena(MB, 0)
    monkeypatch.setattr(shared_variables, "arena", lambda: variables)
    inode = os.fstat(variables.descriptor).st_ino
    for with_variables in (True, False):
        sent = Arena(MB, 0)
        own = os.fstat(sent.descriptor).st_ino
        before = open_files()
        handshake.send_first(theirs, handshake.welcome("t", sent), sent, with_variables=with_variables)
        assert open_files() == before - 1, "this end's copies are closed"
        greeting = Greeting(FrameKind.WELCOME)
        assert handshake.parse_welcome(receive(greeting, ours)).task == "t"
        assert os.fstat(greeting.fd).st_ino == own
        assert (greeting.variables >= 0) == with_variables
        assert not with_variables or os.fstat(greeting.variables).st_ino == inode
        greeting.close()
        sent.close()
    sent = Arena(MB, 0)
    handshake.send_first(theirs, frame_of(), sent)
    greeting = Greeting(FrameKind.HELLO)
    receive(greeting, ours)
    assert greeting.variables >= 0, "unless it is said otherwise"
    greeting.close()
    sent.close()
    monkeypatch.setattr(shared_variables, "arena", lambda: None)
    sent = Arena(MB, 0)
    handshake.send_first(theirs, frame_of(), sent)
    greeting = Greeting(FrameKind.HELLO)
    receive(greeting, ours)
    assert (greeting.fd >= 0, greeting.variables) == (True, -1)
    greeting.close()
    sent.close()
    variables.close()


def test_a_socket_that_does_not_take_the_frame_is_an_error(arena: Arena) -> None:
    class Narrow:
        def send(self, data: bytes) -> int:
            return len(data) - 1

    with pytest.raises(OSError, match="does not take a frame"):
        handshake.send_first(cast("Any", Narrow()), frame_of(), None)


# -- what the two agree on ---------------------------------------------------------------------------------------------


def agree(sock: socket.socket, arena: Arena | None, message: Any, version: int = 1, **more: Any) -> Agreed:
    greeting = Greeting(FrameKind.HELLO)
    return handshake.agree(sock, greeting, message, arena, DEFAULT_LINK_SETTINGS, version=version, **more)


def test_both_use_what_both_can(
    pair: tuple[socket.socket, socket.socket], tcp: tuple[socket.socket, socket.socket], arena: Arena
) -> None:
    ability = next(iter(protocol.links().can))
    hello = link_pb2.LinkHello(version=1, can=[ability, "more"], arena_bytes=MB)
    assert agree(tcp[0], arena, hello) == Agreed("tcp", None, None, False, 1, frozenset((ability,)))
    assert agree(pair[0], None, hello) == Agreed("unix", None, None, False, 1, frozenset((ability,)))
    hello.arena_bytes = 0
    assert agree(pair[0], arena, hello) == Agreed("unix", None, None, False, 1, frozenset((ability,)))
    assert agree(pair[0], None, link_pb2.LinkWelcome()).can == frozenset(), "who says nothing speaks version 1"
    assert agree(pair[0], None, link_pb2.LinkHello(version=4), 4).version == 4


@pytest.mark.parametrize(("said", "version"), [(0, 2), (1, 2), (2, 1)])
def test_another_version_than_was_agreed_on_is_refused(
    pair: tuple[socket.socket, socket.socket], said: int, version: int
) -> None:
    with pytest.raises(ProtocolError, match=f"of version {said}, where version {version} was agreed on"):
        agree(pair[0], None, link_pb2.LinkHello(version=said), version)


@pytest.mark.parametrize("lends", [True, False])
def test_shared_memory_is_what_came_and_is_mapped_once(
    pair: tuple[socket.socket, socket.socket], arena: Arena, lends: bool
) -> None:
    ours, theirs = pair
    peer = Arena(MB, 0)
    peer.reserve(MB)
    handshake.send_first(theirs, frame_of(), peer, with_variables=False)
    greeting = Greeting(FrameKind.HELLO)
    receive(greeting, ours)
    message = link_pb2.LinkHello(arena_bytes=MB)
    found = handshake.agree(ours, greeting, message, arena, DEFAULT_LINK_SETTINGS, version=1, lends_variables=lends)
    assert (found.path, found.arena is arena, found.lends_variables) == ("unix+shm", True, lends)
    assert found.peer_arena is not None
    back: list[int] = []
    reader = found.peer_arena(back.append)
    assert greeting.fd == -1
    block = peer.allocate(5)
    assert block is not None
    block.array[:] = 7
    block.lend(peer)
    opened: Any = reader.open(block.id, block.offset, 5)
    assert opened.tolist() == [7] * 5
    del opened
    assert back == [block.id]
    peer.close()


def test_an_arena_that_was_announced_has_to_come(pair: tuple[socket.socket, socket.socket], arena: Arena) -> None:
    with pytest.raises(ProtocolError, match="an arena without its descriptor"):
        agree(pair[0], arena, link_pb2.LinkHello(arena_bytes=MB))


def test_an_arena_that_came_as_descriptor_nought_is_one(
    pair: tuple[socket.socket, socket.socket], arena: Arena
) -> None:
    greeting = Greeting(FrameKind.HELLO)
    greeting.fd = 0
    message = link_pb2.LinkHello(arena_bytes=MB)
    found = handshake.agree(pair[0], greeting, message, arena, DEFAULT_LINK_SETTINGS, version=1)
    assert found.path == "unix+shm"


def test_a_peer_s_arena_is_mapped_up_to_the_limit(pair: tuple[socket.socket, socket.socket], arena: Arena) -> None:
    ours, theirs = pair
    settings = dataclasses.replace(DEFAULT_LINK_SETTINGS, mapping_bytes=MB - 1)
    peer = Arena(MB, 0)
    handshake.send_first(theirs, frame_of(), peer, with_variables=False)
    greeting = Greeting(FrameKind.HELLO)
    receive(greeting, ours)
    found = handshake.agree(ours, greeting, link_pb2.LinkHello(arena_bytes=MB), arena, settings, version=1)
    assert found.peer_arena is not None
    assert found.lends_variables, "unless it is said otherwise"
    with pytest.raises(ProtocolError, match=f"an arena of {MB} bytes; {MB - 1} at most"):
        found.peer_arena(lambda block: None)
    peer.close()


def test_the_largest_mapping_is_what_is_set_or_half_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = dataclasses.replace(DEFAULT_LINK_SETTINGS, mapping_bytes=0, arena_bytes=3 * PAGE)
    monkeypatch.setattr(shared_variables, "half_of_machine", lambda: 5 * PAGE - 1)
    assert handshake.largest_mapping(settings) == 5 * PAGE
    monkeypatch.setattr(shared_variables, "half_of_machine", lambda: PAGE)
    assert handshake.largest_mapping(settings) == 3 * PAGE
    assert handshake.largest_mapping(dataclasses.replace(settings, mapping_bytes=777)) == 777


# -- the end that connects ---------------------------------------------------------------------------------------------


def begin(sock: socket.socket, settings: LinkSettings = DEFAULT_LINK_SETTINGS, **answer: Any) -> Arena | None:
    told = {"unix_uid": ME, "shared_memory": True, "token": b"t", **answer}
    return handshake.begin(sock, link_pb2.OpenLinkResponse(**told), settings, always_reads=True)


def test_a_hello_goes_with_an_arena_where_both_share_memory(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    arena = begin(theirs)
    assert arena is not None
    greeting = Greeting(FrameKind.HELLO)
    hello = handshake.parse_hello(receive(greeting, ours))
    assert (hello.arena_bytes, hello.token, hello.always_reads) == (arena.size, b"t", True)
    assert greeting.fd >= 0
    greeting.close()
    arena.close()


@pytest.mark.parametrize("who", ["peer", "settings", "socket"])
def test_a_hello_goes_alone_where_one_does_not(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    ours, theirs = pair
    if who == "socket":
        monkeypatch.setattr(sockets, "may_share_memory", lambda sock: False)
    settings = dataclasses.replace(DEFAULT_LINK_SETTINGS, shared_memory=who != "settings")
    assert begin(theirs, settings, shared_memory=who != "peer") is None
    greeting = Greeting(FrameKind.HELLO)
    assert handshake.parse_hello(receive(greeting, ours)).arena_bytes == 0
    assert greeting.fd == greeting.variables == -1


def test_over_tcp_a_hello_goes_alone_whoever_listens(tcp: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = tcp
    assert begin(theirs, unix_uid=ME + 1) is None
    assert theirs.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert handshake.parse_hello(receive(Greeting(FrameKind.HELLO), ours)).arena_bytes == 0


def test_another_user_s_socket_is_refused_before_a_word_is_said(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pair
    with pytest.raises(errors.PermissionDeniedError, match=f"it belongs to user {ME}, not to {ME + 1}"):
        begin(theirs, unix_uid=ME + 1)
    monkeypatch.setattr(sockets, "is_own", lambda sock: False)
    with pytest.raises(errors.PermissionDeniedError, match=f"it belongs to user {ME}; of other users TCP"):
        begin(theirs)
    ours.setblocking(False)
    with pytest.raises(BlockingIOError):
        ours.recv(1)


def test_a_peer_that_hung_up_with_a_reason_is_unavailable(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    fd = memory_file()
    socket.send_fds(ours, [pack(FrameKind.GOODBYE, header=b"too many")], [fd])
    os.close(fd)
    ours.close()
    before = open_files()
    with pytest.raises(errors.UnavailableError, match="it refused: too many"):
        begin(theirs, shared_memory=False)
    assert open_files() == before, "what came along is closed"


def test_a_peer_that_hung_up_without_a_word_breaks_the_pipe(tcp: tuple[socket.socket, socket.socket]) -> None:
    class Broken(socket.socket):
        def send(self, data: Any, flags: int = 0) -> int:
            raise BrokenPipeError("gone")

    ours, theirs = tcp
    ours.sendall(b"noise, and no frame at all")
    with Broken(fileno=os.dup(theirs.fileno())) as broken, pytest.raises(BrokenPipeError, match="gone"):
        begin(broken)


def test_where_it_is_dialled_and_what_is_said_of_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Agreed("tcp", None, None) == Agreed("tcp", None, None, False, 1, frozenset())
    answer = link_pb2.OpenLinkResponse(unix_name=b"name", tcp_port=7)
    settings = LinkSettings(mode="auto")
    unix = (socket.AF_UNIX, "\0name")
    assert handshake.targets(answer, "host:99", settings) == [unix, (socket.AF_UNSPEC, ("host", 7))]
    assert handshake.targets(answer, ":99", settings) == [unix, (socket.AF_UNSPEC, ("localhost", 7))]
    monkeypatch.setattr(handshake, "apart", Apart(waiting=0))
    assert handshake.targets(answer, "host:99", settings) == [(socket.AF_UNSPEC, ("host", 7))]
    ways = [handshake.failure("\0name", OSError("refused")), handshake.failure(("host", 7), TimeoutError())]
    assert ways == ["Unix socket @name: refused", "TCP host:7: no answer in time"]
    assert handshake.no_link("ps", "host:99", ways).message == (
        "No link to ps at host:99: Unix socket @name: refused; TCP host:7: no answer in time."
    )
    assert "it offers no way that fits" in handshake.no_link("ps", "host:99", []).message


def test_an_arena_is_made_of_the_settings() -> None:
    made = handshake.make_arena(dataclasses.replace(DEFAULT_LINK_SETTINGS, arena_bytes=5 * PAGE, arena_keep_bytes=PAGE))
    assert made is not None
    assert made.size == 5 * PAGE
    made.close()


def test_tls_needs_certificates() -> None:
    class Without:
        certificates = None

    class With:
        class certificates:
            @staticmethod
            def client_context() -> str:
                return "context"

    assert handshake.client_context(cast("Any", With())) == cast("Any", "context")
    with pytest.raises(errors.FailedPreconditionError, match="TENFOLD_TLS_CERT"):
        handshake.client_context(cast("Any", Without()))
