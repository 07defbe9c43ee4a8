"""Made data sets in the plane: circles and spirals. Follows TensorFlow 1.15's `datasets/synthetic.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.contrib.learn.datasets.base import Dataset


def circles(
    n_samples: int = 100,
    noise: float | None = None,
    seed: int | None = None,
    factor: float = 0.8,
    n_classes: int = 2,
    *args: Any,
    **kwargs: Any,
) -> Dataset:
    """Points on concentric circles, one class for each; each is `factor` times the size of the one around it."""
    if seed is not None:
        np.random.seed(seed)
    size, extras = divmod(n_samples, n_classes)
    angles = np.linspace(0, 2 * np.pi, size)
    radii = factor ** np.arange(n_classes)
    extra = np.random.rand(extras) * 2 * np.pi
    more = np.random.rand(extras) * 2 * np.pi
    x = np.concatenate([*(radius * np.cos(angles) for radius in radii), np.cos(extra)])
    y = np.concatenate([*(radius * np.sin(angles) for radius in radii), np.sin(more)])
    classes = np.concatenate([np.repeat(np.arange(n_classes), size), np.zeros(extras)])
    return _shuffled(np.vstack((x, y)).T, classes, noise)


def spirals(
    n_samples: int = 100,
    noise: float | None = None,
    seed: int | None = None,
    mode: str = "archimedes",
    n_loops: int = 2,
    *args: Any,
    **kwargs: Any,
) -> Dataset:
    """Points on two spirals, a class each. Raises ValueError for an unknown mode."""
    if mode not in ("archimedes", "bernoulli", "fermat"):
        raise ValueError(f"Cannot generate spiral with mode {mode}")
    if seed is not None:
        np.random.seed(seed)
    size, extras = divmod(n_samples, 2)
    angles = np.linspace(0, 2 * n_loops * np.pi, size)
    parts = [_spiral(mode, angles, label * np.pi, **kwargs) for label in range(2)]
    if extras:
        parts.append(_spiral(mode, np.random.rand(extras) * 2 * np.pi, 0.0, **kwargs))
    classes = np.concatenate([np.repeat(np.arange(2), size), np.zeros(extras)])
    return _shuffled(np.concatenate(parts), classes, noise)


def _spiral(mode: str, theta: Any, offset: float, exp_scale: float = 0.1) -> Any:
    radius = {"archimedes": theta, "bernoulli": np.exp(exp_scale * theta), "fermat": np.sqrt(theta)}[mode]
    points = np.stack([radius * np.cos(theta + offset), radius * np.sin(theta + offset)], axis=1)
    return points / np.max(np.abs(points), axis=0)


def _shuffled(points: Any, classes: Any, noise: float | None) -> Dataset:
    order = np.random.permutation(len(points))
    if noise is not None:
        points = points + np.random.normal(scale=noise, size=points.shape)
    return Dataset(data=points[order], target=classes.astype(np.int32)[order])
