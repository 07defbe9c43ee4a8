"""Whether a peer over gRPC lives: asked on the connection that a call waits on, and if need be on one beside it.

On a slow network the answer waits behind a large message on the same connection, and says nothing of the peer. So if it
does not come at once, the peer is asked on a second connection, too. As long as it answers there, the first has longer;
not for ever, since a connection may be dead whose peer lives. Used by grpc_worker.py while calls wait.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_protos import worker_pb2

from .channels import ask, open_channel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tenfold_core.access.credentials import Credentials

    from ..limits import Limits

_PATH = "/tensorflow.WorkerService/GetStatus"
#: The part of the time for an answer after which the second connection is asked.
_AT_ONCE = 0.15
#: Seconds for a call to end that was cancelled.
_END_S = 1.0


class PeerLife:
    """One peer, whose second connection stays open until `close`."""

    def __init__(
        self,
        task: str,
        address: str,
        limits: Limits,
        credentials: Credentials,
        ask_behind: Callable[[float], Awaitable[Any]],
    ) -> None:
        """`ask_behind(seconds)` asks on the connection of the calls, and raises OpError."""
        self._task, self._address, self._limits, self._credentials = task, address, limits, credentials
        self._ask_behind = ask_behind
        self._beside: Any = None

    async def check(self) -> None:
        """Returns once the peer has given a sign of life. Raises DeadlineExceededError if it has given none on either
        connection, UnavailableError if the first one broke, and any other OpError that it answers with there."""
        limits = self._limits
        at_once = limits.probe_answer_seconds * _AT_ONCE
        behind = asyncio.ensure_future(self._ask_behind(limits.probe_behind_seconds))
        try:
            await asyncio.wait([behind], timeout=at_once)
            while not behind.done():
                await self._ask_beside(limits.probe_answer_seconds - at_once)
                await asyncio.wait([behind], timeout=limits.probe_every_seconds)
            behind.result()
        finally:
            behind.cancel()
            await asyncio.wait([behind], timeout=_END_S)
            if behind.done() and not behind.cancelled():
                behind.exception()

    async def close(self) -> None:
        """Ends the second connection. Bounded; idempotent."""
        beside, self._beside = self._beside, None
        if beside is not None:
            await beside.close()

    async def _ask_beside(self, seconds: float) -> None:
        if self._beside is None:
            self._beside = open_channel(self._address, self._credentials)
        request, response = worker_pb2.GetStatusRequest(), worker_pb2.GetStatusResponse
        try:
            await ask(self._beside, _PATH, request, response, self._task, self._address, seconds)
        except (errors.DeadlineExceededError, errors.UnavailableError) as error:
            raise errors.deadline_exceeded(error.message) from None
        except errors.OpError:
            return  # any other answer is a sign of life
