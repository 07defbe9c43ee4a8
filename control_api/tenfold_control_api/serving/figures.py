"""What Prometheus is told of models that follow trainings. Called by control.py."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenfold_control_api.metrics import Metrics
    from tenfold_control_api.serving.following import Follower
    from tenfold_control_api.serving.service import ModelService

#: Name behind `tenfold_model_` → what it is, and its value.
MODEL_FIGURES: dict[str, tuple[str, Callable[[Follower], float | None]]] = {
    "behind_seconds": (
        "Seconds since a state was saved that a model does not serve yet; 0 where it serves the newest.",
        lambda follower: follower.behind,
    ),
    "global_step": ("The global step of the state that a model serves.", lambda follower: follower.point.global_step),
    "rows": ("Rows of a model's embedding variables.", lambda follower: follower.rows),
    "increments": (
        "Increments that a model has taken in since it was loaded.",
        lambda follower: follower.applied,
    ),
    "trouble": (
        "1 where a model cannot read what its training has saved, else 0.",
        lambda follower: follower.in_trouble,
    ),
}


def watch_followers(metrics: Metrics, models: ModelService) -> None:
    """From now on a scrape has these figures of each loaded model that follows a training."""

    def sample(value_of: Callable[[Follower], float | None]) -> Iterator[tuple[tuple[str, ...], float]]:
        for name, follower in models.followers():
            value = value_of(follower)
            if value is not None:
                yield (name,), float(value)

    for name, (text, value_of) in MODEL_FIGURES.items():
        metrics.watch(f"tenfold_model_{name}", text, ("model",), functools.partial(sample, value_of))
