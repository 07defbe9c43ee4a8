"""Predictors: a model as a function, from a SavedModel and from both kinds of estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf

if TYPE_CHECKING:
    from pathlib import Path

predictor = tf.contrib.predictor


@pytest.fixture
def saved_sum(tmp_path: Path) -> str:
    """A SavedModel that adds 10 to x, and a second output that it does not sign."""
    folder = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, name="x")
        ten = tf.Variable(10.0, name="ten")
        total = tf.add(x, ten, name="total")
        tf.identity(total * 2, name="double")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, folder, {"x": x}, {"total": total})
    return folder


def test_a_saved_model_predicts(saved_sum: str) -> None:
    add = predictor.from_saved_model(saved_sum)
    double = predictor.from_saved_model(saved_sum, input_names={"in": "x:0"}, output_names={"out": "double:0"})

    assert add({"x": 5.0}) == {"total": 15.0}
    assert double({"in": 5.0}) == {"out": 30.0}
    assert repr(add).startswith("SavedModelPredictor with feed tensors {'x': ")
    with pytest.raises(ValueError, match=r"unexpected keys in input_dict: \{'bad'\}\nexpected: \{'x'\}"):
        add({"bad": 1.0})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"signature_def_key": "absent"}, r'Got signature_def_key "absent". Available signatures are \[\'serving'),
        ({"tags": "train"}, r"Could not find MetaGraphDef with tags train: there are \[\['serve'\]\]"),
        ({"input_names": {"x": "x:0"}}, "must both be specified"),
        ({"signature_def_key": "a", "input_names": {}, "output_names": {}}, "at most one of"),
    ],
)
def test_what_a_saved_model_does_not_have_is_named(saved_sum: str, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        predictor.from_saved_model(saved_sum, **arguments)


def test_a_core_estimator_predicts(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        total = features["x"] + tf.get_variable("ten", initializer=10.0)
        outputs = {"serving_default": tf.estimator.export.PredictOutput({"total": total})}
        step = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        return tf.estimator.EstimatorSpec(mode, {"total": total}, tf.reduce_sum(total), step, export_outputs=outputs)

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
    estimator.train(lambda: ({"x": tf.zeros([1])}, tf.zeros([1])), steps=1)
    with tf.Graph().as_default():
        receive = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None])})
    add = predictor.from_estimator(estimator, receive)

    assert add({"x": [1.0, 2.0]})["total"].tolist() == [11.0, 12.0]
    with pytest.raises(KeyError, match="output_key must be one of"):
        predictor.from_estimator(estimator, receive, output_key="absent")
    with pytest.raises(TypeError, match="likely want to call from_estimator"):
        predictor.from_contrib_estimator(estimator, receive)


def test_an_estimator_of_contrib_predicts(tmp_path: Path) -> None:
    learn = tf.contrib.learn

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        total = features["x"] + tf.get_variable("ten", initializer=10.0)
        step = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        return learn.ModelFnOps(mode, {"total": total}, tf.reduce_sum(total), step)

    def prediction_input_fn() -> Any:
        x = tf.placeholder(tf.float32, [None], name="x")
        return learn.utils.InputFnOps({"x": x}, None, {"x": x})

    estimator = learn.Estimator(model_fn, str(tmp_path))
    estimator.fit(input_fn=lambda: ({"x": tf.zeros([1])}, tf.zeros([1])), steps=1)
    add = predictor.from_contrib_estimator(estimator, prediction_input_fn)

    assert add({"x": [1.0]})["total"].tolist() == [11.0]
    with pytest.raises(ValueError, match="Requested default_output_alternative: absent"):
        predictor.from_contrib_estimator(estimator, prediction_input_fn, output_alternative_key="absent")
    with pytest.raises(TypeError, match="likely want to call from_contrib_estimator"):
        predictor.from_estimator(estimator, prediction_input_fn)
