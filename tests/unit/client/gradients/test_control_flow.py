"""Gradients of loops and branches that a graph has without their contexts, or that go where none can."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold_protos.control_flow_pb2 import WhileContextDef


def loop(x: Any, **options: Any) -> Any:
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), (0, x), **options)[1]


def test_an_imported_loop_without_its_context_is_refused() -> None:
    with tf.Graph().as_default() as made:
        loop(tf.placeholder(tf.float32, [], name="x"))
        (ended,) = [op.name for op in made.get_operations() if op.type == "Exit" and op.outputs[0].dtype == tf.float32]
    with tf.Graph().as_default():
        x, y = tf.import_graph_def(made.as_graph_def(), return_elements=["x:0", f"{ended}:0"])
        with pytest.raises(ValueError, match="without properly serializing graph via MetaGraphDef"):
            tf.gradients(y, x)


def test_an_enter_without_a_loop_is_refused() -> None:
    with tf.Graph().as_default():
        x = tf.constant(2.0)
        with pytest.raises(LookupError, match="need the loop's context: the graph was imported without its meta graph"):
            tf.gradients(tf.raw_ops.Enter(data=x, frame_name="frame"), x)


def test_an_imported_loop_with_its_meta_graph_has_a_gradient() -> None:
    with tf.Graph().as_default() as made:
        x = tf.placeholder(tf.float32, [], name="x")
        tf.identity(loop(x), name="y")
        meta = tf.train.export_meta_graph(graph=made)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.train.import_meta_graph(meta)
        found = tf.gradients(graph.get_tensor_by_name("y:0"), graph.get_tensor_by_name("x:0"))

        assert session.run(found, {"x:0": 2.0}) == [32.0]


def test_a_gradients_loop_within_a_loop_is_exported_with_all_its_variables() -> None:
    with tf.Graph().as_default() as graph:
        start = (0, tf.constant(2.0))
        tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, tf.gradients(loop(a), a)[0]), start)
        meta = tf.train.export_meta_graph(graph=graph)

    (around,) = meta.collection_def["while_context"].bytes_list.value
    contexts = [each.while_ctxt for each in WhileContextDef.FromString(around).nested_contexts]
    assert len(contexts) == 2  # forwards and back
    for context in contexts:
        entered = [
            op.outputs[0].name
            for op in graph.get_operations()
            if op.type == "Enter" and op.get_attr("frame_name") == context.context_name.encode()
            if not op.get_attr("is_constant")
        ]
        assert sorted(context.loop_enter_names) == sorted(entered)


def test_a_gradient_of_a_loops_gradient_is_refused() -> None:
    with tf.Graph().as_default():
        x = tf.constant(2.0)
        (first,) = tf.gradients(loop(x), x)
        with pytest.raises(TypeError, match="Second-order gradient for while loops not supported"):
            tf.gradients(first, x)


def test_a_loop_without_back_prop_passes_none() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(2.0)

        assert tf.gradients(loop(x, back_prop=False), x) == [None]
        assert session.run(tf.gradients(loop(x, back_prop=False) + x, x)) == [1.0]


@pytest.mark.parametrize("taken", [True, False])
def test_switches_and_merges_without_a_branch(taken: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, p = tf.constant([1.0, 2.0]), tf.placeholder(tf.bool, [])
        false, true = tf.raw_ops.Switch(data=x, pred=p)
        y = tf.raw_ops.Merge(inputs=[false * 3.0, true * true])[0]

        assert session.run(tf.gradients(y, x)[0], {p: taken}).tolist() == ([2, 4] if taken else [3, 3])


def test_printing_passes_the_gradient_of_its_first_input_alone() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
        printed = tf.raw_ops.Print(input=x * y, data=[x, y], first_n=0)

        assert [each.tolist() for each in session.run(tf.gradients(printed, [x, y]))] == [[3, 4], [1, 2]]


@pytest.mark.parametrize("shape", [[3, 2], [None, None], None])
def test_slices_of_every_turn_add_up(shape: Any) -> None:
    """A table that a loop gathers from in each turn: its gradient is the slices of all turns."""
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.placeholder(tf.float32, shape)
        rows = tf.constant([[0, 2], [2, 2], [1, 0]])
        total = tf.while_loop(
            lambda i, a: i < 3,
            lambda i, a: (i + 1, a + tf.reduce_sum(tf.gather(table, rows[i]) * tf.cast(i + 1, tf.float32))),
            (0, 0.0),
        )[1]
        (gradient,) = tf.gradients(total, table)

        assert isinstance(gradient, tf.IndexedSlices)
        dense = session.run(tf.convert_to_tensor(gradient), {table: np.zeros((3, 2))})
        assert dense.tolist() == [[4, 4], [3, 3], [5, 5]]


def test_an_exit_that_nobody_reads_gets_zeros() -> None:
    """The second variable's last value is no part of y, its earlier ones are."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(2.0)
        y = tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a + b, b * x), (0, 0.0, x))[1]

        # y = x + x² + x³
        assert session.run(tf.gradients(y, x)) == [1 + 4 + 12]
