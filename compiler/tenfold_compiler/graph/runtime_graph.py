"""The runtime's graph: a GraphDef with every operation looked up, every attribute resolved and every edge checked.

Built by the master from what a client sends and changed by the passes next to this file. A graph and its nodes are
never changed once built; a pass returns another graph, which shares the nodes that it did not touch. Follows
TensorFlow's graph_constructor.cc in what it accepts and refuses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold_core import device as device_lib
from tenfold_core import errors, graph_versions, opdefs
from tenfold_core.attr_value import refuse_placeholders
from tenfold_core.env_settings import limit_reached
from tenfold_core.node_names import (
    TensorName,
    at_node,
    is_valid_node_name,
    node_reference,
    parse_tensor_name,
    suggestion,
)
from tenfold_core.reached import reached
from tenfold_core.resolver import Resolver
from tenfold_core.stand_ins import may_stand_in, stand_ins, why_not
from tenfold_protos import versions_pb2

from .function_library import FunctionLibrary
from .node import Node, check_acyclic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tenfold_core.dtypes import DType
    from tenfold_core.op_def import OpDef
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.node_def_pb2 import NodeDef

#: A client's graph with more nodes than this is refused: placing takes some 50 µs a node, on the event loop's thread.
MAX_NODES = 500_000
#: What sets another bound, for the refusal.
NODES_VARIABLE = "TENFOLD_MASTER_NODES"


@dataclass(frozen=True, slots=True)
class RuntimeGraph:
    """Nodes by name, in the order in which they came. Every input names a node of the graph and fits its type."""

    nodes: Mapping[str, Node] = field(default_factory=dict)
    versions: versions_pb2.VersionDef = field(default_factory=versions_pb2.VersionDef)
    library: FunctionLibrary = field(default_factory=FunctionLibrary)
    #: Output of a node that was lowered (a call, an If, a While) → where its consumers take it from (lower.py).
    outputs: Mapping[TensorName, TensorName] = field(default_factory=dict)

    @classmethod
    def from_graph_def(cls, graph_def: GraphDef, *, max_nodes: int = MAX_NODES) -> RuntimeGraph:
        """Builds the graph of a whole GraphDef.

        Raises InvalidArgumentError (NotFoundError for an unknown operation, as TensorFlow does,
        ResourceExhaustedError for too many nodes), each naming the node, what is wrong and what would be right.
        """
        return cls().extend(graph_def, max_nodes=max_nodes)

    def extend(self, graph_def: GraphDef, *, max_nodes: int = MAX_NODES) -> RuntimeGraph:
        """This graph and the new nodes of `graph_def`, whose inputs may be old or new. Raises as `from_graph_def`."""
        total = len(self.nodes) + len(graph_def.node)
        if total > max_nodes:
            raise limit_reached(f"The graph would have {total} nodes", max_nodes, NODES_VARIABLE)
        graph_versions.check_versions(graph_def.versions)
        library = self.library.extended(graph_def.library)
        nodes = dict(self.nodes)
        added: list[Node] = []
        resolver = Resolver()
        guessed = self._stand_ins(graph_def, library)
        for node_def in graph_def.node:
            node = client_node(node_def, library, resolver, guessed.get(node_def.name))
            try:
                graph_versions.check_op(node.op, graph_def.versions.producer)
            except errors.UnimplementedError as e:
                raise _named(e, node_def) from None
            if node.name in self.nodes:
                raise at_node(
                    node,
                    f"GraphDef argument to Extend includes node '{node.name}', which was created by a previous call "
                    "to Create or Extend in this session.",
                )
            if node.name in nodes:
                raise at_node(node, f"Node '{node.name}' is not unique: the GraphDef has it twice.")
            nodes[node.name] = node
            added.append(node)
        for node in added:
            _check_inputs(node, nodes)
        check_acyclic(nodes, [node.name for node in added])
        versions = self.versions
        if graph_def.HasField("versions"):
            versions = versions_pb2.VersionDef()
            versions.CopyFrom(graph_def.versions)
            if self.nodes:
                graph_versions.join(versions, self.versions)
        return RuntimeGraph(nodes, versions, library, self.outputs)

    def _stand_ins(self, graph_def: GraphDef, library: FunctionLibrary) -> dict[str, OpDef]:
        """Name → definition for the nodes whose operation is not here, and which a step may never need."""

        def is_unknown(node: NodeDef) -> bool:
            return may_stand_in(node.op, node) and node.op not in library

        def known(name: str, index: int) -> DType | None:
            there = self.nodes.get(name)
            return there.output_types[index] if there and index < len(there.output_types) else None

        return stand_ins(graph_def.node, is_unknown, library.definition, known)

    def refuse_missing(self) -> None:
        """Raises UnimplementedError for the first node whose operation is not here: a step is to run all of them."""
        for node in self.nodes.values():
            if node.op_def.is_stand_in:
                raise why_not(node.node_def, node.name)

    def with_nodes(self, nodes: Iterable[Node]) -> RuntimeGraph:
        """A graph of these nodes, with this one's versions and functions."""
        return RuntimeGraph({node.name: node for node in nodes}, self.versions, self.library, self.outputs)

    def consumers(self) -> dict[str, list[Node]]:
        """For every node the nodes that take any of its outputs or wait for it, each once, in graph order."""
        found: dict[str, list[Node]] = {name: [] for name in self.nodes}
        for node in self.nodes.values():
            for source in dict.fromkeys(node.sources):
                found[source].append(node)
        return found

    def behind(self, names: Iterable[str]) -> set[str]:
        """These nodes, and all that take something of them or wait for them, at any distance."""
        names = list(names)
        consumers = self.consumers() if names else {}
        return set(reached(names, lambda name: (node.name for node in consumers[name])))

    def tensor_type(self, tensor: TensorName) -> DType:
        """The type of one output. Raises KeyError or IndexError: callers have checked the name."""
        return self.nodes[tensor.node].output_types[tensor.output]


def client_node(
    node_def: NodeDef, library: FunctionLibrary, resolver: Resolver | None = None, stand_in: OpDef | None = None
) -> Node:
    """Looks up and resolves one node of a client, or of a function of `library`. Its inputs are not yet followed.

    Nodes of one graph and `library` may share a `resolver`; `stand_in` defines a node whose op is not here.
    """
    name = node_def.name
    if not is_valid_node_name(name):
        raise at_node(
            node_def,
            f"Illegal op name '{name}': a node's name starts with a letter, a digit or '.', followed by any of "
            "letters, digits and _.\\/>-",
        )
    op_def = stand_in or _find_op(node_def, library)
    try:
        # A resolver takes it that all nodes of an op have one definition; of stand-ins each has its own.
        attrs, types = (resolver if resolver and not stand_in else Resolver()).resolve(op_def, node_def)
        refuse_placeholders(attrs)
    except errors.OpError as e:
        raise _named(e, node_def) from None
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as e:
        raise at_node(node_def, f"Node '{name}' ({node_def.op}) has a bad attribute: {e}") from e
    try:
        requested = device_lib.canonical_name(node_def.device)
    except ValueError as e:
        raise at_node(node_def, str(e)) from None
    data, control = _parse_inputs(node_def)
    if len(data) != len(types.input_types):
        names = ", ".join(f"{arg.name}..." if arg.is_list else arg.name for arg in op_def.inputs)
        raise at_node(
            node_def,
            f"Node '{name}' has {len(data)} inputs; {node_def.op} takes {len(types.input_types)} with these attributes "
            f"({names or 'none'}).",
        )
    return Node(
        name, node_def.op, op_def, node_def, attrs, data, control, types.input_types, types.output_types, requested
    )


def _find_op(node_def: NodeDef, library: FunctionLibrary) -> OpDef:
    name, op = node_def.name, node_def.op
    if op.startswith("_") and op not in library:
        raise at_node(
            node_def, f"Node '{name}': op type '{op}' is internal to the runtime and cannot come from a client."
        )
    found = library.definition(op)
    if found is None:
        text = f"Op type not registered '{op}' in this server{suggestion(op, opdefs.names())}"
        raise at_node(node_def, text, errors.NotFoundError)
    return found


def _parse_inputs(node_def: NodeDef) -> tuple[tuple[TensorName, ...], tuple[str, ...]]:
    data: list[TensorName] = []
    control: dict[str, None] = {}
    for text in node_def.input:
        if text.startswith("^"):
            control[text[1:]] = None
        elif control:
            raise at_node(
                node_def,
                f"All control inputs must follow all data inputs; in node '{node_def.name}' the data input '{text}' "
                f"comes after '^{next(iter(control))}'.",
            )
        else:
            data.append(parse_tensor_name(text))
    return tuple(data), tuple(control)


def _check_inputs(node: Node, nodes: Mapping[str, Node]) -> None:
    """Every input exists, has that output, and its type is what the op was declared with."""
    for position, (tensor, expected) in enumerate(zip(node.inputs, node.input_types, strict=True)):
        source = nodes.get(tensor.node)
        if source is None:
            raise _unknown_input(node, tensor.node, nodes)
        if tensor.output >= len(source.output_types):
            raise at_node(
                node,
                f"Node '{node.name}': Connecting to invalid output {tensor.output} of source node {source.name} which "
                f"has {len(source.output_types)} outputs. Try using "
                # What gradients of tf.cond need, whose outputs a client may add after the graph was sent.
                f"tf.compat.v1.experimental.output_all_intermediates(True).",
            )
        actual = source.output_types[tensor.output]
        fits = actual is expected if expected.is_ref_dtype else actual.base_dtype is expected
        if not fits:
            raise at_node(
                node,
                f"Input {position} of node {node.name} was passed {actual.op_name} from {tensor} incompatible with "
                f"expected {expected.op_name}.",
            )
    for name in node.control_inputs:
        if name not in nodes:
            raise _unknown_input(node, f"^{name}", nodes)


def _unknown_input(node: Node, text: str, nodes: Mapping[str, Node]) -> errors.OpError:
    return at_node(node, f"Node '{node.name}': Unknown input node '{text}'{suggestion(text.lstrip('^'), nodes)}")


def _named(error: errors.OpError, node_def: NodeDef) -> errors.OpError:
    """The error with the node's name in it, once."""
    if error.node_name == node_def.name:
        return error
    text = error.message if f"'{node_def.name}'" in error.message else f"Node '{node_def.name}': {error.message}"
    return errors.from_code(error.code, text + node_reference(node_def.name), node_def)
