"""Cuts a graph down to what one run signature needs, with feeds and fetches as nodes of their own.

A fed tensor becomes a client-terminated _Recv, a fetched one a client-terminated _Send, both on the master's own
device; everything that no fetch or target needs is dropped. A callable may also connect a tensor to another one: its
consumers then take that instead. A reference variable on the master's own device is fetched as the step leaves it, as
by TensorFlow's local sessions. Called by master/client_graph.py on the placed graph. Errors and node names are those
of TensorFlow's subgraph.cc (RewriteGraphForExecution) and graph_execution_state.cc (TensorConnectionPruneRewrite).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.node_names import TensorName, at_node, parse_tensor_name, suggestion

from .new_nodes import make_node, new_def
from .reference_writers import ReferenceWriters
from .send_recv import Channel, recv_node, send_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tenfold_protos.device_attributes_pb2 import DeviceAttributes

    from .node import Node
    from .runtime_graph import RuntimeGraph

#: Feeding one of these replaces the node altogether: nodes that waited for it wait for the feed.
_PLACEHOLDER_OPS = frozenset(("Placeholder", "PlaceholderV2"))
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
    replacements = _check_feeds(graph, [*feeds, *(to for _, to in connections)])
    fed = list(replacements)[: len(feeds)]
    fetched = _check_fetches(graph, fetches, replacements)
    roots = _check_targets(graph, targets)

    feed_nodes: dict[TensorName, Node] = {}
    replaced: dict[str, Node] = {}
    for tensor in fed:
        channel = _client_channel(tensor, client_device)
        node = recv_node(f"_recv_{tensor.node}_{tensor.output}", graph.tensor_type(tensor), channel)
        feed_nodes[tensor] = node
        if tensor in graph.outputs:
            feed_nodes[graph.outputs[tensor]] = node
        if graph.nodes[tensor.node].op in _PLACEHOLDER_OPS:
            replaced[tensor.node] = node
    connecting = _connect(graph, connected, list(replacements)[len(feeds) :], feed_nodes, replaced)

    needed: dict[str, Node] = {}
    used_feeds: set[str] = set()
    stack = [*roots, *(tensor.node for tensor in fetched)]
    while stack:
        name = stack.pop()
        if name in needed:
            continue
        node = connecting.get(name) or _rewire(graph.nodes[name], feed_nodes, replaced)
        needed[name] = node
        for source in node.sources:
            if source in graph.nodes or source in connecting:
                stack.append(source)
            else:
                used_feeds.add(source)
    kept: list[Node] = [node for node in dict.fromkeys(feed_nodes.values()) if node.name in used_feeds]
    kept += [needed[name] for name in (*connecting, *graph.nodes) if name in needed]
    writers: ReferenceWriters | None = None
    for tensor in fetched:
        name, dtype = f"_send_{tensor.node}_{tensor.output}", graph.tensor_type(tensor)
        after: tuple[str, ...] = ()
        if dtype.is_ref_dtype and not is_partial and needed[tensor.node].device == client_device.name:
            writers = writers or ReferenceWriters(needed)
            after = writers.of(tensor.node)
        kept.append(send_node(name, tensor, dtype, _client_channel(tensor, client_device), after))
    return graph.with_nodes(kept)


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


def _connect(
    graph: RuntimeGraph,
    sources: Sequence[TensorName],
    destinations: Sequence[TensorName],
    feed_nodes: dict[TensorName, Node],
    replaced: dict[str, Node],
) -> dict[str, Node]:
    """Adds an Identity for each connection to `feed_nodes`; gives them by name.

    As in TensorFlow, a connection takes its source as it is in the graph even if that is fed, but as a later connection
    makes it.
    """
    made: dict[str, Node] = {}
    for source, to in zip(sources, destinations, strict=True):
        _refuse_cycle(graph, source, to, feed_nodes, replaced, made)
        given, wanted = graph.tensor_type(source).base_dtype, graph.tensor_type(to).base_dtype
        if given is not wanted:
            raise errors.invalid_argument(
                f"Requested Tensor connection between {source}, a {given.op_name}, and {to}, a {wanted.op_name}: their "
                "types differ."
            )
        identity = new_def("Identity", f"_identity_{to.node}_{to.output}", [source], {"T": given})
        node = make_node(identity, graph.nodes[to.node].device)
        for name, earlier in made.items():
            if to in earlier.inputs:
                made[name] = replace(earlier, inputs=(TensorName(node.name, 0),))
        made[node.name] = feed_nodes[to] = node
        if to in graph.outputs:
            feed_nodes[graph.outputs[to]] = node
        if graph.nodes[to.node].op in _PLACEHOLDER_OPS:
            replaced[to.node] = node
    return made


def _refuse_cycle(
    graph: RuntimeGraph,
    source: TensorName,
    to: TensorName,
    feed_nodes: dict[TensorName, Node],
    replaced: dict[str, Node],
    made: dict[str, Node],
) -> None:
    """Follows the edges back from `source`; as in TensorFlow, another output of the node of `to` is a cycle, too."""
    seen: set[str] = set()
    stack = [source.node]
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        if name == to.node:
            raise errors.invalid_argument(
                f'Requested Tensor connection between nodes "{to.node}" and "{source.node}" would create a cycle.'
            )
        seen.add(name)
        node = made.get(name) or graph.nodes.get(name)
        if node is None:
            continue  # a feed
        if name in made:
            stack.extend(node.sources)
            continue
        stack.extend(feed_nodes[t].name if t in feed_nodes else t.node for t in node.inputs)
        stack.extend(replaced[c].name if c in replaced else c for c in node.control_inputs)


def _rewire(node: Node, feed_nodes: dict[TensorName, Node], replaced: dict[str, Node]) -> Node:
    """The node with fed inputs coming from the feeds."""
    inputs = node.inputs
    if feed_nodes and any(tensor in feed_nodes for tensor in inputs):
        _refuse_writes_to_feeds(node, feed_nodes)
        inputs = tuple(TensorName(feed_nodes[t].name, 0) if t in feed_nodes else t for t in inputs)
    control = node.control_inputs
    if replaced and any(name in replaced for name in control):
        control = tuple(dict.fromkeys(replaced[name].name if name in replaced else name for name in control))
    if inputs is node.inputs and control is node.control_inputs:
        return node
    return replace(node, inputs=inputs, control_inputs=control)


def _refuse_writes_to_feeds(node: Node, feed_nodes: dict[TensorName, Node]) -> None:
    for tensor, dtype in zip(node.inputs, node.input_types, strict=True):
        if dtype.is_ref_dtype and tensor in feed_nodes:
            raise at_node(
                node, f"'{node.name}' ({node.op}) writes to '{tensor}', which is fed; a fed value cannot be written to."
            )


def _check_feeds(graph: RuntimeGraph, feeds: Sequence[str]) -> dict[TensorName, None]:
    fed: dict[TensorName, None] = {}
    for text in feeds:
        tensor = parse_tensor_name(text)
        node = graph.nodes.get(tensor.node)
        if node is None:
            raise errors.not_found(
                f"FeedInputs: unable to find feed output {text}{suggestion(tensor.node, graph.nodes)}"
            )
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
