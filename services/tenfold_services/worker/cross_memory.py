"""Where the values of a part are: in the host's memory or a GPU's. Copies are nodes, where an edge crosses.

    feed x ──► _CopyToDevice ──► MatMul ──► _CopyToHost ──► fetch

`note_memory` asks the registry which arguments of a node are on its GPU; `insert_copies` puts a copy between a value
and the first node that wants it elsewhere, one for all who want it there. What hands a value on (Identity, Switch,
Merge, a loop's Enter) leaves it where it is, so that nothing is copied because it passes through. Sends, feeds and
fetches are in the host's memory. Called by program_compiler.py. In TensorFlow: memory_types.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core import dtypes
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, DYNAMIC_OPS, MERGE_OPS, SWITCH_N_OPS, SWITCH_OPS
from tenfold_kernels import registry
from tenfold_kernels.cuda import copies
from tenfold_protos import node_def_pb2

from .part import PartNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_core.dtypes import DType

    from .part import PartGraph

#: Where a value is: the full name of a GPU, or this.
HOST = ""
#: Types of values that no GPU can have.
_HOST_TYPES = frozenset((dtypes.string, dtypes.resource, dtypes.variant))
_HANDS_ON = (ALIAS_OPS | DYNAMIC_OPS) - frozenset(("ControlTrigger", "LoopCond"))


def device_type_of(device: str) -> str:
    """ "CPU" or "GPU", of a device's full name; "CPU" for none."""
    return device.rpartition("/device:")[2].partition(":")[0] or "CPU"


def note_memory(part: PartGraph) -> bool:
    """Fills in `memory` of every node. Returns whether some node has its values on a GPU."""
    found = False
    for node in part.nodes:
        device_type = device_type_of(node.node_def.device)
        if device_type == "CPU":
            continue
        memory = registry.memory_of(node.op, node.attrs, device_type)
        if memory is not None:
            inputs, outputs = memory
            node.memory = _of_types(inputs, node.input_types), _of_types(outputs, node.output_types)
            found = True
    return found


def _of_types(flags: tuple[bool, ...], types: tuple[DType, ...]) -> tuple[bool, ...]:
    return tuple(flag and dtype.base_dtype not in _HOST_TYPES for flag, dtype in zip(flags, types, strict=True))


def insert_copies(part: PartGraph, constants: dict[int, tuple[Any, ...]]) -> dict[int, int]:
    """Adds the copies, in place; `constants` follow the new numbers, those of constants are made now. Returns old
    number → new number.
    """
    return _Inserter(part, constants).run()


class _Inserter:
    """The state of one call."""

    def __init__(self, part: PartGraph, constants: dict[int, tuple[Any, ...]]) -> None:
        self._part, self._constants = part, constants
        self._places = _places(part, constants)
        #: In the new order, with the old numbers in their edges.
        self._nodes: list[PartNode] = []
        #: (source, port, place) → its copy there, made already.
        self._copies: dict[tuple[int, int, str], PartNode] = {}
        #: Copies that must come right behind their source, because who reads them stands before it.
        self._at_once: dict[int, list[tuple[int, str]]] = {}
        #: The next number of a copy, until all nodes are numbered anew.
        self._number = len(part.nodes)

    def run(self) -> dict[int, int]:
        for node in self._part.nodes:
            for (source, port), place in self._crossings(node):
                if source >= node.index:
                    self._at_once.setdefault(source, []).append((port, place))
        for node in self._part.nodes:
            self._move_inputs(node)
            self._nodes.append(node)
            for port, place in self._at_once.get(node.index, ()):
                self._copy(node.index, port, place)
        for node in self._part.nodes:
            # of a turn before: its copy is there now
            self._move_inputs(node)
        return self._renumber()

    def _crossings(self, node: PartNode) -> Iterator[tuple[tuple[int, int], str]]:
        for position, edge in enumerate(node.inputs):
            place = self._wanted(node, position)
            if place is not None and self._place_of(edge) != place:
                yield edge, place

    def _place_of(self, edge: tuple[int, int]) -> str:
        return self._places[edge[0]][edge[1]] if edge[0] < len(self._places) else ""

    def _wanted(self, node: PartNode, position: int) -> str | None:
        """Where the node wants that input; None where anywhere will do."""
        if node.input_types[position].is_ref_dtype:
            return None
        if node.memory is not None:
            return node.node_def.device if node.memory[0][position] else HOST
        if node.op in _HANDS_ON:
            if node.op in MERGE_OPS:
                return self._places[node.index][0]
            return HOST if (node.op in SWITCH_OPS or node.op in SWITCH_N_OPS) and position == 1 else None
        return HOST

    def _move_inputs(self, node: PartNode) -> None:
        """Leads the node's inputs that are elsewhere to copies."""
        for position, edge in enumerate(node.inputs):
            if edge[0] >= len(self._places):
                continue  # a copy
            place = self._wanted(node, position)
            if place is None or self._place_of(edge) == place:
                continue
            if node.deref[position]:
                copy = self._read(node, position, place)
            else:
                found = self._copies.get((*edge, place))
                if found is None:
                    if edge[0] >= node.index:
                        continue
                    found = self._copy(*edge, place)
                copy = found
            node.inputs[position], node.deref[position] = (copy.index, 0), False

    def _copy(self, source: int, port: int, place: str) -> PartNode:
        copy = self._new(source, port, place)
        self._copies[source, port, place] = copy
        if source in self._constants:
            value = copies.kernel(place)(self._constants[source][port])
            self._constants[copy.index] = (value,)
            copy.controls, copy.inputs, copy.deref, copy.input_types = [source], [], [], ()
        return copy

    def _read(self, node: PartNode, position: int, place: str) -> PartNode:
        """A copy of a variable's value for this node alone, read no earlier than the node would read it."""
        source, port = node.inputs[position]
        copy = self._new(source, port, place)
        copy.deref = [True]
        others = {each for each, _ in node.inputs if each != source and each < len(self._places)}
        copy.controls = sorted(each for each in {*others, *node.controls} if each < node.index)
        return copy

    def _new(self, source: int, port: int, place: str) -> PartNode:
        origin = self._part.nodes[source]
        op = "_CopyToDevice" if place else "_CopyToHost"
        device = place or self._places[source][port]
        name = f"{origin.name}{op}" if not port else f"{origin.name}{op}_{port}"
        node_def = node_def_pb2.NodeDef(name=name, op=op, device=device)
        dtype = origin.output_types[port]
        copy = PartNode(self._number, name, op, node_def, {}, (dtype.base_dtype,), (dtype.base_dtype,))
        copy.inputs, copy.deref = [(source, port)], [False]
        self._number += 1
        self._nodes.append(copy)
        return copy

    def _renumber(self) -> dict[int, int]:
        new = {node.index: position for position, node in enumerate(self._nodes)}
        for node in self._nodes:
            node.index = new[node.index]
            node.inputs = [(new[source], port) for source, port in node.inputs]
            node.controls = [new[source] for source in node.controls]
        self._part.nodes = self._nodes
        moved = {new[old]: values for old, values in self._constants.items()}
        self._constants.clear()
        self._constants.update(moved)
        return new


def _places(part: PartGraph, constants: dict[int, tuple[Any, ...]]) -> list[list[str]]:
    """Where each output of each node is."""
    places = [[HOST] * len(node.output_types) for node in part.nodes]
    for node in part.nodes:
        if node.memory is not None:
            device = node.node_def.device
            places[node.index] = [device if flag else HOST for flag in node.memory[1]]
    changed = True
    while changed:
        # again only for what a loop hands to its next turn
        changed = False
        for node in part.nodes:
            if node.op not in _HANDS_ON or not node.inputs or node.memory is not None or node.index in constants:
                continue
            read = node.inputs if node.op in MERGE_OPS else node.inputs[:1]
            place = next((found for source, port in read if (found := places[source][port])), HOST)
            handed = [HOST] * len(node.output_types)
            handed[: 1 if node.op in MERGE_OPS else len(handed)] = [place] * (
                1 if node.op in MERGE_OPS else len(handed)
            )
            if places[node.index] != handed:
                places[node.index] = handed
                changed = True
        changed = changed and part.is_dynamic
    return places



