"""When a link is asked for: once for all who want it, anew after its end, and not where there is none."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

from support.links import ADDRESS, CLIENT, SERVER, Service
from tenfold_core import errors
from tenfold_link.aio.dial import LinkDialer, connect
from tenfold_link.aio.listener import LinkListener
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_link.wire import handshake

if TYPE_CHECKING:
    from support.link_ends import Ends


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
