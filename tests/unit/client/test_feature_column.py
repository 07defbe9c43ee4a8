"""tf.feature_column without TensorFlow: values worked out by hand, what is refused, and training with columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold_kernels.hashes import concatenated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

fc = tf.feature_column


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def value_of(tensor: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(tensor, feeds)


def rising(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
    """0, 1, 2, … in this shape."""
    return tf.reshape(tf.range(float(np.prod(shape))), shape)


COLOURS = {"colour": tf.SparseTensorValue([[0, 0], [1, 0], [1, 1]], ["red", "blue", "red"], [3, 2])}


def test_columns_stand_side_by_side_by_name() -> None:
    colour = fc.categorical_column_with_vocabulary_list("colour", ["red", "blue"])
    columns = [fc.numeric_column("size"), fc.indicator_column(colour)]

    layer = fc.input_layer({**COLOURS, "size": [[7.0], [8.0], [9.0]]}, columns)

    assert value_of(layer).tolist() == [[1, 0, 7], [1, 1, 8], [0, 0, 9]]


def test_an_embedding_is_the_mean_and_nothing_is_zeros() -> None:
    colour = fc.categorical_column_with_vocabulary_list("colour", ["red", "blue"])
    layer = fc.input_layer(COLOURS, fc.embedding_column(colour, 2, initializer=rising))

    assert value_of(layer).tolist() == [[0, 1], [1, 2], [0, 0]]
    assert [v.op.name for v in tf.trainable_variables()] == ["input_layer/colour_embedding/embedding_weights"]


def test_buckets_of_every_number_of_a_feature() -> None:
    size = fc.bucketized_column(fc.numeric_column("size", 2), [0, 10])
    features = {"size": [[-1.0, 0.0], [10.0, 5.0]]}

    assert value_of(fc.input_layer(features, size)).tolist() == [[1, 0, 0, 0, 1, 0], [0, 0, 1, 0, 1, 0]]
    ids = size.sparse_tensors(tf_features(features)).id_tensor
    assert value_of(ids.values).tolist() == [0, 4, 2, 4]


def tf_features(features: dict[str, Any]) -> Any:
    from tenfold.feature_column.base import Features

    return Features(features)


def test_words_out_of_the_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "words"
    path.write_text("a\nb\n")
    column = fc.categorical_column_with_vocabulary_file("word", str(path), default_value=1)
    features = {"word": [["a"], ["x"], [""]]}

    assert column.num_buckets == 2
    assert value_of(fc.input_layer(features, fc.indicator_column(column))).tolist() == [[1, 0], [0, 1], [0, 0]]


def test_a_number_outside_of_its_buckets_fails_the_step_unless_there_is_a_default() -> None:
    features = {"n": [[1], [5]]}
    strict = fc.input_layer(features, fc.indicator_column(fc.categorical_column_with_identity("n", 3)))
    mild = fc.input_layer(features, fc.indicator_column(fc.categorical_column_with_identity("n", 3, 0)))

    assert value_of(mild).tolist() == [[0, 1, 0], [1, 0, 0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="exceeds number of buckets"):
        value_of(strict)


def test_a_linear_model_learns() -> None:
    """y = 2 if red, 3 if blue."""
    colour = fc.categorical_column_with_vocabulary_list("colour", ["red", "blue"])
    made: dict[Any, Any] = {}
    model = fc.linear_model({"colour": [["red"], ["blue"]]}, [colour], cols_to_vars=made)
    loss = tf.reduce_sum(tf.square(model - [[2.0], [3.0]]))
    step = tf.train.GradientDescentOptimizer(0.2).minimize(loss)

    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        for _ in range(60):
            session.run(step)
        np.testing.assert_allclose(session.run(model), [[2], [3]], atol=1e-3)

    assert [v.op.name for v in made[colour]] == ["linear_model/colour/weights"]
    assert [v.op.name for v in made["bias"]] == ["linear_model/bias_weights"]


@pytest.mark.parametrize("trainable", [True, False])
def test_a_linear_model_keeps_what_an_embedding_makes(trainable: bool) -> None:
    """The embedding's variable is initialized, saved and trained like the model's own."""
    word = fc.embedding_column(fc.categorical_column_with_identity("word", 4), 2)
    made: dict[Any, Any] = {}

    model = fc.linear_model({"word": [[1], [2]]}, [word], cols_to_vars=made, weight_collections=["mine"],
                            trainable=trainable)  # fmt: skip

    of_word = ["linear_model/word_embedding/weights", "linear_model/word_embedding/embedding_weights"]
    assert [v.op.name for v in made[word]] == of_word
    names = sorted([*of_word, "linear_model/bias_weights"])
    for collection in ("variables", "model_variables", "mine", "trainable_variables"):
        kept = names if trainable or collection != "trainable_variables" else []
        assert sorted(v.op.name for v in tf.get_collection(collection)) == kept, collection
    assert value_of(model).tolist() == [[0], [0]]


def test_examples_are_read_by_what_the_columns_say() -> None:
    columns = [
        fc.numeric_column("size", 2, default_value=1.0),
        fc.weighted_categorical_column(fc.categorical_column_with_identity("n", 4), "weight"),
    ]
    spec = fc.make_parse_example_spec(columns)
    example = tf.train.Example()
    example.features.feature["n"].int64_list.value.extend([3, 1])
    example.features.feature["weight"].float_list.value.extend([0.5, 2.0])

    parsed = tf.io.parse_example([example.SerializeToString()], spec)

    assert value_of(fc.input_layer(parsed, [columns[0], fc.indicator_column(columns[1])])).tolist() == [
        [0, 2, 0, 0.5, 1, 1]
    ]


def test_ranks_known_in_the_step_only() -> None:
    feature = tf.placeholder(tf.float32)
    made = fc.numeric_column("x").dense_tensor(tf_features({"x": feature}), (), True)

    assert value_of(made, {feature: [1.0, 2.0]}).tolist() == [[1], [2]]
    assert value_of(made, {feature: [[3.0]]}).tolist() == [[3]]


def test_one_variable_for_several_columns() -> None:
    pair = fc.shared_embedding_columns(
        [fc.categorical_column_with_identity(key, 3) for key in "ab"], 1, initializer=rising
    )
    layer = fc.input_layer({"a": [[0], [2]], "b": [[1], [1]]}, pair)

    assert value_of(layer).tolist() == [[0, 1], [2, 1]]
    assert [v.op.name for v in tf.global_variables()] == ["input_layer/a_b_shared_embedding/embedding_weights"]


def test_crosses() -> None:
    crossed = tf.sparse.cross([COLOURS["colour"], tf.constant([["x", "y"], ["z", "z"], ["w", "w"]])])

    found = value_of(crossed)

    assert found.values.tolist() == [b"red_X_x", b"red_X_y", *[b"blue_X_z"] * 2, *[b"red_X_z"] * 2]
    assert found.dense_shape.tolist() == [3, 4]
    assert found.indices.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [1, 3]]
    assert concatenated(1, 2) != concatenated(2, 1)


def test_sizes_of_sparse_tensors() -> None:
    tensor = tf.convert_to_tensor_or_sparse_tensor(COLOURS["colour"])

    assert value_of([tf.shape(tensor), tf.size(tensor), tf.rank(tensor)])[0].tolist() == [3, 2]
    assert value_of([tf.size(tensor), tf.rank(tensor)]) == [6, 2]


def test_equal_columns_are_the_same_column() -> None:
    assert fc.numeric_column("x") == fc.numeric_column("x")
    assert len({fc.categorical_column_with_identity("x", 3), fc.categorical_column_with_identity("x", 3)}) == 1
    assert fc.crossed_column(["b", "a"], 5).name == "a_X_b"


IDENTITY = ("n", 3)
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: fc.numeric_column("x", 0), ValueError, "greater than 0"),
    (lambda: fc.numeric_column("x", dtype=tf.string), ValueError, "convertible to float"),
    (lambda: fc.numeric_column("x", 2, default_value=[1.0]), ValueError, "equal to given shape"),
    (lambda: fc.numeric_column("x", default_value="a"), TypeError, "compatible with dtype"),
    (lambda: fc.numeric_column("x", normalizer_fn=3), TypeError, "must be a callable"),  # type: ignore[arg-type]
    (lambda: fc.bucketized_column(fc.numeric_column("x"), [2, 1]), ValueError, "sorted"),
    (lambda: fc.bucketized_column(fc.numeric_column("x"), []), ValueError, "must not be empty"),
    (lambda: fc.categorical_column_with_hash_bucket("x", 0), ValueError, "at least 1"),
    (lambda: fc.categorical_column_with_hash_bucket("x", 5, tf.float32), ValueError, "string or integer"),
    (lambda: fc.categorical_column_with_vocabulary_list("x", ["a", "a"]), ValueError, "Duplicate keys"),
    (lambda: fc.categorical_column_with_vocabulary_list("x", ["a"], tf.int64), ValueError, "do not match"),
    (lambda: fc.categorical_column_with_vocabulary_file("x", "/no/such"), ValueError, "does not exist"),
    (lambda: fc.categorical_column_with_identity("x", 3, 3), ValueError, "not in range"),
    (lambda: fc.embedding_column(fc.categorical_column_with_identity(*IDENTITY), 0), ValueError, "Invalid dimension"),
    (lambda: fc.crossed_column(["a"], 5), ValueError, "length > 1"),
    (
        lambda: fc.crossed_column(["a", fc.categorical_column_with_hash_bucket("b", 3)], 5),
        ValueError,
        "not supported for crossing",
    ),
    (
        lambda: fc.input_layer({"n": [[1]]}, fc.categorical_column_with_identity(*IDENTITY)),
        ValueError,
        "must be a _DenseColumn",
    ),
    (lambda: fc.input_layer({}, [fc.numeric_column("x")]), ValueError, "not in features dictionary"),
    (lambda: fc.input_layer({"x": 1.0}, [fc.numeric_column("x")]), ValueError, "cannot have rank 0"),
    (lambda: fc.input_layer({"x": [1.0]}, [fc.numeric_column("x")] * 2), ValueError, "Duplicate feature column"),
    (lambda: fc.input_layer({"x": [1.0]}, []), ValueError, "must not be empty"),
    (
        lambda: fc.input_layer({"x": [1.0], "y": [1.0, 2.0]}, map(fc.numeric_column, "xy")),
        ValueError,
        "Batch size .* must be same",
    ),
    (
        lambda: fc.make_parse_example_spec([fc.numeric_column("x"), fc.categorical_column_with_identity("x", 3)]),
        ValueError,
        "different parse_spec",
    ),
    (lambda: tf.sparse.cross_hashed([[[1.5]]]), TypeError, "Only strings and integers"),
]


@pytest.mark.parametrize(("build", "error", "text"), REFUSED, ids=[text for _, _, text in REFUSED])
def test_what_is_refused(build: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        build()


def test_columns_are_put_in_order_among_keys() -> None:
    a, b = fc.numeric_column("a"), fc.numeric_column("b")

    assert sorted([b, "zz", a, "0"]) == ["0", a, b, "zz"]
