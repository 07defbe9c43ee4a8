"""The graphs of `tf.cond` and `tf.while_loop`: what comes in through what, who waits for whom, what may be fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.ops import raw_ops

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def types_of(graph: tf.Graph, start: str = "") -> list[str]:
    return [op.type for op in graph.get_operations() if op.name.startswith(start)]


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feeds)


# --- branches ---


def test_a_branch_takes_values_through_a_switch_and_constants_by_its_pivot(graph: tf.Graph) -> None:
    p, x = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.float32, [], name="x")

    tf.cond(p, lambda: tf.multiply(x, 2.0, name="twice"), lambda: x)

    twice = graph.get_operation_by_name("cond/twice")
    assert twice.inputs[0].op.type == "Switch"
    assert twice.inputs[0].value_index == 1
    assert [op.name for op in twice.inputs[1].op.control_inputs] == ["cond/switch_t"]
    merge = graph.get_operation_by_name("cond/Merge")
    assert merge.inputs[0].op.type == "Switch"
    assert merge.inputs[0].value_index == 0


def test_what_is_inside_cannot_be_fetched(graph: tf.Graph) -> None:
    p = tf.placeholder(tf.bool, [])
    inside = []
    y = tf.cond(p, lambda: inside.append(tf.constant(1.0)) or inside[0], lambda: tf.constant(2.0))

    with tf.Session() as session:
        assert session.run(y, {p: True}) == 1.0
        with pytest.raises(ValueError, match=r"may not be fetched|not fetchable"):
            session.run(inside[0], {p: True})


def test_a_variable_made_in_a_branch_is_initialized_outside() -> None:
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.get_variable("w", initializer=3.0) * 2.0, lambda: tf.constant(0.0))

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        assert session.run(y, {p: True}) == 6.0


def test_an_untaken_branch_does_not_run(graph: tf.Graph) -> None:
    p = tf.placeholder(tf.bool, [])
    ran = []
    y = tf.cond(p, lambda: tf.constant(1), lambda: tf.py_func(lambda: ran.append(True) or np.int32(2), [], tf.int32))

    assert run(y, {p: True}) == 1
    assert ran == []
    assert run(y, {p: False}) == 2


# --- loops ---


def test_a_loop_takes_values_through_a_constant_enter(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [2], name="x")

    tf.while_loop(lambda a: tf.reduce_sum(a) < 9.0, lambda a: tf.add(a, x, name="plus"), [x], parallel_iterations=3)

    enter = graph.get_operation_by_name("while/plus").inputs[1].op
    assert enter.type == "Enter"
    assert enter.get_attr("is_constant")
    assert enter.get_attr("frame_name") == b"while/while_context"
    assert enter.get_attr("parallel_iterations") == 3
    assert enter.inputs[0].name == "x:0"


def test_control_inputs_from_outside_do_not_cross_the_frame(graph: tf.Graph) -> None:
    before = tf.no_op(name="before")
    value = tf.placeholder(tf.float32, [], name="value")

    def body(i: Any) -> Any:
        with tf.control_dependencies([before, value.op]):
            return tf.negative(i, name="next")

    tf.while_loop(lambda i: i < 3, body, [tf.constant(0)])

    waits = graph.get_operation_by_name("while/next").control_inputs
    # A no-op has nothing to bring in; a tensor is brought in, and its copy inside is waited for.
    assert [op.type for op in waits] == ["Identity"]
    assert waits[0].inputs[0].op.type == "Enter"


def test_a_loop_under_control_dependencies_waits_outside(graph: tf.Graph) -> None:
    v = tf.Variable(1.0)
    with tf.control_dependencies([v.assign_add(4.0)]):
        _, y = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a + v.read_value()), (0, 0.0))

    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(y) == 10.0


def test_devices_of_a_body_are_kept(graph: tf.Graph) -> None:
    def body(i: Any) -> Any:
        with tf.device("/cpu:0"):
            return tf.add(i, 1, name="next")

    tf.while_loop(lambda i: i < 3, body, [tf.constant(0)])

    assert graph.get_operation_by_name("while/next").device == "/device:CPU:0"


def test_a_value_of_a_loop_is_not_used_outside() -> None:
    inside = []
    tf.while_loop(lambda i: i < 3, lambda i: inside.append(i + 1) or inside[0], [tf.constant(0)])

    with pytest.raises(ValueError, match=r"Cannot use 'while/add' as input to 'Add.*' because 'while/add' is in"):
        tf.add(inside[0], 1)


def test_a_shape_that_changes_needs_an_invariant() -> None:
    with pytest.raises(ValueError, match=r"with shape \(1,\), but has shape \(2,\) after one iteration"):
        tf.while_loop(lambda a: tf.size(a) < 9, lambda a: tf.concat([a, a], 0), [tf.ones([1])])
    with pytest.raises(ValueError, match=r"The shape invariant specified for .* is not compatible"):
        tf.while_loop(lambda a: True, lambda a: a, [tf.ones([1])], shape_invariants=[tf.TensorShape([2])])


def test_a_sparse_tensor_may_grow_in_a_loop_and_keeps_its_rank() -> None:
    start = tf.SparseTensor([[0], [3]], [2.0, 4.0], [10])

    def grown(i: Any, x: Any) -> Any:
        more = tf.SparseTensor([[tf.cast(i, tf.int64)]], [1.0], x.dense_shape)
        return i + 1, tf.sparse.add(x, more)

    _, dense = tf.while_loop(lambda i, x: i < 3, grown, [0, start])
    assert dense.indices.shape.as_list() == [None, 1]
    assert run(tf.sparse.to_dense(dense)).tolist() == [3, 1, 1, 4, 0, 0, 0, 0, 0, 0]

    def deeper(i: Any, x: Any) -> Any:
        row = tf.concat([x.indices, [[i], [i]]], axis=1)
        return i + 1, tf.SparseTensor(row, x.values, tf.concat([x.dense_shape, [10]], axis=0))

    with pytest.raises(ValueError, match="after one iteration"):
        tf.while_loop(lambda i, x: i < 3, deeper, [0, start])
    with pytest.raises(ValueError, match="is not compatible with"):
        tf.while_loop(lambda i, x: i < 3, grown, [0, start], [tf.TensorShape([]), tf.TensorShape([5])])
    any_rank = [tf.TensorShape([]), tf.TensorShape([None])]
    _, deep = tf.while_loop(lambda i, x: i < 2, deeper, [0, start], any_rank)
    assert run(deep.dense_shape).tolist() == [10, 10, 10]


def test_a_merge_has_the_sizes_that_its_inputs_agree_on() -> None:
    one, two = tf.placeholder(tf.float32, [1, 2]), tf.placeholder(tf.float32, [None, 2])

    shapes = [raw_ops.Merge(inputs=inputs)[0].shape for inputs in ([one, two], [one, tf.ones([2, 2])], [one, one])]

    assert [shape.as_list() for shape in shapes] == [[None, 2], [None, 2], [1, 2]]
    assert raw_ops.Merge(inputs=[one, tf.ones([2])])[0].shape.ndims is None


# --- gradients ---


def test_values_of_iterations_are_kept_on_stacks_and_shapes_alone_where_they_do(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [None], name="x")
    _, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.sin(a) + x), (0, x))
    before = len(graph.get_operations())

    tf.gradients(y, x)

    new = [op for op in graph.get_operations()[before:]]
    stacks = [op.get_attr("elem_type") for op in new if op.type == "StackV2"]
    # The argument of the sine; of the sum two shapes, no values.
    assert sorted(kind.name for kind in stacks) == ["float32", "int32", "int32"]
    assert {op.get_attr("frame_name") for op in new if op.type == "Enter"} == {
        b"while/while_context",
        b"gradients/while/while_context",
    }


def test_a_loop_without_its_context_says_so(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), (0, x))[1]
    graph_def, names = graph.as_graph_def(), [x.name, y.name]

    with tf.Graph().as_default():
        x, y = tf.import_graph_def(graph_def, return_elements=names, name="")
        assert run(y, {x: 2.0}) == 16.0
        with pytest.raises(ValueError, match="without properly serializing graph via MetaGraphDef"):
            tf.gradients(y, x)


@pytest.mark.parametrize("scope", [None, "again"])
def test_contexts_travel_in_meta_graphs(scope: str | None) -> None:
    x = tf.placeholder(tf.float32, [2], name="x")

    def body(i: Any, a: Any) -> Any:
        inner = lambda: tf.while_loop(lambda j, b: j < 2, lambda j, b: (j + 1, b + x), (0, a))[1]  # noqa: E731
        return i + 1, tf.cond(tf.equal(i, 1), lambda: a * x, inner)

    y = tf.while_loop(lambda i, a: i < 3, body, (0, x))[1]
    z = tf.cond(x[0] > 1.0, lambda: y * 2.0, lambda: y, name="last")
    feed = np.array([2.0, 3.0], np.float32)
    expected = run([z, tf.gradients(z, x)[0]], {x: feed})
    meta_graph = tf.train.export_meta_graph()
    assert len(tf.get_collection(tf.GraphKeys.WHILE_CONTEXT)) == 1
    assert len(tf.get_collection(tf.GraphKeys.COND_CONTEXT)) == 2

    with tf.Graph().as_default() as other:
        tf.train.import_meta_graph(meta_graph, import_scope=scope)
        prefix = f"{scope}/" if scope else ""
        x, z = (other.get_tensor_by_name(f"{prefix}{name}:0") for name in ("x", "last/Merge"))
        found = run([z, tf.gradients(z, x)[0]], {x: feed})

    np.testing.assert_array_equal(found, expected)


def test_tensor_array_gradients_need_a_name_that_starts_with_gradients() -> None:
    x = tf.constant([1.0, 2.0])
    y = tf.TensorArray(tf.float32, 2).unstack(x).stack()

    with pytest.raises(ValueError, match="custom name that does not start with 'gradients'"):
        tf.gradients(y, x, name="mine")


# --- printing, checking ---


def test_print_formats_tensors_and_values(capfd: pytest.CaptureFixture[str]) -> None:
    x = tf.constant([1, 2, 3, 4, 5, 6, 7])
    shown = [
        tf.print("x:", x, {"a": tf.constant(2.5)}, [tf.constant("text")]),
        tf.print(tf.constant("alone"), output_stream=tf.logging.info),
    ]

    run(shown)

    error = capfd.readouterr().err
    assert "x: [1 2 3 ... 5 6 7] {'a': 2.5} [" in error
    assert "alone" in error
    with pytest.raises(ValueError, match="Unsupported output stream"):
        tf.print(x, output_stream="nowhere")


def test_an_assertion_shows_its_data(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [])
    check = tf.Assert(x > 0.0, ["x was", x])
    assert check.type == "Merge"

    run(check, {x: 1.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"assertion failed: \[x was\] \[-1\]"):
        run(check, {x: -1.0})


# --- dropout around cells ---


def test_dropout_wrapper_drops_by_its_seed() -> None:
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicLSTMCell(8), output_keep_prob=0.5, seed=7)
    inputs = tf.ones([2, 3])
    first, _ = cell(inputs, cell.zero_state(2, tf.float32))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        dropped = session.run(first) == 0
    assert 0 < dropped.sum() < dropped.size


def test_variational_dropout_drops_the_same_in_all_steps() -> None:
    inner = tf.nn.rnn_cell.BasicRNNCell(8)
    cell = tf.nn.rnn_cell.DropoutWrapper(
        inner, 0.5, 0.5, 1.0, variational_recurrent=True, input_size=4, dtype=tf.float32, seed=7
    )
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.ones([2, 5, 4]), dtype=tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        zero = session.run(outputs) == 0
    assert (zero == zero[:1, :1]).all()
    assert 0 < zero[0, 0].sum() < 8
    assert cell.trainable_variables == inner.trainable_variables
    assert [v.op.name for v in cell.trainable_variables] == ["rnn/basic_rnn_cell/kernel", "rnn/basic_rnn_cell/bias"]
