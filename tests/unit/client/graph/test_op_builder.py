"""apply_op: what is inferred, what is checked, and the words of the errors."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf
from tenfold.graph import known_value
from tenfold.graph.op_builder import apply_op
from tenfold_core import opdefs
from tenfold_protos import attr_value_pb2

#: Something to give for an attribute of each type; for lists, nothing.
_SAMPLES = {
    "func": attr_value_pb2.NameAttrList(name="f"),
    "list(func)": [attr_value_pb2.NameAttrList(name="f")],
    "list(type)": [],
    "list(shape)": [],
    "string": "token",
    "int": 0,
    "type": tf.float32,
}


def _gives_a_list(op_type):
    """Whether its outputs are one list of types, which may be empty."""
    op_def = opdefs.get(op_type)
    types = op_def.outputs[0].type_list_attr if len(op_def.outputs) == 1 else None
    return bool(types) and not op_def.attr_by_name[types].minimum


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_types_and_numbers_are_inferred_from_the_inputs(graph):
    packed = apply_op("Pack", values=[tf.ones([2]), [3.0, 4.0]])

    assert (packed.op.get_attr("T"), packed.op.get_attr("N"), packed.op.get_attr("axis")) == (tf.float32, 2, 0)
    assert [t.op.name for t in packed.op.inputs] == ["ones", "Pack/values_1"]
    assert packed.shape.as_list() == [2, 2]


def test_a_type_list_is_inferred():
    op = apply_op("Assert", condition=True, data=[1, "a", 2.0])

    assert op.get_attr("T") == [tf.int32, tf.string, tf.float32]
    assert isinstance(op, tf.Operation)


def test_results_are_an_operation_a_tensor_a_list_or_a_named_tuple():
    assert isinstance(apply_op("NoOp"), tf.Operation)
    assert isinstance(apply_op("Neg", x=1.0), tf.Tensor)
    assert [t.name for t in apply_op("Split", split_dim=0, value=[1, 2], num_split=2)] == ["Split:0", "Split:1"]
    loss, backprop = result = apply_op("SoftmaxCrossEntropyWithLogits", features=[[1.0]], labels=[[1.0]])
    assert (result.loss, result.backprop) == (loss, backprop)


@pytest.mark.parametrize("op_type", sorted(n for n in opdefs.names() if _gives_a_list(n)))
def test_an_empty_list_of_outputs_is_the_operation_where_it_has_state(op_type, graph):
    op_def = opdefs.get(op_type)
    samples = {tf.string: "", tf.bool: False}
    arguments = {arg.name: [] if arg.is_list else samples.get(arg.type, 0) for arg in op_def.inputs}
    arguments |= {attr.name: _SAMPLES[attr.type] for attr in op_def.attrs if not attr.has_default}

    result = apply_op(op_type, **arguments)

    added = graph.get_operations()[-1]
    assert added.type == op_type
    if op_def.is_stateful:
        assert result is added
    else:
        assert result == []


def test_constants_take_the_type_of_an_earlier_input():
    x = tf.placeholder(tf.float64, [2])

    assert tf.add(x, 1).op.inputs[1].dtype == tf.float64
    assert tf.pow(x, [1, 2]).dtype == tf.float64


def test_nodes_made_on_the_way_are_named_after_the_operation(graph):
    with tf.name_scope("s"):
        tf.add(tf.ones([2], name="x"), 1.0, name="sum")

    assert [op.name for op in graph.get_operations()] == ["s/x", "s/sum/y", "s/sum"]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: tf.add(1, tf.ones([2])),
            TypeError,
            "Input 'y' of 'Add' Op has type float32 that does not match type int32 of argument 'x'",
        ),
        (lambda: tf.add(tf.ones([2]), "a"), TypeError, "Expected float32 passed to parameter 'y' of op 'Add', got 'a'"),
        (lambda: tf.logical_not(tf.constant(1)), TypeError, "has type int32 that does not match expected type of bool"),
        (lambda: tf.sqrt(1), TypeError, "parameter 'x' of op 'Sqrt' has DataType int32 not in list of allowed values"),
        (
            lambda: tf.add_n([tf.constant(1), tf.ones([])]),
            TypeError,
            r"in list passed to 'inputs' of 'AddN' Op have types \[int32, float32\] that don't all match",
        ),
        (lambda: apply_op("Pack", values=3), TypeError, "Expected list for 'values' argument to 'Pack' Op, not 3"),
        (lambda: apply_op("AddN", inputs=[]), ValueError, "with length 0 shorter than minimum length 1"),
        (
            lambda: apply_op("Pack", values=[1, 2], N=3),
            ValueError,
            "with length 2 must match length 3 of argument 'N'",
        ),
        (lambda: apply_op("Add", x=1), TypeError, "No argument for input 'y' of op 'Add'"),
        (lambda: apply_op("Placeholder"), TypeError, "No argument for attr 'dtype' of op 'Placeholder'"),
        (lambda: apply_op("Neg", x=1, z=2), TypeError, "op 'Neg' got unexpected keyword arguments: z"),
        (lambda: apply_op("Cast", x=1, DstT="floot"), TypeError, "argument 'DstT' of op 'Cast'"),
        (
            lambda: tf.nn.conv2d(tf.ones([1, 4, 4, 1]), tf.ones([2, 2, 1, 1]), 1, "SOME"),
            ValueError,
            "Attr 'padding' of 'Conv2D' Op passed string 'SOME' not in: \"SAME\", \"VALID\"",
        ),
        (
            lambda: apply_op("Split", split_dim=0, value=[1, 2], num_split=0),
            ValueError,
            "Attr 'num_split' of 'Split' Op passed 0 less than minimum 1",
        ),
        (
            lambda: apply_op("Assign", ref=tf.constant(1), value=2),
            TypeError,
            "'Assign' Op requires that input 'ref' be a mutable tensor",
        ),
        (lambda: apply_op("Addd", x=1, y=2), tf.errors.NotFoundError, "Op type not registered 'Addd'. Did you mean"),
        (lambda: tf.add(tf.ones([2]), None), ValueError, "Tried to convert 'y' to a tensor"),
    ],
)
def test_a_wrong_call_says_what_was_wanted_and_what_was_given(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_static_shape_errors_are_value_errors_that_name_the_node():
    with pytest.raises(ValueError, match=r"for 'sum' \(op: 'Add'\) with input shapes: \[2\], \[3\]"):
        tf.add(tf.ones([2]), tf.ones([3]), name="sum")
    with pytest.raises(ValueError, match=r"'Reshape'.*input\[1\] = <\[4\]>"):
        tf.reshape(tf.ones([3]), [4])


# --- conversion ---


def test_python_values_become_constants_of_tensorflows_types():
    assert [tf.constant(value).dtype for value in (1, 1.0, "a", 2**40)] == [tf.int32, tf.float32, tf.string, tf.int64]
    assert tf.constant(True).dtype == tf.bool
    assert tf.constant(np.float64(1)).dtype == tf.float64
    assert tf.convert_to_tensor(1, preferred_dtype=tf.float32).dtype == tf.float32
    assert tf.convert_to_tensor(1.5, preferred_dtype=tf.int32).dtype == tf.float32


def test_a_list_with_tensors_in_it_is_packed(graph):
    x = tf.placeholder(tf.float32, [], name="x")

    packed = tf.convert_to_tensor([[x, 1], [2, 3]])

    assert packed.op.type == "Pack"
    assert (packed.shape.as_list(), packed.dtype) == ([2, 2], tf.float32)
    # As in TensorFlow: a type that is asked for casts what is in the list, two types in it are an error.
    cast = tf.convert_to_tensor([x, 1], dtype=tf.int32)
    assert (cast.op.type, [each.op.type for each in cast.op.inputs]) == ("Pack", ["Cast", "Const"])
    joined = tf.concat([tf.zeros([1, 1], tf.int64), [[tf.constant(1)]]], 1)
    assert (joined.shape.as_list(), joined.dtype) == ([1, 2], tf.int64)
    with pytest.raises(TypeError, match="Cannot convert a list containing a tensor of dtype"):
        tf.convert_to_tensor([x, tf.constant(1)])
    with pytest.raises(TypeError, match="don't all match"):
        tf.concat([[x], [tf.constant(1)]], 0)


def test_shapes_and_dimensions_become_constants():
    x = tf.placeholder(tf.float32, [None, 3])

    assert tf.get_static_value(tf.convert_to_tensor(x.shape[1])) == 3
    assert tf.reshape(x, [-1, x.shape[1], 1]).shape.as_list() == [None, 3, 1]
    assert tf.get_static_value(tf.convert_to_tensor(tf.TensorShape([2, 3]))).tolist() == [2, 3]
    with pytest.raises(ValueError, match="partially known TensorShape"):
        tf.convert_to_tensor(x.shape)
    with pytest.raises(TypeError, match="Dimension"):
        tf.reshape(x, [x.shape[0], -1])


def test_a_tensor_is_not_converted_to_another_type():
    with pytest.raises(ValueError, match="Tensor conversion requested dtype float32 for Tensor with dtype int32"):
        tf.convert_to_tensor(tf.constant(1), dtype=tf.float32)


class Celsius:
    def __init__(self, degrees):
        self.degrees = degrees


def test_a_type_can_be_taught_to_convert():
    calls = []

    def declines(value, dtype=None, name=None, as_ref=False):
        calls.append("first")
        return NotImplemented

    def converts(value, dtype=None, name=None, as_ref=False):
        calls.append("second")
        return tf.constant(value.degrees, dtype=dtype, name=name or "Const")

    tf.register_tensor_conversion_function(Celsius, converts, priority=50)
    tf.register_tensor_conversion_function(Celsius, declines, priority=10)

    assert tf.add(tf.ones([]), Celsius(3.0)).op.inputs[1].op.name == "Add/y"
    assert calls == ["first", "second"]
    with pytest.raises(TypeError, match="base_type must be a type"):
        tf.register_tensor_conversion_function("x", converts)


def test_indexed_slices_become_dense_where_a_tensor_is_needed():
    slices = tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 4]), tf.constant([5, 3]))

    assert tf.identity(slices).op.inputs[0].op.type == "UnsortedSegmentSum"
    assert (-slices).values.op.type == "Neg"
    with pytest.raises(ValueError, match="IndexedSlices without dense_shape"):
        tf.convert_to_tensor(tf.IndexedSlices(tf.ones([2]), tf.constant([0, 1])))


# --- constants, known before the graph runs ---


def test_constants_repeat_their_last_value_to_fill_a_shape():
    assert tf.get_static_value(tf.constant([1, 2], shape=[2, 2])).tolist() == [[1, 2], [2, 2]]
    with pytest.raises(ValueError, match="Too many elements"):
        tf.constant([1, 2, 3], shape=[2])
    with pytest.raises(TypeError, match="Expected float32, got 'a'"):
        tf.constant("a", tf.float32)


@pytest.mark.parametrize(
    ("build", "value"),
    [
        (lambda x: tf.shape(x)[1], 3),
        (lambda x: tf.shape(x)[1:] * 2, [6, 8]),
        (lambda x: tf.stack([tf.shape(x)[1], 5]), [3, 5]),
        (lambda x: tf.concat([[1], tf.shape(x)[1:]], 0), [1, 3, 4]),
        (lambda x: tf.reduce_prod(tf.shape(x)[1:]), 12),
        (lambda x: tf.rank(x) - 1, 2),
        (lambda x: tf.range(0, tf.shape(x)[2], 2), [0, 2]),
        (lambda x: tf.cast(tf.fill([2], 7), tf.int64), [7, 7]),
        (lambda x: tf.gather(tf.shape(x)[1:], [1, 0]), [4, 3]),
        (lambda x: 7 // tf.shape(x)[1], 2),
    ],
)
def test_arithmetic_over_known_sizes_is_known(build, value):
    x = tf.placeholder(tf.float32, [None, 3, 4])

    assert known_value(build(x)).tolist() == value


@pytest.mark.parametrize("build", [lambda x: tf.shape(x)[0], lambda x: 1 // tf.constant(0), lambda x: x])
def test_what_is_not_known_is_none(build):
    assert known_value(build(tf.placeholder(tf.float32, [None, 3, 4]))) is None


def test_partly_known_shapes_reach_the_static_shape():
    x = tf.placeholder(tf.float32, [None, 3])

    assert tf.reshape(x, [tf.shape(x)[0], 3, 1]).shape.as_list() == [None, 3, 1]
    assert tf.zeros(tf.stack([tf.shape(x)[0], 5])).shape.as_list() == [None, 5]
    assert tf.zeros(tf.concat([tf.shape(x)[:1], [7]], 0)).shape.as_list() == [None, 7]
    assert tf.zeros(tf.shape(x)).shape.as_list() == [None, 3]
    assert tf.random_normal(tf.shape(x)).shape.as_list() == [None, 3]
