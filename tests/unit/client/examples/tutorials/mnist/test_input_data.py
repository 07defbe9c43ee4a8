"""The digits' files and the batches made of them."""

from __future__ import annotations

import gzip
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.examples.tutorials.mnist import input_data

if TYPE_CHECKING:
    from pathlib import Path


def images(count: int) -> bytes:
    return struct.pack(">4I", 2051, count, 28, 28) + bytes(i % 256 for i in range(count * 784))


def labels(count: int) -> bytes:
    return struct.pack(">2I", 2049, count) + bytes(i % 10 for i in range(count))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twenty training images, one of their files unpacked, and four test images."""
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(images(20)))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(labels(20))
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(images(4)))
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels(4)))
    return tmp_path


def test_the_files_become_three_data_sets(folder: Path) -> None:
    sets = input_data.read_data_sets(str(folder), one_hot=True, validation_size=5)

    assert [each.num_examples for each in sets] == [15, 5, 4]
    assert sets.train.images.shape == (15, 784)
    assert sets.train.images.dtype == np.float32
    assert sets.train.images[0, 0] == np.float32(5 * 784 % 256 / 255)
    np.testing.assert_array_equal(np.argmax(sets.validation.labels, 1), [0, 1, 2, 3, 4])


def test_images_as_they_are(folder: Path) -> None:
    sets = input_data.read_data_sets(str(folder), dtype=tf.uint8, reshape=False, validation_size=0)

    assert sets.test.images.shape == (4, 28, 28, 1)
    assert sets.test.images.dtype == np.uint8
    assert sets.test.labels.tolist() == [0, 1, 2, 3]


def test_batches_go_through_each_epoch_once_and_over_its_end() -> None:
    data = input_data.DataSet(np.zeros((10, 2, 2, 1), np.uint8), np.arange(10), seed=3)

    seen = np.concatenate([data.next_batch(4)[1] for _ in range(5)])

    assert sorted(seen[:10]) == sorted(seen[10:]) == list(range(10))
    assert seen[:10].tolist() != list(range(10))
    assert data.epochs_completed == 1
    same = input_data.DataSet(np.zeros((10, 2, 2, 1), np.uint8), np.arange(10), seed=3)
    assert np.concatenate([same.next_batch(4)[1] for _ in range(5)]).tolist() == seen.tolist()


def test_batches_in_order() -> None:
    data = input_data.DataSet(np.zeros((3, 1, 1, 1), np.uint8), np.arange(3))

    assert [data.next_batch(2, shuffle=False)[1].tolist() for _ in range(3)] == [[0, 1], [2, 0], [1, 2]]


def test_fake_data_needs_no_file() -> None:
    pixels, classes = input_data.read_data_sets("nowhere", fake_data=True, one_hot=True).test.next_batch(2, True)

    assert np.shape(pixels) == (2, 784)
    assert classes == [[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]] * 2


def test_a_missing_file_says_which_files_go_where(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"train-images-idx3-ubyte\.gz is not in .*t10k-labels-idx1-ubyte\.gz"):
        input_data.read_data_sets(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train-images-idx3-ubyte", labels(20), "Invalid magic number 2049 in MNIST image file"),
        ("train-images-idx3-ubyte", images(20)[:-1], "15679 bytes of data; its header says 15680"),
        ("train-images-idx3-ubyte", b"\0\0\x08", "ends within its header"),
        ("train-images-idx3-ubyte", images(19), r"images.shape: \(14, 28, 28, 1\) labels.shape: \(15,\)"),
    ],
)
def test_files_of_another_kind(folder: Path, name: str, content: bytes, message: str) -> None:
    (folder / (name + ".gz")).unlink()
    (folder / name).write_bytes(content)

    with pytest.raises(ValueError, match=message):
        input_data.read_data_sets(str(folder), validation_size=5)


def test_arguments_that_are_wrong(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"between 0 and 20\. Received: 5000"):
        input_data.read_data_sets(str(folder))
    with pytest.raises(TypeError, match="expected uint8 or float32"):
        input_data.DataSet(np.zeros((1, 1, 1, 1)), np.zeros(1), dtype=tf.float64)
    with pytest.raises(ValueError, match="no classes of 3"):
        input_data.dense_to_one_hot(np.array([3]), 3)
    wide: Any = np.zeros((1, 2, 2, 3), np.uint8)
    with pytest.raises(ValueError, match="one channel"):
        input_data.DataSet(wide, np.zeros(1))
