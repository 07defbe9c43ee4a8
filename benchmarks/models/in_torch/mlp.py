"""models/mlp.py in torch."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from models.in_torch import Trained, dense_bytes
from models.in_torch.parts import Parameters, compiled_if
from models.parts import BATCHES, labelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.in_torch import Tensor, Torch


def _classifier(torch: Torch, compiled: bool, layers: Sequence[int], batch: int, optimizer: Any, slots: int) -> Trained:
    functional = torch.nn.functional
    made = Parameters(torch, np.random.default_rng(1))
    dense = [made.dense(rows, columns) for rows, columns in pairwise(layers)]

    def loss(x: Tensor, t: Tensor) -> Tensor:
        for w, b in dense[:-1]:
            x = functional.relu(functional.linear(x, w, b))
        return functional.cross_entropy(functional.linear(x, *dense[-1]), t)

    data = labelled(made.choose, batch, [layers[0]], layers[-1], 64)
    return Trained(
        compiled_if(torch, compiled, loss),
        optimizer(made.all),
        [(images, labels.astype(np.int64)) for images, labels in data],
        moved=dense_bytes(made.all, slots),
    )


def digits(torch: Torch, compiled: bool) -> Trained:
    def adam(weights: Any) -> Any:
        return torch.optim.Adam(weights, 0.001)

    return _classifier(torch, compiled, (784, 256, 256, 10), 128, adam, 2)


def small(torch: Torch, compiled: bool) -> Trained:
    def descent(weights: Any) -> Any:
        return torch.optim.SGD(weights, 0.05)

    return _classifier(torch, compiled, (64, 64, 10), 32, descent, 0)


def autoencoder(torch: Torch, compiled: bool) -> Trained:
    functional = torch.nn.functional
    made = Parameters(torch, np.random.default_rng(2))
    encode0, encode1, decode0, decode1 = (made.dense(*size) for size in ((784, 256), (256, 64), (64, 256), (256, 784)))

    def loss(x: Tensor) -> Tensor:
        code = functional.relu(functional.linear(x, *encode0))
        code = functional.linear(code, *encode1)
        y = functional.linear(functional.relu(functional.linear(code, *decode0)), *decode1)
        return functional.binary_cross_entropy_with_logits(y, x, reduction="none").sum(1).mean()

    rows, columns = np.mgrid[0:28, 0:28]
    centres = made.choose.random([BATCHES, 128, 2, 1, 1]) * 28
    far = (rows - centres[:, :, 0]) ** 2 + (columns - centres[:, :, 1]) ** 2
    images = np.exp(-far / 20.0).astype(np.float32).reshape(BATCHES, 128, 784)
    return Trained(
        compiled_if(torch, compiled, loss),
        torch.optim.Adam(made.all, 0.001),
        [(each,) for each in images],
        moved=dense_bytes(made.all, 2),
    )
