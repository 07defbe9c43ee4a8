"""What there is of tf.keras: files, labels as rows, questions; and what is not there says what to use."""

from __future__ import annotations

import hashlib
import tarfile
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_fetched_once_and_checked(tmp_path: Path) -> None:
    source, cache = tmp_path / "source.csv", str(tmp_path / "cache")
    source.write_text("1,2")
    digest = hashlib.md5(b"1,2", usedforsecurity=False).hexdigest()
    path = tf.keras.utils.get_file("a.csv", source.as_uri(), md5_hash=digest, cache_dir=cache)
    source.unlink()

    assert tf.keras.utils.get_file("a.csv", source.as_uri(), md5_hash=digest, cache_dir=cache) == path
    with open(path) as file:
        assert file.read() == "1,2"
    source.write_text("3,4")
    with pytest.raises(ValueError, match="has another hash"):
        tf.keras.utils.get_file("a.csv", source.as_uri(), file_hash="0" * 64, cache_dir=cache)
    source.unlink()
    with pytest.raises(OSError, match=r"source\.csv"):
        tf.keras.utils.get_file("b.csv", source.as_uri(), cache_dir=cache)


def test_an_archive_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.txt").write_text("x")
    with tarfile.open(tmp_path / "data.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "data", "data")

    path = tf.keras.utils.get_file(
        "data", (tmp_path / "data.tar.gz").as_uri(), untar=True, cache_dir=str(tmp_path / "cache")
    )

    with open(f"{path}/x.txt") as file:
        assert file.read() == "x"


def test_labels_become_rows() -> None:
    assert tf.keras.utils.to_categorical([[1], [0]], 3).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert tf.keras.utils.to_categorical(np.array([[2, 0]])).shape == (1, 2, 3)


def test_the_backend_answers_and_the_rest_says_what_to_use() -> None:
    with tf.Graph().as_default():
        assert tf.keras.backend.is_sparse(tf.sparse_placeholder(tf.float32))
        assert not tf.keras.backend.is_sparse(tf.zeros([1]))
    assert tf.keras.initializers.glorot_normal is tf.glorot_normal_initializer
    with pytest.raises(AttributeError, match=r"use tf\.layers"):
        tf.keras.layers.LSTM(3)
    with pytest.raises(AttributeError, match=r"tf\.keras\.nothing is not part of Tenfold: Tenfold has a part of Keras"):
        tf.keras.nothing  # noqa: B018
