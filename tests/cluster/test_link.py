"""Two asyncio ends of a link in one process, over every path: calls, notifications, failures, flow, shared memory.

Link (worker 1) ◄──── Unix socket, with or without shared memory, or TCP ────► Link (ps 0), from a LinkListener
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import logging
import os
import weakref
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.links import ADDRESS, CALL_BACK, CLIENT, ECHO, FAIL, HOLD, NOTE, PATHS, SERVER, WAIT, RawPeer, Service
from tenfold.framework import errors
from tenfold.framework.link import handshake
from tenfold.framework.link.arena import SharedBlock
from tenfold.framework.link.settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold.framework.link.wire import Kind, pack, pack_ids
from tenfold_services.link.dial import LinkDialer, connect
from tenfold_services.link.listener import LinkListener
from tenfold_services.link.methods import LinkMethod

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tenfold_services.link.link import Link

MB = 1 << 20
FAST = dataclasses.replace(DEFAULT_LINK_SETTINGS, ping_every_seconds=0.02, ping_answer_seconds=0.05)


class Ends:
    """A service, its listener, and links to it. All end with the test."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self.service = Service()
        self.listener: LinkListener | None = None

    async def listen(self, settings: LinkSettings = DEFAULT_LINK_SETTINGS) -> LinkListener:
        self.listener = LinkListener(SERVER, self.service.methods, settings)
        return await self._stack.enter_async_context(self.listener)

    async def open(
        self, settings: LinkSettings = DEFAULT_LINK_SETTINGS, serves: Service | None = None
    ) -> tuple[Link, Link]:
        """(our end, the listener's end)."""
        listener = self.listener or await self.listen(settings)
        answer = listener.open_link(handshake.ask(settings, CLIENT))
        methods = (serves or Service()).methods
        link = await connect(answer, ADDRESS, on_link=methods, settings=settings)
        self._stack.push_async_callback(link.close)
        return link, self.service.links[-1]

    def raw(self, settings: LinkSettings = DEFAULT_LINK_SETTINGS, **options: Any) -> RawPeer:
        assert self.listener is not None
        peer = RawPeer(self.listener.open_link(handshake.ask(settings, CLIENT)), **options)
        self._stack.callback(peer.close)
        return peer


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    async with AsyncExitStack() as stack:
        yield Ends(stack)


def as_bytes(buffers: list[Any]) -> list[bytes]:
    return [bytes(buffer) for buffer in buffers]


async def settled() -> None:
    """Everything that is ready now on this loop has run."""
    for _ in range(5):
        await asyncio.sleep(0)


# -- calls -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
async def test_buffers_come_back_as_they_went(ends: Ends, path: str) -> None:
    link, other = await ends.open(PATHS[path])
    link.reserve(8 * MB)
    other.reserve(8 * MB)
    sizes = [0, 1, 1000, 20_000, 200_000, 3 * MB]
    sent = [np.random.default_rng(size).integers(0, 255, size, np.uint8) for size in sizes]

    header, received = await link.call(ECHO, b"header", sent)

    assert (link.path, other.path) == (path, path)
    assert (link.peer, other.peer) == (SERVER, CLIENT)
    assert header == b"header"
    assert as_bytes(received) == as_bytes(sent)


@pytest.mark.parametrize("path", PATHS)
async def test_both_ends_call(ends: Ends, path: str) -> None:
    link, other = await ends.open(PATHS[path])

    there, and_back = await asyncio.gather(
        link.call(CALL_BACK, b"x", [b"1", bytes(200_000)]), other.call(CALL_BACK, b"y", [b"2"])
    )

    assert there[0] == b"x"
    assert as_bytes(there[1]) == [b"1", bytes(200_000)]
    assert (and_back[0], as_bytes(and_back[1])) == (b"y", [b"2"])


async def test_many_calls_in_flight_are_told_apart(ends: Ends) -> None:
    link, _ = await ends.open()
    waiting = link.call_nowait(WAIT, b"first")

    answers = await asyncio.gather(*(link.call(ECHO, b"%d" % number) for number in range(2000)))
    assert not waiting.done()
    ends.service.released.set()

    assert [answer[0] for answer in answers] == [b"%d" % number for number in range(2000)]
    assert (await waiting)[0] == b"first"


async def test_a_handler_may_answer_with_a_future(ends: Ends) -> None:
    link, other = await ends.open()
    later: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    other._serving.methods = {1: LinkMethod("Later", lambda link, header, buffers: later)}

    call = link.call_nowait(1)
    asyncio.get_running_loop().call_soon(later.set_result, (b"now", ()))

    assert await call == (b"now", [])


@pytest.mark.parametrize("code", [errors.CANCELLED, errors.NOT_FOUND, errors.ABORTED, errors.UNAVAILABLE])
async def test_an_error_is_the_same_at_the_caller(ends: Ends, code: int) -> None:
    link, _ = await ends.open()

    with pytest.raises(errors.OpError, match=r"^the handler says no$") as caught:
        await link.call(FAIL, b"%d" % code)

    assert type(caught.value) is type(errors.from_code(code, ""))
    assert await link.call(ECHO) == (b"", [])


async def test_a_handler_that_breaks_is_an_internal_error(ends: Ends, caplog: pytest.LogCaptureFixture) -> None:
    link, _ = await ends.open()

    with pytest.raises(errors.InternalError, match="Fail: RuntimeError: oops"):
        await link.call(FAIL, b"oops")

    assert "Traceback" in caplog.text


async def test_an_unknown_method(ends: Ends) -> None:
    link, _ = await ends.open()

    with pytest.raises(errors.UnimplementedError, match="serves no method 999"):
        await link.call(999)


async def test_a_message_that_the_peer_would_refuse_costs_only_the_call(ends: Ends) -> None:
    link, other = await ends.open(dataclasses.replace(DEFAULT_LINK_SETTINGS, header_bytes=1000))
    other._serving.methods = {1: LinkMethod("Long", lambda link, header, buffers: (bytes(1001), ()))}

    with pytest.raises(errors.ResourceExhaustedError, match="header is 1001"):
        await link.call(1, bytes(1001))
    with pytest.raises(errors.ResourceExhaustedError, match="header is 1001"):
        await link.call(1)

    assert not link.closed


async def test_cancelling_a_call_cancels_the_work(ends: Ends) -> None:
    link, _ = await ends.open()
    call = asyncio.create_task(link.call(WAIT))
    await ends.service.entered.wait()

    call.cancel()

    await asyncio.wait_for(ends.service.cancelled.wait(), 30)
    assert await link.call(ECHO, b"still there") == (b"still there", [])


async def test_too_many_calls_are_refused_one_by_one(ends: Ends) -> None:
    link, _ = await ends.open(dataclasses.replace(DEFAULT_LINK_SETTINGS, calls_in_flight=3))

    calls = [link.call_nowait(WAIT, b"%d" % number) for number in range(5)]
    refused = [await asyncio.wait_for(asyncio.gather(call, return_exceptions=True), 30) for call in calls[3:]]
    ends.service.released.set()

    assert all(isinstance(result[0], errors.ResourceExhaustedError) for result in refused)
    assert [(await call)[0] for call in calls[:3]] == [b"0", b"1", b"2"]


@pytest.mark.parametrize("path", PATHS)
async def test_notifications_arrive_in_order(ends: Ends, path: str) -> None:
    link, _ = await ends.open(PATHS[path])
    sizes = [0, 300_000, 5, 1_000_000, 20_000]

    for number, size in enumerate(sizes):
        await link.notify(NOTE, b"%d" % number, [bytes(size)])
    notes = [await asyncio.wait_for(ends.service.notes.get(), 30) for _ in sizes]

    assert [(header, len(buffers[0])) for header, buffers in notes] == [
        (b"%d" % number, size) for number, size in enumerate(sizes)
    ]


async def test_a_failed_notification_is_logged(ends: Ends, caplog: pytest.LogCaptureFixture) -> None:
    link, _ = await ends.open()

    await link.notify(FAIL, b"5")
    await link.call(ECHO)

    assert f"Fail from {CLIENT} came to nothing: the handler says no" in caplog.text


# -- shared memory ---------------------------------------------------------------------------------------------------


async def test_a_block_goes_back_when_its_arrays_are_gone(ends: Ends) -> None:
    link, _other = await ends.open()
    link.reserve(2 * MB)
    assert link._arena is not None

    await link.call(HOLD, b"", [np.ones(MB, np.uint8)])
    assert link._arena.taken == 1
    view = ends.service.held.pop()[10:20]
    await link.call(ECHO)
    assert link._arena.taken == 1, "a view of it is still there"
    del view
    await link.call(ECHO)

    assert link._arena.taken == 0


async def test_blocks_go_back_without_further_traffic(ends: Ends) -> None:
    link, _ = await ends.open()
    link.reserve(2 * MB)
    arena = link._arena
    assert arena is not None
    await link.call(HOLD, b"", [np.ones(MB, np.uint8)])
    released = asyncio.Event()
    release = arena.release
    arena.release = lambda blocks: (release(blocks), released.set())[0]  # type: ignore[method-assign]

    ends.service.held.clear()

    await asyncio.wait_for(released.wait(), 30)
    assert arena.taken == 0


async def test_an_exhausted_arena_falls_back_to_the_socket(ends: Ends) -> None:
    link, _ = await ends.open(dataclasses.replace(DEFAULT_LINK_SETTINGS, arena_bytes=2 * MB))
    link.reserve(2 * MB)

    for number in range(5):
        await link.call(HOLD, b"", [np.full(MB, number, np.uint8)])

    writable = [buffer.flags.writeable for buffer in ends.service.held]
    assert writable == [False, False, True, True, True]
    assert [int(buffer[7]) for buffer in ends.service.held] == [0, 1, 2, 3, 4]
    ends.service.held.clear()
    await link.call(ECHO)  # the blocks come back before its answer
    await link.call(HOLD, b"", [np.ones(MB, np.uint8)])
    assert not ends.service.held[0].flags.writeable


async def test_arrays_outlive_the_link(ends: Ends) -> None:
    link, other = await ends.open()
    link.reserve(MB)
    await link.call(HOLD, b"", [np.full(MB, 3, np.uint8)])

    link.abort("the test says so")
    await settled()
    gc.collect()

    assert other.closed
    assert int(ends.service.held[0].min()) == 3
    ends.service.held.clear()


async def test_who_keeps_what_came_over_a_link_does_not_keep_the_link(ends: Ends) -> None:
    link, other = await ends.open()
    link.reserve(MB)
    other.state["kept"] = ends.service.held = []
    await link.call(HOLD, b"", [np.ones(MB, np.uint8)])
    gone = weakref.ref(other)

    await link.close()
    await settled()
    ends.service.links.clear()
    ends.service.held = []
    del other
    gc.collect()

    assert gone() is None


async def test_producing_into_shared_memory(ends: Ends) -> None:
    link, _ = await ends.open()
    link.reserve(MB)

    block = link.allocate(MB)
    assert block is not None
    block.array[:] = 42
    await link.call(HOLD, b"", [block])

    assert int(ends.service.held[0].sum()) == 42 * MB
    with pytest.raises(ValueError, match="sent once"):
        link.call_nowait(ECHO, b"", [block])


@pytest.mark.parametrize("path", PATHS)
async def test_what_is_staged_may_change_afterwards(ends: Ends, path: str) -> None:
    link, _ = await ends.open(PATHS[path])
    link.reserve(4 * MB)
    value = np.full(3 * MB, 5, np.uint8)

    staged = link.stage(value)
    value[:] = 6
    await link.call(HOLD, b"", [staged])

    assert isinstance(staged, SharedBlock) == (path == "unix+shm")
    assert int(ends.service.held[0].max()) == 5


async def test_both_ends_must_want_shared_memory(ends: Ends) -> None:
    await ends.listen(PATHS["unix"])

    link, other = await ends.open()

    assert (link.path, other.path) == ("unix", "unix")


# -- flow ------------------------------------------------------------------------------------------------------------


async def test_calls_wait_while_the_peer_does_not_read(ends: Ends) -> None:
    await ends.listen(dataclasses.replace(PATHS["unix"], outbound_high_water=MB))
    peer = ends.raw()
    await asyncio.to_thread(peer.greet)
    (link,) = ends.service.links
    first = [link.notify_nowait(NOTE, b"", [bytes(8 * MB)]) for _ in range(3)]

    waiting = asyncio.create_task(link.notify(NOTE, b"last"))
    await settled()
    assert not waiting.done()
    frames = await asyncio.to_thread(lambda: [frame for _ in range(3) for frame in peer.read()])
    await asyncio.wait_for(waiting, 30)

    assert len(frames) >= len(first)


async def test_a_peer_that_never_reads_is_given_up(ends: Ends) -> None:
    await ends.listen(dataclasses.replace(PATHS["unix"], outbound_bytes=20 * MB))
    peer = ends.raw()
    await asyncio.to_thread(peer.greet)
    (link,) = ends.service.links

    for _ in range(8):
        link.notify_nowait(NOTE, b"", [bytes(8 * MB)])
    await settled()

    assert link.closed
    with pytest.raises(errors.UnavailableError, match=rf"link to {CLIENT} ended: it does not read: \d+ bytes wait"):
        link.notify_nowait(NOTE)


# -- the end ---------------------------------------------------------------------------------------------------------


async def test_the_end_of_one_end_fails_calls_in_both_directions(ends: Ends) -> None:
    mine = Service()
    link, other = await ends.open(serves=mine)
    reasons: list[str] = []
    link.on_close(lambda reason: reasons.append(reason.message))
    there, back = asyncio.create_task(link.call(WAIT)), asyncio.create_task(other.call(WAIT))
    await ends.service.entered.wait()
    await mine.entered.wait()

    await other.close("of a test")

    with pytest.raises(errors.UnavailableError, match=f"link to {SERVER} ended: it closed the link: of a test"):
        await there
    with pytest.raises(errors.UnavailableError, match=f"link to {CLIENT} ended: it was closed here: of a test"):
        await back
    await asyncio.wait_for(ends.service.cancelled.wait(), 30)
    await asyncio.wait_for(mine.cancelled.wait(), 30)
    with pytest.raises(errors.UnavailableError, match="it closed the link: of a test"):
        await link.call(ECHO)
    assert reasons == [f"The link to {SERVER} ended: it closed the link: of a test."]
    late: list[Any] = []
    link.on_close(late.append)
    assert late == [link.reason]


async def test_a_peer_that_vanishes(ends: Ends) -> None:
    await ends.listen()
    peer = ends.raw()
    await asyncio.to_thread(peer.greet)
    (link,) = ends.service.links
    call = link.call_nowait(ECHO)

    peer.close()

    with pytest.raises(errors.UnavailableError, match=f"{CLIENT} ended: the connection broke"):
        await call


async def test_a_peer_that_says_nothing_is_asked_and_given_up(ends: Ends) -> None:
    await ends.listen(FAST)
    peer = ends.raw()
    await asyncio.to_thread(peer.greet)
    (link,) = ends.service.links

    with pytest.raises(errors.UnavailableError, match="has not said anything for 0 s, it hangs or its host is gone"):
        await link.call(ECHO)

    assert [frame.kind for frame in await asyncio.to_thread(peer.read_to_the_end)] == [Kind.REQUEST, Kind.PING]


async def test_a_slow_peer_that_answers_pings_is_waited_for(ends: Ends) -> None:
    link, _ = await ends.open(FAST)
    call = link.call_nowait(WAIT, b"at last")

    def tick(left: int) -> None:
        if left:
            asyncio.get_running_loop().call_later(0.05, tick, left - 1)
        else:
            ends.service.released.set()

    tick(6)

    assert (await call)[0] == b"at last"


async def test_an_end_that_nobody_reads_is_not_pinged(ends: Ends) -> None:
    await ends.listen(FAST)
    peer = ends.raw(always_reads=False)
    await asyncio.to_thread(peer.greet)
    (link,) = ends.service.links
    call = link.call_nowait(ECHO)

    done, _ = await asyncio.wait([call], timeout=0.2)

    assert not done
    assert not link.closed
    call.cancel()


async def test_closing_leaves_nothing_open(ends: Ends) -> None:
    listener = await ends.listen()
    link, _ = await ends.open()
    await link.call(ECHO)
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(20):
        one, _ = await ends.open()
        await one.call(ECHO, b"", [bytes(200_000)])
        await one.close()
        await settled()
    ends.service.links.clear()
    del one, _
    gc.collect()

    assert len(os.listdir("/proc/self/fd")) <= before
    assert len(listener.links) <= 1


# -- letting in ------------------------------------------------------------------------------------------------------


async def refusal(peer: RawPeer, data: bytes) -> str:
    """What the listener says to these first bytes before it hangs up."""

    def talk() -> str:
        peer.sock.send(data)
        return " ".join(frame.header.decode() for frame in peer.read_to_the_end())

    return await asyncio.to_thread(talk)


async def test_a_token_is_good_once(ends: Ends) -> None:
    listener = await ends.listen()
    answer = listener.open_link(handshake.ask(DEFAULT_LINK_SETTINGS, CLIENT))
    link = await connect(answer, ADDRESS)

    with pytest.raises(errors.UnavailableError, match=f"No link to {SERVER} at .*a token that is not good"):
        await connect(answer, ADDRESS)

    assert len(listener.links) == 1
    await link.close()


async def test_a_token_is_good_for_a_while(ends: Ends) -> None:
    listener = await ends.listen(dataclasses.replace(DEFAULT_LINK_SETTINGS, token_seconds=-1.0))

    with pytest.raises(errors.UnavailableError, match="a token that is not good"):
        await connect(listener.open_link(handshake.ask(DEFAULT_LINK_SETTINGS)), ADDRESS)


async def test_tokens_that_nobody_shows_are_bounded(ends: Ends) -> None:
    listener = await ends.listen(dataclasses.replace(DEFAULT_LINK_SETTINGS, tokens=2))
    request = handshake.ask(DEFAULT_LINK_SETTINGS)
    for _ in range(2):
        listener.open_link(request)

    with pytest.raises(errors.ResourceExhaustedError, match="2 links were agreed on"):
        listener.open_link(request)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        pack(Kind.HELLO, header=b"\xff\xff\xff"),
        pack(Kind.HELLO, header=bytes(5000)),
        pack(Kind.REQUEST, 1, 1, b"no hello"),
        pack(Kind.HELLO, header=b""),
        pack(Kind.HELLO, header=b"") + b"and more",
    ],
)
async def test_strangers_are_refused(ends: Ends, data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    listener = await ends.listen()

    said = await refusal(ends.raw(), data)

    assert said.startswith("you sent")
    assert not listener.links


async def test_a_stranger_that_says_nothing_is_sent_away(ends: Ends) -> None:
    await ends.listen(dataclasses.replace(DEFAULT_LINK_SETTINGS, hello_seconds=0.05))

    assert await asyncio.to_thread(ends.raw().read_to_the_end) == []


async def test_strangers_are_few(ends: Ends) -> None:
    await ends.listen(dataclasses.replace(DEFAULT_LINK_SETTINGS, strangers=2))
    silent = [ends.raw() for _ in range(2)]

    turned_away = ends.raw()

    assert await asyncio.to_thread(turned_away.read_to_the_end) == []
    await asyncio.to_thread(silent[0].greet)


BAD = [
    (b"no frame at all, but much longer than a prefix", "does not start where it should"),
    (pack(Kind.HELLO), "HELLO after the handshake"),
    (pack(Kind.WELCOME), "WELCOME after the handshake"),
    (pack(Kind.RELEASE, header=pack_ids([1])), "a release"),
    (pack(Kind.REQUEST, WAIT, 5) + pack(Kind.REQUEST, WAIT, 5), "a second call of number 5"),
    (pack(Kind.REQUEST, ECHO, 1, rows=[bytes(8) + b"\1" + bytes(15)]), "a shared block without an arena"),
]


@pytest.mark.parametrize(("data", "says"), BAD)
async def test_a_peer_that_breaks_the_protocol_loses_its_link_only(
    ends: Ends, data: bytes, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    link, _ = await ends.open()
    peer = ends.raw()
    await asyncio.to_thread(peer.greet)
    theirs = ends.service.links[-1]

    said = await refusal(peer, data)

    assert says in said
    assert theirs.closed
    assert says in str(theirs.reason)
    assert caplog.records[-1].levelno == logging.WARNING
    assert await link.call(ECHO, b"fine") == (b"fine", [])


# -- remembering -----------------------------------------------------------------------------------------------------


class Asked:
    """An OpenLink call that counts, and answers as a listener or an error does."""

    def __init__(self, listener: LinkListener | None = None, error: Exception | None = None) -> None:
        self.listener, self.error, self.count = listener, error, 0

    async def __call__(self, request: Any) -> Any:
        self.count += 1
        if self.error is not None:
            raise self.error
        assert self.listener is not None
        return self.listener.open_link(request)


async def test_one_link_for_all_who_want_it_and_a_new_one_after_its_end(ends: Ends) -> None:
    asked = Asked(await ends.listen())
    dialer = LinkDialer(asked, ADDRESS, task=CLIENT)
    assert dialer.link is None

    links = await asyncio.gather(*(dialer.get() for _ in range(10)))

    assert asked.count == 1
    assert links == [dialer.link] * 10
    assert dialer.link is not None
    dialer.link.abort("the test says so")
    assert dialer.link is None
    assert await dialer.get() is not None
    assert asked.count == 2
    await dialer.close()
    assert dialer.link is None
    assert await dialer.get() is None


async def test_a_peer_without_links_is_not_asked_at_every_step() -> None:
    asked = Asked(error=errors.UnimplementedError(None, None, "not Tenfold"))
    dialer = LinkDialer(asked, ADDRESS, task=CLIENT)

    assert [await dialer.get() for _ in range(5)] == [None] * 5

    assert asked.count == 1
    assert dialer.why_not == "not Tenfold"
    dialer._not_before = 0.0
    asked.error, asked.listener = None, None


async def test_links_that_are_off_are_not_asked_for() -> None:
    asked = Asked()

    assert await LinkDialer(asked, ADDRESS, task="", settings=LinkSettings(mode="off")).get() is None

    assert asked.count == 0


async def test_a_listener_that_is_off() -> None:
    async with LinkListener(SERVER, Service().methods, LinkSettings(mode="off")) as listener:
        with pytest.raises(errors.FailedPreconditionError, match="opens no links"):
            listener.open_link(handshake.ask(DEFAULT_LINK_SETTINGS))


async def test_another_host_gets_tcp_and_says_where_it_failed(ends: Ends) -> None:
    listener = await ends.listen()
    request = handshake.ask(DEFAULT_LINK_SETTINGS)
    request.host_identity = "elsewhere"

    answer = listener.open_link(request)

    assert (answer.unix_name, answer.tcp_port > 0, answer.shared_memory) == (b"", True, False)
    link = await connect(answer, ADDRESS)
    assert link.path == "tcp"
    await link.close()
    await listener.stop()
    with pytest.raises(errors.UnavailableError, match=rf"TCP 127.0.0.1:{answer.tcp_port}: .*call failed"):
        await connect(answer, ADDRESS)


async def test_an_impostor_at_the_unix_socket(ends: Ends) -> None:
    listener = await ends.listen()
    answer = listener.open_link(handshake.ask(DEFAULT_LINK_SETTINGS))
    answer.unix_uid += 1
    answer.tcp_port = 0

    with pytest.raises(errors.UnavailableError, match=rf"belongs to user {os.getuid()}, not to {answer.unix_uid}"):
        await connect(answer, ADDRESS)
