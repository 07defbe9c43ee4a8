"""models/recurrent.py and models/seq2seq.py in torch, with torch's own LSTM and GRU, which a user would take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models import recurrent, seq2seq
from models.in_torch import Trained, dense_bytes
from models.in_torch.parts import Parameters, compiled_if

if TYPE_CHECKING:
    from collections.abc import Callable

    from models.in_torch import Tensor, Torch


def _lstm_weights(made: Parameters, inputs: int, units: int) -> tuple[Any, Any]:
    """What recurrent.LSTMCell draws, [inputs + units, 4 units] of i, j, f, o, in torch's order i, f, g, o: weight
    [4 units, inputs + units], and the bias with the 1 that the cell adds to f.
    """
    kernel = (made.choose.standard_normal([inputs + units, 4 * units]) * (inputs + units) ** -0.5).astype(np.float32)
    i, j, f, o = np.split(kernel, 4, 1)
    bias = np.zeros([4, units], np.float32)
    bias[1] = 1.0
    return np.concatenate([i, f, j, o], 1).T, bias.reshape(-1)


def lstm_module(torch: Torch, made: Parameters, inputs: int, units: int, *, cell: bool = False) -> Any:
    """An nn.LSTM, or nn.LSTMCell, that starts as recurrent.LSTMCell does. Its second bias is zero and not trained."""
    module = torch.nn.LSTMCell(inputs, units) if cell else torch.nn.LSTM(inputs, units)
    weight, bias = _lstm_weights(made, inputs, units)
    input_w, state_w, input_b, state_b = module.parameters()
    with torch.no_grad():
        for mine, value in ((input_w, weight[:, :inputs]), (state_w, weight[:, inputs:]), (input_b, bias)):
            mine.copy_(torch.tensor(np.ascontiguousarray(value)))
        state_b.zero_()
    state_b.requires_grad_(False)
    made.all += [input_w, state_w, input_b]
    return module


def _clipped_adam(torch: Torch, weights: list[Tensor]) -> tuple[Any, Callable[[], object]]:
    """Adam, and what clips before it; with TensorFlow's epsilon, which is added before a step's bias is corrected."""
    adam = torch.optim.Adam(weights, 0.001)
    steps = 0

    def clip() -> None:
        nonlocal steps
        steps += 1
        adam.param_groups[0]["eps"] = 1e-8 / (1 - 0.999**steps) ** 0.5
        torch.nn.utils.clip_grad_norm_(weights, 5.0)

    return adam, clip


def _sentences(made: Parameters, count: int, turns: int, words: int) -> list[Any]:
    """Batches of sentences with a word more than there are turns, int64 [turns + 1, count]: torch goes over the first
    axis.
    """
    text = recurrent.sentences(made.choose, count, turns + 1, words)
    return [np.ascontiguousarray(each.T).astype(np.int64) for each in text]


def _language_model(
    torch: Torch, compiled: bool, make: Callable[[Parameters], Any], *, comparable: bool = True
) -> Trained:
    functional, units, words = torch.nn.functional, recurrent.UNITS, recurrent.WORDS
    made = Parameters(torch, np.random.default_rng(8))
    embedding = made.weight([words, units], 0.1)
    unrolled = make(made)
    w, b = made.weight([units, words], units**-0.5, np.transpose), made.bias(words)

    def loss(x_TB: Tensor, t_TB: Tensor) -> Tensor:
        outputs_TBU, _ = unrolled(functional.embedding(x_TB, embedding))
        logits = functional.linear(outputs_TBU.reshape(-1, units), w, b)
        return functional.cross_entropy(logits, t_TB.reshape(-1))

    text = _sentences(made, recurrent.SENTENCES, recurrent.TURNS, words)
    optimizer, clip = _clipped_adam(torch, made.all)
    return Trained(
        compiled_if(torch, compiled, loss),
        optimizer,
        [(each[:-1], each[1:]) for each in text],
        before=clip,
        moved=dense_bytes(made.all, 2),
        comparable=comparable,
    )


def lstm(torch: Torch, compiled: bool) -> Trained:
    return _language_model(torch, compiled, lambda made: lstm_module(torch, made, recurrent.UNITS, recurrent.UNITS))


def gru(torch: Torch, compiled: bool) -> Trained:
    """With nn.GRU, which applies the reset gate after the product, so that its losses are others."""

    def make(made: Parameters) -> Any:
        module = torch.nn.GRU(recurrent.UNITS, recurrent.UNITS)
        made.all += list(module.parameters())
        return module

    return _language_model(torch, compiled, make, comparable=False)


def translation(torch: Torch, compiled: bool) -> Trained:
    """models/seq2seq.py: nn.LSTM reads, nn.LSTMCell with attention writes."""
    functional, units, words = torch.nn.functional, seq2seq.UNITS, seq2seq.WORDS
    made = Parameters(torch, np.random.default_rng(9))
    encoder = lstm_module(torch, made, units, units)
    decoder = lstm_module(torch, made, 2 * units, units, cell=True)
    source_words, target_words = made.weight([words, units], 0.1), made.weight([words, units], 0.1)
    score = made.weight([units, units], units**-0.5)
    mix = made.weight([2 * units, units], (2 * units) ** -0.5)
    w, b = made.weight([units, words], units**-0.5, np.transpose), made.bias(words)

    def loss(source_TB: Tensor, target_TB: Tensor) -> Tensor:
        memory_TBU, (h, c) = encoder(functional.embedding(source_TB, source_words))
        h, c = h[0], c[0]
        memory_BTU = memory_TBU.transpose(0, 1)
        keys_BTU = memory_BTU @ score
        attended, outputs = torch.zeros_like(h), []
        for x in functional.embedding(target_TB[:-1], target_words):
            h, c = decoder(torch.cat([x, attended], 1), (h, c))
            weights_BT = (keys_BTU @ h.unsqueeze(2)).squeeze(2).softmax(1)
            context = (weights_BT.unsqueeze(1) @ memory_BTU).squeeze(1)
            attended = torch.tanh(torch.cat([h, context], 1) @ mix)
            outputs.append(attended)
        logits = functional.linear(torch.cat(outputs), w, b)
        return functional.cross_entropy(logits, target_TB[1:].reshape(-1))

    text = _sentences(made, seq2seq.SENTENCES, seq2seq.TURNS, words)
    optimizer, clip = _clipped_adam(torch, made.all)
    return Trained(
        compiled_if(torch, compiled, loss),
        optimizer,
        [(np.ascontiguousarray(each[:0:-1]), each) for each in text],
        before=clip,
        moved=dense_bytes(made.all, 2),
    )
