"""An object of coroutines as one that blocks, so that a test of the blocking client is one of the other too."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator

#: A call that takes longer has failed.
PATIENCE = 60.0


class EventLoop:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="awaited", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE)

    def stop(self) -> None:
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


class Awaited:
    """`of`, whose coroutines and async iterators run on the loop; so do those of what they give."""

    def __init__(self, of: Any, loop: EventLoop) -> None:
        self._of, self._loop = of, loop

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._of, name)
        if not callable(member):
            return member

        def call(*args: Any, **kwargs: Any) -> Any:
            result = member(*args, **kwargs)
            if inspect.isasyncgen(result):
                return self._iterated(result)
            if inspect.iscoroutine(result):
                result = self._loop.run(result)
            return Awaited(result, self._loop) if hasattr(result, "__aexit__") else result

        return call

    def _iterated(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        end = object()
        try:
            while (item := self._loop.run(_next(items, end))) is not end:
                yield item
        finally:
            self._loop.run(items.aclose())  # type: ignore[attr-defined]

    def __enter__(self) -> Self:
        self._loop.run(self._of.__aenter__())
        return self

    def __exit__(self, *raised: object) -> None:
        self._loop.run(self._of.__aexit__(*raised))


async def _next(items: AsyncIterator[Any], end: object) -> Any:
    return await anext(items, end)
