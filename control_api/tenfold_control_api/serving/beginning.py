"""Models that follow a training begin by themselves: after a restart, or where their session is gone, nobody need ask.

A look at the registrations every other second; who is not loaded is loaded, by whatever `load` does for a request too.
What cannot be loaded is tried again later and later. Called by service.py.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from tenfold_control_api.loops import end_loop
from tenfold_control_api.problems import ApiError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

log = logging.getLogger(__name__)

#: Seconds between two looks; of waiting after a load that failed, twice as many after each, up to the second.
_LOOK_S, _MOST_S = 2.0, 15.0


class Beginning:
    """`start` and `stop` are called on the loop of the service, once each."""

    def __init__(
        self, waiting: Callable[[], Awaitable[Iterable[str]]], load: Callable[[str], Awaitable[object]]
    ) -> None:
        """`waiting` gives the models that should be loaded and are not, `load` loads one; both may raise ApiError."""
        self._waiting, self._load = waiting, load
        self._loop: asyncio.Task[None] | None = None
        #: Loads under way, or waiting for their next try.
        self._tries: dict[str, asyncio.Task[None]] = {}

    def start(self) -> None:
        self._loop = asyncio.create_task(self._look(), name="control:begin-following")

    async def stop(self) -> None:
        """Ends all; loads under way leave nothing open."""
        await end_loop(self._loop)
        for each in [*self._tries.values()]:
            await end_loop(each)

    async def _look(self) -> None:
        while True:
            try:
                for name in await self._waiting():
                    if name not in self._tries:
                        self._tries[name] = asyncio.create_task(self._begin(name), name=f"control:begin:{name}")
            except ApiError as error:
                log.warning("what follows a training cannot be looked up: %s", error)
            await asyncio.sleep(_LOOK_S)

    async def _begin(self, name: str) -> None:
        """Until it is loaded, or should not be any more."""
        pause, told = _LOOK_S, ""
        try:
            while name in await self._waiting():
                try:
                    await self._load(name)
                    log.info("model %s follows its training", name)
                    return
                except ApiError as error:
                    if str(error) != told:
                        told = str(error)
                        log.warning("model %s cannot follow its training yet: %s", name, told)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MOST_S)
        except ApiError as error:
            log.warning("model %s cannot follow its training yet: %s", name, error)
        except Exception:
            log.exception("model %s could not be loaded", name)
        finally:
            del self._tries[name]
