"""Tensors of many variables cross from one task to another as one: ids to rows, rows, and the gradients of rows.

    26 × (ids ──► _Send _Recv ──► Gather)       ids × 26 ──► _Bundle ──► _Send _Recv ──► _Unbundle ──► Gather × 26

For a lookup in a variable whose parts are on two parameter servers, eight tensors cross in a step, and each has a price
of its own at both ends; besides, what begins with a tensor of its own cannot be computed together with what begins
with another. Called by master/client_graph.py before partition, for tasks that know the two ops; see
docs/decisions/0204-tensors-of-many-variables-cross-as-one.md.

A *level* grows by one along every edge from task to task. Tensors of one level do not wait for each other and have
come as far as each other; what takes them is on higher ones, so that a bundle of one level closes no cycle. What may
wait for something outside of the step (a queue, a function of Python) is another matter: no tensor may wait for more of
that than it did, so tensors of a bundle come from behind the same of it. A value that is part of a variable is left
alone: it is read when it is sent, and variables may be large.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tenfold_core import dtypes
from tenfold_core.device import task_of
from tenfold_core.node_names import TensorName, free_name
from tenfold_core.opdefs.runtime_ops import (
    ALIAS_OPS,
    DYNAMIC_OPS,
    STATE_READING_OPS,
    TABLE_OPS,
    TRANSFER_OPS,
    UNIQUE_OPS,
    UPDATE_OPS,
    VARIABLE_OPS,
)

from .node import in_order, is_back_edge, levels, make_node, new_def

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from .node import Node
    from .runtime_graph import RuntimeGraph

#: What a peer says of itself that knows _Bundle and _Unbundle (tenfold_core/protocol.py).
ABILITY = "bundles"
#: Fewer tensors cross one by one, more as several bundles: all of a bundle are in memory twice.
LEAST, MOST = 8, 64
#: Nodes that may wait, which are told apart; a graph with more has no bundles.
_MOST_WAITS = 1000
_GATHERS = frozenset(("Gather", "GatherV2", "GatherNd", "ResourceGather", "ResourceGatherNd"))
#: Ops that give rows and ids of rows, or add up gradients of rows.
_OF_ROWS = _GATHERS | UNIQUE_OPS | frozenset(("UnsortedSegmentSum",))
#: Updates of rows begin so; and the arguments of ops that are rows or ids of rows.
_UPDATES = ("SparseApply", "ResourceSparseApply", "Scatter", "ResourceScatter")
_ROWS = frozenset(("data", "grad", "indices", "segment_ids", "updates", "x"))
#: Ops with a state, or with a handle of one, that wait for nothing.
_STATE_OPS = VARIABLE_OPS | STATE_READING_OPS | TABLE_OPS
_NEVER_WAIT = _STATE_OPS | ALIAS_OPS | TRANSFER_OPS | frozenset(("Assert", "Print", "PrintV2"))
#: Ops that may wait although nothing of them says so.
_MAY_WAIT = frozenset(("GetElementAtIndex", "PyFuncStateless"))
#: Elements that are not bytes side by side.
_NO_BYTES = frozenset((dtypes.string, dtypes.resource, dtypes.variant))


class Bundle(NamedTuple):
    """Tensors that cross together."""

    #: Devices of two tasks.
    sender: str
    receiver: str
    tensors: tuple[TensorName, ...]

    @property
    def tasks(self) -> tuple[str, str]:
        return task_of(self.sender), task_of(self.receiver)


def find_bundles(graph: RuntimeGraph, may_view: Callable[[str], bool]) -> list[Bundle]:
    """What may cross together, in the order of the graph. What stands behind a branch or a loop crosses as it did.

    `may_view` says whether an output of an op may be part of an input's memory.
    """
    tasks = {device: task_of(device) for device in {node.device for node in graph.nodes.values()}}
    crossing = _crossing(graph, tasks) if len(set(tasks.values())) > 1 else {}
    if len(crossing) < LEAST:
        return []
    in_flow = graph.behind(name for name, node in graph.nodes.items() if node.op in DYNAMIC_OPS)
    order = in_order(graph.nodes, graph.nodes)
    left_alone = in_flow | _of_variables(graph, order, may_view)
    level = levels(order, graph.nodes, lambda source, node: tasks[source.device] != tasks[node.device])
    waits = _waits(graph, order)
    groups: dict[tuple[str, str, int, int], list[TensorName]] = defaultdict(list)
    for tensor, receiver in crossing:
        source = graph.nodes[tensor.node]
        if source.name in waits and source.name not in left_alone:
            groups[source.device, receiver, level[source.name], waits[source.name]].append(tensor)
    return [
        Bundle(*key[:2], tuple(piece))
        for key, tensors in groups.items()
        if len(tensors) >= LEAST
        for piece in _cut(tensors)
    ]


def _cut(tensors: Sequence[TensorName]) -> Iterator[Sequence[TensorName]]:
    """Pieces of MOST at most, of nearly the same length."""
    pieces = -(-len(tensors) // MOST)
    ends = (len(tensors) * number // pieces for number in range(pieces + 1))
    return (tensors[begin:end] for begin, end in itertools.pairwise(ends))


def with_bundles(graph: RuntimeGraph, bundles: Sequence[Bundle], tasks: Container[str]) -> RuntimeGraph:
    """The graph in which those bundles cross whose two tasks are among `tasks`."""
    names = set(graph.nodes)
    made: list[Node] = []
    #: (tensor, device) → what it is there.
    arrived: dict[tuple[TensorName, str], TensorName] = {}
    for bundle in bundles:
        if not all(task in tasks for task in bundle.tasks):
            continue
        sender, receiver, tensors = bundle
        attrs = {"T": [graph.tensor_type(tensor) for tensor in tensors]}
        packed = free_name(f"{tensors[0].node}/bundle", names)
        made.append(make_node(new_def("_Bundle", packed, tensors, attrs, sender)))
        taken = free_name(f"{tensors[0].node}/unbundle", names)
        made.append(make_node(new_def("_Unbundle", taken, [TensorName(packed, 0)], attrs, receiver)))
        arrived |= {(tensor, receiver): TensorName(taken, number) for number, tensor in enumerate(tensors)}
    if not made:
        return graph

    def rewired(node: Node) -> Node:
        inputs = tuple(arrived.get((tensor, node.device), tensor) for tensor in node.inputs)
        return node if inputs == node.inputs else replace(node, inputs=inputs)

    return graph.with_nodes([*map(rewired, graph.nodes.values()), *made])


def _crossing(graph: RuntimeGraph, tasks: Mapping[str, str]) -> dict[tuple[TensorName, str], None]:
    """Tensors of rows, and the devices of other tasks that take them."""
    found: dict[tuple[TensorName, str], None] = {}
    taken = {tensor for node in graph.nodes.values() for tensor in _rows_taken(node)}
    # one node may be between, as where an update takes the product with the learning rate
    between = {tensor.node for tensor in taken}
    for node in graph.nodes.values():
        if node.op in DYNAMIC_OPS:
            continue
        for tensor in node.inputs:
            source = graph.nodes[tensor.node]
            if tasks[source.device] == tasks[node.device]:
                continue
            kind = source.output_types[tensor.output]
            on_cpus = "/device:CPU:" in source.device and "/device:CPU:" in node.device
            is_of_rows = tensor in taken or node.name in between or _gives_rows(graph, source)
            if is_of_rows and on_cpus and not (kind.is_ref_dtype or kind in _NO_BYTES):
                found[tensor, node.device] = None
    return found


def _rows_taken(node: Node) -> list[TensorName]:
    """The inputs of a node that are ids or rows."""
    if node.op not in _OF_ROWS and not node.op.startswith(_UPDATES):
        return []
    return [tensor for tensor, each in zip(node.inputs, node.op_def.inputs, strict=True) if each.name in _ROWS]


def _gives_rows(graph: RuntimeGraph, node: Node) -> bool:
    while node.op in ALIAS_OPS:
        node = graph.nodes[node.inputs[0].node]
    return node.op in _OF_ROWS


def _of_variables(graph: RuntimeGraph, order: Sequence[Node], may_view: Callable[[str], bool]) -> set[str]:
    """Nodes whose outputs may be part of a variable's memory."""
    found: set[str] = set()
    for node in order:
        reads = node.op == "ReadVariableOp" or any(kind.is_ref_dtype for kind in node.output_types)
        if reads or (
            any(tensor.node in found for tensor in node.inputs) and (node.op in ALIAS_OPS or may_view(node.op))
        ):
            found.add(node.name)
    return found


def _waits(graph: RuntimeGraph, order: Sequence[Node]) -> dict[str, int]:
    """For each node a bit for each node before it, itself included, that may wait for something outside of the step;
    empty where those are too many."""
    found: dict[str, int] = {}
    count = 0
    for node in order:
        bits = 0
        for name in node.sources:
            if not is_back_edge(graph.nodes[name], node):
                bits |= found[name]
        if _may_wait(node):
            bits |= 1 << count
            count += 1
            if count > _MOST_WAITS:
                return {}
        found[node.name] = bits
    return found


def _may_wait(node: Node) -> bool:
    """Whether it has a state that others change, or calls a function; variables, tables and feeds are always there, and
    so are random numbers, whose ops have a seed."""
    if node.op in _NEVER_WAIT or "seed" in node.attrs or UPDATE_OPS.match(node.op):
        return False
    shared = any(kind.is_ref_dtype or kind.base_dtype is dtypes.resource for kind in node.input_types)
    calls = any(attr.type in ("func", "list(func)") for attr in node.op_def.attrs)
    return node.op_def.is_stateful or shared or calls or node.op in _MAY_WAIT
