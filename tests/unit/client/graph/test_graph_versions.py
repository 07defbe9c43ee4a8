"""GraphDefs of TensorFlow 0.x to 1.1 mean what TensorFlow reads in them; so do the nodes that are added to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import tenfold as tf
from tenfold.compat.python import function

PLACEHOLDER = (
    'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } '
    'attr { key: "shape" value { shape { } } } }'
)
PRODUCT = (
    PLACEHOLDER + 'node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" '
    "value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } dim { size: 1 } } float_val: 2 } } } }"
    'node { name: "y" op: "MatMul" input: "x" input: "w" attr { key: "T" value { type: DT_FLOAT } } }'
)
SUM = (
    'node { name: "x" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" '
    "value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 3 } } float_val: 2 } } } }"
    'node { name: "axes" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" '
    "value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } dim { size: 2 } } int_val: [0, 1] } } } }"
    'node { name: "y" op: "Sum" input: "x" input: "axes" attr { key: "T" value { type: DT_FLOAT } } }'
)


def graph_def(text: str, producer: int | None) -> tf.GraphDef:
    made = text_format.Parse(text, tf.GraphDef())
    if producer is not None:
        made.versions.producer = producer
    return made


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def imported(text: str, producer: int | None) -> Any:
    return tf.import_graph_def(graph_def(text, producer), return_elements=["y:0"], name="old")[0]


@pytest.mark.parametrize("producer", [None, 5, 21])
def test_an_empty_shape_of_old_means_that_none_is_known(producer):
    y = imported(PRODUCT, producer)

    with tf.Session() as session:
        assert session.run(y, {"old/x:0": np.ones([2, 3])}).tolist() == [[6], [6]]


def test_an_empty_shape_of_today_is_a_scalars():
    with pytest.raises(ValueError, match="Shape must be rank 2 but is rank 0"):
        imported(PRODUCT, 22)


def test_axes_of_old_have_any_rank():
    with tf.Session() as session:
        assert session.run(imported(SUM, 20)) == 12


def test_axes_of_today_are_a_vector():
    with pytest.raises(ValueError, match="at most rank 1 but is rank 2"):
        imported(SUM, 21)


def test_the_graph_keeps_the_older_version_and_says_it(graph):
    imported(PRODUCT, 21)

    assert graph.graph_def_versions.producer == 21
    assert graph.as_graph_def().versions.producer == 21
    # As in TensorFlow: what a reader of that GraphDef would not know of this node is not known here either.
    assert tf.placeholder(tf.float32, []).shape.ndims is None


def test_a_meta_graph_of_old_comes_with_its_version(graph):
    imported(PRODUCT, 21)
    meta_graph = tf.train.export_meta_graph()

    with tf.Graph().as_default() as again:
        tf.train.import_meta_graph(meta_graph)

        assert again.graph_def_versions.producer == 21
        with tf.Session() as session:
            assert session.run("old/y:0", {"old/x:0": np.ones([2, 3])}).tolist() == [[6], [6]]


def test_a_session_that_began_before_goes_on():
    one = tf.constant(1.0)
    with tf.Session() as session:
        assert session.run(one) == 1
        y = imported(PRODUCT, 21)

        assert session.run(y, {"old/x:0": np.ones([2, 3])}).tolist() == [[6], [6]]


def test_a_function_of_an_old_graph_is_of_its_version(graph):
    imported(PRODUCT, 21)

    @function.Defun(tf.float32)
    def twice(x):
        assert tf.get_default_graph().graph_def_versions.producer == 21
        return x + x

    with tf.Session() as session:
        assert session.run(twice(3.0)) == 6


@pytest.mark.parametrize("producer", [6, 7])
def test_an_operation_that_went_is_there_in_older_graphs_only(producer):
    text = SUM.replace('node { name: "y" op: "Sum" input: "x" input: "axes"', 'node { name: "y" op: "TopK" input: "x"')
    made = graph_def(text, producer)
    made.node[2].attr["k"].i = 1

    if producer < 7:
        (y,) = tf.import_graph_def(made, return_elements=["y:0"])
        with tf.Session() as session:
            assert session.run(y).tolist() == [[2], [2]]
    else:
        with pytest.raises(tf.errors.UnimplementedError, match="'y': Op TopK is not available in GraphDef version 7"):
            tf.import_graph_def(made)


def test_a_graph_for_newer_readers_is_refused_and_the_graph_stays_as_it_was(graph):
    made = graph_def(PRODUCT, 21)
    made.versions.min_consumer = 99_999

    with pytest.raises(ValueError, match="min consumer version 99999 above current version"):
        tf.import_graph_def(made)
    assert graph.graph_def_versions.producer == tf.GRAPH_DEF_VERSION
