"""Splits a part with control flow that cannot be written as structured code: that piece, and the rest.

    embeddings ──► Enter ─► loop over two tasks ─► Exit ──► loss, gradients, updates
    └── rest ──┘   └───────────── piece ─────────────┘      └──────── rest ────────┘

Both are parts of their own, joined by a Send and a Recv for each edge that is cut; nothing leaves the task
(services/worker/loaded_program.py). The rest is generated and fused, the piece runs node by node. Used by build.py.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.opdefs.runtime_ops import DYNAMIC_OPS, SEND_OPS
from tenfold_protos.node_def_pb2 import NodeDef

from .loop_tree import Loop, LoopTree, Unstructured, loop_tree
from .part_graph import Edge, PartGraph, PartNode
from .structured_flow import read_control_flow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

#: A piece may grow so many times; what then still has no structure stays whole.
_ATTEMPTS = 8
#: Nodes that the rest must have for the halves to be worth it, and for each edge that is cut: about what the second
#: execution costs, and a tensor handed over.
_LEAST_NODES, _NODES_PER_CUT = 10, 2
#: Nodes whose output is the same wherever they stand: each half has its own.
_REFERENCES = frozenset(("Variable", "VariableV2"))
#: The port of a control edge.
_CONTROL = -1
_ZERO = (np.zeros((), np.int32),)


@dataclass(slots=True)
class PartHalf:
    """The rest, or the piece."""

    part: PartGraph
    #: Its nodes → those of the whole part; the Sends and Recvs of cut edges are not in it.
    origin: dict[int, int] = field(default_factory=dict)
    #: What the nodes give that are not in `origin`, and are no Send or Recv.
    constants: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    #: Rendezvous keys of the cut edges that lead here.
    keys: set[str] = field(default_factory=set)


def split_part(part: PartGraph, constants: Collection[int], why: Unstructured) -> tuple[PartHalf, PartHalf] | None:
    """(the rest, the piece) of a part that was refused for `why`; None where it stays whole: its frames do not nest, or
    so much would be cut that nothing is gained.
    """
    try:
        tree = loop_tree(part, constants)
    except Unstructured:
        return None
    piece: set[int] = set()
    for _ in range(_ATTEMPTS):
        size = len(piece)
        piece.update(_with_loops(tree, why.nodes))
        if len(piece) == size:
            return None
        _add_references(part, tree, constants, piece)
        rest, cut = _cut(part, constants, piece)
        if len(rest.origin) < _LEAST_NODES + _NODES_PER_CUT * (len(rest.keys) + len(cut.keys)):
            return None
        if not rest.part.is_dynamic:
            return rest, cut
        try:
            known = {new for new, old in rest.origin.items() if old in constants}
            read_control_flow(rest.part, known.union(rest.constants))
        except Unstructured as again:
            origin = rest.origin
            why = Unstructured(str(again), [part.nodes[origin[n.index]] for n in again.nodes if n.index in origin])
        else:
            return rest, cut
    return None


def _with_loops(tree: LoopTree, nodes: Iterable[PartNode]) -> set[int]:
    """The nodes, and all of the outermost loops that they stand in."""
    found: set[int] = set()
    for node in nodes:
        loop = tree.standing_in(None, node)
        if not isinstance(loop, Loop):
            found.add(node.index)
        elif loop.enters[0].index not in found:
            found.update(each.index for each in loop.nodes())
    return found


def _edges(node: PartNode) -> list[Edge]:
    return [*node.inputs, *((source, _CONTROL) for source in node.controls)]


def _is_in_both(node: PartNode, constants: Collection[int]) -> bool:
    return not node.inputs and not node.controls and (node.index in constants or node.op in _REFERENCES)


def _add_references(part: PartGraph, tree: LoopTree, constants: Collection[int], piece: set[int]) -> None:
    """Takes into the piece who reads its references, and whose references it reads."""
    grows = any(dtype.is_ref_dtype for node in part.nodes for dtype in node.output_types)
    while grows:
        grows = False
        for node in part.nodes:
            for source, port in node.inputs:
                giver = part.nodes[source]
                crosses = (source in piece) != (node.index in piece) and giver.output_types[port].is_ref_dtype
                if crosses and not _is_in_both(giver, constants):
                    piece.update(_with_loops(tree, (node, giver)))
                    grows = True


def _cut(part: PartGraph, constants: Collection[int], piece: Collection[int]) -> tuple[PartHalf, PartHalf]:
    """Both halves, each in the order of the whole."""
    #: (source, port) of each edge that is cut → its number.
    cuts: dict[Edge, int] = {}
    for node in part.nodes:
        for source, port in _edges(node):
            if (source in piece) != (node.index in piece) and not _is_in_both(part.nodes[source], constants):
                cuts.setdefault((source, port), len(cuts))
    of_source: dict[int, list[int]] = defaultdict(list)
    for source, port in cuts:
        of_source[source].append(port)
    rest, cut = (_Builder(part, constants, cuts) for _ in range(2))
    for node in part.nodes:
        if not _is_in_both(node, constants):
            own = cut if node.index in piece else rest
            own.add(node)
            for port in of_source[node.index]:
                own.send(node, port)
    return rest.half(), cut.half()


class _Builder:
    """One half, node by node."""

    def __init__(self, part: PartGraph, constants: Collection[int], cuts: Mapping[Edge, int]) -> None:
        self._whole, self._constants, self._cuts = part, constants, cuts
        self._half = PartHalf(PartGraph([], False, part.old_frames))
        #: Nodes of the whole → nodes of this half, and cut edges → their Recvs.
        self._new: dict[int, int] = {}
        self._received: dict[Edge, int] = {}

    def add(self, node: PartNode) -> None:
        for source, port in _edges(node):
            before = self._whole.nodes[source]
            if source not in self._new and _is_in_both(before, self._constants):
                self._copy(before)
            elif (source, port) in self._cuts and source not in self._new and (source, port) not in self._received:
                self._received[source, port] = self._append(before, port, "_Recv").index
        self._copy(node)

    def send(self, source: PartNode, port: int) -> None:
        """What the other half reads of a node that was added."""
        edge, controls = (self._new[source.index], port), []
        if port == _CONTROL:
            edge, controls = (self._append(source, port, "Const").index, 0), [self._new[source.index]]
            self._half.constants[edge[0]] = _ZERO
        node = self._append(source, port, "_Send")
        node.inputs, node.deref, node.controls = [edge], [False], controls

    def half(self) -> PartHalf:
        """With all edges led to the nodes of this half."""
        nodes = self._half.part.nodes
        for index, old in self._half.origin.items():
            node, was = nodes[index], self._whole.nodes[old]
            node.inputs = [self._edge(source, port) for source, port in was.inputs]
            node.controls = list(dict.fromkeys(self._edge(source, _CONTROL)[0] for source in was.controls))
        self._half.part.is_dynamic = any(node.op in DYNAMIC_OPS for node in nodes)
        self._half.keys = {nodes[index].rendezvous_key() for index in self._received.values()}
        return self._half

    def _edge(self, source: int, port: int) -> Edge:
        here = self._new.get(source)
        return (self._received[source, port], 0) if here is None else (here, port)

    def _copy(self, node: PartNode) -> None:
        index = len(self._half.part.nodes)
        self._half.part.nodes.append(replace(node, index=index))
        self._new[node.index] = index
        self._half.origin[index] = node.index

    def _append(self, source: PartNode, port: int, op: str) -> PartNode:
        """A Send or Recv of an edge that is cut, or the Const that a Send needs for a control edge."""
        number, dtype = self._cuts[source.index, port], dtypes.int32 if port == _CONTROL else source.output_types[port]
        key = {"send_device": "", "send_device_incarnation": 0, "recv_device": "", "tensor_name": f"cut {number}"}
        node_def = NodeDef(name=f"{source.name}/cut {number}/{op}", op=op)
        types = ((dtype,), ()) if op in SEND_OPS else ((), (dtype,))
        node = PartNode(len(self._half.part.nodes), node_def.name, op, node_def, key, *types)
        self._half.part.nodes.append(node)
        return node
