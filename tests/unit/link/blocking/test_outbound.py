"""The blocking way out over a fake socket: whole frames or the end of the link, deadlines, and blocks that go back."""

from __future__ import annotations

import socket
from collections import deque
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tenfold_core import errors
from tenfold_link.blocking import outbound as outbound_module
from tenfold_link.blocking.outbound import BlockingOutbound, late
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.wire.frames import FrameKind, pack, pack_release

SETTINGS = replace(DEFAULT_LINK_SETTINGS, ping_every_seconds=2.0, ping_answer_seconds=3.0)


class Sock:
    """Takes as many bytes as `rooms` says, one number a call; an error is raised. Without one it takes all."""

    def __init__(self) -> None:
        self.rooms: list[Any] = []
        self.sent = b""
        self.calls: list[str] = []
        self.flags: list[int] = []
        self.before: Any = lambda: None

    def send(self, piece: Any, flags: int = 0) -> int:
        self.calls.append("send")
        self.flags.append(flags)
        return self._take([piece])

    def sendmsg(self, pieces: list[Any]) -> int:
        self.calls.append(f"sendmsg {len(pieces)}")
        return self._take(pieces)

    def _take(self, pieces: list[Any]) -> int:
        self.before()
        room = self.rooms.pop(0) if self.rooms else 1 << 30
        if isinstance(room, BaseException):
            raise room
        taken = b"".join(pieces)[:room]
        self.sent += taken
        return len(taken)


class Ends:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sock, self.reasons, self.now = Sock(), [], 100.0
        monkeypatch.setattr(outbound_module, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.out = BlockingOutbound(self.sock, "the peer", SETTINGS, self.lost)  # type: ignore[arg-type]

    def lost(self, reason: str) -> None:
        self.reasons.append(reason)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Ends:
    return Ends(monkeypatch)


def test_a_frame_leaves_whole_however_little_is_taken(ends: Ends) -> None:
    ends.sock.rooms = [2, 3, InterruptedError(), 1]
    ends.out.send([b"abc", b"defg", b"h"])
    assert ends.sock.sent == b"abcdefgh"
    assert ends.sock.calls == ["sendmsg 3", "sendmsg 3", "sendmsg 2", "sendmsg 2", "sendmsg 2"]
    ends.out.send([b"one"])
    assert ends.sock.calls[-1] == "send"
    ends.sock.rooms = [1, 1]
    ends.out.send([b"two"])
    assert ends.sock.sent == b"abcdefghonetwo"
    assert ends.reasons == []


def test_no_more_pieces_than_the_kernel_takes(ends: Ends) -> None:
    ends.out.send([b"x"] * 65)
    assert ends.sock.calls == ["sendmsg 64", "send"]


def test_a_deadline_before_the_first_byte_costs_the_call_alone(ends: Ends) -> None:
    ends.sock.rooms = [BlockingIOError()]
    with pytest.raises(errors.DeadlineExceededError, match=r"^the peer did not answer in time\.$"):
        ends.out.send([b"abc"], 100.0)
    assert ends.reasons == []
    ends.sock.rooms = [BlockingIOError()]
    ends.out.send([b"abc"], 100.1)
    assert ends.sock.sent == b"abc"


def test_a_deadline_in_the_middle_ends_the_link(ends: Ends) -> None:
    ends.sock.rooms = [1, BlockingIOError()]
    with pytest.raises(errors.DeadlineExceededError):
        ends.out.send([b"abc"], 100.0)
    assert ends.reasons == ["sending to it was interrupted in the middle of a message"]


def test_half_a_record_of_tls_is_the_middle_too(ends: Ends) -> None:
    ends.sock.half_sent = True  # type: ignore[attr-defined]
    ends.sock.rooms = [BlockingIOError()]
    with pytest.raises(errors.DeadlineExceededError):
        ends.out.send([b"abc"], 100.0)
    assert ends.reasons == ["sending to it was interrupted in the middle of a message"]


def test_an_interrupt_ends_the_link_for_nobody_knows_what_left(ends: Ends) -> None:
    ends.sock.rooms = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        ends.out.send([b"abc"])
    assert ends.reasons == ["sending to it was interrupted in the middle of a message"]
    ends.out.send([b"next"])
    assert ends.sock.sent == b"next", "the lock is free again"


@pytest.mark.parametrize(("error", "text"), [(OSError(32, "Broken pipe"), "Broken pipe"), (OSError("odd"), "odd")])
def test_a_connection_that_breaks(ends: Ends, error: OSError, text: str) -> None:
    ends.sock.rooms = [error]
    ends.out.send([b"abc"])
    assert ends.reasons == [f"the connection broke: {text}"]


@pytest.mark.parametrize(("seconds", "ends_it"), [(5.0, False), (5.1, True)])
def test_a_peer_that_reads_nothing_hangs(ends: Ends, seconds: float, ends_it: bool) -> None:
    def later() -> None:
        if len(ends.sock.calls) == 2:
            ends.now += seconds

    ends.sock.before = later
    ends.sock.rooms = [BlockingIOError(), BlockingIOError()]
    ends.out.send([b"abc"])
    assert ends.reasons == (["it has not read anything for 5 s, it hangs"] if ends_it else [])
    assert ends.sock.sent == (b"" if ends_it else b"abc")


def test_one_that_reads_now_and_then_does_not(ends: Ends) -> None:
    def later() -> None:
        ends.now += 3.0

    ends.sock.before = later
    ends.sock.rooms = [BlockingIOError(), 1, BlockingIOError(), 1, BlockingIOError()]
    ends.out.send([b"abc"])
    assert ends.sock.sent == b"abc"
    assert ends.reasons == []


# -- blocks ------------------------------------------------------------------------------------------------------------


def test_blocks_go_back_at_once_or_with_the_frame_that_is_written(ends: Ends) -> None:
    ends.out.give_back(1)
    assert ends.sock.sent == pack_release(deque([1]))
    ends.sock.sent = b""
    ends.out._writing.acquire()
    ends.out.give_back(2)
    assert ends.sock.sent == b""
    ends.out._writing.release()
    ends.out.send([b"frame"])
    assert ends.sock.sent == pack_release(deque([2])) + b"frame"


def test_one_that_comes_while_a_frame_is_written_goes_after_it(ends: Ends) -> None:
    def meanwhile() -> None:
        ends.sock.before = lambda: None
        ends.out.give_back(3)

    ends.sock.before = meanwhile
    ends.out.send([b"frame"])
    assert ends.sock.sent == b"frame" + pack_release(deque([3]))


def test_after_the_end_blocks_go_nowhere(ends: Ends) -> None:
    ends.out.closed = True
    ends.out.give_back(1)
    assert ends.sock.sent == b""


# -- the end -----------------------------------------------------------------------------------------------------------


def test_goodbye_waits_for_nobody(ends: Ends) -> None:
    ends.out.say_goodbye("why")
    assert ends.sock.sent == pack(FrameKind.GOODBYE, header=b"why")
    assert ends.sock.flags == [socket.MSG_DONTWAIT]
    ends.out._writing.acquire()
    ends.out.say_goodbye("again")
    ends.out._writing.release()
    assert len(ends.sock.calls) == 1
    ends.sock.rooms = [BlockingIOError()]
    ends.out.say_goodbye("once more")
    assert not ends.out._writing.locked()


def test_a_link_that_nobody_holds_any_more_is_not_told(ends: Ends) -> None:
    out, sock = ends.out, ends.sock
    del ends.out

    class Gone:
        def lost(self, reason: str) -> None:
            raise AssertionError

    gone = Gone()
    out = BlockingOutbound(sock, "the peer", SETTINGS, gone.lost)  # type: ignore[arg-type]
    del gone
    sock.rooms = [OSError("broken")]
    out.send([b"abc"])


def test_late_in_words() -> None:
    assert late("it").message == "it did not answer in time."
