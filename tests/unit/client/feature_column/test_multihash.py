"""Columns of ids with two small tables beside `tf.get_multihash_variable`; what they refuse."""

from __future__ import annotations

import pytest

import tenfold as tf

columns = tf.feature_column


@pytest.mark.parametrize(("operation", "expected"), [("concat", [1.0] * 5), ("add", [2.0] * 2), ("mul", [1.0] * 2)])
def test_an_embedding_column(operation: str, expected: list[float]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        widths = (2, 3) if operation == "concat" else (2, 2)
        ids = columns.categorical_column_with_multihash("c", (5, 3), operation=operation, partition_num=2)
        column = columns.embedding_column(ids, widths, combiner="sum", initializer=tf.ones_initializer())
        features = {"c": tf.SparseTensor([[0, 0], [1, 0], [1, 1]], tf.constant([0, 7, 7], tf.int64), [2, 2])}
        layer = columns.input_layer(features, [column])
        assert layer.shape[1:].as_list() == [len(expected)]
        assert [var.shape.as_list() for var in tf.trainable_variables()] == [
            *([3, widths[0]], [2, widths[0]], [2, widths[1]], [1, widths[1]]),
        ]
        session.run(tf.global_variables_initializer())

        assert session.run(layer).tolist() == [expected, [2 * each for each in expected]]


def test_what_they_refuse() -> None:
    ids = columns.categorical_column_with_multihash("c", (5, 3))
    with pytest.raises(ValueError, match="The column c has two tables: dimension must be two widths, not 4"):
        columns.embedding_column(ids, 4)
    with pytest.raises(ValueError, match="rows of two tables: use it in embedding_column only"):
        columns.indicator_column(ids).variable_shape  # noqa: B018
    with pytest.raises(ValueError, match=r"need two tables, but dims has 3: \(5, 3, 2\)"):
        columns.categorical_column_with_multihash("c", (5, 3, 2))
    with pytest.raises(ValueError, match=r"dtype must be an integer type. dtype: .*string.*, column_name: c"):
        columns.categorical_column_with_multihash("c", (5, 3), dtype=tf.string)
