"""Connecting: each address of a host in turn, and no socket is left. tests/cluster/test_link_dial.py has real ones."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from tenfold_core import errors, protocol
from tenfold_link.aio import dial
from tenfold_link.aio.dial import LinkDialer, connected
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_protos import link_pb2

V4, V6, TCP = socket.AF_INET, socket.AF_INET6, socket.SOCK_STREAM


class Sock:
    made: list[Sock]

    def __init__(self, family: int, kind: int) -> None:
        self.made.append(self)
        self.family, self.kind, self.blocks, self.closed = family, kind, True, False

    def setblocking(self, blocks: bool) -> None:
        self.blocks = blocks


class Net:
    """What the loop answers: addresses of a name, and an error for each that cannot be reached."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Sock.made = []
        self.found: list[Any] = []
        self.errors: dict[Any, BaseException] = {}
        self.asked: list[Any] = []
        names = {name: getattr(socket, name) for name in dir(socket) if name.isupper()}
        monkeypatch.setattr(dial, "socket", SimpleNamespace(**{**names, "socket": Sock}))
        monkeypatch.setattr(dial.sockets, "close", self.close)
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getaddrinfo", self.getaddrinfo, raising=False)
        monkeypatch.setattr(loop, "sock_connect", self.sock_connect, raising=False)

    def close(self, sock: Any) -> None:
        sock.closed = True

    async def getaddrinfo(self, *asked: Any, **more: Any) -> list[Any]:
        self.asked.append((asked, more))
        return self.found

    async def sock_connect(self, sock: Sock, address: Any) -> None:
        assert not sock.blocks
        self.asked.append(address)
        if address in self.errors:
            raise self.errors[address]


@pytest.fixture
async def net(monkeypatch: pytest.MonkeyPatch) -> Net:
    return Net(monkeypatch)


def info(family: int, *address: Any) -> Any:
    return family, TCP, 6, "", address


async def test_a_unix_socket_is_reached_by_its_name(net: Net) -> None:
    sock: Any = await connected(socket.AF_UNIX, "\0name")
    assert (sock.family, sock.kind, sock.closed) == (socket.AF_UNIX, TCP, False)
    assert net.asked == ["\0name"]


async def test_each_address_is_tried_in_turn(net: Net) -> None:
    net.found = [info(V6, "::1", 5), info(V4, "127.0.0.1", 5), info(V4, "127.0.0.2", 5)]
    net.errors["::1", 5] = ConnectionRefusedError("first")
    sock: Any = await connected(socket.AF_UNSPEC, ("localhost", 5))
    assert sock.family == V4
    assert [each.closed for each in Sock.made] == [True, False]
    assert net.asked == [(("localhost", 5), {"type": TCP}), ("::1", 5), ("127.0.0.1", 5)]


async def test_the_last_failure_is_told(net: Net) -> None:
    net.found = [info(V6, "::1", 5), info(V4, "127.0.0.1", 5)]
    net.errors = {("::1", 5): ConnectionRefusedError("first"), ("127.0.0.1", 5): OSError("second")}
    with pytest.raises(OSError, match="second"):
        await connected(socket.AF_UNSPEC, ("localhost", 5))
    assert [each.closed for each in Sock.made] == [True, True]
    net.found = []
    with pytest.raises(OSError, match="it has no address"):
        await connected(socket.AF_UNSPEC, ("localhost", 5))


async def test_who_gives_up_leaves_no_socket(net: Net) -> None:
    net.found = [info(V4, "127.0.0.1", 5), info(V4, "127.0.0.2", 5)]
    net.errors["127.0.0.1", 5] = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await connected(socket.AF_UNSPEC, ("localhost", 5))
    assert [each.closed for each in Sock.made] == [True], "the second is not tried"


# -- the dialler -------------------------------------------------------------------------------------------------------


class FakeLink:
    def __init__(self) -> None:
        self.closed_for: list[str] = []
        self.then: Any = None

    def on_close(self, callback: Any) -> None:
        self.then = callback

    async def close(self, reason: str) -> None:
        self.closed_for.append(reason)


class Dialling:
    """A LinkDialer whose connecting is played: `outcome` is a link, or an error to raise; `gate` holds it up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, settings: LinkSettings = DEFAULT_LINK_SETTINGS) -> None:
        self.outcome: Any = FakeLink()
        self.gate: asyncio.Event | None = None
        self.tries = 0
        self.asked: list[Any] = []
        monkeypatch.setattr(dial, "connect", self.connect)
        loop = asyncio.get_running_loop()
        self.now = 100.0
        monkeypatch.setattr(loop, "time", lambda: self.now, raising=False)
        self.dialer = LinkDialer(self.ask, "host:1", task="/job:w", peer="/job:ps", settings=settings)

    async def ask(self, request: Any) -> str:
        self.asked.append(request)
        return "answer"

    async def connect(self, answer: Any, address: str, **more: Any) -> Any:
        assert (answer, address, more["peer"]) == ("answer", "host:1", "/job:ps")
        self.tries += 1
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


async def test_a_link_is_opened_once_for_all_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Dialling(monkeypatch)
    assert (made.dialer.link, made.dialer.why_not) == (None, "it was not tried yet")
    made.gate = asyncio.Event()
    waits = [asyncio.ensure_future(made.dialer.get()) for _ in range(2)]
    for _ in range(5):
        await asyncio.sleep(0)
    made.gate.set()
    assert await asyncio.gather(*waits) == [made.outcome, made.outcome]
    assert await made.dialer.get() is made.outcome
    assert (made.tries, made.asked[0].task) == (1, "/job:w")
    assert made.dialer.link is made.outcome


async def test_after_a_link_ended_the_next_is_tried_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Dialling(monkeypatch)
    await made.dialer.get()
    made.outcome.then(errors.UnavailableError(None, None, "it ended"))
    assert (made.dialer.link, made.dialer.why_not) == (None, "it ended")
    assert await made.dialer.get() is made.outcome
    assert made.tries == 2


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (errors.UnavailableError(None, None, "no way"), "INFO"),
        (errors.FailedPreconditionError(None, None, "off"), "DEBUG"),
        (errors.UnimplementedError(None, None, "no Tenfold"), "DEBUG"),
    ],
)
async def test_after_a_failure_grpc_serves_for_a_while(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: errors.OpError, level: str
) -> None:
    caplog.set_level("DEBUG", "tenfold_link.aio.dial")
    made = Dialling(monkeypatch)
    made.outcome = error
    assert await made.dialer.get() is None
    assert made.dialer.why_not == error.message
    assert [(record.levelname, record.getMessage()) for record in caplog.records if "gRPC" in record.getMessage()] == [
        (level, f"gRPC serves for a while: {error.message}")
    ]
    made.now += 29.9
    assert await made.dialer.get() is None
    assert made.tries == 1
    made.now += 0.1
    await made.dialer.get()
    assert made.tries == 2


async def test_where_links_are_off_none_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Dialling(monkeypatch, LinkSettings(mode="off"))
    assert await made.dialer.get() is None
    assert made.tries == 0


async def test_closing_ends_the_link_and_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Dialling(monkeypatch)
    await made.dialer.get()
    await made.dialer.close("enough")
    assert made.outcome.closed_for == ["enough"]

    other = Dialling(monkeypatch)
    other.gate = asyncio.Event()
    wait = asyncio.ensure_future(other.dialer.get())
    for _ in range(5):
        await asyncio.sleep(0)
    await other.dialer.close()
    with pytest.raises(asyncio.CancelledError):
        await wait
    assert await other.dialer.get() is None
    assert other.tries == 1


@pytest.mark.parametrize(
    ("fails", "way"), [([], "unix"), (["unix"], "tcp:9000"), (["unix", "tcp"], None)], ids=["both", "tcp", "none"]
)
async def test_by_which_way_a_task_is_reached(
    fails: list[str], way: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Any] = []

    async def connected(family: int, where: Any) -> Any:
        kind = "unix" if family == socket.AF_UNIX else "tcp"
        if kind in fails:
            raise ConnectionRefusedError(111, f"no {kind}")
        return kind

    monkeypatch.setattr(dial, "connected", connected)
    monkeypatch.setattr(dial.sockets, "close", closed.append)
    answer = link_pb2.OpenLinkResponse(task="/job:ps", unix_name=b"there", tcp_port=9000)

    if way is None:
        with pytest.raises(errors.UnavailableError, match=r"No link to /job:ps at ps:8000: Unix socket @there: .*; T"):
            await dial.way(answer, "ps:8000", DEFAULT_LINK_SETTINGS)
        assert closed == []
    else:
        assert await dial.way(answer, "ps:8000", DEFAULT_LINK_SETTINGS) == way
        assert closed == [way.partition(":")[0]]


# -- the handshake -----------------------------------------------------------------------------------------------------


class Opened:
    """A link that was opened: how it was made, what it serves, and why it was given up."""

    made: list[Opened]

    def __init__(self, sock: Any, **options: Any) -> None:
        self.sock, self.options = sock, options
        self.served: Any = None
        self.aborted: list[str] = []
        self.made.append(self)

    def serve(self, methods: Any) -> None:
        self.served = methods

    def abort(self, reason: str) -> None:
        self.aborted.append(reason)


class Hands:
    """Connecting and shaking hands, played; `fails` raises for a family of sockets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Opened.made = []
        self.socks: list[Any] = []
        self.fails: dict[int, Exception] = {}
        self.begun: list[Any] = []
        self.agreed: list[Any] = []
        self.greetings: list[Any] = []
        self.headers: list[Any] = [None, None, link_pb2.LinkWelcome(task="it").SerializeToString()]
        monkeypatch.setattr(dial, "connected", self.connected)
        monkeypatch.setattr(dial, "when_readable", self.when_readable)
        monkeypatch.setattr(dial, "Link", Opened)
        monkeypatch.setattr(dial.handshake, "begin", self.begin)
        monkeypatch.setattr(dial.handshake, "agree", self.agree)
        monkeypatch.setattr(dial.handshake.Greeting, "close", lambda greeting: self.greetings.append(greeting))
        monkeypatch.setattr(dial.sockets, "close", lambda sock: sock.close())

    async def connected(self, family: int, where: Any) -> Any:
        kind = socket.AF_UNIX if family == socket.AF_UNIX else V4
        if kind in self.fails:
            raise self.fails[kind]
        made = SimpleNamespace(family=kind, where=where, closed=False)
        made.close = lambda: setattr(made, "closed", True)
        self.socks.append(made)
        return made

    async def when_readable(self, sock: Any, receive: Any) -> Any:
        assert receive.__self__._kind is dial.FrameKind.WELCOME
        return self.headers.pop(0)

    def begin(self, sock: Any, answer: Any, settings: Any, *, always_reads: bool) -> str:
        self.begun.append((sock, always_reads))
        return "arena"

    def agree(self, sock: Any, greeting: Any, message: Any, arena: Any, settings: Any, *, version: int) -> str:
        self.agreed.append((sock, message.task, arena, version))
        return "agreed"


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    return Hands(monkeypatch)


def offer(**more: Any) -> link_pb2.OpenLinkResponse:
    return link_pb2.OpenLinkResponse(**{"task": "/job:ps", "tcp_port": 9000, **more})


async def test_a_link_is_opened_and_serves_nothing_unless_it_is_said_what(hands: Hands) -> None:
    link: Any = await dial.connect(offer(unix_name=b"there", tls=True), "ps:8000")
    (sock,) = hands.socks
    assert (sock.family, sock.where, sock.closed) == (socket.AF_UNIX, "\0there", False), "without TLS"
    assert (link.sock, link.served, link.aborted) == (sock, {}, [])
    assert link.options == {
        "peer": "/job:ps", "settings": DEFAULT_LINK_SETTINGS, "agreed": "agreed", "peer_always_reads": True
    }  # fmt: skip
    assert (hands.begun, hands.agreed) == ([(sock, True)], [(sock, "it", "arena", 1)])
    assert len(hands.greetings) == 1

    hands.headers.append(link_pb2.LinkWelcome().SerializeToString())
    link = await dial.connect(offer(task="", version=1), "ps:8000", on_link=lambda link: {3: link})
    assert (link.served, link.options["peer"]) == ({3: link}, "ps:8000")
    hands.headers.append(link_pb2.LinkWelcome().SerializeToString())
    link = await dial.connect(offer(), "ps:8000", peer="the master")
    assert link.options["peer"] == "the master"


async def test_tls_is_for_tcp_and_what_failed_is_closed(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome: list[Any] = ["secured", OSError("its certificate is not good")]

    async def secured(sock: Any, context: Any, host: str) -> Any:
        assert (context, host) == ("context", "ps")
        found = outcome.pop(0)
        if isinstance(found, Exception):
            raise found
        return sock

    monkeypatch.setattr(dial, "secured", secured)
    credentials: Any = SimpleNamespace(certificates=SimpleNamespace(client_context=lambda: "context"))
    link: Any = await dial.connect(offer(tls=True), "ps:8000", credentials=credentials)
    assert (link.sock.closed, outcome[1:]) == (False, [])
    for why in ("its certificate is not good", "no certificate is set here"):
        with pytest.raises(errors.UnavailableError, match=f"No link to /job:ps at ps:8000: TCP ps:9000: .*{why}"):
            await dial.connect(offer(tls=True), "ps:8000", credentials=credentials)
        assert hands.socks[-1].closed
        credentials.certificates = None


async def test_the_second_way_is_tried_where_the_first_fails(hands: Hands) -> None:
    hands.fails[socket.AF_UNIX] = ConnectionRefusedError("nobody there")
    link: Any = await dial.connect(offer(unix_name=b"there"), "ps:8000")
    assert (link.sock.family, link.sock.where) == (V4, ("ps", 9000))
    hands.fails[V4] = OSError("no route")
    with pytest.raises(errors.UnavailableError) as caught:
        await dial.connect(offer(unix_name=b"there"), "ps:8000")
    assert caught.value.message == (
        "No link to /job:ps at ps:8000: Unix socket @there: nobody there; TCP ps:9000: no route."
    )
    with pytest.raises(errors.FailedPreconditionError, match="/job:ps"):
        await dial.connect(offer(version=99), "ps:8000")


async def test_who_does_not_answer_is_not_waited_for(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(*_: Any) -> None:
        await asyncio.Event().wait()

    settings = LinkSettings(hello_seconds=0.0)
    for name in ("when_readable", "connected"):
        monkeypatch.setattr(dial, name, silent)
        with pytest.raises(errors.UnavailableError, match="TCP ps:9000: no answer in time"):
            await dial.connect(offer(), "ps:8000", settings=settings)
    assert hands.socks[0].closed
    with pytest.raises(errors.UnavailableError, match="No link to /job:ps at ps:8000: TCP ps:9000: no answer in time"):
        await dial.way(offer(), "ps:8000", settings)


async def test_a_link_that_fails_at_its_beginning_leaves_nothing(hands: Hands) -> None:
    def on_link(link: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await dial.connect(offer(), "ps:8000", on_link=on_link)
    assert (Opened.made[0].aborted, Opened.made[0].served) == (["the handshake failed"], None)
    assert hands.socks[0].closed
    assert len(hands.greetings) == 1


@pytest.mark.parametrize("tls", [True, False])
async def test_what_a_dialler_asks_and_hands_on(monkeypatch: pytest.MonkeyPatch, tls: bool) -> None:
    asked: list[Any] = []

    async def ask(request: Any) -> str:
        asked.append(request)
        return "answer"

    async def connect(answer: Any, address: str, **more: Any) -> Any:
        asked.append(more)
        raise protocol.VersionError(None, None, "another version")

    monkeypatch.setattr(dial, "connect", connect)
    credentials: Any = SimpleNamespace(of=lambda address: object() if tls and address == "host:1" else None)
    dialer = LinkDialer(ask, "host:1", task="/job:w", credentials=credentials)
    assert await dialer.get() is None
    assert (asked[0].tls, asked[0].task) == (tls, "/job:w")
    on_link = asked[1].pop("on_link")
    assert on_link(None) == {}
    assert asked[1] == {"peer": "", "settings": DEFAULT_LINK_SETTINGS, "credentials": credentials}


async def test_another_version_is_warned_of(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    made = Dialling(monkeypatch)
    made.outcome = protocol.VersionError(None, None, "another version")
    assert await made.dialer.get() is None
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "gRPC serves for a while: another version")
    ]
