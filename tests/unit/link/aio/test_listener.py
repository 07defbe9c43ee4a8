"""The listener of links: what it promises and to whom, what a token is good for, who is counted, and how a connection
that comes to nothing ends. No sockets; tests/cluster/test_link_listener.py has real ones."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import socket
import ssl
from types import SimpleNamespace
from typing import Any

import pytest

from support.fake_loop import FakeLoop
from tenfold_core import errors, protocol
from tenfold_core.access import audit
from tenfold_core.access.gate import NOBODY, Caller, Gate
from tenfold_core.access.roles import Role
from tenfold_core.open_files import TOLD
from tenfold_link.aio import listener as listener_module
from tenfold_link.aio.listener import LinkListener
from tenfold_link.aio.methods import LinkMethod
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire import handshake, sockets
from tenfold_link.wire.frames import FrameKind, pack
from tenfold_protos import link_pb2

TASK = "/job:ps/replica:0/task:0"
NAMES = {name: getattr(socket, name) for name in dir(socket) if name.isupper()}


def listening(on_link: Any = lambda link: {}, certificates: Any = None, **settings: Any) -> Any:
    """A listener on a loop that the test turns, with both ways in open, as far as it can see."""
    made: Any = LinkListener(
        TASK, on_link, dataclasses.replace(DEFAULT_LINK_SETTINGS, **settings), certificates=certificates
    )
    made._loop, made._accepting = FakeLoop(), SimpleNamespace(sockets={object()})
    made._unix_name, made._tcp_port, made._host_identity = b"name", 7000, "here"
    return made


def request(**other: Any) -> link_pb2.OpenLinkRequest:
    asked = {"version": 1, "oldest_version": 1, "host_identity": "here", "shared_memory": True, "pid": 17, **other}
    return link_pb2.OpenLinkRequest(**asked)


# -- what is promised --------------------------------------------------------------------------------------------------


def test_what_is_promised_and_kept_for_the_token() -> None:
    made, ours = listening(), protocol.links()
    answer = made.open_link(request())

    assert (answer.version, list(answer.can), answer.release) == (1, sorted(ours.can), ours.release)
    assert (answer.task, answer.unix_name, answer.unix_uid) == (TASK, b"name", sockets.user())
    assert (answer.tcp_port, answer.shared_memory, answer.tls, len(answer.token)) == (7000, True, False, 32)
    assert made._tokens == {
        answer.token: (
            made._loop.now + 30.0, "the client with pid 17", True, Role.ADMIN, Caller(Role.ADMIN, ""), "", 1
        )
    }  # fmt: skip
    caller = Caller(Role.RUN, "token x")
    second = made.open_link(request(task="/job:w" + "x" * 300), Role.RUN, "x at 10.0.0.1", caller)
    kept = made._tokens[second.token]
    assert (kept.who, kept.caller, kept.name, kept.role) == ("/job:w" + "x" * 194, caller, "x at 10.0.0.1", Role.RUN)
    assert list(made._tokens) == [answer.token, second.token], "oldest first"
    assert made._agreed == {"": 1, "x at 10.0.0.1": 1}


@pytest.mark.parametrize("certificates", [None, object()])
@pytest.mark.parametrize("asked", [False, True])
def test_tls_is_promised_where_it_is_asked_for_and_can_be(certificates: Any, asked: bool) -> None:
    answer = listening(certificates=certificates).open_link(request(tls=asked))
    assert answer.tls is (asked and certificates is not None)


def test_a_unix_socket_is_for_those_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def ways(asked: Any, role: Role = Role.ADMIN, name: bytes = b"name", **settings: Any) -> tuple[bytes, bool]:
        made = listening(**settings)
        made._unix_name = name
        answer = made.open_link(asked, role)
        assert (answer.tcp_port, answer.shared_memory) == (7000, made._tokens[answer.token].shares_memory)
        return answer.unix_name, answer.shared_memory

    assert ways(request()) == (b"name", True)
    assert ways(request(host_identity="elsewhere")) == (b"", False)
    assert ways(request(tcp_only=True)) == (b"", False)
    assert ways(request(), name=b"") == (b"", False)
    assert ways(request(shared_memory=False)) == (b"name", False)
    assert ways(request(), shared_memory=False) == (b"name", False)
    assert ways(request(), Role.RUN) == (b"name", True)
    assert ways(request(), Role.RUN_UNTRUSTED) == (b"name", False)
    monkeypatch.setattr(listener_module, "apart", SimpleNamespace(has_room=False))
    assert ways(request()) == (b"", False)


def test_where_there_is_no_way_none_is_promised() -> None:
    made = listening()
    made._tcp_port = 0
    assert made.open_link(request()).unix_name == b"name"
    with pytest.raises(errors.FailedPreconditionError, match=f"{TASK} has no TCP port for links"):
        made.open_link(request(tcp_only=True))
    made._accepting.sockets.clear()
    for accepting in (made._accepting, None):
        made._accepting = accepting
        with pytest.raises(errors.FailedPreconditionError, match=f"{TASK} opens no links"):
            made.open_link(request())
    assert len(made._tokens) == 1


def test_versions_that_do_not_fit_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    made, newest = listening(), protocol.links().newest
    with pytest.raises(errors.InvalidArgumentError, match="There is no version 0 of links"):
        made.open_link(request(version=0))
    assert caplog.records == []
    with pytest.raises(protocol.VersionError, match=r"the client with pid 17 .* speaks version"):
        made.open_link(request(version=newest + 1, oldest_version=newest + 1))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert caplog.records[0].getMessage().startswith(f"{TASK} opens no link: the client with pid 17")
    assert made.open_link(request(version=newest + 1)).version == newest
    assert len(made._tokens) == 1


def test_tokens_that_wait_to_be_shown_are_bounded_and_run_out() -> None:
    made = listening(tokens=2)
    made.open_link(request(), name="one")
    made._loop.now += 10
    second = made.open_link(request(), name="two")
    made._loop.now += 19.9
    with pytest.raises(errors.ResourceExhaustedError, match=r"2 links were agreed on .*; 2 is .*TENFOLD_LINK_TOKENS"):
        made.open_link(request())
    made._loop.now += 0.1
    third = made.open_link(request(), name="three")
    assert list(made._tokens) == [second.token, third.token]
    assert made._agreed == {"two": 1, "three": 1}


def test_a_token_is_taken_once() -> None:
    made = listening()
    tokens = [made.open_link(request(), name="x").token for _ in range(2)]
    kept = made._tokens[tokens[0]]
    assert made._taken(tokens[0]) is kept
    assert made._taken(tokens[0]) is None
    assert made._agreed == {"x": 1}
    made._taken(tokens[1])
    assert "x" not in made._agreed
    assert made._tokens == {}


def test_links_are_bounded_with_those_that_were_agreed_on() -> None:
    made = listening(links=3)
    made._links = {object(): None}
    made.open_link(request())
    made.open_link(request())
    with pytest.raises(errors.ResourceExhaustedError, match=f"{TASK} has 1 links, and .*; 3 is .*TENFOLD_LINK_LINKS"):
        made.open_link(request())
    assert len(made._tokens) == 2


def test_one_peer_has_so_many_and_others_some_too() -> None:
    made = listening(links_per_peer=3)
    made._shares["x"] = SimpleNamespace(links=1)
    made.open_link(request(), name="x")
    made.open_link(request(), name="x")
    with pytest.raises(errors.ResourceExhaustedError, match=r"x has 3 links to .*; 3 is .*_LINKS_PER_PEER"):
        made.open_link(request(), name="x")
    for _ in range(4):
        made.open_link(request(), name="")
    made.open_link(request(), name="y")


# -- who shows a token -------------------------------------------------------------------------------------------------


class FakeLink:
    """A link whose end the test tells."""

    def __init__(self, sock: Any, **options: Any) -> None:
        self.sock, self.options = sock, options
        self.served: Any = None
        self.limits: list[Any] = []
        self.aborted: list[str] = []
        self.closed_for: list[str] = []
        self.left: list[Any] = []

    def limit(self, inflow: Any) -> None:
        assert self.served is None
        self.limits.append(inflow)

    def serve(self, methods: Any) -> None:
        self.served = methods

    def on_close(self, callback: Any) -> None:
        self.left.append(callback)

    def abort(self, reason: str) -> None:
        self.aborted.append(reason)

    async def close(self, reason: str) -> None:
        self.closed_for.append(reason)


class Handshake:
    """What a handshake does, played: `sent` is each first frame's descriptors and header; `error` is raised for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[Any] = []
        self.agreed: list[Any] = []
        self.error: BaseException | None = None
        self.may_share = True
        self.arena: Any = SimpleNamespace(size=4096)
        monkeypatch.setattr(listener_module, "Link", FakeLink)
        monkeypatch.setattr(handshake, "make_arena", lambda settings: self.arena)
        monkeypatch.setattr(handshake, "agree", self.agree)
        monkeypatch.setattr(handshake, "send_first", self.send_first)
        monkeypatch.setattr(sockets, "may_share_memory", lambda sock: self.may_share)

    def agree(self, sock: Any, greeting: Any, hello: Any, arena: Any, settings: Any, **more: Any) -> Any:
        self.agreed.append((arena, more["lends_variables"], more["version"]))
        return "agreed"

    def send_first(self, sock: Any, frame: bytes, arena: Any, *, with_variables: bool) -> None:
        if self.error is not None:
            raise self.error
        self.sent.append((frame, arena, with_variables))


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Handshake:
    return Handshake(monkeypatch)


async def admitted(made: Any, family: int = socket.AF_UNIX, role: Role = Role.ADMIN, **hello: Any) -> Any:
    asked = request(task="/job:w")
    token = made.open_link(asked, role, hello.pop("name", "x")).token
    said = link_pb2.LinkHello(**{"token": token, "arena_bytes": 1, "always_reads": True, **hello})
    return await made._admit(SimpleNamespace(family=family), None, said)


async def test_a_link_is_what_was_agreed_on(played: Handshake) -> None:
    methods = {1: LinkMethod("Run", lambda *_: None, Role.RUN), 2: LinkMethod("Push", lambda *_: None)}
    seen: list[Any] = []
    made = listening(on_link=lambda link: (seen.append(link), methods)[1])
    link = await admitted(made)

    assert (made.links, seen) == ({link}, [link])
    assert link.options == {
        "peer": "/job:w", "settings": made._settings, "agreed": "agreed", "peer_always_reads": True,
        "share": made._shares["x"],
    }  # fmt: skip
    assert (link.peer_role, link.peer_caller) == (Role.ADMIN, Caller(Role.ADMIN, "x"))
    assert (link.served, link.limits, made._shares["x"].links) == (methods, [], 1)
    assert played.agreed == [(played.arena, True, 1)]
    assert played.sent == [(handshake.welcome(TASK, played.arena, 1), played.arena, True)]
    quiet = await admitted(made, always_reads=False)
    assert quiet.options["peer_always_reads"] is False


@pytest.mark.parametrize(("role", "member"), [(Role.REGISTER, True), (Role.RUN, False)])
async def test_variables_and_no_limits_are_for_members(played: Handshake, role: Role, member: bool) -> None:
    methods = {2: LinkMethod("Push", lambda *_: None)}
    made = listening(on_link=lambda link: methods)
    link = await admitted(made, role=role)

    assert (played.agreed[0][1], played.sent[0][2]) == (member, member)
    assert (link.served == methods) is member
    share = made._shares["x"].inflow
    assert [(each.who, each.limit, each.variable, each.whole) for each in link.limits] == (
        [] if member else [(share.who, share.limit, share.variable, share)]
    )


@pytest.mark.parametrize("without", ["", "unix", "promise", "peer's", "same user"])
async def test_memory_is_shared_where_all_want_it(played: Handshake, without: str) -> None:
    made = listening(shared_memory=without != "promise")
    played.may_share = without != "same user"
    family = socket.AF_INET if without == "unix" else socket.AF_UNIX
    await admitted(made, family, arena_bytes=0 if without == "peer's" else 1)
    assert (played.agreed[0][0], played.sent[0][1]) == ((None, None) if without else (played.arena, played.arena))


async def test_a_token_is_good_for_a_time_and_no_other_one_at_all(played: Handshake) -> None:
    made = listening()
    token = made.open_link(request()).token
    made._loop.now += 30.0
    assert await made._admit(SimpleNamespace(family=socket.AF_UNIX), None, link_pb2.LinkHello(token=token))
    late = made.open_link(request()).token
    made._loop.now += 30.1
    for bad in (late, token, b""):
        with pytest.raises(ProtocolError, match="a token that is not good"):
            await made._admit(SimpleNamespace(family=socket.AF_UNIX), None, link_pb2.LinkHello(token=bad))
    assert len(made.links) == 1


@pytest.mark.parametrize("where", ["methods", "welcome"])
async def test_a_link_that_fails_at_its_beginning_is_ended_and_not_counted(
    played: Handshake, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    links: list[Any] = []

    def on_link(link: Any) -> Any:
        links.append(link)
        if where == "methods":
            raise ValueError("no")
        return {}

    played.error = ValueError("no") if where == "welcome" else None
    made = listening(on_link=on_link)
    with pytest.raises(ValueError, match="no"):
        await admitted(made)
    assert (links[0].aborted, links[0].served) == (["the handshake failed"], None)
    assert (made.links, made._shares) == (frozenset(), {})


async def test_a_peer_is_counted_until_its_last_link_has_left(played: Handshake) -> None:
    made = listening()
    first, second, other = await admitted(made), await admitted(made), await admitted(made, name="y")
    share = made._shares["x"]
    assert (share.links, made._shares["y"].links) == (2, 1)
    assert second.options["share"] is share
    for callback in first.left:
        callback(None)
    assert (share.links, made.links) == (1, {second, other})
    for callback in second.left:
        callback(None)
    assert list(made._shares) == ["y"]
    assert made.links == {other}


@pytest.mark.parametrize(
    ("settings", "limits"),
    [
        ({}, (1001, 1001, 1501)),
        ({"peer_outbound_bytes": 5, "peer_inbound_bytes": 6, "inbound_bytes": 7}, (5, 6, 7)),
    ],
)
def test_what_a_peer_may_have_on_its_way(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, int], limits: tuple[int, ...]
) -> None:
    monkeypatch.setattr(listener_module, "tensor_limit", lambda: 1001)
    made = listening(**settings)
    share, other = made._share("x"), made._share("")

    whole = share.inflow.whole
    assert whole is other.inflow.whole
    assert (share.most_bytes, share.inflow.limit, whole.limit) == limits
    assert (share.inflow.who, other.inflow.who, whole.who) == ("x", "this peer", "all who may only run graphs")
    assert share.inflow.variable == "TENFOLD_LINK_PEER_INBOUND_BYTES"
    assert whole.variable == "TENFOLD_LINK_INBOUND_BYTES"
    assert made._shares == {}, "until a link has entered"


# -- a connection that comes to nothing --------------------------------------------------------------------------------


class Sock:
    def __init__(self, family: int = socket.AF_UNIX, peer: Any = ("10.0.0.9", 5)) -> None:
        self.family, self._peer = family, peer
        self.sent: list[bytes] = []
        self.closed = 0
        self.error: OSError | None = None

    def send(self, data: bytes) -> int:
        if self.error is not None:
            raise self.error
        self.sent.append(data)
        return len(data)

    def getpeername(self) -> Any:
        if isinstance(self._peer, OSError):
            raise self._peer
        return self._peer

    def close(self) -> None:
        self.closed += 1


class NoCipher(ssl.SSLError):
    reason = "NO_SHARED_CIPHER"


class Greeted:
    """A listener to which somebody has connected; `outcome` is raised or returned by what admits it."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, outcome: Any, sock: Sock | None = None, **settings: Any
    ) -> None:
        self.made = listening(**settings)
        self.made._admit = self.admit
        self.outcome, self.sock = outcome, sock or Sock()
        self.closed: list[Any] = []
        self.tuned: list[Any] = []
        self.headers: list[Any] = [None, None, link_pb2.LinkHello(token=b"t").SerializeToString()]
        self.refused: list[Any] = []
        monkeypatch.setattr(listener_module, "when_readable", self.when_readable)
        monkeypatch.setattr(sockets, "tune", self.tuned.append)
        monkeypatch.setattr(handshake.Greeting, "close", lambda greeting: self.closed.append(greeting))
        note = lambda caller, action, why, address: self.refused.append((caller, action, why, address))  # noqa: E731
        monkeypatch.setattr(audit.refusals, "note", note)

    async def when_readable(self, sock: Any, receive: Any) -> Any:
        assert receive.__self__._kind is FrameKind.HELLO
        return self.headers.pop(0)

    async def admit(self, sock: Any, greeting: Any, hello: Any) -> Any:
        assert (sock, hello.token) == (self.sock, b"t")
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


async def test_one_that_is_admitted_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    greeted = Greeted(monkeypatch, object())
    await greeted.made._greet(greeted.sock)
    assert (greeted.sock.closed, len(greeted.closed), greeted.tuned) == (0, 1, [greeted.sock])


@pytest.mark.parametrize(
    ("error", "level", "text", "why", "said"),
    [
        (ProtocolError("nonsense"), "WARNING", "a connection is refused: it sent nonsense", "it sent nonsense",
         b"you sent nonsense"),
        (NoCipher(1, "odd"), "WARNING", "a connection is refused: no handshake of TLS: no shared cipher",
         "no handshake of TLS: no shared cipher", None),
        (OSError(errno.EMFILE, "Too many open files"), "WARNING", "a connection came to no link: this process has all ",
         None, TOLD.encode()),
        (OSError(errno.EPIPE, "Broken pipe"), "INFO", "a connection came to no link: [Errno 32] Broken pipe", None,
         None),
        (EOFError("it hung up"), "INFO", "a connection came to no link: it hung up", None, None),
        (TimeoutError(), "INFO", "a connection came to no link: ", None, None),
        (errors.unavailable("gone"), "INFO", "a connection came to no link: gone", None, None),
    ],
)  # fmt: skip
async def test_one_that_comes_to_nothing_is_closed_in_words(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    level: str,
    text: str,
    why: str | None,
    said: bytes | None,
) -> None:
    caplog.set_level("INFO", "tenfold_link.aio.listener")
    greeted = Greeted(monkeypatch, error)
    await greeted.made._greet(greeted.sock)

    assert (greeted.sock.closed, len(greeted.closed)) == (1, 1)
    (record,) = caplog.records
    assert record.levelname == level
    assert record.getMessage().startswith(f"{TASK}: {text}")
    assert greeted.sock.sent == ([] if said is None else [pack(FrameKind.GOODBYE, header=said)])
    assert len(greeted.refused) == (why is not None)
    if why is not None:
        caller, action, noted, address = greeted.refused[0]
        assert (caller, action, address) == (NOBODY, "open link", "its own machine")
        assert noted.startswith(why)


async def test_whoever_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    greeted = Greeted(monkeypatch, object(), hello_seconds=0.0)

    async def silent(*_: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(listener_module, "when_readable", silent)
    await greeted.made._greet(greeted.sock)
    assert greeted.sock.closed == 1


async def test_a_peer_that_hears_nothing_more_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (ProtocolError("nonsense"), OSError(errno.ENFILE, "Too many open files in system")):
        sock = Sock(socket.AF_INET, OSError("gone"))
        sock.error = BrokenPipeError("gone")
        greeted = Greeted(monkeypatch, error, sock)
        await greeted.made._greet(sock)
        assert sock.closed == 1
    assert greeted.refused == []
    greeted = Greeted(monkeypatch, ProtocolError("nonsense"), Sock(socket.AF_INET))
    await greeted.made._greet(greeted.sock)
    assert [address for *_, address in greeted.refused] == ["ipv4:10.0.0.9:5"]
    greeted = Greeted(monkeypatch, ProtocolError("nonsense"), Sock(socket.AF_INET, OSError("gone")))
    await greeted.made._greet(greeted.sock)
    assert [address for *_, address in greeted.refused] == [""]


async def test_tls_is_for_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    secured: list[Any] = []

    async def secure(sock: Any) -> Any:
        secured.append(sock)
        return sock

    for family in (socket.AF_UNIX, socket.AF_INET):
        greeted = Greeted(monkeypatch, object(), Sock(family))
        greeted.made._secured = secure
        await greeted.made._greet(greeted.sock)
        assert secured == ([] if family == socket.AF_UNIX else [greeted.sock])


@pytest.mark.parametrize(
    ("peer", "first", "outcome"),
    [
        ("10.0.0.9", 0x16, "secured"),
        ("127.0.0.1", 0x16, "secured"),
        ("::ffff:127.0.0.1", 0x15, "plain"),
        ("127.0.0.1", -1, "plain"),
        ("10.0.0.9", 0x17, "refused"),
    ],
)
async def test_who_begins_without_tls_is_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, peer: str, first: int, outcome: str
) -> None:
    async def when_readable(_: Any, receive: Any) -> int:
        assert receive is listener_module._first_byte
        return first

    async def secured(_: Any, context: Any) -> Any:
        return context

    monkeypatch.setattr(listener_module, "when_readable", when_readable)
    monkeypatch.setattr(listener_module, "secured", secured)
    made, sock = listening(certificates=SimpleNamespace(server_context=lambda: "secured")), Sock(peer=(peer, 5))
    if outcome == "refused":
        with pytest.raises(ProtocolError, match="no TLS, which is asked for here"):
            await made._secured(sock)
    else:
        assert await made._secured(sock) == (sock if outcome == "plain" else "secured")
    assert await listening()._secured(sock) is sock


def test_the_first_byte_is_looked_at_and_left() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"\x16\x03")
        assert listener_module._first_byte(ours) == 0x16
        assert ours.recv(5) == b"\x16\x03"
        theirs.shutdown(socket.SHUT_WR)
        assert listener_module._first_byte(ours) == 0xFF


async def test_something_is_read_once_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        wait = asyncio.ensure_future(listener_module.when_readable(ours, lambda sock: sock.recv(5)))
        await asyncio.sleep(0)
        assert not wait.done()
        theirs.sendall(b"hello")
        assert await asyncio.wait_for(wait, 20) == b"hello"
        assert not asyncio.get_running_loop().remove_reader(ours)
        theirs.sendall(b"again")

        def nothing(_: Any) -> bytes:
            raise BlockingIOError

        assert await asyncio.wait_for(listener_module.when_readable(ours, nothing), 20) is None


async def test_what_tls_brought_along_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)

    class Tls:
        waiting = True

        def fileno(self) -> int:
            return ours.fileno()

    monkeypatch.setattr(listener_module, "TlsSocket", Tls)
    sock: Any = Tls()
    found: list[Any] = [BlockingIOError(), "there"]

    def receive(_: Any) -> Any:
        each = found.pop(0)
        if isinstance(each, BaseException):
            raise each
        return each

    with ours, theirs:
        theirs.sendall(b"x")
        assert await asyncio.wait_for(listener_module.when_readable(sock, receive), 20) == "there"
        ours.recv(1)
        assert await asyncio.wait_for(listener_module.when_readable(sock, lambda _: "at once"), 20) == "at once"
        sock.waiting = False
        wait = asyncio.ensure_future(listener_module.when_readable(sock, lambda _: "later"))
        await asyncio.sleep(0)
        assert not wait.done()
        theirs.sendall(b"x")
        assert await asyncio.wait_for(wait, 20) == "later"


async def test_a_handshake_of_tls_hears_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Tls:
        def __init__(self, sock: Any, context: Any, *, server_hostname: Any) -> None:
            self.arguments = sock, context, server_hostname
            self.heard = 0
            made.append(self)

        def handshake(self) -> bool:
            return self.heard == 2

        def hear(self) -> None:
            self.heard += 1

    async def when_readable(sock: Any, receive: Any) -> None:
        assert sock == "sock"
        receive(sock)

    monkeypatch.setattr(listener_module, "TlsSocket", Tls)
    monkeypatch.setattr(listener_module, "when_readable", when_readable)
    found: Any = await listener_module.secured("sock", "context", "host")  # type: ignore[arg-type]
    assert found is made[0]
    assert (found.arguments, found.heard) == (("sock", "context", "host"), 2)
    found = await listener_module.secured("sock", "context")  # type: ignore[arg-type]
    assert found.arguments == ("sock", "context", None)


# -- start and stop ----------------------------------------------------------------------------------------------------


class ListeningSock:
    """Notes what is done to it; what `fails` raises."""

    made: list[ListeningSock]
    fails: dict[int, OSError]

    def __init__(self, family: int, kind: int, number: int = 0) -> None:
        self.family, self.number = family, number
        self.done: list[Any] = []
        assert kind == socket.SOCK_STREAM
        self.made.append(self)

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.done.append((name, *arguments))

    def bind(self, address: Any) -> None:
        self.done.append(("bind", address))
        if self.family in self.fails:
            raise self.fails[self.family]

    def getsockname(self) -> Any:
        address = self.done[-2][1]
        return (address[0], address[1] or 4321, *address[2:]) if isinstance(address, tuple) else address


class Port:
    """Where a listener starts: the system's sockets, and the loop that accepts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ListeningSock.made, ListeningSock.fails = [], {}
        self.accepting: list[Any] = []
        self.watched: list[Any] = []
        self.closed = 0
        self.found: list[Any] = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]
        self.asked: list[Any] = []
        monkeypatch.setattr(listener_module, "AcceptLoop", self.accept_loop)
        monkeypatch.setattr(listener_module, "socket", SimpleNamespace(**{**NAMES, "socket": ListeningSock}))
        monkeypatch.setattr(sockets, "host_identity", lambda: "here")
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", self.getaddrinfo, raising=False)

    def accept_loop(self, *arguments: Any, **more: Any) -> Any:
        self.accepting.append((arguments, more))
        return SimpleNamespace(sockets=self.watched, watch=self.watched.append, close=self.close)

    def close(self) -> None:
        self.closed += 1

    async def getaddrinfo(self, *asked: Any, **more: Any) -> list[Any]:
        self.asked.append((asked, more))
        return self.found


@pytest.fixture
async def port(monkeypatch: pytest.MonkeyPatch) -> Port:
    return Port(monkeypatch)


def at(host: str = "127.0.0.1", tcp: bool = True, **settings: Any) -> Any:
    return LinkListener(TASK, lambda link: {}, dataclasses.replace(DEFAULT_LINK_SETTINGS, **settings), host, tcp=tcp)


#: An IPv6 address means itself; every address means those of IPv4, too.
ITSELF, EVERYBODY = (("setsockopt", socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only) for only in (1, 0))


async def test_both_ways_in_are_opened(port: Port) -> None:
    made = at("[::1]")
    port.found = [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0)), ("never",)]
    await made.start()

    unix, tcp = ListeningSock.made
    name = made._unix_name.decode()
    assert (len(name), name[:8], int(name[8:], 16) > 0) == (40, "tenfold-", True)
    assert (unix.family, unix.done) == (
        socket.AF_UNIX, [("setblocking", False), ("bind", "\0" + name), ("listen", 128)]
    )  # fmt: skip
    assert (tcp.family, tcp.number) == (socket.AF_INET6, 6)
    assert tcp.done == [ITSELF, ("setblocking", False), ("bind", ("::1", 0, 0, 0)), ("listen", 128)]
    assert port.asked == [(("::1", 0), {"type": socket.SOCK_STREAM})]
    assert (port.watched, made.tcp_port) == ([unix, tcp], 4321)
    ((where, gate, places, take), more) = port.accepting[0]
    assert (where, isinstance(gate, Gate), gate._where) == (f"the port for links of {TASK}", True, where)
    assert (places.most, take) == (256, made._take)
    assert more == {
        "limit": "TENFOLD_LINK_HANDSHAKES", "say_no_room": listener_module._say_no_room, "action": "open link"
    }  # fmt: skip


async def test_every_address_is_one_of_both_families(port: Port) -> None:
    port.found = [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::", 0, 0, 0))]
    await at("[::]", mode="tcp").start()

    (tcp,) = ListeningSock.made
    assert tcp.done == [EVERYBODY, ("setblocking", False), ("bind", ("::", 0, 0, 0)), ("listen", 128)]


@pytest.mark.parametrize(("address", "there"), [("::", True), ("::1", False)])
async def test_a_system_without_ipv6(port: Port, monkeypatch: pytest.MonkeyPatch, address: str, there: bool) -> None:
    def make(family: int, kind: int, number: int = 0) -> ListeningSock:
        if family == socket.AF_INET6:
            raise OSError("Address family not supported by protocol")
        return ListeningSock(family, kind, number)

    monkeypatch.setattr(listener_module, "socket", SimpleNamespace(**{**NAMES, "socket": make}))
    port.found = [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, 0, 0, 0))]
    made = at(address, mode="tcp")
    await made.start()

    assert made.tcp_port == (4321 if there else 0)
    assert [sock.done[1] for sock in ListeningSock.made] == [("bind", ("0.0.0.0", 0))] * there


async def test_a_port_that_was_asked_for_may_be_in_time_wait(port: Port) -> None:
    made = at(mode="tcp", port=999)
    port.found = [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 7, 8))]
    await made.start()

    (tcp,) = ListeningSock.made
    assert tcp.done == [
        ITSELF,
        ("setsockopt", socket.SOL_SOCKET, socket.SO_REUSEADDR, 1),
        ("setblocking", False),
        ("bind", ("::1", 999, 7, 8)),
        ("listen", 128),
    ]
    assert (made.tcp_port, made._unix_name) == (999, b"")


async def test_what_is_not_wanted_or_cannot_be_had_is_left_out(
    port: Port, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    off = at(mode="off")
    await off.start()
    await off.stop()
    assert (off._accepting, ListeningSock.made) == (None, [])
    await at(tcp=False).start()
    assert [sock.family for sock in ListeningSock.made] == [socket.AF_UNIX]

    ListeningSock.made.clear()
    port.watched.clear()
    ListeningSock.fails = {family: OSError("none left") for family in (socket.AF_UNIX, socket.AF_INET)}
    made = at()
    await made.start()
    assert [sock.done[-1] for sock in ListeningSock.made] == [("close",), ("close",)]
    assert (made._unix_name, made.tcp_port, port.watched) == (b"", 0, [])
    assert caplog.messages == [f"{TASK} opens no TCP port for links on 127.0.0.1: none left"]

    ListeningSock.made.clear()
    ListeningSock.fails = {}
    monkeypatch.setattr(sockets, "host_identity", lambda: "")
    await at().start()
    assert [sock.family for sock in ListeningSock.made] == [socket.AF_INET]


async def test_a_port_that_was_asked_for_and_is_taken_is_an_error(port: Port) -> None:
    ListeningSock.fails = {socket.AF_INET: OSError("it is taken")}
    with pytest.raises(OSError, match="it is taken"):
        await at(port=999).start()
    assert port.closed == 1


async def test_stopping_ends_what_there_is(port: Port) -> None:
    async with at() as made:
        made.open_link(request(), name="x")
        links = [FakeLink(None), FakeLink(None)]
        made._links = dict.fromkeys(links)
        made._greet = lambda sock: asyncio.Event().wait()
        greeting = made._take(None, None, NOBODY)
        assert (made._handshakes, greeting.get_name()) == ({greeting}, f"greet:{TASK}")
    assert greeting.cancelled()
    assert (made._tokens, made._agreed, made._handshakes, port.closed) == ({}, {}, set(), 1)
    assert [link.closed_for for link in links] == [["its server stopped"]] * 2
    await made.stop("again")
    assert links[0].closed_for[-1] == "again"


async def test_a_greeting_is_forgotten_when_it_is_over(port: Port) -> None:
    made = at()
    await made.start()
    made._greet = lambda sock: asyncio.sleep(0)
    await made._take(None, None, NOBODY)
    await asyncio.sleep(0)
    assert made._handshakes == set()


def test_whoever_is_sent_away_is_told_why() -> None:
    sock: Any = Sock()
    listener_module._say_no_room(sock)
    assert sock.sent == [pack(FrameKind.GOODBYE, header=TOLD.encode())]
    sock.error = OSError("gone")
    listener_module._say_no_room(sock)
