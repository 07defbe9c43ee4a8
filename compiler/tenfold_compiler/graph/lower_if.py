"""Lowers If and Case: a Switch for each input, the branches' bodies, a Merge for each output.

    input ─▶ Switch ─▶ body of a branch ─▶ Merge ─▶ consumers        pivots: the condition, alive in one branch only
               ▲ condition or index           (branch_executed: a Merge that waits for the side effects of both)

Called by lower.py. Follows lower_if_op.cc and lower_case_op.cc, names included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import dtypes
from tenfold_core.node_names import TensorName

from .inline import inline_call
from .lowering import Lowered

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tenfold_protos.attr_value_pb2 import NameAttrList

    from .lowering import CallToLower, Lowering


def lower_branches(
    lowering: Lowering, call: CallToLower, branches: Sequence[NameAttrList], branch_names: Sequence[str]
) -> Lowered:
    """Lowers one node. `branches` in the order of the Switch's outputs: of an If first the one for false."""
    node = call.node
    name, device = node.name, node.requested_device
    decision = node.inputs[0]
    decision_type = node.input_types[0].base_dtype
    is_if = decision_type is dtypes.bool_
    switch_op = "Switch" if is_if else "_SwitchN"
    count: dict[str, Any] = {} if is_if else {"num_outs": len(branches)}

    def add(op: str, label: str, inputs: Sequence[TensorName], after: Sequence[str] = (), **attrs: Any) -> TensorName:
        return lowering.add(op, f"{name}/{label}", inputs, attrs, device=device, after=after)

    label = "switch_pred" if is_if else "branch_index"
    switch = add(switch_op, label, [decision, decision], node.control_inputs, T=decision_type, **count)
    pivot_names = ["pivot_f", "pivot_t"] if is_if else [f"pivot_{number}" for number in range(len(branches))]
    pivots = [
        add("Identity", pivot, [TensorName(switch.node, port)], T=decision_type)
        for port, pivot in enumerate(pivot_names)
    ]
    switches = [
        lowering.add(
            switch_op, f"{name}/{tensor.node}", [tensor, decision], {"T": dtype.base_dtype, **count}, beside=tensor
        )
        for tensor, dtype in zip(node.inputs[1:], node.input_types[1:], strict=True)
    ]
    outputs: list[list[TensorName]] = []
    ends: list[str] = []
    for port, (branch, branch_name) in enumerate(zip(branches, branch_names, strict=True)):
        results, after = inline_call(
            lowering,
            f"{name}/{branch_name}",
            branch,
            [TensorName(tensor.node, port) for tensor in switches],
            after=[pivots[port].node],
            device=device,
            chain=call.chain,
            # Inputs are dead where the pivot is; but only the pivot waits for what the node waits for.
            ordered=[not node.control_inputs] * len(switches),
        )
        outputs.append(results)
        ends.extend(after)
    # TensorFlow's order: the branch for true comes first.
    order = [1, 0] if is_if else list(range(len(branches)))
    label = "output" if is_if else "merge"
    merges = [
        add("Merge", label, [outputs[branch][position] for branch in order], T=dtype, N=len(branches))
        for position, dtype in enumerate(node.output_types)
    ]
    alive = [pivots[branch] for branch in order]
    executed = add("Merge", "branch_executed", alive, ends, T=decision_type, N=len(branches))
    return Lowered(merges, [executed.node])
