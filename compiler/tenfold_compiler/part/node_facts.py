"""What the passes and build.py need to know of nodes: which are pure, which others may write to what they read.

*Pure* means: the same inputs give the same outputs, nothing else is read or changed, and the op is not run for its
error. What steers a kernel and others may write to, the value of a reference variable, it gets as a copy: decision
0131. Functions of the client's program that do not depend on each other run side by side: kernels/host_threads.py.
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core import dtypes, opdefs
from tenfold_core.opdefs import runtime_ops
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, DYNAMIC_OPS, ORDER_OPS, RECV_OPS, SEND_OPS
from tenfold_kernels import registry, steering

from .cross_memory import device_type_of
from .part_graph import PartGraph, PartNode, sources_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

#: node index → its outputs, for nodes whose outputs are known before the first step.
Constants: TypeAlias = dict[int, tuple[Any, ...]]

#: Families of ops that compute; what the others do (files, queues, variables, control flow) is not a pass's business.
_COMPUTING = frozenset(("array", "image", "linalg", "math", "nn", "random", "special", "string"))
#: Ops that call a function of the client's process.
_HOST_OPS = frozenset(("PyFunc", "PyFuncStateless", "EagerPyFunc"))
#: Stateless in their definition, but there for the error they raise.
_GUARDS = frozenset(("EnsureShape", "Placeholder", "PlaceholderWithDefault", "PlaceholderV2"))


def is_pure(node: PartNode) -> bool:
    """Whether the node may be computed at another time, once for several, or not at all."""
    return _computes(node.op) and _are_values(node.input_types) and _are_values(node.output_types)


@functools.lru_cache(4096)
def _computes(op: str) -> bool:
    """Whether an op of this name does nothing but compute."""
    if op in ORDER_OPS or op in RECV_OPS or op in SEND_OPS or op in DYNAMIC_OPS or op in _GUARDS:
        return False
    if op in runtime_ops.COPY_OPS:
        return True
    return opdefs.family_of(op) in _COMPUTING and not opdefs.get(op).is_stateful


def _are_values(types: tuple[dtypes.DType, ...]) -> bool:
    # No look-up in a set and no generator: this is asked several times of each node, and they take thrice as long.
    for dtype in types:  # noqa: SIM110
        if dtype is dtypes.resource or dtype is dtypes.variant or dtype.is_ref_dtype:
            return False
    return True


def data_readers(part: PartGraph) -> Counter[int]:
    """Per node: how many inputs of others read one of its outputs."""
    return Counter(source for node in part.nodes for source, _ in node.inputs)


def views_of_references(part: PartGraph, constants: Collection[int]) -> set[int]:
    """Nodes whose output may be a view of a reference variable, so that an assignment changes it later."""
    found: set[int] = set()
    if not any(dtype.is_ref_dtype for node in part.nodes for dtype in node.output_types):
        return found
    known = -1
    while known < len(found):
        # again only for what a loop hands to its next turn
        known = len(found) if part.is_dynamic else len(part.nodes)
        for node in part.nodes:
            if node.index in constants or node.op in SEND_OPS:
                continue
            reads = any(node.deref) or any(source in found for source, _ in node.inputs)
            if (reads and _hands_on(node)) or any(dtype.is_ref_dtype for dtype in node.output_types):
                found.add(node.index)
    return found


def _hands_on(node: PartNode) -> bool:
    """Whether an output may be a view of an input."""
    if node.op in ALIAS_OPS or node.op in DYNAMIC_OPS:
        return True
    return registry.may_view_input(node.op, device_type_of(node.node_def.device))


def steered_by_others(node: PartNode, views: Collection[int]) -> list[int]:
    """The inputs of a node that steer it while others may write to them; `views` as views_of_references has them."""
    shared = [
        place
        for place, (source, _) in enumerate(node.inputs)
        if node.deref[place] or (source in views and not node.input_types[place].is_ref_dtype)
    ]
    if not shared:
        return []
    names = steering.argument_names(node.op, len(node.inputs), node.attrs)
    return [place for place in shared if steering.steers(node.op, names[place], node.input_types[place])]


def with_copies(kernel: Callable[..., Any], places: Sequence[int]) -> Callable[..., Any]:
    """`kernel`, which gets copies of the inputs at `places`. What it does with them later is its own, too."""

    def call(*inputs: Any) -> Any:
        given = list(inputs)
        for place in places:
            value = given[place]
            if type(value) is np.ndarray:
                given[place] = value.copy()
        return kernel(*given)

    return call


def independent_host_functions(part: PartGraph) -> list[int]:
    """The nodes that call a host function and have another such node that neither needs them nor is needed by them.

    Linear in nodes. What is in two branches, of which one runs, counts as well.
    """
    hosts = [node.index for node in part.nodes if node.op in _HOST_OPS]
    bits = {index: 1 << number for number, index in enumerate(hosts)}
    if len(bits) < 2:
        return []
    #: Per node: the host functions that it needs, and those that need it, itself among them.
    needs = [bits.get(index, 0) for index in range(len(part.nodes))]
    needed_by = list(needs)
    for node in part.nodes:
        for source in sources_of(part.nodes, node):
            needs[node.index] |= needs[source]
    for node in reversed(part.nodes):
        for source in sources_of(part.nodes, node):
            needed_by[source] |= needed_by[node.index]
    everyone = (1 << len(bits)) - 1
    return [index for index in bits if needs[index] | needed_by[index] != everyone]
