"""Turns calls of functions and functional control flow into plain nodes: a graph that the other passes understand.

    x ─▶ PartitionedCall f ─▶ y     becomes     x ─▶ call/mul ─▶ call/output ─▶ y,    call = Identity(call/output)

Calls are replaced by the function's body (inline.py), If, Case and While by Switch and Merge, Enter and Exit
(lower_control_flow.py). Consumers are led past the old node; under its name stays an Identity or IdentityN, which can
be fetched, and run for the side effects. Called by master/session_graph.py before place, for all nodes that came anew.
A function that calls itself is left alone where it does: the worker calls it when the step gets there
(worker/functions.py). Follows TensorFlow's lower_functional_ops.cc.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tenfold_core import dtypes, errors, opdefs
from tenfold_core.attr_value import to_proto
from tenfold_core.node_attrs import resolve_attrs
from tenfold_core.node_names import TensorName, at_node, node_reference
from tenfold_core.op_gradients import no_gradients
from tenfold_protos import attr_value_pb2, node_def_pb2

from .function_gradients import FunctionGradients
from .inline import inline_call
from .lower_control_flow import lower_branches, lower_loop
from .lowering import CALL_OPS, CASE_OPS, FUNCTIONAL_OPS, IF_OPS, WHILE_OPS, CallToLower, Lowered, Lowering
from .runtime_graph import MAX_NODES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tenfold_core.op_gradients import OpGradients

    from .functions import FunctionBody
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
    lowering = Lowering(graph, max_nodes)
    of_functions = FunctionGradients(lowering.functions, gradients)
    outputs = dict(graph.outputs)
    while lowering.pending:
        call = lowering.pending.popleft()
        try:
            lowered = _lower(lowering, call, of_functions, control_flow=control_flow)
        except errors.OpError as error:
            if "{{node " in error.message:
                raise
            raise errors.from_code(
                error.code, error.message + node_reference(call.node.name), call.node.node_def
            ) from None
        if lowered is None:
            lowering.nodes[call.node.name] = _as_call(call.node)
            continue
        if not call.chain:
            lowered = _keep(lowering, call.node, lowered)
            for port, tensor in enumerate(lowered.outputs):
                outputs[TensorName(call.node.name, port)] = tensor
        lowering.lead_past(call.node.name, lowered)
    return lowering.finish(outputs)


def _lower(
    lowering: Lowering, call: CallToLower, gradients: FunctionGradients, *, control_flow: bool
) -> Lowered | None:
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
        called = [gradients.of(attr["f"].func)]
    elif node.op in CALL_OPS:
        called = [attr["f"].func]
    else:
        called = [attr_value_pb2.NameAttrList(name=node.op, attr=attr)]
    if any(function.name in call.chain for function in called):
        return None
    keep = not control_flow or node.attrs.get(_LOWERING) is False
    if keep and node.op in WHILE_OPS | IF_OPS | CASE_OPS:
        return None
    bodies = [lowering.functions.body(function.name, function.attr) for function in called]
    if node.op in WHILE_OPS and [len(body.output_types) for body in bodies] != [1, len(node.output_types)]:
        return None  # the kernel of While says so
    if node.op in FUNCTIONAL_OPS:
        for number, body in enumerate(bodies):
            _check_fits(node, body, is_condition=node.op in WHILE_OPS and number == 0)
    if node.op in WHILE_OPS:
        return lower_loop(lowering, call, *bodies)
    if node.op in IF_OPS and node.input_types[0].base_dtype is not dtypes.bool_:
        return None
    if node.op in IF_OPS | CASE_OPS:
        return lower_branches(lowering, call, bodies)
    inputs = node.inputs
    if node.op == "RemoteCall":
        target = _constant_text(lowering, inputs[0])
        if target is None:
            return None
        call = call._replace(node=replace(node, requested_device=target))
        inputs = inputs[1:]
    return Lowered(*inline_call(lowering, call, node.name, bodies[0], inputs, node.control_inputs))


def _check_fits(node: Node, body: FunctionBody, *, is_condition: bool) -> None:
    """What a function takes and gives must be what its node promises; a condition gives what decides."""
    if node.op == "SymbolicGradient" and len(body.output_types) != len(node.output_types):
        # a client's own gradient function may give too few
        raise at_node(
            node,
            f"SymGrad expects to return {len(node.output_types)} tensor(s), but get {len(body.output_types)} tensor(s) "
            "instead.",
        )
    has_own_input = node.op in IF_OPS | CASE_OPS or node.op == "RemoteCall"
    given = tuple(dtype.base_dtype for dtype in node.input_types[has_own_input:])
    promised = body.output_types if is_condition else node.output_types
    if body.arg_types != given or body.output_types != promised:
        raise at_node(
            node,
            f"Node '{node.name}' ({node.op}) and function '{body.name}' do not fit: the node has inputs "
            f"{_show(given)} and outputs {_show(promised)}, the function {_show(body.arg_types)} and "
            f"{_show(body.output_types)}.",
        )


def _show(types: Sequence[dtypes.DType]) -> str:
    return f"({', '.join(dtype.op_name for dtype in types)})"


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


def _as_call(node: Node) -> Node:
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
