"""The feature columns of `tf.contrib.layers`: inputs and weighted sums, with the names of TensorFlow's variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.contrib import feature_columns as fc

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def values(tensors: Any) -> Any:
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(tensors)


def features() -> dict[str, Any]:
    return {
        "price": tf.constant([[1.0], [25.0]]),
        "word": tf.constant([["a"], ["c"]]),
        "id": tf.SparseTensor([[0, 0], [1, 0], [1, 1]], tf.constant([1, 7, 3], tf.int64), [2, 2]),
        "weight": tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [2.0, 1.0, 3.0], [2, 2]),
    }


PRICE = fc.real_valued_column("price", normalizer=lambda price: price / 2)
BUCKETS = fc.bucketized_column(fc.real_valued_column("price"), [0.0, 10.0, 10.0])
WORD = fc.sparse_column_with_keys("word", ["a", "b", "c"])
ID = fc.sparse_column_with_integerized_feature("id", 5)
WEIGHTED = fc.weighted_sparse_column(ID, "weight")

#: Column → what it gives to dense layers.
INPUTS = {
    "real": (PRICE, [[0.5], [12.5]]),
    "buckets": (BUCKETS, [[0, 1, 0], [0, 0, 1]]),
    "one hot": (fc.one_hot_column(WORD), [[1, 0, 0], [0, 0, 1]]),
    "weighted": (fc.one_hot_column(WEIGHTED), [[0, 2, 0, 0, 0], [0, 0, 1, 3, 0]]),
    "embedding": (fc.embedding_column(ID, 2, combiner="sum", initializer=tf.ones_initializer()), [[1, 1], [2, 2]]),
}


@pytest.mark.parametrize("name", INPUTS)
def test_a_column_gives_its_input(name: str) -> None:
    column, expected = INPUTS[name]

    found = values(fc.input_from_feature_columns(features(), [column]))

    np.testing.assert_allclose(found, expected)


def test_inputs_are_in_the_order_of_the_columns_texts() -> None:
    columns = [PRICE, fc.one_hot_column(WORD), fc.embedding_column(ID, 2), BUCKETS]
    found: dict[Any, Any] = {}

    made = fc.input_from_feature_columns(features(), columns, cols_to_outs=found)

    # _BucketizedColumn, _EmbeddingColumn, _OneHotColumn, _RealValuedColumn
    assert [column.name for column in found] == ["price_bucketized", "id_embedding", "word_one_hot", "price"]
    assert made.shape.as_list() == [2, 3 + 2 + 3 + 1]
    assert [v.op.name for v in tf.global_variables()] == ["input_from_feature_columns/id_embedding/weights"]


def test_a_weighted_sum_has_tensorflows_variables() -> None:
    crossed = fc.crossed_column([WORD, BUCKETS], 10)

    total, made, bias = fc.weighted_sum_from_feature_columns(
        features(), [PRICE, WEIGHTED, crossed], num_outputs=1, weight_collections=["w"], scope="linear"
    )
    add = [each.assign(tf.ones_like(each)) for each in (made[PRICE][0], made[WEIGHTED][0], bias)]
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        session.run(add)
        found = session.run(total)

    np.testing.assert_allclose(found, [[0.5 + 2 + 1], [12.5 + 4 + 1]])
    assert {v.op.name for v in tf.get_collection("w")} == {
        "linear/price/weight",
        "linear/id_weighted_by_weight/weights",
        "linear/price_bucketized_X_word/weights",
        "linear/bias_weight",
    }


def test_shared_embeddings_have_one_variable() -> None:
    other = fc.sparse_column_with_integerized_feature("other", 5)
    columns = fc.shared_embedding_columns([ID, other], 3)
    given = {**features(), "other": features()["id"]}

    found = values(fc.input_from_feature_columns(given, columns))

    assert [v.op.name for v in tf.global_variables()] == [
        "input_from_feature_columns/id_shared_embedding/id_other_shared_embedding"
    ]
    np.testing.assert_allclose(found[:, :3], found[:, 3:])


def test_old_columns_go_to_the_functions_of_tf_feature_column() -> None:
    found = values(tf.feature_column.input_layer(features(), [PRICE, fc.one_hot_column(WORD)]))

    np.testing.assert_allclose(found, [[0.5, 1, 0, 0], [12.5, 0, 0, 1]])
    assert set(fc.create_feature_spec_for_parsing([PRICE, WEIGHTED])) == {"price", "id", "weight"}


def test_columns_are_inferred_from_numbers() -> None:
    columns = fc.infer_real_valued_columns({"x": tf.zeros((4, 2, 3)), "y": tf.zeros((4,), tf.int64)})

    assert [(column.name, column.dimension, column.dtype) for column in columns] == [
        ("x", 6, tf.float32),
        ("y", 1, tf.int64),
    ]
    with pytest.raises(ValueError, match="Non integer or non floating types"):
        fc.infer_real_valued_columns(tf.constant(["a"]))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: fc.real_valued_column("x", dimension=0), ValueError, "greater than 0"),
        (lambda: fc.real_valued_column("x", default_value="a"), TypeError, "compatible with dtype"),
        (lambda: fc.bucketized_column(PRICE, [2, 1]), ValueError, "must be a sorted list"),
        (lambda: fc.bucketized_column(WORD, [1]), TypeError, "instance of _RealValuedColumn"),
        (lambda: fc.crossed_column([WORD], 10), ValueError, "at least 2 elements"),
        (lambda: fc.crossed_column([WORD, PRICE], 10), TypeError, "columns must be a set of"),
        (lambda: fc.sparse_column_with_hash_bucket("x", 0), ValueError, "must be at least 1"),
        (lambda: fc.check_feature_columns([PRICE, PRICE]), ValueError, "Duplicate feature column key"),
        (lambda: fc.input_from_feature_columns(features(), [WORD]), ValueError, "not supported in DNN"),
    ],
)
def test_a_column_is_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_columns_come_transformed_and_unknown_words_weigh_nothing() -> None:
    layers = tf.contrib.layers
    where = [[0, 0], [1, 0], [1, 1]]
    words = tf.SparseTensor(where, tf.constant(["a", "?", "b"]), [2, 2])
    weights = tf.SparseTensor(where, tf.constant([2.0, 9.0, 3.0]), [2, 2])
    keys = layers.sparse_column_with_keys("words", ["a", "b"])
    hot = layers.one_hot_column(layers.weighted_sparse_column(keys, "weights"))
    embedding = layers.embedding_column(
        layers.sparse_column_with_integerized_feature("ids", 2), 1, initializer=tf.constant_initializer([[5.0], [7.0]])
    )
    ids = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([1, 0], tf.int64), [2, 1])

    found = [
        layers.input_from_feature_columns({"words": words, "weights": weights}, [hot]),
        layers.input_from_feature_columns({embedding: ids}, [embedding]),
        layers.input_from_feature_columns(
            {layers.real_valued_column("x"): tf.constant([[1.0]])}, [layers.real_valued_column("x")]
        ),
    ]

    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        hots, embedded, same = sess.run(found)
    assert hots.tolist() == [[2.0, 0.0], [0.0, 3.0]]
    assert embedded.tolist() == [[7.0], [5.0]]
    assert same.tolist() == [[1.0]]


def test_strings_are_embedded_without_a_vocabulary() -> None:
    words = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], tf.constant(["a", "b", "a"]), [2, 2])
    column = fc.scattered_embedding_column("word", 50, 3, hash_key=7, combiner="sum")

    found = fc.input_from_feature_columns({"word": words}, [column])
    alone = tf.contrib.layers.scattered_embedding_lookup(
        tf.global_variables()[0], tf.constant(["a", "b"]), dimension=3, hash_key=7
    )

    both, each = values([found, alone])
    np.testing.assert_allclose(both, [each[0], each[0] + each[1]], rtol=1e-6)
    assert column.parse_example_spec == {"word": tf.VarLenFeature(tf.string)}
    assert [variable.op.name for variable in tf.global_variables()] == [
        "input_from_feature_columns/word_scattered_embedding/weights"
    ]
    for wrong, message in (({"size": 0}, "must be greater than 0"), ({"combiner": "max"}, "Combiner must be one of")):
        with pytest.raises(ValueError, match=message):
            fc.scattered_embedding_column(**{"column_name": "w", "size": 5, "dimension": 2, "hash_key": 1, **wrong})


def test_sequence_examples_are_parsed_for_columns() -> None:
    feature = tf.train.Feature
    example = tf.train.SequenceExample(
        context=tf.train.Features(feature={"word": feature(bytes_list=tf.train.BytesList(value=[b"b"]))}),
        feature_lists=tf.train.FeatureLists(
            feature_list={
                "size": tf.train.FeatureList(
                    feature=[feature(float_list=tf.train.FloatList(value=pair)) for pair in ([1, 2], [3, 4], [5, 6])]
                )
            }
        ),
    )

    context, steps = fc.parse_feature_columns_from_sequence_examples(
        tf.constant([example.SerializeToString()]), [fc.one_hot_column(WORD)], [fc.real_valued_column("size", 2)]
    )

    words, sizes = values([context["word"], steps["size"]])
    assert words.values.tolist() == [b"b"]
    assert sizes.tolist() == [[1, 2], [3, 4], [5, 6]]
    with pytest.raises(ValueError, match="single sequence example"):
        fc.parse_feature_columns_from_sequence_examples(tf.constant(["a", "b"]), None, None)
