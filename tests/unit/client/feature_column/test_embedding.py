"""Embedding columns of raw ids, which an embedding variable keeps; the others are in test_feature_column.py."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold.feature_column.embedding import EmbeddingColumn

fc = tf.feature_column


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def ids(*rows: list[int]) -> tf.SparseTensor:
    places = [[row, column] for row, values in enumerate(rows) for column in range(len(values))]
    flat = [value for values in rows for value in values]
    return tf.SparseTensor(places, tf.constant(flat, tf.int64), [len(rows), max(map(len, rows))])


def column(name: str = "id", **more: Any) -> EmbeddingColumn:
    raw = fc.categorical_column_with_embedding(name, dtype=tf.int64, **more)
    return fc.embedding_column(raw, dimension=3, initializer=tf.ones_initializer(), combiner="sum")


def run(*fetches: Any) -> Any:
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return [session.run(each) for each in fetches]


@pytest.mark.parametrize("parts", [None, 2])
def test_raw_ids_of_any_size_are_looked_up_and_trained(parts: int | None) -> None:
    layer = fc.input_layer({"id": ids([1 << 60, -5], [7], [7, 7])}, [column(partition_num=parts)])
    train = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(layer))
    names = [each.op.name for each in tf.trainable_variables()]
    keys = [each.export()[0] for each in tf.trainable_variables()]

    first, _, second, known = run(layer, train, layer, keys)

    assert first.tolist() == [[2] * 3, [1] * 3, [2] * 3]
    assert second.tolist() == [[1] * 3, [-0.5] * 3, [-1] * 3]
    assert sorted(np.concatenate(known).tolist()) == [-5, 7, 1 << 60]
    scope = "input_layer/id_embedding/embedding_weights"
    assert names == ([f"{scope}/part_{i}" for i in range(parts)] if parts else [scope])


def test_strings_are_hashed_and_rare_ones_have_no_weights() -> None:
    admit = tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(filter_freq=2))
    words = fc.categorical_column_with_embedding("word", ev_option=admit)
    made = fc.embedding_column(words, 2, initializer=tf.ones_initializer())
    layer = fc.input_layer({"word": tf.constant([["often"], ["often"], ["once"]])}, [made])

    first, second = run(layer, layer)

    assert first.tolist() == [[0, 0]] * 3, "a batch asks once for each"
    assert second.tolist() == [[0, 0]] * 3
    (variable,) = tf.trainable_variables()
    assert variable.initializer.get_attr("filter_freq") == 2


def test_weights_sequences_and_shared_tables() -> None:
    raw = fc.categorical_column_with_embedding("id", dtype=tf.int64)
    weighted = fc.weighted_categorical_column(raw, "weight")
    given = {"id": ids([3, 4]), "weight": tf.constant([[2.0, 5.0]])}
    made = fc.embedding_column(weighted, 2, initializer=tf.ones_initializer(), combiner="sum")
    sequence = fc.sequence_categorical_column_with_embedding("id", dtype=tf.int64)
    steps, lengths = tf.contrib.feature_column.sequence_input_layer(
        {"id": ids([3, 4], [9])}, [fc.embedding_column(sequence, 2, initializer=tf.ones_initializer())]
    )
    shared = fc.shared_embedding_columns(
        [fc.categorical_column_with_embedding(name, dtype=tf.int64) for name in ("a", "b")],
        2,
        initializer=tf.ones_initializer(),
    )
    both = fc.input_layer({"a": ids([1]), "b": ids([2])}, shared)

    found = run(fc.input_layer(given, [made]), steps, lengths, both)

    assert found[0].tolist() == [[7, 7]]
    assert found[1].tolist() == [[[1, 1], [1, 1]], [[1, 1], [0, 0]]]
    assert found[2].tolist() == [2, 1]
    assert found[3].tolist() == [[1, 1, 1, 1]]
    assert len(tf.get_collection(tf.GraphKeys.EMBEDDING_VARIABLES)) == 3


def test_a_network_of_an_estimator_trains_on_raw_ids() -> None:
    def input_fn() -> Any:
        users = tf.constant([[1 << 50], [2], [3], [1 << 50]], tf.int64)
        return tf.data.Dataset.from_tensors(({"id": users}, [[1.0], [0.0], [0.0], [1.0]])).repeat(40)

    made = fc.embedding_column(fc.categorical_column_with_embedding("id", dtype=tf.int64), 8)
    optimizer = tf.train.AdagradOptimizer(0.2)
    config = tf.estimator.RunConfig(tf_random_seed=3)
    estimator = tf.estimator.DNNClassifier([8], [made], optimizer=optimizer, config=config)
    estimator.train(input_fn)

    assert estimator.evaluate(input_fn, steps=1)["accuracy"] == 1.0


@pytest.mark.parametrize("partition_num", [None, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_linear_model_has_a_weight_for_each_raw_id(partition_num: int | None, weighted: bool) -> None:
    option = tf.EmbeddingVariableOption(storage_option=tf.StorageOption(storage_size=[1 << 30, 1 << 30]))
    raw = fc.categorical_column_with_embedding("id", tf.int64, partition_num=partition_num, ev_option=option)
    features = {"id": ids([1, 1 << 50]), "weight": tf.SparseTensor([[0, 0], [0, 1]], [2.0, 3.0], [1, 2])}
    made = fc.linear_model(features, [fc.weighted_categorical_column(raw, "weight") if weighted else raw], units=2)
    loss = tf.reduce_sum(made * [[1.0, 2.0]])
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(made).tolist() == [[0, 0]]
        session.run(train)
        # the bias and each weight go down by half the slope
        by_weights = 2 * 2 + 3 * 3 if weighted else 2
        np.testing.assert_allclose(session.run(made), [[-0.5 - 0.5 * by_weights, -1 - by_weights]])


def test_where_ids_are_counted_they_are_refused() -> None:
    raw = fc.categorical_column_with_embedding("id", dtype=tf.int64)
    with pytest.raises(ValueError, match="ids of the column id are any 64-bit numbers: use it in embedding_column or"):
        fc.input_layer({"id": ids([1])}, [fc.indicator_column(raw)])
    with pytest.raises(ValueError, match=r"partition_num must be at least 1\. partition_num: 0, key: id"):
        fc.categorical_column_with_embedding("id", partition_num=0)


def test_a_model_with_an_input_layer_of_its_own() -> None:
    from tenfold.compat.python import feature_column as private

    item = fc.sequence_categorical_column_with_vocabulary_list("item", ["a", "b", "c"], default_value=0)
    words = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["c", "b", "?"], [3, 4])
    builder = private._LazyBuilder({"item": words})
    found = item._get_sparse_tensors(builder)
    lengths = private.sequence_length_from_sparse_tensor(found.id_tensor)

    numbers, lengths = run(found.id_tensor.values, lengths)
    assert (numbers.tolist(), lengths.tolist(), item._num_buckets) == ([2, 1, 0], [2, 0, 1], 3)
    assert found.weight_tensor is None


def test_dense_ids_become_sparse_ones_without_those_that_are_ignored() -> None:
    from tenfold.compat.python import feature_column as private

    [found] = run(private._to_sparse_input_and_drop_ignore_values(tf.constant([3, -1, 5], tf.int64)))
    assert (found.indices.tolist(), found.values.tolist(), found.dense_shape.tolist()) == ([[0], [2]], [3, 5], [3])


def test_columns_of_a_group_that_ask_for_fusion() -> None:
    with fc.group_embedding_column_scope(name="group"):
        raw = fc.categorical_column_with_embedding("id", dtype=tf.int64)
        made = fc.embedding_column(raw, dimension=3, initializer=tf.ones_initializer(), combiner="sum", do_fusion=True)
        shared = fc.shared_embedding_columns([raw], dimension=3, do_fusion=True)
    assert made == dataclasses.replace(column(), initializer=made.initializer)
    assert [each.name for each in shared] == ["id_shared_embedding"]
