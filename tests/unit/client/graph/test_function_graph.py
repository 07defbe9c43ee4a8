"""Functions of a graph: captures, copies by value, what runs for its effect, the definition that is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.graph.function_graph import build_function, readable_name

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def test_a_tensor_from_outside_becomes_a_parameter_once(graph: tf.Graph) -> None:
    outside = tf.constant(2.0)

    function = build_function(lambda x: [x * outside + outside], [(tf.float32, [])], "f")

    assert function.captured_inputs == [outside]
    signature = function.definition.signature
    assert [argument.name for argument in signature.input_arg] == ["args_0", "capture"]
    assert [argument.name for argument in signature.output_arg] == ["output_0"]
    assert graph.get_operations() == [outside.op]
    edges = {node.name: list(node.input) for node in function.definition.node_def}
    assert edges == {"mul": ["args_0", "capture"], "add": ["mul:z:0", "capture"]}


def test_functions_inside_functions_capture_through_both() -> None:
    outside = tf.constant(2.0)
    inner: list[Any] = []

    def body(x: Any) -> list[Any]:
        inner.append(build_function(lambda y: [y + x + outside], [(tf.float32, [])], "inner"))
        return [tf.add_n([x, *inner[0].captured_inputs])]

    outer = build_function(body, [(tf.float32, [])], "outer")

    assert [tensor.op.name for tensor in inner[0].captured_inputs] == ["args_0", "Const"]
    assert outer.captured_inputs == [outside]


def test_what_has_an_effect_runs_in_order() -> None:
    variable = tf.get_variable("v", [], initializer=tf.zeros_initializer(), use_resource=True)

    def body() -> list[Any]:
        variable.assign_add(1.0)
        return [variable.read_value()]

    definition = build_function(body, (), "f").definition

    assert definition.signature.is_stateful
    nodes = {node.name: node for node in definition.node_def}
    assert "AssignAddVariableOp" in {nodes[name].op for name in definition.control_ret.values()}
    reads = [node for node in definition.node_def if node.op == "ReadVariableOp"]
    assert any(text.startswith("^AssignAdd") for node in reads for text in node.input)


def test_by_value_copies_all_but_what_keeps_a_state(graph: tf.Graph) -> None:
    constant = tf.constant(3) + 4
    drawn, fed = tf.random_uniform([]), tf.placeholder(tf.float32)

    copied = build_function(lambda: [constant * 2], (), "f", by_value=True)

    assert copied.captured_inputs == []
    assert [node.op for node in copied.definition.node_def][-1] == "Mul"
    assert len(copied.definition.node_def) == 5
    with pytest.raises(ValueError, match=r"Cannot capture a stateful node \(name:.*, type:RandomUniform\) by value"):
        build_function(lambda: [drawn], (), "f", by_value=True)
    with pytest.raises(ValueError, match="Cannot capture a placeholder"):
        build_function(lambda: [fed], (), "f", by_value=True)
    looped = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    with pytest.raises(ValueError, match="Cannot capture a loop"):
        build_function(lambda: [looped], (), "f", by_value=True)


def test_names_of_functions_fit_a_graph() -> None:
    assert readable_name(lambda x: x) == "<lambda>"
    assert readable_name(tf.size) == "size"
    assert readable_name(type("Näme", (), {"__call__": lambda self: None})()) == "N_me"
