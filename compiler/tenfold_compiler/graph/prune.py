"""Cuts a graph down to what one run signature needs, with feeds and fetches as nodes of their own.

A fed tensor becomes a client-terminated _Recv, a fetched one a client-terminated _Send, both on the master's own
device. A callable may also connect a tensor to another one: its consumers then take that instead. Called by
master/client_graph.py on the placed graph. Errors and node names are those of TensorFlow's subgraph.cc
(RewriteGraphForExecution) and graph_execution_state.cc (TensorConnectionPruneRewrite).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.node_names import TensorName, at_node, parse_tensor_name, suggestion
from tenfold_core.reached import reached

from .node import make_node, new_def
from .send_recv import Channel, recv_node, send_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tenfold_protos.device_attributes_pb2 import DeviceAttributes

    from .node import Node
    from .runtime_graph import RuntimeGraph

#: Feeding one of these replaces the node altogether: nodes that waited for it wait for the feed.
_PLACEHOLDER_OPS = frozenset(("Placeholder", "PlaceholderV2"))
#: What comes after one of these may not run in every step, or runs several times: nothing outside can wait for it.
_CONDITIONAL_OPS = frozenset(("Switch", "RefSwitch", "_SwitchN", "Enter", "RefEnter", "Merge", "RefMerge"))
#: Of one signature: each is followed back through the graph, to see that it closes no cycle.
MAX_CONNECTIONS = 256


def prune(
    graph: RuntimeGraph,
    feeds: Sequence[str],
    fetches: Sequence[str],
    targets: Sequence[str],
    *,
    client_device: DeviceAttributes,
    connections: Sequence[tuple[str, str]] = (),
    is_partial: bool = False,
) -> RuntimeGraph:
    """The part of `graph` that `fetches` and `targets` need once `feeds` are given.

    Each of `connections` is (from, to): consumers of `to` in the graph get `from`. Names may lack the ":0". The
    result has the feeds first, then the nodes in their old order, then the fetches. An unused feed is dropped.
    `is_partial`: a fetch waits for nothing but what it fetches.
    Raises NotFoundError for names that the graph does not have, InvalidArgumentError for outputs that do not exist, a
    tensor fed twice, fed and fetched, nothing to run, or a connection that closes a cycle.
    """
    connected = _check_connections(graph, connections)
    if not fetches and not targets:
        raise errors.invalid_argument("Must specify at least one target to fetch or execute.")
    fed = _check_feeds(graph, [*feeds, *(to for _, to in connections)])
    fetched = _check_fetches(graph, fetches, fed)
    roots = _check_targets(graph, targets)
    given = _Feeds(graph)
    for tensor in list(fed)[: len(feeds)]:
        channel = _client_channel(tensor, client_device)
        given.add(tensor, recv_node(f"_recv_{tensor.node}_{tensor.output}", graph.tensor_type(tensor), channel))
    for source, to in zip(connected, list(fed)[len(feeds) :], strict=True):
        given.connect(source, to)

    needed: dict[str, Node] = {}
    used_feeds: set[str] = set()
    stack = [*roots, *(tensor.node for tensor in fetched)]
    while stack:
        name = stack.pop()
        if name in needed:
            continue
        node = needed[name] = given.connecting.get(name) or given.rewired(graph.nodes[name])
        for source_name in node.sources:
            known = source_name in graph.nodes or source_name in given.connecting
            (stack.append if known else used_feeds.add)(source_name)
    kept = [node for node in dict.fromkeys(given.nodes.values()) if node.name in used_feeds]
    kept += [needed[name] for name in (*given.connecting, *graph.nodes) if name in needed]
    writers: _ReferenceWriters | None = None
    sends: list[Node] = []
    for tensor in fetched:
        name, dtype = f"_send_{tensor.node}_{tensor.output}", graph.tensor_type(tensor)
        after: tuple[str, ...] = ()
        if dtype.is_ref_dtype and not is_partial and needed[tensor.node].device == client_device.name:
            writers = writers or _ReferenceWriters(graph.with_nodes(kept))
            after = writers.of(tensor.node)
        sends.append(send_node(name, tensor, dtype, _client_channel(tensor, client_device), after))
    return graph.with_nodes([*kept, *sends])


def _client_channel(tensor: TensorName, device: DeviceAttributes) -> Channel:
    return Channel(str(tensor), device.name, device.incarnation, device.name, client_terminated=True)


def _check_connections(graph: RuntimeGraph, connections: Sequence[tuple[str, str]]) -> list[TensorName]:
    """Where each connection comes from."""
    if len(connections) > MAX_CONNECTIONS:
        raise errors.resource_exhausted(
            f"CallableOptions has {len(connections)} tensor connections; this server takes {MAX_CONNECTIONS}."
        )
    found: list[TensorName] = []
    for source, to in connections:
        tensor = parse_tensor_name(source)
        node = graph.nodes.get(tensor.node)
        # TensorFlow, too, names the tensor that the connection leads to, and no other.
        if node is None:
            raise errors.invalid_argument(
                f'Requested tensor connection from unknown node: "{to}".{suggestion(tensor.node, graph.nodes)}'
            )
        if tensor.output >= len(node.output_types):
            raise errors.invalid_argument(
                f'Requested tensor connection from unknown edge: "{to}" '
                f"(actual number of outputs = {len(node.output_types)})."
            )
        found.append(tensor)
    return found


class _Feeds:
    """The nodes that give fed and connected tensors, and what takes these tensors."""

    def __init__(self, graph: RuntimeGraph) -> None:
        self._graph = graph
        #: By the tensor that each stands for.
        self.nodes: dict[TensorName, Node] = {}
        #: By the node that each stands for altogether.
        self._replaced: dict[str, Node] = {}
        #: The Identity of each connection, by its name.
        self.connecting: dict[str, Node] = {}

    def add(self, tensor: TensorName, node: Node) -> None:
        """Puts `node` in the place of a tensor."""
        self.nodes[tensor] = node
        if tensor in self._graph.outputs:
            self.nodes[self._graph.outputs[tensor]] = node
        if self._graph.nodes[tensor.node].op in _PLACEHOLDER_OPS:
            self._replaced[tensor.node] = node

    def connect(self, source: TensorName, to: TensorName) -> None:
        """Puts an Identity of `source` in the place of `to`.

        As in TensorFlow, a connection takes its source as it is in the graph even if that is fed, but as a later
        connection makes it.
        """
        # as in TensorFlow, another output of the node that is connected closes a cycle
        if to.node in reached([source.node], self._sources):
            raise errors.invalid_argument(
                f'Requested Tensor connection between nodes "{to.node}" and "{source.node}" would create a cycle.'
            )
        given, wanted = self._graph.tensor_type(source).base_dtype, self._graph.tensor_type(to).base_dtype
        if given is not wanted:
            raise errors.invalid_argument(
                f"Requested Tensor connection between {source}, a {given.op_name}, and {to}, a {wanted.op_name}: their "
                "types differ."
            )
        device = self._graph.nodes[to.node].device
        node = make_node(new_def("Identity", f"_identity_{to.node}_{to.output}", [source], {"T": given}, device))
        for name, earlier in self.connecting.items():
            if to in earlier.inputs:
                self.connecting[name] = replace(earlier, inputs=(TensorName(node.name, 0),))
        self.connecting[node.name] = node
        self.add(to, node)

    def _sources(self, name: str) -> Iterable[str]:
        """What the node of that name takes something of, or waits for; nothing for a feed."""
        if name in self.connecting:
            return self.connecting[name].sources
        node = self._graph.nodes.get(name)
        if node is None:
            return ()
        inputs = [self.nodes[t].name if t in self.nodes else t.node for t in node.inputs]
        return inputs + [self._replaced[c].name if c in self._replaced else c for c in node.control_inputs]

    def rewired(self, node: Node) -> Node:
        """The node with fed inputs coming from the feeds."""
        inputs, control = node.inputs, node.control_inputs
        if self.nodes and any(tensor in self.nodes for tensor in inputs):
            for tensor, dtype in zip(inputs, node.input_types, strict=True):
                if dtype.is_ref_dtype and tensor in self.nodes:
                    raise at_node(
                        node,
                        f"'{node.name}' ({node.op}) writes to '{tensor}', which is fed; a fed value cannot be written "
                        "to.",
                    )
            inputs = tuple(TensorName(self.nodes[t].name, 0) if t in self.nodes else t for t in inputs)
        if self._replaced and any(name in self._replaced for name in control):
            control = tuple(dict.fromkeys(self._replaced[c].name if c in self._replaced else c for c in control))
        if inputs is node.inputs and control is node.control_inputs:
            return node
        return replace(node, inputs=inputs, control_inputs=control)


class _ReferenceWriters:
    """Which nodes of a graph write through its references; found once for all of them, in time linear in the graph.

    A reference variable on the master's own device is fetched as the step leaves it, as by TensorFlow's local sessions:
    `run([train_op, global_step])` gives the step after the update.
    """

    def __init__(self, graph: RuntimeGraph) -> None:
        self._nodes = graph.nodes
        #: Node → those that write through one of its outputs.
        self._direct: defaultdict[str, list[str]] = defaultdict(list)
        for node in graph.nodes.values():
            for tensor, dtype in zip(node.inputs, node.input_types, strict=True):
                if dtype.is_ref_dtype:
                    self._direct[tensor.node].append(node.name)
        self._conditional = graph.behind(node.name for node in graph.nodes.values() if node.op in _CONDITIONAL_OPS)

    def of(self, name: str) -> tuple[str, ...]:
        """Those on its device that write through the reference `name`, or what a writer hands on, in each step once."""
        found = reached(self._direct.get(name, ()), lambda writer: self._direct.get(writer, ()))
        device = self._nodes[name].device
        return tuple(w for w in found if w not in self._conditional and self._nodes[w].device == device)


def _check_feeds(graph: RuntimeGraph, feeds: Sequence[str]) -> dict[TensorName, None]:
    fed: dict[TensorName, None] = {}
    for text in feeds:
        tensor = parse_tensor_name(text)
        node = graph.nodes.get(tensor.node)
        if node is None:
            hint = suggestion(tensor.node, graph.nodes)
            raise errors.not_found(f"FeedInputs: unable to find feed output {text}{hint}")
        if tensor.output >= len(node.output_types):
            raise at_node(node, f"FeedInputs: {text} should have output index < {len(node.output_types)}")
        if tensor in fed:
            raise errors.invalid_argument(f'Endpoint "{tensor}" fed more than once.')
        fed[tensor] = None
    return fed


def _check_fetches(graph: RuntimeGraph, fetches: Iterable[str], fed: dict[TensorName, None]) -> dict[TensorName, None]:
    fetched: dict[TensorName, None] = {}
    for text in fetches:
        tensor = parse_tensor_name(text)
        if tensor in fed:
            raise errors.invalid_argument(f"{tensor} is both fed and fetched.")
        node = graph.nodes.get(tensor.node)
        if node is None:
            raise errors.not_found(f"FetchOutputs node {text}: not found{suggestion(tensor.node, graph.nodes)}")
        if not node.output_types:
            raise at_node(
                node,
                f"Tried to fetch data for '{text}', which produces no output.  To run to a node but not fetch any "
                f"data, pass '{node.name}' as a target.",
            )
        if tensor.output >= len(node.output_types):
            raise at_node(node, f"FetchOutputs {text}: output index too large, must be < {len(node.output_types)}")
        fetched[tensor] = None
    return fetched


def _check_targets(graph: RuntimeGraph, targets: Iterable[str]) -> list[str]:
    found: list[str] = []
    missing: list[str] = []
    for text in targets:
        # An operation is meant; a tensor's name is taken for its operation, as in TensorFlow.
        name = text if text in graph.nodes else parse_tensor_name(text).node
        (found if name in graph.nodes else missing).append(name)
    if missing:
        hint = suggestion(missing[0], graph.nodes) if len(missing) == 1 else ""
        raise errors.not_found(f"PruneForTargets: Some target nodes not found: {' '.join(missing)}{hint}")
    return found
