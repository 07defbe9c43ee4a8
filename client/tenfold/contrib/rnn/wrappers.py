"""Wrappers around cells that only contrib has: embedding, projections, highway connections, attention to the past.

# B batch, D input size, L attention length, A attention size
Dropout, residual and device wrappers are in tenfold/ops/rnn_cell_wrappers.py. Follows TensorFlow 1.15's
contrib/rnn/python/ops/core_rnn_cell.py and rnn_cell.py, names of variables included.
"""

from __future__ import annotations

import math
from typing import Any

import tenfold as tf
from tenfold.contrib.rnn.cell_parts import Linear
from tenfold.ops.rnn_cell_layer import RNNCell, assert_like_rnncell


class _Around(RNNCell):
    """A cell around `self._cell`, with its sizes and zero state."""

    _cell: Any

    @property
    def state_size(self) -> Any:
        """As the wrapped cell's."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """As the wrapped cell's."""
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """As the wrapped cell's."""
        with tf.name_scope(type(self).__name__ + "ZeroState"):
            return self._cell.zero_state(batch_size, dtype)


class EmbeddingWrapper(_Around):
    """Looks up the inputs, which are ids, in a table `embedding` (classes, size) before the cell."""

    def __init__(
        self, cell: Any, embedding_classes: int, embedding_size: int, initializer: Any = None, reuse: bool | None = None
    ) -> None:
        super().__init__(_reuse=reuse)
        assert_like_rnncell("cell", cell)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(
                f"Both embedding_classes and embedding_size must be > 0: {embedding_classes}, {embedding_size}."
            )
        self._cell = cell
        self._embedding_classes = embedding_classes
        self._embedding_size = embedding_size
        self._initializer = initializer

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        with tf.device("/cpu:0"):
            root3 = math.sqrt(3)
            initializer = self._initializer or tf.get_variable_scope().initializer
            embedding = tf.get_variable(
                "embedding",
                [self._embedding_classes, self._embedding_size],
                initializer=initializer or tf.random_uniform_initializer(-root3, root3),
                dtype=(state[0] if isinstance(state, tuple) else state).dtype,
            )
            embedded = tf.nn.embedding_lookup(embedding, tf.reshape(inputs, [-1]))
            return self._cell(embedded, state)


class InputProjectionWrapper(_Around):
    """Projects the inputs to `num_proj` before the cell."""

    def __init__(
        self, cell: Any, num_proj: int, activation: Any = None, input_size: Any = None, reuse: bool | None = None
    ) -> None:
        super().__init__(_reuse=reuse)
        if input_size is not None:
            tf.logging.warn("%s: The input_size parameter is deprecated.", self)
        assert_like_rnncell("cell", cell)
        self._cell = cell
        self._num_proj = num_proj
        self._activation = activation
        self._linear: Linear | None = None

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        if self._linear is None:
            self._linear = Linear(inputs, self._num_proj, True)
        projected = self._linear(inputs)
        return self._cell(self._activation(projected) if self._activation else projected, state)


class OutputProjectionWrapper(_Around):
    """Projects the outputs of the cell to `output_size`."""

    def __init__(self, cell: Any, output_size: int, activation: Any = None, reuse: bool | None = None) -> None:
        super().__init__(_reuse=reuse)
        assert_like_rnncell("cell", cell)
        if output_size < 1:
            raise ValueError(f"Parameter output_size must be > 0: {output_size}.")
        self._cell = cell
        self._output_size = output_size
        self._activation = activation
        self._linear: Linear | None = None

    @property
    def output_size(self) -> Any:
        """The size of the projection."""
        return self._output_size

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        output, new_state = self._cell(inputs, state)
        if self._linear is None:
            self._linear = Linear(output, self._output_size, True)
        projected = self._linear(output)
        return (self._activation(projected) if self._activation else projected), new_state


class HighwayWrapper(_Around):
    """Mixes the inputs into the outputs: carry * input + transform * output, with learned gates."""

    def __init__(self, cell: Any, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0) -> None:
        super().__init__()
        self._cell = cell
        self._couple_carry_transform_gates = couple_carry_transform_gates
        self._carry_bias_init = carry_bias_init

    @property
    def trainable_weights(self) -> list[Any]:
        """As the wrapped cell's."""
        return list(getattr(self._cell, "trainable_weights", ()))

    @property
    def non_trainable_weights(self) -> list[Any]:
        """As the wrapped cell's."""
        return list(getattr(self._cell, "non_trainable_weights", ()))

    def _gate(self, inputs: Any, name: str, bias: float) -> Any:
        depth = inputs.get_shape().with_rank(2)[1].value
        weight = tf.get_variable(f"{name}_w", [depth, depth])
        start = tf.get_variable(f"{name}_b", [depth], initializer=tf.constant_initializer(bias))
        return tf.sigmoid(tf.nn.xw_plus_b(inputs, weight, start))

    def _highway(self, inputs: Any, outputs: Any) -> Any:
        carry = self._gate(inputs, "carry", self._carry_bias_init)
        if self._couple_carry_transform_gates:
            transform = 1 - carry
        else:
            transform = self._gate(inputs, "transform", -self._carry_bias_init)
        return inputs * carry + outputs * transform

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step. Raises ValueError if outputs have not the shape of the inputs."""
        outputs, new_state = self._cell(inputs, state, scope=scope)
        tf.nest.assert_same_structure(inputs, outputs)
        for before, after in zip(tf.nest.flatten(inputs), tf.nest.flatten(outputs), strict=True):
            before.get_shape().assert_is_compatible_with(after.get_shape())
        return tf.nest.map_structure(self._highway, inputs, outputs), new_state


class AttentionCellWrapper(RNNCell):
    """Attends to its own last `attn_length` outputs; the state is (cell's, (B, A), (B, A * L))."""

    def __init__(
        self,
        cell: Any,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        assert_like_rnncell("cell", cell)
        if tf.nest.is_nested(cell.state_size) and not state_is_tuple:
            raise ValueError(
                "Cell returns tuple of states, but the flag state_is_tuple is not set. State size is: "
                f"{cell.state_size}"
            )
        if attn_length <= 0:
            raise ValueError(f"attn_length should be greater than zero, got {attn_length}")
        if not state_is_tuple:
            tf.logging.warn("%s: a concatenated state is slower; use state_is_tuple=True.", self)
        self._state_is_tuple = state_is_tuple
        self._cell = cell
        self._attn_size: int = cell.output_size if attn_size is None else attn_size
        self._attn_vec_size: int = self._attn_size if attn_vec_size is None else attn_vec_size
        self._input_size = input_size
        self._attn_length = attn_length
        self._linears: dict[str, Linear] = {}

    @property
    def state_size(self) -> Any:
        """The sizes of the three parts of the state, or their sum."""
        sizes = (self._cell.state_size, self._attn_size, self._attn_size * self._attn_length)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        """The attention size."""
        return self._attn_size

    def _linear(self, which: str, args: Any, size: int) -> Any:
        if which not in self._linears:
            self._linears[which] = Linear(args, size, True)
        return self._linears[which](args)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        size, length = self._attn_size, self._attn_length
        if not self._state_is_tuple:
            state = tf.split(state, [self._cell.state_size, size, size * length], 1)
        state, attention, past = state
        past = tf.reshape(past, [-1, length, size])
        input_size = self._input_size or inputs.get_shape()[1].value
        inputs = self._linear("input", [inputs, attention], input_size)
        output, new_state = self._cell(inputs, state)
        query = tf.concat(tf.nest.flatten(new_state), 1) if self._state_is_tuple else new_state
        attention, past = self._attention(query, past)
        with tf.variable_scope("attn_output_projection"):
            output = self._linear("output", [output, attention], size)
        past = tf.reshape(tf.concat([past, tf.expand_dims(output, 1)], 1), [-1, length * size])
        new_state = (new_state, attention, past)
        return output, new_state if self._state_is_tuple else tf.concat(list(new_state), 1)

    def _attention(self, query: Any, past: Any) -> tuple[Any, Any]:
        """What the query attends to, (B, A), and the past without its oldest entry."""
        size, length, depth = self._attn_size, self._attn_length, self._attn_vec_size
        with tf.variable_scope("attention"):
            kernel = tf.get_variable("attn_w", [1, 1, size, depth])
            vector = tf.get_variable("attn_v", [depth])
            hidden = tf.reshape(past, [-1, length, 1, size])
            features = tf.nn.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME")
            y = tf.reshape(self._linear("query", query, depth), [-1, 1, 1, depth])
            scores = tf.nn.softmax(tf.reduce_sum(vector * tf.tanh(features + y), [2, 3]))
            found = tf.reduce_sum(tf.reshape(scores, [-1, length, 1, 1]) * hidden, [1, 2])
            return tf.reshape(found, [-1, size]), tf.slice(past, [0, 1, 0], [-1, -1, -1])
