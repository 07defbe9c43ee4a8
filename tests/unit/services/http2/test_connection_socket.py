"""A connection's socket, which is a fake, on a loop that only the test turns: reading, writing, TLS, and every end."""

from __future__ import annotations

import logging
import socket
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from support.fake_loop import FakeLoop
from tenfold_core.access import audit
from tenfold_core.access.gate import Caller, Gate
from tenfold_core.access.roles import Role
from tenfold_core.traffic import OTHERS
from tenfold_link.aio import accept_loop
from tenfold_services.http2 import connection_socket, open_calls
from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.connection_socket import ConnectionSocket
from tenfold_services.http2.frame_types import Code, ConnectionFault
from tenfold_services.http2.http2_settings import Http2Settings
from tenfold_services.http2.open_calls import OpenCalls

from .peers import GREETING, data, request, split

if TYPE_CHECKING:
    from collections.abc import Callable

OWNER, STRANGER = Caller(Role.ADMIN, "user 1"), Caller(Role.NONE, "user 2")
LOGGER = "tenfold_services.http2.connection_socket"


class FakeSocket:
    """What comes is in `incoming`, b"" for the peer's end; what leaves in `sent`, `room` bytes of it at most."""

    family = socket.AF_INET

    def __init__(self, peer: str = "127.0.0.1") -> None:
        self.peer = peer
        self.incoming: list[bytes | OSError] = []
        self.sent, self.room, self.fails = b"", 1 << 40, False
        self.sends = 0
        self.options: list[tuple[int, int, int]] = []
        self.shut: list[int] = []
        self.closed = 0
        #: What the clock says after each system call.
        self.cost: Callable[[], None] = lambda: None

    def getpeername(self) -> tuple[str, int]:
        return (self.peer, 7)

    def setsockopt(self, *option: int) -> None:
        self.options.append(option)  # type: ignore[arg-type]

    def fileno(self) -> int:
        return 5

    def recv(self, size: int, flags: int = 0) -> bytes:
        self.cost()
        if not self.incoming:
            raise BlockingIOError
        found = self.incoming[0]
        if isinstance(found, OSError):
            raise self.incoming.pop(0)  # type: ignore[misc]
        if not flags & socket.MSG_PEEK:
            self.incoming.pop(0)
            if found[size:]:
                self.incoming.insert(0, found[size:])
        return found[:size]

    def recv_into(self, space: memoryview) -> int:
        found = self.recv(len(space))
        space[: len(found)] = found
        return len(found)

    def recvmsg_into(self, spaces: list[memoryview]) -> tuple[int, None]:
        found = self.recv(sum(map(len, spaces)))
        at = 0
        for space in spaces:
            part = found[at : at + len(space)]
            space[: len(part)] = part
            at += len(part)
        return len(found), None

    def send(self, piece: Any) -> int:
        return self.sendmsg([piece])

    def sendmsg(self, pieces: list[Any]) -> int:
        self.cost()
        self.sends += 1
        if self.fails:
            raise BrokenPipeError
        if not self.room:
            raise BlockingIOError
        taken = b"".join(pieces)[: self.room]
        self.sent += taken
        self.room -= len(taken)
        return len(taken)

    def shutdown(self, how: int) -> None:
        self.shut.append(how)
        if self.fails:
            raise OSError

    def close(self) -> None:
        self.closed += 1
        if self.fails:
            raise OSError


class Echo:
    """Answers each message with itself."""

    aligned = None
    needs = Role.READ
    action = "echo"

    def begin(self, request: Any, context: Any) -> Any:
        return bytes(request)


class Port:
    """One accepted connection."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        caller: Caller = OWNER,
        peer: str = "127.0.0.1",
        context: Any = None,
        sock: Any = None,
        **settings: Any,
    ) -> None:
        self.loop, self.sock, self.clock = FakeLoop(), sock or FakeSocket(peer), 0.0
        for module in (open_calls, accept_loop):
            self.loop.running_in(monkeypatch, module)
        for module in (connection_socket, accept_loop):
            monkeypatch.setattr(module, "perf_counter", lambda: self.clock)
        self.recognized: list[Any] = []
        self.ended: list[Any] = []
        calls = OpenCalls(lambda path: Echo(), Http2Settings(**settings), Gate("this server"), self.recognized.append)
        self.calls = calls
        self.made = ConnectionSocket(self.sock, "ipv4:127.0.0.1:7", calls, self.ended.append, caller, context)

    def come(self, *said: bytes | OSError) -> None:
        """The peer says so, and the loop turns once."""
        self.sock.incoming += said
        self.turn()

    def turn(self) -> None:
        self.loop.readers[5]()

    def frames(self) -> list[tuple[int, int, int, bytes]]:
        """What has left since it was asked last."""
        sent, self.sock.sent = self.sock.sent, b""
        return split(sent)

    def goaway(self) -> tuple[int, str]:
        """The code and the text of the GOAWAY that has left."""
        (payload,) = (each[3] for each in self.frames() if each[0] == frames.GOAWAY)
        return int.from_bytes(payload[4:8], "big"), payload[8:].decode()


def echo(number: int, text: bytes) -> bytes:
    return request(number) + data(number, b"\0" + len(text).to_bytes(4, "big") + text, ends=True)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Port:
    return Port(monkeypatch)


# -- reading and writing -----------------------------------------------------------------------------------------------


def test_it_greets_and_watches_the_socket(port: Port) -> None:
    assert [kind for kind, *_ in port.frames()] == [frames.SETTINGS, frames.WINDOW_UPDATE]
    assert list(port.loop.readers) == [5]
    assert (port.made.host, port.made.caller, port.made.name) == ("", OWNER, "ipv4:127.0.0.1:7")
    assert (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1) in port.sock.options
    assert (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60) in port.sock.options


def test_a_peer_of_another_host_is_known_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Port(monkeypatch, peer="::ffff:10.0.0.3").made.host == "10.0.0.3"


def test_the_answer_leaves_in_the_turn_that_brought_the_request(port: Port) -> None:
    port.frames()
    received, sent = OTHERS.received, OTHERS.sent
    port.sock.sends = 0
    port.come(GREETING + echo(1, b"one") + echo(3, b"two"))
    assert port.sock.sends == 1, "all at once"
    found = port.sock.sent
    assert [payload[5:] for kind, _, _, payload in port.frames() if kind == frames.DATA] == [b"one", b"two"]
    assert OTHERS.sent - sent == len(found)
    assert OTHERS.received - received == len(GREETING + echo(1, b"one") + echo(3, b"two"))
    assert not port.made.closed


#: A frame that means nothing, as large as what is read at once.
FULL = frames.header((16 << 10) - 9, 99) + bytes((16 << 10) - 9)


def test_reading_goes_on_until_nothing_is_left(port: Port) -> None:
    port.come(GREETING)
    port.come(FULL, FULL, FULL[:-1])
    assert port.sock.incoming == []
    port.come(FULL[-1:], FULL)
    assert len(port.sock.incoming) == 1, "less came than there is room for: that was all"


def test_a_turn_of_many_bytes_leaves_the_rest_to_the_next(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_socket, "_TURN_BYTES", 32 << 10)
    port.come(GREETING)
    port.come(FULL, FULL, FULL)
    assert len(port.sock.incoming) == 1
    port.turn()
    assert port.sock.incoming == []


@pytest.mark.parametrize(("cost", "left"), [(0.0019, 1), (0.0021, 2)])
def test_a_turn_that_takes_long_leaves_the_rest_to_the_next(port: Port, cost: float, left: int) -> None:
    def costs() -> None:
        port.clock += cost

    port.come(GREETING)
    port.sock.cost = costs
    port.come(FULL, FULL, FULL, FULL)
    assert len(port.sock.incoming) == left


def test_a_stranger_is_read_once_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    port = Port(monkeypatch, caller=STRANGER)
    port.come(GREETING + frames.header(1024 - len(GREETING) - 9, 99) + bytes(1024 - len(GREETING) - 9), b"\0")
    assert len(port.sock.incoming) == 1


def test_strangers_wait_for_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    port = Port(monkeypatch, caller=STRANGER)

    def costs() -> None:
        port.clock += 0.006

    port.sock.cost = costs
    port.come(GREETING)
    port.sock.cost = lambda: None
    assert port.made.connection.greeted
    port.loop.writers[5]()
    port.frames()
    port.come(frames.header(8, frames.PING) + bytes(8))
    assert (len(port.sock.incoming), port.loop.readers) == (1, {})
    port.clock += 0.1
    port.loop.advance(0.1)
    assert port.sock.incoming == [], "it goes on by itself"
    assert list(port.loop.readers) == [5]
    assert [kind for kind, *_ in port.frames()] == [frames.PING]


def test_one_that_is_closed_meanwhile_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    port = Port(monkeypatch, caller=STRANGER)
    port.calls.strangers.spend(1.0)
    port.come(GREETING)
    port.made.close()
    port.clock += 100
    port.loop.advance(100)
    assert port.loop.readers == {}
    assert len(port.sock.incoming) == 1


def test_a_stranger_that_has_shown_who_it_is_pays_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    port = Port(monkeypatch, caller=STRANGER)
    port.made.recognize()
    port.made.recognize()
    assert port.recognized == [port.made]
    port.calls.strangers.spend(10.0)
    port.come(GREETING)
    assert port.made.connection.greeted


def test_handlers_run_for_a_part_of_the_turn(port: Port) -> None:
    assert port.made.has_time()
    port.made._corked, port.made._turn_began = True, 1.0
    port.clock = 1.0019
    assert port.made.has_time()
    port.clock = 1.0021
    assert not port.made.has_time()
    port.made._corked = False
    assert port.made.has_time()


@pytest.mark.parametrize("error", [BlockingIOError(), InterruptedError()])
def test_nothing_is_there_to_be_read(port: Port, error: OSError) -> None:
    port.come(error)
    assert not port.made.closed
    assert not port.made._corked


@pytest.mark.parametrize("error", [b"", ConnectionResetError(), EOFError()])
def test_a_peer_that_is_gone_ends_the_connection(port: Port, error: Any) -> None:
    if isinstance(error, EOFError):
        port.sock.recv_into = lambda _: (_ for _ in ()).throw(error)
        port.turn()
    else:
        port.come(error)
    assert (port.made.closed, port.sock.closed) == (True, 1)
    assert port.ended == [port.made]
    assert (port.loop.readers, port.loop.writers, port.loop.timers) == ({}, {}, [])


@pytest.mark.parametrize(("error", "level"), [(RuntimeError("bug"), "ERROR"), (MemoryError(), "WARNING")])
def test_an_error_of_ours_ends_this_connection_alone(
    port: Port, error: Exception, level: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(count: int) -> None:
        raise error

    monkeypatch.setattr(port.made.connection, "received", fails)
    port.come(GREETING)
    assert port.goaway() == (Code.INTERNAL_ERROR, "an error of the server")
    assert caplog.records[0].levelname == level
    assert "A connection of ipv4:127.0.0.1:7 ends" in caplog.records[0].getMessage()
    assert bool(caplog.records[0].exc_info) is (level == "ERROR")


def test_what_the_kernel_does_not_take_leaves_later(port: Port) -> None:
    port.come(GREETING)
    port.frames()
    port.sock.room = 10
    port.come(echo(1, b"answer"))
    assert len(port.sock.sent) == 10
    assert list(port.loop.writers) == [5]
    port.sock.sends = 0
    port.made.flush()
    assert port.sock.sends == 0, "the system says when"
    port.sock.room = 1 << 20
    port.loop.writers[5]()
    assert [kind for kind, *_ in port.frames()] == [frames.HEADERS, frames.DATA, frames.HEADERS]
    assert port.loop.writers == {}


@pytest.mark.parametrize("long", [False, True])
def test_a_turn_writes_so_much_or_so_long(port: Port, monkeypatch: pytest.MonkeyPatch, long: bool) -> None:
    def costs() -> None:
        port.clock += 0.0041 if long else 0.0

    port.come(GREETING + frames.settings({frames.INITIAL_WINDOW: 1 << 30}) + frames.window_update(0, 1 << 29))
    port.frames()
    monkeypatch.setattr(connection_socket, "_PULL_BYTES", 1000)
    port.sock.room = 0
    port.come(echo(1, bytes(20_000)))
    if not long:
        monkeypatch.setattr(connection_socket, "_TURN_BYTES", 1000)
    port.sock.room, port.sock.cost = 1 << 20, costs
    rounds = 0
    while port.loop.writers:
        rounds += 1
        port.loop.writers[5]()
    assert 15 < rounds < 25
    assert port.frames()[-1][:2] == (frames.HEADERS, frames.END_HEADERS | frames.END_STREAM)


def test_a_socket_that_cannot_be_written_is_closed(port: Port) -> None:
    port.sock.fails = True
    port.come(GREETING)
    assert port.made.closed
    assert port.ended == [port.made]


# -- the end -----------------------------------------------------------------------------------------------------------


def test_a_fault_is_told_and_the_peer_may_read_it(port: Port, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        port.come(b"GET / HTTP/1.1\r\n\r\n")
    assert port.goaway() == (Code.PROTOCOL_ERROR, "no HTTP/2 preface")
    assert "ends with GOAWAY: it sent no HTTP/2 preface" in caplog.text
    assert port.sock.shut == [socket.SHUT_WR]
    assert not port.made.closed
    port.come(b"whatever")
    port.come(GREETING)
    assert port.sock.incoming == [], "it is read, and not looked at"
    assert port.frames() == []
    port.loop.advance(0.99)
    assert not port.made.closed
    port.loop.advance(0.01)
    assert (port.made.closed, port.ended) == (True, [port.made])


def test_a_peer_that_reads_the_end_and_hangs_up_is_done(port: Port) -> None:
    port.come(b"GET / HTTP/1.1\r\n\r\n")
    port.come(b"")
    assert port.made.closed
    port.made.close()
    assert (port.sock.closed, port.ended) == (1, [port.made])


def test_a_half_close_that_fails_is_the_end(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(how: int) -> None:
        raise OSError

    monkeypatch.setattr(port.sock, "shutdown", fails)
    port.come(b"GET / HTTP/1.1\r\n\r\n")
    assert port.made.closed


def test_no_handshake_in_time(port: Port) -> None:
    port.frames()
    port.loop.advance(9.99)
    assert port.made.connection.fault is None
    port.loop.advance(0.01)
    assert port.goaway() == (Code.SETTINGS_TIMEOUT, "no handshake in time")


def test_one_that_has_greeted_is_not_late(port: Port) -> None:
    port.come(GREETING)
    assert port.loop.timers == []


def test_leaving_ends_when_everything_is_sent(port: Port) -> None:
    port.come(GREETING)
    port.frames()
    port.sock.room = 5
    port.come(echo(1, b"answer"))
    port.made.leave(3.0)
    port.made.leave(1.0)
    assert port.sock.shut == []
    port.sock.room = 1 << 20
    port.loop.writers[5]()
    assert port.sock.shut == [socket.SHUT_WR]
    assert port.frames()[-1][0] == frames.HEADERS
    assert len(port.loop.timers) == 1
    port.loop.advance(2.99)
    assert not port.made.closed
    port.loop.advance(0.01)
    assert port.made.closed
    port.made.leave(1.0)
    assert port.loop.timers == []


def test_one_that_is_closed_does_not_leave(port: Port) -> None:
    port.come(GREETING)
    port.made.close()
    port.made.leave(1.0)
    assert port.loop.timers == []
    assert port.sock.shut == []


def test_closing_cancels_its_calls_and_counts_nothing(port: Port) -> None:
    port.come(GREETING + request(1) + data(1, b"\0\0\0\0\5ab"))
    assert port.calls.budget.taken == 2
    port.made.close()
    assert port.calls.budget.taken == 0
    assert port.calls.open == {}
    assert port.made.connection.streams == {}


def test_a_socket_that_does_not_close_is_closed_all_the_same(port: Port) -> None:
    port.sock.fails = True
    port.made.close()
    assert port.ended == [port.made]


@pytest.mark.parametrize(("rate", "ends"), [(1023, True), (1024, False)])
def test_half_a_request_has_to_come_at_a_rate(
    port: Port, rate: int, ends: bool, caplog: pytest.LogCaptureFixture
) -> None:
    port.come(GREETING + request(1))
    for _ in range(40_000):
        if port.made.closed:
            break
        port.made._received += rate * 30
        port.made.look(30.0)
    assert port.made.closed is ends
    if ends:
        assert caplog.records[-1].getMessage() == (
            "A connection of ipv4:127.0.0.1:7 ends: for 300 s its peer has sent less than 1024 bytes a second."
        )


def test_an_answer_has_to_be_taken_and_acknowledging_is_no_progress(
    port: Port, caplog: pytest.LogCaptureFixture
) -> None:
    port.come(GREETING + frames.settings({frames.INITIAL_WINDOW: 0}) + echo(1, b"answer"))
    port.made.look(0.0)
    for _ in range(9):
        port.come(frames.header(8, frames.PING) + bytes(8))
        port.made.look(30.0)
    assert not port.made.closed
    port.come(frames.header(8, frames.PING) + bytes(8))
    port.made.look(30.0)
    assert port.made.closed
    assert "has taken less than 1024 bytes a second" in caplog.text


def test_what_the_kernel_has_not_taken_is_due_too(port: Port) -> None:
    port.come(GREETING)
    port.sock.room = 5
    port.come(echo(1, b"answer"))
    assert not port.made.connection.out.pending
    port.made.look(0.0)
    for _ in range(10):
        port.made.look(30.0)
    assert port.made.closed


def test_one_where_nothing_is_due_may_be_silent_for_ever(port: Port) -> None:
    port.come(GREETING)
    for _ in range(100):
        port.made.look(30.0)
    assert not port.made.closed


# -- TLS ---------------------------------------------------------------------------------------------------------------


class FakeTls:
    """A TlsSocket: `steps` of its handshake, and then the plain socket's bytes."""

    def __init__(self, sock: FakeSocket, context: Any) -> None:
        self.sock, self.steps, self.error = sock, context.steps, context.error
        self.certificate = context.certificate
        self.heard = 0
        context.made.append(self)
        self.recv, self.recv_into, self.recvmsg_into = sock.recv, sock.recv_into, sock.recvmsg_into
        self.send, self.sendmsg, self.shutdown, self.close = sock.send, sock.sendmsg, sock.shutdown, sock.close

    @property
    def greeted(self) -> bool:
        return not self.steps

    def hear(self) -> None:
        self.heard += 1
        self.sock.recv(1 << 10)

    def handshake(self) -> bool:
        if self.error is not None:
            raise self.error
        self.steps -= 1
        return not self.steps


class FakeContext:
    def __init__(self, steps: int = 2, certificate: Any = None, error: Exception | None = None) -> None:
        self.steps, self.certificate, self.error = steps, certificate, error
        self.made: list[FakeTls] = []


HELLO = b"\x16\x03"


@pytest.fixture
def tls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    noted: list[tuple[Any, ...]] = []
    note = lambda caller, action, why, address: noted.append((caller.name, action, why, address))  # noqa: E731
    monkeypatch.setattr(audit.refusals, "note", note)
    monkeypatch.setattr(connection_socket, "TlsSocket", FakeTls)
    monkeypatch.setattr(connection_socket, "role_of", lambda shown: shown)
    monkeypatch.setattr(connection_socket, "name_of", lambda shown: "ps0")
    return noted


def test_nothing_is_said_before_it_is_known_whether_the_peer_speaks_tls(
    monkeypatch: pytest.MonkeyPatch, tls: list[tuple[Any, ...]]
) -> None:
    context = FakeContext()
    port = Port(monkeypatch, context=context)
    assert port.sock.sent == b""
    port.turn()
    assert (port.sock.sent, port.made.closed, context.made) == (b"", False, [])
    port.come(HELLO, HELLO)
    assert len(context.made) == 1
    assert port.sock.sent == b"", "the handshake is not over"
    assert port.sock.incoming == [HELLO], "what comes next is not taken for a frame"
    port.turn()
    assert len(context.made) == 1
    assert context.made[0].heard == 2
    assert [kind for kind, *_ in port.frames()] == [frames.SETTINGS, frames.WINDOW_UPDATE]
    port.sock.incoming.clear()
    port.come(GREETING + echo(1, b"x"))
    assert any(kind == frames.DATA for kind, *_ in port.frames())
    assert context.made[0].heard == 2
    assert tls == []


def test_a_peer_of_this_machine_may_speak_in_the_clear(
    monkeypatch: pytest.MonkeyPatch, tls: list[tuple[Any, ...]]
) -> None:
    port = Port(monkeypatch, context=FakeContext())
    port.come(GREETING + echo(1, b"x"))
    assert any(kind == frames.DATA for kind, *_ in port.frames())
    assert tls == []


def test_one_beyond_it_must_speak_tls(monkeypatch: pytest.MonkeyPatch, tls: list[tuple[Any, ...]]) -> None:
    port = Port(monkeypatch, context=FakeContext(), peer="10.0.0.3", caller=STRANGER)
    port.come(GREETING + echo(1, b"x"))
    assert port.goaway() == (Code.INADEQUATE_SECURITY, "no TLS, which is asked for here")
    assert tls == [("user 2", "connect", "no TLS", "ipv4:127.0.0.1:7")]


def test_a_peer_that_says_nothing_and_hangs_up(monkeypatch: pytest.MonkeyPatch, tls: list[Any]) -> None:
    port = Port(monkeypatch, context=FakeContext())
    port.come(b"")
    assert port.made.closed


def test_a_handshake_that_fails(monkeypatch: pytest.MonkeyPatch, tls: list[tuple[Any, ...]]) -> None:
    error = ssl.SSLError(1, "bad thing")
    error.reason = "BAD_THING"
    port = Port(monkeypatch, context=FakeContext(error=error), caller=STRANGER)
    port.come(HELLO)
    assert port.made.closed
    ((name, action, why, address),) = tls
    assert (name, action, address) == ("user 2", "connect", "ipv4:127.0.0.1:7")
    assert why == "no handshake of TLS: bad thing"


@pytest.mark.parametrize(
    ("before", "shown", "after"),
    [
        (STRANGER, Role.REGISTER, Caller(Role.REGISTER, "certificate ps0")),
        (STRANGER, None, STRANGER),
        (OWNER, Role.REGISTER, OWNER),
    ],
)
def test_a_certificate_shows_who_it_is(
    monkeypatch: pytest.MonkeyPatch, tls: list[Any], before: Caller, shown: Role | None, after: Caller
) -> None:
    port = Port(monkeypatch, context=FakeContext(1, certificate=shown), caller=before)
    port.come(HELLO)
    assert port.made.caller == after
    assert port.recognized == ([port.made] if after != before else [])


def test_what_tls_has_received_already_is_read_in_the_next_turn(
    monkeypatch: pytest.MonkeyPatch, tls: list[Any]
) -> None:
    """The system tells of it no more."""
    context = FakeContext(1)
    port = Port(monkeypatch, context=context)
    port.come(HELLO)
    monkeypatch.setattr(connection_socket, "_TURN_BYTES", 1)
    assert port.loop.soon == []
    size = 16 << 10
    port.come(GREETING + frames.header(size - len(GREETING) - 9, 99) + bytes(size - len(GREETING) - 9), b"\0")
    assert len(port.sock.incoming) == 1
    assert len(port.loop.soon) == 1
    port.loop.soon.pop()()
    assert port.sock.incoming == []


@pytest.mark.parametrize("waiting", [False, True])
def test_a_socket_with_tls_that_has_heard_something_is_read_at_once(
    monkeypatch: pytest.MonkeyPatch, tls: list[Any], waiting: bool
) -> None:
    context, plain = FakeContext(0), FakeSocket()
    secured = FakeTls(plain, context)
    secured.waiting, secured.getpeername, secured.setsockopt = waiting, plain.getpeername, plain.setsockopt  # type: ignore[attr-defined]
    secured.fileno = plain.fileno  # type: ignore[attr-defined]
    port = Port(monkeypatch, sock=secured)
    assert len(port.loop.soon) == waiting


def test_the_pieces_that_left_are_dropped() -> None:
    for count, left in ((0, b"abcdef"), (2, b"cdef"), (3, b"def"), (6, b"")):
        pieces: list[Any] = [b"ab", b"", b"cd", bytearray(b"ef")]
        connection_socket._drop(pieces, count)
        assert b"".join(pieces) == left
        assert not any(len(piece) == 0 for piece in pieces[:1]) or count == 0


def test_a_fault_of_the_server_itself_is_bounded_too(port: Port) -> None:
    port.sock.room = 0
    port.made.connection.fail(ConnectionFault(Code.INTERNAL_ERROR, "x"))
    port.made.flush()
    port.loop.advance(1.0)
    assert port.made.closed
