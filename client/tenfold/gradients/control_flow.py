"""Gradient rows of control flow; the op definitions are in framework/opdefs/control_flow.py.

A conditional is Switch and Merge: going backwards they swap roles, and dead branches stay dead because every
gradient of a branch depends on a tensor of that branch. Loops are refused by name.
Follows TensorFlow's ops/control_flow_grad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_differentiable, not_implemented
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.ops.op_builder import apply_op

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def _dense(grad: Any) -> Any:
    from tenfold.graph.conversion import convert_to_tensor

    return convert_to_tensor(grad) if isinstance(grad, IndexedSlices) else grad


@gradient("Switch", "RefSwitch")
def _switch(op: Operation, g_false: Any, g_true: Any) -> Any:
    if g_false is None or g_true is None:
        # A type that carries no gradient; the walk filled in zeros for every other.
        return None, None
    merged = apply_op("Merge", inputs=[_dense(g_false), _dense(g_true)], name="cond_grad")
    return merged[0], None


@gradient("Merge", "RefMerge")
def _merge(op: Operation, g: Any, _: Any) -> Any:
    # value_index says which input was alive; only that one gets the gradient, the others get a dead tensor.
    g = _dense(g)
    grads = []
    for index in range(len(op.inputs)):
        chosen = apply_op("Equal", x=op.outputs[1], y=index)
        grads.append(apply_op("Switch", data=g, pred=chosen, name="cond_grad")[1])
    return grads


@gradient("Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration", "While", "StatelessWhile")
def _loop(op: Operation, *g: Any) -> Any:
    raise LookupError(f"Gradients through loops are not implemented (operation '{op.name}', op type: {op.type})")


@gradient("Print")
def _print(op: Operation, g: Tensor) -> Any:
    return (g, *[None] * (len(op.inputs) - 1))


not_differentiable("NoOp", "ControlTrigger", "Assert", "Abort", "LoopCond", why="order and control, no value")
not_differentiable("PyFunc", why="the runtime cannot look inside")
not_implemented(
    "Case",
    "For",
    "If",
    "PartitionedCall",
    "RefSelect",
    "RemoteCall",
    "StatefulPartitionedCall",
    "StatelessCase",
    "StatelessIf",
    "SymbolicGradient",
)
