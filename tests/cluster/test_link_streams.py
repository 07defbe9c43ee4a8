"""Links with further connections for large buffers, as they are opened to peers that are far: both kinds of end.

link's own connection  ── frames ──►
further connection     ── pieces of large buffers ──►        three of them here
"""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.link_ends import FAST, MB, Ends, as_bytes
from support.links import ADDRESS, CALL_BACK, CLIENT, ECHO, NOTE, WAIT, ThreadedListener, ended
from support.moments import PATIENCE
from tenfold_core import errors
from tenfold_core.access.roles import Role
from tenfold_link.aio.dial import connect
from tenfold_link.blocking.dial import connect as blocking_connect
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.wire import handshake
from tenfold_link.wire.frames import FrameKind
from tenfold_link.wire.streams import CAN, connections

if TYPE_CHECKING:
    from tenfold_protos import link_pb2

pytestmark = pytest.mark.skipif(not CAN, reason="this system has no epoll")

#: Every peer is far.
FAR = dataclasses.replace(DEFAULT_LINK_SETTINGS, mode="tcp", streams=3, far_seconds=0.0)
#: Of buffers in one frame: below what is spread, one piece and more, many pieces, and nothing.
SIZES = (10, 2 * MB - 1, 2 * MB, 3 * MB + 5, 0, 20_000, 9 * MB)


def data(seed: int) -> list[np.ndarray]:
    return [np.random.default_rng(seed).integers(0, 256, size, np.uint8) for size in SIZES]


async def test_buffers_of_all_sizes_come_back_as_they_went(ends: Ends) -> None:
    link, other = await ends.open(FAR)
    assert (link.path, link.connections, other.connections) == ("tcp", 4, 4)

    answers = await asyncio.gather(*(link.call(ECHO, b"%d" % seed, data(seed)) for seed in range(4)))
    back = await other.call(CALL_BACK, b"", data(9))

    assert [header for header, _ in answers] == [b"0", b"1", b"2", b"3"]
    for seed, (_, buffers) in enumerate(answers):
        assert as_bytes(buffers) == as_bytes(data(seed))
    assert as_bytes(back[1]) == as_bytes(data(9))


async def test_notifications_keep_their_order(ends: Ends) -> None:
    link, _ = await ends.open(FAR)
    for number in range(8):
        await link.notify(NOTE, b"%d" % number, [bytes([number]) * (2 * MB)] if number % 2 else [])

    notes = [await ends.service.notes.get() for _ in range(8)]

    assert [header for header, _ in notes] == [b"%d" % number for number in range(8)]
    assert all(bytes(buffers[0]) == bytes([number]) * (2 * MB) for number, (_, buffers) in enumerate(notes) if buffers)


def test_the_blocking_end_has_them_too() -> None:
    with ThreadedListener() as server:
        link = blocking_connect(server.agree(FAR), ADDRESS, settings=FAR)
        assert link.connections == 4
        results: dict[int, Any] = {}

        def work(seed: int) -> None:
            results[seed] = link.call(ECHO, b"", data(seed), timeout=PATIENCE)[1]

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        for seed, buffers in results.items():
            assert as_bytes(buffers) == as_bytes(data(seed))
        link.notify(NOTE, b"n", [bytes(2 * MB)])
        with pytest.raises(errors.DeadlineExceededError):
            link.call(WAIT, b"", [bytes(2 * MB)], timeout=0.01)
        link.close()
        assert sorted(results) == [0, 1, 2]


@pytest.mark.parametrize(
    ("settings", "theirs"),
    [
        (dataclasses.replace(FAR, streams=1), DEFAULT_LINK_SETTINGS),
        (FAR, dataclasses.replace(DEFAULT_LINK_SETTINGS, streams=1)),
        (dataclasses.replace(FAR, far_seconds=3600.0), DEFAULT_LINK_SETTINGS),
    ],
)
async def test_one_connection_where_an_end_wants_no_more(ends: Ends, settings: Any, theirs: Any) -> None:
    await ends.listen(theirs)
    link, other = await ends.open(settings)

    _, buffers = await link.call(ECHO, b"", [bytes(3 * MB)])

    assert (link.connections, other.connections) == (1, 1)
    assert bytes(buffers[0]) == bytes(3 * MB)


async def test_who_may_only_run_graphs_has_one(ends: Ends) -> None:
    listener = await ends.listen()
    answer = listener.open_link(handshake.ask(FAR, CLIENT), Role.RUN)
    link = await connect(answer, ADDRESS, settings=FAR)

    assert link.connections == 1
    await link.close()


@pytest.mark.parametrize("blocking", [False, True])
async def test_a_link_comes_about_where_the_others_do_not(
    ends: Ends, monkeypatch: pytest.MonkeyPatch, blocking: bool
) -> None:
    """A firewall that lets one connection through, say."""
    listener = await ends.listen()
    answer = listener.open_link(handshake.ask(FAR, CLIENT))

    def refuse(self: Any, sock: socket.socket, hello: link_pb2.LinkHello) -> None:
        raise OSError("no more of these")

    monkeypatch.setattr(type(listener), "_join", refuse)
    link: Any
    if blocking:
        link = await asyncio.to_thread(blocking_connect, answer, ADDRESS, settings=FAR)
        _, buffers = await asyncio.to_thread(link.call, ECHO, b"", [bytes(2 * MB)])
        link.close()
    else:
        link = await connect(answer, ADDRESS, settings=FAR)
        _, buffers = await link.call(ECHO, b"", [bytes(2 * MB)])
        await link.close()

    assert link.connections == 1
    assert bytes(buffers[0]) == bytes(2 * MB)
    assert not listener._parties


async def test_a_key_is_good_while_its_link_is_opened(ends: Ends) -> None:
    listener = await ends.listen()
    await ends.open(FAR)
    host, port = ADDRESS.partition(":")[0], listener.tcp_port
    hello = handshake.hello(listener.open_link(handshake.ask(FAR)), None, always_reads=True, joins=b"k" * 32)

    def talk() -> bytes:
        with socket.create_connection((host, port), PATIENCE) as sock:
            sock.send(hello)
            said = b""
            while more := sock.recv(1000):
                said += more
            return said

    assert b"a key of further connections that is not good" in await asyncio.to_thread(talk)


@pytest.mark.parametrize("which", [0, 2])
async def test_a_connection_that_breaks_ends_the_link(ends: Ends, which: int) -> None:
    link, other = await ends.open(FAR)
    call = link.call_nowait(WAIT, b"", [bytes(2 * MB)])
    await ends.service.entered.wait()
    connections(other._sock)[which].shutdown(socket.SHUT_RDWR)
    if which:
        # it is noticed by what is to come over it
        with pytest.raises(errors.UnavailableError):
            await asyncio.gather(*(link.call(ECHO, b"", [bytes(8 * MB)]) for _ in range(2)))

    with pytest.raises(errors.UnavailableError, match=r"the connection broke|it closed the link"):
        await call
    await ended(link)
    assert link.closed
    await ended(other)


async def test_the_end_leaves_nothing_open(ends: Ends) -> None:
    link, other = await ends.open(FAR)
    socks = [*connections(link._sock), *connections(other._sock)]
    await link.close()
    await ended(other)

    assert [sock.fileno() for sock in socks] == [-1] * 8
    assert (link._sock.fileno(), other._sock.fileno()) == (-1, -1)


async def test_a_peer_that_stands_still_in_the_middle_is_given_up(ends: Ends) -> None:
    """A REQUEST whose large buffer never comes."""
    await ends.listen(dataclasses.replace(FAST, streams=3))
    link, other = await ends.open(FAR)
    frame = link._packer.pack(FrameKind.REQUEST, ECHO, 1, b"", [bytes(2 * MB)])
    connections(link._sock)[0].send(frame[0])  # type: ignore[arg-type] # its head is bytes
    waiting = other.call_nowait(ECHO, b"")

    with pytest.raises(errors.UnavailableError, match="has not said anything"):
        async with asyncio.timeout(PATIENCE):
            await waiting
