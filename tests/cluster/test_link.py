"""Two asyncio ends of a link in one process, over every path: calls, notifications, flow, and how it ends."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import os
from itertools import count
from typing import Any

import numpy as np
import pytest

from support.link_ends import FAST, MB, Ends, as_bytes
from support.links import CALL_BACK, CLIENT, ECHO, FAIL, NOTE, PATHS, SERVER, WAIT, Service, ended
from support.moments import started
from tenfold_core import errors
from tenfold_link.aio.methods import LinkMethod
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.wire.frames import FrameKind
from tenfold_link.wire.moving import Moving

# -- calls -------------------------------------------------------------------------------------------------------------


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


# -- flow --------------------------------------------------------------------------------------------------------------


async def test_calls_wait_while_the_peer_does_not_read(ends: Ends) -> None:
    await ends.listen(dataclasses.replace(PATHS["unix"], outbound_high_water=MB))
    peer = ends.raw()
    await asyncio.to_thread(peer.greet)
    (link,) = ends.service.links
    first = [link.notify_nowait(NOTE, b"", [bytes(8 * MB)]) for _ in range(3)]

    waiting = await started(link.notify(NOTE, b"last"))
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
    await ended(link)

    assert link.closed
    with pytest.raises(errors.UnavailableError, match=rf"link to {CLIENT} ended: it does not read: \d+ bytes wait"):
        link.notify_nowait(NOTE)


async def test_what_waits_for_all_links_of_a_peer_is_bounded(ends: Ends) -> None:
    """Finding 5: each link may have its share, and so one peer many times as much. Others are not its affair."""
    await ends.listen(dataclasses.replace(PATHS["unix"], peer_outbound_bytes=20 * MB))
    for name in ("greedy", "greedy", "other"):
        peer = ends.raw(name=name)
        await asyncio.to_thread(peer.greet)
    first, second, others = ends.service.links

    for link in (first, others):
        link.notify_nowait(NOTE, b"", [bytes(16 * MB)])
    # one frame goes in any case, as large as it is
    second.notify_nowait(NOTE, b"", [bytes(16 * MB)])
    assert not second.closed
    second.notify_nowait(NOTE, b"", [bytes(16 * MB)])
    await ended(second)

    assert not first.closed
    with pytest.raises(errors.UnavailableError, match=r"over its links, and 20971520 may \(TENFOLD_LINK_PEER_OUTBOUND"):
        second.notify_nowait(NOTE)
    # what is gone with a link is not counted any more
    third = ends.raw(name="greedy")
    await asyncio.to_thread(third.greet)
    ends.service.links[-1].notify_nowait(NOTE, b"", [bytes(MB)])
    ends.service.links[-1].notify_nowait(NOTE, b"", [bytes(MB)])
    assert not ends.service.links[-1].closed
    assert not others.closed


# -- the end -----------------------------------------------------------------------------------------------------------


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

    assert [frame.kind for frame in await asyncio.to_thread(peer.read_to_the_end)] == [
        FrameKind.REQUEST,
        FrameKind.PING,
        FrameKind.GOODBYE,
    ]


async def test_a_peer_that_says_nothing_is_not_given_up_while_bytes_move(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving, looks = 20, count(1)
    monkeypatch.setattr(Moving, "look", lambda moves, taken: next(looks) <= moving)
    await ends.listen(FAST)
    peer = ends.raw()
    await asyncio.to_thread(peer.greet)
    (link,) = ends.service.links

    with pytest.raises(errors.UnavailableError, match="has not said anything"):
        await link.call(ECHO)

    assert next(looks) > moving + FAST.ping_answer_seconds / FAST.ping_every_seconds


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
        one, other = await ends.open()
        await one.call(ECHO, b"", [bytes(200_000)])
        await one.close()
        await ended(other)
    ends.service.links.clear()
    del one, other
    gc.collect()

    assert len(os.listdir("/proc/self/fd")) <= before
    assert len(listener.links) <= 1
