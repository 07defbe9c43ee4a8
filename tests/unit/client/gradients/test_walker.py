"""`tf.gradients`: which operations are visited, what is summed, names, options, errors."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients import walker


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def evaluate(fetches, feeds=None):
    with tf.Session() as session:
        return session.run(fetches, feeds)


def test_the_package_is_the_function():
    import tenfold.gradients

    x = tf.constant(2.0)

    assert evaluate(tf.gradients(x * x, x)) == [4.0]
    assert evaluate(tenfold.gradients(x * x, x)) == [4.0]


def test_chain_and_sum_over_paths():
    x = tf.constant(3.0)
    y = x * x + tf.exp(x) + x

    assert evaluate(tf.gradients(y, x)) == [pytest.approx(2 * 3.0 + np.exp(3.0) + 1)]


def test_names_are_tensorflows(graph):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w = tf.placeholder(tf.float32, [3, 2], name="w")
    loss = tf.reduce_mean(tf.matmul(x, w), name="loss")
    before = {op.name for op in graph.get_operations()}

    (grad,) = tf.gradients(loss, w)

    new = {op.name for op in graph.get_operations()} - before
    assert {"gradients/Shape", "gradients/grad_ys_0", "gradients/Fill", "gradients/loss_grad/Reshape"} <= new
    assert {"gradients/loss_grad/Tile", "gradients/loss_grad/truediv", "gradients/MatMul_grad/MatMul_1"} <= new
    assert all(name.startswith("gradients/") for name in new)
    assert grad.name == "gradients/MatMul_grad/MatMul_1:0"
    assert tf.gradients(loss, w)[0].name == "gradients_1/MatMul_grad/MatMul_1:0"
    assert tf.gradients(loss, w, name="again")[0].name == "again/MatMul_grad/MatMul_1:0"


def test_several_ys_and_xs():
    a, b = tf.constant(2.0), tf.constant(5.0)

    grads = tf.gradients([a * b, a + b], [a, b])

    assert evaluate(grads) == [6.0, 3.0]


def test_intermediate_tensors_can_be_xs():
    x = tf.constant(3.0)
    square = x * x
    cube = square * x

    assert evaluate(tf.gradients(cube, [x, square])) == [27.0, 3.0]


def test_grad_ys_weigh_the_outputs():
    x = tf.constant([1.0, 2.0])
    (grad,) = tf.gradients(x * 3.0, x, grad_ys=[tf.constant([10.0, 100.0])])

    assert evaluate(grad).tolist() == [30.0, 300.0]


def test_grad_ys_are_checked():
    x = tf.constant([1.0, 2.0])

    with pytest.raises(ValueError, match="Passed 2 grad_ys for 1 ys"):
        tf.gradients(x * 3.0, x, grad_ys=[x, x])
    with pytest.raises(TypeError, match="must be real or integer"):
        tf.gradients(x * 3.0, x, grad_ys=[tf.constant([True, False])])
    with pytest.raises(TypeError, match="must be numeric"):
        tf.gradients(x, x, grad_ys=[x], name="ok") and tf.gradients(tf.constant("text"), x, grad_ys=[x])


def test_stop_gradients():
    x = tf.constant(3.0)
    square = x * x
    y = square + x

    assert evaluate(tf.gradients(y, [x], stop_gradients=[square])) == [1.0]


def test_unconnected_inputs():
    x, other = tf.constant(1.0), tf.constant([2.0, 3.0])

    assert tf.gradients(x * 2.0, [other]) == [None]
    (zeros,) = tf.gradients(x * 2.0, [other], unconnected_gradients="zero")
    assert evaluate(zeros).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients"):
        tf.gradients(x, x, unconnected_gradients="nothing")


def test_integers_and_comparisons_carry_no_gradient():
    x = tf.constant([1.0, 2.0])
    integer = tf.cast(x, tf.int32)

    assert tf.gradients(tf.cast(integer, tf.float32), x) == [None]
    assert tf.gradients(tf.cast(x > 1.5, tf.float32), x) == [None]


def test_unused_outputs_get_zeros():
    x = tf.placeholder(tf.float32, [4])
    first, _ = tf.split(x, 2)

    (grad,) = tf.gradients(first, x)

    assert evaluate(grad, {x: np.zeros(4)}).tolist() == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("method", ["ADD_N", "EXPERIMENTAL_TREE", "EXPERIMENTAL_ACCUMULATE_N"])
def test_aggregation_methods(graph, method):
    x = tf.constant(2.0)
    y = x + x * 3.0 + x * 5.0

    (grad,) = tf.gradients(y, x, aggregation_method=getattr(tf.AggregationMethod, method))

    assert evaluate(grad) == 9.0
    sums = [op for op in graph.get_operations() if op.type == "AddN"]
    assert len(sums) == (1 if method == "ADD_N" else 2)
    with pytest.raises(ValueError, match="aggregation_method"):
        tf.gradients(y, x, aggregation_method=9)


def test_gated_gradients_wait_for_each_other(graph):
    a, b = tf.constant([[1.0]]), tf.constant([[2.0]])

    grad_a, grad_b = tf.gradients(tf.matmul(a, b), [a, b], gate_gradients=True)

    gate = graph.get_operation_by_name("gradients/MatMul_grad/tuple/group_deps")
    assert {op.type for op in gate.control_inputs} == {"MatMul"}
    assert gate in grad_a.op.control_inputs
    assert gate in grad_b.op.control_inputs


def test_colocation_with_the_forward_operation():
    x = tf.constant([[1.0]])
    with tf.device("/job:worker/task:1"):
        y = tf.matmul(x, x, name="product")

    with tf.device("/job:ps"):
        (grad,) = tf.gradients(y, x, colocate_gradients_with_ops=True)

    assert {tensor.device for tensor in grad.op.inputs} == {"/job:worker/task:1"}
    assert grad.op.inputs[0].op.colocation_groups() == [b"loc:@product"]


def test_partial_sums_are_made_on_each_device(graph):
    with tf.device("/job:worker/task:0"):
        x = tf.constant(1.0)
        a, b = x * 2.0, x * 3.0
    with tf.device("/job:worker/task:1"):
        c, d = x * 4.0, x * 5.0

    tf.gradients([a, b, c, d], x, colocate_gradients_with_ops=True)

    sums = [op for op in graph.get_operations() if op.type == "AddN"]
    assert [len(op.inputs) for op in sums] == [2, 2, 2]


def test_gradient_of_a_variable_counts_every_read():
    variable = tf.Variable(3.0)
    y = variable * variable.read_value()

    (grad,) = tf.gradients(y, variable)

    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run(grad) == 6.0


def test_gradient_of_a_resource_variable_counts_every_read():
    variable = tf.Variable(3.0, use_resource=True)
    y = variable * variable.read_value()

    (grad,) = tf.gradients(y, variable)

    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run(grad) == 6.0


def test_second_derivative():
    x = tf.constant(2.0)
    (first,) = tf.gradients(x * x * x, x)

    assert evaluate(tf.gradients(first, x)) == [12.0]


def test_conditional_passes_gradients_through_the_branch_taken():
    from tenfold.ops.control_flow import merge, switch

    x = tf.constant(3.0)
    flag = tf.placeholder(tf.bool, [])
    when_false, when_true = switch(x, flag)
    y = merge([when_false * 2.0, when_true * when_true]).output

    (grad,) = tf.gradients(y, x)

    assert evaluate(grad, {flag: False}) == 2.0
    assert evaluate(grad, {flag: True}) == 6.0


def test_conditional_with_one_branch_that_does_not_depend_on_x():
    from tenfold.ops.control_flow import merge, switch

    x, other = tf.constant(3.0), tf.constant(4.0)
    flag = tf.placeholder(tf.bool, [])
    y = merge([switch(other, flag).output_false * 2.0, switch(x, flag).output_true * 5.0]).output

    (grad,) = tf.gradients(y, x)

    assert evaluate(grad, {flag: True}) == 5.0
    assert evaluate(grad, {flag: False}) == 0.0


def test_an_operation_without_a_rule_is_named(monkeypatch):
    from tenfold.gradients import registry

    registry.ensure_loaded()
    monkeypatch.setattr(registry, "_rows", {op: row for op, row in registry._rows.items() if op != "Square"})
    x = tf.placeholder(tf.float32, [2])
    y = tf.square(x, name="squared") + tf.stop_gradient(tf.square(x, name="held"))

    with pytest.raises(LookupError, match=r"No gradient defined for operation 'squared' \(op type: Square\): .*Square"):
        tf.gradients(y, x)
    # where nobody goes through it, it is not asked for
    z = tf.square(x)
    assert tf.gradients(tf.exp(z), x, stop_gradients=[z]) == [None]


def test_the_defaults_of_options(graph):
    """No gradient waits for another or is colocated unless that is asked for."""
    with tf.device("/device:CPU:0"):
        x = tf.constant([1.0, 2.0])
        parts = tf.split(x, 2)
    tf.gradients(parts[0] * 2.0 + tf.exp(parts[1]), x)
    added = [op for op in graph.get_operations() if op.name.startswith("gradients")]

    assert added
    assert not [op.name for op in added if op.type in ("Tuple", "NoOp") or op.control_inputs]
    assert {op.device for op in added} == {""}


def test_incompatible_shapes_from_a_rule_are_reported(monkeypatch):
    from tenfold.gradients import registry

    registry.ensure_loaded()
    monkeypatch.setattr(registry, "_rows", dict(registry._rows))

    @tf.RegisterGradient("WrongShape")
    def wrong(op, grad):
        return tf.zeros([7])

    x = tf.placeholder(tf.float32, [2])
    with tf.get_default_graph().gradient_override_map({"Identity": "WrongShape"}):
        y = tf.identity(x, name="victim")

    with pytest.raises(ValueError, match=r"Incompatible shapes.*victim.*Input index: 0"):
        tf.gradients(y, x)


def test_a_loop_that_no_context_knows_is_refused_by_name():
    from tenfold.graph.op_builder import apply_op

    x = tf.constant(1.0)
    inside = apply_op("Enter", data=x, frame_name="frame")
    outside = apply_op("Exit", data=inside * 2.0, name="leave")

    with pytest.raises(ValueError, match=r"without properly serializing graph.*leave"):
        tf.gradients(outside, x)


def test_a_cycle_is_refused_rather_than_left_out():
    from tenfold.graph.op_builder import apply_op

    x = tf.constant(1.0)
    entered = apply_op("Enter", data=x, frame_name="frame")
    merged = apply_op("Merge", inputs=[entered, entered], name="head").output
    body = merged * 2.0
    merged.op._update_input(1, apply_op("NextIteration", data=body))

    with pytest.raises(LookupError, match="part of a cycle that no Exit leaves"):
        tf.gradients(body, x)


def test_what_comes_in_is_checked_and_named(graph):
    x, z = tf.constant([1.0, 2.0]), tf.constant([1 + 2j], tf.complex64)
    y, w = x * 3.0, z * 2.0
    with pytest.raises(TypeError, match=r"Gradients of complex tensors must set grad_ys \(y.dtype = tf.complex64\)"):
        tf.gradients(w, z)
    for of, what, given in ((w, "complex", x), (y, "real or integer", z), (y, "real or integer", tf.constant(["a"]))):
        with pytest.raises(TypeError, match=rf"generated for tensor mul.* must be {what}$"):
            tf.gradients(of, x, grad_ys=[given])
    assert evaluate(tf.gradients(w, z, grad_ys=tf.constant([3j], tf.complex64)))[0].tolist() == [6j]
    # None among them is ones; each has the number of its y
    (found,) = tf.gradients([y, x * x], x, grad_ys=[None, np.float32([10, 100])], name="named")
    assert evaluate(found).tolist() == [3 + 2 * 10, 3 + 4 * 100]
    names = {op.name: op.type for op in graph.get_operations() if op.name.startswith("named/grad_ys")}
    assert names == {"named/grad_ys_0": "Const", "named/grad_ys_1": "Identity"}
    assert tf.gradients(y, x, name=None)[0].name.startswith("gradients")
    assert tf.gradients(y, x, name="")[0].name.startswith("gradients")


def test_slices_that_come_in_are_handed_on():
    x = tf.Variable([[1.0], [2.0], [3.0]])
    rows = tf.gather(x, [2, 0])
    slices = tf.IndexedSlices(tf.constant([[5.0]]), tf.constant([1]), tf.constant([2, 1]))
    same = tf.identity(rows)
    assert tf.gradients(same, same, grad_ys=[slices]) == [slices]
    assert tf.gradients(tf.identity(rows), rows, grad_ys=[slices]) == [slices]
    # of a y that is slices, its values are meant
    y = tf.IndexedSlices(rows * 2.0, tf.constant([0, 1]))
    assert tf.gradients(y, rows)[0].shape.as_list() == [2, 1]


def test_which_types_carry_gradients():
    types = [tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128, tf.resource, tf.variant]
    for dtype in types:
        assert walker.is_trainable(tf.placeholder(dtype)), dtype
    for dtype in (tf.int32, tf.int64, tf.bool, tf.string, tf.uint8):
        assert not walker.is_trainable(tf.placeholder(dtype)), dtype


def test_what_an_x_may_be():
    plain = tf.Variable([1.0, 2.0], use_resource=False)
    resource = tf.Variable([1.0, 2.0], use_resource=True)
    loss = tf.reduce_sum(plain * 3.0) + tf.reduce_sum(resource * 5.0)
    of_plain, of_resource, of_handle, of_none = tf.gradients(loss, [plain, resource, resource.handle, 7.0])
    assert of_none is None
    assert of_handle.name == of_resource.name
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert [each.tolist() for each in session.run([of_plain, of_resource])] == [[3, 3], [5, 5]]
    (one,) = tf.gradients((loss,), plain)
    assert one.shape.as_list() == [2]


@pytest.mark.parametrize("unconnected", [tf.UnconnectedGradients.ZERO, "zero", tf.UnconnectedGradients.NONE, "none"])
def test_what_is_given_for_what_nothing_reaches(unconnected):
    x, other = tf.constant([1.0, 2.0]), tf.constant([3.0])
    held = tf.stop_gradient(x)
    found = tf.gradients(held * 2.0 + x * 0.0, [x, other], stop_gradients=None, unconnected_gradients=unconnected)
    is_zero = unconnected in ("zero", tf.UnconnectedGradients.ZERO)
    assert (found[1] is None) is not is_zero
    if is_zero:
        assert evaluate(found[1]).tolist() == [0]
    # x is reached, by a path that carries nothing: that is no zero
    assert tf.gradients(held, [x], unconnected_gradients="none") == [None]


def test_stops_may_be_one_several_or_none():
    x = tf.constant(3.0)
    a, b = x * 2.0, x * 5.0
    y = a * b
    for stops, expected in ((None, 60.0), ([], 60.0), (a, 30.0), ([a], 30.0), ((b,), 30.0)):
        assert evaluate(tf.gradients(y, x, stop_gradients=stops)) == [expected], stops
    assert tf.gradients(y, x, stop_gradients=[a, b]) == [None]
    # with respect to what is stopped at
    assert evaluate(tf.gradients(y, [a, x], stop_gradients=[a])) == [15.0, 30.0]


def test_gates_are_there_for_several_gradients_only(graph):
    x = tf.constant([[1.0]])
    tf.gradients(tf.exp(x), x, gate_gradients=True)
    assert not [op for op in graph.get_operations() if "tuple" in op.name]
    with tf.device("/job:ps"):
        y = tf.matmul(x, x * 2.0)
    with tf.device("/job:worker"):
        tf.gradients(y, x, gate_gradients=True, colocate_gradients_with_ops=True)
    gates = [op for op in graph.get_operations() if op.name.endswith("group_deps")]
    assert len(gates) == 2
    assert {op.device for op in gates} == {"/job:ps"}, "where its gradients are, not where the scope says"


def test_an_operation_is_visited_after_all_that_use_it(graph):
    """Sums of partial gradients are complete when a rule is asked: it is asked once."""
    x = tf.constant(2.0)
    middle = tf.square(x, name="middle")
    y = middle * tf.exp(middle) + tf.sin(middle * middle)
    (found,) = tf.gradients(y, x)
    rules = [op for op in graph.get_operations() if op.name.startswith("gradients/middle_grad/")]
    assert len([op for op in rules if op.type == "Mul"]) == 2
    m = 4.0
    slope = np.exp(m) * (1 + m) + np.cos(m * m) * 2 * m
    assert evaluate(found) == pytest.approx(slope * 4.0, rel=1e-5)
