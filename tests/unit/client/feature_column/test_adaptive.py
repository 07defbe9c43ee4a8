"""Adaptive embeddings: shared rows and rows of their own by a mask, how the latter begin, what is trained, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator

fc = tf.feature_column
KEYS = [[b"a"], [b"b"], [b"a"], [b"c"]]


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def columns(dimension: int = 2, combiner: str = "mean", **more: Any) -> Any:
    column = fc.categorical_column_with_adaptive_embedding("k", hash_bucket_size=50, **more)
    return fc.embedding_column(column, dimension, combiner, initializer=tf.random_normal_initializer(seed=3))


def layer(keys: Any, mask: Any, column: Any = None) -> Any:
    masks = {"k": tf.constant(mask, tf.int32)}
    return fc.input_layer({"k": keys}, [columns() if column is None else column], adaptive_mask_tensors=masks)


def variables() -> tuple[Any, Any]:
    shared, own = (variable for variable in tf.trainable_variables())
    return shared, own


@pytest.mark.parametrize("parts", [None, 2])
def test_a_row_of_its_own_begins_as_the_shared_one(parts: int | None) -> None:
    rare = layer(tf.constant(KEYS), [0, 0, 0, 0])
    column = columns(partition_num=parts)
    with tf.variable_scope("again"):
        mixed = layer(tf.constant(KEYS), [1, 0, 0, 1], column)
    again = [variable for variable in tf.trainable_variables() if variable.op.name.startswith("again")]
    assert len(again) == (2 if parts is None else 3)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        shared = tf.trainable_variables()[0]
        session.run(tf.assign(again[0], shared))
        alone, found = session.run([rare, mixed])
        np.testing.assert_array_equal(found, alone)
        session.run(tf.assign(again[0], shared * 0.0))
        later = session.run(mixed)
    np.testing.assert_array_equal(later, alone * [[1], [0], [0], [1]])


def test_only_the_rows_that_were_used_are_trained() -> None:
    embedded = layer(tf.constant(KEYS), [1, 0, 0, 1])
    shared, own = variables()
    step = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(embedded))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before, table = session.run([embedded, shared])
        session.run(step)
        after, trained = session.run([embedded, shared])
        keys, rows, _, _ = session.run(own.export())
    np.testing.assert_allclose(after, before - 1, atol=1e-6)
    assert sorted(np.flatnonzero((table != trained).any(1))) == sorted(np.flatnonzero((trained == table - 1).all(1)))
    assert (table != trained).any(1).sum() == 2, "of a and b"
    assert len(keys) == len(rows) == 2, "of a and c"


@pytest.mark.parametrize(("combiner", "expected"), [("sum", 3.0), ("mean", 1.0), ("sqrtn", np.sqrt(3.0))])
def test_several_ids_of_an_example_are_combined(combiner: str, expected: float) -> None:
    column = fc.categorical_column_with_adaptive_embedding("k", hash_bucket_size=50, dtype=tf.int64)
    embedding = fc.embedding_column(column, 2, combiner, initializer=tf.ones_initializer())
    ids = tf.SparseTensor([[0, 0], [0, 1], [0, 2], [2, 0]], tf.constant([4, 5, 6, 4], tf.int64), [4, 3])
    found = layer(ids, [1, 1, 0, 0], embedding)
    assert found.shape.as_list() == [4, 2]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        rows = session.run(found)
    np.testing.assert_allclose(rows, [[expected] * 2, [0, 0], [1, 1], [0, 0]], rtol=1e-6)


def test_in_a_linear_model_it_is_a_hashed_column() -> None:
    column = fc.categorical_column_with_adaptive_embedding("k", hash_bucket_size=50)
    fc.linear_model({"k": tf.constant(KEYS)}, [column])
    assert tf.trainable_variables()[0].shape.as_list() == [50, 1]


def test_masks_and_columns_that_cannot_be() -> None:
    features = {"k": tf.constant(KEYS)}
    with pytest.raises(ValueError, match=r"needs adaptive_mask_tensors\['k'\], and has masks for no column"):
        fc.input_layer(features, [columns()])
    with pytest.raises(ValueError, match=r"adaptive_mask_tensors\['k'\] must be a vector"):
        layer(tf.constant(KEYS), [[1]])
    for arguments, message in (
        ({"hash_bucket_size": 0}, "hash_bucket_size must be at least 1"),
        ({"hash_bucket_size": 5, "partition_num": 0}, "partition_num must be at least 1"),
        ({"hash_bucket_size": 5, "dtype": tf.float32}, "dtype must be string or integer"),
    ):
        with pytest.raises(ValueError, match=message):
            fc.categorical_column_with_adaptive_embedding("k", **arguments)
    column = fc.categorical_column_with_adaptive_embedding("k", 5)
    shared = fc.shared_embedding_columns([column], 2)
    with pytest.raises(ValueError, match="two tables, which are neither shared"):
        layer(tf.constant(KEYS), [0, 0, 0, 0], shared[0])


def test_first_rows_are_for_embedding_variables() -> None:
    with pytest.raises(ValueError, match="ev_init_value is for embedding variables"):
        tf.nn.embedding_lookup(tf.ones([3, 2]), [1], ev_init_value=tf.zeros([1, 2]))


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("filters", [False, True])
def test_first_rows_go_with_their_ids_to_each_part(parts: int, filters: bool) -> None:
    """The first of an id that is there twice counts; by the ops of every lookup, which are few."""
    option = tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(1) if filters else None)
    partitioner = tf.fixed_size_partitioner(parts) if parts > 1 else None
    table = tf.get_embedding_variable(
        "t", 2, initializer=tf.zeros_initializer(), partitioner=partitioner, ev_option=option
    )
    ids = tf.constant([[7, 1000], [-4, 7], [1 << 60, 5]], tf.int64)
    first = tf.reshape(tf.range(12.0), [3, 2, 2])
    begin = len(tf.get_default_graph().get_operations())
    rows = tf.nn.embedding_lookup(table, ids, ev_init_value=first)
    ops = [op.type for op in tf.get_default_graph().get_operations()[begin:]]
    train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(rows))

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        if filters:
            session.run(rows)  # which admits them
        found = session.run(rows)
        session.run(train)
        after = session.run(tf.nn.embedding_lookup(table, ids))

    expected = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    expected[1, 1] = expected[0, 0]
    np.testing.assert_array_equal(found, expected)
    times = np.array([[2, 1], [1, 2], [1, 1]])[..., np.newaxis]
    np.testing.assert_array_equal(after, expected - times)
    assert rows.shape.as_list() == [3, 2, 2]
    assert [ops.count(name) for name in ("EmbeddingSplit", "KvResourceGather", "EmbeddingMerge")] == [1, parts, 1]
    assert not {"DynamicPartition", "ParallelDynamicStitch"} & set(ops)


@pytest.mark.parametrize("parts", [1, 2])
def test_one_row_may_be_the_first_of_all_ids_and_another_number_is_refused(parts: int) -> None:
    partitioner = tf.fixed_size_partitioner(parts) if parts > 1 else None
    table = tf.get_embedding_variable("t", 2, initializer=tf.zeros_initializer(), partitioner=partitioner)
    one = tf.nn.embedding_lookup(table, tf.constant([1, 2], tf.int64), ev_init_value=tf.constant([3.0, 4.0]))
    given = tf.placeholder(tf.float32, [None, 2])
    many = tf.nn.embedding_lookup(table, tf.constant([5, 6], tf.int64), ev_init_value=given)

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(one), [[3, 4], [3, 4]])
        with pytest.raises(tf.errors.InvalidArgumentError, match="6 values, but the requested shape has 4"):
            session.run(many, {given: np.zeros([3, 2], np.float32)})
