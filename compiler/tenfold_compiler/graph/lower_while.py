"""Lowers While to a loop of its own frame.

    input ─▶ Enter ─▶ Merge ─▶ Switch:1 ─▶ body ─▶ NextIteration ─▶ (Merge)
                        └▶ cond ─▶ LoopCond ─▶ (Switch)   Switch:0 ─▶ Exit ─▶ consumers

A resource that the body hands on as it is goes round no loop: it is a constant Enter, and consumers take it from where
it came. Called by lower.py. Follows lower_while_op.cc, names included; loop variables, however, lie on the device of
the loop where it has one, so that they cross to another task once and not in each iteration.
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

    from tenfold_protos.attr_value_pb2 import NameAttrList

    from .functions import FunctionBody
    from .lowering import CallToLower, Lowering


def lower_loop(lowering: Lowering, call: CallToLower, cond: NameAttrList, body: NameAttrList) -> Lowered | None:
    """Lowers one node; None where its condition is no bool, which LoopCond cannot take.

    Raises InvalidArgumentError for a loop without any variable.
    """
    node = call.node
    name, device = node.name, node.requested_device
    if lowering.functions.body(cond.name, cond.attr).output_types[0] is not dtypes.bool_:
        return None
    constant = _constants(lowering.functions.body(body.name, body.attr))
    types = [dtype.base_dtype for dtype in node.input_types]
    if all(constant):
        raise at_node(node, f"The loop '{name}' has no variable that could change.")
    after = lowering.one(f"{name}/LoopControlInputs", node.control_inputs, device)

    def add(
        op: str, label: str, inputs: Sequence[TensorName], near: TensorName | None = None, **attrs: Any
    ) -> TensorName:
        """A node of the loop, on its device; where it has none, on that of `near`."""
        return lowering.add(op, f"{name}/{label}", inputs, attrs, device=device, beside=None if device else near)

    frame = {"frame_name": name, "parallel_iterations": int(node.attrs["parallel_iterations"])}
    enters = [
        lowering.add(
            "Enter",
            f"{name}/enter",
            [tensor],
            {"T": dtype, "is_constant": is_constant, **frame},
            device=device,
            after=after,
            beside=None if device else tensor,
        )
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
    decided, _ = inline_call(
        lowering,
        f"{name}/cond",
        cond,
        values,
        after=[values[first].node],
        device=device,
        chain=call.chain,
        ordered=[True] * len(values),
    )
    condition = add("LoopCond", "LoopCond", decided)
    exits = list(node.inputs)
    for position in changing:
        label, value = f"{node.inputs[position].node}_switch", values[position]
        switch = add("Switch", label, [value, condition], value, T=types[position])
        values[position] = TensorName(switch.node, 1)
        exits[position] = add("Exit", "exit", [switch], switch, T=types[position])
    pivot = add("Identity", "loop_body_control", [values[first]], T=types[first])
    results, ends = inline_call(
        lowering,
        f"{name}/body",
        body,
        values,
        after=[pivot.node],
        device=device,
        chain=call.chain,
        # What is constant is alive after the last iteration too, when the body must not run.
        ordered=[not is_constant for is_constant in constant],
    )
    for position in changing:
        lowering.add(
            "NextIteration",
            nexts[position],
            [results[position]],
            {"T": types[position]},
            device=device,
            after=ends,
            beside=None if device else enters[position],
            exact_name=True,
        )
    waits = [exits[position].node for position in changing]
    executed = lowering.add("NoOp", f"{name}/LoopExecuted", (), {}, device=device, after=waits)
    return Lowered(exits, [executed.node])


def _constants(body: FunctionBody) -> list[bool]:
    """Per variable: whether it is a resource that the body hands on as it is."""
    nodes = {node.name: node for node in body.nodes}
    found = []
    for number, (dtype, tensor) in enumerate(zip(body.arg_types, body.returns, strict=True)):
        while tensor not in body.args and nodes[tensor.node].op == "Identity":
            tensor = nodes[tensor.node].inputs[0]
        found.append(dtype is dtypes.resource and body.args.get(tensor) == number)
    return found
