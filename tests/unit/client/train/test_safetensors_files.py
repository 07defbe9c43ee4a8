"""Checkpoints as safetensors files, and variables that get their values from one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def counting(shape: Any, dtype: Any = None, partition_info: Any = None) -> tf.Tensor:
    """0, 1, 2, … over all parts."""
    begin = 0 if partition_info is None else partition_info.var_offset[0]
    return tf.range(begin, begin + shape[0], dtype=dtype)


def saved(folder: Path) -> str:
    """A checkpoint of three variables, one of them in two parts."""
    tf.get_variable("w", initializer=tf.constant([[1.0, 2.0]]))
    tf.get_variable("small", initializer=tf.constant([1.5, -2.0], tf.bfloat16), use_resource=True)
    tf.get_variable("parts", [4], tf.int64, counting, partitioner=tf.fixed_size_partitioner(2))
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        prefix = saver.save(sess, str(folder / "model.ckpt"), global_step=1)
    assert prefix is not None
    return prefix


def test_a_checkpoint_becomes_a_file_and_variables_get_it_back(tmp_path: Path) -> None:
    saved(tmp_path)
    path = str(tmp_path / "w.safetensors")

    assert tf.train.export_safetensors(str(tmp_path), path, metadata={"step": "1"}) == ["parts", "small", "w"]
    found = tf.train.load_safetensors(path)
    assert found["parts"].tolist() == [0, 1, 2, 3]
    assert found["small"].dtype == tf.bfloat16.as_numpy_dtype
    assert list(tf.train.load_safetensors(path, ["w"])) == ["w"]
    with tf.Graph().as_default(), tf.Session() as sess:
        w = tf.get_variable("w", [1, 2])
        other = tf.get_variable("other", [2], tf.bfloat16, use_resource=True)
        assert tf.train.restore_safetensors(sess, path, [w]) == ["w"]
        tf.train.restore_safetensors(sess, path, {"small": other})
        assert sess.run(w).tolist() == [[1.0, 2.0]]
        assert sess.run(other).astype(np.float32).tolist() == [1.5, -2.0]


def test_some_names_and_names_that_are_not_there(tmp_path: Path) -> None:
    prefix = saved(tmp_path)
    path = str(tmp_path / "w.safetensors")

    assert tf.train.export_safetensors(prefix, path, names=["w"]) == ["w"]
    with pytest.raises(tf.errors.NotFoundError, match="Key x not found in checkpoint"):
        tf.train.export_safetensors(prefix, path, names=["x"])
    with pytest.raises(tf.errors.NotFoundError, match="has no tensor x"):
        tf.train.load_safetensors(path, ["x"])
    with pytest.raises(tf.errors.NotFoundError, match="No such file"):
        tf.train.load_safetensors(str(tmp_path / "nothing"))
    with pytest.raises(ValueError, match="Couldn't find"):
        tf.train.export_safetensors(str(tmp_path / ".."), path)


def test_nothing_is_assigned_unless_everything_fits(tmp_path: Path) -> None:
    saved(tmp_path)
    path = str(tmp_path / "w.safetensors")
    tf.train.export_safetensors(str(tmp_path), path)

    with tf.Graph().as_default(), tf.Session() as sess:
        w = tf.get_variable("w", [1, 2], initializer=tf.zeros_initializer())
        parts = tf.get_variable("parts", [4], tf.float32)
        missing = tf.get_variable("missing", [])
        sess.run(w.initializer)
        with pytest.raises(tf.errors.NotFoundError, match="no tensor missing for the variable missing"):
            tf.train.restore_safetensors(sess, path, [w, missing])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"parts is of type float32 .* is of type int64"):
            tf.train.restore_safetensors(sess, path, [w, parts])
        assert sess.run(w).tolist() == [[0.0, 0.0]]
