"""models/texts.py in torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from models import texts as counterpart
from models.in_torch import Trained, dense_bytes
from models.in_torch.parts import Parameters, compiled_if
from models.texts import FILTERS, SIZES, WIDTH, WORDS

if TYPE_CHECKING:
    from models.in_torch import Tensor, Torch


def text_cnn(torch: Torch, compiled: bool) -> Trained:
    functional = torch.nn.functional
    made = Parameters(torch, np.random.default_rng(15))
    embedding = made.weight([WORDS, WIDTH], 0.5)
    # [size, width, 1, filters] as Conv1d's [filters, width, size]
    filters = [
        (
            made.weight([size, WIDTH, 1, FILTERS], 0.1, lambda value: value[:, :, 0].transpose(2, 1, 0)),
            made.bias(FILTERS, 0.1),
        )
        for size in SIZES
    ]
    output = made.dense(FILTERS * len(SIZES), 2)

    def loss(x: Tensor, t: Tensor) -> Tensor:
        embedded = functional.embedding(x, embedding).transpose(1, 2)
        pooled = [functional.relu(functional.conv1d(embedded, *each)).amax(2) for each in filters]
        return functional.cross_entropy(functional.linear(torch.cat(pooled, 1), *output), t)

    return Trained(
        compiled_if(torch, compiled, loss),
        torch.optim.Adam(made.all, 0.001),
        [(words.astype(np.int64), label.astype(np.int64)) for words, label in counterpart.batches(made.choose)],
        moved=dense_bytes(made.all, 2),
    )
