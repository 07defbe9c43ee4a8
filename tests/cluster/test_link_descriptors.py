"""Another user passes a descriptor that takes long to close over the Unix socket of a task's links.

    stranger   a TCP socket with SO_LINGER whose bytes nobody reads ──SCM_RIGHTS──► the task's Unix socket
    stranger   closes his                                                           the last close is the task's

The name of that socket stands in /proc/net/unix. Closing what was passed, or the socket in which it still lies, takes
as long as the stranger chose; the loop of the task must not be who waits. A real other user does it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from contextlib import asynccontextmanager
from time import perf_counter
from typing import TYPE_CHECKING

import pytest

from support.links import ADDRESS, CLIENT, ECHO
from support.other_user import NOBODY
from support.stranger import a_stranger, needs_another_user
from tenfold_link.aio.dial import connect
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire import handshake, sockets
from tenfold_link.wire.apart import Apart, apart
from tenfold_link.wire.frames import FrameKind, pack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.link_ends import Ends
    from support.stranger import Stranger

#: How long a close takes, and how long the loop may stand still on a busy machine.
LINGERS_S, PATIENCE_S = 6, 3.0
BAD = bytes(24).hex()


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    with a_stranger() as started:
        yield started


@asynccontextmanager
async def loop_goes_on() -> AsyncIterator[None]:
    """Fails where the loop stands still inside the block."""
    longest, over = 0.0, asyncio.Event()

    async def watch() -> None:
        nonlocal longest
        before = perf_counter()
        while not over.is_set():
            await asyncio.sleep(0.01)
            longest, before = max(longest, perf_counter() - before), perf_counter()

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        over.set()
        await watching
    assert longest < PATIENCE_S, f"the loop stood still for {longest:.1f} s"


async def opens_a_link(ends: Ends, listener: object) -> str:
    """By which way the owner opens a link meanwhile."""
    request = handshake.ask(DEFAULT_LINK_SETTINGS, CLIENT)
    link = await connect(listener.open_link(request), ADDRESS)  # type: ignore[attr-defined]
    assert (await link.call(ECHO, b"here"))[0] == b"here"
    path: str = link.path
    await link.close()
    return path


@needs_another_user
@pytest.mark.parametrize("then", ["a bad frame", "nothing", "the end"])
async def test_what_a_stranger_passes_does_not_stop_the_loop(ends: Ends, stranger: Stranger, then: str) -> None:
    listener = await ends.listen()
    name = listener._unix_name.decode()
    first = {"a bad frame": "000000", "nothing": "00", "the end": "00"}[then]
    async with loop_goes_on():
        more = (BAD if then == "a bad frame" else "", LINGERS_S, 1, then != "nothing")
        await asyncio.to_thread(stranger.ask, "pass_blocking_socket", name, first, *more)
        for _ in range(3):
            assert await opens_a_link(ends, listener) == "unix+shm"


@needs_another_user
async def test_many_of_them_leave_the_owner_another_way(ends: Ends, stranger: Stranger) -> None:
    listener = await ends.listen()
    name = listener._unix_name.decode()
    async with loop_goes_on():
        for _ in range(40):
            await asyncio.to_thread(stranger.ask, "pass_blocking_socket", name, "00", "", LINGERS_S, 1, True)
        assert await opens_a_link(ends, listener)
        assert apart._threads <= 16
        await listener.stop()


async def test_a_stranger_s_socket_is_given_up(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the server that was asked belongs to the same stranger: over TCP the link opens."""
    listener = await ends.listen()
    answer = listener.open_link(handshake.ask(DEFAULT_LINK_SETTINGS, CLIENT))
    monkeypatch.setattr(sockets, "owner", lambda _: NOBODY)
    answer.unix_uid = NOBODY

    link = await connect(answer, ADDRESS)

    assert link.path == "tcp"
    await link.close()


async def test_what_is_no_memory_file_is_refused(ends: Ends) -> None:
    """Also of the same user: a pipe, a socket, a folder, a device."""
    read, write = os.pipe()
    pair = socket.socketpair()
    folder, device = os.open(tempfile.gettempdir(), os.O_RDONLY), os.open(os.devnull, os.O_RDONLY)
    for fd in (read, pair[0].fileno(), folder, device):
        ours, theirs = socket.socketpair()
        greeting = handshake.Greeting(FrameKind.HELLO)
        with ours, theirs:
            socket.send_fds(theirs, [pack(FrameKind.HELLO)], [fd])
            with pytest.raises(ProtocolError, match="a descriptor that is no memory file"):
                greeting.receive(ours)
            assert (greeting.fd, greeting.variables) == (-1, -1)
    for each in (read, write, folder, device):
        os.close(each)
    for end in pair:
        end.close()


def test_no_more_is_taken_in_than_can_be_closed() -> None:
    """Threads that stand still are bounded, and what waits for them."""
    import threading

    closing, gate, closed = Apart(threads=2, waiting=3), threading.Event(), []
    inside = threading.Semaphore(0)

    def close() -> None:
        inside.release()
        gate.wait(20)
        closed.append(None)

    for _ in range(2):
        closing.close(close)
        assert inside.acquire(timeout=20)
    assert closing.has_room
    for _ in range(3):
        closing.close(close)
    assert not closing.has_room
    assert closing._threads == 2
    gate.set()
    for _ in range(3):
        assert inside.acquire(timeout=20)
    assert closing.has_room
