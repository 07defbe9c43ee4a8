"""The graph while its functional nodes are replaced: nodes so far, names that are taken, where edges lead instead.

lower.py says what becomes of each functional node; inline.py and lower_control_flow.py make the new nodes here.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tenfold_core import errors
from tenfold_core.env_settings import limit_reached
from tenfold_core.node_names import TensorName, free_name

from .functions import Functions
from .node import check_acyclic, new_def, node_of
from .runtime_graph import NODES_VARIABLE, RuntimeGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .node import Node


CALL_OPS = frozenset(("PartitionedCall", "StatefulPartitionedCall", "RemoteCall", "SymbolicGradient"))
IF_OPS = frozenset(("If", "StatelessIf"))
CASE_OPS = frozenset(("Case", "StatelessCase"))
WHILE_OPS = frozenset(("While", "StatelessWhile"))
FUNCTIONAL_OPS = CALL_OPS | IF_OPS | CASE_OPS | WHILE_OPS
_ENTERS = frozenset(("Enter", "RefEnter"))
#: Bodies may add so many nodes: few functions that call each other twice each would make a huge graph of a tiny one.
MAX_BODY_NODES = 100_000


class CallToLower(NamedTuple):
    """A functional node that waits for its turn."""

    node: Node
    #: The functions whose bodies it stands in, outermost first.
    chain: tuple[str, ...]


class Lowered(NamedTuple):
    """What has come of a functional node."""

    #: Its outputs; of a call some may be inputs of it.
    outputs: Sequence[TensorName]
    #: Nodes that have run when it is over.
    after: Sequence[str]


class Lowering:
    """Of one `lower`."""

    def __init__(self, graph: RuntimeGraph, max_nodes: int) -> None:
        """Raises ResourceExhaustedError where it is plain that the bodies have too many nodes."""
        self.functions = Functions(graph.library)
        #: Whether the client's graph has loops, in whose frames functions may be called.
        self.has_frames = any(node.op in _ENTERS for node in graph.nodes.values())
        #: Functional nodes that nothing was decided about.
        self.pending: deque[CallToLower] = deque()
        self._graph = graph
        self._max_nodes = min(max_nodes, len(graph.nodes) + MAX_BODY_NODES)
        self._is_servers_limit = self._max_nodes == max_nodes
        #: Those that stay as they are, but for their edges.
        self.nodes: dict[str, Node] = {}
        self._names = set(graph.nodes)
        #: Output of a node that is gone → what its consumers take instead; may lead to another such output.
        self._tensors = dict(graph.outputs)
        #: Node that is gone → the nodes that its successors wait for instead.
        self._after: dict[str, Sequence[str]] = {}
        #: Node → the tensor that it must lie beside.
        self.beside: dict[str, TensorName] = {}
        own = (node.node_def for node in graph.nodes.values() if not node.device)
        if self.functions.library.least_nodes(own, CALL_OPS) > self._max_nodes:
            raise self._too_many()
        for node in graph.nodes.values():
            self.put(node, ())

    def put(self, node: Node, chain: tuple[str, ...]) -> None:
        """Adds a node of a graph or of a body; one that is functional takes its turn."""
        if self.is_functional(node) and not node.device:
            self.pending.append(CallToLower(node, chain))
            return
        self.nodes[node.name] = node

    def is_functional(self, node: Node) -> bool:
        return node.op in FUNCTIONAL_OPS or node.op in self.functions.library

    def name(self, wanted: str) -> str:
        """A name that is free, now taken: every new node takes one. Raises ResourceExhaustedError at the limit."""
        if len(self._names) >= self._max_nodes:
            raise self._too_many()
        return free_name(wanted, self._names)

    def add(
        self,
        op: str,
        name: str,
        inputs: Sequence[TensorName],
        attrs: dict[str, Any],
        *,
        device: str = "",
        after: Sequence[str] = (),
        beside: TensorName | None = None,
        exact_name: bool = False,
    ) -> TensorName:
        """Adds a node of the pass's own; its first output. Without a `device` it shares that of the tensor `beside`."""
        node_def = new_def(op, name if exact_name else self.name(name), (), attrs)
        if beside is not None and not device:
            self.beside[node_def.name] = beside
        self.put(node_of(node_def, tuple(inputs), tuple(dict.fromkeys(after)), device), ())
        return TensorName(node_def.name, 0)

    def one(self, name: str, after: Sequence[str], device: str) -> Sequence[str]:
        """Nodes to wait for as at most one: a NoOp that waits for all of them."""
        after = tuple(dict.fromkeys(after))
        return after if len(after) < 2 else (self.add("NoOp", name, (), {}, device=device, after=after).node,)

    def _too_many(self) -> errors.OpError:
        what = f"With the bodies of its functions the graph has more than {self._max_nodes} nodes"
        if self._is_servers_limit:
            return limit_reached(what, self._max_nodes, NODES_VARIABLE)
        return errors.resource_exhausted(f"{what}: its functions add more than {MAX_BODY_NODES}.")

    def lead_past(self, name: str, lowered: Lowered) -> None:
        """A functional node is gone: its consumers take, and wait for, what has come of it."""
        for port, tensor in enumerate(lowered.outputs):
            self._tensors[TensorName(name, port)] = tensor
        self._after[name] = lowered.after

    def producer(self, tensor: TensorName) -> Node | None:
        """The node that gives a tensor now; None while it is one that nothing was decided about."""
        return self.nodes.get(self._tensor(tensor).node)

    def finish(self, outputs: dict[TensorName, TensorName]) -> RuntimeGraph:
        """The new graph; `outputs` leads to what stands for an output of a node that is gone. Raises for a cycle."""
        nodes = {name: self._resolved(node) for name, node in self.nodes.items()}
        check_acyclic(nodes, [name for name, node in nodes.items() if not node.device])
        resolved = {tensor: self._tensor(instead) for tensor, instead in outputs.items()}
        return RuntimeGraph(nodes, self._graph.versions, self._graph.library, resolved)

    def _resolved(self, node: Node) -> Node:
        """The node with its edges led past what is gone."""
        inputs = tuple(self._tensor(tensor) for tensor in node.inputs)
        control = node.control_inputs
        if any(name in self._after for name in control):
            control = tuple(self._waited_for(control))
        beside = self.beside.get(node.name)
        if inputs == node.inputs and control is node.control_inputs and beside is None:
            return node
        node = replace(node, inputs=inputs, control_inputs=control)
        if beside is not None:
            groups = [*(node.attrs.get("_class") or ()), f"loc:@{self._tensor(beside).node}".encode()]
            node = replace(node, attrs={**node.attrs, "_class": groups})
        return node

    def _tensor(self, tensor: TensorName) -> TensorName:
        while tensor in self._tensors:
            tensor = self._tensors[tensor]
        return tensor

    def _waited_for(self, names: Iterable[str]) -> dict[str, None]:
        found: dict[str, None] = {}
        seen: set[str] = set()
        stack = list(names)[::-1]
        while stack:
            name = stack.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self._after:
                stack.extend(self._after[name])
            else:
                found[name] = None
        return found
