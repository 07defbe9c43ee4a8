"""Recurrent networks over sequences in a loop: `tf.nn.dynamic_rnn`, `bidirectional_dynamic_rnn`, `raw_rnn`.

# B batch, T time steps, D input size, O output size.
These functions run a cell in a `tf.while_loop` over TensorArrays; rnn_static.py unrolls the loop instead. Cells are in
rnn_cell.py. Follows TensorFlow 1.15's rnn.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import colocate_with, control_dependencies, name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, math, slicing
from tenfold.ops.control_flow import Assert
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.control_flow_while import while_loop
from tenfold.ops.functional import device_of
from tenfold.ops.rnn_cell import assert_like_rnncell
from tenfold.ops.rnn_cell_layer import batched_shape, static_batched_shape
from tenfold.ops.tensor_array import TensorArray
from tenfold.ops.variable_scope import variable_scope
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "bidirectional_dynamic_rnn",
    "dynamic_rnn",
    "raw_rnn",
]


# --- shapes, types ---


def transpose_batch_time(x: Tensor) -> Tensor:
    """(B, T, …) as (T, B, …), or back; tensors of a lower rank unchanged."""
    shape = x.shape
    if shape.ndims is not None and shape.ndims < 2:
        return x
    order = array.concat(([1, 0], math.range(2, array.rank(x))), axis=0)
    result = array.transpose(x, order)
    if shape.ndims is not None:
        result.set_shape(TensorShape([shape[1].value, shape[0].value]).concatenate(shape[2:]))
    return result


def best_effort_input_batch_size(flat: Sequence[Tensor]) -> Any:
    """The batch size of inputs (T, B, …): a number if known, else a tensor. Raises ValueError below rank 2."""
    for tensor in flat:
        if tensor.shape.ndims is None:
            continue
        if tensor.shape.ndims < 2:
            raise ValueError(f"Expected input tensor {tensor} to have rank at least 2")
        known = tensor.shape[1].value
        if known is not None:
            return known
    return array.shape(flat[0])[1]


def state_dtype_of(given: Any, state: Any) -> Any:
    if given is not None:
        return given
    if not nest.is_nested(state):
        return state.dtype
    types = [part.dtype for part in nest.flatten(state)]
    if not types:
        raise ValueError("Unable to infer dtype from empty state.")
    if any(each != types[0] for each in types):
        raise ValueError(
            "State has tensors of different inferred_dtypes. Unable to infer a single representative dtype."
        )
    return types[0]


def _known_shape(size: Any) -> TensorShape:
    """A size, a shape or a tensor that holds one, as a shape."""
    if isinstance(size, Tensor):
        known = known_value(size)
        return TensorShape(None) if known is None else as_shape(known.tolist())
    return TensorShape([size]) if isinstance(size, int) else as_shape(size)


def cache_variables(scope: Any) -> None:
    """Caches the scope's variables on their devices: one read, not one in every time step. Not inside a loop."""
    context = get_default_graph()._control_flow_context
    if (context is None or context.while_context() is None) and scope.caching_device is None:
        scope.set_caching_device(device_of)


def start_state(cell: Any, initial_state: Any, batch_size: Any, dtype: Any, complaint: str) -> Any:
    if initial_state is not None:
        return initial_state
    if not dtype:
        raise ValueError(complaint)
    if getattr(cell, "get_initial_state", None) is not None:
        return cell.get_initial_state(inputs=None, batch_size=batch_size, dtype=dtype)
    return cell.zero_state(batch_size, dtype)


# --- one step of sequences of different lengths ---


def masked_step(
    time: Any,
    lengths: Tensor,
    shortest: Tensor,
    longest: Tensor,
    zero_output: Any,
    state: Any,
    call_cell: Callable[[], Any],
    skip_conditionals: bool = False,
) -> tuple[Any, Any]:
    """One step: rows whose sequence has ended give zeros and keep their state.

    Unless `skip_conditionals`, the cell does not run once all have ended, and nothing is copied while none has.
    """
    flat_state, flat_zeros = nest.flatten(state), nest.flatten(zero_output)
    ended = time >= lengths

    def chosen(old: Any, new: Any) -> Any:
        if isinstance(old, TensorArray) or old.shape.ndims == 0:
            return new
        with colocate_with(new):
            return slicing.where(ended, old, new)

    def called() -> tuple[list[Any], list[Any]]:
        output, new_state = call_cell()
        nest.assert_same_structure(zero_output, output)
        nest.assert_same_structure(state, new_state)
        return nest.flatten(output), nest.flatten(new_state)

    def copied(output: list[Any], new_state: list[Any]) -> list[Any]:
        outputs = [chosen(old, new) for old, new in zip(flat_zeros, output, strict=True)]
        return outputs + [chosen(old, new) for old, new in zip(flat_state, new_state, strict=True)]

    def run() -> Any:
        output, new_state = called()
        return cond(time < shortest, lambda: output + new_state, lambda: copied(output, new_state))

    flat: Any = copied(*called()) if skip_conditionals else cond(time >= longest, lambda: flat_zeros + flat_state, run)
    flat = nest.flatten(flat)
    for result, like in zip(flat, flat_zeros + flat_state, strict=True):
        if not isinstance(result, TensorArray):
            result.set_shape(like.shape)
    outputs, states = flat[: len(flat_zeros)], flat[len(flat_zeros) :]
    return nest.pack_sequence_as(zero_output, outputs), nest.pack_sequence_as(state, states)


# --- dynamic ---


def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """`(outputs, last state)` of `cell` over `inputs`: (B, T, D) or a structure of such; (T, B, D) if `time_major`.

    `sequence_length` (B) says how long each sequence is: beyond, outputs are zero and the state stays. Without an
    `initial_state` the state starts at zero, of type `dtype`. Raises TypeError for an object that is not a cell,
    ValueError for shapes that do not fit.
    """
    assert_like_rnncell("cell", cell)
    with variable_scope(scope or "rnn") as varscope:
        cache_variables(varscope)
        flat = [convert_to_tensor(each) for each in nest.flatten(inputs)]
        if not time_major:
            flat = [transpose_batch_time(each) for each in flat]
        lengths = None
        if sequence_length is not None:
            lengths = math.cast(sequence_length, dtypes.int32)
            if lengths.shape.ndims not in (None, 1):
                raise ValueError(
                    f"sequence_length must be a vector of length batch_size, but saw shape: {lengths.shape}"
                )
            lengths = array.identity(lengths, name="sequence_length")
        batch_size = best_effort_input_batch_size(flat)
        state = start_state(
            cell, initial_state, batch_size, dtype, "If there is no initial_state, you must give a dtype."
        )
        if lengths is not None:
            with control_dependencies([_assert_has_shape(lengths, [batch_size])]):
                lengths = array.identity(lengths, name="CheckSeqLen")
        outputs, final_state = _dynamic_loop(
            cell,
            nest.pack_sequence_as(inputs, flat),
            state,
            parallel_iterations or 32,
            swap_memory,
            lengths,
            dtype,
        )
        if not time_major:
            outputs = nest.map_structure(transpose_batch_time, outputs)
        return outputs, final_state


def _assert_has_shape(x: Tensor, shape: list[Any]) -> Any:
    actual, wanted = array.shape(x), array.stack(shape)
    data = [f"Expected shape for Tensor {x.name} is ", wanted, " but saw shape: ", actual]
    return Assert(math.reduce_all(math.equal(actual, wanted)), data)


def _check_inputs(flat: Sequence[Tensor]) -> tuple[int | None, int | None]:
    """(T, B) of the inputs, as far as known. Raises ValueError where they differ or D is not known."""
    shapes = [each.shape.with_rank_at_least(3) for each in flat]
    steps, batch = shapes[0].as_list()[:2]
    for shape in shapes:
        if not shape[2:].is_fully_defined():
            raise ValueError("Input size (depth of inputs) must be accessible via shape inference, but saw value None.")
        if shape[0].value != steps:
            raise ValueError("Time steps is not the same for all the elements in the input in a batch.")
        if shape[1].value != batch:
            raise ValueError("Batch_size is not the same for all the elements in the input.")
    return steps, batch


def _dynamic_loop(
    cell: Any,
    inputs: Any,
    state: Any,
    parallel_iterations: int,
    swap_memory: bool,
    lengths: Tensor | None,
    dtype: Any,
) -> tuple[Any, Any]:
    """The loop over inputs (T, B, …); outputs are (T, B, …)."""
    flat_inputs = nest.flatten(inputs)
    flat_sizes = nest.flatten(cell.output_size)
    time_steps = array.shape(flat_inputs[0])[0]
    batch_size = best_effort_input_batch_size(flat_inputs)
    known_steps, known_batch = _check_inputs(flat_inputs)
    state_dtype = state_dtype_of(dtype, state)

    def zeros(size: Any) -> Tensor:
        return array.zeros(batched_shape(batch_size, size), state_dtype)

    zero_output = nest.pack_sequence_as(cell.output_size, [zeros(size) for size in flat_sizes])
    shortest = longest = time_steps
    if lengths is not None:
        shortest, longest = math.reduce_min(lengths), math.reduce_max(lengths)
    time = array.constant(0, dtype=dtypes.int32, name="time")
    with name_scope("dynamic_rnn") as base_name:
        pass

    def new_array(name: str, element_shape: Any, element_dtype: Any) -> TensorArray:
        return TensorArray(
            element_dtype, size=time_steps, element_shape=element_shape, tensor_array_name=base_name + name
        )

    out_arrays = tuple(
        new_array(f"output_{i}", TensorShape([known_batch]).concatenate(_known_shape(size)), state_dtype)
        for i, size in enumerate(flat_sizes)
    )
    in_arrays = tuple(new_array(f"input_{i}", each.shape[1:], each.dtype) for i, each in enumerate(flat_inputs))
    in_arrays = tuple(each.unstack(value) for each, value in zip(in_arrays, flat_inputs, strict=True))

    def body(time: Tensor, written: Any, state: Any) -> Any:
        step_inputs = [each.read(time) for each in in_arrays]
        for value, whole in zip(step_inputs, flat_inputs, strict=True):
            value.set_shape(whole.shape[1:])
        packed = nest.pack_sequence_as(inputs, step_inputs)
        if lengths is None:
            output, new_state = cell(packed, state)
        else:
            output, new_state = masked_step(
                time,
                lengths,
                shortest,
                longest,
                zero_output,
                state,
                lambda: cell(packed, state),
                skip_conditionals=True,
            )
        values = nest.flatten(output)
        written = tuple(each.write(time, value) for each, value in zip(written, values, strict=True))
        return time + 1, written, new_state

    bound = math.minimum(time_steps, math.maximum(1, longest))
    _, final_arrays, final_state = while_loop(
        lambda time, *_: time < bound,
        body,
        (time, out_arrays, state),
        parallel_iterations=parallel_iterations,
        maximum_iterations=time_steps,
        swap_memory=swap_memory,
    )
    outputs = [each.stack() for each in final_arrays]
    for output, size in zip(outputs, flat_sizes, strict=True):
        output.set_shape(static_batched_shape([known_steps, known_batch], size))
    return nest.pack_sequence_as(cell.output_size, outputs), final_state


def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """`((outputs forwards, outputs backwards), (last state of each))`; arguments as for dynamic_rnn."""
    assert_like_rnncell("cell_fw", cell_fw)
    assert_like_rnncell("cell_bw", cell_bw)
    time_axis, batch_axis = (0, 1) if time_major else (1, 0)

    def reversed_in_time(value: Any) -> Tensor:
        if sequence_length is None:
            return slicing.reverse(value, axis=[time_axis])
        return slicing.reverse_sequence(value, sequence_length, seq_axis=time_axis, batch_axis=batch_axis)

    common = {
        "sequence_length": sequence_length,
        "dtype": dtype,
        "parallel_iterations": parallel_iterations,
        "swap_memory": swap_memory,
        "time_major": time_major,
    }
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw_scope:
            output_fw, state_fw = dynamic_rnn(cell_fw, inputs, initial_state=initial_state_fw, scope=fw_scope, **common)
        with variable_scope("bw") as bw_scope:
            backwards = nest.map_structure(reversed_in_time, inputs)
            output_bw, state_bw = dynamic_rnn(
                cell_bw, backwards, initial_state=initial_state_bw, scope=bw_scope, **common
            )
    output_bw = nest.map_structure(reversed_in_time, output_bw)
    return (output_fw, output_bw), (state_fw, state_bw)


def raw_rnn(
    cell: Any,
    loop_fn: Callable[..., Any],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """A loop of `cell` whose inputs `loop_fn` decides; gives (TensorArrays emitted, last state, last loop state).

    `loop_fn(time, output, state, loop_state)` returns (finished (B), next input, next state, what to emit, next loop
    state); it is called first with None for all but `time` and then gives the initial state and the structure to emit.
    Rows that have finished emit zeros and keep their state.
    """
    assert_like_rnncell("cell", cell)
    if not callable(loop_fn):
        raise TypeError("loop_fn must be a callable")
    with variable_scope(scope or "rnn") as varscope:
        cache_variables(varscope)
        time = array.constant(0, dtype=dtypes.int32)
        finished, next_input, state, emit_structure, first_loop_state = loop_fn(time, None, None, None)
        flat_input = nest.flatten(next_input)
        loop_state = array.constant(0, dtype=dtypes.int32) if first_loop_state is None else first_loop_state
        rows = flat_input[0].shape[0]
        for each in flat_input[1:]:
            rows = rows.merge_with(each.shape[0])
        batch_size = array.shape(flat_input[0])[0] if rows.value is None else rows.value
        nest.assert_same_structure(state, cell.state_size)
        state = nest.map_structure(convert_to_tensor, state)
        if emit_structure is None:
            emit_structure = cell.output_size
            sizes = nest.flatten(emit_structure)
            types = [nest.flatten(state)[0].dtype] * len(sizes)
        else:
            emitted = nest.flatten(emit_structure)
            sizes = [each.shape if each.shape.is_fully_defined() else array.shape(each) for each in emitted]
            types = [each.dtype for each in emitted]
        arrays = nest.pack_sequence_as(
            emit_structure,
            [
                TensorArray(
                    kind,
                    dynamic_size=True,
                    element_shape=TensorShape([rows.value]).concatenate(_known_shape(size)),
                    size=0,
                    name=f"rnn_output_{i}",
                )
                for i, (kind, size) in enumerate(zip(types, sizes, strict=True))
            ],
        )
        zero_emit = nest.pack_sequence_as(
            emit_structure,
            [array.zeros(batched_shape(batch_size, size), kind) for size, kind in zip(sizes, types, strict=True)],
        )

        def body(time: Tensor, finished: Tensor, inputs: Any, written: Any, state: Any, loop_state: Any) -> Any:
            output, cell_state = cell(inputs, state)
            nest.assert_same_structure(state, cell_state)
            nest.assert_same_structure(cell.output_size, output)
            next_time = time + 1
            now_finished, following, next_state, emit, next_loop_state = loop_fn(
                next_time, output, cell_state, loop_state
            )
            nest.assert_same_structure(state, next_state)
            nest.assert_same_structure(inputs, following)
            nest.assert_same_structure(written, emit)

            def chosen(old: Any, new: Any) -> Any:
                if isinstance(old, TensorArray) or old.shape.ndims == 0:
                    return new
                with colocate_with(new):
                    return slicing.where(finished, old, new)

            emit = nest.map_structure(chosen, zero_emit, emit)
            next_state = nest.map_structure(chosen, state, next_state)
            written = nest.map_structure(lambda each, value: each.write(time, value), written, emit)
            return (
                next_time,
                math.logical_or(finished, now_finished),
                following,
                written,
                next_state,
                loop_state if next_loop_state is None else next_loop_state,
            )

        returned = while_loop(
            lambda _, finished, *rest: math.logical_not(math.reduce_all(finished)),
            body,
            [time, finished, next_input, arrays, state, loop_state],
            parallel_iterations=parallel_iterations or 32,
            swap_memory=swap_memory,
        )
        arrays, final_state, final_loop_state = returned[-3:]
        return arrays, final_state, None if first_loop_state is None else final_loop_state
