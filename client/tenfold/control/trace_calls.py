"""The calls that tell where a session's nodes are and what steps did: placement and traces.

Of both clients; calls.py says how they become methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.control.calls import call
from tenfold.control.request import Request, members, path_of
from tenfold.control.trace_answers import Placement

if TYPE_CHECKING:
    from tenfold.control.request import Requests

#: Nodes of one page.
_PAGE = 10_000


class TraceCalls:
    """The part of the clients that is about placement and traces."""

    @call
    def placement(
        self, session: str, *, name: str = "", op: str | None = None, limit: int | None = None
    ) -> Requests[Placement]:
        """Where the nodes of a session's graph are, and why: all of them, or `limit`, whose names have `name` in them,
        of the op `op` if given; and how many nodes and bytes of variables lie on each task. Raises NotFoundError, and
        UnimplementedError for a session at a TensorFlow server."""
        nodes: list[Any] = []
        after: str | None = None
        while True:
            size = _PAGE if limit is None else min(_PAGE, limit - len(nodes))
            params = {"limit": size, "after": after, "name": name or None, "op": op}
            page = yield from Request("GET", path_of("sessions", session, "placement"), members, params=params)
            nodes += page["nodes"]
            after = page["next"]
            if after is None or (limit is not None and len(nodes) >= limit):
                return Placement.from_json({**page, "nodes": nodes})
