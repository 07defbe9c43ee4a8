"""The allocation times of the tensors of a traced step, and the peak memory of each allocator.

A tensor is counted from the start of the op that made it to the end of the last op that read it. Called by timeline.py.
Follows TF 1.15's client/timeline.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tenfold_protos.step_stats_pb2 import NodeExecStats


class AllocationMaximum(NamedTuple):
    """The time of an allocator's peak, its bytes, and the names of the tensors in memory then."""

    timestamp: int
    num_bytes: int
    tensors: frozenset[str]


@dataclass(slots=True)
class _Allocation:
    name: str
    allocator: str
    num_bytes: int
    process: int
    lane: int
    created: int
    ended: int
    description: str


class Allocations:
    """The tensors of one step. `made` and `read` take ops in any order; call the other methods at the end."""

    def __init__(self) -> None:
        self._allocations: list[_Allocation] = []
        #: Node → its output tensors.
        self._of_node: dict[str, list[_Allocation]] = {}
        self._reads: list[tuple[str, int]] = []

    def made(self, stats: NodeExecStats, name: str, process: int, lane: int, end: int) -> None:
        """Records the outputs of an op; `name` is the node's, `end` the time when the op ended, in microseconds."""
        for index, output in enumerate(stats.output):
            about = output.tensor_description
            allocation = _Allocation(
                f"{name}:{index}" if index else name,
                about.allocation_description.allocator_name,
                about.allocation_description.requested_bytes,
                process,
                lane,
                stats.all_start_micros,
                end,
                str(about).replace('"', ""),
            )
            self._allocations.append(allocation)
            self._of_node.setdefault(name, []).append(allocation)

    def read(self, inputs: Iterable[str], end: int) -> None:
        """Records that an op that ended at `end` read the nodes `inputs`."""
        self._reads.extend((each.lstrip("^").partition(":")[0], end) for each in inputs)

    def _ended(self) -> list[_Allocation]:
        for node, end in self._reads:
            for allocation in self._of_node.get(node, ()):
                allocation.ended = max(allocation.ended, end)
        self._reads.clear()
        return self._allocations

    def changes(self) -> dict[str, list[tuple[int, int, AllocationMaximum]]]:
        """Allocator → (time, bytes held from then on, the peak so far), in the order of time."""
        steps: dict[str, list[tuple[int, int, str]]] = {}
        for each in self._ended():
            of = steps.setdefault(each.allocator, [])
            of += [(each.created, each.num_bytes, each.name), (each.ended, -each.num_bytes, each.name)]
        return {allocator: list(_held(sorted(of))) for allocator, of in steps.items()}

    def events(self) -> Iterator[dict[str, Any]]:
        """Chrome's object events: creation, snapshot and deletion of each tensor."""
        for number, allocation in enumerate(self._ended()):
            common = {"cat": "Tensor", "name": allocation.name, "pid": allocation.process, "id": number}
            yield {**common, "ph": "N", "tid": allocation.lane, "ts": allocation.created}
            shown = {"snapshot": {"tensor_description": allocation.description}}
            yield {**common, "ph": "O", "tid": allocation.lane, "ts": allocation.created, "args": shown}
            yield {**common, "ph": "D", "tid": 0, "ts": allocation.ended}


def _held(steps: list[tuple[int, int, str]]) -> Iterator[tuple[int, int, AllocationMaximum]]:
    total, live = 0, set[str]()
    most = AllocationMaximum(0, 0, frozenset())
    for time, num_bytes, name in steps:
        total += num_bytes
        if num_bytes < 0:
            live.discard(name)
        else:
            live.add(name)
        if total > most.num_bytes:
            most = AllocationMaximum(time, total, frozenset(live))
        yield time, total, most
