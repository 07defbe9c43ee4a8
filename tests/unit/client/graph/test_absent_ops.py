"""Graphs with operations that Tenfold has not: imported, sent, exported, and an error only for who runs them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import tenfold as tf

#: y = x * 2 beside nodes that nothing needs: one encodes messages, one of TensorFlow's others takes what that gives.
GRAPH = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 2 } } } }
node { name: "y" op: "Mul" input: "x" input: "two" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "sizes" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "encoded" op: "EncodeProto" input: "sizes" input: "x"
  attr { key: "field_names" value { list { s: "a" } } } attr { key: "message_type" value { s: "M" } }
  attr { key: "Tinput_types" value { list { type: DT_FLOAT } } } }
node { name: "again" op: "Identity" input: "encoded" attr { key: "T" value { type: DT_STRING } } }
node { name: "more" op: "EncodeProto" input: "sizes" input: "encoded" }
node { name: "after" op: "NoOp" input: "^more" }
versions { producer: 134 }
"""
CUSTOM = GRAPH.replace("EncodeProto", "Company>Encode")


def graph_def(text: str = GRAPH) -> tf.GraphDef:
    return text_format.Parse(text, tf.GraphDef())


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_what_needs_no_such_node_runs():
    (y,) = tf.import_graph_def(graph_def(), return_elements=["y:0"], name="net")

    with tf.Session() as session:
        assert session.run(y, {"net/x:0": 3.0}) == 6


@pytest.mark.parametrize("fetch", ["net/again:0", "net/after", "net/encoded:0"])
def test_what_needs_one_says_which(fetch):
    tf.import_graph_def(graph_def(), name="net")

    with tf.Session() as session, pytest.raises(tf.errors.UnimplementedError) as error:
        session.run(fetch, {"net/x:0": 3.0, "net/sizes:0": 1})
    assert "no operation 'EncodeProto'" in error.value.message
    assert error.value.node_def.name in ("net/encoded", "net/more")


def test_such_a_node_can_be_fed():
    tf.import_graph_def(graph_def(), name="")

    with tf.Session() as session:
        assert session.run("again:0", {"encoded:0": b"bytes"}) == b"bytes"


def test_types_are_what_the_graph_shows(graph):
    tf.import_graph_def(graph_def(), name="")

    assert graph.get_tensor_by_name("encoded:0").dtype == tf.string
    assert graph.get_tensor_by_name("encoded:0").shape.ndims is None


def test_the_graph_is_exported_as_it_came(graph):
    tf.import_graph_def(graph_def(), name="")

    node = next(node for node in graph.as_graph_def().node if node.name == "encoded")
    assert list(node.input) == ["sizes", "x"]
    assert node.attr["message_type"].s == b"M"
    with tf.Graph().as_default():
        tf.import_graph_def(graph.as_graph_def(), name="")


def test_a_name_that_nobody_has_is_a_mistake():
    with pytest.raises(ValueError, match="Node 'encoded': Op type not registered 'Company>Encode'"):
        tf.import_graph_def(graph_def(CUSTOM))


def meta_graph(text: str) -> tf.MetaGraphDef:
    made = tf.MetaGraphDef()
    made.graph_def.CopyFrom(graph_def(text))
    op = made.meta_info_def.stripped_op_list.op.add(name="Company>Encode")
    op.input_arg.add(name="sizes", type=tf.int32.as_datatype_enum)
    op.input_arg.add(name="value", type_attr="T")
    op.output_arg.add(name="bytes", type=tf.string.as_datatype_enum)
    op.output_arg.add(name="length", type=tf.int64.as_datatype_enum)
    op.attr.add(name="T", type="type").default_value.type = tf.float32.as_datatype_enum
    return made


def test_a_meta_graph_may_define_what_nobody_has(graph):
    definition = meta_graph(
        CUSTOM.replace('name: "more" op: "Company>Encode" input: "sizes" input: "encoded"', 'name: "more" op: "NoOp"')
    )

    tf.train.import_meta_graph(definition)

    assert [tensor.dtype for tensor in graph.get_operation_by_name("encoded").outputs] == [tf.string, tf.int64]
    with tf.Session() as session:
        assert session.run("y:0", {"x:0": 3.0}) == 6
        with pytest.raises(
            tf.errors.UnimplementedError, match=r"'encoded' is needed, .* no operation 'Company>Encode'"
        ):
            session.run("again:0", {"x:0": 3.0, "sizes:0": 1})


def test_a_saved_model_with_one_is_loaded(tmp_path: Any) -> None:
    tf.import_graph_def(graph_def(), name="")
    with tf.Session() as session:
        builder = tf.saved_model.builder.SavedModelBuilder(os.fspath(tmp_path / "model"))
        graph = tf.get_default_graph()
        signature = tf.saved_model.signature_def_utils.predict_signature_def(
            {"x": graph.get_tensor_by_name("x:0")}, {"y": graph.get_tensor_by_name("y:0")}
        )
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()

    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], os.fspath(tmp_path / "model"))
        assert np.array_equal(session.run("y:0", {"x:0": [1, 2]}), [2, 4])
