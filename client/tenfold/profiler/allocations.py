"""How long the tensors of a traced step lived, and how many bytes of each allocator that took at most.

A tensor lives from the start of the op that made it to the end of the last op that read it. Called by timeline.py.
Follows TF 1.15's client/timeline.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tenfold_protos.step_stats_pb2 import NodeExecStats


class AllocationMaximum(NamedTuple):
    """When an allocator held most, how many bytes that were, and the names of the tensors."""

    timestamp: int
    num_bytes: int
    tensors: frozenset[str]


@dataclass(slots=True)
class _Life:
    name: str
    allocator: str
    num_bytes: int
    process: int
    lane: int
    created: int
    ended: int
    description: str


class Allocations:
    """The tensors of one step. `made` and `read` take ops in any order; the rest is asked for at the end."""

    def __init__(self) -> None:
        self._lives: list[_Life] = []
        #: Node → its tensors.
        self._of_node: dict[str, list[_Life]] = {}
        self._reads: list[tuple[str, int]] = []

    def made(self, stats: NodeExecStats, name: str, process: int, lane: int, end: int) -> None:
        """Notes what an op gave; `name` is the node's, `end` when the op was over, in microseconds."""
        for index, output in enumerate(stats.output):
            about = output.tensor_description
            life = _Life(
                f"{name}:{index}" if index else name,
                about.allocation_description.allocator_name,
                about.allocation_description.requested_bytes,
                process,
                lane,
                stats.all_start_micros,
                end,
                str(about).replace('"', ""),
            )
            self._lives.append(life)
            self._of_node.setdefault(name, []).append(life)

    def read(self, inputs: Iterable[str], end: int) -> None:
        """Notes that an op that was over at `end` read the nodes `inputs`."""
        self._reads.extend((each.lstrip("^").partition(":")[0], end) for each in inputs)

    def _ended(self) -> list[_Life]:
        for node, end in self._reads:
            for life in self._of_node.get(node, ()):
                life.ended = max(life.ended, end)
        self._reads.clear()
        return self._lives

    def changes(self) -> dict[str, list[tuple[int, int, AllocationMaximum]]]:
        """Allocator → (time, bytes held from then on, the most so far), in the order of time."""
        steps: dict[str, list[tuple[int, int, str]]] = {}
        for life in self._ended():
            of = steps.setdefault(life.allocator, [])
            of += [(life.created, life.num_bytes, life.name), (life.ended, -life.num_bytes, life.name)]
        return {allocator: list(_held(sorted(of))) for allocator, of in steps.items()}

    def events(self) -> Iterator[dict[str, Any]]:
        """Chrome's events of objects: each tensor made, shown and gone."""
        for number, life in enumerate(self._ended()):
            common = {"cat": "Tensor", "name": life.name, "pid": life.process, "id": number}
            yield {**common, "ph": "N", "tid": life.lane, "ts": life.created}
            shown = {"snapshot": {"tensor_description": life.description}}
            yield {**common, "ph": "O", "tid": life.lane, "ts": life.created, "args": shown}
            yield {**common, "ph": "D", "tid": 0, "ts": life.ended}


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
