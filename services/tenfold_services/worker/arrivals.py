"""How tensors arrive at those who wait on the event loop's thread: at runs, a frame's together, and one by one.

graph_run.py's runs wait for all their tensors at once; `receive` waits for one alone, for other tasks and for partial
runs. `settle` is for all callbacks that end a future.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from tenfold_core import errors

    from ..interfaces import Value
    from .rendezvous import Rendezvous


class Arrivals:
    """Holds runs back while the tensors of one frame are handed out: a run goes on once, with all of its own.

    `with arrivals:` around the handing out. On the loop's thread only; never waits.
    """

    __slots__ = ("_depth", "_held")

    def __init__(self) -> None:
        self._held: dict[Callable[[], None], None] = {}
        self._depth = 0

    def hold(self, go_on: Callable[[], None]) -> bool:
        """Whether the run goes on later: `go_on` is called then, once."""
        if self._depth:
            self._held[go_on] = None
            return True
        return False

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if not self._depth and self._held:
            held, self._held = self._held, {}
            for go_on in held:
                go_on()


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
