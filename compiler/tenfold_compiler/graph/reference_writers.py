"""Which nodes of a graph write through its references: what a fetch of a reference variable is read after.

Used by prune.py. TensorFlow's local sessions fetch a tensor that shares the variable's memory and copy it when the step
has ended, so `run([train_op, global_step])` gives the step after the update.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .node import Node

#: What comes after one of these may not run in every step, or runs several times: nothing outside can wait for it.
_CONDITIONAL = frozenset(("Switch", "RefSwitch", "_SwitchN", "Enter", "RefEnter", "Merge", "RefMerge"))


class ReferenceWriters:
    """The writers in `nodes`, which do not change; found once for all references, in time linear in the graph."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes
        #: Node → those that write through one of its outputs.
        self._direct: defaultdict[str, list[str]] = defaultdict(list)
        for node in nodes.values():
            for tensor, dtype in zip(node.inputs, node.input_types, strict=True):
                if dtype.is_ref_dtype:
                    self._direct[tensor.node].append(node.name)
        self._conditional = self._after_conditions() if self._direct else set()

    def of(self, name: str) -> tuple[str, ...]:
        """Those on its device that write through the reference `name`, or what a writer hands on, in each step once."""
        found: dict[str, None] = {}
        stack = [name]
        while stack:
            for writer in self._direct.get(stack.pop(), ()):
                if writer not in found:
                    found[writer] = None
                    stack.append(writer)
        device = self._nodes[name].device
        return tuple(w for w in found if w not in self._conditional and self._nodes[w].device == device)

    def _after_conditions(self) -> set[str]:
        stack = [node.name for node in self._nodes.values() if node.op in _CONDITIONAL]
        if not stack:
            return set()
        consumers: defaultdict[str, list[str]] = defaultdict(list)
        for node in self._nodes.values():
            for source in node.sources:
                consumers[source].append(node.name)
        seen = set(stack)
        while stack:
            for consumer in consumers.get(stack.pop(), ()):
                if consumer not in seen:
                    seen.add(consumer)
                    stack.append(consumer)
        return seen
