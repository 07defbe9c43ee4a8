"""`tf.contrib.learn` over `tf.estimator`: old model functions, arrays, monitors, experiments, words as numbers.

TensorFlow's own unit tests of it run in tests/interop/conformance; here is what a change would break first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.contrib import learn
from tenfold.contrib.learn import run_config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

X = np.arange(8, dtype=np.float32)[:, None]
Y = (3 * X + 1)[:, 0]


@pytest.fixture(autouse=True)
def closed_writers() -> Iterator[None]:
    yield
    tf.summary.FileWriterCache.clear()


def tuple_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    """An old model function: a loss in every mode, and three values."""
    weight = tf.get_variable("weight", [1, 1], initializer=tf.zeros_initializer())
    bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
    predictions = tf.reshape(tf.matmul(features, weight) + bias, [-1])
    loss = tf.losses.mean_squared_error(labels, predictions)
    optimizer = tf.train.GradientDescentOptimizer(params["rate"])
    return {"y": predictions}, loss, optimizer.minimize(loss, tf.train.get_global_step())


def ops_fn(features: Any, labels: Any, mode: str) -> Any:
    predictions, loss, train_op = tuple_fn(features, labels, mode, {"rate": 0.01})
    return learn.ModelFnOps(mode, predictions, loss, train_op)


def config(folder: Path, **more: Any) -> Any:
    return learn.RunConfig(model_dir=str(folder), tf_random_seed=1, save_summary_steps=None, **more)


def constants() -> tuple[Any, Any]:
    return tf.constant(X), tf.constant(Y)


def test_arrays_are_fitted_scored_and_predicted(tmp_path: Path) -> None:
    estimator = learn.Estimator(tuple_fn, config=config(tmp_path), params={"rate": 0.03})

    fitted = estimator.fit(X, Y, steps=30, batch_size=8)
    spec = learn.MetricSpec(tf.metrics.mean_absolute_error, prediction_key="y")
    found = estimator.evaluate(X, Y, batch_size=4, metrics={"error": spec})
    each = list(estimator.predict(X, batch_size=3, outputs=["y"]))
    whole = learn.SKCompat(estimator).predict(X, batch_size=3)

    assert fitted is estimator
    assert found["global_step"] == 30
    assert found["error"] < 2
    assert len(each) == 8
    np.testing.assert_allclose([row["y"] for row in each], whole["y"])


def test_an_input_function_without_a_queue_is_predicted_once(tmp_path: Path) -> None:
    estimator = learn.Estimator(ops_fn, config=config(tmp_path))

    estimator.fit(input_fn=constants, max_steps=2)
    estimator.fit(input_fn=constants, max_steps=2)

    assert estimator.evaluate(input_fn=constants, steps=1)["global_step"] == 2
    assert len(list(estimator.predict(input_fn=constants))) == 8
    assert estimator.get_variable_names() == ["bias", "global_step", "weight"]


def test_a_metric_may_be_a_value_alone(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        made = ops_fn(features, labels, mode)
        return made._replace(eval_metric_ops={"loss": made.loss, "twice": 2 * made.loss})

    estimator = learn.Estimator(model_fn, config=config(tmp_path))
    estimator.fit(input_fn=constants, steps=1)
    found = estimator.evaluate(input_fn=constants, steps=1)

    assert found["twice"] == pytest.approx(2 * found["loss"])


def test_what_an_estimator_refuses(tmp_path: Path) -> None:
    estimator = learn.Estimator(ops_fn, config=config(tmp_path))

    for call, error, message in (
        (lambda: estimator.fit(input_fn=constants, steps=1, max_steps=1), ValueError, "both steps and max_steps"),
        (lambda: estimator.fit(X, Y, input_fn=constants), ValueError, "both input_fn and x or y"),
        (lambda: estimator.fit(), ValueError, "Either x or input_fn must be provided"),
        (lambda: estimator.evaluate(input_fn=constants), learn.NotFittedError, "Couldn't find trained model"),
        (lambda: learn.Estimator(ops_fn, config=config(tmp_path), params={}), ValueError, "have a params argument"),
        (lambda: learn.run_n, AttributeError, "is not part of Tenfold: graph actions"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_inputs_stay_alike_and_an_export_names_its_features(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        return ops_fn(next(iter(features.values())), labels, mode)

    def columns(name: str, dtype: Any = tf.float32) -> Any:
        return lambda: ({name: tf.cast(tf.constant(X), dtype)}, tf.constant(Y))

    estimator = learn.Estimator(model_fn, config=config(tmp_path / "model"))
    estimator.fit(input_fn=columns("x"), steps=1)

    for other in (columns("y"), columns("x", tf.float64)):
        with pytest.raises(ValueError, match="Features are incompatible with given information"):
            estimator.fit(input_fn=other, steps=1)

    given = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None, 1])})
    folder = estimator.export_savedmodel(str(tmp_path / "export"), lambda: (given().features, None, None))
    with tf.Session(graph=tf.Graph()) as sess:
        tf.saved_model.loader.load(sess, ["serve"], folder)
        assert sess.graph.get_collection("input_feature_keys") == [b"x"]


def test_the_package_of_estimators_has_tensorflows_modules() -> None:
    from tenfold.contrib.learn import estimators

    assert estimators.model_fn.ModelFnOps is learn.ModelFnOps
    assert estimators.prediction_key.PredictionKey is learn.PredictionKey
    assert estimators.DNNClassifier is learn.DNNClassifier


class Counted(learn.monitors.EveryN):
    """Notes its steps, and ends the training at a step."""

    def __init__(self, last: int) -> None:
        super().__init__(every_n_steps=2, first_n_steps=0)
        self.last = last
        self.steps: list[int] = []

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        self.steps.append(step)
        return step >= self.last


def test_monitors_watch_and_end_a_training(tmp_path: Path) -> None:
    counted = Counted(last=6)
    variable = learn.monitors.CaptureVariable("bias:0", every_n=1)
    estimator = learn.Estimator(ops_fn, config=config(tmp_path, save_checkpoints_steps=1))
    validation = learn.monitors.ValidationMonitor(
        input_fn=constants, eval_steps=1, every_n_steps=3, check_interval_secs=None
    )

    estimator.fit(input_fn=constants, steps=20, monitors=[counted, variable, validation])

    assert counted.steps == [2, 4, 6]
    assert sorted(variable.values) == [1, 2, 3, 4, 5, 6]
    assert not validation.early_stopped
    assert tf.train.load_variable(str(tmp_path), "global_step") == 6


def test_an_experiment_trains_and_evaluates(tmp_path: Path) -> None:
    def experiment_fn(run_config: Any, hparams: Any) -> Any:
        estimator = learn.Estimator(ops_fn, config=run_config)
        return learn.Experiment(estimator, constants, constants, train_steps=3, eval_steps=1, min_eval_frequency=0)

    result, exported = learn.learn_runner.run(experiment_fn, run_config=config(tmp_path))

    assert result["global_step"] == 3
    assert exported == []
    with pytest.raises(ValueError, match="Schedule references non-existent task nothing"):
        learn.learn_runner.run(experiment_fn, run_config=config(tmp_path), schedule="nothing")
    with pytest.raises(ValueError, match="Must specify a model directory"):
        learn.learn_runner.run(experiment_fn, run_config=learn.RunConfig(model_dir=""))


def test_tf_config_gives_a_task_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "TF_CONFIG",
        '{"cluster": {"master": ["m:1"], "ps": ["p:1"], "worker": ["w:1", "w:2"]}, "environment": "cloud", '
        '"task": {"type": "worker", "index": 1}}',
    )

    found = learn.RunConfig()

    assert (found.task_type, found.task_id, found.is_chief, found.master) == ("worker", 1, False, "grpc://w:2")
    assert (found.num_ps_replicas, found.num_worker_replicas, found.environment) == (1, 3, "cloud")
    assert found.uid() == learn.RunConfig(save_summary_steps=7).uid()
    assert learn.RunConfig(master="here", save_checkpoints_steps=3, save_checkpoints_secs=4).save_checkpoints_secs == 4
    # A program of tensorflow/models brings a `uid` of its own, which reads this.
    assert "save_summary_steps" in run_config._DEFAULT_UID_WHITE_LIST


def test_a_master_that_is_given_needs_no_place_in_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"ps": ["p:1"], "w": ["w:1"]}, "task": {"type": "worker"}}')

    assert learn.RunConfig(master="here").master == "here"
    with pytest.raises(ValueError, match="worker is not a valid task_type in the cluster_spec"):
        learn.RunConfig()


def test_words_become_numbers_and_are_kept(tmp_path: Path) -> None:
    texts = ["I'm a very-good test", "a test of a test"]
    processor = learn.preprocessing.VocabularyProcessor(4, min_frequency=1)

    rows = list(processor.fit_transform(texts))
    processor.save(str(tmp_path / "words"))
    again = learn.preprocessing.VocabularyProcessor.restore(str(tmp_path / "words"))

    assert [row.tolist() for row in rows] == [[0, 1, 0, 2], [1, 2, 0, 1]]
    assert list(again.reverse(rows)) == ["<UNK> a <UNK> test", "a test <UNK> a"]
    assert len(again.vocabulary_) == 3
    (data,) = learn.preprocessing.ByteProcessor(4).transform(["añ"])
    assert data.tolist() == [97, 195, 177, 0]


def test_tables_are_read_and_missing_files_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learn.datasets.base, "FOLDER", str(tmp_path))
    (tmp_path / "iris.csv").write_text("2,4,a,b\n1,2,3,4,0\n5,6,7,8,1\n")

    found = learn.datasets.load_iris()

    assert found.data.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert found.target.tolist() == [0, 1]
    with pytest.raises(FileNotFoundError, match=r"put boston_house_prices\.csv there"):
        learn.datasets.load_boston()


def test_records_are_read_in_batches(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("a\nb\nc\n")
    with tf.Graph().as_default(), tf.Session() as session:
        lines = learn.read_batch_examples(
            str(path), 2, tf.TextLineReader, randomize_input=False, num_epochs=1, queue_capacity=5
        )
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        found = [session.run(lines).tolist(), session.run(lines).tolist()]
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=5)

    assert found == [[b"a", b"b"], [b"c"]]


def test_a_renamed_metric_of_contrib_is_called_by_the_names_of_its_arguments() -> None:
    spec = learn.MetricSpec(tf.contrib.metrics.streaming_accuracy, prediction_key="classes")

    with tf.Graph().as_default(), tf.Session() as session:
        _, update = spec.create_metric_ops({}, tf.constant([1, 2, 2]), {"classes": tf.constant([1, 2, 0])})
        session.run(tf.local_variables_initializer())
        assert session.run(update) == pytest.approx(2 / 3)
    with pytest.raises(TypeError, match="too many positional arguments"):
        tf.contrib.metrics.streaming_mean(1, 2, 3, 4, 5, 6)


# --- dual coordinate ascent ---


def named_features() -> tuple[Any, Any]:
    """Two classes that a line divides, with one feature that is a word."""
    return {
        "id": tf.constant(["a", "b", "c", "d"]),
        "x": tf.constant([[1.0], [2.0], [-1.0], [-2.0]]),
        "word": tf.SparseTensor([[0, 0], [1, 0], [2, 0], [2, 1]], ["yes", "yes", "no", "other"], [4, 2]),
        "weight": tf.constant([[1.0], [2.0], [1.0], [1.0]]),
    }, tf.constant([[1], [1], [0], [0]])


def named_columns() -> list[Any]:
    x = tf.contrib.layers.real_valued_column("x")
    word = tf.contrib.layers.sparse_column_with_hash_bucket("word", hash_bucket_size=10)
    return [x, word, tf.contrib.layers.bucketized_column(x, [-1.5, 0.0, 1.5])]


def test_a_support_vector_machine(tmp_path: Path) -> None:
    machine = learn.SVM(
        "id", named_columns(), weight_column_name="weight", l2_regularization=1.0, config=config(tmp_path)
    )

    machine.fit(input_fn=named_features, steps=20)

    assert machine.evaluate(input_fn=named_features, steps=1)["accuracy"] == 1.0
    assert [*map(int, machine.predict_classes(input_fn=lambda: named_features()[0], as_iterable=False))] == [1, 1, 0, 0]
    names = machine.get_variable_names()
    assert "linear/x/weight" in names
    assert any(name.endswith("linear/x/weight_unshrinked/SDCAOptimizer") for name in names)
    with pytest.raises(ValueError, match="Kernel SVMs are not currently supported"):
        learn.SVM("id", named_columns(), kernels=[1])


@pytest.mark.thorough
def test_linear_models_by_sdca(tmp_path: Path) -> None:
    optimizer = tf.contrib.linear_optimizer.SDCAOptimizer("id", symmetric_l1_regularization=0.1)
    classifier = learn.LinearClassifier(named_columns(), optimizer=optimizer, config=config(tmp_path / "classifier"))
    classifier.fit(input_fn=named_features, steps=20)
    assert classifier.evaluate(input_fn=named_features, steps=1)["accuracy"] == 1.0

    regressor = learn.LinearRegressor(named_columns(), optimizer=optimizer, config=config(tmp_path / "regressor"))
    regressor.fit(input_fn=lambda: (named_features()[0], tf.constant([[2.0], [4.0], [-2.0], [-4.0]])), steps=30)
    found = np.array(list(regressor.predict_scores(input_fn=lambda: named_features()[0], as_iterable=False)))
    np.testing.assert_allclose(found.reshape(-1), [2, 4, -2, -4], atol=1.2)

    with pytest.raises(ValueError, match="LinearEstimator does not support SDCA optimizer"):
        learn.LinearEstimator(named_columns(), learn.regression_head(), optimizer=optimizer)
    with pytest.raises(ValueError, match="enable_centered_bias is not supported with SDCA"):
        learn.LinearClassifier(named_columns(), optimizer=optimizer, enable_centered_bias=True)
