"""Turns calls of functions and functional control flow into plain nodes: a graph that the other passes understand.

    x ─▶ PartitionedCall f ─▶ y     becomes     x ─▶ call/mul ─▶ call/output ─▶ y,    call = Identity(call/output)

Calls are replaced by the function's body (inline.py), If and Case by Switch and Merge (lower_if.py), While by a loop of
Enter and Exit (lower_while.py). Consumers are led past the old node; under its name stays an Identity or IdentityN,
which can be fetched, and run for the side effects. Called by master/master_session.py before place, for all nodes that
came anew. A function that calls itself is left alone where it does: the worker calls it when the step gets there
(worker/functions.py). Follows TensorFlow's lower_functional_ops.cc.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from tenfold.framework import dtypes, errors, opdefs
from tenfold.framework.attr_value import resolve_attrs, to_proto
from tenfold.framework.node_signature import signature
from tenfold_protos import node_def_pb2
from tenfold_services.graph.cycles import check_acyclic
from tenfold_services.graph.expansion import least_nodes
from tenfold_services.graph.function_gradients import FunctionGradients
from tenfold_services.graph.functions import Functions
from tenfold_services.graph.inline import Call, Lowered, inline_call
from tenfold_services.graph.lower_if import lower_branches
from tenfold_services.graph.lower_while import lower_loop
from tenfold_services.graph.names import TensorName, node_reference
from tenfold_services.graph.runtime_graph import MAX_NODES, Node, RuntimeGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from tenfold_protos.attr_value_pb2 import NameAttrList

CALL_OPS = frozenset(("PartitionedCall", "StatefulPartitionedCall", "RemoteCall", "SymbolicGradient"))
_IF_OPS = frozenset(("If", "StatelessIf"))
_CASE_OPS = frozenset(("Case", "StatelessCase"))
_WHILE_OPS = frozenset(("While", "StatelessWhile"))
#: The client's own word on a branch or loop; we lower them all but those for which it says no.
_LOWERING = "_lower_using_switch_merge"
#: Bodies may add so many nodes: few functions that call each other twice each would make a huge graph of a tiny one.
MAX_BODY_NODES = 100_000
FUNCTIONAL_OPS = CALL_OPS | _IF_OPS | _CASE_OPS | _WHILE_OPS


def lower(graph: RuntimeGraph, *, max_nodes: int = MAX_NODES, control_flow: bool = True) -> RuntimeGraph:
    """The graph without functional nodes, but for those of functions that call themselves. Never blocks.

    Without `control_flow`, branches and loops stay too: a session may ask for TensorFlow's single-threaded executor,
    which knows no Switch, and see in its statistics that it got it.
    Raises InvalidArgumentError or NotFoundError naming the function that is wrong or missing and the node that needs
    it, ResourceExhaustedError where the bodies have too many nodes.
    """
    if not graph.library and not any(node.op == "SymbolicGradient" for node in graph.nodes.values()):
        return graph
    return Lowering(graph, max_nodes, control_flow=control_flow).run()


class Lowering:
    """The state of one `lower`: the nodes so far, what is left to do, and where edges lead instead."""

    def __init__(self, graph: RuntimeGraph, max_nodes: int, *, control_flow: bool = True) -> None:
        self.functions = Functions(graph.library)
        self._gradients = FunctionGradients(self.functions)
        self._control_flow = control_flow
        self._graph = graph
        self._max_nodes = min(max_nodes, len(graph.nodes) + MAX_BODY_NODES)
        self._nodes: dict[str, Node] = {}
        self._names = set(graph.nodes)
        self._pending: deque[Call] = deque()
        #: Output of a node that is gone → what its consumers take instead; may lead to another such output.
        self._tensors = dict(graph.outputs)
        #: Node that is gone → the nodes that its successors wait for instead.
        self._after: dict[str, Sequence[str]] = {}
        #: Node → the tensor that it must lie beside.
        self._beside: dict[str, TensorName] = {}

    def run(self) -> RuntimeGraph:
        own = (node.node_def for node in self._graph.nodes.values() if not node.device)
        if least_nodes(own, self.functions.library, CALL_OPS) > self._max_nodes:
            raise self._too_many()
        for node in self._graph.nodes.values():
            self.put(node, ())
        outputs = dict(self._graph.outputs)
        while self._pending:
            call = self._pending.popleft()
            try:
                lowered = self._lower(call)
            except errors.OpError as error:
                if "{{node " in error.message:
                    raise
                raise errors.from_code(
                    error.code, error.message + node_reference(call.node.name), call.node.node_def
                ) from None
            if lowered is None:
                self._nodes[call.node.name] = _as_call(call.node, self._graph)
                continue
            if not call.chain:
                lowered = self._keep(call.node, lowered)
            for port, tensor in enumerate(lowered.outputs):
                self._tensors[TensorName(call.node.name, port)] = tensor
                if not call.chain:
                    outputs[TensorName(call.node.name, port)] = tensor
            self._after[call.node.name] = lowered.after
        return self._finish(outputs)

    # -- what lower_if.py, lower_while.py and inline.py make nodes with ------------------------------------------------

    def put(self, node: Node, chain: tuple[str, ...]) -> None:
        """Adds a node of a graph or of a body; one that is functional takes its turn."""
        if self.is_functional(node) and not node.device:
            self._pending.append(Call(node, chain))
            return
        self._nodes[node.name] = node

    def is_functional(self, node: Node) -> bool:
        return node.op in FUNCTIONAL_OPS or node.op in self.functions.library

    def name(self, wanted: str) -> str:
        """A name that is free, now taken: every new node takes one. Raises ResourceExhaustedError at the limit."""
        if len(self._names) >= self._max_nodes:
            raise self._too_many()
        name, number = wanted, 0
        while name in self._names:
            number += 1
            name = f"{wanted}_{number}"
        self._names.add(name)
        return name

    def _too_many(self) -> errors.OpError:
        return errors.ResourceExhaustedError(
            None,
            None,
            f"With the bodies of its functions the graph has more than {self._max_nodes} nodes; this server takes "
            "no more in a session.",
        )

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
        """Adds a node of the pass's own; its first output. `beside` is a tensor whose device it shares."""
        op_def = opdefs.get(op)
        node_def = node_def_pb2.NodeDef(name=name if exact_name else self.name(name), op=op)
        for key, value in attrs.items():
            attr = op_def.attr_by_name.get(key)
            node_def.attr[key].CopyFrom(to_proto(value, "bool" if attr is None else attr.type))
        resolved = resolve_attrs(op_def, node_def)
        types = signature(op_def, resolved)
        if beside is not None:
            self._beside[node_def.name] = beside
        node = Node(
            node_def.name,
            op,
            op_def,
            node_def,
            resolved,
            tuple(inputs),
            tuple(dict.fromkeys(after)),
            types.input_types,
            types.output_types,
            device,
        )
        self.put(node, ())
        return TensorName(node.name, 0)

    def stay_beside(self, name: str, tensor: TensorName) -> None:
        """Puts a node on the device of a tensor."""
        self._beside[name] = tensor

    def one(self, name: str, after: Sequence[str], device: str) -> Sequence[str]:
        """Nodes to wait for as at most one: a NoOp that waits for all of them."""
        after = tuple(dict.fromkeys(after))
        return after if len(after) < 2 else (self.add("NoOp", name, (), {}, device=device, after=after).node,)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _lower(self, call: Call) -> Lowered | None:
        """None where the node stays: it is a part of itself, decides by more than a bool, or the client wants it."""
        node = call.node
        attr = node.node_def.attr
        if node.op in _WHILE_OPS:
            called = [attr["cond"].func, attr["body"].func]
        elif node.op in _IF_OPS:
            # `If` decides at output 0 of the Switch when the condition is false.
            called = [attr["else_branch"].func, attr["then_branch"].func]
        elif node.op in _CASE_OPS:
            called = list(attr["branches"].list.func)
        elif node.op == "SymbolicGradient":
            called = [self._gradients.of(attr["f"].func)]
            self._check_gradient(node, called[0])
        elif node.op in CALL_OPS:
            called = [attr["f"].func]
        else:
            called = []
        if any(function.name in call.chain for function in called) or node.op in call.chain:
            return None
        keep = not self._control_flow or node.attrs.get(_LOWERING) is False
        if keep and called and node.op not in CALL_OPS:
            return None
        if node.op in _WHILE_OPS and not self._is_loop(node, *called):
            return None
        self._check(node, called)
        if node.op in _WHILE_OPS:
            return lower_loop(self, call, called[0], called[1])
        if node.op in _IF_OPS:
            return lower_branches(self, call, called, ["else", "then"]) if _is_bool(node) else None
        if node.op in _CASE_OPS:
            return lower_branches(self, call, called, [f"branch{number}" for number in range(len(called))])
        name, attrs = (called[0].name, called[0].attr) if called else (node.op, attr)
        device, inputs = node.requested_device, node.inputs
        if node.op == "RemoteCall":
            target = self._constant_text(inputs[0])
            if target is None:
                return None
            device, inputs = target, inputs[1:]
        outputs, after = inline_call(
            self,
            node.name,
            name,
            attrs,
            inputs,
            after=node.control_inputs,
            device=device,
            chain=call.chain,
            one_device=not called,
        )
        return Lowered(outputs, after)

    def _constant_text(self, tensor: TensorName) -> str | None:
        """The value of a constant string; None for anything else."""
        found = self._nodes.get(self._tensor(tensor).node)
        if found is None or found.op != "Const" or found.output_types[0] is not dtypes.string:
            return None
        value = found.node_def.attr["value"].tensor.string_val
        return value[0].decode(errors="replace") if len(value) == 1 else None

    def _is_loop(self, node: Node, cond: NameAttrList, body: NameAttrList) -> bool:
        """Whether the functions give as many results as a loop needs; if not, the kernel of While says so."""
        counts = [len(self.functions.body(each.name, each.attr).output_types) for each in (cond, body)]
        return counts == [1, len(node.output_types)]

    def _check_gradient(self, node: Node, gradient: NameAttrList) -> None:
        """A client's own gradient function may give too few. Raises InvalidArgumentError."""
        given, promised = len(self.functions.body(gradient.name, gradient.attr).output_types), len(node.output_types)
        if given != promised:
            raise errors.InvalidArgumentError(
                node.node_def,
                None,
                f"SymGrad expects to return {promised} tensor(s), but get {given} tensor(s) instead."
                f"{node_reference(node.name)}",
            )

    def _check(self, node: Node, called: Sequence[NameAttrList]) -> None:
        """What a call gives must be what its node promises. Raises InvalidArgumentError."""
        for function in called:
            body = self.functions.body(function.name, function.attr)
            skip = 1 if node.op in _IF_OPS | _CASE_OPS or node.op == "RemoteCall" else 0
            given = tuple(dtype.base_dtype for dtype in node.input_types[skip:])
            promised = node.output_types
            if node.op in _WHILE_OPS and function is called[0]:
                promised = body.output_types if len(body.output_types) == 1 else (dtypes.bool_,)
            if body.arg_types != given or body.output_types != promised:
                raise errors.InvalidArgumentError(
                    node.node_def,
                    None,
                    f"Node '{node.name}' ({node.op}) and function '{function.name}' do not fit: the node has inputs "
                    f"{_show(given)} and outputs {_show(promised)}, the function {_show(body.arg_types)} and "
                    f"{_show(body.output_types)}.{node_reference(node.name)}",
                )

    def _keep(self, node: Node, lowered: Lowered) -> Lowered:
        """Puts what can be fetched, and run, under the name of a node of the client's own graph."""
        device = node.requested_device
        outputs = list(lowered.outputs)
        if node.op not in FUNCTIONAL_OPS or node.op in CALL_OPS:
            # An output of the body may be used in it too: what is fed by the name of the call must not reach that.
            outputs = [
                self.add("Identity", f"{node.name}/output", [tensor], {"T": dtype}, beside=tensor)
                for tensor, dtype in zip(outputs, node.output_types, strict=True)
            ]
        keep: dict[str, Any] = {"_lowered": True}
        if len(outputs) == 1:
            op, attrs = "Identity", {"T": node.output_types[0], **keep}
        elif outputs:
            op, attrs = "IdentityN", {"T": list(node.output_types), **keep}
        else:
            op, attrs = "NoOp", keep
        self.add(op, node.name, outputs, attrs, device=device, after=lowered.after, exact_name=True)
        return Lowered(outputs, lowered.after)

    def _finish(self, outputs: dict[TensorName, TensorName]) -> RuntimeGraph:
        nodes = {name: self._resolved(node) for name, node in self._nodes.items()}
        check_acyclic(nodes, [name for name, node in nodes.items() if not node.device])
        resolved = {tensor: self._tensor(instead) for tensor, instead in outputs.items()}
        return RuntimeGraph(nodes, self._graph.versions, self._graph.library, resolved)

    def _resolved(self, node: Node) -> Node:
        """The node with its edges led past what is gone."""
        inputs = tuple(self._tensor(tensor) for tensor in node.inputs)
        control = node.control_inputs
        if any(name in self._after for name in control):
            control = tuple(self._waited_for(control))
        beside = self._beside.get(node.name)
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


def _as_call(node: Node, graph: RuntimeGraph) -> Node:
    """A node that stays, in a form that every worker has a kernel for: a function's name is no op of theirs."""
    if node.op in FUNCTIONAL_OPS:
        return node
    op = "StatefulPartitionedCall" if node.op_def.is_stateful else "PartitionedCall"
    node_def = node_def_pb2.NodeDef(name=node.name, op=op, device=node.node_def.device)
    node_def.attr["f"].func.name = node.op
    for key, value in node.node_def.attr.items():
        if not key.startswith("_"):
            node_def.attr["f"].func.attr[key].CopyFrom(value)
    node_def.attr["Tin"].CopyFrom(to_proto([dtype.base_dtype for dtype in node.input_types], "list(type)"))
    node_def.attr["Tout"].CopyFrom(to_proto(list(node.output_types), "list(type)"))
    op_def = opdefs.get(op)
    return replace(node, op=op, op_def=op_def, node_def=node_def, attrs=resolve_attrs(op_def, node_def))


def _is_bool(node: Node) -> bool:
    return node.input_types[0].base_dtype is dtypes.bool_


def _show(types: Sequence[dtypes.DType]) -> str:
    return f"({', '.join(dtype.op_name for dtype in types)})"
