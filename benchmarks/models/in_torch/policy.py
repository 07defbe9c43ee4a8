"""models/policy.py in torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models import policy as counterpart
from models.in_torch import Trained, dense_bytes
from models.in_torch.parts import Parameters, compiled_if

if TYPE_CHECKING:
    from collections.abc import Callable

    from models.in_torch import Tensor, Torch


def policy(torch: Torch, compiled: bool) -> Trained:
    functional = torch.nn.functional
    made = Parameters(torch, np.random.default_rng(11))
    first, second = made.dense(4, 32), made.dense(32, 2)

    def logits(seen: Tensor) -> Tensor:
        return functional.linear(torch.tanh(functional.linear(seen, *first)), *second)

    def loss(seen: Tensor, moves: Tensor, gains: Tensor) -> Tensor:
        return (functional.cross_entropy(logits(seen), moves, reduction="none") * gains).mean()

    look = compiled_if(torch, compiled, lambda seen: functional.softmax(logits(seen), 1))

    def play(train: Callable[..., Any], number: int) -> Any:
        def chance(state: Any) -> float:
            with torch.no_grad():
                return float(look(torch.from_numpy(state))[0, 1])

        states, moves, gains = counterpart.episode(chance, number)
        return train(states, moves.astype(np.int64), gains)

    return Trained(
        compiled_if(torch, compiled, loss),
        torch.optim.Adam(made.all, 0.01),
        (),
        moved=dense_bytes(made.all, 2),
        play=play,
    )
