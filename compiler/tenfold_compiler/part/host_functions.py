"""Lets functions of the client's program (py_func) that do not depend on each other run side by side.

One of them may wait for another, on an event or a queue of Python's: run one after the other, the step would hang. So
where a part has several that are independent, each runs on a thread of its own and its node waits for the result like a
dequeue (tenfold_kernels/host_threads.py). A function that is alone, or follows the others, keeps the step's thread,
which costs no hand-over. Used by build.py. In TensorFlow: the threads between ops, on which py_func.cc runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .part_graph import PartGraph, PartNode

#: Ops that call a function of the client's process.
HOST_OPS = frozenset(("PyFunc", "PyFuncStateless", "EagerPyFunc"))


def independent(part: PartGraph) -> list[int]:
    """The nodes that call a host function and have another such node that neither needs them nor is needed by them.

    Linear in nodes. What is in two branches, of which one runs, counts as well.
    """
    bits: dict[int, int] = {}
    for node in part.nodes:
        if node.op in HOST_OPS:
            bits[node.index] = 1 << len(bits)
    if len(bits) < 2:
        return []
    #: Per node: the host functions that it needs, and those that need it, itself among them.
    needs = [bits.get(index, 0) for index in range(len(part.nodes))]
    needed_by = list(needs)
    for node in part.nodes:
        for source in _sources(node):
            needs[node.index] |= needs[source]
    for node in reversed(part.nodes):
        for source in _sources(node):
            needed_by[source] |= needed_by[node.index]
    everyone = (1 << len(bits)) - 1
    return [index for index in bits if needs[index] | needed_by[index] != everyone]


def _sources(node: PartNode) -> Iterator[int]:
    """The nodes before it, without the back edges of loops."""
    for source, _ in node.inputs:
        if source < node.index:
            yield source
    yield from (source for source in node.controls if source < node.index)
