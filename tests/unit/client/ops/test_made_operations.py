"""The user-facing functions: which operations they make, under which names, with which static shapes."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def x_of(*shape, dtype=tf.float32, name="x"):
    return tf.placeholder(dtype, list(shape), name=name)


def summary(tensor):
    """Type, name and static shape."""
    return tensor.op.type, tensor.op.name, tensor.shape.as_list()


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x: x + 1, ("AddV2", "add", [None, 4])),
        (lambda x: 1 - x, ("Sub", "sub", [None, 4])),
        (lambda x: x * 2, ("Mul", "mul", [None, 4])),
        (lambda x: x / 2, ("RealDiv", "truediv", [None, 4])),
        (lambda x: x // 2, ("FloorDiv", "floordiv", [None, 4])),
        (lambda x: x % 2, ("FloorMod", "mod", [None, 4])),
        (lambda x: x**2, ("Pow", "pow", [None, 4])),
        (lambda x: x @ np.ones([4, 2], np.float32), ("MatMul", "matmul", [None, 2])),
        (lambda x: -x, ("Neg", "Neg", [None, 4])),
        (lambda x: abs(x), ("Abs", "Abs", [None, 4])),
        (lambda x: x > 0, ("Greater", "Greater", [None, 4])),
        (lambda x: x <= 0, ("LessEqual", "LessEqual", [None, 4])),
        (lambda x: ~(x > 0), ("LogicalNot", "LogicalNot", [None, 4])),
        (lambda x: (x > 0) & True, ("LogicalAnd", "and", [None, 4])),
        (lambda x: np.ones([1, 4], np.float32) + x, ("AddV2", "add", [None, 4])),
        (lambda x: x[0], ("StridedSlice", "strided_slice", [4])),
        (lambda x: x[:, 1:3], ("StridedSlice", "strided_slice", [None, 2])),
        (lambda x: x[..., tf.newaxis], ("StridedSlice", "strided_slice", [None, 4, 1])),
        (lambda x: x[tf.constant(1)], ("StridedSlice", "strided_slice", [4])),
    ],
)
def test_python_operators(build, expected):
    assert summary(build(x_of(None, 4))) == expected


def test_strings_are_added_with_add():
    assert (tf.constant("a") + "b").op.type == "Add"


def test_integers_are_divided_as_floats():
    quotient = x_of(3, dtype=tf.int32) / 2

    assert quotient.dtype == tf.float64
    assert [t.op.type for t in quotient.op.inputs] == ["Cast", "Cast"]
    with pytest.raises(TypeError, match="x and y must have the same dtype"):
        x_of(3, dtype=tf.int32) / tf.ones([3])


@pytest.mark.parametrize("index", [1.5, "a", True, np.float32(1)])
def test_what_cannot_be_an_index_is_refused(index):
    with pytest.raises(TypeError, match="Only integers, slices"):
        x_of(3)[index]


def test_slicing_sets_masks():
    op = x_of(4, 4, 4)[1, ..., ::2].op

    masks = {name: op.get_attr(name + "_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    assert masks == {"begin": 4, "end": 4, "ellipsis": 2, "new_axis": 0, "shrink_axis": 1}
    with pytest.raises(ValueError, match="Multiple ellipses"):
        x_of(4)[..., ...]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x: tf.reduce_sum(x), ("Sum", "Sum", [])),
        (lambda x: tf.reduce_mean(x, 1), ("Mean", "Mean", [None])),
        (lambda x: tf.reduce_max(x, axis=[0], keepdims=True), ("Max", "Max", [1, 4])),
        (lambda x: tf.reduce_min(x, reduction_indices=0), ("Min", "Min", [4])),
        (lambda x: tf.reduce_prod(x, 0, keep_dims=True), ("Prod", "Prod", [1, 4])),
        (lambda x: tf.reduce_all(x > 0), ("All", "All", [])),
        (lambda x: tf.reduce_any(x > 0, 0), ("Any", "Any", [4])),
        (lambda x: tf.argmax(x, 1), ("ArgMax", "ArgMax", [None])),
        (lambda x: tf.matmul(x, tf.ones([5, 4]), transpose_b=True), ("MatMul", "MatMul", [None, 5])),
        (lambda x: tf.cast(x, tf.int32), ("Cast", "Cast", [None, 4])),
        (lambda x: tf.add_n([x, x]), ("AddN", "AddN", [None, 4])),
        (lambda x: tf.range(0, 10, 3), ("Range", "range", [4])),
        (lambda x: tf.transpose(x), ("Transpose", "transpose", [4, None])),
        (lambda x: tf.expand_dims(x, -1), ("ExpandDims", "ExpandDims", [None, 4, 1])),
        (lambda x: tf.squeeze(tf.ones([1, 3]), [0]), ("Squeeze", "Squeeze", [3])),
        (lambda x: tf.tile(x, [1, 2]), ("Tile", "Tile", [None, 8])),
        (lambda x: tf.pad(x, [[0, 0], [1, 1]]), ("Pad", "Pad", [None, 6])),
        (lambda x: tf.stack([x, x], 1), ("Pack", "stack", [None, 2, 4])),
        (lambda x: tf.stack([x, x]), ("Pack", "stack", [2, None, 4])),
        (lambda x: tf.concat([x, x], 1), ("ConcatV2", "concat", [None, 8])),
        (lambda x: tf.concat([x], 1), ("Identity", "concat/concat", [None, 4])),
        (lambda x: tf.gather(x, [0, 1, 2]), ("GatherV2", "GatherV2", [3, 4])),
        (lambda x: tf.slice(x, [0, 1], [-1, 2]), ("Slice", "Slice", [None, 2])),
        (lambda x: tf.where(x > 0, x, x), ("Select", "Select", [None, 4])),
        (lambda x: tf.where(x > 0), ("Where", "Where", [None, 2])),
        (lambda x: tf.one_hot([1, 2], 5), ("OneHot", "one_hot", [2, 5])),
        (lambda x: tf.stop_gradient(x), ("StopGradient", "StopGradient", [None, 4])),
        (lambda x: tf.fill([2, 3], 0.5), ("Fill", "Fill", [2, 3])),
        (lambda x: tf.zeros([2, 3]), ("Const", "zeros", [2, 3])),
        (lambda x: tf.zeros([100, 100]), ("Fill", "zeros", [100, 100])),
        (lambda x: tf.ones_like(x), ("Fill", "ones_like", [None, 4])),
        (lambda x: tf.zeros_like(x), ("ZerosLike", "zeros_like", [None, 4])),
        (lambda x: tf.shape(x), ("Shape", "Shape", [2])),
        (lambda x: tf.size(x), ("Size", "Size", [])),
        (lambda x: tf.rank(x), ("Const", "Rank", [])),
        (
            lambda x: tf.placeholder_with_default([1.0], [None]),
            ("PlaceholderWithDefault", "PlaceholderWithDefault", [None]),
        ),
        (lambda x: tf.as_string(x), ("AsString", "AsString", [None, 4])),
        (lambda x: tf.string_join(["a", ["b", "c"]], "-"), ("StringJoin", "StringJoin", [2])),
        (lambda x: tf.random_normal([2, 3]), ("Add", "random_normal", [2, 3])),
        (lambda x: tf.random_uniform([2], 0, 9, tf.int32), ("RandomUniformInt", "random_uniform", [2])),
        (lambda x: tf.nn.softmax(x), ("Softmax", "Softmax", [None, 4])),
        (lambda x: tf.nn.bias_add(x, [1.0] * 4), ("BiasAdd", "BiasAdd", [None, 4])),
        (lambda x: tf.nn.xw_plus_b(x, tf.ones([4, 2]), [1.0, 2.0]), ("BiasAdd", "xw_plus_b", [None, 2])),
        (lambda x: tf.nn.l2_loss(x), ("L2Loss", "L2Loss", [])),
        (lambda x: tf.nn.relu_layer(x, tf.ones([4, 2]), [1.0, 2.0]), ("Relu", "relu_layer", [None, 2])),
        (lambda x: tf.nn.top_k(x, 2).indices, ("TopKV2", "TopKV2", [None, 2])),
        (
            lambda x: tf.nn.softmax_cross_entropy_with_logits(labels=x, logits=x),
            ("SoftmaxCrossEntropyWithLogits", "softmax_cross_entropy_with_logits_sg", [None]),
        ),
        (
            lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=x_of(None, dtype=tf.int64), logits=x, name="l"
            ),
            ("SparseSoftmaxCrossEntropyWithLogits", "l/l", [None]),
        ),
        (
            lambda x: tf.nn.conv2d(tf.ones([1, 8, 8, 3]), tf.ones([3, 3, 3, 5]), [1, 2, 2, 1], "SAME"),
            ("Conv2D", "Conv2D", [1, 4, 4, 5]),
        ),
        (lambda x: tf.nn.max_pool(tf.ones([1, 8, 8, 3]), 2, 2, "VALID"), ("MaxPool", "MaxPool", [1, 4, 4, 3])),
    ],
)
def test_functions(build, expected):
    assert summary(build(x_of(None, 4))) == expected


def test_split_takes_the_arguments_in_the_order_of_tensorflow_1():
    assert [t.shape.as_list() for t in tf.split(x_of(None, 4), 2, 1)] == [[None, 2]] * 2
    assert [t.shape.as_list() for t in tf.split(x_of(6), [2, 4])] == [[2], [4]]
    assert [t.shape.as_list() for t in tf.unstack(x_of(2, 3))] == [[3], [3]]
    with pytest.raises(ValueError, match="Cannot infer num"):
        tf.unstack(x_of(None, 3))


def test_reductions_of_unknown_rank_count_the_dimensions_when_they_run():
    total = tf.reduce_sum(tf.placeholder(tf.float32))

    assert total.op.inputs[1].op.type == "Range"
    assert total.shape.as_list() == []


def test_old_and_new_argument_names_exclude_each_other():
    with pytest.raises(ValueError, match="Cannot specify both 'axis' and 'reduction_indices'"):
        tf.reduce_sum(x_of(3), axis=0, reduction_indices=0)


def test_a_softmax_over_another_axis_exchanges_axes():
    result = tf.nn.softmax(x_of(2, 3, 4), axis=1)

    assert summary(result) == ("Transpose", "Softmax", [2, 3, 4])
    with pytest.raises(ValueError, match="axis 5 is not in"):
        tf.nn.softmax(x_of(2, 3), axis=5)


def test_cross_entropies_take_named_arguments_and_matching_ranks():
    x = x_of(None, 4)

    with pytest.raises(ValueError, match="Only call `softmax_cross_entropy_with_logits` with named arguments"):
        tf.nn.softmax_cross_entropy_with_logits(x, logits=x)
    with pytest.raises(ValueError, match="Both labels and logits must be provided"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(logits=x)
    with pytest.raises(ValueError, match="Rank mismatch"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=x_of(2, 2, dtype=tf.int32), logits=x)
    with pytest.raises(ValueError, match="must have the same shape"):
        tf.nn.sigmoid_cross_entropy_with_logits(labels=x_of(3, dtype=tf.float64), logits=x)
    with pytest.raises(ValueError, match="Shape mismatch: The shape of labels"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=x_of(3, dtype=tf.int32), logits=x_of(2, 3))
    with pytest.raises(ValueError, match="Logits cannot be scalars"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=1, logits=1.0)


def test_logits_of_more_dimensions_are_flattened_to_rows():
    x = x_of(None, 5, 4)
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=x, logits=x)
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=x_of(None, 5, dtype=tf.int32), logits=x)

    assert summary(loss)[::2] == ("Reshape", [None, 5])
    assert summary(sparse)[::2] == ("Reshape", [None, 5])


def test_labels_of_one_row_serve_for_all_logits():
    logits = x_of(None, 3)
    losses = [
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
        for labels in ([0.25, 0.5, 0.25], [[0.25, 0.5, 0.25]])
    ]

    with tf.Session() as session:
        flat, row = session.run(losses, {logits: [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]})
    assert flat == pytest.approx([1.4076059, 1.0986123])
    assert row == pytest.approx(flat)


def test_dropout_that_drops_nothing_is_its_input():
    x = x_of(None, 4)

    assert tf.nn.dropout(x, keep_prob=1.0) is x
    assert tf.nn.dropout(x, rate=0.5).shape.as_list() == [None, 4]
    with pytest.raises(ValueError, match="range"):
        tf.nn.dropout(x, rate=1.5)
    with pytest.raises(ValueError, match="one of rate and keep_prob"):
        tf.nn.dropout(x)


# --- control flow ---


def test_group_waits_for_each_device_where_it_is():
    with tf.device("/job:ps"):
        a = tf.constant(1, name="a")
    with tf.device("/job:worker"):
        b = tf.constant(1, name="b")

    on_one = tf.group(a, [a.op], name="one")
    on_two = tf.group(a, b, name="two")

    assert [op.name for op in on_one.control_inputs] == ["a"]
    assert on_one.device == "/job:ps"
    assert [(op.device, op.control_inputs) for op in on_two.control_inputs] == [
        ("/job:ps", [a.op]),
        ("/job:worker", [b.op]),
    ]
    assert on_two.device == ""
    assert tf.group().type == "NoOp"
    with pytest.raises(TypeError, match=r"Expected tf\.Tensor or tf\.Operation"):
        tf.group(3)


def test_a_tuple_gates_all_its_tensors():
    a, b = tf.constant(1, name="a"), tf.constant(2, name="b")

    first, second, third = tf.tuple([a, None, b], control_inputs=[tf.no_op(name="n")])

    (gate,) = first.op.control_inputs
    assert second is None
    assert third.op.control_inputs == [gate]
    assert {op.name for op in gate.control_inputs} == {"a", "b", "n"}
    with pytest.raises(ValueError, match="Must have at least one Tensor"):
        tf.tuple([None])


def test_switch_and_merge_keep_references():
    from tenfold.ops.control_flow_primitives import merge, switch, switch_ref_or_tensor

    v = tf.Variable(1.0, use_resource=False)
    off, on = switch_ref_or_tensor(v._ref(), tf.constant(True))
    assert (off.op.type, merge([off, on]).output.op.type) == ("RefSwitch", "RefMerge")
    off, on = switch(tf.constant(1), True)
    assert (on.op.type, merge([off, on]).output.op.type) == ("Switch", "Merge")


def test_printing_passes_its_input():
    x = x_of(2)

    assert summary(tf.Print(x, [x, x], "now", first_n=3)) == ("Print", "Print", [2])
    assert tf.Assert(True, [1, "text"]).type == "Assert"
    # Values that may be on another device are looked at only if the condition is false.
    assert tf.Assert(True, [x]).type == "Merge"


# --- seeds ---


def seeds(tensor):
    op = tensor.op.inputs[0].op.inputs[0].op
    return op.get_attr("seed"), op.get_attr("seed2")


def test_without_seeds_the_start_is_random():
    assert seeds(tf.random_normal([2])) == (0, 0)


def test_an_operation_seed_goes_with_the_default_graph_seed():
    assert seeds(tf.random_normal([2], seed=7)) == (87654321, 7)


def test_a_graph_seed_goes_with_the_number_of_operations():
    tf.set_random_seed(5)

    # shape, mean and stddev are made before the seed is asked for.
    assert seeds(tf.random_normal([2])) == (5, 3)
    assert seeds(tf.random_normal([2], seed=7)) == (5, 7)


def test_two_zero_seeds_are_not_left_to_chance():
    tf.set_random_seed(0)

    assert tf.get_seed(0) == (0, 2**31 - 1)


def test_uniform_integers_need_a_limit():
    with pytest.raises(ValueError, match="Must specify maxval for integer dtype"):
        tf.random_uniform([2], dtype=tf.int32)


@pytest.mark.parametrize("labels", [tf.float64, tf.int32])
@pytest.mark.parametrize("logits", [tf.float32, tf.float16])
def test_labels_become_of_the_logits_type_and_halves_are_computed_wide(labels: tf.DType, logits: tf.DType) -> None:
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=x_of(2, 3, dtype=labels), logits=x_of(2, 3, dtype=logits))

    made = [op for op in loss.graph.get_operations() if op.type == "SoftmaxCrossEntropyWithLogits"]
    assert loss.dtype == logits
    assert [tensor.dtype for tensor in made[0].inputs] == [tf.float32, tf.float32]


def test_a_dilation_reaches_the_transposed_convolution():
    made = tf.nn.conv1d_transpose(x_of(2, 6, 3), np.ones([3, 2, 3], np.float32), [2, 6, 2], 1, dilations=2)

    (op,) = [op for op in made.graph.get_operations() if op.type == "Conv2DBackpropInput"]
    assert op.get_attr("dilations") == [1, 1, 2, 1]
