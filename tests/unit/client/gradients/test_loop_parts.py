"""The nodes that differentiation adds to a loop: loop_graphs.txt has them by program.

Of `simple`, `nested` and `branch` TensorFlow 1.15 makes the same ones, by name, input, control edge and attribute. Of
`slices` it starts the sums in another order, of `first_turn` it makes the zeros elsewhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold_protos import control_flow_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

GRAPHS = Path(__file__).with_name("loop_graphs.txt")
#: Ops that rules of plain ops make, too, are shown by those that take them.
_FLOW_NAMES = """
Add Const ControlTrigger Enter Exit Fill GreaterEqual LoopCond Merge NextIteration Shape StackPopV2 StackPushV2 StackV2
Sub Switch ZerosLike
"""
FLOW = frozenset(_FLOW_NAMES.split())


def simple() -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    options = {"swap_memory": True, "parallel_iterations": 4, "maximum_iterations": 7}
    tf.gradients(tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), (0, x), **options)[1], x)


def nested() -> None:
    x = tf.placeholder(tf.float32, [], name="x")

    def inner(i: Any, a: Any) -> Any:
        return tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b * x), (0, a), parallel_iterations=1)[1]

    tf.gradients(tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, inner(i, a)), (0, x))[1], x)


def branch() -> None:
    x = tf.placeholder(tf.float32, [None], name="x")

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.cond(i < 2, lambda: tf.sin(a), lambda: tf.split(a, 2)[0])

    shapes = (tf.TensorShape([]), tf.TensorShape([None]))
    tf.gradients(tf.while_loop(lambda i, a: i < 3, body, (0, x), shapes)[1], x)


def outer_constant() -> None:
    """Of a shape that is not known: the zeros that its sum starts with have the shape that the outer turn had."""
    x = tf.placeholder(tf.float32, None, name="x")

    def inner(a: Any) -> Any:
        c = tf.sin(a)
        return tf.while_loop(lambda j, b: j < 2, lambda j, b: (j + 1, b + c), (0, a), (tf.TensorShape([]), c.shape))[1]

    shapes = (tf.TensorShape([]), tf.TensorShape(None))
    tf.gradients(tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, inner(a)), (0, x), shapes)[1], x)


def slices() -> None:
    for shape in ([4, 2], None):
        table = tf.placeholder(tf.float32, shape, name="table")

        def body(i: Any, a: Any, table: Any = table) -> Any:
            return i + 1, a + tf.reduce_sum(tf.gather(table, [i, 0]))

        tf.gradients(tf.while_loop(lambda i, a: i < 3, body, (0, 0.0))[1], table, name="gradients")


def first_turn() -> None:
    for shape in ([2], None):
        x = tf.placeholder(tf.float32, shape, name="x")
        shapes = (tf.TensorShape([]), tf.TensorShape(shape))
        y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.ones_like(a)), (0, x), shapes)[1]
        tf.gradients(y + x, x, name="gradients")


def told(build: Callable[[], None]) -> str:
    attrs = ("frame_name", "parallel_iterations", "is_constant", "swap_memory", "max_size")
    with tf.Graph().as_default() as graph:
        build()
        found = [f"# {build.__name__}"]
        for op in graph.get_operations():
            if not op.name.startswith("gradients") or op.type not in FLOW:
                continue
            inputs = ", ".join([*(each.name for each in op.inputs), *(f"^{each.name}" for each in op.control_inputs)])
            more = [f" {name}={op.get_attr(name)}" for name in attrs if name in op.node_def.attr]
            if op.type == "Const":
                more.append(f" {np.asarray(tf.get_static_value(op.outputs[0])).tolist()}")
            text = f"{op.name} = {op.type}({inputs}){''.join(more)}"
            found.append(text.replace("gradients/", "").replace("=b'", "='").replace("while", "w"))
    return "\n".join(found)


PROGRAMS = (simple, nested, branch, outer_constant, slices, first_turn)


@pytest.mark.parametrize("build", PROGRAMS)
def test_the_nodes_of_a_gradient_loop(build: Callable[[], None]) -> None:
    expected = {text.partition("\n")[0]: text for text in GRAPHS.read_text(encoding="utf-8").strip().split("\n\n")}

    assert told(build) == expected[f"# {build.__name__}"]


def test_the_loop_knows_what_was_added_to_it() -> None:
    with tf.Graph().as_default() as graph:
        simple()
        collected = tf.train.export_meta_graph(graph=graph).collection_def["while_context"].bytes_list.value
        (context,) = [control_flow_pb2.WhileContextDef.FromString(each) for each in collected]

        assert context.loop_enter_names[-1] == "gradients/f_count_1:0"
        assert context.loop_exit_names[-1] == "gradients/f_count_2:0"
        inside = {"gradients/f_count:0", "gradients/f_count_1:0", "gradients/Add:0", "gradients/NextIteration:0"}
        assert inside <= set(context.values_def.values)
        assert context.values_def.external_values["gradients/while/mul_grad/Mul_1/f_acc:0"] == (
            "gradients/while/mul_grad/Mul_1/Enter:0"
        )


@pytest.mark.parametrize("resource", [True, False], ids=["resource", "reference"])
@pytest.mark.parametrize("rows", [[3], [None], None], ids=str)
def test_slices_of_a_variable_of_every_turn(resource: bool, rows: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(np.arange(8.0).reshape(4, 2), use_resource=resource)
        picked = tf.placeholder(tf.int32, rows)
        total = tf.while_loop(
            lambda i, a: i < 3,
            lambda i, a: (i + 1, a + tf.reduce_sum(tf.gather(variable, picked) * tf.cast(i + 1, tf.float64))),
            (0, tf.constant(0.0, tf.float64)),
        )[1]
        (gradient,) = tf.gradients(total, variable)
        session.run(variable.initializer)

        assert isinstance(gradient, tf.IndexedSlices)
        assert (gradient.values.shape.as_list(), gradient.indices.shape.as_list()) == ([None, 2], [None])
        values, indices = session.run([gradient.values, gradient.indices], {picked: [0, 2, 2]})
        dense = np.zeros((4, 2))
        np.add.at(dense, indices, values)
        assert dense.tolist() == [[6, 6], [0, 0], [12, 12], [0, 0]]
        assert len(indices) == 1 + 3 * 3
        assert values[0].tolist() == [0, 0]


def test_turns_of_an_inner_loop_are_counted_for_each_outer_turn() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, [])

        def inner(i: Any, a: Any) -> Any:
            return tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b * x), (0, a))[1]

        y = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, inner(i, a)), (0, x))[1]

        assert session.run([y, *tf.gradients(y, x)], {x: 2.0}) == [2.0**11, 11 * 2.0**10]
