"""Which stretches of a program's schedule are recorded on a GPU: launched at once, from the second time on.

    host nodes ─► [ device node, group, device node, … ] ─► copy to the host ─► fetch

What can be recorded: nodes and groups of one GPU whose inputs are all there, or constants of the host, and whose
kernels say that they replay; what the host computes from shapes alone is as good as constant. Called by groups.py for
programs without branches; what records and replays is tenfold_kernels/cuda/_replaying.py. Decision 0122.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenfold_compiler.part.part_graph import PartNode
from tenfold_compiler.pending import Pending
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, ORDER_OPS, SEND_OPS, VARIABLE_OPS
from tenfold_kernels import registry
from tenfold_kernels.cuda._replaying import Replayed
from tenfold_kernels.cuda._runtime import runtime_of
from tenfold_kernels.cuda.fused_runs import DeviceRun
from tenfold_kernels.cuda.fused_updates import DeviceUpdates
from tenfold_kernels.fusion.remembered import Remembered

from .nodes import is_alias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.fusion.cache import FusionCache
    from tenfold_kernels.resources.state import ResourceManager

    from .fusion import Group
    from .levels import Levels

#: Launches that are worth a recording.
LEAST = 4
#: Nodes that launch nothing.
_READS = VARIABLE_OPS | ALIAS_OPS | frozenset(("ReadVariableOp", "_BeginCopyToHost"))


@dataclass(frozen=True, slots=True)
class Capture:
    """What `Group.run` is for a recorded stretch."""

    device: str
    resources: ResourceManager
    output_count: int
    source: None = None

    def build(self, fallback: Callable[..., Any], cache: FusionCache) -> Callable[..., Any]:
        """`fallback` runs the stretch node by node."""
        return Replayed(fallback, self.output_count, runtime_of(self.device), self.resources)


@dataclass(slots=True)
class Stretch:
    """Items of a schedule, one after the other, that can be recorded on one GPU."""

    device: str
    items: list[PartNode | Group] = field(default_factory=list)

    @property
    def is_worth_it(self) -> bool:
        """Whether a launch of all of it saves more than it costs."""
        return sum(map(_launches, self.items)) >= LEAST


def _launches(item: PartNode | Group) -> bool:
    """Whether something runs on the GPU, as far as can be seen."""
    if isinstance(item, PartNode):
        return item.op not in _READS and (item.memory is not None or item.copy_of is not None)
    return not isinstance(item.run, Remembered)


def device_of(item: PartNode | Group, levels: Levels) -> str:
    """The GPU on which the item can be recorded, or ""."""
    if not isinstance(item, PartNode):
        is_update = isinstance(item.run, DeviceUpdates) and all(device_of(node, levels) for node in item.members)
        return item.members[0].node_def.device if is_update or isinstance(item.run, DeviceRun) else ""
    node = item
    if node.op in ALIAS_OPS and node.index not in levels.constants and node.deref[0]:
        # it reads a variable, of a GPU if its source is there
        source = levels.part.nodes[node.inputs[0][0]]
        return source.node_def.device if source.memory is not None and source.memory[1][node.inputs[0][1]] else ""
    if node.op == "_BeginCopyToHost":
        return node.node_def.device
    if node.op == "_CopyToDevice":
        of_shapes = all(levels.is_of_shapes(levels.resolve(edge)[0]) for edge in node.inputs)
        return node.node_def.device if node.inputs and of_shapes else ""
    if node.memory is None or node.blocking or node.op in SEND_OPS:
        return ""
    on_device, outputs = node.memory
    for edge, flag, dtype in zip(node.inputs, on_device, node.input_types, strict=True):
        given = levels.resolve(edge)[0]
        if not (flag or dtype.is_ref_dtype or given in levels.constants or levels.is_of_shapes(given)):
            return ""
    stays = all(flag or dtype.is_ref_dtype for flag, dtype in zip(outputs, node.output_types, strict=True))
    return node.node_def.device if stays and registry.may_replay(node.op, node.attrs, "GPU") else ""


def looks_into(stretch: Stretch, item: PartNode | Group, levels: Levels) -> bool:
    """Whether the host computes the item from shapes of values of the stretch, among others."""
    nodes = [item] if isinstance(item, PartNode) else item.members
    if not all(levels.is_of_shapes(node.index) for node in nodes):
        return False
    inside = {node.index for each in stretch.items for node in ([each] if isinstance(each, PartNode) else each.members)}
    return any(levels.resolve(edge)[0] in inside for node in nodes for edge in node.inputs)


def is_nothing(item: PartNode | Group, levels: Levels) -> bool:
    """Whether no code is written for the item."""
    if not isinstance(item, PartNode):
        return False
    return item.op in ORDER_OPS or item.index in levels.constants or is_alias(item, levels.constants)


def stretches(order: Sequence[PartNode | Group], levels: Levels) -> list[PartNode | Group | Stretch]:
    """A region's schedule with its recordable stretches; everything still runs after what it waits for."""
    devices = [device_of(item, levels) for item in order]
    pending = Pending(range(len(order)), levels.between(order))
    found: list[PartNode | Group | Stretch] = []
    ready: dict[str, list[int]] = {}

    def add(position: int) -> None:
        waits = isinstance(item := order[position], PartNode) and item.op == "_CopyToHost"
        heapq.heappush(ready.setdefault(devices[position] or ("late" if waits else "early"), []), position)

    for position in pending.first():
        add(position)
    now = ""
    while any(ready.values()):
        # first the host's; then on with the GPU at hand; what waits for a GPU only when nothing else is left
        kind = next((each for each in ("early", now, *sorted(ready)) if each != "late" and ready.get(each)), "late")
        position = heapq.heappop(ready[kind])
        item = order[position]
        last = found[-1] if found and isinstance(found[-1], Stretch) else None
        if devices[position]:
            if last is None or last.device != kind:
                last = Stretch(kind)
                found.append(last)
            last.items.append(item)
            now = kind
        elif is_nothing(item, levels):
            # it costs nothing and ends no stretch
            found.insert(len(found) - (last is not None), item)
        elif last is not None and looks_into(last, item, levels):
            last.items.append(item)
        else:
            found.append(item)
        for successor in pending.done(position):
            add(successor)
    return found
