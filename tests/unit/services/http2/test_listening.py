"""Sockets that listen at every address of a host: all on one port, or none; and options of connected ones."""

from __future__ import annotations

import errno
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from tenfold_services.http2 import listening
from tenfold_services.http2.listening import listening_sockets, tune

V4, V6, TCP = socket.AF_INET, socket.AF_INET6, socket.SOCK_STREAM


class FakeSocket:
    """`taken` has (family, host, port) that cannot be bound, and why; `fails` what else cannot be done."""

    made: list[FakeSocket]
    taken: dict[Any, int]
    free = 4711

    def __init__(self, family: int, kind: int, number: int) -> None:
        self.made.append(self)
        self.family, self.kind, self.number = family, kind, number
        self.done: list[Any] = []
        self.closed = False

    def setblocking(self, blocks: bool) -> None:
        self.done.append(blocks)

    def setsockopt(self, *option: int) -> None:
        self.done.append(option)

    def bind(self, address: Any) -> None:
        self.address = address
        if (found := self.taken.get(address[:2])) is not None:
            raise OSError(found, "cannot bind")

    def listen(self, backlog: int) -> None:
        self.done.append(("listen", backlog))

    def getsockname(self) -> Any:
        return (self.address[0], self.address[1] or self.free)

    def close(self) -> None:
        self.closed = True


class Loop:
    def __init__(self, found: list[Any]) -> None:
        self.found, self.asked = found, []

    async def getaddrinfo(self, *asked: Any, **more: Any) -> list[Any]:
        self.asked.append((asked, more))
        return self.found


def info(family: int, *address: Any) -> Any:
    return family, TCP, 6, "", address


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> dict[Any, int]:
    FakeSocket.made, FakeSocket.taken = [], {}
    names = {name: getattr(socket, name) for name in dir(socket) if name.isupper()}
    monkeypatch.setattr(listening, "socket", SimpleNamespace(**{**names, "socket": FakeSocket}))
    return FakeSocket.taken


def on(monkeypatch: pytest.MonkeyPatch, *found: Any) -> Loop:
    loop = Loop(list(found))
    monkeypatch.setattr(listening, "asyncio", SimpleNamespace(get_running_loop=lambda: loop))
    return loop


@pytest.mark.usefixtures("taken")
async def test_every_address_gets_one_and_all_the_same_port(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = on(
        monkeypatch, info(V4, "1.2.3.4", 0), info(V6, "::", 0, 0, 9), info(V6, "::1", 0, 0, 0), info(V4, "1.2.3.4", 0)
    )
    found, port = await listening_sockets("[host]", 0)
    assert loop.asked == [(("host", 0), {"type": TCP, "flags": socket.AI_PASSIVE})]
    assert port == 4711
    made = FakeSocket.made
    assert found == made, "each address once"
    assert [sock.address for sock in made] == [("1.2.3.4", 0), ("::", 4711, 0, 9), ("::1", 4711, 0, 0)]
    assert [(sock.family, sock.kind, sock.number) for sock in made] == [(V4, TCP, 6), (V6, TCP, 6), (V6, TCP, 6)]
    reuse, only = (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1), (socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
    assert [sock.done for sock in made] == [
        [False, reuse, ("listen", 512)],
        [False, reuse, (*only, 0), ("listen", 512)],
        [False, reuse, (*only, 1), ("listen", 512)],
    ]


@pytest.mark.usefixtures("taken")
async def test_a_port_by_number_is_that_one_and_no_host_is_every_address(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = on(monkeypatch, info(V4, "0.0.0.0", 5))
    _, port = await listening_sockets("", 5)
    assert loop.asked[0][0] == (None, 5)
    assert (port, FakeSocket.made[0].address) == (5, ("0.0.0.0", 5))


async def test_an_address_that_cannot_be_had_is_left_out(
    monkeypatch: pytest.MonkeyPatch, taken: dict[Any, int]
) -> None:
    taken["::1", 5] = errno.EADDRNOTAVAIL
    on(monkeypatch, info(V6, "::1", 5, 0, 0), info(V4, "127.0.0.1", 5))
    found, port = await listening_sockets("localhost", 5)
    assert [sock.family for sock in found] == [V4]
    assert port == 5
    assert [sock.closed for sock in FakeSocket.made] == [True, False]


async def test_a_port_that_is_taken_at_one_address_is_had_at_none(
    monkeypatch: pytest.MonkeyPatch, taken: dict[Any, int]
) -> None:
    """Another process would get half of our callers."""
    taken["::1", 5] = errno.EADDRINUSE
    on(monkeypatch, info(V4, "127.0.0.1", 5), info(V6, "::1", 5, 0, 0), info(V4, "127.0.0.2", 5))
    with pytest.raises(OSError, match="cannot bind") as caught:
        await listening_sockets("localhost", 5)
    assert caught.value.errno == errno.EADDRINUSE
    assert [sock.closed for sock in FakeSocket.made] == [True, True], "the third was not tried"


async def test_the_first_reason_is_told(monkeypatch: pytest.MonkeyPatch, taken: dict[Any, int]) -> None:
    taken["1.1.1.1", 5], taken["1.1.1.2", 5] = errno.EACCES, errno.EADDRNOTAVAIL
    on(monkeypatch, info(V4, "1.1.1.1", 5), info(V4, "1.1.1.2", 5))
    with pytest.raises(PermissionError):
        await listening_sockets("host", 5)
    on(monkeypatch)
    with pytest.raises(OSError, match="host has no address"):
        await listening_sockets("host", 5)


class Connected:
    def __init__(self, fails: bool = False) -> None:
        self.options: list[Any] = []
        self.fails = fails

    def setsockopt(self, *option: int) -> None:
        if self.fails:
            raise OSError
        self.options.append(option)


@pytest.mark.parametrize(("seconds", "between"), [(60, 20), (2, 1)])
def test_connected_ones_are_asked_for_a_sign_of_life(seconds: int, between: int) -> None:
    sock: Any = Connected()
    tune(sock, seconds)
    assert sock.options == [
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, seconds),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, between),
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    ]
    tune(Connected(fails=True), seconds)  # type: ignore[arg-type]


@pytest.mark.usefixtures("taken")
def test_a_system_without_those_options_has_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(listening.socket, "TCP_KEEPIDLE")
    sock: Any = Connected()
    tune(sock, 60)
    assert len(sock.options) == 2


class NoIpv6(FakeSocket):
    """A system without IPv6 makes no such socket."""

    def __init__(self, family: int, kind: int, number: int) -> None:
        if family == V6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        super().__init__(family, kind, number)


@pytest.mark.usefixtures("taken")
@pytest.mark.parametrize("host", ["::", "[::]"])
async def test_without_ipv6_every_address_is_one_of_ipv4(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setattr(listening.socket, "socket", NoIpv6)

    class Asked(Loop):
        async def getaddrinfo(self, asked: Any, port: int, **about: Any) -> Any:
            return [info(V6, "::", port, 0, 0) if asked == "::" else info(V4, asked, port)]

    monkeypatch.setattr(listening, "asyncio", SimpleNamespace(get_running_loop=lambda: Asked([])))
    found, port = await listening_sockets(host, 5)
    assert [sock.address for sock in found] == [("0.0.0.0", 5)]  # type: ignore[attr-defined] # they are fakes
    assert port == 5
