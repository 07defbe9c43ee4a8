"""What `fit` gives back: the loss and the metrics of each epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class History:
    """Lists by name, an element for each epoch; those of the validation data begin with `val_`."""

    params: dict[str, Any] = field(default_factory=dict)
    epoch: list[int] = field(default_factory=list)
    history: dict[str, list[float]] = field(default_factory=dict)

    def add(self, epoch: int, logs: dict[str, float]) -> None:
        """Notes the results of an epoch."""
        self.epoch.append(epoch)
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)
