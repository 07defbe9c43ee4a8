"""What EstimatorSpec refuses, in TensorFlow's words, and what it makes of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.estimator.model_fn import call_logit_fn, verify_model_fn_args

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODES = tf.estimator.ModeKeys
Spec = tf.estimator.EstimatorSpec


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def elsewhere() -> Any:
    with tf.Graph().as_default():
        return tf.constant(1.0, name="far")


#: What is given, the error, and what it says.
REFUSED: list[tuple[Callable[[], dict[str, Any]], type[Exception], str]] = [
    (lambda: {"mode": MODES.TRAIN, "loss": tf.constant(1.0)}, ValueError, "Missing train_op"),
    (lambda: {"mode": MODES.TRAIN, "train_op": tf.no_op()}, ValueError, "Missing loss"),
    (lambda: {"mode": MODES.EVAL}, ValueError, "Missing loss"),
    (lambda: {"mode": MODES.PREDICT}, ValueError, "Missing predictions"),
    (lambda: {"mode": MODES.EVAL, "loss": 1.0}, TypeError, "loss must be Tensor, given: 1.0"),
    (lambda: {"mode": MODES.EVAL, "loss": tf.constant([1.0, 2.0])}, ValueError, "Loss must be scalar"),
    (lambda: {"mode": MODES.EVAL, "loss": elsewhere()}, ValueError, 'loss with "far:0" must be from the default graph'),
    (
        lambda: {"mode": MODES.TRAIN, "loss": tf.constant(1.0), "train_op": "op"},
        TypeError,
        "train_op must be Operation or Tensor, given: op",
    ),
    (
        lambda: {"mode": MODES.TRAIN, "loss": tf.constant(1.0), "train_op": elsewhere()},
        ValueError,
        'train_op with "far:0" must be from the default graph',
    ),
    (lambda: {"mode": MODES.PREDICT, "predictions": 1.0}, TypeError, "predictions must be Tensor"),
    (
        lambda: {"mode": MODES.PREDICT, "predictions": {"a": elsewhere()}},
        ValueError,
        'prediction values with "a: far:0" must be from the default graph',
    ),
    (
        lambda: {"mode": MODES.EVAL, "loss": tf.constant(1.0), "eval_metric_ops": []},
        TypeError,
        "eval_metric_ops must be a dict",
    ),
    (
        lambda: {"mode": MODES.EVAL, "loss": tf.constant(1.0), "eval_metric_ops": {"m": tf.constant(1.0)}},
        TypeError,
        r"must be \(metric_value, update_op\) tuples, given: .* for key: m",
    ),
    (
        lambda: {"mode": MODES.EVAL, "loss": tf.constant(1.0), "eval_metric_ops": {"m": (1.0, tf.no_op())}},
        TypeError,
        r"eval_metric_ops\[m\] must be Operation or Tensor, given: 1.0",
    ),
    (
        lambda: {"mode": MODES.EVAL, "loss": tf.constant(1.0), "training_hooks": ["hook"]},
        TypeError,
        "All hooks must be SessionRunHook instances, given: hook",
    ),
    (
        lambda: {"mode": MODES.EVAL, "loss": tf.constant(1.0), "scaffold": "scaffold"},
        TypeError,
        r"scaffold must be tf\.train\.Scaffold",
    ),
    (
        lambda: {"mode": MODES.PREDICT, "predictions": tf.constant([1.0]), "export_outputs": "outputs"},
        TypeError,
        "export_outputs must be dict",
    ),
    (
        lambda: {"mode": MODES.PREDICT, "predictions": tf.constant([1.0]), "export_outputs": {"a": 1}},
        TypeError,
        "Values in export_outputs must be ExportOutput objects",
    ),
    (
        lambda: {
            "mode": MODES.PREDICT,
            "predictions": tf.constant([1.0]),
            "export_outputs": {
                name: tf.estimator.export.RegressionOutput(value=tf.constant([1.0])) for name in ("a", "b")
            },
        },
        ValueError,
        "Multiple export_outputs were provided, but none of them is specified as the default",
    ),
]


@pytest.mark.parametrize(("given", "error", "words"), REFUSED)
def test_what_is_refused(given: Callable[[], dict[str, Any]], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Spec(**given())


def test_a_loss_of_one_element_becomes_a_number() -> None:
    spec = Spec(mode=MODES.EVAL, loss=tf.constant([1.0]))

    assert spec.loss.shape.as_list() == []
    assert (spec.predictions, spec.eval_metric_ops, spec.training_hooks) == ({}, {}, ())
    assert isinstance(spec.scaffold, tf.train.Scaffold)


def test_predictions_are_the_default_output() -> None:
    predictions = {"a": tf.constant([1.0])}

    spec = Spec(mode=MODES.PREDICT, predictions=predictions)

    assert list(spec.export_outputs) == ["serving_default"]
    assert spec.export_outputs["serving_default"].outputs == predictions


def test_a_single_output_is_the_default_too() -> None:
    output = tf.estimator.export.ClassificationOutput(scores=tf.constant([[1.0]]))

    spec = Spec(mode=MODES.PREDICT, predictions=tf.constant([1.0]), export_outputs={"named": output})

    assert spec.export_outputs == {"named": output, "serving_default": output}


def test_replace_checks_again_and_keeps_the_mode() -> None:
    spec = Spec(mode=MODES.EVAL, loss=tf.constant(1.0))

    assert spec._replace(predictions=tf.constant([2.0])).loss is spec.loss
    with pytest.raises(ValueError, match="mode of EstimatorSpec cannot be changed"):
        spec._replace(mode=MODES.TRAIN)
    with pytest.raises(ValueError, match="Missing loss"):
        spec._replace(loss=None)


@pytest.mark.parametrize(
    ("function", "params", "words"),
    [
        (lambda labels: None, None, "must include features argument"),
        (lambda features: None, {"a": 1}, "does not include params argument, but params"),
        (lambda features, more: None, None, r"has following not expected args: \['more'\]"),
    ],
)
def test_model_functions_that_nobody_can_call(function: Callable[..., Any], params: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        verify_model_fn_args(function, params)


def test_a_logit_function_gets_what_it_takes() -> None:
    def logit_fn(features: Any, mode: str) -> Any:
        return features if mode == MODES.TRAIN else {"a": features}

    features = tf.constant([1.0])

    assert call_logit_fn(logit_fn, features, MODES.TRAIN, "params", "config") is features
    assert call_logit_fn(logit_fn, features, MODES.EVAL, "params", "config") == {"a": features}
    with pytest.raises(ValueError, match="logit_fn should return a Tensor or a dictionary"):
        call_logit_fn(lambda features: 1.0, features, MODES.EVAL, None, None)
