"""Carries the bytes of two connected sockets into each other until both have ended. Either may speak TLS.

What one end says last is said last to the other: a half that is closed is closed there too, and the other half goes on.
Used by tunnel.py. One loop; sockets do not block.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .tunnel_settings import TunnelSettings


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

    @property
    def _stall(self) -> float:
        return self._settings.stall_seconds

    async def _pump(self, source: socket.socket, sink: socket.socket, *, outwards: bool) -> None:
        loop = asyncio.get_running_loop()
        space = memoryview(bytearray(self._settings.buffer_bytes))
        while count := await loop.sock_recv_into(source, space):
            data: memoryview | bytes = space[:count]
            if outwards:
                self.sent += count
                data = data if self._change is None else self._change(space[:count])
            else:
                self.received += count
            try:
                async with asyncio.timeout(self._stall):
                    await loop.sock_sendall(sink, data)
            except TimeoutError:
                text = f"an end took less than {len(data)} bytes in {self._stall:g} s"
                raise TimeoutError(text) from None
            # neither of the two waits where it can go on, and others have their turn
            await asyncio.sleep(0)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
