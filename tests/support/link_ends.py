"""Two asyncio ends of a link in one process, over the path that a test names.

Link (worker 1) ◄──── Unix socket, with or without shared memory, or TCP ────► Link (ps 0), from a LinkListener
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from support.links import ADDRESS, CLIENT, SERVER, RawPeer, Service
from tenfold_link.aio.dial import connect
from tenfold_link.aio.listener import LinkListener
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_link.wire import handshake

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from tenfold_link.aio.link import Link

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

    def raw(self, settings: LinkSettings = DEFAULT_LINK_SETTINGS, name: str = "", **options: Any) -> RawPeer:
        """A peer that was accepted under this `name`."""
        assert self.listener is not None
        peer = RawPeer(self.listener.open_link(handshake.ask(settings, CLIENT), name=name), **options)
        self._stack.callback(peer.close)
        return peer


def as_bytes(buffers: list[Any]) -> list[bytes]:
    return [bytes(buffer) for buffer in buffers]
