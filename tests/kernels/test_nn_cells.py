"""Recurrent cells as one op: against steps in NumPy. Their gradients: tests/unit/client/gradients/test_nn_cells.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors

RNG = np.random.default_rng(31)
STEPS, BATCH, INPUTS, CELLS = 3, 2, 4, 5
#: The order of the gates in the weights.
ICFO, IFCO = (0, 1, 2, 3), (0, 2, 1, 3)


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm_weights() -> list[np.ndarray[Any, Any]]:
    return [normal(INPUTS + CELLS, 4 * CELLS), normal(CELLS), normal(CELLS), normal(CELLS), normal(4 * CELLS)]


def lstm_step(x: Any, c: Any, h: Any, weights: Any, order: Any, bias: float, clip: float, peephole: bool) -> Any:
    w, wci, wcf, wco, b = weights
    gates = np.split(np.concatenate([x, h], 1) @ w + b, 4, axis=1)
    of_i, of_c, of_f, of_o = (gates[place] for place in order)
    i = sigmoid(of_i + c * wci * peephole)
    f = sigmoid(of_f + bias + c * wcf * peephole)
    ci = np.tanh(of_c)
    following = i * ci + f * c
    if clip > 0:
        following = np.clip(following, -clip, clip)
    o = sigmoid(of_o + following * wco * peephole)
    co = np.tanh(following)
    return i, following, f, o, ci, co, o * co


@pytest.mark.parametrize("peephole", [False, True])
@pytest.mark.parametrize(("op", "order"), [("BlockLSTM", ICFO), ("BlockLSTMV2", IFCO)])
def test_block_lstm(ops: Any, op: str, order: Any, peephole: bool) -> None:
    x, c, h, weights = normal(STEPS, BATCH, INPUTS), normal(BATCH, CELLS), normal(BATCH, CELLS), lstm_weights()
    bias = {"forget_bias": 0.5} if op == "BlockLSTM" else {}
    outs = ops.run(op, [np.array(2, np.int64), x, c, h, *weights], use_peephole=peephole, cell_clip=0.7, **bias)

    for t in range(2):
        made = lstm_step(x[t], c, h, weights, order, bias.get("forget_bias", 0.0), 0.7, peephole)
        c, h = made[1], made[6]
        for out, value in zip(outs, made, strict=True):
            np.testing.assert_allclose(out[t], value, rtol=2e-5, atol=2e-6)
    assert not any(out[2].any() for out in outs)


def test_gru_block_cell(ops: Any) -> None:
    x, h = normal(BATCH, INPUTS), normal(BATCH, CELLS)
    w_ru, w_c, b_ru, b_c = normal(INPUTS + CELLS, 2 * CELLS), normal(INPUTS + CELLS, CELLS), normal(10), normal(5)
    r, u, c, following = ops.run("GRUBlockCell", [x, h, w_ru, w_c, b_ru, b_c])

    both = sigmoid(np.concatenate([x, h], 1) @ w_ru + b_ru)
    inner = np.tanh(np.concatenate([x, both[:, :CELLS] * h], 1) @ w_c + b_c)
    expected = both[:, :CELLS], both[:, CELLS:], inner, both[:, CELLS:] * h + (1 - both[:, CELLS:]) * inner
    for out, value in zip((r, u, c, following), expected, strict=True):
        np.testing.assert_allclose(out, value, rtol=2e-5, atol=2e-6)


def test_weights_that_do_not_fit_are_named(ops: Any) -> None:
    x, c, h, weights = normal(BATCH, INPUTS), normal(BATCH, CELLS), normal(BATCH, CELLS), lstm_weights()
    with pytest.raises(errors.InvalidArgumentError, match=r"w matrix has shape .* 4 inputs and 5 cells need \[9,20\]"):
        ops.run("LSTMBlockCell", [x, c, h, weights[0][1:], *weights[1:]])
    with pytest.raises(errors.InvalidArgumentError, match="seq_len_max is 4; x has 3 steps"):
        ops.run("BlockLSTM", [np.array(4, np.int64), normal(STEPS, BATCH, INPUTS), c, h, *weights])
