"""The gradient of loops: the loop that computes it, and how it gets the values of the forward iterations.

Each forward loop with a gradient has a `GradLoopState`: a loop with as many iterations, in reverse order. A forward
value that the gradient needs is pushed on a stack by each forward iteration and popped by each backward one; a
constant of the loop is used directly. `ControlFlowState` holds those of one call of `tf.gradients`; walker.py calls
it, control_flow.py has the rules. Follows TensorFlow 1.15's control_flow_state.py.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from tenfold.gradients.loop_parts import add_backprop_counter, add_forward_counter, no_rows, table_of
from tenfold.graph.constant_value import known_value
from tenfold.graph.control_flow_context import (
    constant_enter_of,
    inside,
    is_exit,
    is_loop_switch,
    is_switch,
    output_context,
    while_context_of,
)
from tenfold.graph.default_scopes import colocate_with, control_dependencies
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.ops import array
from tenfold.ops.control_flow_primitives import next_iteration, switch, switch_ref_or_tensor
from tenfold.ops.while_context import WhileContext
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, MutableMapping
    from contextlib import AbstractContextManager

    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


class GradLoopState:
    """One forward loop and the loop of its gradient; `outer_grad_state` is of the loop around, if there is one."""

    def __init__(self, forward_context: WhileContext, outer_grad_state: GradLoopState | None) -> None:
        self.outer_grad_state = outer_grad_state
        self.forward_context = forward_context
        #: Name of a forward value → the tensor for it in the gradient loop.
        self.history_map: dict[str, Tensor] = {}
        #: Switch of a forward loop variable → the Merge that carries its gradient backwards.
        self.switch_map: dict[Operation, Tensor] = {}
        #: Exits of the forward loop on which no y depends, and those whose gradient waits for the others.
        self.unused_exits: list[Tensor] = []
        self.deferred_exits: list[Tensor] = []
        #: Before counters are added to the loop.
        self.forward_loop_exits: list[Tensor] = list(forward_context.loop_exits)
        self.pending_exits_count = len(self.forward_loop_exits)
        self._forward_sync: Operation | None = None
        self._grad_sync: Operation | None = None
        around = outer_grad_state.forward_context if outer_grad_state is not None else forward_context.outer_context
        with forward_context.graph.as_default(), inside(around):
            count, self.forward_index = add_forward_counter(forward_context, outer_grad_state)
        if outer_grad_state is None:
            with inside(around):
                self.grad_context = self._new_loop()
                self.grad_index = add_backprop_counter(self.grad_context, count, None)
            return
        assert around is not None
        around.add_name(count.name)
        history = outer_grad_state.add_forward_accumulator(count)
        with outer_grad_state.grad_context.entered():
            self.grad_context = self._new_loop()
            real_count = outer_grad_state.add_backprop_accumulated_value(history, count)
            self.grad_index = add_backprop_counter(self.grad_context, real_count, outer_grad_state)

    def _new_loop(self) -> WhileContext:
        forward = self.forward_context
        return WhileContext(
            maximum_iterations=forward.maximum_iterations,
            parallel_iterations=forward.parallel_iterations,
            back_prop=forward.back_prop,
            swap_memory=forward.swap_memory,
            name=forward.name,
            grad_state=self,
        )

    @property
    def forward_sync(self) -> Operation:
        """Before the next forward iteration, this trigger waits for pushes inside branches, which may be dead."""
        if self._forward_sync is None:
            self._forward_sync = self._trigger("f_sync", self.forward_context, self.forward_index)
        return self._forward_sync

    @property
    def grad_sync(self) -> Operation:
        """Before the next backward iteration, this trigger waits for the pops of this one, to keep their order."""
        if self._grad_sync is None:
            self._grad_sync = self._trigger("b_sync", self.grad_context, self.grad_index)
            if self.grad_context.outer_context is not None:
                self.grad_context.outer_context.add_inner_op(self._grad_sync)
        return self._grad_sync

    @staticmethod
    def _trigger(name: str, context: WhileContext, index: Tensor) -> Operation:
        with control_dependencies(None):
            # A ControlTrigger runs even if what it waits for is dead.
            trigger: Operation = apply_op("ControlTrigger", name)
        trigger._control_flow_context = context
        index.op._add_control_input(trigger)
        return trigger

    # --- forward values ---

    def add_forward_accumulator(self, value: Tensor, dead_branch: bool = False) -> Tensor:
        """A stack on which each forward iteration pushes `value`; made in the current context.

        With `dead_branch`, `value` is of a branch but pushed when that is *not* taken.
        """
        with self.forward_index.graph.as_default():
            current = get_default_graph()._control_flow_context
            with control_dependencies(None):
                # On the device of the value: the gradient may be computed on another task.
                with inside(current), colocate_with(value, ignore_existing=True):
                    size = array.constant(-1, dtypes.int32)
                    stack = tensor_op("StackV2", "f_acc", max_size=size, elem_type=value.dtype.base_dtype)
                with _on_stack_device(stack):
                    entered = self.forward_context.add_value(stack)
                self._push(entered, value, dead_branch)
        return stack

    def _push(self, stack: Tensor, value: Tensor, dead_branch: bool) -> None:
        context = output_context(value.op)
        if context is self.forward_context:
            with self.forward_context.entered():
                push = self._pushed(stack, value)
            self.forward_index.op._add_control_input(push.op)
        else:
            if context is None or not context.is_cond:
                raise TypeError(f"value_ctxt is not a CondContext: {context}")
            with inside(context.outer_context if dead_branch else context):
                push = self._pushed(stack, value)
            if dead_branch:
                push.op._control_flow_context = context
            self.forward_sync._add_control_input(push.op)
        # Pushes of one iteration come after those of the one before.
        push.op._add_control_input(self.forward_index.op.inputs[0].op)

    def _pushed(self, stack: Tensor, value: Tensor) -> Tensor:
        with _on_stack_device(stack):
            return tensor_op("StackPushV2", handle=stack, elem=value, swap_memory=self.forward_context.swap_memory)

    def add_backprop_accumulated_value(self, history: Tensor, value: Tensor, dead_branch: bool = False) -> Tensor:
        """The value of `value` in the forward iteration that the gradient is at, popped from the stack `history`."""
        history_context = history.op._control_flow_context
        branch: Any = None
        context = value.op._control_flow_context
        while context is not None and context is not history_context:
            if context.is_cond:
                branch = context
                break
            context = context.outer_context
        with control_dependencies(None), self.grad_context.entered():
            if branch is not None:
                # Only iterations that took the branch have pushed.
                taken = 1 - branch.branch if dead_branch else branch.branch
                history = switch_ref_or_tensor(history, self._kept_pred(branch))[taken]
            with _on_stack_device(history):
                popped = tensor_op("StackPopV2", handle=history, elem_type=value.dtype.base_dtype)
            popped.set_shape(value.shape)
        if self.grad_context.parallel_iterations > 1:
            self.grad_sync._add_control_input(popped.op)
        return popped

    def _kept_pred(self, branch: Any) -> Tensor:
        state: GradLoopState | None = self
        while state is not None:
            pred = state.history_map.get(branch.pred.name)
            if pred is not None:
                return pred
            state = state.outer_grad_state
        found: Tensor = branch.pred
        return found

    def real_value(self, value: Tensor) -> Tensor:
        """The tensor for the forward value `value` in the gradient loop, which is the current context."""
        known = self.history_map.get(value.name)
        if known is None:
            known = self.history_map[value.name] = self._found_value(value)
        return known

    def _found_value(self, value: Tensor) -> Tensor:
        state: GradLoopState = self
        while True:
            entered = constant_enter_of(value)
            if entered is not None:
                # A constant of this loop may be a constant of the outer loop too.
                value = entered.inputs[0]
                if state.outer_grad_state is None:
                    return self.grad_context.add_value(value)
                state = state.outer_grad_state
            elif value.op.type == "Const":
                return array.constant(known_value(value), dtype=value.dtype)
            else:
                with self.grad_context.left():
                    history = state.add_forward_accumulator(value)
                popped = state.add_backprop_accumulated_value(history, value)
                return popped if state is self else self.grad_context.add_value(popped)

    def kept_pred(self, pred: Tensor) -> Tensor:
        """The condition `pred` of a branch in the forward loop; the gradient loop is the current context."""
        known = self.history_map.get(pred.name)
        if known is None:
            with self.grad_context.left():
                history = self.add_forward_accumulator(pred)
            known = self.history_map[pred.name] = self.add_backprop_accumulated_value(history, pred)
        return known


def _on_stack_device(stack: Tensor) -> AbstractContextManager[None]:
    """Takes an operation on a stack out of the colocation with the operation whose gradient needs the value.

    TensorFlow leaves it there, and refuses such a graph when the two are on different devices.
    """
    if not stack.graph._colocation_stack:
        return nullcontext()
    while stack.op.type != "StackV2":
        stack = stack.op.inputs[0]
    return colocate_with(stack, ignore_existing=True)


class ControlFlowState:
    """The loops of one call of `tf.gradients`."""

    def __init__(self) -> None:
        self._states: dict[WhileContext, GradLoopState] = {}

    def of(self, op: Operation, before: bool) -> GradLoopState | None:
        """The state of the loop that `op` is in. `before` its gradient, an Exit is still outside."""
        context: Any = op._control_flow_context
        if before and is_exit(op):
            context = context.outer_context
        loop = None if context is None else context.while_context()
        return None if loop is None else self._states.get(loop)

    @contextmanager
    def entered(self, op: Operation, before: bool) -> Iterator[None]:
        """The block makes operations of the gradient loop that `op` belongs to."""
        state = self.of(op, before)
        with inside(None if state is None else state.grad_context):
            yield

    def add(self, op: Operation, between: list[Operation], seen: set[Operation]) -> None:
        """Makes the state of the loop that the Exit `op` ends; its other exits are visited, too."""
        forward = while_context_of(op)
        if forward is None:
            raise ValueError(
                f"Failed to call gradients on a while loop without properly serializing graph via MetaGraphDef "
                f"('{op.name}' is the exit of a loop that the graph knows no context of)"
            )
        if forward in self._states:
            return
        around = forward.outer_context
        outer = None if around is None else around.while_context()
        state = self._states[forward] = GradLoopState(forward, None if outer is None else self._states.get(outer))
        for tensor in state.forward_loop_exits:
            if tensor.op not in seen:
                seen.add(tensor.op)
                between.append(tensor.op)

    def process_unused_exits(
        self, pending: MutableMapping[Operation, int], to_ops: Container[Operation]
    ) -> list[Tensor]:
        """The unused exits of loops all of whose used exits are ready; they get zeros."""
        ready: list[Tensor] = []
        for state in self._states.values():
            for tensor in state.forward_loop_exits:
                if pending[tensor.op] == 0:
                    state.pending_exits_count -= 1
                    if tensor.op not in to_ops:
                        state.unused_exits.append(tensor)
                    if state.pending_exits_count == 0:
                        ready.extend(state.unused_exits)
            for tensor in state.forward_context.loop_enters:
                if pending[tensor.op] == 0:
                    pending[tensor.op] = 1
        return ready

    # --- zeros for outputs that no y depends on ---

    def zeros_for_exit(self, value: Tensor) -> Tensor:
        """Zeros like the exit `value`, as its gradient outside of the loop."""
        context = value.op._control_flow_context
        assert context is not None
        around = context.outer_context
        outer = None if around is None else around.while_context()
        state = None if outer is None else self._states.get(outer)
        dtype = value.dtype.base_dtype
        if value.shape.is_fully_defined():
            with inside(None if state is None else state.grad_context):
                return array.zeros(value.shape.as_list(), dtype)
        if state is None:
            return tensor_op("ZerosLike", "zeros_like", x=value)
        with inside(around):
            shape = tensor_op("Shape", input=value)
        history = state.add_forward_accumulator(shape)
        with state.grad_context.entered():
            return array.zeros(state.add_backprop_accumulated_value(history, shape), dtype)

    def zeros_like(self, op: Operation, index: int) -> Any:
        """Zeros like output `index` of `op`; its gradient loop, if there is one, is the current context."""
        if is_loop_switch(op):
            return None
        state = self._states.get(while_context_of(op))
        if state is None:
            return zeros_like_outside_loop(op, index)
        dead_branch = is_switch(op)
        context: Any = op._control_flow_context
        value = op.outputs[index]
        dtype = value.dtype.base_dtype
        table = table_of(value)
        if table is not None:
            if not dead_branch:
                return no_rows(table)
            pred, none = state.kept_pred(context.pred), no_rows(table)
            values, indices = (
                switch_ref_or_tensor(each, pred)[1 - context.branch] for each in (none.values, none.indices)
            )
            return IndexedSlices(values, indices)
        if value.shape.is_fully_defined() and dtype != dtypes.resource:
            result = array.constant(0, shape=value.shape.as_list(), dtype=dtype)
            if not dead_branch:
                return result
            pred = state.kept_pred(context.pred)
            return switch_ref_or_tensor(result, pred)[1 - context.branch]
        shape = self._forward_shape(op, value, context, dead_branch)
        with state.grad_context.left():
            history = state.add_forward_accumulator(shape, dead_branch=dead_branch)
        real_shape = state.add_backprop_accumulated_value(history, shape, dead_branch)
        return array.zeros(real_shape, _zeros_dtype(value))

    @staticmethod
    def _forward_shape(op: Operation, value: Tensor, context: Any, dead_branch: bool) -> Tensor:
        if not dead_branch:
            with inside(context):
                return _dynamic_shape(value)
        with inside(context.outer_context):
            other = switch_ref_or_tensor(op.inputs[0], context.pred)[1 - context.branch]
            shape = _dynamic_shape(other)
        other.op._control_flow_context = context
        shape.op._control_flow_context = context
        return shape

    def post_process(self) -> None:
        """Closes the loops of gradients that nothing flowed into after the first iteration."""
        for state in self._states.values():
            for merged in state.switch_map.values():
                first, second = merged.op.inputs
                if first is not second:
                    continue
                if first.shape.is_fully_defined():
                    with state.grad_context.entered():
                        zeros = array.constant(0, dtype=first.dtype, shape=first.shape.as_list())
                        following = next_iteration(zeros)
                else:
                    with inside(state.grad_context.outer_context):
                        zeros = array.zeros(tensor_op("Shape", input=first.op.inputs[0]), first.dtype.base_dtype)
                    with state.grad_context.entered():
                        following = next_iteration(zeros)
                merged.op._update_input(1, following)


def control_flow_state_for(between: list[Operation], seen: set[Operation], colocate: bool) -> ControlFlowState | None:
    """The state of the loops that end among `between`, outer ones first; None if there is none.

    Adds the other exits of those loops to `between`.
    """
    state: ControlFlowState | None = None
    for op in between:
        if not is_exit(op):
            continue
        state = state or ControlFlowState()
        if colocate:
            with colocate_with(op):
                state.add(op, between, seen)
        else:
            state.add(op, between, seen)
    return state


def zeros_like_outside_loop(op: Operation, index: int) -> Any:
    """Zeros like output `index` of `op`; of the Switch of a branch, alive when that branch is not taken."""
    value = op.outputs[index]
    context: Any = op._control_flow_context
    dtype = value.dtype.base_dtype
    table = table_of(value)
    if not is_switch(op) or context is None or not context.is_cond:
        if table is not None:
            return no_rows(table)
        if dtype == dtypes.resource:
            return array.zeros(_dynamic_shape(value), _zeros_dtype(value))
        # Always the op, even for a static shape: behind a Switch the zeros must be dead when the branch is.
        return tensor_op("ZerosLike", "zeros_like", x=value)
    other = switch(op.inputs[0], context.pred)[1 - context.branch]
    pivot = array.identity(other)
    if table is not None:
        with control_dependencies([pivot]):
            return no_rows(table)
    shape = _dynamic_shape(other)
    with control_dependencies([pivot]):
        return array.zeros(shape, _zeros_dtype(value))


def _dynamic_shape(value: Tensor) -> Tensor:
    if value.dtype.base_dtype == dtypes.resource:
        return tensor_op("VariableShape", input=value)
    return tensor_op("Shape", input=value)


def _zeros_dtype(value: Tensor) -> Any:
    """The type of the gradient of `value`; of a resource, that of the variable."""
    source = value
    while source.dtype.base_dtype == dtypes.resource:
        if source.op.type == "VarHandleOp":
            return source.op.get_attr("dtype")
        if not source.op.inputs:
            return dtypes.float32
        source = source.op.inputs[0]
    return source.dtype.base_dtype
