"""How many nodes a graph has at least once its calls are replaced by bodies: known before a single one is made.

Forty functions that each call the next one twice are a few hundred bytes, and 2^40 nodes. lowering.py counts while it
makes nodes, too, but by then it has made a hundred thousand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from tenfold_protos.node_def_pb2 import NodeDef

    from .function_library import FunctionLibrary


def least_nodes(nodes: Iterable[NodeDef], library: FunctionLibrary, call_ops: Collection[str]) -> int:
    """The nodes, and those of the bodies that plain calls (`call_ops`, or an op that is a function) bring in.

    Never too many: a function that calls itself stays a call, and branches and loops may stay what they are.
    """

    def called(node: NodeDef) -> str:
        return node.attr["f"].func.name if node.op in call_ops and "f" in node.attr else node.op

    #: Function → nodes of its body with all that is in it; 0 while it is being counted, so that calls in a circle end.
    counts: dict[str, int] = {}
    nodes = list(nodes)
    # no recursion: how deep functions stand in each other is up to a peer
    stack = [name for name in map(called, nodes) if name in library]
    while stack:
        name = stack[-1]
        function = library.find(name)
        assert function is not None
        if name in counts:
            stack.pop()
            if not counts[name]:
                counts[name] = _sum(function.node_def, counts, called)
            continue
        counts[name] = 0
        stack.extend(inner for inner in map(called, function.node_def) if inner in library and inner not in counts)
    return _sum(nodes, counts, called)


def _sum(nodes: Iterable[NodeDef], counts: dict[str, int], called: Callable[[NodeDef], str]) -> int:
    return sum(1 + counts.get(called(node), 0) for node in nodes)
