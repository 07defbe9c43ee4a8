"""Ends the service's endless loops: the lease sweeper, the session sweeper, the clearer.

A cancellation can get lost on its way: a driver may turn it into an error of its own, which such a loop logs before it
goes on. So a loop is cancelled until it has ended.
"""

from __future__ import annotations

import asyncio

#: Seconds until a loop that went on is cancelled again.
_AGAIN = 0.5


async def end_loop(loop: asyncio.Task[None] | None) -> None:
    """Cancels `loop` and returns once it has ended. None is no error."""
    while loop is not None and not loop.done():
        loop.cancel()
        await asyncio.wait((loop,), timeout=_AGAIN)
