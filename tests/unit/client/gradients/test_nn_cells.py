"""Gradients of recurrent cells that are one op: against finite differences, and what they need to know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.graph.op_builder import apply_op

RNG = np.random.default_rng(31)
STEPS, BATCH, INPUTS, CELLS = 3, 2, 4, 5


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


def lstm_weights() -> list[np.ndarray[Any, Any]]:
    return [normal(INPUTS + CELLS, 4 * CELLS), normal(CELLS), normal(CELLS), normal(CELLS), normal(4 * CELLS)]


def differences(make: Any, values: list[Any]) -> None:
    """The gradient of a weighted sum of `make`'s output against differences, in one direction of all inputs."""
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = [tf.placeholder(tf.float32, value.shape) for value in values]
        output = make(*inputs)
        loss = tf.reduce_sum(output * normal(*output.shape.as_list()))
        grads = tf.gradients(loss, inputs)
        ways = [normal(*value.shape) for value in values]
        feed = dict(zip(inputs, values, strict=True))
        slope = sum(float((g * way).sum()) for g, way in zip(session.run(grads, feed), ways, strict=True))
        step = 1e-2

        def at(scale: float) -> float:
            moved = [value + scale * way for value, way in zip(values, ways, strict=True)]
            return float(session.run(loss, dict(zip(inputs, moved, strict=True))))

        assert (at(step) - at(-step)) / (2 * step) == pytest.approx(slope, rel=2e-2, abs=2e-2)


@pytest.mark.parametrize("op", ["BlockLSTM", "BlockLSTMV2"])
def test_gradient_of_block_lstm(op: str) -> None:
    def make(*inputs: Any) -> Any:
        names = ("x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")
        return apply_op(
            op, seq_len_max=np.int64(STEPS), **dict(zip(names, inputs, strict=True)), use_peephole=True, cell_clip=0.0
        )[6]

    scale = np.float32(0.3)
    states = [normal(STEPS, BATCH, INPUTS), normal(BATCH, CELLS), normal(BATCH, CELLS)]
    differences(make, [*states, *(scale * w for w in lstm_weights())])


def test_gradient_of_cells() -> None:
    def lstm(*inputs: Any) -> Any:
        names = ("x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")
        named = dict(zip(names, inputs, strict=True))
        return apply_op("LSTMBlockCell", **named, use_peephole=True, cell_clip=0.0)[6]

    def gru(*inputs: Any) -> Any:
        return apply_op(
            "GRUBlockCell", **dict(zip(("x", "h_prev", "w_ru", "w_c", "b_ru", "b_c"), inputs, strict=True))
        )[3]

    scale = np.float32(0.3)
    states = [normal(BATCH, INPUTS), normal(BATCH, CELLS)]
    differences(lstm, [*states, normal(BATCH, CELLS), *(scale * w for w in lstm_weights())])
    gates = [normal(INPUTS + CELLS, 2 * CELLS), normal(INPUTS + CELLS, CELLS), normal(10), normal(5)]
    differences(gru, [*states, *(scale * w for w in gates)])


@pytest.mark.parametrize("op", ["BlockLSTM", "BlockLSTMV2", "LSTMBlockCell"])
@pytest.mark.parametrize("peephole", [False, True])
def test_gradient_of_a_cells_state_and_output_together(op: str, peephole: bool) -> None:
    """Each has a slope of its own, and what comes back depends on both."""

    def make(*inputs: Any) -> Any:
        names = ("x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")
        steps = {} if op == "LSTMBlockCell" else {"seq_len_max": np.int64(STEPS)}
        outs = apply_op(op, **dict(zip(names, inputs, strict=True)), **steps, use_peephole=peephole, cell_clip=0.0)
        return tf.concat([outs[1] * 2.0, outs[6]], -1)

    x = normal(BATCH, INPUTS) if op == "LSTMBlockCell" else normal(STEPS, BATCH, INPUTS)
    weights = [np.float32(0.3) * w for w in lstm_weights()]
    differences(make, [x, normal(BATCH, CELLS), normal(BATCH, CELLS), *weights])


def test_gradients_of_a_block_end_at_its_length() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, c, h = tf.constant(normal(STEPS, BATCH, INPUTS)), *(tf.constant(normal(BATCH, CELLS)) for _ in range(2))
        w, wci, wcf, wco, b = (tf.constant(each) for each in lstm_weights())
        length = tf.constant(2, tf.int64)
        outs = apply_op("BlockLSTM", seq_len_max=length, x=x, cs_prev=c, h_prev=h, w=w, wci=wci, wcf=wcf, wco=wco, b=b)
        assert tf.gradients(outs[6], [length]) == [None]
        slope = session.run(tf.gradients(outs[6], [x])[0])
    assert [bool(step.any()) for step in slope] == [True, True, False]


@pytest.mark.parametrize(("unknown", "name"), [("x", "x"), ("cs_prev", "cs_prev")])
def test_a_cell_of_unknown_width_has_no_gradient(unknown: str, name: str) -> None:
    with tf.Graph().as_default():
        inputs = [normal(BATCH, INPUTS), normal(BATCH, CELLS), normal(BATCH, CELLS), *lstm_weights()]
        names = ("x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")
        given = {
            each: tf.placeholder(tf.float32, [None, None]) if each == unknown else tf.constant(value)
            for each, value in zip(names, inputs, strict=True)
        }
        out = apply_op("LSTMBlockCell", **given)[6]
        with pytest.raises(ValueError, match=rf"The second dimension of `{name}` should not be None\."):
            tf.gradients(out, [given["w"]])
        given[unknown] = tf.placeholder(tf.float32, [None, inputs[names.index(unknown)].shape[1]])
        assert tf.gradients(apply_op("LSTMBlockCell", **given)[6], [given["w"]]) != [None], "rows may be open"
