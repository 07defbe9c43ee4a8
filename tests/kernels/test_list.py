"""Tensor lists through a session: they are values, so that a changed list leaves the old one alone."""

from __future__ import annotations

import pytest

import tenfold as tf

raw = tf.raw_ops


def reserved(count: int) -> tf.Tensor:
    return raw.TensorListReserve(element_shape=[2], num_elements=count, element_dtype=tf.float32)


def test_what_was_set_is_stacked() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        old = reserved(2)
        new = raw.TensorListSetItem(input_handle=old, index=1, item=[3.0, 4.0])
        item = raw.TensorListGetItem(input_handle=new, index=1, element_shape=[2], element_dtype=tf.float32)
        both = [
            raw.TensorListStack(input_handle=list_, element_shape=[2], element_dtype=tf.float32) for list_ in (old, new)
        ]

        got, before, after, length = session.run([item, *both, raw.TensorListLength(input_handle=new)])

    assert (got.tolist(), length) == ([3, 4], 2)
    assert before.tolist() == [[0, 0], [0, 0]]
    assert after.tolist() == [[0, 0], [3, 4]]


def test_a_tensor_is_a_list_of_its_rows() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        rows = raw.TensorListFromTensor(tensor=[[1.0, 2.0], [3.0, 4.0]], element_shape=[2])
        shorter, last = raw.TensorListPopBack(input_handle=rows, element_shape=[2], element_dtype=tf.float32)

        assert session.run([last, raw.TensorListLength(input_handle=shorter)])[1] == 1
        assert session.run(last).tolist() == [3, 4]


def test_an_index_beyond_the_end_is_an_error() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        item = raw.TensorListGetItem(input_handle=reserved(1), index=1, element_shape=[2], element_dtype=tf.float32)

        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(item)
