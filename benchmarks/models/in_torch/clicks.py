"""models/clicks.py in torch: an embedding with sparse gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from models import clicks as counterpart
from models.clicks import BATCH, IDS, ROWS, SIZE
from models.in_torch import Trained, dense_bytes
from models.in_torch.parts import Parameters, compiled_if

if TYPE_CHECKING:
    from models.in_torch import Tensor, Torch


def clicks(torch: Torch, compiled: bool) -> Trained:
    """TensorFlow draws its table, so that these losses are others."""
    functional = torch.nn.functional
    made = Parameters(torch, np.random.default_rng(10))
    layers = [made.dense(*size) for size in ((IDS * SIZE, 256), (256, 128), (128, 1))]
    dense = list(made.all)
    table = made.kept(np.random.default_rng(1).uniform(-0.05, 0.05, [ROWS, SIZE]).astype(np.float32))

    def loss(ids: Tensor, t: Tensor) -> Tensor:
        y = functional.embedding(ids, table, sparse=True).reshape(-1, IDS * SIZE)
        for w, b in layers[:-1]:
            y = functional.relu(functional.linear(y, w, b))
        return functional.binary_cross_entropy_with_logits(functional.linear(y, *layers[-1]), t)

    batches = counterpart.batches(made.choose)
    rows = int(np.mean([np.unique(ids).size for ids, _ in batches]))
    return Trained(
        compiled_if(torch, compiled, loss),
        torch.optim.Adagrad(made.all, 0.05, initial_accumulator_value=0.1),
        batches,
        # a row is gathered for each id, and each different one is updated
        moved=dense_bytes(dense, 1) + 4 * SIZE * (BATCH * IDS + 4 * rows),
        comparable=False,
    )
