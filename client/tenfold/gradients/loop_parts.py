"""The counters, and the sums over all iterations, that differentiation adds to loops.

A forward loop gets a counter of its iterations; the loop of its gradient counts them down, and sums the gradients of
what is constant in the loop. Called by loop_state.py and control_flow.py; loops themselves are in
ops/while_context.py. Follows WhileContext of TensorFlow 1.15's control_flow_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.control_flow_context import inside
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.ops import array, math
from tenfold.ops.control_flow_primitives import enter, exit, loop_cond, merge, next_iteration, switch
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold.ops.while_context import WhileContext


def _enter(loop: WhileContext, value: Tensor, name: str, *, use_input_shape: bool = True) -> Tensor:
    loop.add_name(value.name)
    tensor: Tensor = enter(
        value,
        loop.name,
        is_constant=False,
        parallel_iterations=loop.parallel_iterations,
        use_input_shape=use_input_shape,
        name=name,
    )
    loop.loop_enters.append(tensor)
    return tensor


def _exit(loop: WhileContext, value: Tensor, name: str) -> Tensor:
    result: Tensor = exit(value, name=name)
    loop.loop_exits.append(result)
    loop.exit_result([result])
    return result


def add_forward_counter(loop: WhileContext, outer_grad_state: Any) -> tuple[Tensor, Tensor]:
    """Makes `loop` count its iterations; gives the total after it, and the NextIteration of the counter.

    The current context is the one around the loop. In nested loops, `outer_grad_state` is the outer loop's: its counter
    must be incremented before the inner loop starts, because the outer stacks are pushed in that order.
    """
    zero = array.constant(0, name="f_count")
    if outer_grad_state is not None:
        zero.op._add_control_input(outer_grad_state.forward_index.op.inputs[0].op)
    with loop.entered():
        entered = _enter(loop, zero, "f_count")
        merged = merge([entered, entered])[0]
        ended, goes_on = switch(merged, loop.pivot)
        following = next_iteration(math.add(goes_on, 1))
        merged.op._update_input(1, following)
        total = _exit(loop, ended, "f_count")
    return total, following


def add_backprop_counter(loop: WhileContext, count: Tensor, outer_grad_state: Any) -> Tensor:
    """Makes `loop`, which is still empty, run `count` times; gives the NextIteration of the counter.

    The current context is the one around the loop.
    """
    one = array.constant(1, name="b_count")
    with loop.entered():
        entered = _enter(loop, count, "b_count")
        merged = merge([entered, entered])[0]
        loop.pivot_for_pred = merged
        loop.pivot = loop_cond(math.greater_equal(merged, one), name="b_count")
        ended, goes_on = switch(merged, loop.pivot)
        index = math.subtract(goes_on, one)
        loop.pivot_for_body = index
        following: Tensor = next_iteration(index)
        merged.op._update_input(1, following)
        final = _exit(loop, ended, "b_count")
        if outer_grad_state is not None:
            # An iteration of the outer gradient loop ends only after all iterations of the inner one.
            outer_grad_state.grad_sync._add_control_input(final.op)
    return following


def add_accumulator(loop: WhileContext, op: Operation, grad: Tensor) -> Tensor:
    """The sum over all iterations of `grad`, the gradient of the loop constant that the Enter `op` brings in.

    `loop` is the current context, that of the gradient.
    """
    with loop.left():
        start = _zeros_around(loop, op.inputs[0], grad)
    loop.add_name(start.name)
    entered = _enter(loop, start, "b_acc")
    merged = merge([entered, entered], name="b_acc")[0]
    ended, goes_on = switch(merged, loop.pivot)
    merged.op._update_input(1, next_iteration(math.add(goes_on, grad)))
    return _exit(loop, ended, "b_acc")


def _zeros_around(loop: WhileContext, value: Tensor, grad: Tensor) -> Tensor:
    """Zeros of the shape of `grad`, the gradient of `value`, made in the context around `loop`."""
    around = loop.outer_context
    dtype = grad.dtype.base_dtype
    if grad.shape.is_fully_defined():
        with inside(around):
            return array.constant(0, dtype, shape=grad.shape.as_list(), name="b_acc")
    if around is not None and around.is_while and around.grad_state is not None:
        # `value` belongs to an iteration of the outer forward loop, which pushes its shape on a stack.
        outer_state = loop.grad_state.outer_grad_state
        with inside(loop.grad_state.forward_context.outer_context):
            shape = tensor_op("Shape", input=value)
        history = outer_state.add_forward_accumulator(shape)
        with around.entered():
            return array.zeros(outer_state.add_backprop_accumulated_value(history, shape), dtype)
    with inside(around):
        return array.zeros(tensor_op("Shape", input=value), dtype)


def add_slices_accumulator(loop: WhileContext, op: Operation, grad: IndexedSlices) -> IndexedSlices:
    """As `add_accumulator`, for a sparse gradient: the concatenated slices of all iterations.

    They start with one row of zeros, as a loop variable cannot start empty of a known row shape; but those of an
    embedding variable start empty, since it would get a row for the id 0.
    """
    around = loop.outer_context
    values, indices, dense_shape = grad.values, grad.indices, grad.dense_shape
    starts: list[Tensor] = []
    with loop.left(), inside(around):
        rows = values.shape
        table = table_of(op.inputs[0])
        if table is not None:
            none = no_rows(table)
            starts += [none.values, none.indices]
        elif rows.is_fully_defined():
            first = [1, *rows.as_list()[1:]]
            starts.append(array.constant(0, values.dtype.base_dtype, shape=first, name="b_acc"))
        else:
            rest = _shape_of_source(op.inputs[0])[1:]
            starts.append(array.zeros(array.concat([[1], rest], 0), values.dtype.base_dtype))
        if table is None:
            starts.append(array.constant([0], indices.dtype.base_dtype))
        if dense_shape is not None:
            starts.append(_zero_shape(op, dense_shape))
    entered = [_enter(loop, start, "b_acc", use_input_shape=False) for start in starts]
    entered[1].set_shape([None])
    if starts[0].shape.ndims is not None:
        entered[0].set_shape([None, *starts[0].shape.as_list()[1:]])
    merged = [merge([tensor, tensor], name="b_acc")[0] for tensor in entered]
    switched = [switch(tensor, loop.pivot) for tensor in merged]
    following = [
        array.concat([switched[0][1], values], 0),
        array.concat([switched[1][1], indices], 0),
    ]
    if dense_shape is not None:
        following.append(math.maximum(dense_shape, switched[2][1]))
    for tensor, value in zip(merged, following, strict=True):
        tensor.op._update_input(1, next_iteration(value))
    ended = [_exit(loop, each[0], "b_acc") for each in switched]
    return IndexedSlices(*ended)


def table_of(handle: Tensor) -> Operation | None:
    """The op that names the embedding variable of `handle`, through switches and loops; None for anything else."""
    while handle.dtype.base_dtype == dtypes.resource:
        if handle.op.type == "KvVarHandleOp":
            return handle.op
        if not handle.op.inputs:
            return None
        handle = handle.op.inputs[0]
    return None


def no_rows(table: Operation) -> IndexedSlices:
    """The gradient of an embedding variable that no lookup has reached."""
    (width,) = TensorShape(table.get_attr("shape")).as_list()
    return IndexedSlices(
        array.zeros([0, width], table.get_attr("dtype")), array.zeros([0], table.get_attr("Tkeys")), None
    )


def _shape_of_source(tensor: Tensor) -> Any:
    """The shape of a tensor; of a resource, that of the variable."""
    if tensor.dtype != dtypes.resource:
        return tensor_op("Shape", input=tensor)
    return _variable_shape(tensor).as_list()


def _variable_shape(handle: Tensor) -> TensorShape:
    source = handle
    while source.op.inputs:
        source = source.op.inputs[0]
    return TensorShape(source.op.get_attr("shape"))


def _zero_shape(op: Operation, dense_shape: Tensor) -> Tensor:
    dtype = dense_shape.dtype.base_dtype
    if op.inputs[0].dtype == dtypes.resource:
        return array.constant(0, dtype, shape=[_variable_shape(op.inputs[0]).ndims])
    if dense_shape.shape.is_fully_defined():
        return array.constant(0, dtype, shape=dense_shape.shape.as_list())
    shape = apply_op("Shape", input=op.inputs[0], out_type=dtype)
    return tensor_op("ZerosLike", x=shape)
