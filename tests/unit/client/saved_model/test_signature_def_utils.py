"""Signatures: what they are made of, which are refused, which a server serves; how they name tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.saved_model import signature_constants as names
from tenfold.saved_model import signature_def_utils as utils
from tenfold.saved_model.utils import build_tensor_info_from_op, get_element_from_tensor_info
from tenfold_protos import meta_graph_pb2, types_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def test_each_method_takes_the_tensors_that_it_needs() -> None:
    text, numbers = tf.placeholder(tf.string), tf.placeholder(tf.float32)

    predict = utils.predict_signature_def({"a": numbers}, {"b": text})
    regress = utils.regression_signature_def(text, numbers)
    classify = utils.classification_signature_def(text, text, numbers)
    train = utils.supervised_train_signature_def({"a": numbers}, {"loss": numbers}, metrics={"m": numbers})

    assert all(utils.is_valid_signature(each) for each in (predict, regress, classify))
    assert (predict.inputs["a"].name, predict.inputs["a"].dtype) == (numbers.name, types_pb2.DT_FLOAT)
    assert regress.method_name == names.REGRESS_METHOD_NAME
    assert set(classify.outputs) == {"classes", "scores"}
    assert (train.method_name, set(train.outputs)) == (names.SUPERVISED_TRAIN_METHOD_NAME, {"loss", "m"})
    assert not utils.is_valid_signature(train)
    assert not utils.is_valid_signature(None)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda text, numbers: utils.predict_signature_def({}, {"b": text}), "Prediction inputs"),
        (lambda text, numbers: utils.predict_signature_def({"a": text}, None), "Prediction outputs"),
        (lambda text, numbers: utils.regression_signature_def(None, numbers), "examples cannot be None"),
        (lambda text, numbers: utils.regression_signature_def(numbers, numbers), "must be a string"),
        (lambda text, numbers: utils.regression_signature_def({"a": text}, numbers), "must be a string"),
        (lambda text, numbers: utils.regression_signature_def(text, None), "predictions cannot be None"),
        (lambda text, numbers: utils.regression_signature_def(text, text), "must be a float"),
        (lambda text, numbers: utils.classification_signature_def(text, None, None), "cannot both be None"),
        (lambda text, numbers: utils.classification_signature_def(text, numbers, None), "classes must be a string"),
        (lambda text, numbers: utils.classification_signature_def(text, text, text), "scores must be a float"),
        (lambda text, numbers: utils.supervised_eval_signature_def({}, None), "inputs cannot be None"),
    ],
)
def test_other_tensors_are_refused(make: Any, match: str) -> None:
    text, numbers = tf.placeholder(tf.string), tf.placeholder(tf.float32)

    with pytest.raises(ValueError, match=match):
        make(text, numbers)


def test_sparse_tensors_and_operations_are_named_too() -> None:
    sparse = tf.sparse_placeholder(tf.int64, [3, 4], name="sparse")
    op = tf.no_op(name="op")

    info = tf.saved_model.build_tensor_info(sparse)
    found = tf.saved_model.get_tensor_from_tensor_info(info)

    assert (found.values.name, found.indices.name) == (sparse.values.name, sparse.indices.name)
    assert get_element_from_tensor_info(build_tensor_info_from_op(op)) is op
    signature = utils.op_signature_def(op, "key")
    assert utils.load_op_from_signature_def(signature, "key") is op
    with pytest.raises(tf.errors.NotFoundError, match="could not be found"):
        utils.load_op_from_signature_def(signature, "key", import_scope="elsewhere")
    with pytest.raises(ValueError, match=r"Invalid TensorInfo\.encoding"):
        tf.saved_model.get_tensor_from_tensor_info(meta_graph_pb2.TensorInfo())
    composite = meta_graph_pb2.TensorInfo()
    composite.composite_tensor.components.add().name = "values:0"
    with pytest.raises(ValueError, match="values:0"):
        tf.saved_model.get_tensor_from_tensor_info(composite)
