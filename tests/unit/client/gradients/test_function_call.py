"""The gradient of a call of a function: one operation that a server derives, with the attributes of the call."""

from __future__ import annotations

from types import SimpleNamespace

import tenfold as tf
from tenfold.gradients.function_call import gradient_of_call
from tenfold_protos.node_def_pb2 import NodeDef


def test_a_call_is_derived_by_the_server() -> None:
    call = NodeDef(name="call", op="my_function")
    call.attr["size"].i = 7
    with tf.Graph().as_default():
        x, y = tf.constant(1.0), tf.constant(2.0, tf.float64)
        g = tf.constant(3.0)
        given = SimpleNamespace(type="my_function", _node_def=call, inputs=[x, y])
        of_x, of_y = gradient_of_call(given, g)  # type: ignore[arg-type]
    made = of_x.op
    assert made is of_y.op
    assert (made.type, list(made.inputs)) == ("SymbolicGradient", [x, y, g])
    assert (of_x.dtype, of_y.dtype) == (tf.float32, tf.float64)
    function = made.node_def.attr["f"].func
    assert (function.name, function.attr["size"].i) == ("my_function", 7)
