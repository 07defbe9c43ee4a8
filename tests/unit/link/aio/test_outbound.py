"""What leaves a link: what the socket takes at once, the queue, who waits for it, and what is too much. No sockets."""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from dataclasses import replace
from typing import Any

import pytest

from support.fake_loop import FakeLoop
from tenfold_link.aio import outbound as outbound_module
from tenfold_link.aio.outbound import AioOutbound, PeerShare
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.wire.frames import FrameKind, pack, pack_release
from tenfold_link.wire.inflow import Inflow

SETTINGS = replace(DEFAULT_LINK_SETTINGS, outbound_high_water=10, outbound_bytes=100)


class Sock:
    """Takes `room` bytes; `error` is what it raises instead."""

    def __init__(self) -> None:
        self.room, self.sent, self.error = 1 << 30, b"", None
        self.calls: list[str] = []

    def fileno(self) -> int:
        return 5

    def send(self, piece: Any) -> int:
        self.calls.append("send")
        return self._take([piece])

    def sendmsg(self, pieces: list[Any]) -> int:
        self.calls.append(f"sendmsg {len(pieces)}")
        return self._take(pieces)

    def _take(self, pieces: list[Any]) -> int:
        if self.error is not None:
            raise self.error
        if not self.room:
            raise BlockingIOError
        taken = b"".join(pieces)[: self.room]
        self.room -= len(taken)
        self.sent += taken
        return len(taken)


class Out:
    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, share: PeerShare | None = None, settings: Any = SETTINGS
    ) -> None:
        self.loop, self.sock, self.lost = FakeLoop(), Sock(), []
        self.loop.running_in(monkeypatch, outbound_module)
        self.loop.call_soon_threadsafe = self.loop.call_soon  # type: ignore[attr-defined]
        self.out = AioOutbound(self.sock, settings, self.lost.append, share)  # type: ignore[arg-type]

    def turn(self) -> None:
        while self.loop.soon:
            self.loop.soon.pop(0)()


@pytest.fixture
def out(monkeypatch: pytest.MonkeyPatch) -> Out:
    return Out(monkeypatch)


def test_what_the_socket_takes_is_not_queued(out: Out) -> None:
    out.out.send([b"one"])
    out.out.send([b"two", b"three"])
    assert (out.sock.sent, out.sock.calls) == (b"onetwothree", ["send", "sendmsg 2"])
    assert (len(out.out.queue), out.out.queued_bytes, out.loop.writers) == (0, 0, {})


def test_no_more_pieces_than_the_kernel_takes_at_a_time(out: Out) -> None:
    out.out.send([b"x"] * 65)
    assert out.sock.calls == ["sendmsg 64"]
    assert list(out.out.queue) == [b"x"]


@pytest.mark.parametrize("room", [0, 1, 4])
def test_the_rest_is_queued_in_order_and_leaves_when_it_may(out: Out, room: int) -> None:
    out.sock.room = room
    out.out.send([b"abc", b"def"])
    out.out.send([b"ghi"])
    assert out.sock.sent == b"abcdef"[:room]
    assert out.out.queued_bytes == 9 - room
    assert list(out.loop.writers) == [5]
    out.sock.room = 2
    out.loop.writers[5]()
    assert out.sock.sent == b"abcdefghi"[: room + 2]
    assert list(out.loop.writers) == [5]
    out.sock.room = 100
    out.loop.writers[5]()
    assert out.sock.sent == b"abcdefghi"
    assert (out.out.queued_bytes, len(out.out.queue), out.loop.writers) == (0, 0, {})


def test_a_turn_writes_so_much(out: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbound_module, "_TURN_BYTES", 5)
    monkeypatch.setattr(outbound_module, "PIECES", 1)
    out.sock.room = 0
    out.out.send([b"abc", b"def", b"ghi"])
    out.sock.room = 100
    out.loop.writers[5]()
    assert out.sock.sent == b"abcdef"
    out.loop.writers[5]()
    assert out.sock.sent == b"abcdefghi"


def test_a_corked_one_collects(out: Out) -> None:
    out.out.corked = True
    out.out.send([b"abc"])
    out.out.send([b"def"])
    assert (out.sock.calls, out.loop.writers) == ([], {})
    out.out.corked = False
    out.out.flush()
    assert out.sock.calls == ["sendmsg 2"]


def test_what_waits_beyond_the_bound_ends_the_link_in_a_later_turn(out: Out) -> None:
    out.sock.room = 0
    out.out.send([bytes(100)])
    out.turn()
    assert out.lost == []
    out.out.send([b"x"])
    assert out.lost == []
    out.turn()
    assert out.lost == ["it does not read: 101 bytes wait for it"]


@pytest.mark.parametrize("queued", [False, True])
def test_a_socket_that_breaks_ends_the_link(out: Out, queued: bool) -> None:
    if queued:
        out.sock.room = 0
        out.out.send([b"abc"])
    out.sock.error = OSError(errno.EPIPE, "Broken pipe")
    out.loop.writers[5]() if queued else out.out.send([b"abc"])
    out.turn()
    assert out.lost == ["the connection broke: Broken pipe"]


def test_one_that_is_interrupted_goes_on(out: Out) -> None:
    out.sock.error = InterruptedError()
    out.out.send([b"abc"])
    out.loop.writers[5]()
    out.sock.error = None
    out.loop.writers[5]()
    assert out.sock.sent == b"abc"
    assert out.lost == []


def test_the_links_of_a_peer_share_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    share = PeerShare(20, Inflow("x", 1, "X"))
    first, second = Out(monkeypatch, share), Out(monkeypatch, share)
    first.sock.room = second.sock.room = 0
    first.out.send([bytes(30)])
    first.turn()
    assert (first.lost, share.bytes) == ([], 30), "this frame is simply a large one"
    second.out.send([bytes(5)])
    second.turn()
    assert second.lost == []
    first.out.send([b"x"])
    first.turn()
    assert first.lost == [
        "it does not read: 36 bytes wait for it over its links, and 20 may (TENFOLD_LINK_PEER_OUTBOUND_BYTES)"
    ]
    first.sock.room = 3
    first.out.flush()
    assert share.bytes == 33
    first.out.close()
    assert share.bytes == 5
    assert share.links == 0


# -- the peer's blocks -------------------------------------------------------------------------------------------------


def test_blocks_go_back_together_ahead_of_the_next_frame(out: Out) -> None:
    out.out.give_back(1)
    out.out.give_back(2)
    assert len(out.loop.soon) == 1
    out.out.send([b"frame"])
    assert out.sock.sent == pack_release(deque([1, 2])) + b"frame"
    out.turn()
    assert out.sock.sent == pack_release(deque([1, 2])) + b"frame"


def test_blocks_go_back_by_themselves(out: Out) -> None:
    out.out.give_back(1)
    out.turn()
    assert out.sock.sent == pack_release(deque([1]))
    out.out.give_back(2)
    out.turn()
    assert out.sock.sent == pack_release(deque([1])) + pack_release(deque([2]))


def test_a_loop_that_is_closed_already_takes_none(out: Out) -> None:
    def closed(*_: Any) -> None:
        raise RuntimeError

    out.loop.call_soon_threadsafe = closed  # type: ignore[attr-defined]
    out.out.give_back(1)
    assert out.sock.sent == b""


# -- the end -----------------------------------------------------------------------------------------------------------


def test_goodbye_is_said_where_nothing_waits(out: Out) -> None:
    out.out.say_goodbye("why")
    assert out.sock.sent == pack(FrameKind.GOODBYE, header=b"why")
    out.sock.room = 0
    out.out.send([b"abc"])
    out.sock.room, out.sock.sent = 100, b""
    out.out.say_goodbye("why")
    assert out.sock.sent == b""
    out.sock.error = OSError()
    out.out.queue.clear()
    out.out.say_goodbye("why")


def test_a_closed_one_sends_nothing_and_tells_nothing(out: Out) -> None:
    out.sock.room = 0
    out.out.send([b"abc"])
    out.out.close()
    assert (out.loop.writers, out.out.queued_bytes, len(out.out.queue)) == ({}, 0, 0)
    out.sock.room = 100
    out.out.send([b"def"])
    out.out.give_back(1)
    out.out._lost("late")
    out.turn()
    assert (out.sock.sent, out.lost) == (b"", [])


def test_blocks_that_were_to_go_back_do_not_after_the_end(out: Out) -> None:
    out.out.give_back(1)
    out.out.close()
    out.turn()
    assert out.sock.sent == b""


async def _settled(*tasks: asyncio.Task[None]) -> list[bool]:
    for _ in range(5):
        await asyncio.sleep(0)
    return [task.done() for task in tasks]


def begun(out: Out, size: int) -> None:
    out.sock.room = 0
    out.out.send([bytes(size)])


async def test_waiting_for_room_ends_where_little_enough_waits(out: Out) -> None:
    begun(out, 12)
    waits = [asyncio.ensure_future(out.out.room()) for _ in range(2)]
    assert await _settled(*waits) == [False, False]
    out.sock.room = 1
    out.loop.writers[5]()
    assert await _settled(*waits) == [False, False]
    out.sock.room = 1
    out.loop.writers[5]()
    assert await _settled(*waits) == [True, True]
    await out.out.room()


async def test_the_end_wakes_who_waits(out: Out) -> None:
    begun(out, 12)
    waits = [asyncio.ensure_future(out.out.room()), asyncio.ensure_future(out.out.drain(60))]
    assert await _settled(*waits) == [False, False]
    out.out.close()
    assert await _settled(*waits) == [True, True]
    await asyncio.gather(*waits)


async def test_draining_waits_for_the_last_byte_and_not_for_ever(out: Out) -> None:
    begun(out, 12)
    wait = asyncio.ensure_future(out.out.drain(60))
    assert await _settled(wait) == [False]
    out.sock.room = 11
    out.loop.writers[5]()
    assert await _settled(wait) == [False]
    out.sock.room = 1
    out.loop.writers[5]()
    assert await _settled(wait) == [True]
    begun(out, 3)
    await out.out.drain(0.001)
    assert out.out.queued_bytes == 3
