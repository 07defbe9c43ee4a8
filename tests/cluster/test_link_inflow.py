"""What peers who may only run graphs may have on its way over links: by peer, together, and that it is given back."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from support.links import ADDRESS, CLIENT, ECHO, NOTE, PATHS, SERVER, WAIT
from tenfold_core import errors
from tenfold_core.access.roles import Role
from tenfold_link.aio.dial import connect
from tenfold_link.aio.listener import LinkListener
from tenfold_link.aio.methods import LinkMethod
from tenfold_link.link_settings import LinkSettings
from tenfold_link.wire import handshake
from tenfold_link.wire.frames import MAGIC, PREFIX, ROW, FrameKind
from tenfold_link.wire.inflow import Inflow

if TYPE_CHECKING:
    from support.link_ends import Ends
    from tenfold_link.aio.link import Link

KB, MB = 1 << 10, 1 << 20
TIGHT = dataclasses.replace(PATHS["tcp"], mode="auto", peer_inbound_bytes=MB, inbound_bytes=MB + MB // 2)
GUEST, OTHER = "token guest at 10.0.0.7", "token other at 10.0.0.8"


async def listen(ends: Ends, settings: LinkSettings = TIGHT) -> LinkListener:
    """A listener whose methods are for those who may run graphs."""
    methods = ends.service.methods

    def for_guests(link: Link) -> dict[int, LinkMethod]:
        return {number: LinkMethod(each.name, each.handle, Role.RUN) for number, each in methods(link).items()}

    ends.service.methods = for_guests  # type: ignore[method-assign]
    return await ends.listen(settings)


async def guest(listener: LinkListener, name: str = GUEST, role: Role = Role.RUN, how: str = "tcp") -> Link:
    answer = listener.open_link(handshake.ask(PATHS[how], CLIENT), role, name)
    return await connect(answer, ADDRESS, settings=PATHS[how])


def counted(listener: LinkListener) -> int:
    return 0 if listener._inflow is None else listener._inflow.taken


async def refused(call: asyncio.Future[object]) -> str:
    with pytest.raises(errors.ResourceExhaustedError) as caught:
        await call
    return caught.value.message


@pytest.mark.parametrize("how", ["tcp", "unix"])
async def test_a_call_beyond_the_limit_is_refused_and_the_link_goes_on(ends: Ends, how: str) -> None:
    listener = await listen(ends)
    link = await guest(listener, how=how)

    said = await refused(link.call_nowait(ECHO, b"", [np.zeros(2 * MB, np.uint8)]))
    assert f"{2 * MB} more bytes would come in over links of {GUEST}" in said
    assert f"{MB} is the limit, and TENFOLD_LINK_PEER_INBOUND_BYTES" in said

    _, (echoed,) = await link.call(ECHO, b"", [np.arange(800 * KB, dtype=np.uint8)])
    assert bytes(echoed) == np.arange(800 * KB, dtype=np.uint8).tobytes()
    # many small ones are counted like a large one
    assert await refused(link.call_nowait(ECHO, b"", [bytes(8 * KB)] * 200))
    assert counted(listener) == 0
    await link.close()


async def test_links_of_a_peer_count_together_and_leave_something_to_others(ends: Ends) -> None:
    listener = await listen(ends)
    one, two, other = [await guest(listener, name) for name in (GUEST, GUEST, OTHER)]
    held = one.call_nowait(WAIT, b"", [bytes(900 * KB)])
    await ends.service.entered.wait()

    assert GUEST in await refused(two.call_nowait(ECHO, b"", [bytes(200 * KB)]))
    assert await other.call(ECHO, b"", [bytes(500 * KB)])
    assert "of all who may only run graphs" in await refused(other.call_nowait(ECHO, b"", [bytes(700 * KB)]))
    ends.service.released.set()
    await held
    assert await two.call(ECHO, b"", [bytes(200 * KB)])
    assert counted(listener) == 0
    for link in (one, two, other):
        await link.close()


@pytest.mark.parametrize("role", [Role.REGISTER, Role.ADMIN])
async def test_members_are_not_counted(ends: Ends, role: Role) -> None:
    listener = await listen(ends)
    link = await guest(listener, role=role)
    assert await link.call(ECHO, b"", [bytes(2 * MB)])
    await link.close()


@pytest.mark.parametrize("way", ["in the middle of a frame", "while its call waits"])
async def test_what_a_link_had_goes_with_it(ends: Ends, way: str) -> None:
    listener = await listen(ends)
    link = await guest(listener)
    (theirs,) = listener.links
    gone = asyncio.Event()
    theirs.on_close(lambda _: gone.set())
    if way == "while its call waits":
        link.call_nowait(WAIT, b"", [bytes(900 * KB)])
        await ends.service.entered.wait()
    else:
        prefix = PREFIX.pack(MAGIC, FrameKind.REQUEST, 0, ECHO, 0, 1, 1) + ROW.pack(MB, 0, 0)
        await asyncio.get_running_loop().sock_sendall(link._sock, prefix + bytes(600 * KB))
        async with asyncio.timeout(20):
            while not counted(listener):  # noqa: ASYNC110 - the reader tells nobody that a frame has begun
                await asyncio.sleep(0)
    assert counted(listener) >= 900 * KB
    link.abort("gone")
    await gone.wait()
    assert counted(listener) == 0
    assert theirs._serving.inflow is not None
    assert theirs._serving.inflow.taken == 0


async def test_a_large_header_counts_and_a_notification_too(ends: Ends) -> None:
    listener = await listen(ends, dataclasses.replace(TIGHT, header_bytes=8 * MB))
    for what in ("header", "notification"):
        link = await guest(listener)
        gone = asyncio.get_running_loop().create_future()
        link.on_close(gone.set_result)
        if what == "header":
            link.notify_nowait(NOTE, bytes(2 * MB))
        else:
            link.notify_nowait(NOTE, b"", [bytes(2 * MB)])
        async with asyncio.timeout(20):
            assert "what there is no room for" in (await gone).message
    assert counted(listener) == 0


async def test_no_memory_is_no_internal_error() -> None:
    def none(*_: object) -> None:
        raise MemoryError

    async with LinkListener(SERVER, lambda link: {ECHO: LinkMethod("Echo", none, Role.RUN)}) as listener:
        link = await guest(listener)
        assert "Echo: there is no memory" in await refused(link.call_nowait(ECHO))


async def test_a_buffer_without_memory_is_refused(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    link, theirs = await ends.open(PATHS["tcp"])
    allocate = theirs._inbound._reader._allocate

    def none(size: int) -> object:
        if size > MB:
            raise MemoryError
        return allocate(size)

    monkeypatch.setattr(theirs._inbound._reader, "_allocate", none)
    said = await refused(link.call_nowait(ECHO, b"", [bytes(20 * KB), bytes(2 * MB), b"small"]))
    assert said == f"there is no memory for a buffer of {2 * MB} bytes"
    _, echoed = await link.call(ECHO, b"", [bytes(20 * KB), b"small"])
    assert [bytes(each) for each in echoed] == [bytes(20 * KB), b"small"]


def test_the_limits_are_what_a_tensor_may_take() -> None:
    assert (LinkSettings().peer_inbound_bytes, LinkSettings().inbound_bytes) == (0, 0)
    whole = Inflow("all", 3, "A")
    part = Inflow("one", 2, "B", whole)
    assert part.take(2) is None
    assert part.take(1) is not None
    assert Inflow("two", 2, "B", whole).take(2) is not None
    part.give(5)
    assert (part.taken, whole.taken) == (0, 0)
