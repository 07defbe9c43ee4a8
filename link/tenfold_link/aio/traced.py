"""The asyncio end of a link in a process that writes traces, and what takes calls that belong to a trace.

link.py and methods.py know nothing of it; dial.py and listener.py make such a link where traces are on and the peer
knows them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tenfold_core import telemetry
from tenfold_link.wire.traced import ABILITY, TRACED, in_trace, without_trace

from .link import Link
from .methods import LinkMethod, PeerLink

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from tenfold_link.wire.buffers import Incoming, Outgoing
    from tenfold_link.wire.handshake import Agreed

    from .methods import Deferred, Handler, Methods, Reply


class TracedLink(Link):
    """A link whose calls tell the present span."""

    def call_nowait(self, method: int, header: bytes = b"", buffers: Sequence[Outgoing] = ()) -> Deferred:
        """As Link.call_nowait."""
        return super().call_nowait(*in_trace(method, header), buffers)


def link_class(agreed: Agreed) -> type[Link]:
    """The class of a link that came to this."""
    return TracedLink if telemetry.is_on() and ABILITY in agreed.can else Link


def also_traced(methods: Methods) -> Methods:
    """`methods`, and each for calls that belong to a trace, too."""
    twins = {
        number | TRACED: LinkMethod(method.name, _within(method.handle), method.needs)
        for number, method in methods.items()
    }
    return {**methods, **twins}


def _within(handle: Handler) -> Handler:
    def handle_in_trace(link: PeerLink, header: bytes, buffers: list[Incoming]) -> Reply | Awaitable[Reply]:
        parent, header = without_trace(header)
        if not telemetry.is_on():
            return handle(link, header, buffers)
        carrier = {telemetry.TRACEPARENT: parent}
        with telemetry.below(carrier):
            result = handle(link, header, buffers)
        # a coroutine has not begun yet, and runs as a task of its own
        return _below(carrier, result) if asyncio.iscoroutine(result) else result

    return handle_in_trace


async def _below(carrier: dict[str, str], work: Any) -> Any:
    with telemetry.below(carrier):
        return await work
