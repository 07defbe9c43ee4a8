"""Nodes whose effects others can see run in the order in which they were created, wherever no edge orders them.

Programs rely on more than their edges say: a read of a variable and an update of it that nothing connects. Of such
nodes the one created first goes first, as far as edges allow it. read_part.py asks for the `pairs` that have to stay in
order; build.py calls `keep_order`, which makes control edges of those that every executor can follow. Decision 0135.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tenfold_compiler.pending import in_order
from tenfold_core import dtypes, opdefs
from tenfold_core.opdefs import runtime_ops as ops

from .part_graph import PartGraph, PartNode, sources_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: State that is read and changed in place, by the ops that hold it.
_HOLDERS = ops.VARIABLE_OPS | ops.TABLE_OPS
#: Ops that hand a handle or a reference on and do not look at what is behind it.
_PASSING = ops.ALIAS_OPS | ops.DYNAMIC_OPS
#: Ops with state that no other node sees; copies to and from a GPU have none.
_ALONE = ops.CONSTANT_OPS | ops.COPY_OPS | ops.TRANSFER_OPS | ops.NAMED_STATE_OPS | ops.VARIABLE_OPS


def creation_order(nodes: Sequence[PartNode]) -> Sequence[int]:
    """Indices in a topological order without loops' back edges: among nodes that are ready the first in the GraphDef.

    Shorter than `nodes` if there is a cycle.
    """
    if all(source < node.index for node in nodes for source in sources_of(nodes, node)):
        return range(len(nodes))
    return in_order(range(len(nodes)), lambda index: sources_of(nodes, nodes[index]))


def pairs(nodes: Sequence[PartNode], order: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(earlier, later) of nodes that see each other's effects, by `order`; what others imply is left out."""
    reading: dict[int, list[int]] = defaultdict(list)
    writer: dict[int, int] = {}
    #: The last effect outside of variables, and the writers since.
    outside: int | None = None
    written: list[int] = []
    holders = _Holders(nodes)
    for index in order:
        node = nodes[index]
        accesses = holders.accesses(node)
        for holder, writes in accesses.items():
            before = [*reading[holder], *(() if holder not in writer else (writer[holder],))]
            yield from ((earlier, index) for earlier in before[0 if writes else len(reading[holder]) :])
            if writes:
                writer[holder], reading[holder] = index, []
            else:
                reading[holder].append(index)
        if any(accesses.values()):
            if outside is not None:
                yield outside, index
            written.append(index)
        elif not accesses and _has_effects(node):
            yield from ((earlier, index) for earlier in (*written, *(() if outside is None else (outside,))))
            outside, written = index, []


def keep_order(part: PartGraph) -> None:
    """Orders accesses of variables by control edges, wherever the later one has to wait for nothing more by it.

    That is where the earlier one runs in every step and waits for no tensor or kernel that the later one does not wait
    for. Other pairs run in the order of the part's nodes where nothing keeps them from it.
    """
    nodes = part.nodes
    if not any(node.op in _HOLDERS for node in nodes):
        return
    sends = {node.index for node in nodes if node.op in ops.SEND_OPS}
    found = [pair for pair in pairs(nodes, range(len(nodes))) if sends.isdisjoint(pair)]
    if not found:
        return
    waits, conditional = _waits(nodes)
    for earlier, later in found:
        if conditional[earlier] or conditional[later] or nodes[earlier].blocking or nodes[later].blocking:
            continue
        node = nodes[later]
        if waits[earlier] | waits[later] == waits[later] and earlier not in node.sources:
            node.controls.append(earlier)


def _waits(nodes: Sequence[PartNode]) -> tuple[list[int], list[bool]]:
    """By node: what it waits for from outside of its region, as a bit set, and whether it may not run in a step."""
    waits, conditional = [0] * len(nodes), [False] * len(nodes)
    bits = 0
    for node in nodes:
        mask, depends = 0, node.op in ops.DYNAMIC_OPS
        for source in sources_of(nodes, node):
            mask |= waits[source]
            depends = depends or conditional[source]
        if node.blocking or (node.op in ops.RECV_OPS and not node.client_terminated):
            mask |= 1 << bits
            bits += 1
        waits[node.index], conditional[node.index] = mask, depends
    return waits, conditional


def _has_effects(node: PartNode) -> bool:
    """Whether the node does something, beside variables, that another one may see."""
    return node.op not in _ALONE and opdefs.get(node.op).is_stateful and "seed" not in node.attrs


class _Holders:
    """Which node holds what each node reads and writes."""

    def __init__(self, nodes: Sequence[PartNode]) -> None:
        self._nodes = nodes
        #: By node that hands on a handle, a reference or a value read through one: the holder, None for another.
        self._known: dict[int, int | None] = {}
        #: Holders of one state, which a shared name may be: the first of them stands for all.
        self._by_name: dict[tuple[str, str, str], int] = {}

    def accesses(self, node: PartNode) -> dict[int, bool]:
        """Holder → whether the node writes what it holds."""
        found: dict[int, bool] = {}
        if node.op in _PASSING and not any(node.deref):
            return found
        for position, (source, _) in enumerate(node.inputs):
            holder = self._holder(source)
            if holder is not None:
                found[holder] = found.get(holder, False) or _writes(node, position)
        return found

    def _holder(self, source: int) -> int | None:
        path = []
        while source not in self._known:
            node = self._nodes[source]
            path.append(source)
            if node.op in _HOLDERS:
                names = (node.op, str(node.attrs.get("container")), str(node.attrs.get("shared_name") or node.name))
                self._known[source] = self._by_name.setdefault(names, source)
            elif node.inputs and (node.op in _PASSING or _hands_on_reference(node)) and node.inputs[0][0] not in path:
                source = node.inputs[0][0]
            else:
                self._known[source] = None
        holder = self._known[source]
        self._known.update(dict.fromkeys(path, holder))
        return holder


def _hands_on_reference(node: PartNode) -> bool:
    """An assignment gives the reference that it was given."""
    return bool(node.output_types) and node.output_types[0].is_ref_dtype and node.input_types[0].is_ref_dtype


def _writes(node: PartNode, position: int) -> bool:
    kind = node.input_types[position]
    is_shared = kind.is_ref_dtype or kind.base_dtype is dtypes.resource
    return is_shared and node.op not in ops.STATE_READING_OPS and node.op not in _PASSING
