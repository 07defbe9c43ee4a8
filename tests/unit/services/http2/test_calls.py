"""A call over a connection without a socket: what its headers are answered with, its handler, its end. No waiting."""

from __future__ import annotations

import asyncio
import gzip
import logging
from typing import TYPE_CHECKING, Any

import hpack as oracle
import pytest

from support.hand_clock import HandClock
from tenfold_core import errors
from tenfold_core.access import audit
from tenfold_core.access.gate import Caller, Gate
from tenfold_core.access.roles import Role
from tenfold_core.access.tokens import Token, TokenSet, digest_of
from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.calls import GrpcCall
from tenfold_services.http2.connection import Connection
from tenfold_services.http2.frame_types import Code
from tenfold_services.http2.handler import Failure
from tenfold_services.http2.hpack import encode
from tenfold_services.http2.http2_settings import Http2Settings
from tenfold_services.http2.open_calls import OpenCalls

from .peers import GREETING, data, frame, request, split

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_services.http2.hpack import Field

PATH = b"/some.Service/Method"
NAME = "/some.Service/Method"
HEAD: list[Field] = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", PATH),
    (b"content-type", b"application/grpc"),
    (b"te", b"trailers"),
]
OWNER = Caller(Role.ADMIN, "user 1")
STRANGER = Caller(Role.NONE, "user 2")
TOKEN = "a-token-that-is-long-enough"
TASK = "/job:ps/replica:0/task:0"


def message(payload: bytes, flag: int = 0) -> bytes:
    return bytes((flag,)) + len(payload).to_bytes(4, "big") + payload


class Handler:
    """Serves `answer`: an outcome, an error to raise, or a coroutine function that has the request and the call."""

    def __init__(self, answer: Any = b"answer", needs: Role = Role.READ, aligned: Any = None) -> None:
        self.answer, self.needs, self.aligned, self.action = answer, needs, aligned, "do it"
        self.seen: list[tuple[bytes, Any]] = []

    def begin(self, request: Any, context: Any) -> Any:
        self.seen.append((bytes(request), context))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(request, context) if callable(self.answer) else self.answer


class Ends:
    """A connection of a client, with calls for `handler` over it; a GrpcCall's wire."""

    def __init__(self, handler: Handler | None, caller: Caller = OWNER, **more: Any) -> None:
        self.handler, self.caller, self.name, self.host = handler, caller, "ipv4:127.0.0.1:9", ""
        self.calls = OpenCalls(
            lambda path: self.handler if path == NAME else None,
            Http2Settings(**more),
            Gate(TASK, lambda: TokenSet([(TOKEN, Token(digest_of(TOKEN), Role.RUN, "ci"))])),
        )
        self.connection = Connection(self._open, self.calls.settings, HandClock())
        self.connection.out.unread = self.calls.unread
        self.flushed, self.recognized, self.in_time = 0, 0, True
        self.opened: list[GrpcCall] = []
        self._fields = oracle.Decoder()
        self.send(GREETING)
        self.frames()

    def _open(self, *found: Any) -> GrpcCall:
        self.opened.append(GrpcCall(self.calls, self, *found))  # type: ignore[arg-type]
        return self.opened[-1]

    def flush(self) -> None:
        self.flushed += 1

    def recognize(self) -> None:
        self.recognized += 1

    def has_time(self) -> bool:
        return self.in_time

    def send(self, said: bytes) -> None:
        while said:
            count = 0
            for space in self.connection.spaces():
                part, said = said[: len(space)], said[len(space) :]
                space[: len(part)] = part
                count += len(part)
            self.connection.received(count)

    def call(self, payload: bytes = b"request", *more: Field, head: list[Field] = HEAD, number: int = 1) -> None:
        self.send(request(number, block=encode([*head, *more])) + data(number, message(payload), ends=True))

    def frames(self) -> list[tuple[int, int, int, bytes]]:
        return split(b"".join(self.connection.out.pull(1 << 30)))

    def answer(self) -> tuple[dict[str, str], bytes, dict[str, str]]:
        """The headers, the message and the trailers of the answer; headers only are trailers."""
        blocks, text = [], b""
        for kind, flags, _, payload in self.frames():
            if kind == frames.HEADERS:
                blocks.append((dict(self._fields.decode(payload)), flags))
            elif kind == frames.DATA:
                text += payload
        assert blocks[-1][1] & frames.END_STREAM
        return (blocks[0][0] if len(blocks) > 1 else {}), text, blocks[-1][0]

    def status(self) -> tuple[int, str]:
        """Of an answer that has no message."""
        head, text, tail = self.answer()
        assert not head
        assert not text
        assert tail[":status"] == "200"
        return int(tail["grpc-status"]), tail["grpc-message"]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the audit log notes of refusals."""
    noted: list[tuple[Any, ...]] = []
    note = lambda caller, action, why, address: noted.append((caller.name, caller.role, action, why, address))  # noqa: E731
    monkeypatch.setattr(audit.refusals, "note", note)
    return noted


# -- an answer ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [b"answer", [b"ans", bytearray(b"wer")], [memoryview(b"answer"), b""]])
async def test_a_handler_that_need_not_wait_answers_at_once(outcome: Any) -> None:
    ends = Ends(Handler(outcome))
    ends.call()

    assert ends.handler is not None
    assert [seen for seen, _ in ends.handler.seen] == [b"request"]
    head, text, tail = ends.answer()
    assert head == {":status": "200", "content-type": "application/grpc"}
    assert text == message(b"answer")
    assert tail == {"grpc-status": "0"}
    assert ends.calls.open == {}
    assert ends.calls.budget.taken == 0
    assert ends.flushed == 0, "it leaves with the turn"
    assert ends.recognized == 0


async def test_one_that_waits_is_a_task_and_says_when_it_has_an_answer() -> None:
    gate = asyncio.Event()

    async def later(request: Any, call: Any) -> bytes:
        call.set_trailing_metadata([("seen", "1"), ("raw-bin", b"\0")])
        await gate.wait()
        return b"late"

    ends = Ends(Handler(later))
    ends.call()
    (task,) = (task for task in asyncio.all_tasks() if task.get_name() == NAME)
    assert ends.calls.open == {ends.opened[0]: ends}
    assert ends.frames() == []
    gate.set()
    await task
    assert ends.flushed == 1
    _, text, tail = ends.answer()
    assert text == message(b"late")
    assert tail == {"grpc-status": "0", "seen": "1", "raw-bin": "AA"}
    assert ends.calls.open == {}


async def test_where_the_turn_has_no_time_left_the_handler_is_called_in_another_one() -> None:
    ends = Ends(Handler())
    ends.in_time = False
    ends.call()
    assert ends.handler is not None
    assert ends.handler.seen == []
    await _all_calls()
    assert ends.answer()[1] == message(b"answer")


async def test_headers_may_go_ahead_once() -> None:
    async def ahead(request: Any, call: Any) -> Any:
        await call.send_initial_metadata([("first", "1")])
        await call.send_initial_metadata([("second", "2")])
        return Failure(5, "not there") if bytes(request) == b"fail" else b"answer"

    ends = Ends(Handler(ahead))
    ends.call()
    await _all_calls()
    assert ends.flushed == 2, "the headers, and the answer"
    head, text, tail = ends.answer()
    assert head == {":status": "200", "content-type": "application/grpc", "first": "1"}
    assert (text, tail) == (message(b"answer"), {"grpc-status": "0"})

    ends.call(b"fail", number=3)
    await _all_calls()
    head, text, tail = ends.answer()
    assert (head["first"], text) == ("1", b"")
    assert tail == {"grpc-status": "5", "grpc-message": "not there"}, "no second status of HTTP"


async def test_what_a_handler_may_ask_of_its_call() -> None:
    seen: list[Any] = []

    def look(request: Any, call: Any) -> bytes:
        seen.append((call.invocation_metadata(), call.peer(), call.caller(), call.time_remaining()))
        return b""

    ends = Ends(Handler(look))
    ends.call(b"", (b"tf", b"1"), (b"raw-bin", b"AAE"))
    ends.call(b"", (b"grpc-timeout", b"20S"), number=3)
    first, second = seen
    assert first == ((("tf", "1"), ("raw-bin", b"\0\1")), "ipv4:127.0.0.1:9", OWNER, None)
    assert second[0] == ()
    assert 19 < second[3] <= 20


async def _all_calls() -> None:
    while tasks := [task for task in asyncio.all_tasks() if task.get_name() == NAME]:
        await asyncio.wait(tasks)


# -- what is refused ---------------------------------------------------------------------------------------------------


async def test_a_method_that_there_is_not() -> None:
    ends = Ends(None)
    ends.call()
    assert ends.status() == (12, "Method not found!")
    assert ends.calls.open == {}


async def test_who_does_not_speak_grpc_gets_a_status_of_http() -> None:
    ends = Ends(Handler())
    ends.call(head=[(b":method", b"GET"), *HEAD[1:]])
    _, text, tail = ends.answer()
    assert (tail, text) == ({":status": "405", "content-length": "0"}, b"")
    assert ends.calls.open == {}


async def test_headers_that_are_too_large() -> None:
    ends = Ends(Handler(), header_list_bytes=300)
    ends.call(b"", (b"a", b"x" * 300))
    assert ends.status() == (8, "The call's metadata is too large.")
    assert ends.calls.open == {}


@pytest.mark.parametrize(
    ("encoding", "known"), [(b"gzip", True), (b"deflate", True), (b"identity", True), (b"br", False)]
)
async def test_encodings(encoding: bytes, known: bool) -> None:
    ends = Ends(Handler())
    ends.call(b"x", (b"grpc-encoding", encoding))
    if known:
        assert ends.answer()[1] == message(b"answer")
        return
    _, _, tail = ends.answer()
    assert (tail["grpc-status"], tail["grpc-accept-encoding"]) == ("12", "identity, deflate, gzip")
    assert tail["grpc-message"] == "Messages in the encoding 'br' are not read here."


async def test_a_stranger_is_refused_and_noted(refused: list[tuple[Any, ...]]) -> None:
    ends = Ends(Handler(), STRANGER)
    ends.call()
    code, text = ends.status()
    assert code == errors.UNAUTHENTICATED
    assert text.startswith(f"some.Service/Method is refused by {TASK}: the call shows no token.")
    assert refused == [("user 2", Role.NONE, "do it", text, "ipv4:127.0.0.1:9")]
    assert ends.recognized == 0
    assert ends.handler is not None
    assert ends.handler.seen == []


async def test_a_good_token_shows_who_it_is(refused: list[tuple[Any, ...]]) -> None:
    ends = Ends(Handler(needs=Role.RUN), STRANGER)
    ends.call(b"", (b"authorization", b"Bearer " + TOKEN.encode()))
    assert ends.answer()[1] == message(b"answer")
    assert ends.recognized == 1
    assert ends.handler is not None
    caller = ends.handler.seen[0][1].caller()
    assert (caller.name, caller.role) == ("token ci", Role.RUN)
    assert caller.digest
    assert refused == []


async def test_one_with_too_small_a_role_is_refused_by_its_name(refused: list[tuple[Any, ...]]) -> None:
    ends = Ends(Handler(needs=Role.ADMIN), STRANGER)
    ends.call(b"", (b"authorization", b"Bearer " + TOKEN.encode()))
    code, text = ends.status()
    assert (code, refused[0][:3]) == (errors.PERMISSION_DENIED, ("token ci", Role.RUN, "do it"))
    assert "needs the role admin, and this caller has run" in text
    assert ends.recognized == 0


async def test_a_wrong_token_is_refused_whoever_shows_it(refused: list[tuple[Any, ...]]) -> None:
    ends = Ends(Handler())
    ends.call(b"", (b"authorization", b"Bearer wrong"))
    code, text = ends.status()
    assert (code, text) == (errors.UNAUTHENTICATED, f"{TASK} does not know the token that this call shows.")
    assert [each[0] for each in refused] == ["user 1"]


async def test_a_caller_may_ask_as_somebody_of_a_lesser_role(refused: list[tuple[Any, ...]]) -> None:
    ends = Ends(Handler(needs=Role.RUN))
    ends.call(b"", (b"tenfold-role", b"run"))
    assert ends.answer()[1] == message(b"answer")
    assert ends.handler is not None
    assert ends.handler.seen[0][1].caller() == Caller(Role.RUN, "user 1", b"", Role.ADMIN)
    ends.call(b"", (b"tenfold-role", b"read"), number=3)
    assert ends.status()[0] == errors.PERMISSION_DENIED
    ends.call(b"", (b"tenfold-role", b"king"), number=5)
    code, text = ends.status()
    assert (code, text[:14]) == (errors.INVALID_ARGUMENT, "tenfold-role: ")
    assert len(refused) == 1, "a word that is no role is no refusal"


async def test_too_many_calls() -> None:
    async def never(request: Any, call: Any) -> bytes:
        await asyncio.Event().wait()
        return b""

    ends = Ends(Handler(never), calls=1)
    ends.call()
    ends.call(number=3)
    code, text = ends.status()
    assert (code, text[:33]) == (8, "Concurrent RPC limit exceeded! Th")
    assert len(ends.calls.open) == 1
    ends.calls.end_all("over")
    assert ends.status() == (14, "over")
    await _all_calls()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (data(1, b"", ends=True), (12, "A unary call without a message.")),
        (data(1, message(b"xx")[:-1], ends=True), (13, "The request ended inside its message.")),
        (data(1, message(b"xx") + b"y", ends=True), (13, "More than one message was sent in a unary call.")),
        (data(1, message(b"x", 1), ends=True), (13, "A message with flag 1 in the encoding 'identity'.")),
        (data(1, b"\0\0\0\1\0"), (8, "Received message larger than max (256 vs. 255).")),
    ],
)
async def test_messages_that_are_none(sent: bytes, status: tuple[int, str]) -> None:
    ends = Ends(Handler(), message_bytes=255)
    ends.send(request(1, block=encode(HEAD)) + sent)
    assert ends.status() == status
    assert ends.calls.budget.taken == 0
    assert ends.handler is not None
    assert ends.handler.seen == []


async def test_what_comes_after_the_refusal_is_ignored() -> None:
    ends = Ends(Handler(), message_bytes=255)
    ends.send(request(1, block=encode(HEAD)) + data(1, b"\0\0\0\1\0"))
    ends.send(data(1, bytes(10_000)) + data(1, b"", ends=True))
    assert ends.connection.fault is None
    assert ends.status()[0] == 8


async def test_a_request_that_takes_more_than_there_is() -> None:
    ends = Ends(Handler(), buffered_bytes=10)
    ends.call(bytes(11))
    assert ends.status() == (8, "Requests take 10 bytes, the server's limit.")


async def test_a_large_request_is_received_where_it_stays() -> None:
    """And refused while it comes, where the budget ends."""
    ends, payload = Ends(Handler(aligned=lambda first: 3)), bytes(range(256)) * 200
    ends.send(request(1, block=encode(HEAD)))
    ends.send(data(1, message(payload)[:20_000]))
    assert ends.opened[0].space() is not None
    ends.send(data(1, message(payload)[20_000:], ends=True))
    assert ends.answer()[1] == message(b"answer")
    assert ends.handler is not None
    assert ends.handler.seen[0][0] == payload
    assert ends.opened[0].space() is None

    small = Ends(Handler(), buffered_bytes=30_000)
    small.send(request(1, block=encode(HEAD)) + frame(frames.DATA, 0, 1, message(payload)))
    assert small.status() == (8, "Requests take 30000 bytes, the server's limit.")
    assert small.calls.budget.taken == 0


# -- compressed requests -----------------------------------------------------------------------------------------------


async def test_a_compressed_request_is_inflated_elsewhere() -> None:
    ends = Ends(Handler())
    ends.send(request(1, block=encode([*HEAD, (b"grpc-encoding", b"gzip")])))
    ends.send(data(1, message(gzip.compress(b"request"), 1), ends=True))
    assert ends.handler is not None
    assert ends.handler.seen == []
    await _all_calls()
    assert [seen for seen, _ in ends.handler.seen] == [b"request"]
    assert ends.answer()[1] == message(b"answer")
    assert ends.calls.budget.taken == 0


async def test_one_that_cannot_be_is_refused() -> None:
    ends = Ends(Handler())
    ends.send(request(1, block=encode([*HEAD, (b"grpc-encoding", b"gzip")])))
    ends.send(data(1, message(b"no gzip", 1), ends=True))
    await _all_calls()
    code, text = ends.status()
    assert (code, text[:35]) == (13, "The request cannot be decompressed:")


# -- errors of handlers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    ("error", "status", "level"),
    [
        (RuntimeError("secret"), (13, f"{NAME}: RuntimeError"), logging.ERROR),
        (MemoryError(), (8, f"{NAME}: there is no memory for it."), logging.WARNING),
    ],
)
async def test_a_handler_that_raises(
    error: Exception, status: tuple[int, str], level: int, waits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def later(request: Any, call: Any) -> bytes:
        raise error

    ends = Ends(Handler(later if waits else error))
    ends.call()
    await _all_calls()
    assert ends.status() == status
    (record,) = caplog.records
    assert record.levelno == level
    assert record.getMessage().startswith(NAME)
    assert bool(record.exc_info) is (level == logging.ERROR)


async def test_a_handler_that_cancels_itself_is_answered() -> None:
    async def gives_up(request: Any, call: Any) -> bytes:
        raise asyncio.CancelledError

    ends = Ends(Handler(gives_up))
    ends.call()
    await _all_calls()
    assert ends.status() == (1, "The call was cancelled.")


# -- the end -----------------------------------------------------------------------------------------------------------


class Waiting:
    """A handler that waits, and notes how that ended."""

    def __init__(self, **more: Any) -> None:
        self.began, self.ended = asyncio.Event(), asyncio.Event()
        self.ends = Ends(Handler(self.wait), **more)

    async def wait(self, request: Any, call: Any) -> bytes:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()
        return b""


async def _gone(waiting: Waiting) -> None:
    waiting.ends.send(frames.rst_stream(1, Code.CANCEL))


async def _lost(waiting: Waiting) -> None:
    waiting.ends.connection.lost()


@pytest.mark.parametrize("end", [_gone, _lost])
async def test_a_caller_that_is_gone_cancels_the_handler(end: Callable[[Waiting], Any]) -> None:
    waiting = Waiting()
    waiting.ends.call()
    await waiting.began.wait()
    await end(waiting)
    assert waiting.ends.calls.open, "its task is not over"
    await waiting.ended.wait()
    await _all_calls()
    assert waiting.ends.calls.open == {}
    assert waiting.ends.frames() == []
    assert waiting.ends.calls.budget.taken == 0


async def test_one_that_is_gone_before_the_task_began_is_not_called() -> None:
    waiting = Waiting()
    waiting.ends.in_time = False
    waiting.ends.call()
    await _gone(waiting)
    assert waiting.ends.calls.open
    await _all_calls()
    assert not waiting.began.is_set()
    assert waiting.ends.calls.open == {}


async def test_a_deadline_ends_the_call_and_its_handler() -> None:
    waiting = Waiting()
    waiting.ends.call(b"", (b"grpc-timeout", b"1m"))
    await waiting.began.wait()
    await waiting.ended.wait()
    await _all_calls()
    assert waiting.ends.status() == (4, "Deadline Exceeded")
    assert waiting.ends.flushed == 1
    assert waiting.ends.calls.open == {}


async def test_a_deadline_of_no_time_is_over_at_once() -> None:
    ends = Ends(Handler())
    ends.call(b"", (b"grpc-timeout", b"0S"))
    assert ends.status() == (4, "Deadline Exceeded")
    assert ends.handler is not None
    assert ends.handler.seen == []


async def test_no_timer_is_left_and_none_runs_longer_than_it_may() -> None:
    loop, ends = asyncio.get_running_loop(), Ends(Handler(lambda request, call: asyncio.sleep(0, b"x")))
    for number, (text, seconds) in enumerate([(b"5H", 5 * 3600.0), (b"99999999H", 1e8)]):
        ends.call(b"", (b"grpc-timeout", text), number=2 * number + 1)
        timer = ends.opened[-1]._timer
        assert timer is not None
        assert abs(timer.when() - loop.time() - seconds) < 60
        await _all_calls()
        assert timer.cancelled()
        assert ends.answer()[1] == message(b"x")


async def test_giving_up_twice_answers_once() -> None:
    waiting = Waiting()
    waiting.ends.call()
    await waiting.began.wait()
    (call,) = waiting.ends.opened
    call.give_up(Failure(14, "first"))
    call.give_up(Failure(14, "second"))
    call.ended()
    call.take(memoryview(b"late"))
    call.filled(3)
    await call.send_initial_metadata([("late", "1")])
    await waiting.ended.wait()
    await _all_calls()
    assert waiting.ends.status() == (14, "first")
    assert waiting.ends.frames() == []


async def test_an_answer_is_not_sent_where_the_peer_does_not_read_others() -> None:
    """One that is alone on its connection is, however large; refusals count until they end the connection."""
    ends = Ends(Handler(bytes(1000)), unread_bytes=2000)
    ends.calls.unread.bytes += 1500
    ends.call()
    assert ends.connection.out.own_unread == 1005
    ends.calls.unread.bytes -= 1500
    assert ends.handler is not None
    ends.handler.answer = bytes(995)
    ends.call(number=3)
    assert ends.connection.out.own_unread == 2005
    before = ends.connection.out.control_bytes
    ends.handler.answer = b""
    ends.call(number=5)
    assert ends.connection.out.control_bytes == before + 256
    found = [payload for kind, _, number, payload in ends.frames() if number == 5 and kind == frames.HEADERS]
    fields = dict(oracle.Decoder().decode(found[0]))
    assert fields["grpc-status"] == "8"
    assert fields["grpc-message"] == (
        "The answer of 0 bytes is not sent: 2005 bytes of answers wait for this peer to read them, 2005 for all, "
        "and 2000 may (TENFOLD_HTTP2_UNREAD_BYTES)."
    )


async def test_an_answer_that_no_message_takes() -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return 1 << 32

    ends = Ends(Handler([Huge()]))
    ends.call()
    assert ends.status() == (8, "The answer takes 4294967296 bytes; a message takes 4294967295.")
