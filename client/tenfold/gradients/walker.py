"""`tf.gradients`: the reverse walk from ys to xs over the client's graph.

It finds the operations between xs and ys, visits them consumers first, sums the gradients of each output, and
calls the rule of the op type (registry.py), which adds gradient operations to the graph. Of a loop it visits each
operation once, in the loop of its gradient (loop_state.py). Follows TensorFlow's ops/gradients_util.py.
"""

from __future__ import annotations

import contextlib
import enum
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

from tenfold.gradients import aggregate
from tenfold.gradients.aggregate import AggregationMethod
from tenfold.gradients.loop_state import ControlFlowState, control_flow_state_for, zeros_like_outside_loop
from tenfold.gradients.registry import get_gradient_function
from tenfold.graph.control_flow_context import is_exit, is_loop_switch, is_switch
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import apply_op
from tenfold.graph.tensor import Tensor
from tenfold.ops import array as array_ops
from tenfold.ops.control_flow import tuple as gated_tuple
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tenfold.graph.operation import Operation

_TRAINABLE = frozenset(
    {
        dtypes.float16,
        dtypes.bfloat16,
        dtypes.float32,
        dtypes.float64,
        dtypes.complex64,
        dtypes.complex128,
        dtypes.resource,
        dtypes.variant,
    }
)


class UnconnectedGradients(enum.Enum):
    """What `tf.gradients` returns for an x that no y depends on."""

    NONE = "none"
    ZERO = "zero"


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
) -> list[Any]:
    """Adds operations that compute the derivative of the sum of `ys` with respect to each of `xs`.

    Args: `grad_ys` weights the ys (same shapes; None is ones); `stop_gradients` are tensors not to differentiate
    through; `gate_gradients` makes the gradients of one op available together only.
    Returns one Tensor, IndexedSlices or None (not connected) per x. Raises LookupError for an op type between xs
    and ys without a gradient row, ValueError and TypeError for arguments that do not fit.
    """
    unconnected = _as_unconnected(unconnected_gradients)
    aggregation_method = aggregate.checked_method(aggregation_method)
    y_values, x_values = _as_list(ys), _as_list(xs)
    stops = [] if stop_gradients is None else _as_list(stop_gradients)
    weights = [None] * len(y_values) if grad_ys is None else _as_list(grad_ys)
    graph = get_default_graph()
    with graph.name_scope(name or "gradients"):
        y_tensors = [_as_tensor_or_slices(y) for y in y_values]
        x_tensors = [_as_differentiable_input(x) for x in x_values]
        walk = _Walk(y_tensors, x_tensors, [_as_tensor(s).op for s in stops], colocate_gradients_with_ops)
        first_grads = _default_grad_ys(weights, y_tensors, walk)
        walk.run(first_grads, gate_gradients=gate_gradients, aggregation_method=aggregation_method)
        return [walk.result(x, unconnected) for x in x_tensors]


def _as_unconnected(value: UnconnectedGradients | str) -> UnconnectedGradients:
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError(f"Unknown value for unconnected_gradients: {value!r}") from None


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _as_tensor(value: Any) -> Tensor:
    tensor: Tensor = value if isinstance(value, Tensor) else convert_to_tensor(value)
    return tensor


def _as_tensor_or_slices(value: Any) -> Any:
    return value.values if isinstance(value, IndexedSlices) else _as_tensor(value)


def _as_differentiable_input(x: Any) -> Tensor:
    """The tensor that stands for x: for a variable the handle or the reference, not a value read from it."""
    if isinstance(x, Tensor):
        return x
    handle = getattr(x, "handle", None)
    if isinstance(handle, Tensor):
        return handle
    return convert_to_tensor(x, as_ref=True)


def is_trainable(tensor: Tensor) -> bool:
    """Whether gradients flow through a tensor of this type."""
    return tensor.dtype.base_dtype in _TRAINABLE


def _default_grad_ys(grad_ys: Sequence[Any], ys: Sequence[Tensor], walk: _Walk) -> list[Any]:
    if len(grad_ys) != len(ys):
        raise ValueError(f"Passed {len(grad_ys)} grad_ys for {len(ys)} ys")
    result: list[Any] = []
    for i, (y, grad_y) in enumerate(zip(ys, grad_ys, strict=True)):
        with walk.colocated(y.op):
            if grad_y is None:
                if y.dtype.is_complex:
                    raise TypeError(f"Gradients of complex tensors must set grad_ys (y.dtype = {y.dtype!r})")
                one = array_ops.constant(1, dtype=y.dtype.base_dtype, name=f"grad_ys_{i}")
                result.append(apply_op("Fill", dims=array_ops.shape(y), value=one))
                continue
            if isinstance(grad_y, IndexedSlices):
                result.append(grad_y)
                continue
            grad_y = _as_tensor(grad_y)
            _check_grad_y(grad_y, y)
            result.append(apply_op("Identity", input=grad_y, name=f"grad_ys_{i}"))
    return result


def _check_grad_y(grad_y: Tensor, y: Tensor) -> None:
    if y.dtype.is_floating or y.dtype.is_integer:
        fits, expected = grad_y.dtype.is_floating or grad_y.dtype.is_integer, "real or integer"
    elif y.dtype.is_complex:
        fits, expected = grad_y.dtype.is_complex, "complex"
    else:
        raise TypeError(f"Tensor {y} with type {y.dtype.name} must be numeric to obtain a default gradient")
    if not fits:
        raise TypeError(
            f"Gradient type {grad_y.dtype.name} generated for tensor {y.name} with type {y.dtype.name} "
            f"must be {expected}"
        )


class _Walk:
    """One call of `gradients`: the operations between xs and ys, and the gradients collected so far."""

    def __init__(self, ys: Sequence[Tensor], xs: Sequence[Tensor], stops: Iterable[Operation], colocate: bool) -> None:
        self._ys = list(ys)
        self._xs = list(xs)
        self._colocate = colocate
        #: Operation → per output: the gradients received so far, or their sum once the operation was visited.
        self._grads: dict[Operation, list[Any]] = {}
        self._summed: set[Operation] = set()
        reached = _reached([x.op for x in xs])
        self._from_ops = {x.op for x in xs}
        self._to_ops = [y.op for y in ys if y.op in reached]
        between = _between(self._to_ops, reached)
        seen = set(between)
        self._loops: ControlFlowState | None = control_flow_state_for(between, seen, colocate)
        #: Operation → number of uses of its outputs, by operations in between, that were not visited yet.
        self._pending: defaultdict[Operation, int] = defaultdict(int)
        for op in between:
            for tensor in op.inputs:
                if tensor.op in seen:
                    self._pending[tensor.op] += 1
        self._stops = set(stops)

    def colocated(self, op: Operation) -> Any:
        """A context in which new operations are colocated with `op`, when the caller asked for that."""
        return op.graph.colocate_with(op, ignore_existing=True) if self._colocate else contextlib.nullcontext()

    def run(self, first_grads: Sequence[Any], *, gate_gradients: bool, aggregation_method: int) -> None:
        """Visits the operations in between, each after all its consumers."""
        for y, grad in zip(self._ys, first_grads, strict=True):
            self._add(y, grad)
        self._queue = deque(dict.fromkeys(op for op in self._to_ops if self._pending[op] == 0))
        if self._loops is not None:
            for tensor in self._loops.process_unused_exits(self._pending, set(self._queue)):
                if is_trainable(tensor):
                    self._add(tensor, self._loops.zeros_for_exit(tensor))
                    self._queue.append(tensor.op)
        # No operation in between produces an input of these.
        self._stops |= {op for op in self._from_ops if not any(self._pending[t.op] > 0 for t in op.inputs)}
        while self._queue:
            op = self._queue.popleft()
            with self.colocated(op):
                with self._gradient_loop(op, before=True):
                    out_grads = self._sum(op, aggregation_method)
                with self._gradient_loop(op, before=False):
                    self._visit(op, out_grads, gate_gradients)
            self._release(op)
        if self._loops is not None:
            self._loops.post_process()
            return
        stuck = next((op for op, uses in self._pending.items() if uses > 0), None)
        if stuck is not None:
            # Every operation in between is visited unless it waits for itself.
            raise LookupError(f"'{stuck.name}' is part of a cycle that no Exit leaves: no gradient flows through it")

    def _gradient_loop(self, op: Operation, before: bool) -> Any:
        return contextlib.nullcontext() if self._loops is None else self._loops.entered(op, before)

    def _visit(self, op: Operation, out_grads: list[Any], gate: bool) -> None:
        context = op._control_flow_context
        if is_switch(op) and context is not None and context.is_while and context is op.graph._control_flow_context:
            # The caller is inside this loop: a gradient cannot reach its earlier iterations.
            self._refuse_initial_value(op)
        for tensor, grad in zip(op.inputs, self._differentiate(op, out_grads, gate), strict=True):
            if grad is not None:
                self._check_shape(op, tensor, grad)
                self._add(tensor, grad)

    def _refuse_initial_value(self, op: Operation) -> None:
        queue, visited = deque([op]), set()
        while queue:
            before = queue.popleft()
            if before in self._from_ops:
                raise ValueError(
                    f"Cannot compute gradient inside while loop with respect to op '{before.name}'. We do not support "
                    "taking the gradient wrt or through the initial value of a loop variable. Gradients can be "
                    "computed through loop invariants or wrt the input parameters to the loop body."
                )
            if before not in visited:
                visited.add(before)
                queue.extend(tensor.op for tensor in before.inputs)

    def _release(self, op: Operation) -> None:
        """Counts `op` as visited, and queues its producers that have no other consumer to wait for."""
        for tensor in op.inputs:
            before = tensor.op
            self._pending[before] -= 1
            waits = self._pending[before]
            if waits == 0 or (self._loops is not None and waits > 0 and is_loop_switch(before)):
                if is_exit(before):
                    self._release_exit(tensor)
                else:
                    self._queue.append(before)

    def _release_exit(self, tensor: Tensor) -> None:
        """Queues the exits of a loop once the last of them is ready: its gradient loop starts as a whole."""
        state = None if self._loops is None else self._loops.of(tensor.op, before=False)
        if self._loops is None or state is None:
            self._queue.append(tensor.op)
            return
        state.deferred_exits.append(tensor)
        state.pending_exits_count -= 1
        if state.pending_exits_count:
            return
        any_grad = False
        for exited in state.deferred_exits:
            if any(grads for grads in self._grads.get(exited.op, ())):
                any_grad = True
                self._queue.append(exited.op)
            else:
                state.unused_exits.append(exited)
        for exited in state.unused_exits:
            if any_grad and is_trainable(exited):
                self._add(exited, self._loops.zeros_for_exit(exited))
            self._queue.append(exited.op)

    def result(self, x: Tensor, unconnected: UnconnectedGradients) -> Any:
        """The gradient of `x` after `run`."""
        received = self._grads.get(x.op)
        grad = received[x.value_index] if received is not None and x.op in self._summed else None
        if grad is None and received is None and unconnected is UnconnectedGradients.ZERO:
            return zeros_like_outside_loop(x.op, x.value_index)
        return grad

    def _add(self, tensor: Tensor, grad: Any) -> None:
        received = self._grads.setdefault(tensor.op, [[] for _ in tensor.op.outputs])
        if isinstance(received[tensor.value_index], list):
            received[tensor.value_index].append(grad)
        else:
            # The Switch of a loop variable, which is visited twice.
            received[tensor.value_index] = [grad]

    def _sum(self, op: Operation, method: int) -> list[Any]:
        received = self._grads.setdefault(op, [[] for _ in op.outputs])
        for i, grads in enumerate(received):
            if isinstance(grads, list):
                received[i] = aggregate.sum_gradients(op, grads, method)
        self._summed.add(op)
        return list(received)

    def _differentiate(self, op: Operation, out_grads: list[Any], gate: bool) -> list[Any]:
        if op in self._stops or all(grad is None for grad in out_grads):
            return [None] * len(op.inputs)
        try:
            rule = get_gradient_function(op)
        except LookupError as error:
            raise LookupError(
                f"No gradient defined for operation '{op.name}' (op type: {op.type}): {error.args[0]}"
            ) from None
        if rule is None:
            return [None] * len(op.inputs)
        # An output that no y depends on has the gradient zero.
        for i, grad in enumerate(out_grads):
            if grad is None and is_trainable(op.outputs[i]):
                out_grads[i] = zeros_like_outside_loop(op, i) if self._loops is None else self._loops.zeros_like(op, i)
        with op.graph.name_scope(op.name + "_grad"):
            in_grads = rule(op, *out_grads)
            if gate and sum(grad is not None for grad in in_grads) > 1:
                in_grads = _gated(op, in_grads)
        return in_grads

    @staticmethod
    def _check_shape(op: Operation, tensor: Tensor, grad: Any) -> None:
        if not isinstance(grad, Tensor) or tensor.dtype.base_dtype == dtypes.resource:
            return
        try:
            grad.set_shape(tensor.get_shape())
        except ValueError:
            raise ValueError(
                "Incompatible shapes between op input and calculated input gradient.  "
                f"Forward operation: {op.name}.  Input index: {op.inputs.index(tensor)}. "
                f"Original input shape: {tensor.get_shape()}.  Calculated input gradient shape: {grad.get_shape()}"
            ) from None


def _reached(from_ops: Iterable[Operation]) -> set[Operation]:
    """The operations that a gradient could flow back from, to `from_ops`."""
    reached: set[Operation] = set()
    queue = deque(from_ops)
    while queue:
        op = queue.popleft()
        if op not in reached:
            reached.add(op)
            for tensor in op.outputs:
                if is_trainable(tensor):
                    queue.extend(tensor.consumers())
    return reached


def _between(to_ops: Iterable[Operation], reached: set[Operation]) -> list[Operation]:
    """The operations of `reached` that `to_ops` depend on, each once, in the order of discovery."""
    between: dict[Operation, None] = {}
    queue = deque(to_ops)
    while queue:
        op = queue.popleft()
        if op in reached and op not in between:
            between[op] = None
            queue.extend(tensor.op for tensor in op.inputs)
    return list(between)


def _gated(op: Operation, grads: list[Any]) -> list[Any]:
    """`grads` such that each is available only once all of them are."""
    with op.graph.device(None), op.graph.colocate_with(None, ignore_existing=True):
        gated: list[Any] = gated_tuple(grads)
        return gated


__all__ = ["AggregationMethod", "UnconnectedGradients", "gradients", "is_trainable"]
