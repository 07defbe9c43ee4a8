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


@pytest.mark.parametrize("peephole", [False, True])
def test_lstm_block_cell(ops: Any, peephole: bool) -> None:
    x, c, h, weights = normal(BATCH, INPUTS), normal(BATCH, CELLS), normal(BATCH, CELLS), lstm_weights()
    for bias, clip in ((1.0, 0.0), (0.0, -1.0), (0.5, 0.3)):
        outs = ops.run("LSTMBlockCell", [x, c, h, *weights], use_peephole=peephole, forget_bias=bias, cell_clip=clip)
        made = lstm_step(x, c, h, weights, ICFO, bias, clip, peephole)
        for out, value in zip(outs, made, strict=True):
            np.testing.assert_allclose(out, value, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("op", ["BlockLSTM", "BlockLSTMV2"])
@pytest.mark.parametrize("peephole", [False, True])
def test_a_block_of_some_steps_is_one_of_so_many(ops: Any, op: str, peephole: bool) -> None:
    x, c, h, weights = normal(STEPS, BATCH, INPUTS), normal(BATCH, CELLS), normal(BATCH, CELLS), lstm_weights()
    ends, attrs = [normal(STEPS, BATCH, CELLS) for _ in range(2)], {"use_peephole": peephole}

    def both(count: int, steps: int) -> tuple[Any, Any]:
        made = ops.run(op, [np.int64(count), x[:steps], c, h, *weights], cell_clip=0.0, **attrs)
        known = [*made, *(end[:steps] for end in ends)]
        return made, ops.run(
            op.replace("LSTM", "LSTMGrad"), [np.int64(count), x[:steps], c, h, *weights, *known], **attrs
        )

    for count in range(STEPS + 1):
        made, slopes = both(count, STEPS)
        less, expected = both(count, count)
        for whole, part in zip((*made, slopes[0]), (*less, expected[0]), strict=True):
            np.testing.assert_array_equal(whole[:count], part)
            assert not whole[count:].any()
        for found, wanted in zip(slopes[1:], expected[1:], strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert count or not found.any()
        assert [each.shape for each in slopes] == [each.shape for each in (x, c, h, *weights)]
        assert [bool(each.any()) for each in slopes[4:7]] == [peephole and count > 0] * 3


def test_the_gradient_of_a_cell_is_that_of_a_block_of_one_step(ops: Any) -> None:
    x, c, h, weights = normal(BATCH, INPUTS), normal(BATCH, CELLS), normal(BATCH, CELLS), lstm_weights()
    ends = [normal(BATCH, CELLS) for _ in range(2)]
    for peephole in (False, True):
        made = ops.run("LSTMBlockCell", [x, c, h, *weights], use_peephole=peephole)
        before, gates, *of_peepholes = ops.run(
            "LSTMBlockCellGrad", [x, c, h, *weights, *made[:6], *ends], use_peephole=peephole
        )
        block = [each[None] for each in (x, *made, *ends)]
        slopes = ops.run("BlockLSTMGrad", [np.int64(1), block[0], c, h, *weights, *block[1:]], use_peephole=peephole)
        np.testing.assert_allclose(before, slopes[1], rtol=1e-6)
        np.testing.assert_allclose((gates @ weights[0].T)[:, :INPUTS], slopes[0][0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(gates.sum(0), slopes[7], rtol=1e-5, atol=1e-6)
        for found, wanted in zip(of_peepholes, slopes[4:7], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
            assert bool(found.any()) == peephole


def changed(values: list[Any], place: int, value: Any) -> list[Any]:
    return [*values[:place], value, *values[place + 1 :]]


def refused(text: str, run: Any, *inputs: Any, **attrs: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        run(*inputs, **attrs)
    assert error.value.message == text


def of(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


#: Inputs of a step, and of three.
STEP = [of(2, 4), of(2, 5), of(2, 5), of(9, 20), of(5), of(5), of(5), of(20)]
BLOCK = [np.int64(3), of(3, 2, 4), *STEP[1:]]
OPS = [
    ("LSTMBlockCell", STEP, 0, 2),
    ("LSTMBlockCellGrad", [*STEP, *[of(2, 5)] * 8], 0, 2),
    ("BlockLSTM", BLOCK, 1, 3),
    ("BlockLSTMV2", BLOCK, 1, 3),
    ("BlockLSTMGrad", [*BLOCK, *[of(3, 2, 5)] * 9], 1, 3),
    ("BlockLSTMGradV2", [*BLOCK, *[of(3, 2, 5)] * 9], 1, 3),
]


@pytest.mark.parametrize(("op", "inputs", "first", "rank"), OPS, ids=[row[0] for row in OPS])
def test_states_and_weights_that_do_not_fit(ops: Any, op: str, inputs: list[Any], first: int, rank: int) -> None:
    for peephole in (False, True):
        ops.run(op, inputs, use_peephole=peephole)
        wrong: list[tuple[int, Any, str]] = [
            (1, of(2), f"x must be {rank}D and cs_prev 2D, got [{'3,' * (rank - 2)}2,4] and [2]"),
            (2, of(2, 4), "x, cs_prev and h_prev must have one batch size and the states one shape: "
                          f"[{'3,' * (rank - 2)}2,4], [2,5], [2,4]"),
            (3, of(10, 20), "w matrix has shape [10,20]; 4 inputs and 5 cells need [9,20]"),
            (3, of(9, 21), "w matrix has shape [9,21]; 4 inputs and 5 cells need [9,20]"),
            (7, of(5), "b must have 20 entries, four for each cell, got shape [5]"),
            (7, of(1, 20), "b must have 20 entries, four for each cell, got shape [1,20]"),
        ]  # fmt: skip
        for place, name in enumerate(("wci", "wcf", "wco"), 4):
            if peephole:
                wrong.append((place, of(4), f"{name} must have an entry for each of 5 cells, got shape [4]"))
            else:
                ops.run(op, changed(inputs, first + place, of(4)), use_peephole=False)
        for place, value, text in wrong:
            refused(text, ops.run, op, changed(inputs, first + place, value), use_peephole=peephole)
    both = changed(changed(inputs, first + 1, of(3, 5)), first + 2, of(3, 5))
    text = "x, cs_prev and h_prev must have one batch size and the states one shape: "
    refused(f"{text}[{'3,' * (rank - 2)}2,4], [3,5], [3,5]", ops.run, op, both, use_peephole=False)
    names = ("i", "cs", "f", "o", "ci", "co", *(("h",) if rank == 3 else ()), "cs_grad", "h_grad")
    for name, place in zip(names, range(first + 8, len(inputs)), strict=len(inputs) > first + 8):
        shape = "[3,2,5]" if rank == 3 else "[2,5]"
        refused(
            f"{name} must have shape {shape}, got [2,4]",
            ops.run,
            op,
            changed(inputs, place, of(2, 4)),
            use_peephole=False,
        )
    if rank == 2:
        refused(
            "x must be 2D and cs_prev 2D, got [4] and [2,5]", ops.run, op, changed(inputs, 0, of(4)), use_peephole=False
        )
        return
    refused(
        "seq_len_max must be rank 0 but is rank 1",
        ops.run,
        op,
        changed(inputs, 0, np.zeros(1, np.int64)),
        use_peephole=False,
    )
    refused("x must be 3D", ops.run, op, changed(inputs, 1, of(2, 4)), use_peephole=False)
    for count in (-1, 4):
        refused(
            f"seq_len_max is {count}; x has 3 steps",
            ops.run,
            op,
            changed(inputs, 0, np.int64(count)),
            use_peephole=False,
        )


def test_weights_and_states_that_do_not_fit_a_gru(ops: Any) -> None:
    good = [of(2, 4), of(2, 5), of(9, 10), of(9, 5), of(10), of(5)]
    made = [of(2, 5)] * 4
    for op, inputs in (("GRUBlockCell", good), ("GRUBlockCellGrad", [*good, *made])):
        assert not any(each.any() for each in ops.run(op, inputs)[2:])
        for place, value, text in (
            (0, of(4), "x and h_prev must be 2D and of one batch: [4], [2,5]"),
            (1, of(5), "x and h_prev must be 2D and of one batch: [2,4], [5]"),
            (1, of(3, 5), "x and h_prev must be 2D and of one batch: [2,4], [3,5]"),
            (2, of(9, 5), "w_ru has shape [9,5]; 4 inputs and 5 cells need [9,10]"),
            (3, of(5, 5), "w_c has shape [5,5]; 4 inputs and 5 cells need [9,5]"),
            (4, of(5), "b_ru has shape [5]; 4 inputs and 5 cells need [10]"),
            (5, of(1), "b_c has shape [1]; 4 inputs and 5 cells need [5]"),
        ):
            refused(text, ops.run, op, changed(inputs, place, value))
    for place, name in enumerate(("r", "u", "c", "d_h")):
        text = f"{name} must have shape [2,5], got [2,4]"
        refused(text, ops.run, "GRUBlockCellGrad", [*good, *changed(made, place, of(2, 4))])
