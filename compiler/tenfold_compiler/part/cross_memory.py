"""Where the values of a part are: in the host's memory or a GPU's. Copies are nodes, where an edge crosses.

    feed x ──► _CopyToDevice ──► MatMul ──► _CopyToHost ──► fetch
                                  gradient ──► _BeginCopyToHost … all other kernels … _CopyToHost ──► Send

What hands a value on (Identity, Switch, Merge, a loop's Enter) leaves it where it is; Sends, feeds and fetches are in
the host's memory. Called by build.py. Decision 0121 says where copies stand. In TensorFlow: memory_types.cc.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tenfold_core import dtypes
from tenfold_core.opdefs import runtime_ops as ops
from tenfold_kernels import registry
from tenfold_kernels.cuda import copies
from tenfold_protos import node_def_pb2

from .part_graph import Edge, PartGraph, PartNode, is_variable, node_error, renumber

if TYPE_CHECKING:
    from collections.abc import Collection

    from tenfold_core.dtypes import DType

#: Where a value is: the full name of a GPU, or this.
HOST = ""
#: Types of values that no GPU can have.
_HOST_TYPES = frozenset((dtypes.string, dtypes.resource, dtypes.variant))
_HANDS_ON = (ops.ALIAS_OPS | ops.DYNAMIC_OPS) - frozenset(("ControlTrigger", "LoopCond"))
#: What brings a value to a loop's variable.
_BRINGS = ops.ENTER_OPS | ops.NEXT_ITERATION_OPS


@functools.lru_cache(256)
def device_type_of(device: str) -> str:
    """ "CPU" or "GPU", of a device's full name; "CPU" for none."""
    _, found, name = device.rpartition("/device:")
    return name.partition(":")[0] if found else "CPU"


def note_memory(part: PartGraph) -> bool:
    """Fills in `memory` of every node. Returns whether some node has its values on a GPU."""
    found = False
    for node in part.nodes:
        device_type = device_type_of(node.node_def.device)
        if device_type == "CPU" or node.op in _HANDS_ON:
            continue
        memory = registry.memory_of(node.op, node.attrs, device_type)
        if memory is not None:
            inputs, outputs = memory
            node.memory = _of_types(inputs, node.input_types), _of_types(outputs, node.output_types)
            found = True
    return found


def _of_types(flags: tuple[bool, ...], types: tuple[DType, ...]) -> tuple[bool, ...]:
    return tuple(flag and dtype.base_dtype not in _HOST_TYPES for flag, dtype in zip(flags, types, strict=True))


def insert_copies(part: PartGraph, constants: dict[int, tuple[Any, ...]], views: Collection[int]) -> None:
    """Adds the copies, in place, and numbers the nodes anew; `constants` follow. Those of constants are made now.

    `views` are nodes whose outputs an assignment may change: those are copied where they are read.
    Raises ResourceExhaustedError naming the node for a constant that the GPU has no room for.
    """
    _Inserter(part, constants, views).run()


class _Inserter:
    """The state of one call."""

    def __init__(self, part: PartGraph, constants: dict[int, tuple[Any, ...]], views: Collection[int]) -> None:
        self._part, self._constants, self._views = part, constants, views
        #: Where each output of each node is, by the old numbers.
        self._places = _Places(part, constants).of
        #: In the new order, with the old numbers in their edges.
        self._nodes: list[PartNode] = []
        #: (source, port, place) → its copy there, made already.
        self._copies: dict[tuple[int, int, str], PartNode] = {}
        #: The next number of a copy, until all nodes are numbered anew.
        self._number = len(part.nodes)
        #: By source: Sends to other tasks, nothing else on the host reads what they send.
        self._sends: dict[int, list[PartNode]] = {} if part.is_dynamic else self._find_sends()

    def run(self) -> None:
        late = {node.index for sends in self._sends.values() for node in sends}
        begun: dict[int, dict[int, PartNode]] = {}
        for node in self._part.nodes:
            if node.index in late:
                continue
            self._move_inputs(node)
            self._nodes.append(node)
            ports = sorted({send.inputs[0][1] for send in self._sends.get(node.index, ())})
            if ports:
                begun[node.index] = {port: self._new(node.index, port, HOST, "_BeginCopyToHost") for port in ports}
        for source, sends in self._sends.items():
            for port, begin in begun[source].items():
                copy = self._copies[source, port, HOST] = self._new(source, port, HOST)
                copy.inputs = [(begin.index, 0)]
            for send in sends:
                self._move_inputs(send)
                self._nodes.append(send)
        new = renumber(self._nodes)
        self._part.nodes = self._nodes
        moved = {new[old]: values for old, values in self._constants.items()}
        self._constants.clear()
        self._constants.update(moved)

    def _find_sends(self) -> dict[int, list[PartNode]]:
        followed = {source for node in self._part.nodes for source in node.controls}
        readers: dict[Edge, list[PartNode]] = defaultdict(list)
        for node in self._part.nodes:
            for position, edge in enumerate(node.inputs):
                if self._wanted(node, position) == HOST and self._places[edge[0]][edge[1]] != HOST:
                    readers[edge].append(node)

        def is_late(node: PartNode) -> bool:
            return node.op in ops.SEND_OPS and not node.client_terminated and node.index not in followed

        by_source: dict[int, list[PartNode]] = defaultdict(list)
        for (source, _), nodes in sorted(readers.items()):
            # what an assignment may change must have been copied before it
            if source not in self._constants and source not in self._views and all(map(is_late, nodes)):
                by_source[source] += nodes
        return by_source

    def _move_inputs(self, node: PartNode) -> None:
        """Leads the node's inputs that are elsewhere to copies, which stand before it."""
        for position, (source, port) in enumerate(node.inputs):
            place = self._wanted(node, position)
            if place is None or self._places[source][port] == place:
                continue
            assert source < node.index, f"{node.name} reads the next turn from elsewhere"
            if node.deref[position]:
                copy = self._read(node, position, place)
            else:
                copy = self._copies.get((source, port, place)) or self._copy(source, port, place)
            node.inputs[position], node.deref[position] = (copy.index, 0), False

    def _wanted(self, node: PartNode, position: int) -> str | None:
        """Where the node wants that input; None where anywhere will do."""
        if not node.input_types[position].is_ref_dtype:
            if node.op in ops.MERGE_OPS or node.op in _BRINGS:
                return self._places[node.index][0]
            if (node.op in ops.SWITCH_OPS or node.op in ops.SWITCH_N_OPS) and position == 1:
                return HOST
        return _static_want(node, position)

    def _copy(self, source: int, port: int, place: str) -> PartNode:
        copy = self._new(source, port, place)
        self._copies[source, port, place] = copy
        if source in self._constants:
            try:
                value = copies.kernel(place)(self._constants[source][port])
            except Exception as error:
                raise node_error(copy, error) from error
            self._constants[copy.index] = (value,)
            copy.controls, copy.inputs, copy.deref, copy.input_types = [source], [], [], ()
        return copy

    def _read(self, node: PartNode, position: int, place: str) -> PartNode:
        """A copy of a variable's value for this node alone, read no earlier than the node would read it."""
        source, port = node.inputs[position]
        copy = self._new(source, port, place)
        copy.deref = [True]
        if node.op not in ops.MERGE_OPS:
            # a Merge does not wait: its other inputs may be dead
            others = (each for each, _ in node.inputs if each != source and each < len(self._places))
            copy.controls = sorted(each for each in {*others, *node.controls} if each < node.index)
        return copy

    def _new(self, source: int, port: int, place: str, op: str = "") -> PartNode:
        origin = self._part.nodes[source]
        op = op or ("_CopyToDevice" if place else "_CopyToHost")
        name = f"{origin.name}{op}" if not port else f"{origin.name}{op}_{port}"
        node_def = node_def_pb2.NodeDef(name=name, op=op, device=place or self._places[source][port])
        dtype = origin.output_types[port].base_dtype
        copy = PartNode(self._number, name, op, node_def, {}, (dtype,), (dtype,))
        copy.inputs, copy.deref, copy.copy_of = [(source, port)], [False], origin.node_def
        self._number += 1
        self._nodes.append(copy)
        return copy


class _Places:
    """Where each output of each node is. A place that is a GPU never changes any more, so that the search ends."""

    def __init__(self, part: PartGraph, constants: dict[int, tuple[Any, ...]]) -> None:
        self._part, self._constants = part, constants
        self.of = [[HOST] * len(node.output_types) for node in part.nodes]
        #: Enter or NextIteration → the Merge that is the loop's variable.
        self._variable: dict[int, int] = {}
        #: Enters of what all turns read, and where all who read it want it.
        self._entered: dict[int, str] = {}
        for node in part.nodes:
            if node.memory is not None:
                self.of[node.index] = [node.node_def.device if flag else HOST for flag in node.memory[1]]
        if part.is_dynamic:
            self._note_loops()
        while self._hand_on() and part.is_dynamic:
            """Again, for what a loop hands to its next turn."""

    def _note_loops(self) -> None:
        wanted: dict[int, set[str | None]] = {}
        for node in self._part.nodes:
            takes_turns = is_variable(self._part.nodes, node)
            for position, (source, _) in enumerate(node.inputs):
                giver = self._part.nodes[source]
                if takes_turns and giver.op in _BRINGS:
                    self._variable[source] = node.index
                elif giver.op in ops.ENTER_OPS:
                    wanted.setdefault(source, set()).add(_static_want(node, position))
        for source, places in wanted.items():
            if source not in self._variable and len(places) == 1 and (place := places.pop()) is not None:
                self._entered[source] = place

    def _hand_on(self) -> bool:
        """One pass over all nodes that hand on; whether something was found."""
        found = False
        for node in self._part.nodes:
            if node.op not in _HANDS_ON or not node.inputs or node.index in self._constants:
                continue
            handed = self.of[node.index]
            if not handed or handed[0] or not (place := self._handed(node)):
                continue
            count = 1 if node.op in ops.MERGE_OPS else len(handed)
            handed[:count] = [place] * count
            found = True
        return found

    def _handed(self, node: PartNode) -> str:
        """Where the value is that the node hands on, as far as is known."""
        if node.index in self._entered:
            return self._entered[node.index]
        merge = self._variable.get(node.index)
        if merge is not None:
            return self.of[merge][0]
        if node.op not in ops.MERGE_OPS:
            return self._first(node.inputs[:1])
        # of a loop's variable, what is brought to it
        nodes, variable = self._part.nodes, self._variable
        return self._first([nodes[e[0]].inputs[0] if variable.get(e[0]) == node.index else e for e in node.inputs])

    def _first(self, edges: list[Edge]) -> str:
        return next((place for source, port in edges if (place := self.of[source][port])), HOST)


def _static_want(node: PartNode, position: int) -> str | None:
    """Where the node wants that input, whatever it hands on; None where that depends on others."""
    if node.input_types[position].is_ref_dtype or (node.memory is None and node.op in _HANDS_ON):
        return None
    return node.node_def.device if node.memory is not None and node.memory[0][position] else HOST
