"""gRPC methods of a task that writes traces: a call belongs to the trace that its metadata tell of.

service.py passes its handlers through here where traces are on when the task starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core import telemetry

from ..http2.handler import Failure

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from ..http2.handler import Buffer, CallContext, Outcome, UnaryHandler


class TracedHandler:
    """A handler.UnaryHandler whose calls belong to the trace that their metadata tell of."""

    def __init__(self, handler: UnaryHandler) -> None:
        self._handler = handler
        self.aligned, self.needs, self.action = handler.aligned, handler.needs, handler.action

    def begin(self, request: Buffer, context: CallContext) -> Outcome | Coroutine[Any, Any, Outcome]:
        """As UnaryHandler.begin."""
        told = context.invocation_metadata() or ()
        carrier = {name: value for name, value in told if isinstance(value, str)}
        if telemetry.TRACEPARENT not in carrier:
            return self._handler.begin(request, context)
        with telemetry.below(carrier):
            outcome = self._handler.begin(request, context)
        if isinstance(outcome, (bytes, list, Failure)):
            return outcome
        return _below(carrier, outcome)


async def _below(carrier: Mapping[str, str], work: Any) -> Any:
    with telemetry.below(carrier):
        return await work
