"""models/transformer.py in torch: torch's own layer norm, GELU and scaled dot-product attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models import transformer as counterpart
from models.in_torch import Trained, dense_bytes
from models.in_torch.parts import Parameters, compiled_if
from models.parts import BATCHES
from models.recurrent import sentences

if TYPE_CHECKING:
    from collections.abc import Callable

    from models.in_torch import Tensor, Torch


def _dense(made: Parameters, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    return made.weight([rows, columns], 0.02, np.transpose), made.bias(columns)


def _norm(torch: Torch, made: Parameters, width: int) -> Callable[[Tensor], Tensor]:
    scale, offset = made.bias(width, 1.0), made.bias(width)

    def normalized(x: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(x, (width,), scale, offset, 1e-5)

    return normalized


def _layer(torch: Torch, made: Parameters, size: counterpart.Size) -> Callable[..., Tensor]:
    """One layer: [B, T, W] → [B, T, W]."""
    functional, width = torch.nn.functional, size.width
    query, key, value, output = (_dense(made, width, width) for _ in range(4))
    first = _norm(torch, made, width)
    inner, outer = _dense(made, width, 4 * width), _dense(made, 4 * width, width)
    second = _norm(torch, made, width)

    def layer(x: Tensor, hidden: Tensor | None) -> Tensor:
        sentences, tokens, _ = x.shape
        split = [
            functional.linear(x, *of).view(sentences, tokens, size.heads, size.head).transpose(1, 2)
            for of in (query, key, value)
        ]
        seen = functional.scaled_dot_product_attention(*split, attn_mask=hidden)
        x = first(x + functional.linear(seen.transpose(1, 2).reshape(sentences, tokens, width), *output))
        return second(x + functional.linear(functional.gelu(functional.linear(x, *inner), approximate="tanh"), *outer))

    return layer


def encoder(torch: Torch, compiled: bool) -> Trained:
    functional, width, vocabulary = torch.nn.functional, counterpart.WIDTH, counterpart.WORDS
    made = Parameters(torch, np.random.default_rng(12))
    words = made.weight([vocabulary, width], 0.02)
    places = made.weight([counterpart.TOKENS, width], 0.02)
    size = counterpart.Size(width, counterpart.HEADS)
    layers = [_layer(torch, made, size) for _ in range(counterpart.LAYERS)]
    logits = _dense(made, width, vocabulary)

    def loss(x: Tensor, t: Tensor) -> Tensor:
        y = functional.embedding(x, words) + places
        for layer in layers:
            y = layer(y, None)
        return functional.cross_entropy(functional.linear(y, *logits).view(-1, vocabulary), t.reshape(-1))

    text = sentences(made.choose, counterpart.SENTENCES, counterpart.TOKENS + 1, vocabulary).astype(np.int64)
    return Trained(
        compiled_if(torch, compiled, loss),
        torch.optim.Adam(made.all, 0.001),
        [(each[:, :-1], each[:, 1:]) for each in text],
        moved=dense_bytes(made.all, 2),
    )


def bert_tiny(torch: Torch, compiled: bool) -> Trained:
    functional, width, vocabulary = torch.nn.functional, counterpart.WIDTH, counterpart.BERT_WORDS
    tokens = counterpart.BERT_TOKENS
    made = Parameters(torch, np.random.default_rng(13))
    words, positions = made.weight([vocabulary, width], 0.02), made.weight([512, width], 0.02)
    norm = _norm(torch, made, width)
    layers = [_layer(torch, made, counterpart.Size(width, 2)) for _ in range(counterpart.LAYERS)]
    transform, transformed = _dense(made, width, width), _norm(torch, made, width)
    output_bias = made.bias(vocabulary)
    pooler, following = _dense(made, width, width), _dense(made, width, 2)

    def loss(x: Tensor, seen: Tensor, places: Tensor, right: Tensor, follows: Tensor) -> Tensor:
        y = norm(functional.embedding(x, words) + positions[:tokens])
        hidden = ((1.0 - seen) * -10000.0)[:, None, None, :]
        for layer in layers:
            y = layer(y, hidden)
        there = y[torch.arange(y.shape[0])[:, None], places].reshape(-1, width)
        guessed = transformed(functional.gelu(functional.linear(there, *transform), approximate="tanh"))
        found = functional.cross_entropy(functional.linear(guessed, words, output_bias), right.reshape(-1))
        pooled = torch.tanh(functional.linear(y[:, 0], *pooler))
        return found + functional.cross_entropy(functional.linear(pooled, *following), follows)

    batches = [
        (x.astype(np.int64), seen, places.astype(np.int64), right.astype(np.int64), follows.astype(np.int64))
        for x, seen, places, right, follows in counterpart.bert_batches(made.choose)
    ]
    return Trained(
        compiled_if(torch, compiled, loss),
        torch.optim.Adam(made.all, 0.0001),
        batches,
        moved=dense_bytes(made.all, 2),
    )


def gpt2_sampling(torch: Torch, compiled: bool) -> Trained:
    functional, width = torch.nn.functional, counterpart.GPT_WIDTH
    size = counterpart.Size(width, counterpart.GPT_HEADS)
    drawn, turns = counterpart.DRAWN, counterpart.TURNS
    made = Parameters(torch, np.random.default_rng(14))
    words = made.weight([counterpart.GPT_WORDS, width], 0.2)
    places = made.weight([turns + 1, width], 0.1)
    layers: list[Any] = []
    for _ in range(counterpart.GPT_LAYERS):
        shapes = ([width, 3 * width], [width, width], [width, 4 * width], [4 * width, width])
        weights = [made.weight(shape, 0.05) for shape in shapes]
        layers.append((weights, _norm(torch, made, width), _norm(torch, made, width)))

    def turn(number: int, past: Any, word: Tensor) -> tuple[Any, Tensor]:
        x = functional.embedding(word[:, 0], words) + places[number]
        presents = []
        for ((attention, projection, inner, outer), first, second), old in zip(layers, past, strict=True):
            query, key, value = (first(x) @ attention).view(drawn, 3, size.heads, 1, size.head).unbind(1)
            if old is not None:
                key, value = torch.cat([old[0], key], 2), torch.cat([old[1], value], 2)
            presents.append((key, value))
            seen = functional.scaled_dot_product_attention(query, key, value)
            x = x + seen.reshape(drawn, width) @ projection
            x = x + functional.gelu(second(x) @ inner, approximate="tanh") @ outer
        return presents, (x @ words.T).argmax(1, keepdim=True)

    taken_turn = compiled_if(torch, compiled, turn)

    def play(train: object, number: int) -> float:
        with torch.no_grad():
            past, word, total = [None] * len(layers), torch.from_numpy(starts[number % BATCHES]), 0.0
            for each in range(turns):
                past, word = taken_turn(each, past, word)
                total += float(word.float().mean())
        return total / turns

    starts = made.choose.integers(counterpart.GPT_WORDS, size=[BATCHES, drawn, 1]).astype(np.int64)
    moved = turns * sum(4 * each.numel() for each in made.all)
    return Trained(turn, None, (), moved=moved, play=play)
