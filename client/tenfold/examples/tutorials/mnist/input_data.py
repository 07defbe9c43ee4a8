"""Data sets of images and labels that are handed out in batches, and `read_data_sets` for MNIST's four files.

As TensorFlow 1.15's contrib.learn.datasets.mnist, which tutorials.mnist.input_data is too. Nothing is downloaded: the
files lie in the folder. idx.py reads them.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from tenfold.examples.tutorials.mnist.idx import dense_to_one_hot, extract_images, extract_labels, find
from tenfold.ops.random_seed import get_seed
from tenfold_core import dtypes

__all__ = [
    "DataSet",
    "Datasets",
    "dense_to_one_hot",
    "extract_images",
    "extract_labels",
    "load_mnist",
    "read_data_sets",
]

DEFAULT_SOURCE_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_FILES = (
    *("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    *("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
)
_FAKE_EXAMPLES = 10000
_FAKE_PIXELS = 784


class DataSet:
    """Images and their labels, in batches, shuffled anew for each epoch.

    # images uint8 [examples, rows, columns, 1], labels [examples, …]

    With `reshape` the images become [examples, rows · columns], with dtype float32 their values are scaled to 0 … 1.
    `seed` makes the order repeatable. With `fake_data` nothing is kept and `next_batch` makes up its batches. Raises
    TypeError for another dtype, ValueError if there are not as many labels as images.
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = dtypes.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        dtype = dtypes.as_dtype(dtype).base_dtype
        if dtype not in (dtypes.uint8, dtypes.float32):
            raise TypeError(f"Invalid image dtype {dtype!r}, expected uint8 or float32")
        graph_seed, op_seed = get_seed(seed)
        self._random = np.random.RandomState(graph_seed if seed is None else op_seed)
        self._one_hot = one_hot
        self._epochs_completed = self._index_in_epoch = 0
        if fake_data:
            self._num_examples = _FAKE_EXAMPLES
        else:
            if len(images) != len(labels):
                raise ValueError(f"images.shape: {images.shape} labels.shape: {labels.shape}")
            self._num_examples = len(images)
            if reshape:
                if images.ndim != 4 or images.shape[3] != 1:
                    raise ValueError(
                        f"Only images [examples, rows, columns, one channel] are reshaped, not {images.shape}"
                    )
                images = images.reshape(len(images), -1)
            if dtype == dtypes.float32:
                images = np.multiply(images, 1.0 / 255.0, dtype=np.float32)
        self._images, self._labels = images, labels

    @property
    def images(self) -> Any:
        return self._images

    @property
    def labels(self) -> Any:
        return self._labels

    @property
    def num_examples(self) -> int:
        return self._num_examples

    @property
    def epochs_completed(self) -> int:
        return self._epochs_completed

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> tuple[Any, Any]:
        """The next `batch_size` images and labels. A batch may hold the end of an epoch and the begin of the next."""
        if fake_data:
            label: Any = [1] + [0] * 9 if self._one_hot else 0
            return [[1] * _FAKE_PIXELS for _ in range(batch_size)], [label for _ in range(batch_size)]
        start = self._index_in_epoch
        if shuffle and start == 0 and self._epochs_completed == 0:
            self._shuffle()
        if start + batch_size <= self._num_examples:
            self._index_in_epoch = start + batch_size
            return self._images[start : start + batch_size], self._labels[start : start + batch_size]
        self._epochs_completed += 1
        rest = self._images[start:], self._labels[start:]
        if shuffle:
            self._shuffle()
        self._index_in_epoch = batch_size - (self._num_examples - start)
        begin = self._images[: self._index_in_epoch], self._labels[: self._index_in_epoch]
        return np.concatenate((rest[0], begin[0])), np.concatenate((rest[1], begin[1]))

    def _shuffle(self) -> None:
        order = np.arange(self._num_examples)
        self._random.shuffle(order)
        self._images, self._labels = self._images[order], self._labels[order]


class Datasets(NamedTuple):
    """What a model is trained with, what its settings are chosen by, and what it is judged by."""

    train: DataSet
    validation: DataSet
    test: DataSet


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = dtypes.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = DEFAULT_SOURCE_URL,
) -> Datasets:
    """MNIST, or another data set in four files of its form, from the folder `train_dir`.

    The first `validation_size` training images are set apart. `source_url` is taken for the sake of programs and never
    asked: Tenfold downloads no data. Raises FileNotFoundError that names the files, ValueError for a file of another
    kind or a validation set that is larger than the training set.
    """
    if fake_data:
        train, validation, test = (DataSet([], [], True, one_hot, dtype, seed=seed) for _ in range(3))
        return Datasets(train, validation, test)
    arrays = []
    for name in _FILES:
        with open(find(train_dir, name, _FILES), "rb") as file:
            arrays.append(extract_images(file) if "images" in name else extract_labels(file, one_hot=one_hot))
    images, labels, test_images, test_labels = arrays
    if not 0 <= validation_size <= len(images):
        raise ValueError(f"Validation size should be between 0 and {len(images)}. Received: {validation_size}.")

    def made(some_images: np.ndarray, some_labels: np.ndarray) -> DataSet:
        return DataSet(some_images, some_labels, dtype=dtype, reshape=reshape, seed=seed)

    return Datasets(
        made(images[validation_size:], labels[validation_size:]),
        made(images[:validation_size], labels[:validation_size]),
        made(test_images, test_labels),
    )


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """`read_data_sets` with nothing but the folder."""
    return read_data_sets(os.fspath(train_dir))
