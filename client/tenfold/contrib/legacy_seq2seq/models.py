"""Models of `tf.contrib.legacy_seq2seq` without attention.

# B batch, D input size, V symbols; lists have a tensor (B, D), or ids (B), a time step
attention.py has those with attention, losses.py the losses. `feed_previous` makes a decoder feed the embedding of its
own likeliest symbol in place of its inputs but the first; it may be a tensor. Follows TensorFlow 1.15's
contrib/legacy_seq2seq/python/ops/seq2seq.py, names of variables included.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import tenfold as tf
from tenfold.contrib.rnn.wrappers import EmbeddingWrapper, OutputProjectionWrapper
from tenfold.ops.rnn_cell_layer import RNNCell

if TYPE_CHECKING:
    from collections.abc import Callable


def argmax_and_embed(embedding: Any, output_projection: Any = None, update_embedding: bool = True) -> Any:
    """The loop function that embeds the likeliest symbol of the output before."""

    def loop_function(before: Any, _: Any) -> Any:
        if output_projection is not None:
            before = tf.nn.xw_plus_b(before, *output_projection)
        embedded = tf.nn.embedding_lookup(embedding, tf.argmax(before, 1))
        return embedded if update_embedding else tf.stop_gradient(embedded)

    return loop_function


def check_projection(output_projection: Any, num_symbols: int, dtype: Any) -> None:
    """Raises ValueError unless the projection is (weights (…, V), biases (V)), or None."""
    if output_projection is None:
        return
    weights, biases = (tf.convert_to_tensor(each, dtype=dtype) for each in output_projection)
    weights.get_shape().assert_is_compatible_with([None, num_symbols])
    biases.get_shape().assert_is_compatible_with([num_symbols])


def fed_by(feed_previous: Any, decoder: Callable[[bool, bool], Any], count: int, like: Callable[[], Any]) -> Any:
    """`decoder(feeds its own, updates the embedding)`: at once for a bool, else chosen in each step by a tensor.

    `like` gives the structure of the last state, `count` is the number of outputs. Both choices share variables.
    """
    if isinstance(feed_previous, bool):
        return decoder(feed_previous, True)

    def chosen(feeds: bool) -> list[Any]:
        # The branch that is built first makes the variables.
        with tf.variable_scope(tf.get_variable_scope(), reuse=None if feeds else True):
            outputs, state = decoder(feeds, False)
            return [*outputs, *(tf.nest.flatten(state) if tf.nest.is_nested(state) else [state])]

    both: Any = tf.cond(feed_previous, lambda: chosen(True), lambda: chosen(False))
    structure, parts = like(), both[count:]
    state = tf.nest.pack_sequence_as(structure, parts) if tf.nest.is_nested(structure) else parts[0]
    return both[:count], state


def rnn_decoder(
    decoder_inputs: Any, initial_state: Any, cell: Any, loop_function: Any = None, scope: Any = None
) -> tuple[list[Any], Any]:
    """`(outputs, last state)`; `loop_function(output before, number)` gives each input but the first."""
    with tf.variable_scope(scope or "rnn_decoder"):
        state, outputs = initial_state, []
        before = None
        for number, given in enumerate(decoder_inputs):
            if loop_function is not None and before is not None:
                with tf.variable_scope("loop_function", reuse=True):
                    given = loop_function(before, number)
            if number > 0:
                tf.get_variable_scope().reuse_variables()
            output, state = cell(given, state)
            outputs.append(output)
            if loop_function is not None:
                before = output
    return outputs, state


def basic_rnn_seq2seq(
    encoder_inputs: Any, decoder_inputs: Any, cell: Any, dtype: Any = tf.float32, scope: Any = None
) -> tuple[list[Any], Any]:
    """A decoder that starts with the last state of an encoder of the same kind of cell."""
    with tf.variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = tf.nn.static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: Any,
    decoder_inputs: Any,
    cell: Any,
    loop_function: Any = None,
    dtype: Any = tf.float32,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """As basic_rnn_seq2seq, with one set of variables for both."""
    with tf.variable_scope("combined_tied_rnn_seq2seq"):
        scope = scope or "tied_rnn_seq2seq"
        _, state = tf.nn.static_rnn(cell, encoder_inputs, dtype=dtype, scope=scope)
        tf.get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function=loop_function, scope=scope)


def embedding_rnn_decoder(
    decoder_inputs: Any,
    initial_state: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """A decoder of ids (B) each, looked up in the variable `embedding` (V, size)."""
    with tf.variable_scope(scope or "embedding_rnn_decoder") as inner:
        check_projection(output_projection, num_symbols, inner.dtype)
        embedding = tf.get_variable("embedding", [num_symbols, embedding_size])
        loop_function = None
        if feed_previous:
            loop_function = argmax_and_embed(embedding, output_projection, update_embedding_for_previous)
        embedded = (tf.nn.embedding_lookup(embedding, each) for each in decoder_inputs)
        return rnn_decoder(embedded, initial_state, cell, loop_function=loop_function)


def embedding_rnn_seq2seq(
    encoder_inputs: Any,
    decoder_inputs: Any,
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """An encoder and a decoder of ids; without `output_projection` the outputs are projected to the symbols."""
    with tf.variable_scope(scope or "embedding_rnn_seq2seq") as inner:
        if dtype is not None:
            inner.set_dtype(dtype)
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, encoded = tf.nn.static_rnn(encoder, encoder_inputs, dtype=dtype or inner.dtype)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)

        def decoder(feeds: bool, updates: bool) -> tuple[list[Any], Any]:
            return embedding_rnn_decoder(
                decoder_inputs, encoded, cell, num_decoder_symbols, embedding_size, output_projection, feeds, updates
            )

        return fed_by(feed_previous, decoder, len(decoder_inputs), lambda: encoded)  # type: ignore[no-any-return]


def embedding_tied_rnn_seq2seq(
    encoder_inputs: Any,
    decoder_inputs: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_decoder_symbols: int | None = None,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """As embedding_rnn_seq2seq, with one cell and one embedding for encoder and decoder."""
    with tf.variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as inner:
        dtype = inner.dtype
        check_projection(output_projection, num_symbols, dtype)
        embedding = tf.get_variable("embedding", [num_symbols, embedding_size], dtype=dtype)
        embedded_in = [tf.nn.embedding_lookup(embedding, each) for each in encoder_inputs]
        embedded_out = [tf.nn.embedding_lookup(embedding, each) for each in decoder_inputs]
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_symbols if num_decoder_symbols is None else num_decoder_symbols)

        def decoder(feeds: bool, updates: bool) -> tuple[list[Any], Any]:
            loop_function = argmax_and_embed(embedding, output_projection, updates) if feeds else None
            return tied_rnn_seq2seq(embedded_in, embedded_out, cell, loop_function, dtype)

        def zero_state() -> Any:
            rows = encoder_inputs[0].get_shape()[0].value
            return cell.zero_state(tf.shape(encoder_inputs[0])[0] if rows is None else rows, dtype)

        return fed_by(feed_previous, decoder, len(decoder_inputs), zero_state)  # type: ignore[no-any-return]


def one2many_rnn_seq2seq(
    encoder_inputs: Any,
    decoder_inputs_dict: dict[str, Any],
    enc_cell: Any,
    dec_cells_dict: dict[str, Any],
    num_encoder_symbols: int,
    num_decoder_symbols_dict: dict[str, int],
    embedding_size: int,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One encoder and several decoders, by name.

    Raises TypeError for something that is not a cell, ValueError for other keys.
    """
    if not isinstance(enc_cell, RNNCell):
        raise TypeError(f"enc_cell is not an RNNCell: {type(enc_cell)}")
    if set(dec_cells_dict) != set(decoder_inputs_dict):
        raise ValueError("keys of dec_cells_dict != keys of decodre_inputs_dict")
    for each in dec_cells_dict.values():
        if not isinstance(each, RNNCell):
            raise TypeError(f"dec_cell is not an RNNCell: {type(each)}")
    outputs_by_name, states = {}, {}
    with tf.variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as outer:
        encoder = EmbeddingWrapper(enc_cell, num_encoder_symbols, embedding_size)
        _, encoded = tf.nn.static_rnn(encoder, encoder_inputs, dtype=outer.dtype)
        for name, inputs in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[name]
            with tf.variable_scope(f"one2many_decoder_{name}"):
                cell = OutputProjectionWrapper(dec_cells_dict[name], symbols)

                def decoder(
                    feeds: bool, updates: bool, cell: Any = cell, inputs: Any = inputs, symbols: int = symbols
                ) -> tuple[list[Any], Any]:
                    return embedding_rnn_decoder(inputs, encoded, cell, symbols, embedding_size, feed_previous=feeds)

                outputs_by_name[name], states[name] = fed_by(feed_previous, decoder, len(inputs), lambda: encoded)
    return outputs_by_name, states
