"""The blocking end of a link in a process that writes traces; dial.py makes one where the peer knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_link.blocking.link import BlockingLink
from tenfold_link.wire.traced import in_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_link.blocking.calls import PendingCall
    from tenfold_link.wire.buffers import Outgoing
    from tenfold_link.wire.packing import Piece


class TracedBlockingLink(BlockingLink):
    """A link whose calls tell the present span."""

    def _begin(self, method: int, header: bytes, buffers: Sequence[Outgoing]) -> tuple[PendingCall, list[Piece]]:
        return super()._begin(*in_trace(method, header), buffers)
