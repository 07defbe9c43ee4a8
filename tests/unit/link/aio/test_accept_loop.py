"""The loop that accepts: who gets a place, who is refused, what strangers cost, and rests. Sockets are fakes."""

from __future__ import annotations

import errno
import logging
import socket
from typing import TYPE_CHECKING, Any

import pytest

from support.fake_loop import FakeLoop
from tenfold_core import errors
from tenfold_core.access import audit
from tenfold_core.access.gate import EVERYBODY, NOBODY, Caller
from tenfold_core.access.places import Places
from tenfold_core.access.roles import Role
from tenfold_link.aio import accept_loop
from tenfold_link.aio.accept_loop import AcceptLoop, StrangersTime, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN = Caller(Role.ADMIN, "user 1")
STRANGER = Caller(Role.NONE, "user 2")
LOGGER = "tenfold_link.aio.accept_loop"


class Sock:
    """A socket that was accepted, or that listens: what it accepts is in `waiting`, an error is raised."""

    def __init__(self, name: str = "", family: int = socket.AF_INET) -> None:
        self.name, self.family = name, family
        self.waiting: list[Any] = []
        self.blocks, self.closed = True, 0

    def accept(self) -> tuple[Any, Any]:
        if not self.waiting:
            raise BlockingIOError
        came = self.waiting.pop(0)
        if isinstance(came, BaseException):
            raise came
        return came, "" if came.family == socket.AF_UNIX else (came.name, 7)

    def setblocking(self, blocks: bool) -> None:
        self.blocks = blocks

    def close(self) -> None:
        self.closed += 1

    def fileno(self) -> int:
        return 3

    def __repr__(self) -> str:
        return self.name


class FakeGate:
    """Knows each socket's caller; an error is raised."""

    def __init__(self) -> None:
        self.callers: dict[Any, Any] = {}

    def accepted(self, sock: Any) -> Caller:
        found = self.callers.get(sock, OWN)
        if isinstance(found, BaseException):
            raise found
        assert isinstance(found, Caller)
        return found


class FakeApart:
    def __init__(self) -> None:
        self.has_room, self.closed = True, []

    def close(self, closing: Any) -> None:
        self.closed.append(closing.__self__)


class Port:
    """An AcceptLoop with one listening socket, and what it did with those who came."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, family: int = socket.AF_INET, **more: Any) -> None:
        self.loop, self.gate, self.apart = FakeLoop(), FakeGate(), FakeApart()
        self.clock = 0.0
        self.taken: list[tuple[Any, Any, Caller]] = []
        self.ended: list[Any] = []
        self.said: list[Any] = []
        self.refused: list[tuple[str, str, str, str]] = []
        #: What taking or accepting one costs.
        self.cost = 0.0
        self.loop.running_in(monkeypatch, accept_loop)
        monkeypatch.setattr(accept_loop, "perf_counter", lambda: self.clock)
        monkeypatch.setattr(accept_loop, "apart", self.apart)
        monkeypatch.setattr(accept_loop.sockets, "apart", self.apart)
        note = lambda caller, action, why, address: self.refused.append((caller.name, action, why, address))  # noqa: E731
        monkeypatch.setattr(audit.refusals, "note", note)
        self.places: Places[Any] = Places(more.pop("most", 8), self.ended.append)
        more.setdefault("limit", "TENFOLD_X")
        gate = more.pop("gate", self.gate)
        take = more.pop("take", self.take)
        self.accepting: AcceptLoop[Any] = AcceptLoop("the port", gate, self.places, take, **more)
        self.listening: Any = Sock("listening", family)
        self.accepting.watch(self.listening)

    def take(self, sock: Any, address: Any, caller: Caller) -> Any:
        self.clock += self.cost
        self.taken.append((sock, address, caller))
        return sock

    def come(self, *socks: Any) -> None:
        """They connect, and the loop turns once."""
        self.listening.waiting += socks
        self.turn()

    def turn(self) -> None:
        self.loop.readers[self.listening]()

    @property
    def watches(self) -> bool:
        return self.listening in self.loop.readers


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[Port]:
    made = Port(monkeypatch)
    yield made
    made.accepting.close()


# -- who comes ---------------------------------------------------------------------------------------------------------


def test_all_who_wait_and_are_known_are_taken_in_one_turn(port: Port) -> None:
    came = [Sock("127.0.0.1"), Sock("127.0.0.1"), Sock("10.0.0.1")]
    port.come(*came)

    assert port.taken == [(sock, (sock.name, 7), OWN) for sock in came]
    assert len(port.places) == 3
    assert port.places.strangers == 0
    assert not any(sock.blocks or sock.closed for sock in came)
    assert port.refused == []


def test_a_turn_ends_after_its_time_and_the_rest_is_left_to_the_next(port: Port) -> None:
    port.cost = 0.003
    port.come(Sock("a"), Sock("b"), Sock("c"))
    assert [sock.name for sock, *_ in port.taken] == ["a", "b"]
    port.turn()
    assert [sock.name for sock, *_ in port.taken] == ["a", "b", "c"]


@pytest.mark.parametrize(("cost", "taken"), [(0.004, 1), (0.00399, 2)])
def test_a_turn_has_four_milliseconds(port: Port, cost: float, taken: int) -> None:
    port.cost = cost
    port.come(Sock("a"), Sock("b"))
    assert len(port.taken) == taken


def test_strangers_of_one_user_have_a_quarter_and_the_oldest_goes(port: Port) -> None:
    first, second, third = (Sock(name) for name in ("127.0.0.1", "127.0.0.2", "127.0.0.3"))
    for sock in (first, second, third):
        port.gate.callers[sock] = STRANGER
        port.come(sock)

    assert [sock for sock, *_ in port.taken] == [first, second, third]
    assert port.ended == [first], "of one user: they are counted together wherever they come from"
    assert port.places.strangers == 2


def test_those_from_elsewhere_are_counted_by_address(port: Port) -> None:
    for name in ("10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2", "10.0.0.1"):
        sock = Sock(name)
        port.gate.callers[sock] = NOBODY
        port.come(sock)

    assert [sock.name for sock in port.ended] == ["10.0.0.1"]


def test_without_a_gate_everybody_is_a_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    port = Port(monkeypatch, gate=None)
    port.come(Sock("127.0.0.1"))
    assert port.taken[0][2] is NOBODY
    assert port.places.strangers == 1
    port.accepting.close()


def test_where_all_are_let_in_none_is_a_stranger(port: Port) -> None:
    sock = Sock("10.0.0.1")
    port.gate.callers[sock] = EVERYBODY
    port.come(sock)
    assert port.places.strangers == 0
    assert len(port.places) == 1


def test_one_without_a_place_is_refused_in_words_that_name_the_limit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    port, refused, stranger = Port(monkeypatch, most=1), Sock("127.0.0.1"), Sock("fd00::9", socket.AF_INET6)
    port.gate.callers[stranger] = STRANGER
    with caplog.at_level(logging.DEBUG, LOGGER):
        port.come(Sock("127.0.0.1"), refused, stranger)

    assert len(port.taken) == 1
    assert (refused.closed, stranger.closed) == (1, 1)
    assert port.refused == [
        ("user 1", "connect", "there are 1 (TENFOLD_X)", "ipv4:127.0.0.1:7"),
        ("user 2", "connect", "there are 1, all of those who are known (TENFOLD_X)", "ipv6:[fd00::9]:7"),
    ]
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "the port: a connection from ipv4:127.0.0.1:7 is refused: there are 1 (TENFOLD_X)."),
        (
            "DEBUG",
            "the port: a connection from ipv6:[fd00::9]:7 is refused: "
            "there are 1, all of those who are known (TENFOLD_X).",
        ),
    ]
    port.accepting.close()


def test_strangers_alone_are_kept_out_where_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    port = Port(monkeypatch, full=lambda: "too many", action="open")
    known, stranger = Sock("127.0.0.1"), Sock("127.0.0.2")
    port.gate.callers[stranger] = STRANGER
    port.come(known, stranger)

    assert [sock for sock, *_ in port.taken] == [known]
    assert port.refused == [("user 2", "open", "too many", "ipv4:127.0.0.2:7")]
    assert stranger.closed == 1
    port.accepting.close()


def test_one_that_is_over_already_has_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    port = Port(monkeypatch, take=lambda *_: None)
    port.come(Sock("127.0.0.1"))
    assert len(port.places) == 0
    port.accepting.close()


def test_a_peer_that_is_gone_already_is_closed_and_the_next_one_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(sock: Any, *_: Any) -> Any:
        if sock.name == "gone":
            raise OSError(errno.ENOTCONN, "gone")
        return sock

    port, gone, there = Port(monkeypatch, take=take), Sock("gone"), Sock("there")
    port.come(gone, there)
    assert (gone.closed, there.closed) == (1, 0)
    assert len(port.places) == 1
    port.accepting.close()


# -- Unix sockets ------------------------------------------------------------------------------------------------------


def test_a_unix_socket_of_the_same_user_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    port, sock = Port(monkeypatch, socket.AF_UNIX), Sock("", socket.AF_UNIX)
    monkeypatch.setattr(accept_loop.sockets, "owner", lambda _: 0)
    port.come(sock)
    assert port.taken == [(sock, "", Caller(Role.ADMIN, "user 0"))]
    assert port.places.strangers == 0
    port.accepting.close()


def test_one_of_another_user_s_is_closed_apart_and_costs_the_owner_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    port, foreign, own = Port(monkeypatch, socket.AF_UNIX), Sock("f", socket.AF_UNIX), Sock("o", socket.AF_UNIX)
    monkeypatch.setattr(accept_loop.sockets, "owner", lambda sock: 77_777 if sock is foreign else 0)
    port.come(foreign, own)

    assert [sock for sock, *_ in port.taken] == [own]
    assert (port.apart.closed, foreign.closed) == ([foreign], 0)
    assert port.refused == [("user 77777", "connect", "a Unix socket of another user's", "its own machine")]
    port.accepting.close()


def test_while_nothing_more_can_be_closed_apart_the_unix_socket_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    port, own = Port(monkeypatch, socket.AF_UNIX), Sock("o", socket.AF_UNIX)
    monkeypatch.setattr(accept_loop.sockets, "owner", lambda _: 0)
    port.apart.has_room = False
    port.come(own)
    assert (port.taken, port.watches) == ([], False)
    port.apart.has_room = True
    port.loop.advance(0.99)
    assert not port.watches
    port.loop.advance(0.01)
    port.turn()
    assert len(port.taken) == 1
    port.accepting.close()


def test_over_tcp_nothing_is_closed_apart(port: Port) -> None:
    port.apart.has_room = False
    port.come(Sock("127.0.0.1"))
    assert len(port.taken) == 1


# -- strangers' time ---------------------------------------------------------------------------------------------------


def test_one_stranger_is_taken_a_turn_and_pays_for_it(port: Port) -> None:
    socks = [Sock("127.0.0.1"), Sock("127.0.0.1")]
    for sock in socks:
        port.gate.callers[sock] = STRANGER
    port.cost = 0.003
    port.come(*socks)
    assert len(port.taken) == 1
    port.turn()
    assert len(port.taken) == 2
    # 4 ms were saved up, 6 ms are spent: 2 ms come back at a tenth of the pace
    port.come(Sock("127.0.0.1"))
    assert (len(port.taken), port.watches) == (2, False)
    port.clock += 0.0201
    port.loop.advance(0.0201)
    assert port.watches
    port.turn()
    assert len(port.taken) == 3


def test_who_is_known_pays_nothing(port: Port) -> None:
    port.cost = 0.1
    for _ in range(5):
        port.come(Sock("127.0.0.1"))
    assert len(port.taken) == 5


def test_a_port_that_is_closed_meanwhile_is_not_watched_again(port: Port) -> None:
    port.accepting._strangers.spend(1.0)
    port.come(Sock("127.0.0.1"))
    assert not port.watches
    port.accepting.close()
    port.loop.advance(100)
    assert not port.watches


class Bucket:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, share: float, most: float) -> None:
        self.loop, self.clock, self.done = FakeLoop(), 10.0, []
        self.loop.running_in(monkeypatch, accept_loop)
        monkeypatch.setattr(accept_loop, "perf_counter", lambda: self.clock)
        self.time = StrangersTime(share, most)

    def advance(self, seconds: float) -> None:
        self.clock += seconds
        self.loop.advance(seconds)


def test_no_more_than_so_much_is_saved_up(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket(monkeypatch, 0.5, 0.01)
    bucket.advance(100)
    assert bucket.time.has_some()
    bucket.time.spend(0.01)
    assert not bucket.time.has_some()
    bucket.advance(0.001)
    assert bucket.time.has_some()


def test_time_comes_back_by_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket(monkeypatch, 0.25, 1.0)
    bucket.time.spend(2.0)
    bucket.advance(3.99)
    assert not bucket.time.has_some()
    bucket.advance(0.02)
    assert bucket.time.has_some()


def test_who_waits_goes_on_in_order_as_far_as_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket(monkeypatch, 0.5, 0.01)
    bucket.time.spend(0.02)

    def turn(name: str, cost: float) -> None:
        bucket.done.append(name)
        bucket.time.spend(cost)

    bucket.time.wait(lambda: turn("second", 1.0))
    bucket.time.wait(lambda: turn("third", 0.0))
    bucket.time.wait(lambda: turn("first", 0.0), first=True)
    assert len(bucket.loop.timers) == 1
    assert bucket.loop.timers[0].when == pytest.approx(bucket.loop.now + 0.02)
    bucket.advance(0.021)
    assert bucket.done == ["first", "second"]
    assert len(bucket.loop.timers) == 1
    bucket.advance(1.9)
    assert bucket.done == ["first", "second"]
    bucket.advance(0.2)
    assert bucket.done == ["first", "second", "third"]
    assert bucket.loop.timers == []


def test_a_wait_is_a_millisecond_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket(monkeypatch, 0.5, 0.01)
    bucket.time.spend(0.0101)
    bucket.time.wait(lambda: None)
    assert bucket.loop.timers[0].when == pytest.approx(bucket.loop.now + 0.001)


def test_closing_forgets_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket(monkeypatch, 0.5, 0.01)
    bucket.time.spend(1.0)
    bucket.time.wait(lambda: bucket.done.append("late"))
    bucket.time.close()
    assert bucket.loop.timers == []
    bucket.time.wait(lambda: bucket.done.append("new"))
    bucket.advance(10)
    assert bucket.done == ["new"]


# -- what goes wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [BlockingIOError(), InterruptedError(), ConnectionAbortedError()])
def test_nobody_waits_or_gave_up(port: Port, error: OSError) -> None:
    port.come(error, Sock("later"))
    assert (port.taken, port.watches, port.loop.timers) == ([], True, [])


def test_an_accept_that_fails_lets_the_port_rest_for_a_second(port: Port, caplog: pytest.LogCaptureFixture) -> None:
    port.come(OSError(errno.EPERM, "no"), Sock("127.0.0.1"))
    assert (port.taken, port.watches) == ([], False)
    assert "the port cannot accept a connection: [Errno 1] no" in caplog.text
    port.loop.advance(1.0)
    port.turn()
    assert len(port.taken) == 1


def test_without_a_descriptor_those_who_wait_are_told_and_sent_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said: list[Any] = []
    port, away = Port(monkeypatch, say_no_room=said.append), Sock("127.0.0.1")
    out_of_files = OSError(errno.EMFILE, "Too many open files")
    port.come(out_of_files, away, Sock("127.0.0.2"))

    assert said == [away]
    assert (away.closed, away.blocks) == (1, False)
    assert [sock.name for sock, *_ in port.taken] == ["127.0.0.2"], "there is one again"
    assert "the port sends connections away" in caplog.text
    port.come(out_of_files)
    assert port.watches, "nobody waited"
    port.accepting.close()


@pytest.mark.parametrize("fails", [False, True])
def test_without_a_file_to_ask_who_it_is_nobody_is_let_in(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fails: bool
) -> None:
    said: list[Any] = []

    def say(sock: Any) -> None:
        said.append(sock)
        if fails:
            raise OSError(errno.EPIPE, "gone")

    port, unknown = Port(monkeypatch, say_no_room=say), Sock("127.0.0.1")
    port.gate.callers[unknown] = errors.ResourceExhaustedError(None, None, "no files")
    port.come(unknown, Sock("127.0.0.2"))

    assert said == [unknown]
    assert unknown.closed == 1
    assert [sock.name for sock, *_ in port.taken] == ["127.0.0.2"]
    assert "the port sends connections away" in caplog.text
    port.accepting.close()


# -- the end -----------------------------------------------------------------------------------------------------------


def test_closing_closes_what_listens_and_gives_the_reserve_back(monkeypatch: pytest.MonkeyPatch) -> None:
    port = Port(monkeypatch)
    unix: Any = Sock("unix", socket.AF_UNIX)
    port.accepting.watch(unix)
    assert port.accepting.sockets == {port.listening, unix}
    port.accepting._strangers.spend(1.0)
    port.accepting._strangers.wait(lambda: None)
    port.accepting.close()

    assert (port.listening.closed, unix.closed) == (1, 0)
    assert port.apart.closed == [unix], "those who wait there may have passed what takes long to close"
    assert (port.loop.readers, port.loop.timers, port.accepting.sockets) == ({}, [], set())
    assert port.accepting._reserve._kept == -1
    port.accepting.close()
    assert port.listening.closed == 1


async def test_a_task_leaves_its_place_when_it_ends_and_one_that_never_began_its_socket_too() -> None:
    import asyncio

    tasks: list[asyncio.Task[None]] = []

    async def work() -> None:
        await asyncio.sleep(0)

    def take(*_: Any) -> asyncio.Task[None]:
        tasks.append(asyncio.ensure_future(work()))
        return tasks[-1]

    places: Places[Any] = Places(8, asyncio.Task.cancel)
    gate: Any = FakeGate()
    accepting: AcceptLoop[Any] = AcceptLoop("the port", gate, places, take, limit="X")
    ends: list[Any] = [Sock("a"), Sock("b")]
    for sock in ends:
        assert not accepting._let_in(sock, ("a", 1))
    assert len(places) == 2
    tasks[1].cancel()
    await asyncio.wait(tasks)
    await asyncio.sleep(0)
    assert len(places) == 0
    assert [sock.closed for sock in ends] == [0, 1], "what ran has closed it itself, or keeps it"
    accepting.close()


def test_an_address_is_shown_as_grpc_writes_it() -> None:
    for family, address, text in (
        (socket.AF_INET, ("1.2.3.4", 5), "ipv4:1.2.3.4:5"),
        (socket.AF_INET6, ("::1", 5, 0, 0), "ipv6:[::1]:5"),
        (socket.AF_INET6, ("::ffff:10.0.0.1", 5, 0, 0), "ipv4:10.0.0.1:5"),
        (socket.AF_UNIX, "", "its own machine"),
    ):
        assert shown(Sock("", family), address) == text  # type: ignore[arg-type]
