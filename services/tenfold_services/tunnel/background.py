"""The blocking face of a Tunnel: an event loop on a thread of its own. Used by the `tenfold tunnel` command."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .tunnel import Tunnel

#: Seconds to open a port; and to end connections, each of which ends within two.
_START_S, _STOP_S = 60.0, 10.0


class BackgroundTunnel:
    """`tunnel` on its own thread, a daemon, between `start` and `stop`."""

    def __init__(self, tunnel: Tunnel) -> None:
        self._tunnel = tunnel
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="tunnel", daemon=True)

    def start(self) -> int:
        """Listens; the port. Raises OSError where that cannot be had."""
        self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._tunnel.start(), self._loop).result(_START_S)

    def stop(self) -> None:
        """Ends every connection, and the thread. Bounded."""
        if not self._thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(self._tunnel.stop(), self._loop).result(_STOP_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_S)

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()
