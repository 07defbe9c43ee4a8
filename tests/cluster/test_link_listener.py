"""Whom the listener of links lets in, and what becomes of those who break the protocol."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from typing import TYPE_CHECKING

import pytest

from support.links import ADDRESS, CLIENT, ECHO, SERVER, WAIT, RawPeer
from tenfold_core import errors
from tenfold_link.aio.dial import connect
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.wire import handshake
from tenfold_link.wire.frames import FrameKind, pack, pack_ids

if TYPE_CHECKING:
    from support.link_ends import Ends


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
        pack(FrameKind.HELLO, header=b"\xff\xff\xff"),
        pack(FrameKind.HELLO, header=bytes(5000)),
        pack(FrameKind.REQUEST, 1, 1, b"no hello"),
        pack(FrameKind.HELLO, header=b""),
        pack(FrameKind.HELLO, header=b"") + b"and more",
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
    await ends.listen(dataclasses.replace(DEFAULT_LINK_SETTINGS, handshakes=2))
    silent = [ends.raw() for _ in range(2)]

    turned_away = ends.raw()

    assert await asyncio.to_thread(turned_away.read_to_the_end) == []
    await asyncio.to_thread(silent[0].greet)


BAD = [
    (b"no frame at all, but much longer than a prefix", "does not start where it should"),
    (pack(FrameKind.HELLO), "HELLO after the handshake"),
    (pack(FrameKind.WELCOME), "WELCOME after the handshake"),
    (pack(FrameKind.RELEASE, header=pack_ids([1])), "a release"),
    (pack(FrameKind.REQUEST, WAIT, 5) + pack(FrameKind.REQUEST, WAIT, 5), "a second call of number 5"),
    (b"".join(pack(FrameKind.REQUEST, ECHO, number) for number in (5, 6, 5)), "a second call of number 5"),
    (pack(FrameKind.REQUEST, ECHO, 1, rows=[bytes(8) + b"\1" + bytes(15)]), "a shared block without an arena"),
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


async def test_calls_of_threads_that_overtake_each_other_are_all_served(ends: Ends) -> None:
    await ends.open()
    peer = ends.raw()
    await asyncio.to_thread(peer.greet)
    order = [2, 1, 5, 3, 4, 2000, 1999, 1500, 1000, 6000]

    def talk() -> list[int]:
        peer.sock.send(b"".join(pack(FrameKind.REQUEST, ECHO, number) for number in order))
        answered: list[int] = []
        while len(answered) < len(order):
            answered += [frame.call for frame in peer.read() if frame.kind is FrameKind.REPLY]
        return answered

    assert await asyncio.to_thread(talk) == order
