"""The places of a task's port for links: another user who fills them leaves some to the owner, and one peer's tokens
that it never shows leave some to others. A real other user, who has no token.
"""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING

import pytest

from support.links import ADDRESS, CLIENT, ECHO, SERVER
from support.stranger import a_stranger, needs_another_user
from tenfold_core import errors
from tenfold_core.access.roles import Role
from tenfold_link.aio.dial import connect
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.wire import handshake

if TYPE_CHECKING:
    from support.link_ends import Ends

TCP = dataclasses.replace(DEFAULT_LINK_SETTINGS, mode="tcp", hello_seconds=30.0)


@needs_another_user
async def test_idle_strangers_make_room(ends: Ends) -> None:
    listener = await ends.listen(dataclasses.replace(TCP, handshakes=8))
    with a_stranger() as stranger:
        to = ["127.0.0.1", listener.tcp_port]
        assert await asyncio.to_thread(stranger.ask, "connect", to, "", 40) == 40
        # the port accepts in the order in which they came, so those 40 before this one
        link = await connect(listener.open_link(handshake.ask(TCP, CLIENT)), ADDRESS, settings=TCP)
        assert await link.call(ECHO, b"here") == (b"here", [])
        assert len(listener._places) <= 2
        await link.close()


async def test_tokens_that_a_peer_never_shows_are_among_its_links(ends: Ends) -> None:
    """Nobody else is without a link because one asks for many and opens none."""
    listener = await ends.listen(dataclasses.replace(DEFAULT_LINK_SETTINGS, links=6, links_per_peer=3))
    request = handshake.ask(DEFAULT_LINK_SETTINGS, CLIENT)
    for _ in range(3):
        listener.open_link(request, Role.RUN_UNTRUSTED, "token guest at 127.0.0.1")
    with pytest.raises(errors.ResourceExhaustedError, match=f"token guest at 127.0.0.1 has 3 links to {SERVER}"):
        listener.open_link(request, Role.RUN_UNTRUSTED, "token guest at 127.0.0.1")

    link = await connect(listener.open_link(request, Role.ADMIN, "token owner at 127.0.0.1"), ADDRESS)
    assert await link.call(ECHO, b"here") == (b"here", [])
    await link.close()
