"""A node of the runtime's graph; nodes that passes add, without the checks on what clients send; the order of nodes,
and cycles that no loop explains."""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_compiler.pending import Pending
from tenfold_core import opdefs
from tenfold_core.attr_value import to_proto
from tenfold_core.node_attrs import resolve_attrs
from tenfold_core.node_names import TensorName, at_node, parse_tensor_name
from tenfold_core.node_signature import signature
from tenfold_core.opdefs.runtime_ops import MERGE_OPS, NEXT_ITERATION_OPS
from tenfold_protos import node_def_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from tenfold_core.dtypes import DType
    from tenfold_core.op_def import OpDef
    from tenfold_protos.node_def_pb2 import NodeDef

_NO_FLOATS = np.empty(0, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operation. Immutable: a pass that changes it makes another with `replace`."""

    name: str
    op: str
    op_def: OpDef
    #: As it came from the client; shared between graphs, so it is never written to.
    node_def: NodeDef
    #: Attributes as Python values, defaults filled.
    attrs: Mapping[str, Any]
    #: Data inputs in order.
    inputs: tuple[TensorName, ...]
    #: Names of nodes that must have run before, without the "^".
    control_inputs: tuple[str, ...]
    #: Types that the inputs are declared with; a reference type means that the op writes through the edge.
    input_types: tuple[DType, ...]
    output_types: tuple[DType, ...]
    #: What the program asked for, in canonical spelling; may be partial or empty.
    requested_device: str
    #: The full name of the device it was placed on, "" before `place`.
    device: str = ""

    @property
    def sources(self) -> Iterator[str]:
        """The names of all nodes that this one waits for, data first; a name may come several times."""
        for tensor in self.inputs:
            yield tensor.node
        yield from self.control_inputs


def assigned(node: Node, device: str) -> Node:
    """The node, placed."""
    if node.device == device:
        return node
    # as `replace`, in a third of its time: a large graph is placed node by node
    return Node(
        node.name,
        node.op,
        node.op_def,
        node.node_def,
        node.attrs,
        node.inputs,
        node.control_inputs,
        node.input_types,
        node.output_types,
        node.requested_device,
        device,
    )


def new_def(
    op: str, name: str, inputs: Iterable[object] = (), attrs: Mapping[str, Any] | None = None, device: str = ""
) -> NodeDef:
    """A NodeDef. Inputs are written as they print; attributes that the op does not have are bools."""
    node_def = node_def_pb2.NodeDef(name=name, op=op, device=device, input=map(str, inputs))
    types = opdefs.get(op).attr_by_name
    for key, value in (attrs or {}).items():
        node_def.attr[key].CopyFrom(to_proto(value, types[key].type if key in types else "bool"))
    return node_def


def no_floats(name: str, device: str, inputs: Iterable[object] = ()) -> NodeDef:
    """A constant of no elements: what goes where only that something has run counts."""
    return new_def("Const", name, inputs, {"dtype": _NO_FLOATS.dtype, "value": _NO_FLOATS}, device)


def node_of(
    node_def: NodeDef,
    inputs: tuple[TensorName, ...],
    control_inputs: tuple[str, ...],
    requested_device: str = "",
    device: str = "",
) -> Node:
    """The node of a NodeDef, whose own inputs do not count."""
    name, op = node_def.name, node_def.op
    op_def = opdefs.get(op)
    attrs = resolve_attrs(op_def, node_def)
    types = signature(op_def, attrs)
    ends = (inputs, control_inputs, types.input_types, types.output_types)
    return Node(name, op, op_def, node_def, attrs, *ends, requested_device, device)


def make_node(node_def: NodeDef) -> Node:
    """The node of a NodeDef, with its inputs, on its device."""
    data = tuple(parse_tensor_name(text) for text in node_def.input if not text.startswith("^"))
    control = tuple(text[1:] for text in node_def.input if text.startswith("^"))
    return node_of(node_def, data, control, device=node_def.device)


def is_back_edge(source: Node, consumer: Node) -> bool:
    """True for the one kind of edge that may close a cycle."""
    return consumer.op in MERGE_OPS and source.op in NEXT_ITERATION_OPS


def in_order(added: Collection[str], nodes: Mapping[str, Node]) -> list[Node]:
    """The nodes `added`, each after its sources among them, loops' back edges left aside, otherwise as they come.
    Without those on a cycle, or behind one.
    """
    pending = Pending(added, lambda name: _sources(nodes[name], nodes))
    order = pending.first()
    for name in order:  # grows while it is walked
        order += pending.done(name)
    return [nodes[name] for name in order]


def levels(order: Iterable[Node], nodes: Mapping[str, Node], rises: Callable[[Node, Node], bool]) -> dict[str, int]:
    """For each node of `order`, as in_order gives it, how many edges on one way to it rise, at most.

    `rises(source, node)` says it of an edge. Back edges of loops are left aside.
    """
    found: dict[str, int] = {}
    for node in order:
        before = (nodes[name] for name in node.sources)
        found[node.name] = max(
            (found[each.name] + rises(each, node) for each in before if not is_back_edge(each, node)), default=0
        )
    return found


def _sources(node: Node, nodes: Mapping[str, Node]) -> list[str]:
    """What the node waits for, without loops' back edges."""
    return [source for source in node.sources if not is_back_edge(nodes[source], node)]


def check_acyclic(nodes: Mapping[str, Node], added: Collection[str]) -> None:
    """Raises InvalidArgumentError that shows the cycle, where there is one among the nodes `added`.

    Old nodes cannot take new ones as inputs, so that only new ones can close a cycle.
    """
    done = {node.name for node in in_order(added, nodes)}
    stuck = dict.fromkeys(name for name in added if name not in done)
    if stuck:
        path = _find_cycle(nodes, stuck)
        shown = " -> ".join(path if len(path) <= 10 else [*path[:9], "...", path[-1]])
        raise at_node(
            nodes[path[0]],
            f"{len(path) - 1} nodes in a cycle: {shown}. Only a NextIteration into a Merge may close a loop.",
        )


def _find_cycle(nodes: Mapping[str, Node], blocked: Collection[str]) -> list[str]:
    """A cycle in the direction of the data, its first name repeated at the end."""
    try:
        TopologicalSorter({n: [s for s in _sources(nodes[n], nodes) if s in blocked] for n in blocked}).prepare()
    except CycleError as error:
        return list(error.args[1])
    raise AssertionError("nodes wait for each other, but in no cycle")
