"""Spellings of the releases before 1.0 work, and are told once; what is ambiguous is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf
from tenfold.ops import spelling


def x_of(*shape):
    return tf.placeholder(tf.float32, shape)


def test_split_and_concat_take_both_orders():
    x = x_of(4, 2)

    assert [part.shape.as_list() for part in tf.split(0, 2, x)] == [[2, 2], [2, 2]]
    assert [part.shape.as_list() for part in tf.split(x, 2, 1)] == [[4, 1], [4, 1]]
    assert tf.concat(1, [x, x]).shape.as_list() == [4, 4]
    assert tf.concat([x, x], 0).shape.as_list() == [8, 2]
    with pytest.raises(ValueError, match="takes an int as number"):
        tf.split(0, [2, 2], x)


@pytest.mark.parametrize(
    ("name", "arguments", "op_type"),
    [
        ("sub", 2, "Sub"),
        ("mul", 2, "Mul"),
        ("neg", 1, "Neg"),
        ("inv", 1, "Reciprocal"),
        ("batch_matmul", 2, "BatchMatMulV2"),
    ],
)
def test_an_old_name_makes_the_node_of_the_new_one(name, arguments, op_type):
    assert getattr(tf, name)(*[x_of(2, 3, 3)] * arguments).op.type == op_type


def test_pack_and_unpack():
    x = x_of(2, 3)

    assert tf.pack([x, x]).shape.as_list() == [2, 2, 3]
    assert [part.shape.as_list() for part in tf.unpack(x)] == [[3], [3]]


def test_an_old_name_is_told_once(caplog):
    spelling._warned.discard("tf.sub")

    tf.sub(np.float32(1), np.float32(2))
    tf.sub(np.float32(1), np.float32(2))

    assert [record.getMessage() for record in caplog.records].count(
        "tf.sub is the spelling of a release before 1.0; use tf.subtract"
    ) == 1


def test_logits_and_labels_by_position_are_taken_as_before():
    logits, labels = x_of(None, 4), x_of(None, 4)

    loss = tf.nn.softmax_cross_entropy_with_logits(logits, labels)

    assert loss.op.inputs[0] is logits
