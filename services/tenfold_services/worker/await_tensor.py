"""Waits on an event loop for one tensor of a step: a rendezvous' callback as something to await.

Used by worker.py for other tasks and by partial_runs.py for clients; a run of a graph waits for all its tensors at
once, in event_loop_waiter.py. `settle` is for all callbacks that end a future.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tenfold_core import errors

    from ..interfaces import Value
    from .rendezvous import Rendezvous


def settle(future: asyncio.Future[Any] | Future[Any], result: Any, error: errors.OpError | None) -> None:
    """Ends a future with the error, else with the result, unless it has ended. An asyncio one: on its loop's thread."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


async def receive(rendezvous: Rendezvous, key: str) -> tuple[Value, bool]:
    """The tensor and whether it is dead. Raises what ends the step first; cancelling the caller withdraws its wish."""
    loop, thread = asyncio.get_running_loop(), threading.get_ident()
    future: asyncio.Future[tuple[Value, bool]] = loop.create_future()

    def done(value: Any, is_dead: bool, error: errors.OpError | None) -> None:
        if threading.get_ident() == thread:
            settle(future, (value, is_dead), error)
        else:
            loop.call_soon_threadsafe(settle, future, (value, is_dead), error)

    rendezvous.recv(key, done)
    try:
        return await future
    except asyncio.CancelledError:
        rendezvous.cancel_recv(key, done)
        raise
