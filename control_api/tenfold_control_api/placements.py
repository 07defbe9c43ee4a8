"""Placements of sessions' graphs, in pages: what a master said of a graph is kept a while for the next page.

Called by routes/placement.py. A graph of a session grows and never changes otherwise, so its version says whether what
is kept still holds.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from tenfold.session.master_interface import ExplainingMaster
from tenfold_control_api.models import NodePlacementView, PlacementView, TaskPlacementView
from tenfold_control_api.problems import ApiError
from tenfold_core import errors

if TYPE_CHECKING:
    from tenfold.session.master_interface import MasterInterface
    from tenfold_control_api.session_service import SessionService
    from tenfold_protos.placement_pb2 import GetPlacementResponse

#: Nodes of all placements that are kept.
_KEPT_NODES = 200_000


class Placements:
    """Used on one event loop."""

    def __init__(self, sessions: SessionService, timeout: float) -> None:
        self._sessions, self._timeout = sessions, timeout
        #: Session → (version of its graph, its placement); the one that was asked for longest ago first.
        self._kept: OrderedDict[str, tuple[int, GetPlacementResponse]] = OrderedDict()

    async def get(self, session: str) -> GetPlacementResponse:
        """Where the session's master has placed the nodes. Raises NOT_FOUND, UNAVAILABLE, ABORTED, and UNIMPLEMENTED
        for a master that does not tell."""
        version = (await self._sessions.get(session)).graph_version
        kept = self._kept.get(session)
        if kept is not None and kept[0] == version:
            self._kept.move_to_end(session)
            return kept[1]
        try:
            found = await self._sessions.ask(session, _ask, self._timeout)
        except ApiError as error:
            if error.code != "UNIMPLEMENTED":
                raise
            raise ApiError("placement-unknown", error.detail, task=error.task) from None
        self._kept[session] = version, found
        self._kept.move_to_end(session)
        while len(self._kept) > 1 and sum(len(each.node) for _, each in self._kept.values()) > _KEPT_NODES:
            self._kept.popitem(last=False)
        return found


def _ask(master: MasterInterface, handle: str, left: float) -> GetPlacementResponse:
    if not isinstance(master, ExplainingMaster):
        raise errors.UnimplementedError(None, None, "This session's master does not tell where it places nodes.")
    return master.placement(handle, left)


def page_of(
    session: str, found: GetPlacementResponse, *, limit: int, after: str | None, name: str, op: str | None
) -> PlacementView:
    """The nodes behind `after` whose names have `name` in them, of the op `op` if given, in the graph's order. Raises
    INVALID_ARGUMENT where there is no node `after`."""
    text = found.text
    start = 0
    if after is not None:
        start = next((at for at, node in enumerate(found.node, 1) if node.name == after), 0)
        if not start:
            raise ApiError("invalid-cursor", f"after={after!r} is not the `next` of a page: there is no such node.")
    chosen: list[NodePlacementView] = []
    following: str | None = None
    for at in range(start, len(found.node)):
        node = found.node[at]
        if name not in node.name or (op is not None and text[node.op] != op):
            continue
        if len(chosen) == limit:
            following = chosen[-1].name
            break
        chosen.append(
            NodePlacementView(
                name=node.name,
                op=text[node.op],
                requested=text[node.requested],
                assigned=text[node.assigned],
                reason=text[node.reason],
            )
        )
    tasks = [
        TaskPlacementView(
            task=task.task, nodes=task.nodes, variables=task.variables, variable_bytes=task.variable_bytes
        )
        for task in found.task
    ]
    return PlacementView(session=session, graph_version=found.graph_version, nodes=chosen, tasks=tasks, next=following)
