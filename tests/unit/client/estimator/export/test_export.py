"""Input receivers and outputs of exported models: what they hold, and what they refuse in TensorFlow's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.estimator.export import export
from tenfold.estimator.export.export_output import EvalOutput, TrainOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

of = tf.estimator.export


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def words() -> Any:
    return tf.placeholder(tf.string, [None], name="words")


def number() -> Any:
    return tf.constant([[1.0]])


#: What is made, and what is said of it; each is a ValueError.
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: of.ServingInputReceiver(None, words()), "features must be defined"),
    (lambda: of.ServingInputReceiver(number(), None), "receiver_tensors must be defined"),
    (lambda: of.ServingInputReceiver({1.5: number()}, words()), "feature keys must be strings or ints: 1.5"),
    (lambda: of.ServingInputReceiver({"a": 1}, words()), "feature a must be a Tensor or SparseTensor"),
    (lambda: of.ServingInputReceiver(number(), {1: words()}), "receiver_tensor keys must be strings: 1"),
    (lambda: of.ServingInputReceiver(number(), {"a": 1}), "receiver_tensor a must be a Tensor or SparseTensor"),
    (lambda: of.ServingInputReceiver(number(), words(), words()), "receiver_tensors_alternatives must be a dict"),
    (
        lambda: of.ServingInputReceiver(number(), words(), {"a": {1: words()}}),
        "receiver_tensors_alternative keys must be strings: 1",
    ),
    (lambda: of.TensorServingInputReceiver(None, words()), "features must be defined"),
    (lambda: of.TensorServingInputReceiver({"a": number()}, words()), "feature must be a Tensor or SparseTensor"),
    (lambda: of.ClassificationOutput(), "At least one of scores and classes must be set"),
    (lambda: of.ClassificationOutput(scores=words()), "Classification scores must be a float32 Tensor"),
    (lambda: of.ClassificationOutput(classes=number()), "Classification classes must be a string Tensor"),
    (lambda: of.RegressionOutput(words()), "Regression output value must be a float32 Tensor"),
    (lambda: of.PredictOutput({1: number()}), "Prediction output key must be a string; got 1"),
    (lambda: of.PredictOutput({"a": 1}), "Prediction output value must be a Tensor; got 1"),
    (lambda: TrainOutput(loss={("a", 1): number()}), "loss output key tuples must contain strings"),
    (lambda: EvalOutput(metrics={"m": (1, number())}), "metrics/m output value must be a Tensor"),
    (lambda: EvalOutput(metrics={"m": (number(), 1)}), "metrics/m update_op must be a Tensor or Operation"),
]


@pytest.mark.parametrize(("make", "said"), REFUSED)
def test_what_is_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_single_tensors_get_names() -> None:
    feature, receiver, other = number(), words(), words()

    plain = of.ServingInputReceiver(feature, receiver, {"raw": other})
    bare = of.TensorServingInputReceiver(feature, receiver)

    assert plain == ({"feature": feature}, {"input": receiver}, {"raw": {"input": other}})
    assert bare == (feature, {"input": receiver}, None)


def test_supervised_outputs_say_what_they_are() -> None:
    loss, prediction, value = number(), number(), number()

    output = TrainOutput(loss, {"p": prediction, "predictions_q": prediction}, {("a", "b"): (value, tf.no_op())})

    assert output.loss == {"loss": loss}
    assert sorted(output.predictions) == ["predictions/p", "predictions_q"]
    assert sorted(output.metrics) == ["metrics/a/b/update_op", "metrics/a/b/value"]
    assert output.metrics["metrics/a/b/update_op"].op.control_inputs


def test_receivers_are_made_of_features() -> None:
    features = {"a": tf.zeros([3, 2], name="a"), "b": tf.zeros([3], tf.int64, name="b")}

    with tf.Graph().as_default():
        raw = of.build_raw_serving_input_receiver_fn(features)()
        parsing = of.build_parsing_serving_input_receiver_fn({"a": tf.FixedLenFeature([2], tf.float32)}, 5)()

    assert {name: (each.op.name, each.shape.as_list(), each.dtype) for name, each in raw.features.items()} == {
        "a": ("a", [None, 2], tf.float32),
        "b": ("b", [None], tf.int64),
    }
    assert raw.receiver_tensors == raw.features
    (examples,) = parsing.receiver_tensors.values()
    assert (examples.op.name, examples.shape.as_list()) == ("input_example_tensor", [5])
    assert parsing.features["a"].shape.as_list() == [5, 2]


def test_receivers_with_labels() -> None:
    made = export.build_supervised_input_receiver_fn_from_input_fn(lambda: ({"x": tf.zeros([2])}, tf.zeros([2, 1])))()

    assert sorted(made.receiver_tensors) == ["label", "x"]
    assert made.labels.shape.as_list() == [None, 1]
    with pytest.raises(ValueError, match="Found overlapping keys"):
        export.build_raw_supervised_input_receiver_fn({"x": number()}, {"x": number()})
