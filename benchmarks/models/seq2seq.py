"""Translation with attention: an encoder and a decoder in while loops over TensorArrays, 32 sentences of 20 words, 128
units, Adam with clipped gradients.

The decoder attends to all of the encoder's outputs by a learned product (Luong), and is taught by the right words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models import Model, same
from models.parts import bias, cross_entropy, weight
from models.recurrent import LSTMCell, clipped, sentences

if TYPE_CHECKING:
    from models import TF, Wrap

SENTENCES, TURNS, UNITS, WORDS = 32, 20, 128, 1000


def seq2seq(tf: TF, wrap: Wrap = same) -> Model:
    choose = np.random.default_rng(9)
    step = tf.train.get_or_create_global_step()
    source = tf.placeholder(tf.int32, [SENTENCES, TURNS], name="source")
    target = tf.placeholder(tf.int32, [SENTENCES, TURNS + 1], name="target")
    encoder = LSTMCell(tf, choose, "encoder", UNITS, UNITS)
    decoder = LSTMCell(tf, choose, "decoder", 2 * UNITS, UNITS)
    source_words = weight(tf, choose, "source_words", [WORDS, UNITS], 0.1)
    target_words = weight(tf, choose, "target_words", [WORDS, UNITS], 0.1)
    score = weight(tf, choose, "attention/score", [UNITS, UNITS], UNITS**-0.5)
    mix = weight(tf, choose, "attention/mix", [2 * UNITS, UNITS], (2 * UNITS) ** -0.5)

    def loop(inputs: Any, turn_of: Any, start: Any) -> Any:
        """Runs `turn_of(x, *state)` → (output, state) over the first axis of `inputs`: the outputs, the last state."""
        into = tf.TensorArray(tf.float32, TURNS).unstack(inputs)
        out = tf.TensorArray(tf.float32, TURNS)

        def body(turn: Any, out: Any, *state: Any) -> Any:
            output, state = turn_of(into.read(turn), *state)
            return (turn + 1, out.write(turn, output), *state)

        _, out, *state = tf.while_loop(lambda turn, *_: turn < TURNS, body, (tf.constant(0), out, *start))
        return out.stack(), state

    # T turns, B sentences, U units: the loops go over the first axis
    words_TBU = tf.nn.embedding_lookup(source_words, tf.transpose(source))
    memory_TBU, state = loop(words_TBU, lambda x, c, h: encoder(x, (c, h)), encoder.zero_state(SENTENCES, tf.float32))
    memory_BTU = tf.transpose(memory_TBU, [1, 0, 2])
    keys_BTU = tf.reshape(tf.matmul(tf.reshape(memory_BTU, [-1, UNITS]), score), [SENTENCES, TURNS, UNITS])

    def decode(x: Any, c: Any, h: Any, attended: Any) -> Any:
        output, (c, h) = decoder(tf.concat([x, attended], 1), (c, h))
        scores_BT = tf.squeeze(tf.matmul(keys_BTU, tf.expand_dims(output, 2)), [2])
        weights_B1T = tf.expand_dims(tf.nn.softmax(scores_BT), 1)
        context = tf.squeeze(tf.matmul(weights_B1T, memory_BTU), [1])
        attended = tf.tanh(tf.matmul(tf.concat([output, context], 1), mix))
        return attended, (c, h, attended)

    taught_TBU = tf.nn.embedding_lookup(target_words, tf.transpose(target[:, :-1]))
    outputs_TBU, _ = loop(taught_TBU, decode, (*state, tf.zeros([SENTENCES, UNITS])))
    w, b = weight(tf, choose, "softmax/w", [UNITS, WORDS], UNITS**-0.5), bias(tf, "softmax/b", WORDS)
    logits = tf.matmul(tf.reshape(outputs_TBU, [-1, UNITS]), w) + b
    loss = cross_entropy(tf, tf.reshape(tf.transpose(target[:, 1:]), [-1]), logits)
    train = clipped(tf, wrap(tf.train.AdamOptimizer(0.001)), loss, step)
    text = sentences(choose, SENTENCES, TURNS + 1, WORDS)
    return Model(loss, train, [{source: each[:, :0:-1], target: each} for each in text])
