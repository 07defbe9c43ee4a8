"""The time that one CreateSession may take: made once, passed to all that waits in it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_services.master.limits import MasterLimits

#: Seconds that a call made late still gets, so that its error is that of the call.
_LEAST = 0.1

T = TypeVar("T")


class SetUpBudget:
    """Of one CreateSession, from its beginning. On the event loop's thread."""

    def __init__(self, seconds: float, graph_seconds: float | None = None) -> None:
        """`graph_seconds` are for work on the graph, beside the others; None: it takes of the same."""
        self.seconds, self._graph_seconds = seconds, graph_seconds
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + seconds

    @classmethod
    def of(cls, config: ConfigProto, patience: float | None, limits: MasterLimits) -> SetUpBudget:
        """By what the session's options say, and the client's own deadline in `patience` seconds, if it has one."""
        seconds = limits.create_session_seconds
        if config.operation_timeout_in_ms > 0:
            seconds = min(config.operation_timeout_in_ms / 1000, limits.longest_create_session_seconds)
            patience = seconds if patience is None else min(seconds, patience)
        if patience is None:
            return cls(seconds, limits.longest_create_session_seconds)
        # an answer that names the missing tasks must be there before the client's deadline
        return cls(min(seconds, patience - min(patience * 0.1, limits.answer_before_seconds)))

    def left(self) -> float:
        """Seconds that are left, and some for a call that is made late."""
        return max(_LEAST, self._deadline - self._loop.time())

    def is_over(self) -> bool:
        return self._loop.time() >= self._deadline

    async def place(self, graph_def: GraphDef, work: Awaitable[T]) -> T:
        """What `work` on the graph gives. Raises DeadlineExceededError when the time for it is over."""
        began, seconds = self._loop.time(), self.left() if self._graph_seconds is None else self._graph_seconds
        try:
            async with asyncio.timeout(seconds):
                result = await work
        except TimeoutError:
            text = f"CreateSession: the graph of {len(graph_def.node)} nodes was not placed within {seconds:.3g} s."
            raise errors.deadline_exceeded(text) from None
        if self._graph_seconds is not None:
            self._deadline += self._loop.time() - began
        return result
