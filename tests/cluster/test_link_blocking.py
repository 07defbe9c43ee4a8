"""The blocking end of a link against a listener on another thread: calls from many threads, deadlines, interrupts.

thread 1 ─┐ leader: reads for all
thread 2 ─┼─► BlockingLink ◄──── Unix socket or TCP ────► Link, on the listener's loop
thread 3 ─┘ follower: waits for the leader
"""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.links import ADDRESS, CALL_BACK, ECHO, FAIL, HOLD, NOTE, PATHS, SERVER, WAIT, ThreadedListener
from tenfold_core import errors
from tenfold_link.blocking.dial import connect
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_link.wire.frames import FrameKind, pack
from tenfold_link.wire.moving import Moving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_link.blocking.link import BlockingLink

MB = 1 << 20


@pytest.fixture
def server() -> Iterator[ThreadedListener]:
    with ThreadedListener() as listener:
        yield listener


@pytest.fixture
def link(server: ThreadedListener) -> Iterator[BlockingLink]:
    made = open_link(server)
    yield made
    made.close()


def open_link(server: ThreadedListener, settings: LinkSettings = DEFAULT_LINK_SETTINGS) -> BlockingLink:
    return connect(server.agree(settings), ADDRESS, settings=settings)


def release(server: ThreadedListener) -> None:
    server.run(server.service.released.set)


@pytest.mark.parametrize("path", PATHS)
def test_buffers_come_back_as_they_went(server: ThreadedListener, path: str) -> None:
    link = open_link(server, PATHS[path])
    link.reserve(8 * MB)
    server.run(lambda: server.service.links[-1].reserve(8 * MB))
    sent = [np.random.default_rng(size).integers(0, 255, size, np.uint8) for size in [0, 1, 20_000, 200_000, 3 * MB]]

    header, received = link.call(ECHO, b"header", sent)

    assert (link.path, link.peer, header) == (path, SERVER, b"header")
    assert [bytes(buffer) for buffer in received] == [bytes(array) for array in sent]
    assert isinstance(received[-1], np.ndarray)
    assert received[-1].flags.writeable == (path != "unix+shm")
    link.close()


@pytest.mark.parametrize("path", PATHS)
def test_many_threads_share_a_link(server: ThreadedListener, path: str) -> None:
    link = open_link(server, PATHS[path])

    def work(thread: int) -> int:
        for number in range(60):
            text = b"%d/%d" % (thread, number)
            size = [3, 30_000, 300_000][number % 3]
            header, (buffer,) = link.call(ECHO, text, [np.full(size, thread, np.uint8)])
            assert header == text
            assert len(buffer) == size
            assert buffer[0] == buffer[-1] == thread
        return thread

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(work, range(8))) == list(range(8))
    link.close()


def test_a_leader_that_leaves_hands_over(server: ThreadedListener, link: BlockingLink) -> None:
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(link.call, WAIT, b"%d" % number) for number in range(2)]
        server.wait_for(server.service.entered)
        for number in range(50):
            assert link.call(ECHO, b"%d" % number)[0] == b"%d" % number
        release(server)

        assert [call.result(30)[0] for call in waiting] == [b"0", b"1"]


def test_errors_and_unknown_methods(link: BlockingLink) -> None:
    with pytest.raises(errors.NotFoundError, match=r"^the handler says no$"):
        link.call(FAIL, b"%d" % errors.NOT_FOUND)
    with pytest.raises(errors.UnimplementedError, match="no method 999"):
        link.call(999)
    with pytest.raises(errors.UnimplementedError, match="A client serves no methods"):
        link.call(CALL_BACK)


def test_notifications(server: ThreadedListener, link: BlockingLink) -> None:
    for number in range(20):
        link.notify(NOTE, b"%d" % number, [bytes(number * 20_000)])
    link.call(ECHO)

    notes = server.run(lambda: [server.service.notes.get_nowait() for _ in range(20)])

    assert [(header, len(buffers[0])) for header, buffers in notes] == [
        (b"%d" % number, number * 20_000) for number in range(20)
    ]


def test_who_only_notifies_gets_its_blocks_back(server: ThreadedListener) -> None:
    link = open_link(server, dataclasses.replace(DEFAULT_LINK_SETTINGS, arena_bytes=4 * MB))
    link.reserve(4 * MB)

    for _ in range(40):
        link.notify(ECHO, b"", [np.zeros(MB, np.uint8)])
    link.call(ECHO)

    assert link._arena is not None
    assert link._arena.taken == 0
    link.close()


def test_a_fetched_block_goes_back_when_it_is_dropped(server: ThreadedListener, link: BlockingLink) -> None:
    theirs = server.service.links[-1]
    server.run(lambda: theirs.reserve(2 * MB))
    assert theirs._arena is not None
    _, (buffer,) = link.call(ECHO, b"", [np.ones(MB, np.uint8)])
    view = np.asarray(buffer)[100:]
    del buffer
    link.call(ECHO)
    assert theirs._arena.taken == 1

    del view
    link.call(ECHO)

    assert theirs._arena.taken == 0


# -- deadlines, interrupts, the end ----------------------------------------------------------------------------------


@pytest.mark.parametrize("leads", [True, False])
def test_a_deadline_ends_the_call_and_tells_the_server(
    server: ThreadedListener, link: BlockingLink, leads: bool
) -> None:
    with ThreadPoolExecutor(1) as pool:
        leader = None
        if not leads:
            gate = threading.Event()
            server.service.on_wait = gate.set
            leader = pool.submit(link.call, WAIT, b"leader")
            assert gate.wait(30)

        server.service.entered.clear()
        # again where the call had ended before its handler began, which is then never told
        while not server.service.entered.is_set():
            with pytest.raises(errors.DeadlineExceededError, match=f"{SERVER} did not answer in time"):
                link.call(WAIT, timeout=0.05)

        server.wait_for(server.service.cancelled)
        assert link.call(ECHO, b"fine", timeout=30)[0] == b"fine"
        release(server)
        assert leader is None or leader.result(30)[0] == b"leader"


def test_an_interrupt_ends_the_call_and_not_the_link(server: ThreadedListener, link: BlockingLink) -> None:
    main = threading.get_ident()
    # not at once: what interrupts the very system call that sends the request ends the link, too
    server.service.on_wait = lambda: server.loop.call_later(0.05, signal.pthread_kill, main, signal.SIGINT) and None

    with pytest.raises(KeyboardInterrupt):
        link.call(WAIT)

    server.wait_for(server.service.cancelled)
    assert link.call(ECHO, b"fine")[0] == b"fine"


def test_closing_ends_the_calls_of_other_threads(server: ThreadedListener, link: BlockingLink) -> None:
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(link.call, WAIT) for _ in range(2)]
        server.wait_for(server.service.entered)

        link.close(errors.CancelledError(None, None, "Session has been closed."))

        for call in waiting:
            with pytest.raises(errors.CancelledError, match=r"Session has been closed\."):
                call.result(30)
    server.wait_for(server.service.cancelled)
    with pytest.raises(errors.CancelledError, match="Session has been closed"):
        link.call(ECHO)
    with pytest.raises(errors.CancelledError, match="Session has been closed"):
        link.notify(NOTE)


def test_a_server_that_stops_says_so(server: ThreadedListener, link: BlockingLink) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(link.call, WAIT)
        server.wait_for(server.service.entered)

        asyncio.run_coroutine_threadsafe(server.listener.stop("it had enough"), server.loop).result(30)

        with pytest.raises(errors.UnavailableError, match=f"link to {SERVER} ended: it closed the link: it had enough"):
            waiting.result(30)
    assert link.closed


def test_a_server_that_breaks_the_protocol(server: ThreadedListener, link: BlockingLink) -> None:
    theirs = server.service.links[-1]
    server.service.on_wait = lambda: theirs._send([pack(FrameKind.HELLO)])

    with pytest.raises(errors.UnavailableError, match="it broke the protocol: it sent HELLO after the handshake"):
        link.call(WAIT)

    server.wait_for(server.service.cancelled)
    assert "you sent HELLO after the handshake" in str(theirs.reason)


def test_a_server_that_hangs_is_asked_and_given_up(server: ThreadedListener) -> None:
    link = open_link(
        server, dataclasses.replace(DEFAULT_LINK_SETTINGS, ping_every_seconds=0.1, ping_answer_seconds=0.1)
    )
    goes_on = threading.Event()
    server.service.on_wait = lambda: bool(goes_on.wait(30)) and None

    with pytest.raises(errors.UnavailableError, match="it has not said anything for"):
        link.call(WAIT)

    goes_on.set()


def test_a_server_that_says_nothing_is_not_given_up_while_bytes_move(
    server: ThreadedListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving: list[bool] = []

    def look(_: Moving) -> bool:
        moving.append(len(moving) < 3)
        return moving[-1]

    link = open_link(
        server, dataclasses.replace(DEFAULT_LINK_SETTINGS, ping_every_seconds=0.1, ping_answer_seconds=0.1)
    )
    goes_on = threading.Event()
    server.service.on_wait = lambda: bool(goes_on.wait(30)) and None
    monkeypatch.setattr(Moving, "look", look)

    with pytest.raises(errors.UnavailableError, match="it has not said anything for"):
        link.call(WAIT)

    goes_on.set()
    assert moving.index(False) == 3
    assert len(moving) > 4


def test_a_slow_answer_of_a_server_that_lives_is_waited_for(server: ThreadedListener) -> None:
    link = open_link(
        server, dataclasses.replace(DEFAULT_LINK_SETTINGS, ping_every_seconds=0.1, ping_answer_seconds=0.5)
    )
    server.service.on_wait = lambda: server.loop.call_later(1.2, server.service.released.set) and None

    assert link.call(WAIT, b"late")[0] == b"late"

    link.close()


def test_a_link_that_nobody_closed_is_collected(server: ThreadedListener) -> None:
    ended = threading.Event()
    link: Any = open_link(server)
    link.call(ECHO)
    server.run(lambda: server.service.links[-1].on_close(lambda reason: ended.set()))

    with pytest.warns(ResourceWarning, match="unclosed"):
        del link

    assert ended.wait(30)


def test_holding_what_came_while_the_link_ends(server: ThreadedListener, link: BlockingLink) -> None:
    theirs = server.service.links[-1]
    server.run(lambda: theirs.reserve(2 * MB))
    _, (buffer,) = link.call(ECHO, b"", [np.full(MB, 9, np.uint8)])
    link.call(HOLD, b"", [np.ones(MB, np.uint8)])

    link.close()

    assert int(np.asarray(buffer).min()) == 9
    del buffer
    server.run(server.service.held.clear)
