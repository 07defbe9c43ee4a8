"""Lowers If and Case to Switch and Merge, While to a loop of its own frame.

    input ─▶ Switch ─▶ body of a branch ─▶ Merge ─▶ consumers        pivots: the condition, alive in one branch only
               ▲ condition or index           (branch_executed: a Merge that waits for the side effects of both)

    input ─▶ Enter ─▶ Merge ─▶ Switch:1 ─▶ body ─▶ NextIteration ─▶ (Merge)
                        └▶ cond ─▶ LoopCond ─▶ (Switch)   Switch:0 ─▶ Exit ─▶ consumers

Called by lower.py. Follows lower_if_op.cc, lower_case_op.cc and lower_while_op.cc, names included; but loop variables
lie on the device of the loop where it has one, so that they cross to another task once, not in each iteration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import dtypes
from tenfold_core.node_names import TensorName, at_node

from .inline import inline_call
from .lowering import Lowered

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .functions import FunctionBody
    from .lowering import CallToLower, Lowering


def lower_branches(lowering: Lowering, call: CallToLower, branches: Sequence[FunctionBody]) -> Lowered:
    """Lowers one node. `branches` in the order of the Switch's outputs: of an If first the one for false."""
    node = call.node
    name = node.name
    decision, decision_type = node.inputs[0], node.input_types[0].base_dtype
    ports = range(len(branches))
    count: dict[str, Any] = {}
    if decision_type is dtypes.bool_:
        switch_op, label, merge_label = "Switch", "switch_pred", "output"
        pivot_names, branch_names = ["pivot_f", "pivot_t"], ["else", "then"]
        # TensorFlow's order: the branch for true comes first.
        order = [1, 0]
    else:
        switch_op, label, merge_label = "_SwitchN", "branch_index", "merge"
        pivot_names, branch_names = [f"pivot_{port}" for port in ports], [f"branch{port}" for port in ports]
        order = list(ports)
        count["num_outs"] = len(branches)

    def add(op: str, label: str, inputs: Sequence[TensorName], after: Sequence[str] = (), **attrs: Any) -> TensorName:
        return lowering.add(op, f"{name}/{label}", inputs, attrs, device=node.requested_device, after=after)

    switch = add(switch_op, label, [decision, decision], node.control_inputs, T=decision_type, **count)
    pivots = [add("Identity", pivot_names[port], [TensorName(switch.node, port)], T=decision_type) for port in ports]
    switches = [
        lowering.add(
            switch_op, f"{name}/{tensor.node}", [tensor, decision], {"T": dtype.base_dtype, **count}, beside=tensor
        )
        for tensor, dtype in zip(node.inputs[1:], node.input_types[1:], strict=True)
    ]
    outputs: list[list[TensorName]] = []
    ends: list[str] = []
    for port, branch in enumerate(branches):
        inputs = [TensorName(tensor.node, port) for tensor in switches]
        # Inputs are dead where the pivot is; but only the pivot waits for what the node waits for.
        ordered = [not node.control_inputs] * len(switches)
        results, after = inline_call(
            lowering, call, f"{name}/{branch_names[port]}", branch, inputs, [pivots[port].node], ordered
        )
        outputs.append(results)
        ends.extend(after)
    merges = [
        add("Merge", merge_label, [outputs[port][position] for port in order], T=dtype, N=len(branches))
        for position, dtype in enumerate(node.output_types)
    ]
    alive = [pivots[port] for port in order]
    executed = add("Merge", "branch_executed", alive, ends, T=decision_type, N=len(branches))
    return Lowered(merges, [executed.node])


def lower_loop(lowering: Lowering, call: CallToLower, cond: FunctionBody, body: FunctionBody) -> Lowered | None:
    """Lowers one node; None where its condition is no bool, which LoopCond cannot take.

    Raises InvalidArgumentError for a loop without any variable.
    """
    node = call.node
    name, device = node.name, node.requested_device
    if cond.output_types[0] is not dtypes.bool_:
        return None
    constant = _constants(body)
    types = [dtype.base_dtype for dtype in node.input_types]
    if all(constant):
        raise at_node(node, f"The loop '{name}' has no variable that could change.")
    after = lowering.one(f"{name}/LoopControlInputs", node.control_inputs, device)

    def add(
        op: str,
        label: str,
        inputs: Sequence[TensorName],
        near: TensorName | None = None,
        after: Sequence[str] = (),
        **attrs: Any,
    ) -> TensorName:
        """A node of the loop, on its device; where it has none, on that of `near`."""
        return lowering.add(op, f"{name}/{label}", inputs, attrs, device=device, after=after, beside=near)

    frame = {"frame_name": name, "parallel_iterations": int(node.attrs["parallel_iterations"])}
    enters = [
        add("Enter", "enter", [tensor], tensor, after, T=dtype, is_constant=is_constant, **frame)
        for tensor, dtype, is_constant in zip(node.inputs, types, constant, strict=True)
    ]
    changing = [position for position, is_constant in enumerate(constant) if not is_constant]
    # Named before they are made: a loop must be closed somewhere.
    nexts = {position: lowering.name(f"{name}/next_iteration") for position in changing}
    values = list(enters)
    for position in changing:
        entered, again = enters[position], TensorName(nexts[position], 0)
        values[position] = add("Merge", "merge", [entered, again], entered, T=types[position], N=2)
    first = changing[0]
    everywhere = [True] * len(values)
    decided, _ = inline_call(lowering, call, f"{name}/cond", cond, values, [values[first].node], everywhere)
    condition = add("LoopCond", "LoopCond", decided)
    exits = list(node.inputs)
    for position in changing:
        label, value = f"{node.inputs[position].node}_switch", values[position]
        switch = add("Switch", label, [value, condition], value, T=types[position])
        values[position] = TensorName(switch.node, 1)
        exits[position] = add("Exit", "exit", [switch], switch, T=types[position])
    pivot = add("Identity", "loop_body_control", [values[first]], T=types[first])
    # What is constant is alive after the last iteration too, when the body must not run.
    ordered = [not is_constant for is_constant in constant]
    results, ends = inline_call(lowering, call, f"{name}/body", body, values, [pivot.node], ordered)
    for position in changing:
        lowering.add(
            "NextIteration",
            nexts[position],
            [results[position]],
            {"T": types[position]},
            device=device,
            after=ends,
            beside=enters[position],
            exact_name=True,
        )
    executed = add("NoOp", "LoopExecuted", (), after=[exits[position].node for position in changing])
    return Lowered(exits, [executed.node])


def _constants(body: FunctionBody) -> list[bool]:
    """Per variable: whether it is a resource that the body hands on as it is.

    Such a one goes round no loop: it is a constant Enter, and consumers take it from where it came.
    """
    nodes = {node.name: node for node in body.nodes}
    found = []
    for number, (dtype, tensor) in enumerate(zip(body.arg_types, body.returns, strict=True)):
        while tensor not in body.args and nodes[tensor.node].op == "Identity":
            tensor = nodes[tensor.node].inputs[0]
        found.append(dtype is dtypes.resource and body.args.get(tensor) == number)
    return found
