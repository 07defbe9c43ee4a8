"""What an Experiment asks of an estimator: `Trainable` and `Evaluable`.

Follows TensorFlow 1.15's `contrib/learn/python/learn/trainable.py` and `evaluable.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Trainable(ABC):
    """Something that can be trained."""

    @abstractmethod
    def fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        steps: int | None = None,
        batch_size: int | None = None,
        monitors: Any = None,
        max_steps: int | None = None,
    ) -> Any:
        """Trains, and returns itself."""


class Evaluable(ABC):
    """Something that can be evaluated."""

    @property
    @abstractmethod
    def model_dir(self) -> Any:
        """The folder of its checkpoints."""

    @abstractmethod
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        feed_fn: Any = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Any = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: Any = None,
    ) -> Any:
        """The values of metrics by their names."""
