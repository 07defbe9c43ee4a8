"""Canned estimators: the names of their variables, what their heads give, and that they learn, go on and start warm.

TensorFlow's own unit tests of them run in tests/interop/conformance; here is what a change would break first.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.estimator.canned import head as head_lib
from tenfold.estimator.canned.baseline import _baseline_model_fn
from tenfold.estimator.canned.dnn import _dnn_model_fn
from tenfold.estimator.canned.dnn_linear_combined import _dnn_linear_combined_model_fn
from tenfold.estimator.canned.linear import _linear_model_fn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TRAIN, EVAL, PREDICT = (getattr(tf.estimator.ModeKeys, mode) for mode in ("TRAIN", "EVAL", "PREDICT"))
AGE = tf.feature_column.numeric_column("age")
WORD = tf.feature_column.categorical_column_with_vocabulary_list("word", ["a", "b"])


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as made:
        tf.train.create_global_step()
        yield made
    tf.summary.FileWriterCache.clear()


def features() -> dict[str, Any]:
    return {"age": tf.constant([[1.0], [2.0]]), "word": tf.constant([["a"], ["b"]])}


def values(tensors: Any, **feeds: Any) -> Any:
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        return session.run(tensors)


# --- variables ---

MODELS = {
    "linear": (
        lambda head: _linear_model_fn(features(), [[1], [0]], TRAIN, head, (AGE, WORD), None, None, None),
        {
            "linear/linear_model/age/weights": [1, 1],
            "linear/linear_model/word/weights": [2, 1],
            "linear/linear_model/bias_weights": [1],
        },
    ),
    "dnn": (
        lambda head: _dnn_model_fn(
            features(),
            [[1], [0]],
            TRAIN,
            head,
            [3],
            (AGE, tf.feature_column.embedding_column(WORD, 4)),
            dropout=0.5,
            batch_norm=True,
        ),
        {
            "dnn/input_from_feature_columns/input_layer/word_embedding/embedding_weights": [2, 4],
            "dnn/hiddenlayer_0/kernel": [5, 3],
            "dnn/hiddenlayer_0/bias": [3],
            "dnn/hiddenlayer_0/batchnorm_0/gamma": [3],
            "dnn/hiddenlayer_0/batchnorm_0/beta": [3],
            "dnn/logits/kernel": [3, 1],
            "dnn/logits/bias": [1],
        },
    ),
    "combined": (
        lambda head: _dnn_linear_combined_model_fn(
            features(),
            [[1], [0]],
            TRAIN,
            head,
            linear_feature_columns=[WORD],
            dnn_feature_columns=[AGE],
            dnn_hidden_units=[2],
        ),
        {
            "linear/linear_model/word/weights": [2, 1],
            "linear/linear_model/bias_weights": [1],
            "dnn/hiddenlayer_0/kernel": [1, 2],
            "dnn/hiddenlayer_0/bias": [2],
            "dnn/logits/kernel": [2, 1],
            "dnn/logits/bias": [1],
        },
    ),
    "baseline": (
        lambda head: _baseline_model_fn(features(), [[1], [0]], TRAIN, head, "Ftrl"),
        {"baseline/bias": [1]},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_tensorflows_variables_and_summaries(name: str) -> None:
    make, expected = MODELS[name]

    make(head_lib._binary_logistic_head_with_sigmoid_cross_entropy_loss())

    assert {v.op.name.removesuffix("/part_0"): v.shape.as_list() for v in tf.trainable_variables()} == expected
    tags = {op.name for op in tf.get_default_graph().get_operations() if op.type.endswith("Summary")}
    assert {"loss", "average_loss"} <= tags
    assert name != "linear" or {"linear/bias", "linear/fraction_of_zero_weights"} <= tags
    assert name != "dnn" or "dnn/dnn/hiddenlayer_0/fraction_of_zero_values" in tags


# --- heads ---

LOGITS = np.array([[2.0], [-1.0]], np.float32)
WEIGHTS = {"w": np.array([[1.0], [3.0]], np.float32)}


def log1p_exp(x: float) -> float:
    return float(np.log1p(np.exp(x)))


#: Head → logits, labels, the loss that its sum is, and some of its metrics.
HEADS: dict[str, tuple[Any, Any, Any, float, dict[str, float]]] = {
    "binary": (
        lambda: head_lib._binary_logistic_head_with_sigmoid_cross_entropy_loss(thresholds=[0.25], name="h"),
        LOGITS,
        [[1], [1]],
        log1p_exp(-2) + log1p_exp(1),
        {"accuracy/h": 0.5, "recall/h": 0.5, "accuracy_baseline/h": 1.0, "accuracy/positive_threshold_0.25/h": 1.0},
    ),
    "words": (
        lambda: head_lib._binary_logistic_head_with_sigmoid_cross_entropy_loss(label_vocabulary=["no", "yes"]),
        LOGITS,
        [["yes"], ["no"]],
        log1p_exp(-2) + log1p_exp(-1),
        {"accuracy": 1.0, "label/mean": 0.5},
    ),
    "weighted": (
        lambda: head_lib._regression_head(weight_column="w"),
        LOGITS,
        [[0.0], [0.0]],
        4.0 + 3.0,
        {"average_loss": 7 / 4, "label/mean": 0.0, "prediction/mean": -1 / 4},
    ),
    "classes": (
        lambda: head_lib._multi_class_head_with_softmax_cross_entropy_loss(3),
        np.zeros((2, 3), np.float32),
        [[0], [2]],
        2 * float(np.log(3)),
        {"accuracy": 0.5, "average_loss": float(np.log(3))},
    ),
    "labels": (
        lambda: tf.estimator.MultiLabelHead(2, loss_reduction="sum", classes_for_class_based_metrics=[1]),
        np.zeros((2, 2), np.float32),
        [[0, 1], [1, 1]],
        2 * float(np.log(2)),
        {"probability_mean/class1": 0.5, "auc": 0.5},
    ),
    "counts": (
        lambda: tf.estimator.PoissonRegressionHead(compute_full_loss=False, loss_reduction="sum"),
        np.zeros((2, 1), np.float32),
        [[1.0], [2.0]],
        2.0,
        {"prediction/mean": 1.0, "label/mean": 1.5},
    ),
    "mean": (
        lambda: tf.estimator.BinaryClassHead(),
        LOGITS,
        [[1], [1]],
        (log1p_exp(-2) + log1p_exp(1)) / 2,
        {"accuracy": 0.5},
    ),
    "several": (
        lambda: tf.contrib.estimator.multi_head(
            [tf.contrib.estimator.regression_head(name="x"), tf.contrib.estimator.regression_head(name="y")], [1.0, 2.0]
        ),
        np.array([[1.0, 2.0]], np.float32),
        {"x": [[0.0]], "y": [[0.0]]},
        1.0 + 2 * 4.0,
        {"loss/y": 4.0, "average_loss/x": 1.0},
    ),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_head_evaluates(name: str) -> None:
    make, logits, labels, loss, metrics = HEADS[name]

    spec = make().create_estimator_spec(
        features=WEIGHTS,
        mode=EVAL,
        logits=tf.constant(logits),
        labels=labels if name == "several" else tf.constant(labels),
    )
    found, updated = values((spec.loss, {key: update for key, (_, update) in spec.eval_metric_ops.items()}))

    np.testing.assert_allclose(found, loss, rtol=1e-5)
    np.testing.assert_allclose([updated[key] for key in metrics], list(metrics.values()), rtol=1e-5, atol=1e-6)


def test_a_head_predicts_and_is_served() -> None:
    head = head_lib._multi_class_head_with_softmax_cross_entropy_loss(3, label_vocabulary=["a", "b", "c"])

    spec = head.create_estimator_spec(features={}, mode=PREDICT, logits=tf.constant([[0.0, 1.0, 0.0]]))
    found = values(spec.predictions)

    assert (found["class_ids"].tolist(), found["classes"].tolist()) == ([[1]], [[b"b"]])
    assert found["all_classes"].tolist() == [[b"a", b"b", b"c"]]
    assert set(spec.export_outputs) == {"serving_default", "classification", "predict"}


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "no labels": (lambda: head_lib._regression_head(), None, "You must provide a labels Tensor"),
    "another shape": (lambda: head_lib._regression_head(), np.zeros((2, 2)), "Mismatched label shape"),
    "floats": (
        lambda: tf.estimator.MultiClassHead(3),
        np.zeros((2, 1)),
        "Labels dtype should be integer",
    ),
    "one class": (lambda: tf.estimator.MultiClassHead(1), None, "n_classes must be > 2"),
    "a threshold": (lambda: tf.estimator.BinaryClassHead(thresholds=[1.0]), None, r"thresholds not in \(0, 1\)"),
    "a reduction": (lambda: head_lib._regression_head(loss_reduction="none"), None, "Invalid loss_reduction: none"),
    "a loss": (lambda: head_lib._regression_head(loss_fn=lambda labels: labels), None, "must contain argument: logits"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_head_refuses(what: str) -> None:
    make, labels, message = REFUSED[what]

    def loss() -> Any:
        head = make()
        given = None if labels is None else tf.constant(labels)
        return head.create_loss({}, EVAL, tf.zeros((2, head.logits_dimension)), given)

    with pytest.raises(ValueError, match=message):
        loss()


@pytest.mark.parametrize(
    ("label", "of_heads", "of_estimators"), [(3, "be <= n_classes - 1", "<= n_classes - 1"), (-1, "be >= 0", ">= 0")]
)
def test_heads_of_a_program_and_of_estimators_each_have_tensorflows_words(
    label: int, of_heads: str, of_estimators: str
) -> None:
    of_estimator = head_lib._multi_class_head_with_softmax_cross_entropy_loss(3)
    for head, words in ((tf.estimator.MultiClassHead(3), of_heads), (of_estimator, of_estimators)):
        loss = head.create_loss({}, EVAL, tf.zeros((1, 3)), tf.constant([[label]])).training_loss

        with pytest.raises(tf.errors.InvalidArgumentError, match=f"Labels must {words}"):
            values(loss)


@pytest.mark.parametrize(
    ("labels", "message"),
    [(None, "your data contains your label feature"), (np.zeros((1, 2)), "Suggested Fix: If your .*, check your")],
)
def test_public_heads_speak_of_labels_as_tensorflows_do(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tf.estimator.RegressionHead().create_loss({}, EVAL, tf.zeros((1, 1)), labels)


# --- whole estimators ---


def input_fn(epochs: int | None = None) -> Any:
    x = np.arange(4, dtype=np.float32)
    y = (x > 1).astype(np.int32)
    return tf.estimator.inputs.numpy_input_fn({"age": x, "word": np.array(["a", "a", "b", "b"])}, y, 4, epochs, False)


def combined(folder: Path, **more: Any) -> Any:
    return tf.estimator.DNNLinearCombinedClassifier(
        model_dir=str(folder),
        linear_feature_columns=[WORD],
        linear_optimizer=tf.train.GradientDescentOptimizer(1.0),
        dnn_feature_columns=[AGE],
        dnn_optimizer=lambda: tf.train.AdagradOptimizer(0.1),
        dnn_hidden_units=[4],
        config=tf.estimator.RunConfig(tf_random_seed=1, save_summary_steps=None, log_step_count_steps=None),
        **more,
    )


@pytest.mark.thorough
def test_wide_and_deep_learns_predicts_and_starts_warm(tmp_path: Path) -> None:
    estimator = combined(tmp_path / "cold")

    estimator.train(input_fn(), steps=20)
    found = estimator.evaluate(input_fn(1))
    predicted = list(estimator.predict(input_fn(1)))
    warm = combined(tmp_path / "warm", warm_start_from=str(tmp_path / "cold"))
    warm.train(input_fn(), steps=1)

    assert found["accuracy"] == 1.0
    assert found["global_step"] == 20
    assert [each["class_ids"].item() for each in predicted] == [0, 0, 1, 1]
    assert warm.evaluate(input_fn(1))["loss"] <= found["loss"]


def test_a_baseline_is_the_mean_of_the_labels(tmp_path: Path) -> None:
    estimator = tf.estimator.BaselineRegressor(str(tmp_path), optimizer=tf.train.GradientDescentOptimizer(0.1))

    estimator.train(input_fn(), steps=20)

    np.testing.assert_allclose(estimator.get_variable_value("baseline/bias"), [0.5], atol=1e-3)


def test_an_optimizer_is_refused() -> None:
    for given, message in (("Best", "Unsupported optimizer name: Best"), (3, "is not an Optimizer instance")):
        with pytest.raises(ValueError, match=message):
            _dnn_model_fn(features(), None, TRAIN, head_lib._regression_head(), [2], (AGE,), given)


# --- dual coordinate ascent ---


def sdca_input(labels: Any) -> Any:
    """Three examples with names, a number and words, of which the last one is not known."""
    words = tf.SparseTensor([[0, 0], [1, 0], [1, 1], [2, 0]], ["a", "b", "b", "c"], [3, 2])
    return {"id": tf.constant(["1", "2", "3"]), "age": tf.constant([[1.0], [2.0], [-3.0]]), "word": words}, labels


@pytest.mark.parametrize("parts", [1, 2])
def test_linear_sdca_solves_a_regression(tmp_path: Path, parts: int) -> None:
    labels = np.float32([[3.0], [1.0], [-2.0]])
    optimizer = tf.estimator.experimental.LinearSDCA("id", symmetric_l2_regularization=0.5, num_table_shards=parts)
    model = tf.estimator.LinearRegressor(
        (AGE, WORD), tmp_path, optimizer=optimizer, partitioner=tf.fixed_size_partitioner(parts)
    )

    model.train(lambda: sdca_input(labels), steps=60)

    # ridge regression of (age, "a", how often "b", 1)
    rows = np.array([[1.0, 1, 0, 1], [2, 0, 2, 1], [-3, 0, 0, 1]])
    best = np.linalg.solve(rows.T @ rows + 0.5 * np.eye(4), rows.T @ labels)
    names = [name for name in model.get_variable_names() if name.endswith("unshrunk")]
    assert len(names) == 2 + parts
    if parts == 1:
        got = [model.get_variable_value(f"linear/linear_model/{name}") for name in ("age/weights", "word/weights")]
        got.append(model.get_variable_value("linear/linear_model/bias_weights"))
        np.testing.assert_allclose(np.concatenate([each.reshape(-1) for each in got]), best[:, 0], atol=1e-3)
    found = [each["predictions"][0] for each in model.predict(lambda: tf.data.Dataset.from_tensors(sdca_input(0.0)[0]))]
    np.testing.assert_allclose(found, (rows @ best)[:, 0], atol=2e-3)


@pytest.mark.thorough
def test_linear_sdca_classifies_and_goes_on(tmp_path: Path) -> None:
    optimizer = tf.estimator.experimental.LinearSDCA("id", symmetric_l1_regularization=0.25, adaptive=True)
    model = tf.estimator.LinearClassifier((AGE, WORD), tmp_path, optimizer=optimizer)
    data = partial(sdca_input, np.int32([[1], [1], [0]]))

    first = model.train(data, steps=1).evaluate(data, steps=1)
    model = tf.estimator.LinearClassifier((AGE, WORD), tmp_path, optimizer=optimizer)
    later = model.train(data, steps=9).evaluate(data, steps=1)

    assert (later["accuracy"], later["global_step"]) == (1.0, 10)
    # the order of the examples is drawn anew for each step, and the penalties of the weights count in training alone:
    # after one step the loss may be above that of no model
    assert later["loss"] < np.log(2)
    assert first["global_step"] == 1
    # the dual variables of three examples are in the checkpoint
    (table,) = (name for name in model.get_variable_names() if name.endswith("-keys"))
    assert {*map(tuple, model.get_variable_value(table).tolist())} >= {
        tuple(each) for each in values(tf.train.sdca_fprint(["1", "2", "3"])).tolist()
    }


def test_linear_sdca_says_what_it_does_not_train() -> None:
    optimizer = tf.estimator.experimental.LinearSDCA("id")
    with pytest.raises(ValueError, match="cannot be used in a multi-class setting"):
        tf.estimator.LinearClassifier((AGE,), n_classes=3, optimizer=optimizer)
    with pytest.raises(ValueError, match='sparse_combiner must be "sum"'):
        tf.estimator.LinearRegressor((AGE,), optimizer=optimizer, sparse_combiner="mean")
    with pytest.raises(ValueError, match="only be used with one-dimensional label"):
        tf.estimator.LinearRegressor((AGE,), optimizer=optimizer, label_dimension=2)
    deep = tf.estimator.LinearRegressor((tf.feature_column.embedding_column(WORD, 2),), optimizer=optimizer)
    with pytest.raises(ValueError, match="does not support column type"):
        deep.train(lambda: sdca_input(np.zeros((3, 1))), steps=1)


def test_public_heads_sum_precision_over_recall_as_tensorflow_does() -> None:
    """A case of TensorFlow's own test. Heads of canned estimators sum trapezoids."""
    weighted = {"weight": np.float32([[1], [0.1], [1.5]])}
    found = {}
    for name, head in {
        "public": tf.estimator.BinaryClassHead("weight"),
        "canned": head_lib._binary_logistic_head_with_sigmoid_cross_entropy_loss("weight"),
    }.items():
        spec = head.create_estimator_spec(weighted, EVAL, np.float32([[45], [-41], [44]]), np.int32([[1], [1], [0]]))
        _, update = spec.eval_metric_ops["auc_precision_recall"]
        found[name] = float(values(update))

    assert found["public"] == pytest.approx(0.4010627, abs=1e-5)
    assert found["canned"] != pytest.approx(found["public"], abs=1e-2)


def test_an_optimizer_of_the_programs_needs_no_list_of_variables() -> None:
    class Still:
        def minimize(self, loss: Any, global_step: Any) -> Any:
            return tf.no_op()

    made = tf.estimator.RegressionHead().create_estimator_spec(
        {}, TRAIN, tf.ones([2, 1]), [[1.0], [1.0]], optimizer=Still()
    )

    assert made.train_op.type == "NoOp"


class Zero(tf.estimator.Head):
    """A head as a program may write it, without `create_estimator_spec`."""

    name, logits_dimension, loss_reduction = "zero", 1, "sum"

    def loss(self, labels: Any, logits: Any, features: Any = None, mode: Any = None, regularization_losses: Any = None):
        return tf.reduce_sum(tf.zeros_like(logits))

    def predictions(self, logits: Any, keys: Any = None) -> Any:
        return {"logits": logits}

    def metrics(self, regularization_losses: Any = None) -> Any:
        return {}

    def update_metrics(self, eval_metrics: Any, *args: Any, **named: Any) -> Any:
        return eval_metrics


def test_programs_write_heads_of_their_own() -> None:
    class Whole(Zero):
        def create_estimator_spec(self, features: Any, mode: Any, logits: Any, labels: Any = None, **named: Any) -> Any:
            return tf.estimator.EstimatorSpec(mode, self.predictions(logits), self.loss(labels, logits))

    assert Whole().create_estimator_spec({}, EVAL, tf.ones([2, 1])).mode == EVAL
    assert all(isinstance(head, tf.estimator.Head) for head in (tf.estimator.BinaryClassHead(), Whole()))
    with pytest.raises(NotImplementedError, match="Subclasses of Head must implement"):
        Zero().create_estimator_spec({}, EVAL, tf.ones([2, 1]))


def test_several_heads_give_their_metrics_one_by_one() -> None:
    head = tf.estimator.MultiHead([tf.estimator.RegressionHead(name="a"), tf.estimator.RegressionHead(name="b")])

    found = head.update_metrics(head.metrics(), {}, tf.ones([2, 2]), {"a": [[1.0], [1.0]], "b": [[1.0], [1.0]]})

    assert {"average_loss/a", "average_loss/b"} <= set(found)
