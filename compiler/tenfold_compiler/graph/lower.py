"""Turns calls of functions and functional control flow into plain nodes: a graph that the other passes understand.

    x ─▶ PartitionedCall f ─▶ y     becomes     x ─▶ call/mul ─▶ call/output ─▶ y,    call = Identity(call/output)

Calls are replaced by the function's body (inline.py), If and Case by Switch and Merge (lower_if.py), While by a loop of
Enter and Exit (lower_while.py). Consumers are led past the old node; under its name stays an Identity or IdentityN,
which can be fetched, and run for the side effects. Called by master/session_graph.py before place, for all nodes that
came anew. A function that calls itself is left alone where it does: the worker calls it when the step gets there
(worker/functions.py). Follows TensorFlow's lower_functional_ops.cc.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tenfold_core import dtypes, errors, opdefs
from tenfold_core.attr_value import to_proto
from tenfold_core.node_attrs import resolve_attrs
from tenfold_core.node_names import TensorName, node_reference
from tenfold_core.op_gradients import no_gradients
from tenfold_protos import attr_value_pb2, node_def_pb2

from .function_fit import check_fits, check_gradient, is_loop
from .function_gradients import FunctionGradients
from .inline import inline_call
from .lower_if import lower_branches
from .lower_while import lower_loop
from .lowering import CALL_OPS, CASE_OPS, FUNCTIONAL_OPS, IF_OPS, WHILE_OPS, CallToLower, Lowered, Lowering
from .runtime_graph import MAX_NODES

if TYPE_CHECKING:
    from typing import Any

    from tenfold_core.op_gradients import OpGradients

    from .node import Node
    from .runtime_graph import RuntimeGraph

#: The client's own word on a branch or loop; we lower them all but those for which it says no.
_LOWERING = "_lower_using_switch_merge"


def lower(
    graph: RuntimeGraph,
    *,
    max_nodes: int = MAX_NODES,
    control_flow: bool = True,
    gradients: OpGradients = no_gradients,
) -> RuntimeGraph:
    """The graph without functional nodes, but for those of functions that call themselves. Never blocks.

    `gradients` makes those of plain ops, where the graph asks for the gradient of a function.
    Without `control_flow`, branches and loops stay too: a session may ask for TensorFlow's single-threaded executor,
    which knows no Switch, and see in its statistics that it got it.
    Raises InvalidArgumentError or NotFoundError naming the function that is wrong or missing and the node that needs
    it, ResourceExhaustedError where the bodies have too many nodes.
    """
    if not graph.library and not any(node.op == "SymbolicGradient" for node in graph.nodes.values()):
        return graph
    return _Lower(graph, max_nodes, control_flow, gradients).run()


class _Lower:
    """One run of the pass."""

    def __init__(self, graph: RuntimeGraph, max_nodes: int, control_flow: bool, gradients: OpGradients) -> None:
        self._graph, self._control_flow = graph, control_flow
        self._lowering = Lowering(graph, max_nodes)
        self._functions = self._lowering.functions
        self._gradients = FunctionGradients(self._functions, gradients)

    def run(self) -> RuntimeGraph:
        lowering = self._lowering
        outputs = dict(self._graph.outputs)
        while lowering.pending:
            call = lowering.pending.popleft()
            try:
                lowered = self._lower(call)
            except errors.OpError as error:
                if "{{node " in error.message:
                    raise
                raise errors.from_code(
                    error.code, error.message + node_reference(call.node.name), call.node.node_def
                ) from None
            if lowered is None:
                lowering.leave(_as_call(call.node, self._graph))
                continue
            if not call.chain:
                lowered = _keep(lowering, call.node, lowered)
                for port, tensor in enumerate(lowered.outputs):
                    outputs[TensorName(call.node.name, port)] = tensor
            lowering.lead_past(call.node.name, lowered)
        return lowering.finish(outputs)

    def _lower(self, call: CallToLower) -> Lowered | None:
        """None where the node stays: it is a part of itself, decides by more than a bool, or the client wants it."""
        node = call.node
        attr = node.node_def.attr
        if node.op in WHILE_OPS:
            called = [attr["cond"].func, attr["body"].func]
        elif node.op in IF_OPS:
            # `If` decides at output 0 of the Switch when the condition is false.
            called = [attr["else_branch"].func, attr["then_branch"].func]
        elif node.op in CASE_OPS:
            called = list(attr["branches"].list.func)
        elif node.op == "SymbolicGradient":
            called = [self._gradients.of(attr["f"].func)]
            check_gradient(self._functions, node, called[0])
        elif node.op in CALL_OPS:
            called = [attr["f"].func]
        else:
            called = []
        if any(function.name in call.chain for function in called) or node.op in call.chain:
            return None
        keep = not self._control_flow or node.attrs.get(_LOWERING) is False
        if keep and called and node.op not in CALL_OPS:
            return None
        if node.op in WHILE_OPS and not is_loop(self._functions, node, *called):
            return None
        check_fits(self._functions, node, called)
        if node.op in WHILE_OPS:
            return lower_loop(self._lowering, call, called[0], called[1])
        if node.op in IF_OPS:
            return lower_branches(self._lowering, call, called, ["else", "then"]) if _is_bool(node) else None
        if node.op in CASE_OPS:
            return lower_branches(self._lowering, call, called, [f"branch{number}" for number in range(len(called))])
        function = called[0] if called else attr_value_pb2.NameAttrList(name=node.op, attr=attr)
        device, inputs = node.requested_device, node.inputs
        if node.op == "RemoteCall":
            target = _constant_text(self._lowering, inputs[0])
            if target is None:
                return None
            device, inputs = target, inputs[1:]
        outputs, after = inline_call(
            self._lowering,
            node.name,
            function,
            inputs,
            after=node.control_inputs,
            device=device,
            chain=call.chain,
            one_device=not called,
        )
        return Lowered(outputs, after)


def _keep(lowering: Lowering, node: Node, lowered: Lowered) -> Lowered:
    """Puts what can be fetched, and run, under the name of a node of the client's own graph."""
    device = node.requested_device
    outputs = list(lowered.outputs)
    if node.op not in FUNCTIONAL_OPS or node.op in CALL_OPS:
        # An output of the body may be used in it too: what is fed by the name of the call must not reach that.
        outputs = [
            lowering.add("Identity", f"{node.name}/output", [tensor], {"T": dtype}, beside=tensor)
            for tensor, dtype in zip(outputs, node.output_types, strict=True)
        ]
    keep: dict[str, Any] = {"_lowered": True}
    if len(outputs) == 1:
        op, attrs = "Identity", {"T": node.output_types[0], **keep}
    elif outputs:
        op, attrs = "IdentityN", {"T": list(node.output_types), **keep}
    else:
        op, attrs = "NoOp", keep
    lowering.add(op, node.name, outputs, attrs, device=device, after=lowered.after, exact_name=True)
    return Lowered(outputs, lowered.after)


def _constant_text(lowering: Lowering, tensor: TensorName) -> str | None:
    """The value of a constant string; None for anything else."""
    found = lowering.producer(tensor)
    if found is None or found.op != "Const" or found.output_types[0] is not dtypes.string:
        return None
    value = found.node_def.attr["value"].tensor.string_val
    return value[0].decode(errors="replace") if len(value) == 1 else None


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
