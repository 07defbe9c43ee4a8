"""Nodes that wait for the same many nodes wait for one node that waits for them.

    u0 … u149 ──► 2,600 nodes, each with 150 edges        u0 … u149 ──► NoOp ──► 2,600 nodes, each with one

`with tf.control_dependencies(updates): optimizer.minimize(loss)` gives each node of the gradients that takes nothing
from another one an edge from every update: with a hundred batch normalizations, half a million edges, which every pass,
every message and every task would go through. Called by master/client_graph.py between prune and join_lookups; what
runs after what does not change. In TensorFlow: the dependency optimizer, in spirit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from tenfold_core.node_names import free_name

from .node import make_node, new_def

if TYPE_CHECKING:
    from .node import Node
    from .runtime_graph import RuntimeGraph

#: Nodes that a set has at least for another node in its place to be worth it.
_LEAST = 8
#: Sets that are looked for in larger ones: those that save the most.
_MOST_SETS = 16


def join_controls(graph: RuntimeGraph) -> RuntimeGraph:
    """The graph with one NoOp, on each device, for a large set of control inputs that several nodes there share."""
    large = {name: frozenset(node.control_inputs) for name, node in graph.nodes.items() if _is_large(node)}
    counts = Counter(large.values())
    by_saving = sorted(counts, key=lambda each: -len(each) * counts[each])
    common = [each for each in by_saving if counts[each] > 1][:_MOST_SETS]
    if not common:
        return graph
    nodes: list[Node] = []
    names = set(graph.nodes)
    #: (set, device) → the node that waits for it there.
    joined: dict[tuple[frozenset[str], str], str] = {}
    for node in graph.nodes.values():
        own = large.get(node.name)
        found = own and next((each for each in common if each <= own), None)
        if found:
            key = (found, node.device)
            if key not in joined:
                joined[key] = free_name(f"{node.name}/after", names)
                waits = [f"^{name}" for name in node.control_inputs if name in found]
                nodes.append(make_node(new_def("NoOp", joined[key], waits, device=node.device)))
            rest = [name for name in node.control_inputs if name not in found]
            node = replace(node, control_inputs=(*rest, joined[key]))
        nodes.append(node)
    return graph.with_nodes(nodes)


def _is_large(node: Node) -> bool:
    return len(node.control_inputs) >= _LEAST
