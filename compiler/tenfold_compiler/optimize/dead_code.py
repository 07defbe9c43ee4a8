"""Drops pure nodes whose values are not read.

They come from gradients: the node that computes the gradient of a fed input stands in the part only because a NoOp
groups it with its siblings. A node without any reader, not even a control edge, is what the client asked for: it
stays, and so does its error. Follows grappler's dependency_optimizer.cc (SafeToConvertToNoOp).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.part.node_facts import Constants, data_readers, is_pure

from .edits import hangs_on_branch, retire

if TYPE_CHECKING:
    from tenfold_compiler.part.part_graph import PartGraph


def drop_dead_code(part: PartGraph, constants: Constants) -> int:
    """Returns how many nodes it dropped."""
    readers = data_readers(part)
    waited_for = {control for node in part.nodes for control in node.controls}
    dropped = 0
    for node in reversed(part.nodes):
        if readers[node.index] or node.index not in waited_for or node.index in constants or not is_pure(node):
            continue
        if hangs_on_branch(part, node):
            continue
        for source, _ in node.inputs:
            readers[source] -= 1
            waited_for.add(source)
        retire(node)
        dropped += 1
    return dropped
