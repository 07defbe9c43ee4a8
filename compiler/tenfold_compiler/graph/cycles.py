"""The order of nodes, and cycles that no loop explains. Used by runtime_graph.py when nodes are added."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from tenfold_core.node_names import at_node
from tenfold_core.opdefs.runtime_ops import MERGE_OPS, NEXT_ITERATION_OPS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .node import Node


def is_back_edge(source: Node, consumer: Node) -> bool:
    """True for the one kind of edge that may close a cycle."""
    return consumer.op in MERGE_OPS and source.op in NEXT_ITERATION_OPS


def in_order(added: Sequence[Node], nodes: Mapping[str, Node]) -> tuple[list[Node], dict[str, int]]:
    """`added`, each node after its sources among them, loops' back edges left aside, otherwise as they come.

    Beside the order, what is left out: nodes on a cycle or behind one, with how many of their sources are.
    """
    waiting: dict[str, list[Node]] = {node.name: [] for node in added}
    pending: dict[str, int] = {}
    for node in added:
        sources = [s for s in dict.fromkeys(node.sources) if s in waiting and not is_back_edge(nodes[s], node)]
        pending[node.name] = len(sources)
        for source in sources:
            waiting[source].append(node)
    order = [node for node in added if not pending[node.name]]
    for node in order:  # grows while it is walked
        del pending[node.name]
        for consumer in waiting[node.name]:
            pending[consumer.name] -= 1
            if not pending[consumer.name]:
                order.append(consumer)
    return order, pending


def check_acyclic(nodes: Mapping[str, Node], added: Sequence[str]) -> None:
    """Raises InvalidArgumentError that shows the cycle, where there is one among the nodes `added`.

    Old nodes cannot take new ones as inputs, so that only new ones can close a cycle.
    """
    pending = in_order([nodes[name] for name in added], nodes)[1]
    if pending:
        path = _find_cycle(nodes, pending)
        shown = " -> ".join(path if len(path) <= 10 else [*path[:9], "...", path[-1]])
        raise at_node(
            nodes[path[0]],
            f"{len(path) - 1} nodes in a cycle: {shown}. Only a NextIteration into a Merge may close a loop.",
        )


def _find_cycle(nodes: Mapping[str, Node], blocked: Mapping[str, int]) -> list[str]:
    """A cycle in the direction of the data, its first name repeated at the end."""

    def sources(node: Node) -> list[str]:
        return [source for source in node.sources if source in blocked and not is_back_edge(nodes[source], node)]

    try:
        TopologicalSorter({name: sources(nodes[name]) for name in blocked}).prepare()
    except CycleError as error:
        return list(error.args[1])
    raise AssertionError("nodes wait for each other, but in no cycle")
