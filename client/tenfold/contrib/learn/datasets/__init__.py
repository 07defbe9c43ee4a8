"""`tf.contrib.learn.datasets`: small data sets from local files, and made ones. Nothing is downloaded.

base.py reads files, mnist.py MNIST's, synthetic.py makes circles and spirals. Follows TensorFlow 1.15's
`contrib/learn/python/learn/datasets`.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.learn.datasets import base, synthetic, text_datasets
from tenfold.contrib.learn.datasets.base import load_boston, load_iris
from tenfold.lazy_module import make_lazy

make_lazy(__name__)

__all__ = [
    "DATASETS", "SYNTHETIC", "base", "load_boston", "load_dataset", "load_iris", "make_dataset", "mnist", "synthetic",
    "text_datasets",
]  # fmt: skip


def _load_mnist(train_dir: str = "MNIST-data") -> Any:
    from tenfold.contrib.learn.datasets.mnist import load_mnist

    return load_mnist(train_dir)


#: Name → the function that loads it.
DATASETS: dict[str, Any] = {
    "iris": load_iris,
    "boston": load_boston,
    "mnist": _load_mnist,
    "dbpedia": text_datasets.load_dbpedia,
}
#: Name → the function that makes it.
SYNTHETIC: dict[str, Any] = {"circles": synthetic.circles, "spirals": synthetic.spirals}


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """ "iris", "boston", "mnist" or "dbpedia". Raises ValueError for another, FileNotFoundError without its files."""
    if name not in DATASETS:
        raise ValueError(f"Name of dataset is not found: {name}")
    return DATASETS[name](size, test_with_fake_data) if name == "dbpedia" else DATASETS[name]()


def make_dataset(
    name: str, n_samples: int = 100, noise: float | None = None, seed: int | None = 42, *args: Any, **kwargs: Any
) -> Any:
    """One of "circles" and "spirals". Raises ValueError for another."""
    if name not in SYNTHETIC:
        raise ValueError(f"Synthetic dataset not found or not implemeted: {name}")
    return SYNTHETIC[name](*args, n_samples=n_samples, noise=noise, seed=seed, **kwargs)


def __getattr__(name: str) -> Any:
    if name != "mnist":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"{__name__}.mnist")


def __dir__() -> list[str]:
    return sorted({*__all__, "mnist"})
