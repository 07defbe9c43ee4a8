"""The context of a loop: operations made in the body become part of it; their inputs from outside enter it.

A loop is a frame: Enter brings each loop variable in, Merge joins it with the value of the iteration before, Switch
sends it into the body or out by the condition, NextIteration closes the cycle, Exit passes the result out. What the
body takes from outside enters as a constant of the loop. Made by control_flow_while.py; ops/control_flow_cond.py has
the context of branches; gradients/loop_parts.py adds counters and sums to a loop. Follows WhileContext of TensorFlow
1.15's control_flow_ops.py (version 1 control flow).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.control_flow_context import (
    ControlFlowContext,
    is_constant_enter,
    is_enter,
    is_exit,
    output_context,
    while_context_of,
)
from tenfold.graph.default_scopes import control_dependencies
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.scope_names import prepend_scope, strip_scope
from tenfold.ops.control_flow_primitives import (
    enter,
    identity,
)
from tenfold.ops.loop_shapes import set_invariants
from tenfold_protos import attr_value_pb2, control_flow_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold_core.tensor_shape import TensorShape

__all__ = ["WhileContext"]


class WhileContext(ControlFlowContext, field="while_ctxt"):
    """One loop. Its name is the name of its frame; `grad_state` is set for the loop that a gradient runs in."""

    is_while = True

    def __init__(
        self,
        maximum_iterations: Tensor | None = None,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str = "while_context",
        grad_state: Any = None,
        context_def: control_flow_pb2.WhileContextDef | None = None,
        import_scope: str | None = None,
    ) -> None:
        self._grad_state = grad_state
        #: Of the loop variables, of counters and of sums.
        self.loop_enters: list[Tensor] = []
        self.loop_exits: list[Any] = []
        #: The first loop variable at the condition, and in the body: what operations without inputs wait for. Set by
        #: the function that builds the loop.
        self.pivot_for_pred: Tensor | None = None
        self.pivot_for_body: Tensor | None = None
        #: The LoopCond.
        self._pivot: Tensor | None = None
        if context_def is not None:
            super().__init__(context_def.values_def, import_scope)
            self._read(context_def, import_scope)
            return
        super().__init__()
        if not isinstance(parallel_iterations, int) or parallel_iterations <= 0:
            raise ValueError(f"`parallel_iterations` must be a positive integer: {parallel_iterations}")
        self._name = self._graph.unique_name(name)
        self._maximum_iterations = maximum_iterations
        self._parallel_iterations = parallel_iterations
        self._back_prop = back_prop
        self._swap_memory = swap_memory

    # --- what the loop is ---

    @property
    def maximum_iterations(self) -> Tensor | None:
        """The limit of iterations, if there is one."""
        return self._maximum_iterations

    @property
    def parallel_iterations(self) -> int:
        """How many iterations may run at a time."""
        return self._parallel_iterations

    @property
    def back_prop(self) -> bool:
        """Whether gradients flow through."""
        return self._back_prop

    @property
    def swap_memory(self) -> bool:
        """Accepted for compatibility and ignored."""
        return self._swap_memory

    @property
    def pivot(self) -> Tensor:
        """The condition of the running iteration."""
        assert self._pivot is not None
        return self._pivot

    @pivot.setter
    def pivot(self, condition: Tensor) -> None:
        """Set by the function that builds the loop."""
        self._pivot = condition

    @property
    def grad_state(self) -> Any:
        """The gradient state that this loop belongs to, None for a forward loop."""
        return self._grad_state

    @property
    def control_pivot(self) -> Tensor | None:
        """What operations without inputs wait for: in the body its pivot, before it that of the condition."""
        return self.pivot_for_pred if self.pivot_for_body is None else self.pivot_for_body

    def while_context(self) -> Any:
        """This loop."""
        return self

    # --- operations and values ---

    def add_value(self, value: Tensor) -> Tensor:
        """`value` through an Enter if it comes from outside; in a gradient, the value that the forward loop kept."""
        if value.name in self._values or value.op._control_flow_context is self:
            return self._external_values.get(value.name, value)
        self._values.add(value.name)
        kept = self._kept_by_forward_loop(value)
        if kept is not None:
            self._external_values[value.name] = kept
            return kept
        outside = value if self._outer_context is None else self._outer_context.add_value(value)
        # Made without control dependencies; this context adds the Enter to itself below.
        with control_dependencies(None):
            entered = enter(outside, self._name, is_constant=True, parallel_iterations=self._parallel_iterations)
            entered.graph.prevent_feeding(entered)
            if self._outer_context is not None:
                self._outer_context.add_inner_op(entered.op)
        self._add_enters([entered])
        self._values.add(entered.name)
        self._external_values[value.name] = entered
        return entered  # type: ignore[no-any-return]

    def _kept_by_forward_loop(self, value: Tensor) -> Tensor | None:
        current = get_default_graph()._control_flow_context
        loop = None if current is None else current.while_context()
        if loop is None or loop.grad_state is None:
            return None
        forward = while_context_of(value.op)
        if is_exit(value.op) and forward is not None:
            forward = forward.outer_context
            forward = None if forward is None else forward.while_context()
        if forward is not loop.grad_state.forward_context:
            return None
        kept: Tensor = loop.grad_state.real_value(value)
        return kept

    def add_op(self, op: Operation) -> None:
        """Brings in the inputs of `op`; without any, it waits for the pivot.

        If a gradient needs the shape of a forward value, the forward loop computes it, so that a stack keeps the shape
        and not the value.
        """
        if op.type in ("Shape", "Size", "Rank"):
            current = get_default_graph()._control_flow_context
            loop = None if current is None else current.while_context()
            if loop is not None and loop.grad_state is not None:
                source = op.inputs[0].op
                context = source._control_flow_context
                if context is not None and while_context_of(source) is loop.grad_state.forward_context:
                    op._control_flow_context = context
                    context._add_op(op) if isinstance(context, WhileContext) else context.add_op(op)
                    return
        self._add_op(op)

    def _add_op(self, op: Operation) -> None:
        if not op.inputs:
            kept, dropped = self._remove_external_control_edges(op)
            if not kept:
                assert self.control_pivot is not None
                op._add_control_input(self.control_pivot.op)
        else:
            for index, value in enumerate(op.inputs):
                brought = self.add_value(value)
                if brought is not value:
                    op._update_input(index, brought)
            _, dropped = self._remove_external_control_edges(op)
            if not op._control_inputs and all(is_constant_enter(value.op) for value in op.inputs):
                # With constant inputs only, it would run once and not in every iteration.
                assert self.control_pivot is not None
                op._add_control_input(self.control_pivot.op)
        self._values.update(tensor.name for tensor in op.outputs)
        self._keep_waiting_for(op, dropped)
        if self._outer_context is not None or not is_exit(op):
            op.graph.prevent_fetching(op)
            for tensor in op.outputs:
                op.graph.prevent_feeding(tensor)
        if self._outer_context is not None:
            self._outer_context.add_inner_op(op)

    def _keep_waiting_for(self, op: Operation, dropped: Sequence[Operation]) -> None:
        """Replaces control inputs from outside by identities inside, where they have a value to bring in."""
        values = [before.outputs[0] for before in dropped if before.outputs]
        if values:
            with control_dependencies(None), self.entered():
                inside_ops = [identity(value).op for value in values]
            op._add_control_inputs(inside_ops)

    def _add_enters(self, entered: Sequence[Tensor]) -> None:
        """Makes Enters operations of this loop; they keep the control inputs that are of the context around."""
        for tensor in entered:
            op = tensor.op
            around = None if self._outer_context is None else self._outer_context.while_context()
            keep = []
            for before in self._graph._control_dependencies_for_inputs({op.inputs[0].op}):
                context = output_context(before)
                outer = self._outer_context
                while outer is not context and outer is not None and outer is not around:
                    outer = outer.outer_context
                if outer is context:
                    keep.append(before)
            op._control_flow_context = self
            op._add_control_inputs(keep)
            self._graph._record_op_seen_by_control_dependencies(op)

    # --- loop variables ---

    def enter_loop_vars(self, loop_vars: list[Tensor], invariants: list[TensorShape]) -> list[Tensor]:
        """The Enters of the loop variables, of the shapes `invariants`. The loop is current and still empty."""
        self._values = {tensor.name for tensor in loop_vars}
        around = self._outer_context
        real = loop_vars if around is None else [around.add_value(tensor) for tensor in loop_vars]
        # Control inputs of the scopes around follow below: each Enter takes only those that it may have.
        with control_dependencies(None):
            entered = [
                enter(
                    tensor,
                    self._name,
                    is_constant=False,
                    parallel_iterations=self._parallel_iterations,
                    use_input_shape=False,
                )
                for tensor in real
            ]
            for tensor in entered:
                tensor.graph.prevent_feeding(tensor)
                if around is not None:
                    around.add_inner_op(tensor.op)
        pivot, context = None, around
        while context is not None and pivot is None:
            pivot, context = context.control_pivot, context.outer_context
        if pivot is not None:
            for tensor in entered:
                if is_constant_enter(tensor.op.inputs[0].op):
                    # Its inputs are constants of the outer loop: without this edge it would start only once.
                    tensor.op._add_control_input(pivot.op)
        set_invariants(real, entered, invariants)
        self._add_enters(entered)
        self._values = {tensor.name for tensor in entered}
        self.loop_enters = entered
        return entered

    # --- meta graphs ---

    def _read(self, context_def: control_flow_pb2.WhileContextDef, import_scope: str | None) -> None:
        def element(name: str) -> Any:
            return self._graph.as_graph_element(prepend_scope(name, import_scope))

        self._name = prepend_scope(context_def.context_name, import_scope)
        limit = context_def.maximum_iterations_name
        self._maximum_iterations = element(limit) if limit else None
        self._parallel_iterations = context_def.parallel_iterations
        self._back_prop = context_def.back_prop
        self._swap_memory = context_def.swap_memory
        self.pivot_for_pred = element(context_def.pivot_for_pred_name)
        self.pivot_for_body = element(context_def.pivot_for_body_name)
        self._pivot = element(context_def.pivot_name)
        self.loop_exits = [element(name) for name in context_def.loop_exit_names]
        self.loop_enters = [element(name) for name in context_def.loop_enter_names]
        if import_scope:
            frame = attr_value_pb2.AttrValue(s=self._name.encode())
            for name in self._values:
                tensor: Any = self._graph.as_graph_element(name)
                if is_enter(tensor.op):
                    tensor.op._set_attr("frame_name", frame)

    def _to_def(self, export_scope: str | None) -> control_flow_pb2.WhileContextDef:
        def stripped(tensor: Any) -> str:
            return "" if tensor is None else strip_scope(tensor.name, export_scope)

        return control_flow_pb2.WhileContextDef(
            context_name=strip_scope(self._name, export_scope),
            parallel_iterations=self._parallel_iterations,
            maximum_iterations_name=stripped(self._maximum_iterations),
            back_prop=self._back_prop,
            swap_memory=self._swap_memory,
            pivot_for_pred_name=stripped(self.pivot_for_pred),
            pivot_for_body_name=stripped(self.pivot_for_body),
            pivot_name=stripped(self._pivot),
            loop_exit_names=[stripped(tensor) for tensor in self.loop_exits],
            loop_enter_names=[stripped(tensor) for tensor in self.loop_enters],
            values_def=self._values_def(export_scope),
        )
