"""SequenceExamples, one and a batch of them: contexts, lists of steps, what is missing, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import tenfold as tf


def example(steps: int) -> bytes:
    made = tf.train.SequenceExample()
    made.context.feature["length"].int64_list.value.append(steps)
    for step in range(steps):
        made.feature_lists.feature_list["token"].feature.add().int64_list.value.append(step)
        made.feature_lists.feature_list["weights"].feature.add().float_list.value.extend([0.5] * step)
    return bytes(made.SerializeToString())


def test_one_example() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        context, lists = tf.parse_single_sequence_example(
            example(3),
            {"length": tf.FixedLenFeature([], tf.int64), "absent": tf.FixedLenFeature([2], tf.float32, [1.0, 2.0])},
            {
                "token": tf.FixedLenSequenceFeature([], tf.int64),
                "weights": tf.VarLenFeature(tf.float32),
                "absent": tf.FixedLenSequenceFeature([3], tf.string, allow_missing=True),
            },
        )
        found, steps = session.run([context, lists])

    assert (found["length"], found["absent"].tolist()) == (3, [1.0, 2.0])
    assert steps["token"].tolist() == [0, 1, 2]
    assert steps["weights"].indices.tolist() == [[1, 0], [2, 0], [2, 1]]
    assert steps["absent"].shape == (0, 3)
    assert lists["token"].shape.as_list() == [None]


def test_a_batch_is_filled_up_to_the_longest() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        context, lists, lengths = session.run(
            tf.io.parse_sequence_example(
                [example(1), example(3)],
                {"length": tf.FixedLenFeature([], tf.int64)},
                {"token": tf.FixedLenSequenceFeature([], tf.int64)},
            )
        )

    assert context["length"].tolist() == lengths["token"].tolist() == [1, 3]
    assert lists["token"].tolist() == [[0, 0, 0], [0, 1, 2]]


@pytest.mark.parametrize(
    ("context", "lists", "match"),
    [
        (None, None, "Missing features"),
        ({"a": tf.FixedLenSequenceFeature([], tf.int64)}, None, "Unsupported FixedLenSequenceFeature"),
        (None, {"a": tf.FixedLenFeature([], tf.int64)}, "Unsupported FixedLenFeature"),
        ({"a": tf.VarLenFeature(None)}, None, "Missing type for feature a"),
        ({"a": tf.FixedLenFeature(None, tf.int64)}, None, "Missing shape for feature a"),
        (None, {"a": tf.FixedLenSequenceFeature([], tf.int64, default_value=1)}, "must be None"),
    ],
)
def test_other_features_are_refused(context: Any, lists: Any, match: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=match):
        tf.parse_single_sequence_example(b"", context, lists)
