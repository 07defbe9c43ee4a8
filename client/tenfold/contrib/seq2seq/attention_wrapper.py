"""`tf.contrib.seq2seq.AttentionWrapper`: a cell that attends to one memory or several.

# B batch, S memory steps, M memory depth, A attention size
The mechanisms are in attention.py and monotonic.py. Follows TensorFlow 1.15's
contrib/seq2seq/python/ops/attention_wrapper.py, names of variables included.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

import tenfold as tf
from tenfold.contrib.seq2seq.attention import AttentionMechanism
from tenfold.graph.tensor import Tensor
from tenfold.ops.rnn_cell_layer import RNNCell, assert_like_rnncell, zero_tensors
from tenfold.ops.tensor_array import TensorArray
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Iterable

_BEAMS = (
    "Are you using the BeamSearchDecoder?  You may need to tile your {what} via the tf.contrib.seq2seq.tile_batch "
    "function with argument multiple=beam_width."
)


class AttentionWrapperState(
    namedtuple(
        "AttentionWrapperState",
        ("cell_state", "attention", "time", "alignments", "alignment_history", "attention_state"),
    )
):
    """The state of an AttentionWrapper: the cell's, the last attention, the time, and what each mechanism keeps."""

    __slots__ = ()

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """The state with other values, of the same shapes. Raises ValueError for other shapes."""

        def checked(old: Any, new: Any) -> Any:
            if isinstance(old, Tensor) and isinstance(new, Tensor):
                if not new.shape.is_compatible_with(old.shape):
                    raise ValueError(
                        f"The shape of the AttentionWrapperState is expected to be same as the one to clone. "
                        f"self.shape: {old.shape}, input.shape: {new.shape}"
                    )
                new.set_shape(old.shape)
            return new

        result: AttentionWrapperState = tf.nest.map_structure(checked, self, self._replace(**kwargs))
        return result


def _attended(mechanism: Any, cell_output: Any, state: Any, layer: Any) -> tuple[Any, Any, Any]:
    """(attention (B, A), alignments (B, S), next state) of one mechanism."""
    alignments, next_state = mechanism(cell_output, state=state)
    found = tf.squeeze(tf.matmul(tf.expand_dims(alignments, 1), mechanism.values), [1])
    attention = found if layer is None else layer(tf.concat([cell_output, found], 1))
    return attention, alignments, next_state


class AttentionWrapper(RNNCell):
    """Gives a cell the attention of the step before beside its input, and attends with its output.

    `attention_layer_size` projects [output, what was found] to that size, without it the attention is what was found;
    `output_attention=False` gives the cell's own output. Several mechanisms each have a size and a layer.
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Any = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
        attention_fn: Any = None,
        dtype: Any = None,
    ) -> None:
        """Raises TypeError for anything but mechanisms and functions, ValueError for sizes that do not fit."""
        super().__init__(name=name, dtype=dtype)
        assert_like_rnncell("cell", cell)
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        mechanisms = tuple(attention_mechanism) if self._is_multi else (attention_mechanism,)
        for each in mechanisms:
            if not isinstance(each, AttentionMechanism):
                wanted = "contain only instances of AttentionMechanism" if self._is_multi else (
                    "be an AttentionMechanism or list of multiple AttentionMechanism instances"
                )  # fmt: skip
                raise TypeError(f"attention_mechanism must {wanted}, saw type: {type(each).__name__}")
        if cell_input_fn is not None and not callable(cell_input_fn):
            raise TypeError(f"cell_input_fn must be callable, saw type: {type(cell_input_fn).__name__}")
        if attention_layer_size is not None and attention_layer is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        self._cell = cell
        self._attention_mechanisms = mechanisms
        self._cell_input_fn = cell_input_fn or (lambda inputs, attention: tf.concat([inputs, attention], -1))
        self._output_attention = output_attention
        self._alignment_history = alignment_history
        self._attention_fn = attention_fn or _attended
        self._attention_layers, self._attention_layer_size = self._layers(attention_layer_size, attention_layer)
        with tf.name_scope(name, "AttentionWrapperInit"):
            self._initial_cell_state = None
            if initial_cell_state is not None:
                last = tf.nest.flatten(initial_cell_state)[-1]
                message = (
                    f"When constructing AttentionWrapper {self._base_name}: Non-matching batch sizes between the "
                    "memory (encoder output) and initial_cell_state.  " + _BEAMS.format(what="initial state")
                )
                self._initial_cell_state = self._checked(
                    last.shape[0].value or tf.shape(last)[0], message, initial_cell_state, "check_initial_cell_state"
                )

    def _layers(self, sizes: Any, layers: Any) -> tuple[Any, int]:
        """The attention layers, or None, and the size of the attention."""
        mechanisms = self._attention_mechanisms
        given, word = (sizes, "attention_layer_size") if sizes is not None else (layers, "attention_layer")
        if given is None:
            return None, sum(each.values.shape[-1].value for each in mechanisms)
        given = tuple(given) if isinstance(given, (list, tuple)) else (given,)
        if len(given) != len(mechanisms):
            kind = "integer" if sizes is not None else "layer"
            raise ValueError(
                f"If provided, {word} must contain exactly one {kind} per attention_mechanism, saw: "
                f"{len(given)} vs {len(mechanisms)}"
            )
        if sizes is not None:
            made = tuple(
                tf.layers.Dense(size, name="attention_layer", use_bias=False, dtype=each.dtype)
                for size, each in zip(given, mechanisms, strict=True)
            )
            return made, sum(given)
        depths = [self._cell.output_size + each.values.shape[-1].value for each in mechanisms]
        shapes = [layer.compute_output_shape([None, depth]) for layer, depth in zip(given, depths, strict=True)]
        return given, sum(TensorShape(shape)[-1].value or 0 for shape in shapes)

    def _checked(self, batch_size: Any, message: str, values: Any, name: str) -> Any:
        """The values, which wait for a check that the memories have that batch size."""
        checks = [tf.assert_equal(batch_size, each.batch_size, message=message) for each in self._attention_mechanisms]
        with tf.control_dependencies([check for check in checks if check is not None]):
            return tf.nest.map_structure(lambda each: tf.identity(each, name=name), values)

    def _item_or_tuple(self, items: Iterable[Any]) -> Any:
        """A tuple for several mechanisms, the item itself for one that was not in a list."""
        found = tuple(items)
        return found if self._is_multi else found[0]

    @property
    def output_size(self) -> Any:
        """The size of the attention, or of the cell's output."""
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        """The sizes of the parts of the state."""
        mechanisms = self._attention_mechanisms
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            time=TensorShape([]),
            attention=self._attention_layer_size,
            alignments=self._item_or_tuple(each.alignments_size for each in mechanisms),
            attention_state=self._item_or_tuple(each.state_size for each in mechanisms),
            alignment_history=self._item_or_tuple(
                each.alignments_size if self._alignment_history else () for each in mechanisms
            ),
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """The initial cell state, or zeros, and the initial state of each mechanism."""
        with tf.name_scope(type(self).__name__ + "ZeroState"):
            cell_state = self._initial_cell_state
            if cell_state is None:
                cell_state = self._cell.get_initial_state(batch_size=batch_size, dtype=dtype)
            message = (
                f"When calling zero_state of AttentionWrapper {self._base_name}: Non-matching batch sizes between the "
                "memory (encoder output) and the requested batch size.  Are you using the BeamSearchDecoder?  If so, "
                "make sure your encoder output has been tiled to beam_width via tf.contrib.seq2seq.tile_batch, and "
                "the batch_size= argument passed to zero_state is batch_size * beam_width."
            )
            cell_state = self._checked(batch_size, message, cell_state, "checked_cell_state")
            mechanisms = self._attention_mechanisms
            alignments = [each.initial_alignments(batch_size, dtype) for each in mechanisms]

            def history(first: Any) -> Any:
                if not self._alignment_history:
                    return ()
                return TensorArray(dtype, size=0, dynamic_size=True, element_shape=first.shape)

            return AttentionWrapperState(
                cell_state=cell_state,
                time=tf.zeros([], dtype=tf.int32),
                attention=zero_tensors(self._attention_layer_size, batch_size, dtype),
                alignments=self._item_or_tuple(alignments),
                attention_state=self._item_or_tuple(each.initial_state(batch_size, dtype) for each in mechanisms),
                alignment_history=self._item_or_tuple(history(each) for each in alignments),
            )

    def call(self, inputs: Any, state: Any) -> tuple[Any, AttentionWrapperState]:
        """One step. Raises TypeError for another state."""
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                f"Expected state to be instance of AttentionWrapperState. Received type {type(state)} instead."
            )
        output, cell_state = self._cell(self._cell_input_fn(inputs, state.attention), state.cell_state)
        message = (
            f"When applying AttentionWrapper {self.name}: Non-matching batch sizes between the memory (encoder "
            "output) and the query (decoder output).  " + _BEAMS.format(what="memory input")
        )
        rows = output.shape[0].value or tf.shape(output)[0]
        output = self._checked(rows, message, output, "checked_cell_output")
        before, histories = state.attention_state, state.alignment_history
        if not self._is_multi:
            before, histories = (before,), (histories,)
        attentions, alignments, states, written = [], [], [], []
        for number, mechanism in enumerate(self._attention_mechanisms):
            layer = self._attention_layers[number] if self._attention_layers else None
            attention, alignment, next_state = self._attention_fn(mechanism, output, before[number], layer)
            attentions.append(attention)
            alignments.append(alignment)
            states.append(next_state)
            written.append(histories[number].write(state.time, alignment) if self._alignment_history else ())
        attention = tf.concat(attentions, 1)
        next_state = AttentionWrapperState(
            time=state.time + 1,
            cell_state=cell_state,
            attention=attention,
            attention_state=self._item_or_tuple(states),
            alignments=self._item_or_tuple(alignments),
            alignment_history=self._item_or_tuple(written),
        )
        return attention if self._output_attention else output, next_state
