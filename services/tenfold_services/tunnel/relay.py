"""Carries the bytes of two connected sockets into each other until both have ended. Either may speak TLS.

What one end says last is said last to the other: a half that is closed is closed there too, and the other half goes on.
Used by tunnel.py and services/rpc/grpcio_port.py. One loop; sockets do not block.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tenfold_core.env_settings import FromEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class TunnelSettings(FromEnvironment):
    """The bounds of a tunnel. Sizes are bytes, times are seconds."""

    prefix: ClassVar[str] = "TENFOLD_TUNNEL_"

    #: At the same time. A TensorFlow process opens one or two to each task that it knows.
    connections: int = 64
    #: What is under way in one direction of a connection.
    buffer_bytes: int = 256 << 10
    #: For the connection to the other end, and for the handshake of TLS with it.
    connect_seconds: float = 10.0
    #: A connection ends when an end takes less than a buffer in so long, or when one end has finished and the other is
    #: silent for so long. One that is open at both ends may be silent for ever: the system asks whether its peers live.
    stall_seconds: float = 300.0
    #: The system asks for a sign of life on connections where nothing happens, every so often; three unanswered end it.
    keepalive_seconds: int = 60


class Relay:
    """Two sockets, which the caller closes when `run` has ended."""

    def __init__(
        self,
        near: socket.socket,
        far: socket.socket,
        settings: TunnelSettings,
        change: Callable[[memoryview], bytes] | None = None,
    ) -> None:
        """`change` makes of what comes from `near` what `far` gets."""
        self._near, self._far, self._settings, self._change = near, far, settings, change
        self._stall = settings.stall_seconds
        #: Bytes from the near end, and from the far one.
        self.sent = self.received = 0

    async def run(self) -> None:
        """Returns when both ends have finished. Raises OSError and TimeoutError saying which end failed how, and what
        `change` raises."""
        loop = asyncio.get_running_loop()
        pumps = {
            loop.create_task(self._pump(self._near, self._far, outwards=True), name="tunnel:out"),
            loop.create_task(self._pump(self._far, self._near, outwards=False), name="tunnel:in"),
        }
        try:
            _, left = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            moved = -1
            while left and not any(pump.done() and pump.exception() for pump in pumps):
                if moved == self.sent + self.received:
                    raise TimeoutError(f"one end has finished, and the other was silent for {self._stall:g} s")
                moved = self.sent + self.received
                _, left = await asyncio.wait(left, timeout=self._stall)
        finally:
            for pump in pumps:
                pump.cancel()
            ended = await asyncio.gather(*pumps, return_exceptions=True)
        for failure in ended:
            if isinstance(failure, BaseException) and not isinstance(failure, asyncio.CancelledError):
                raise failure

    async def _pump(self, source: socket.socket, sink: socket.socket, *, outwards: bool) -> None:
        loop = asyncio.get_running_loop()
        space = memoryview(bytearray(self._settings.buffer_bytes))
        while count := await loop.sock_recv_into(source, space):
            came = space[:count]
            data: memoryview | bytes = came if self._change is None or not outwards else self._change(came)
            if outwards:
                self.sent += count
            else:
                self.received += count
            try:
                async with asyncio.timeout(self._stall):
                    await loop.sock_sendall(sink, data)
            except TimeoutError:
                raise TimeoutError(f"an end took less than {len(data)} bytes in {self._stall:g} s") from None
            # neither of the two waits where it can go on, and others have their turn
            await asyncio.sleep(0)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
