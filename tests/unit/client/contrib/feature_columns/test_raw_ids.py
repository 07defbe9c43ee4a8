"""`sparse_column_with_embedding`: ids that nobody counts, in dense inputs and in weighted sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.contrib import layers
from tenfold.ops.embedding_variables import is_embedding_variable

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def ids_of(values: Any, dtype: Any = tf.int64) -> Any:
    return tf.SparseTensor([[i, 0] for i in range(len(values))], tf.constant(values, dtype), [len(values), 1])


def run(tensor: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensor)


@pytest.mark.parametrize("parts", [None, 2])
def test_an_embedding_of_any_ids(parts: int | None) -> None:
    option = tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(filter_freq=2))
    ids = layers.sparse_column_with_embedding("c", tf.int64, partition_num=parts, ev_option=option)
    column = layers.embedding_column(ids, dimension=3, initializer=tf.ones_initializer())
    made = layers.input_from_feature_columns({"c": ids_of([5, 1 << 60, 5])}, [column])
    variables = tf.trainable_variables()
    assert len(variables) == (parts or 1)
    assert all(map(is_embedding_variable, variables))
    assert tf.get_collection(tf.GraphKeys.MODEL_VARIABLES) == variables

    # an id of a batch is looked up once
    assert run(made).tolist() == [[0] * 3] * 3


def test_columns_of_strings_share_an_embedding() -> None:
    columns = [layers.sparse_column_with_embedding(name, combiner="mean") for name in ("a", "b")]
    shared = layers.shared_embedding_columns(
        columns, dimension=2, shared_embedding_name="both", initializer=tf.random_uniform_initializer(seed=1)
    )
    features = {"a": ids_of(["x", "y"], tf.string), "b": ids_of(["y", "x"], tf.string)}
    found = run(layers.input_from_feature_columns(features, shared))

    assert len(tf.trainable_variables()) == 1
    assert (found[0, :2] == found[1, 2:]).all()
    assert (found[1, :2] == found[0, 2:]).all()
    assert (found[0, :2] != found[1, :2]).all()


def test_a_weighted_sum_of_any_ids() -> None:
    ids = layers.sparse_column_with_embedding("c", tf.int64)
    weighted = layers.weighted_sparse_column(ids, "w")
    features = {"c": ids_of([5, 6]), "w": ids_of([2.0, 3.0], tf.float32)}
    total, variables, _ = layers.weighted_sum_from_feature_columns(features, [weighted], num_outputs=2)
    (table,) = variables[weighted]
    assert is_embedding_variable(table)
    train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(total), var_list=[table])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(total).tolist() == [[0, 0], [0, 0]]
        session.run(train)
        assert session.run(total).tolist() == [[-4, -4], [-9, -9]]


def test_what_it_refuses() -> None:
    ids = layers.sparse_column_with_embedding("c", tf.int64)
    with pytest.raises(ValueError, match="The ids of the column c are any 64-bit numbers"):
        layers.one_hot_column(ids).length  # noqa: B018
    with pytest.raises(ValueError, match="dtype must be string or integer"):
        layers.sparse_column_with_embedding("c", tf.float32)
    with pytest.raises(NotImplementedError, match="cannot be filled from a data source"):
        layers.sparse_column_with_embedding("c", init_data_source="x")
