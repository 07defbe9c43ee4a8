"""Control-flow contexts: the branch of a `tf.cond` or the loop that operations are made in.

The graph calls the current context with each new operation (`Graph._add_operation`); the context then replaces inputs
from outside by the Switch or Enter that brings them in. The base class and the queries are here; the two kinds of
contexts are in ops/control_flow_cond.py and ops/while_context.py. Follows TF 1.15's control_flow_ops.py, version
1 graphs.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.scope_names import prepend_scope, strip_scope
from tenfold_core.opdefs.runtime_ops import ENTER_OPS, EXIT_OPS, MERGE_OPS, SWITCH_OPS
from tenfold_protos import control_flow_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from tenfold.graph.graph import Graph
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


class ControlFlowContext:
    """Base of branches and loops: the names of the tensors inside, and the replacements of tensors from outside.

    A subclass names the `field` of a ControlFlowContextDef that describes it.
    """

    _field: ClassVar[str]

    def __init_subclass__(cls, *, field: str) -> None:
        cls._field = field
        _kinds[field] = cls

    def __init__(self, values_def: control_flow_pb2.ValuesDef | None = None, import_scope: str | None = None) -> None:
        self._graph = get_default_graph()
        self._name = ""
        self._outer_context: ControlFlowContext | None = self._graph._control_flow_context
        self._nested_contexts: list[ControlFlowContext] = []
        if self._outer_context is not None:
            self._outer_context._nested_contexts.append(self)
        #: The contexts that were current when this one was entered; `enter` and `exit` nest.
        self._entered_from: list[ControlFlowContext | None] = []
        #: Names of the tensors of this context: made inside, or brought in.
        self._values: set[str] = set()
        #: Name of a tensor from outside → its replacement inside.
        self._external_values: dict[str, Tensor] = {}
        if values_def is not None:
            self._read_values(values_def, import_scope)

    # --- what the context is ---

    @property
    def name(self) -> str:
        """Unique in the graph; of a loop also the name of its frame."""
        return self._name

    @property
    def graph(self) -> Graph:
        """The graph of this context."""
        return self._graph

    @property
    def outer_context(self) -> ControlFlowContext | None:
        """The context around this one."""
        return self._outer_context

    @property
    def grad_state(self) -> Any:
        """The gradient state that this context belongs to, None for forward contexts."""
        return None

    @property
    def control_pivot(self) -> Tensor | None:
        """What operations without inputs wait for, so that they run when and only when the context does."""
        return None

    is_while = False
    is_cond = False

    def while_context(self) -> Any:
        """The innermost loop at or around this context, or None."""
        return None if self._outer_context is None else self._outer_context.while_context()

    # --- the current context of the graph ---

    def enter(self) -> None:
        """Makes this the context of operations made from now on."""
        graph = get_default_graph()
        self._entered_from.append(graph._control_flow_context)
        graph._control_flow_context = self

    def exit(self) -> None:
        """Goes back to the context before `enter`."""
        get_default_graph()._control_flow_context = self._entered_from.pop()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """`enter` and `exit` around a block."""
        self.enter()
        try:
            yield
        finally:
            self.exit()

    @contextmanager
    def left(self) -> Iterator[None]:
        """The block runs in the context before `enter`; this one must be current."""
        self.exit()
        try:
            yield
        finally:
            self.enter()

    # --- operations and values ---

    def add_name(self, name: str) -> None:
        """Records the tensor `name` as one of this context, so that it is not brought in."""
        self._values.add(name)

    def exit_result(self, results: Iterable[Tensor]) -> None:
        """Records `results` as tensors of the context around this one."""
        if self._outer_context is not None:
            for tensor in results:
                self._outer_context.add_name(tensor.name)

    def add_op(self, op: Operation) -> None:
        """Called for each operation made in this context."""
        raise NotImplementedError

    def add_value(self, value: Tensor) -> Tensor:
        """The replacement of `value` inside; adds operations if `value` comes from outside."""
        raise NotImplementedError

    def add_inner_op(self, op: Operation) -> None:
        """Called for each operation made in a context inside this one."""
        if self._outer_context is not None:
            self._outer_context.add_inner_op(op)

    def _remove_external_control_edges(self, op: Operation) -> tuple[list[Operation], list[Operation]]:
        """Drops the control inputs of `op` from outside its loop, which cannot cross a frame; gives (kept, dropped)."""
        loop = self.while_context()
        if loop is None:
            return op.control_inputs, []
        kept: list[Operation] = []
        dropped: list[Operation] = []
        for before in op.control_inputs:
            context = output_context(before)
            inside = context is not None and context.while_context() is loop
            (kept if inside else dropped).append(before)
        if dropped:
            op._remove_all_control_inputs()
            op._add_control_inputs(kept)
        return kept, dropped

    # --- meta graphs ---

    def _read_values(self, values_def: control_flow_pb2.ValuesDef, import_scope: str | None) -> None:
        self._values = {prepend_scope(name, import_scope) for name in values_def.values}
        for name, stand_in in values_def.external_values.items():
            tensor: Any = self._graph.as_graph_element(prepend_scope(stand_in, import_scope))
            self._external_values[prepend_scope(name, import_scope)] = tensor
        for name in sorted({name.partition(":")[0] for name in self._values - self._external_values.keys()}):
            self._graph.get_operation_by_name(name)._control_flow_context = self

    def _values_def(self, export_scope: str | None) -> control_flow_pb2.ValuesDef:
        values_def = control_flow_pb2.ValuesDef(values=[strip_scope(v, export_scope) for v in sorted(self._values)])
        for name, tensor in self._external_values.items():
            values_def.external_values[strip_scope(name, export_scope)] = strip_scope(tensor.name, export_scope)
        return values_def

    def _to_def(self, export_scope: str | None) -> Any:
        """The message of this context without the contexts inside."""
        raise NotImplementedError

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The message of this context and of those inside, or None if it is not inside `export_scope`."""
        if export_scope is not None and not self._name.startswith(export_scope):
            return None
        context_def = self._to_def(export_scope)
        for nested in self._nested_contexts:
            nested.to_control_flow_context_def(context_def.nested_contexts.add(), export_scope)
        return context_def

    def to_control_flow_context_def(
        self, context_def: control_flow_pb2.ControlFlowContextDef, export_scope: str | None = None
    ) -> None:
        """Writes this context into the message of a context around it."""
        message = self.to_proto(export_scope)
        if message is not None:
            getattr(context_def, self._field).CopyFrom(message)

    @classmethod
    def from_proto(cls, context_def: Any, import_scope: str | None = None) -> Self:
        """The context that a message describes, with those inside; its operations are in the default graph."""
        context: Self = _kinds[cls._field](context_def=context_def, import_scope=import_scope)
        with context.entered():
            for nested in context_def.nested_contexts:
                from_control_flow_context_def(nested, import_scope)
        return context

    def __str__(self) -> str:
        return self._name


#: Field of a ControlFlowContextDef → the class that it describes.
_kinds: dict[str, Any] = {}


def from_control_flow_context_def(
    context_def: control_flow_pb2.ControlFlowContextDef, import_scope: str | None = None
) -> ControlFlowContext:
    """The branch or loop that a message describes. Raises NotImplementedError for anything else."""
    field = context_def.WhichOneof("ctxt")
    if field not in _kinds:
        raise NotImplementedError(f"Unknown ControlFlowContextDef field: {field}")
    context: ControlFlowContext = _kinds[field].from_proto(getattr(context_def, field), import_scope)
    return context


def inside(context: ControlFlowContext | None) -> AbstractContextManager[None]:
    """The block runs in `context`; with None, in the current one."""
    return nullcontext() if context is None else context.entered()


# --- queries about operations ---


def is_switch(op: Operation) -> bool:
    """Whether `op` is a Switch."""
    return op.type in SWITCH_OPS


def is_merge(op: Operation) -> bool:
    """Whether `op` is a Merge."""
    return op.type in MERGE_OPS


def is_enter(op: Operation) -> bool:
    """Whether `op` brings a value into a loop."""
    return op.type in ENTER_OPS


def is_exit(op: Operation) -> bool:
    """Whether `op` takes a value out of a loop."""
    return op.type in EXIT_OPS


def is_constant_enter(op: Operation) -> bool:
    """Whether `op` brings in a value that is the same in all iterations."""
    return is_enter(op) and bool(op._attrs["is_constant"])


def output_context(op: Operation) -> ControlFlowContext | None:
    """The context of the outputs of `op`: that of `op`, but for an Exit the one around its loop."""
    context = op._control_flow_context
    return context.outer_context if context is not None and is_exit(op) else context


def while_context_of(op: Operation) -> Any:
    """The innermost loop that `op` is in, or None."""
    return None if op._control_flow_context is None else op._control_flow_context.while_context()


def is_cond_switch(op: Operation) -> bool:
    """Whether `op` is a Switch whose outputs only branches of conditionals take."""
    if not is_switch(op) or not op.outputs:
        return False
    for consumer in (consumer for tensor in op.outputs for consumer in tensor.consumers()):
        context = consumer._control_flow_context
        if is_enter(consumer) and context is not None:
            context = context.outer_context
        if context is None or not context.is_cond:
            return False
    return True


def is_loop_switch(op: Operation) -> bool:
    """Whether `op` is the Switch of a loop variable."""
    context = op._control_flow_context
    return is_switch(op) and context is not None and context.is_while and not is_cond_switch(op)


def constant_enter_of(value: Tensor) -> Operation | None:
    """The Enter of a loop constant that `value` is, if it is one (possibly behind Switch and Identity)."""
    op = value.op
    while op.type in ("Switch", "RefSwitch", "Identity", "RefIdentity"):
        op = op.inputs[0].op
    return op if is_constant_enter(op) else None


def is_containing(context: ControlFlowContext | None, other: ControlFlowContext | None) -> bool:
    """Whether `other` is `context` or around it."""
    while context is not other:
        if context is None:
            return False
        context = context.outer_context
    return True


def check_input_from_valid_context(op: Operation, before: Operation) -> None:
    """Raises ValueError if `op` takes a value of `before` out of a loop without an Exit."""
    op_context, input_context = op._control_flow_context, output_context(before)
    if input_context is None or input_context is op_context:
        return
    loop = None if op_context is None else op_context.while_context()
    input_loop = input_context.while_context()
    if loop is None:
        if input_loop is None or is_enter(op) or is_switch(op):
            return
    elif is_containing(loop, input_loop) or _of_its_gradient(loop, input_loop):
        return
    why = f"'{before.name}' is in a while loop" if loop is None else "they are in different while loops"
    raise ValueError(
        f"Cannot use '{before.name}' as input to '{op.name}' because {why}. See info log for more details. "
        f"({op.name} while context: {loop}; {before.name} while context: {input_loop})"
    )


def _of_its_gradient(loop: Any, input_loop: Any) -> bool:
    """Whether one of two loops is the gradient of the other or of a loop around it; values then go through stacks."""
    if loop.grad_state is not None:
        forward = loop.grad_state.forward_context
        if is_containing(forward, input_loop) or forward is input_loop.outer_context:
            return True
    if input_loop.grad_state is None:
        return False
    forward = input_loop.grad_state.forward_context
    return forward is loop or (forward.grad_state is not None and forward.grad_state.forward_context is loop)
