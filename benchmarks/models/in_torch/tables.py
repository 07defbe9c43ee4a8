"""models/tables.py in torch: embeddings with sparse gradients, or FBGEMM's fused tables.

The latter train in their backward pass. Ids are hashed into both. FBGEMM's rows are multiples of four elements; tables
of other rows stay torch's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models.recommenders import ACCUMULATED
from models.tables import first_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from models.in_torch import Tensor, Torch
    from models.in_torch.parts import Parameters


def start(rows: int, width: int, seed: int) -> Any:
    """float32 [rows, width]: the first weights of a static table."""
    first = first_rows(seed, width)
    return np.tile(first, [-(-rows // len(first)), 1])[:rows]


class Tables:
    """Makes the tables of one program; those of torch are among `made`'s parameters."""

    def __init__(self, torch: Torch, made: Parameters, fused: bool, rate: float) -> None:
        self._torch, self._made, self._fused, self._rate = torch, made, fused, rate

    def group(self, rows: Sequence[int], width: int, seed: int) -> Callable[[Tensor], list[Tensor]]:
        """Tables of equal rows, and how ids [B, tables] are looked up: [B, width] each."""
        torch, many = self._torch, self._torch.tensor(list(rows))
        starts = [start(count, width, seed + number) for number, count in enumerate(rows)]
        if self._fused and width % 4 == 0:
            module = fused_tables(torch, starts, self._rate)

            def fused(ids: Tensor) -> list[Tensor]:
                by_table = (ids % many).t().reshape(-1)
                found = module(by_table, torch.arange(by_table.numel() + 1))
                return list(found.split(width, dim=1))

            return fused
        kept = [self._made.kept(each) for each in starts]

        def looked_up(ids: Tensor) -> list[Tensor]:
            rows_BC = (ids % many).unbind(1)
            return [
                torch.nn.functional.embedding(each, table, sparse=True)
                for each, table in zip(rows_BC, kept, strict=True)
            ]

        return looked_up

    def one(self, rows: int, width: int, seed: int) -> Callable[[Tensor], Tensor]:
        """One table, and how ids of any shape are looked up: [*ids.shape, width]."""
        looked_up = self.group([rows], width, seed)
        return lambda ids: looked_up(ids.reshape(-1, 1))[0].reshape(*ids.shape, width)


def fused_tables(torch: Torch, starts: Sequence[Any], rate: float) -> Any:
    """FBGEMM's module of these tables. Raises ImportError without it."""
    from fbgemm_gpu import split_table_batched_embeddings_ops_common as common  # type: ignore[import-not-found]
    from fbgemm_gpu import split_table_batched_embeddings_ops_training as training
    from fbgemm_gpu.split_embedding_configs import EmbOptimType  # type: ignore[import-not-found]

    module = training.SplitTableBatchedEmbeddingBagsCodegen(
        [(*each.shape, common.EmbeddingLocation.HOST, training.ComputeDevice.CPU) for each in starts],
        optimizer=EmbOptimType.EXACT_ADAGRAD,
        learning_rate=rate,
        eps=1e-10,
        pooling_mode=common.PoolingMode.SUM,
        bounds_check_mode=common.BoundsCheckMode.NONE,
        device="cpu",
    )
    with torch.no_grad():
        for weights, first in zip(module.split_embedding_weights(), starts, strict=True):
            weights.copy_(torch.from_numpy(np.ascontiguousarray(first)))
        for (slot,) in module.split_optimizer_states():
            slot.fill_(ACCUMULATED)
    return module
