"""`tf.contrib.learn.datasets.mnist`: the digits of `tensorflow.examples.tutorials.mnist`, from local files."""

from __future__ import annotations

from tenfold.contrib.learn.datasets.base import Datasets
from tenfold.examples.tutorials.mnist.input_data import DataSet, read_data_sets

__all__ = ["DataSet", "load_mnist", "read_data_sets"]


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """The three parts of MNIST in a folder."""
    return Datasets(*read_data_sets(train_dir))
