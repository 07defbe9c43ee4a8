"""The gradient of one operation as a graph of its own: placeholders in order, a gradient for each input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.of_op import _as_tensor, gradient_of_op
from tenfold_protos.node_def_pb2 import NodeDef


def node(op: str, **attrs: Any) -> NodeDef:
    made = NodeDef(name="n", op=op)
    for name, value in attrs.items():
        if isinstance(value, tf.DType):
            made.attr[name].type = value.as_datatype_enum
        elif isinstance(value, bool):
            made.attr[name].b = value
        else:
            made.attr[name].i = value
    return made


def run(found: Any, *values: Any) -> list[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(found.graph_def, name="")
        feeds = dict(zip((f"{name}:0" for name in found.args), values, strict=True))
        return [each.tolist() for each in session.run(list(found.outputs), feeds)]


def test_inputs_come_before_the_gradients_of_outputs() -> None:
    found = gradient_of_op(node("Mul", T=tf.float32))
    assert found is not None
    assert found.args == ("x0", "x1", "dy0")
    assert run(found, np.float32([2]), np.float32([3]), np.float32([10])) == [[30], [20]]
    added = {each.name.partition("/")[0] for each in found.graph_def.node}
    assert added == {"x0", "x1", "op", "dy0", "gradient"}


def test_attributes_that_the_op_does_not_have_are_left_out() -> None:
    found = gradient_of_op(node("MatMul", T=tf.float32, transpose_a=True, _other=True))
    assert found is not None
    x, y, g = (np.arange(n, n + 6, dtype=np.float32) for n in range(3))
    of_x, of_y = run(found, x.reshape(2, 3), y[:4].reshape(2, 2), g.reshape(3, 2))
    assert of_x == (y[:4].reshape(2, 2) @ g.reshape(3, 2).T).tolist()
    assert of_y == (x.reshape(2, 3) @ g.reshape(3, 2)).tolist()


def test_what_gets_no_gradient_gets_zeros_of_its_type() -> None:
    found = gradient_of_op(node("Gather", Tparams=tf.float32, Tindices=tf.int32))
    assert found is not None
    of_params, of_indices = run(found, np.float32([1, 2, 3]), np.int32([2, 0, 2]), np.float32([1, 10, 100]))
    assert (of_params, of_indices) == ([10, 0, 101], [0, 0, 0])
    found = gradient_of_op(node("FloorDiv", T=tf.int32))
    assert found is not None
    assert run(found, np.int32([7, 8]), np.int32([2, 3]), np.int32([1, 1])) == [[0, 0], [0, 0]]


def test_strings_and_variables_have_stand_ins() -> None:
    assert gradient_of_op(node("StringLength")) is None, "no gradient at all"
    with tf.Graph().as_default() as graph:
        text, handle = tf.placeholder(tf.string), tf.placeholder(tf.resource)
        empty, of_variable = _as_tensor(None, text), _as_tensor(None, handle)
        assert (empty.dtype, of_variable.dtype) == (tf.string, tf.float32)
        shapes = [op.type for op in graph.get_operations() if op.type in ("Shape", "VariableShape")]
        assert shapes == ["Shape", "VariableShape"]
        with tf.Session() as session:
            assert session.run(empty, {text: [[b"a", b"b"]]}).tolist() == [[b"", b""]]


def test_an_op_without_a_rule_is_refused() -> None:
    with pytest.raises(LookupError):
        gradient_of_op(node("NoSuchOp"))
