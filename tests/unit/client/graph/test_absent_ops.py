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


#: A function that nothing which is fetched needs: of two outputs one is what the missing operation gives.
FUNCTION = """
library { function {
  signature { name: "Encode" input_arg { name: "v" type: DT_FLOAT } output_arg { name: "bytes" type: DT_STRING }
    output_arg { name: "same" type: DT_FLOAT } }
  node_def { name: "sizes" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
    attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 } } } }
  node_def { name: "encoded" op: "EncodeProto" input: "sizes:output:0" input: "v" }
  node_def { name: "again" op: "EncodeProto" input: "encoded:more:1" input: "encoded:bytes:0" }
  node_def { name: "same" op: "Identity" input: "v" attr { key: "T" value { type: DT_FLOAT } } }
  ret { key: "bytes" value: "again:bytes:0" } ret { key: "same" value: "same:output:0" } } }
"""
BESIDE = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
"""
CALLS = {
    "by its name": 'node { name: "c" op: "Encode" input: "x" }',
    "by an attribute": 'node { name: "c" op: "PartitionedCall" input: "x" '
    'attr { key: "f" value { func { name: "Encode" } } } attr { key: "Tin" value { list { type: DT_FLOAT } } } '
    'attr { key: "Tout" value { list { type: [DT_STRING, DT_FLOAT] } } } }',
    "in a branch": 'node { name: "p" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } } } '
    'node { name: "c" op: "If" input: "p" input: "x" attr { key: "Tcond" value { type: DT_BOOL } } '
    'attr { key: "Tin" value { list { type: DT_FLOAT } } } '
    'attr { key: "Tout" value { list { type: [DT_STRING, DT_FLOAT] } } } '
    'attr { key: "then_branch" value { func { name: "Encode" } } } '
    'attr { key: "else_branch" value { func { name: "Encode" } } } }',
}
#: The function of each element of a dataset; what the iterator's own node gives is a step's.
TYPES = (
    'attr { key: "output_types" value { list { type: DT_STRING } } } '
    'attr { key: "output_shapes" value { list { shape {} } } }'
)
MAPPED = f"""
node {{ name: "five" op: "Const" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
  attr {{ key: "value" value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{ dim {{ size: 2 }} }} float_val: 5 }} }} }} }}
node {{ name: "slices" op: "TensorSliceDataset" input: "five"
  attr {{ key: "Toutput_types" value {{ list {{ type: DT_FLOAT }} }} }}
  attr {{ key: "output_shapes" value {{ list {{ shape {{}} }} }} }} }}
node {{ name: "mapped" op: "MapDataset" input: "slices" attr {{ key: "f" value {{ func {{ name: "Encode" }} }} }}
  attr {{ key: "Targuments" value {{ list {{}} }} }} {TYPES} }}
node {{ name: "iterator" op: "IteratorV2" attr {{ key: "shared_name" value {{ s: "" }} }}
  attr {{ key: "container" value {{ s: "" }} }} {TYPES} }}
node {{ name: "begin" op: "MakeIterator" input: "mapped" input: "iterator" }}
node {{ name: "next" op: "IteratorGetNext" input: "iterator" input: "^begin" {TYPES} }}
"""


@pytest.mark.parametrize("how", CALLS)
def test_a_call_of_a_function_with_one_that_nothing_needs(how: str) -> None:
    tf.import_graph_def(graph_def(BESIDE + CALLS[how] + FUNCTION), name="")

    with tf.Session() as session:
        assert session.run("y:0", {"x:0": 3.0}) == -3
        with pytest.raises(tf.errors.UnimplementedError, match=r"Node 'c/.*encoded' is needed, .* 'EncodeProto'"):
            session.run("c:0", {"x:0": 3.0, **({"p:0": True} if how == "in a branch" else {})})


def test_a_function_of_each_element_says_which_operation_is_not_here() -> None:
    """… when it is called, not when the dataset is made."""
    each = FUNCTION.replace('output_arg { name: "same" type: DT_FLOAT }', "")
    each = each.replace('ret { key: "same" value: "same:output:0" }', "")
    tf.import_graph_def(graph_def(BESIDE + MAPPED + each), name="")

    with tf.Session() as session:
        assert session.run("y:0", {"x:0": 3.0}) == -3
        with pytest.raises(
            tf.errors.UnimplementedError, match=r"'\S*encoded' is needed, .* no operation 'EncodeProto'"
        ):
            session.run("next:0", {"x:0": 3.0})


def test_a_meta_graph_may_define_what_a_function_has_and_nobody_else() -> None:
    definition = meta_graph(BESIDE + CALLS["by its name"] + FUNCTION.replace("EncodeProto", "Company>Encode"))

    tf.train.import_meta_graph(definition)

    with tf.Session() as session:
        assert session.run("y:0", {"x:0": 3.0}) == -3
        with pytest.raises(tf.errors.UnimplementedError, match=r"'c/encoded' is needed, .* 'Company>Encode'"):
            session.run("c:0", {"x:0": 3.0})


def test_a_name_in_a_function_that_nobody_has_is_a_mistake() -> None:
    tf.import_graph_def(
        graph_def(BESIDE + CALLS["by its name"] + FUNCTION.replace("EncodeProto", "Company>Encode")), name=""
    )

    with tf.Session() as session, pytest.raises(tf.errors.NotFoundError, match=r"'Company>Encode' .* of function 'Enc"):
        session.run("y:0", {"x:0": 3.0})
