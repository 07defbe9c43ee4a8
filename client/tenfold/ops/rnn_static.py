"""Recurrent networks over sequences, unrolled: `tf.nn.static_rnn` and similar.

# B batch, D input size; inputs are lists of tensors (B, D), one a time step.
rnn.py has the functions that run in a loop, and the shared helpers. Follows TensorFlow 1.15's rnn.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies
from tenfold.ops import array, math, slicing
from tenfold.ops.rnn import cache_variables, masked_step, start_state, state_dtype_of
from tenfold.ops.rnn_cell import assert_like_rnncell
from tenfold.ops.rnn_cell_layer import batched_shape, static_batched_shape
from tenfold.ops.variable_scope import variable_scope
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.tensor import Tensor

__all__ = ["static_bidirectional_rnn", "static_rnn", "static_state_saving_rnn"]


def static_rnn(
    cell: Any,
    inputs: Any,
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """`(list of outputs, last state)` of `cell` over the list `inputs` of tensors (B, D), one a time step.

    Raises TypeError unless given a cell and a list, ValueError for an empty list or unknown sizes.
    """
    assert_like_rnncell("cell", cell)
    if not nest.is_nested(inputs):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")
    outputs: list[Any] = []
    with variable_scope(scope or "rnn") as varscope:
        cache_variables(varscope)
        first = nest.flatten(inputs)[0]
        rows = _static_batch(inputs, first)
        batch_size = rows.value or array.shape(first)[0]
        state = start_state(
            cell, initial_state, batch_size, dtype, "If no initial_state is provided, dtype must be specified"
        )
        lengths = shortest = longest = zero_output = None
        if sequence_length is not None:
            lengths = convert_to_tensor(sequence_length, name="sequence_length")
            if lengths.shape.ndims not in (None, 1):
                raise ValueError("sequence_length must be a vector of length batch_size")

            def zeros(size: Any) -> Tensor:
                output = array.zeros(batched_shape(batch_size, size), state_dtype_of(dtype, state))
                output.set_shape(static_batched_shape(rows.value, size))
                return output

            zero_output = nest.map_structure(zeros, cell.output_size)
            lengths = math.cast(lengths, dtypes.int32)
            shortest, longest = math.reduce_min(lengths), math.reduce_max(lengths)
        for time, step_input in enumerate(inputs):
            if time > 0:
                varscope.reuse_variables()
            if lengths is None or shortest is None or longest is None:
                output, state = cell(step_input, state)
            else:
                output, state = masked_step(
                    time,
                    lengths,
                    shortest,
                    longest,
                    zero_output,
                    state,
                    lambda step_input=step_input, state=state: cell(step_input, state),  # type: ignore[misc]
                )
            outputs.append(output)
        return outputs, state


def _static_batch(inputs: Any, first: Tensor) -> Any:
    """The batch dimension of the inputs. Raises ValueError where an input size is not known."""
    if first.shape.ndims == 1:
        return first.shape[0]
    rows = first.shape.with_rank_at_least(2)[0]
    for each in nest.flatten(inputs):
        shape = each.shape.with_rank_at_least(2)
        rows = rows.merge_with(shape[0])
        for index, size in enumerate(shape[1:].as_list()):
            if size is None:
                raise ValueError(
                    f"Input size (dimension {index} of inputs) must be accessible via shape inference, but saw value "
                    "None."
                )
    return rows


def static_state_saving_rnn(
    cell: Any, inputs: Any, state_saver: Any, state_name: Any, sequence_length: Any = None, scope: Any = None
) -> tuple[list[Any], Any]:
    """`static_rnn` whose state comes from `state_saver.state(name)` and goes to `state_saver.save_state(name, state)`.

    `state_name` has the structure of `cell.state_size`. Raises ValueError otherwise.
    """
    if nest.is_nested(cell.state_size) != nest.is_nested(state_name):
        raise ValueError(
            "state_name should be the same type as cell.state_size.  "
            f"state_name: {state_name}, cell.state_size: {cell.state_size}"
        )
    names, sizes = nest.flatten(state_name), nest.flatten(cell.state_size)
    if len(names) != len(sizes):
        raise ValueError(f"#elems(state_name) != #elems(state_size): {len(names)} vs. {len(sizes)}")
    start = nest.pack_sequence_as(cell.state_size, [state_saver.state(name) for name in names])
    outputs, state = static_rnn(cell, inputs, start, sequence_length=sequence_length, scope=scope)
    saves = [state_saver.save_state(name, part) for name, part in zip(names, nest.flatten(state), strict=True)]
    with control_dependencies(saves):
        outputs[-1] = nest.map_structure(array.identity, outputs[-1])
        state = nest.map_structure(array.identity, state)
    return outputs, state


def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any, Any]:
    """`(outputs, last state forwards, last state backwards)`; each output joins those of both directions."""
    assert_like_rnncell("cell_fw", cell_fw)
    assert_like_rnncell("cell_bw", cell_bw)
    if not nest.is_nested(inputs):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw_scope:
            forwards, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, scope=fw_scope)
        with variable_scope("bw") as bw_scope:
            backwards, state_bw = static_rnn(
                cell_bw, _reversed(inputs, sequence_length), initial_state_bw, dtype, sequence_length, scope=bw_scope
            )
    backwards = _reversed(backwards, sequence_length)
    joined = [
        nest.map_structure(lambda fw, bw: array.concat([fw, bw], 1), fw, bw)
        for fw, bw in zip(forwards, backwards, strict=True)
    ]
    return joined, state_fw, state_bw


def _reversed(inputs: Sequence[Any], lengths: Any) -> list[Any]:
    """The list reversed; with `lengths`, the first `lengths[i]` entries of each row i reversed."""
    if lengths is None:
        return list(reversed(inputs))
    steps: list[list[Tensor]] = [[] for _ in inputs]
    for sequence in zip(*(nest.flatten(each) for each in inputs), strict=True):
        shape = TensorShape(None)
        for each in sequence:
            shape = shape.merge_with(each.shape)
        backwards = slicing.reverse_sequence(array.stack(list(sequence)), lengths, seq_axis=0, batch_axis=1)
        for step, result in zip(steps, slicing.unstack(backwards, num=len(sequence)), strict=True):
            result.set_shape(shape)
            step.append(result)
    return [nest.pack_sequence_as(each, step) for each, step in zip(inputs, steps, strict=True)]
