"""tf.graph_util: sub-graphs, frozen variables, graphs without what only training needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def names(graph_def: tf.GraphDef) -> list[str]:
    return [node.name for node in graph_def.node]


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_frozen_graph_needs_no_variables(use_resource: bool) -> None:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.get_variable("w", initializer=[[1.0], [2.0]], use_resource=use_resource)
    tf.matmul(x, w, name="y")
    tf.constant(1.0, name="unused")
    with tf.Session() as session:
        session.run(w.initializer)
        session.run(w.assign([[3.0], [4.0]]))
        frozen = tf.graph_util.convert_variables_to_constants(session, tf.get_default_graph().as_graph_def(), ["y"])
    assert "unused" not in names(frozen)
    assert not {node.op for node in frozen.node} & {"VariableV2", "VarHandleOp", "ReadVariableOp"}
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(frozen, name="")
        assert session.run("y:0", {"x:0": [[1.0, 1.0]]}) == [[7.0]]


def test_a_frozen_embedding_is_gathered() -> None:
    table = tf.get_variable("table", initializer=np.arange(6.0).reshape(3, 2), use_resource=True)
    ids = tf.placeholder(tf.int32, [None], name="ids")
    tf.identity(tf.nn.embedding_lookup(table, ids), name="rows")
    with tf.Session() as session:
        session.run(table.initializer)
        frozen = tf.graph_util.convert_variables_to_constants(session, tf.get_default_graph().as_graph_def(), ["rows"])
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(frozen, name="")
        assert session.run("rows:0", {"ids:0": [2]}).tolist() == [[4.0, 5.0]]


def test_lists_choose_what_is_frozen() -> None:
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")
    tf.add(a, b, name="sum")
    graph_def = tf.get_default_graph().as_graph_def()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for chosen in ({"variable_names_whitelist": ["a"]}, {"variable_names_blacklist": ["b"]}):
            frozen = tf.graph_util.convert_variables_to_constants(session, graph_def, ["sum"], **chosen)
            ops = {node.name: node.op for node in frozen.node}
            assert (ops["a"], ops["b"]) == ("Const", "VariableV2")


def test_a_sub_graph_has_what_its_nodes_need() -> None:
    a = tf.constant(1.0, name="a")
    with tf.control_dependencies([tf.no_op("first")]):
        tf.negative(a, name="b")
    tf.constant(2.0, name="c")
    graph_def = tf.get_default_graph().as_graph_def()
    assert names(tf.graph_util.extract_sub_graph(graph_def, ["b"])) == ["a", "first", "b"]
    with pytest.raises(AssertionError, match="nothing is not in graph"):
        tf.graph_util.extract_sub_graph(graph_def, ["nothing"])
    with pytest.raises(TypeError, match="must be a list"):
        tf.graph_util.extract_sub_graph(graph_def, "b")


def test_training_nodes_are_spliced_out() -> None:
    a = tf.constant(1.0, name="a")
    tf.negative(tf.check_numerics(tf.identity(a, name="i"), "m", name="check"), name="b")
    tf.identity(a, name="kept")
    pruned = tf.graph_util.remove_training_nodes(tf.get_default_graph().as_graph_def(), ["kept"])
    assert {node.name: list(node.input) for node in pruned.node} == {"a": [], "b": ["a"], "kept": ["a"]}


def test_some_nodes_run_on_the_cpu_only() -> None:
    assert tf.graph_util.must_run_on_cpu(tf.constant(["text"]).op)
    assert not tf.graph_util.must_run_on_cpu(tf.constant([1.0]).op)
    variable = tf.Variable(1.0, use_resource=False)
    assert tf.graph_util.must_run_on_cpu(variable.op, pin_variables_on_cpu=True)
    assert not tf.graph_util.must_run_on_cpu(variable.op)


def test_a_shape_is_found_by_an_inputs_name() -> None:
    tf.zeros([2, 3], name="z")
    assert tf.graph_util.tensor_shape_from_node_def_name(tf.get_default_graph(), "z").as_list() == [2, 3]
