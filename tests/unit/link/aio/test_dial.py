"""Connecting: each address of a host in turn, and no socket is left. tests/cluster/test_link_dial.py has real ones."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from tenfold_core import errors
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
