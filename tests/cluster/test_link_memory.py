"""Shared memory of a link between two asyncio ends: whose a block is, when it goes back, and who does without."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import socket
import threading
import weakref

import numpy as np
import pytest

from support.link_ends import MB, Ends
from support.links import ADDRESS, CLIENT, ECHO, HOLD, PATHS, Service, ended
from tenfold_core import errors
from tenfold_core.access.roles import Role
from tenfold_core.variable_memory import VariableMemory, lend
from tenfold_link.aio.dial import connect
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.memory import shared_variables
from tenfold_link.memory.arena import SharedBlock
from tenfold_link.wire import handshake, sockets


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
    await ended(other)
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
    await ended(other)
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


@pytest.mark.parametrize("at", ["the listener", "the dialer"])
async def test_another_user_gets_no_memory_of_ours(ends: Ends, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """Finding 7: it got the arena and all variables. The link goes on through the socket."""
    asked: list[object] = []

    def another(sock: object) -> bool:
        asked.append(sock)
        return (len(asked) == 1) is (at == "the listener")

    monkeypatch.setattr(sockets, "may_share_memory", another)
    link, other = await ends.open()
    assert (link.path, other.path) == ("unix", "unix")
    assert await link.call(ECHO, b"", [np.ones(MB, np.uint8)])


async def test_more_links_than_there_may_be(ends: Ends) -> None:
    """Finding 5: each may have 4 GiB of answers waiting, and nothing bounded how many there are."""
    settings = dataclasses.replace(DEFAULT_LINK_SETTINGS, links=2)
    await ends.open(settings)
    await ends.open(settings)
    with pytest.raises(errors.ResourceExhaustedError, match="2 is the limit, and TENFOLD_LINK_LINKS in"):
        await ends.open(settings)


async def test_more_links_than_one_peer_may_have(ends: Ends) -> None:
    listener = await ends.listen(dataclasses.replace(DEFAULT_LINK_SETTINGS, links_per_peer=1))
    request = handshake.ask(DEFAULT_LINK_SETTINGS, CLIENT)
    first = await connect(listener.open_link(request, name="token ci at 10.0.0.7"), ADDRESS)

    with pytest.raises(errors.ResourceExhaustedError, match=r"token ci at 10\.0\.0\.7 has 1 links.*PER_PEER"):
        listener.open_link(request, name="token ci at 10.0.0.7")

    other = await connect(listener.open_link(request, name="token ci at 10.0.0.8"), ADDRESS)
    (theirs,) = [link for link in listener.links if link is ends.service.links[0]]
    await first.close()
    await ended(theirs)
    assert listener.open_link(request, name="token ci at 10.0.0.7")
    await other.close()


@pytest.mark.parametrize("role", [Role.RUN_UNTRUSTED, Role.RUN])
async def test_who_may_not_run_code_lends_no_memory(ends: Ends, role: Role) -> None:
    """A peer can write to what it has lent while a kernel indexes by it."""
    listener = await ends.listen()
    request = handshake.ask(DEFAULT_LINK_SETTINGS, CLIENT)

    answer = listener.open_link(request, role)
    link = await connect(answer, ADDRESS, settings=DEFAULT_LINK_SETTINGS)

    assert link.path == ("unix+shm" if role is Role.RUN else "unix")
    assert ends.service.links[-1].path == link.path
    await link.close()


@pytest.mark.parametrize("role", [Role.RUN, Role.REGISTER])
async def test_the_file_of_all_variables_is_for_members(
    ends: Ends, monkeypatch: pytest.MonkeyPatch, role: Role
) -> None:
    """Finding 7: one file has the variables of every session; who only runs graphs gets a copy of what it fetches."""
    passed: list[int] = []
    send_fds = socket.send_fds

    def noted(sock: socket.socket, data: list[bytes], fds: list[int]) -> int:
        passed.append(len(fds))
        return send_fds(sock, data, fds)

    monkeypatch.setattr(socket, "send_fds", noted)
    is_member = role is Role.REGISTER
    listener, mine = await ends.listen(), Service()
    answer = listener.open_link(handshake.ask(DEFAULT_LINK_SETTINGS, CLIENT), role)
    link = await connect(answer, ADDRESS, on_link=mine.methods)
    (other,) = ends.service.links
    assert passed[1] == 1 + is_member

    variables = shared_variables.arena()
    assert variables is not None
    variables.reserve(2 * MB)
    block = shared_variables.allocate(MB)
    assert block is not None
    memory = VariableMemory(block.array, threading.RLock(), block, shared_variables.allocate)
    memory.array()[:] = 7
    lease = lend(memory.array())
    assert lease is not None
    await other.call(HOLD, b"", [lease])

    assert np.asarray(mine.held[0]).sum() == 7 * MB
    assert other._arena is not None
    assert len(other._arena.leases) == is_member
    mine.held.clear()
    await link.close()
