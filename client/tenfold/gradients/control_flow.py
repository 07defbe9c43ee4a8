"""Gradient rows of control flow; the op definitions are in tenfold_core/opdefs/control_flow.py.

In the gradient, Switch and Merge swap roles, and so do Enter and Exit. The Switch of a loop variable is visited twice:
with the gradient of its Exit, and with the gradient from the loop body. loop_state.py provides the forward values that
a gradient needs inside a loop. Follows TensorFlow 1.15's ops/control_flow_grad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.loop_parts import add_accumulator, add_slices_accumulator
from tenfold.gradients.registry import gradient, not_differentiable, not_implemented
from tenfold.graph.control_flow_context import inside, output_context
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import apply_op
from tenfold.ops.control_flow_primitives import enter, exit, merge, switch, switch_ref_or_tensor
from tenfold.ops.control_flow_while import close_loop

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def _gradient_loop() -> Any:
    """The gradient loop that operations are being added to."""
    context = get_default_graph()._control_flow_context
    if context is None:
        raise LookupError(
            "Gradients through loops need the loop's context: the graph was imported without its meta graph"
        )
    return context


@gradient("Switch", "RefSwitch")
def _switch(op: Operation, g_false: Any, g_true: Any) -> Any:
    # but for a loop's, the walk has filled in zeros for the branch that nothing depends on
    context: Any = op._control_flow_context
    if context is not None and context.is_while:
        return _loop_switch(op, g_false, g_true), None
    if context is not None and context.is_cond:
        return merge([g_false, g_true], name="cond_grad")[0], None
    # Made by the raw op or imported without contexts: both outputs may be alive at once.
    false = switch(g_false, op.inputs[1])[0]
    true = switch(g_true, op.inputs[1])[1]
    return merge([false, true])[0], None


def _loop_switch(op: Operation, g_exit: Any, g_body: Any) -> Any:
    states = _gradient_loop().grad_state.switch_map
    merged = states.get(op)
    if merged is not None:
        # The second visit: the first one returned the Merge as the gradient; now its second input is known.
        if g_body is not None:
            close_loop(merged, g_body, enforce_shape_invariant=False)
        return None
    if g_exit is None:
        return None
    merged = states[op] = merge([g_exit, g_exit], name="b_switch")[0]
    return merged


@gradient("Merge", "RefMerge")
def _merge(op: Operation, g: Any, _: Any) -> Any:
    context: Any = output_context(op.inputs[0].op)
    current = get_default_graph()._control_flow_context
    if context is not None and context.is_while:
        return list(switch_ref_or_tensor(g, _gradient_loop().pivot))
    if context is not None and context.is_cond:
        pred = context.pred
        if current is not None and current.grad_state is not None:
            pred = current.grad_state.kept_pred(pred)
        return list(switch_ref_or_tensor(g, pred, name="cond_grad"))
    # value_index says which input was alive; only that one gets the gradient, the others get a dead tensor.
    grads = []
    for index in range(len(op.inputs)):
        chosen = apply_op("Equal", x=op.outputs[1], y=index)
        grads.append(switch_ref_or_tensor(g, chosen)[1])
    return grads


@gradient("Exit", "RefExit")
def _exit(op: Operation, g: Any) -> Any:
    loop = _gradient_loop()
    if not loop.back_prop:
        # The user set back_prop=False.
        return None
    context = op._control_flow_context
    if context is not None and context.grad_state is not None:
        raise TypeError("Second-order gradient for while loops not supported.")
    if isinstance(g, IndexedSlices):
        # what one turn makes of slices is dense mostly, and the next one must get the same kind
        with get_default_graph().control_dependencies(None), inside(loop.outer_context):
            g = convert_to_tensor(g)
    loop.add_name(g.name)
    with loop.entered():
        result = enter(g, loop.name, is_constant=False, parallel_iterations=loop.parallel_iterations, name="b_exit")
        loop.loop_enters.append(result)
    return result


@gradient("NextIteration", "RefNextIteration")
def _next_iteration(_: Operation, g: Any) -> Any:
    return g


@gradient("Enter", "RefEnter")
def _enter(op: Operation, g: Any) -> Any:
    loop = _gradient_loop()
    if not loop.back_prop or loop.grad_state is None:
        # The user set back_prop=False, or this is a gradient inside one iteration.
        return g
    if op._attrs["is_constant"]:
        # Every iteration uses the constant, so sum over all of them.
        if isinstance(g, IndexedSlices):
            return add_slices_accumulator(loop, op, g)
        return add_accumulator(loop, op, g)
    result = exit(g)
    loop.loop_exits.append(result)
    loop.exit_result([result] if not isinstance(g, IndexedSlices) else result._to_components())
    return result


@gradient("Print")
def _print(op: Operation, g: Tensor) -> Any:
    return (g, *[None] * (len(op.inputs) - 1))


not_differentiable("NoOp", "ControlTrigger", "Assert", "Abort", "LoopCond", why="order and control, no value")
not_differentiable("Timestamp", why="a clock")
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
    "StatelessWhile",
    "SymbolicGradient",
    "While",
)
not_differentiable(
    "PrintV2",
    "ToBool",
)
not_implemented(
    "_SwitchN",
)
