"""What the tests of links share: listeners, both kinds of end, a raw peer that says what it likes.

Not used by the services themselves. The three paths are settings of the connecting end.
"""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import threading
from typing import TYPE_CHECKING, Any

from support.moments import PATIENCE
from tenfold_link.aio.listener import LinkListener
from tenfold_link.aio.methods import LinkMethod, Methods, OnLink
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire import handshake
from tenfold_link.wire.frames import Frame, FrameKind, FrameReader

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from tenfold_link.aio.link import Link
    from tenfold_protos import link_pb2

SERVER = "/job:ps/replica:0/task:0"
CLIENT = "/job:worker/replica:0/task:1"
#: Nothing listens for gRPC in these tests; the address only says on which host the TCP port is.
ADDRESS = "127.0.0.1:1"

PATHS = {
    "unix+shm": DEFAULT_LINK_SETTINGS,
    "unix": dataclasses.replace(DEFAULT_LINK_SETTINGS, shared_memory=False),
    "tcp": dataclasses.replace(DEFAULT_LINK_SETTINGS, mode="tcp"),
}

ECHO, FAIL, WAIT, NOTE, CALL_BACK, HOLD = range(1, 7)


class Service:
    """The methods that tests call, and what happened to them. One for all links of a listener."""

    def __init__(self) -> None:
        self.notes: asyncio.Queue[tuple[bytes, list[Any]]] = asyncio.Queue()
        self.links: list[Link] = []
        #: WAIT: set while a call waits; its end; what lets it go.
        self.entered, self.cancelled, self.released = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.on_wait: Callable[[], None] | None = None
        self.held: list[Any] = []

    def methods(self, link: Link) -> Methods:
        self.links.append(link)
        return {
            ECHO: LinkMethod("Echo", lambda link, header, buffers: (header, buffers)),
            FAIL: LinkMethod("Fail", self.fail),
            WAIT: LinkMethod("Wait", self.wait),
            NOTE: LinkMethod("Note", self.note),
            CALL_BACK: LinkMethod("CallBack", self.call_back),
            HOLD: LinkMethod("Hold", self.hold),
        }

    def fail(self, link: Link, header: bytes, buffers: list[Any]) -> Any:
        from tenfold_core import errors

        if header.isdigit():
            raise errors.from_code(int(header), "the handler says no")
        raise RuntimeError(header.decode())

    async def wait(self, link: Link, header: bytes, buffers: list[Any]) -> Any:
        self.entered.set()
        if self.on_wait is not None:
            self.on_wait()
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return header, buffers

    def note(self, link: Link, header: bytes, buffers: list[Any]) -> None:
        self.notes.put_nowait((header, buffers))

    def hold(self, link: Link, header: bytes, buffers: list[Any]) -> None:
        self.held.extend(buffers)

    async def call_back(self, link: Link, header: bytes, buffers: list[Any]) -> Any:
        return await link.call(ECHO, header, buffers)


class ThreadedListener:
    """A listener on a loop and thread of its own, for tests of the blocking end. `with`."""

    def __init__(
        self,
        settings: LinkSettings = DEFAULT_LINK_SETTINGS,
        on_link: OnLink | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self._settings, self._on_link, self._host = settings, on_link, host
        self._started = threading.Event()

    def __enter__(self) -> ThreadedListener:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="links", daemon=True)
        self._thread.start()
        assert self._started.wait(30)
        return self

    async def _serve(self) -> None:
        self.loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        self.service = Service()
        methods = self._on_link or self.service.methods
        async with LinkListener(SERVER, methods, self._settings, self._host) as self.listener:
            self._started.set()
            await self._end.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.loop.call_soon_threadsafe(self._end.set)
        self._thread.join(30)
        assert not self._thread.is_alive()

    def run(self, work: Callable[[], Any]) -> Any:
        """`work()` on the loop; its result."""

        async def call() -> Any:
            return work()

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(30)

    def wait_for(self, event: asyncio.Event) -> None:
        """Blocks until the event of the service is set."""
        asyncio.run_coroutine_threadsafe(asyncio.wait_for(event.wait(), 30), self.loop).result(30)

    def agree(self, settings: LinkSettings) -> link_pb2.OpenLinkResponse:
        answer: link_pb2.OpenLinkResponse = self.run(lambda: self.listener.open_link(handshake.ask(settings)))
        return answer


class RawPeer:
    """A peer that sends what the test says and reads only when the test says. Blocking, with a bound."""

    def __init__(self, answer: link_pb2.OpenLinkResponse, *, always_reads: bool = True) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect("\0" + answer.unix_name.decode())
        self._hello = handshake.hello(answer, None, always_reads=always_reads)
        self._reader = FrameReader(DEFAULT_LINK_SETTINGS, _no_arena)

    def greet(self) -> RawPeer:
        """Shakes hands."""
        self.sock.send(self._hello)
        greeting = handshake.Greeting(FrameKind.WELCOME)
        while greeting.receive(self.sock) is None:
            pass
        greeting.close()
        return self

    def read(self) -> list[Frame]:
        """The next frames; [] at the end of the stream."""
        while True:
            try:
                count = self.sock.recv_into(self._reader.buffer())
            except ConnectionResetError:
                return []
            if not count:
                return []
            frames = self._reader.received(count)
            if frames:
                return frames

    def read_to_the_end(self) -> list[Frame]:
        """Everything until the other end closes."""
        frames: list[Frame] = []
        while more := self.read():
            frames += more
        return frames

    def close(self) -> None:
        self.sock.close()


async def ended(link: Link) -> None:
    """Waits until the link's end has happened at this end of it."""
    gone = asyncio.Event()
    link.on_close(lambda _: gone.set())
    async with asyncio.timeout(PATIENCE):
        await gone.wait()


def _no_arena(block: int, offset: int, size: int) -> Any:
    raise ProtocolError("a shared block without an arena")
