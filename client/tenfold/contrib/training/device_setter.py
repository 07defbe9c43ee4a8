"""Strategies for `tf.train.replica_device_setter`: which parameter server gets a variable.

The greedy one is train/device_setter.py's. Follows TensorFlow 1.15's contrib/training/python/training/device_setter.py.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from tenfold.train.device_setter import GreedyLoadBalancingStrategy, byte_size_load_fn

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation

__all__ = ["GreedyLoadBalancingStrategy", "RandomStrategy", "byte_size_load_fn"]


class RandomStrategy:
    """Spreads variables by a hash of their name and a seed, the same in each process and each run."""

    def __init__(self, num_ps_tasks: int, seed: int = 0) -> None:
        self._num_tasks = num_ps_tasks
        self._seed = seed

    def __call__(self, op: Operation) -> int:
        digest = hashlib.md5(f"{op.name}_{self._seed}".encode(), usedforsecurity=False).hexdigest()
        return int(digest, 16) % self._num_tasks
