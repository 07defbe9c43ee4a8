"""The graph itself: names, look-up, collections, versions, finalizing, and what a tensor refuses to do."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tenfold as tf


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def op_names(graph):
    return [op.name for op in graph.get_operations()]


def test_names_are_made_unique_without_case(graph):
    for name in ("a", "a", "A", "a_1", "a"):
        tf.constant(1, name=name)

    assert op_names(graph) == ["a", "a_1", "A_2", "a_1_1", "a_3"]


def test_a_name_may_be_of_bytes(graph):
    assert [tf.constant(1, name=b"a").name, tf.add(1, 2, name=b"a").name] == ["a:0", "a_1:0"]


def test_name_scopes_nest_and_are_made_unique(graph):
    with tf.name_scope("s") as outer:
        with tf.name_scope("t") as inner:
            tf.constant(1, name="a")
        with tf.name_scope("t"):
            tf.constant(1, name="a")
        with tf.name_scope(None):
            tf.constant(1, name="a")
    with tf.name_scope("s"):
        tf.constant(1, name="a")

    assert (outer, inner) == ("s/", "s/t/")
    assert op_names(graph) == ["s/t/a", "s/t_1/a", "a", "s_1/a"]


def test_a_scope_that_ends_with_a_slash_is_entered_again(graph):
    with tf.name_scope("s") as scope:
        pass
    with tf.name_scope("elsewhere"), tf.name_scope(scope):
        tf.constant(1, name="a")

    assert op_names(graph) == ["s/a"]


@pytest.mark.parametrize("name", ["a b", "-a", "a$", "a\n"])
def test_a_name_with_forbidden_characters_is_refused(graph, name):
    with pytest.raises(ValueError, match="is not a valid scope name"):
        tf.name_scope(name).__enter__()
    with pytest.raises(ValueError, match="is not a valid"):
        tf.constant(1, name=name)


def test_values_without_any_name_are_refused(graph):
    with pytest.raises(ValueError, match="At least one of name"):
        tf.name_scope(None, None, [1])


def test_elements_are_found_by_name(graph):
    a = tf.constant(1, name="a")

    assert graph.get_operation_by_name("a") is a.op
    assert graph.get_tensor_by_name("a:0") is a
    assert graph.as_graph_element("a") is a.op
    assert graph.as_graph_element(a.op, allow_tensor=False) is a.op


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda g: g.get_tensor_by_name("b:0"), KeyError, "'b', does not exist in the graph"),
        (lambda g: g.get_tensor_by_name("a:1"), KeyError, "'a', exists but only has 1 outputs"),
        (lambda g: g.get_tensor_by_name("a"), ValueError, "refers to an Operation, not a Tensor"),
        (lambda g: g.get_tensor_by_name("b"), ValueError, r"looks like an \(invalid\) Operation name"),
        (lambda g: g.get_tensor_by_name("a:x"), ValueError, "not a valid one"),
        (lambda g: g.get_operation_by_name("b"), KeyError, "refers to an Operation not in the graph"),
        (lambda g: g.get_operation_by_name("a:0"), ValueError, "appears to refer to a Tensor"),
        (lambda g: g.get_tensor_by_name(1), TypeError, "Tensor names are strings"),
        (lambda g: g.get_operation_by_name(1), TypeError, "Operation names are strings"),
        (lambda g: g.as_graph_element(1), TypeError, "Can not convert a int into a Tensor or Operation"),
    ],
)
def test_what_does_not_exist_is_named(graph, call, error, words):
    tf.constant(1, name="a")

    with pytest.raises(error, match=words):
        call(graph)


def test_elements_of_another_graph_are_refused(graph):
    with tf.Graph().as_default():
        stranger = tf.constant(1)

    with pytest.raises(ValueError, match="is not an element of this graph"):
        graph.as_graph_element(stranger)
    with pytest.raises(ValueError, match="must be from the same graph"):
        tf.add(tf.constant(1), stranger)


def test_an_operation_is_added_to_the_graph_of_its_inputs(graph):
    a = tf.constant(1)
    with tf.Graph().as_default() as other:
        b = tf.identity(a)

    assert b.graph is graph
    assert other.get_operations() == []


def test_the_version_grows_and_graph_defs_can_start_at_one(graph):
    tf.constant(1, name="a")
    version = graph.version
    tf.constant(2, name="b")

    assert [node.name for node in graph.as_graph_def().node] == ["a", "b"]
    assert [node.name for node in graph.as_graph_def(from_version=version).node] == ["b"]
    assert graph.version == version + 1


def test_a_graph_def_can_carry_static_shapes(graph):
    tf.placeholder(tf.float32, [None, 3], name="x")

    (node,) = graph.as_graph_def(add_shapes=True).node

    assert [dim.size for dim in node.attr["_output_shapes"].list.shape[0].dim] == [-1, 3]


def test_a_number_repeated_is_held_once_and_counts_once_for_a_graph_def(graph):
    large = tf.constant(0.5, shape=[1 << 20, 1 << 9])
    short = tf.constant(0.5, shape=[8])

    graph_def = graph.as_graph_def()

    assert graph_def.ByteSize() < 1000
    assert large.op.constant.strides == (0, 0)
    assert large.op.constant[-1, -1] == 0.5
    assert not large.op.constant.flags.writeable
    assert short.op.constant.flags.c_contiguous


def test_a_finalized_graph_takes_no_operations(graph):
    graph.finalize()

    with pytest.raises(RuntimeError, match="Graph is finalized and cannot be modified"):
        tf.constant(1)
    with pytest.raises(RuntimeError, match="finalized"):
        tf.add_to_collection("c", 1)


def test_an_operation_whose_shapes_do_not_fit_leaves_the_graph_as_it_was(graph):
    a = tf.ones([2, 3])
    before = op_names(graph)

    with pytest.raises(ValueError, match=r"Dimensions must be equal, but are 3 and 2 .*'MatMul'.*\[2,3\], \[2,3\]"):
        tf.matmul(a, a)

    assert op_names(graph) == before
    assert a.consumers() == []


def test_each_thread_has_its_own_default_graph(graph):
    found = []
    thread = threading.Thread(target=lambda: found.append(tf.get_default_graph()))
    thread.start()
    thread.join()

    assert found[0] is not graph


def test_resetting_inside_a_nested_graph_is_refused(graph):
    with pytest.raises(AssertionError, match="nested graphs"):
        tf.reset_default_graph()


def test_collections_are_lists_that_scopes_filter(graph):
    a = tf.constant(1, name="a")
    with tf.name_scope("s"):
        b = tf.constant(1, name="b")
    tf.add_to_collection("c", a)
    graph.add_to_collections(["c", "d", "c"], b)

    assert tf.get_collection("c") == [a, b]
    assert tf.get_collection("c", scope="s") == [b]
    assert tf.get_collection("nothing") == []
    assert graph.get_all_collection_keys() == ["c", "d"]
    tf.get_collection("c").append(1)
    assert len(tf.get_collection("c")) == 2
    tf.get_collection_ref("c").append(1)
    assert len(tf.get_collection("c")) == 3
    graph.clear_collection("c")
    assert tf.get_collection("c") == []


def test_tensors_are_neither_booleans_nor_sequences_nor_arrays(graph):
    x = tf.placeholder(tf.float32, [3], name="x")

    with pytest.raises(TypeError, match=r"Using a `tf.Tensor` as a Python `bool` is not allowed"):
        bool(x)
    with pytest.raises(TypeError, match="not iterable"):
        iter(x)
    with pytest.raises(TypeError, match="len is not well defined"):
        len(x)
    with pytest.raises(NotImplementedError, match="Cannot convert a symbolic Tensor"):
        np.asarray(x)
    with pytest.raises(ValueError, match=r"Cannot evaluate tensor using `eval\(\)`: No default session is registered"):
        x.eval()
    with pytest.raises(ValueError, match=r"Cannot execute operation using `run\(\)`: No default session"):
        x.op.run()


def test_tensors_tell_what_they_are(graph):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = tf.identity(x, name="y")

    assert (x.name, x.op.name, x.value_index, x.dtype) == ("x:0", "x", 0, tf.float32)
    assert x.consumers() == [y.op]
    assert repr(x) == "<tf.Tensor 'x:0' shape=(?, 3) dtype=float32>"
    assert str(x) == 'Tensor("x:0", shape=(?, 3), dtype=float32)'
    assert repr(x.op) == "<tf.Operation 'x' type=Placeholder>"
    assert {x: 1}[x] == 1
    assert x != y


def test_shapes_can_be_added_but_not_contradicted(graph):
    x = tf.placeholder(tf.float32, [None, 3])
    x.set_shape([2, None])

    assert x.shape.as_list() == [2, 3]
    with pytest.raises(ValueError, match="not compatible"):
        x.set_shape([5, 3])


def test_attributes_are_read_as_in_tensorflow(graph):
    op = tf.placeholder(tf.float32, [2], name="x").op

    assert op.get_attr("dtype") == tf.float32
    assert op.get_attr("shape").dim[0].size == 2
    with pytest.raises(ValueError, match="Operation 'x' has no attr named 'nothing'"):
        op.get_attr("nothing")


def test_an_operation_knows_where_it_was_made(graph):
    op = tf.constant(1).op

    file, line, function = next(entry for entry in op.traceback if entry[0] == __file__)
    assert function == "test_an_operation_knows_where_it_was_made"
    assert line > 0
    assert file == __file__


def test_create_op_takes_attr_values(graph):
    op = graph.create_op("NoOp", [], name="n", attrs={"_note": tf.AttrValue(s=b"x")})

    assert (op.name, op.get_attr("_note")) == ("n", b"x")
    with pytest.raises(tf.errors.NotFoundError, match="Did you mean MatMul"):
        graph.create_op("MatMull", [])
    with pytest.raises(TypeError, match="gives"):
        graph.create_op(
            "Identity", [tf.constant(1)], [tf.float32], attrs={"T": tf.AttrValue(type=tf.int32.as_datatype_enum)}
        )


def test_unfeedable_tensors_are_remembered(graph):
    a, b = tf.constant(1), tf.constant(2)
    graph.prevent_feeding(a)
    graph.prevent_fetching(b.op)

    assert (graph.is_feedable(a), graph.is_feedable(b)) == (False, True)
    assert (graph.is_fetchable(a), graph.is_fetchable(b)) == (True, False)
