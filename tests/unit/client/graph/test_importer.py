"""import_graph_def: prefixes, replaced inputs, loops, libraries, devices, and GraphDefs that make no graph."""

from __future__ import annotations

import pytest

import tenfold as tf


def exported(build):
    with tf.Graph().as_default() as graph:
        build()
        return graph.as_graph_def()


def product():
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.ones([2, 3], name="w")
    with tf.control_dependencies([tf.no_op(name="first")]), tf.device("/job:ps"):
        tf.matmul(x, w, name="y")


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_nodes_get_a_prefix_and_keep_their_edges(graph):
    x, y = tf.import_graph_def(exported(product), return_elements=["x", "y:0"], name="net")

    assert (x.name, y.name) == ("net/x", "net/y:0")
    assert y.op.inputs[0] is x.outputs[0]
    assert [op.name for op in y.op.control_inputs] == ["net/first"]
    assert y.shape.as_list() == [None, 3]
    assert y.device == "/job:ps"
    assert tf.import_graph_def(exported(product), name="net") is None
    assert graph.get_operation_by_name("net_1/y").type == "MatMul"


def test_without_a_name_the_prefix_is_import_and_an_empty_one_gives_none(graph):
    tf.import_graph_def(exported(product))
    tf.import_graph_def(exported(product), name="")

    assert {"import/x", "x"} <= {op.name for op in graph.get_operations()}
    with pytest.raises(ValueError, match="Duplicate node name in graph"):
        tf.import_graph_def(exported(product), name="")


def test_inputs_can_be_replaced():
    ours = tf.ones([5, 2])

    (y,) = tf.import_graph_def(exported(product), input_map={"x:0": ours}, return_elements=["y:0"])

    assert y.op.inputs[0] is ours
    assert y.shape.as_list() == [5, 3]
    with pytest.raises(ValueError, match=r"Attempted to map inputs that were not found in graph_def: \[z:0\]"):
        tf.import_graph_def(exported(product), input_map={"z:0": ours})


def test_device_scopes_apply_around_the_devices_of_the_nodes():
    with tf.device("/task:3"):
        y, x = tf.import_graph_def(exported(product), return_elements=["y", "x"])

    assert (y.device, x.device) == ("/job:ps/task:3", "/task:3")


def test_colocation_groups_get_the_prefix():
    def build():
        a = tf.constant(1, name="a")
        with tf.colocate_with(a):
            tf.constant(1, name="b")

    (b,) = tf.import_graph_def(exported(build), return_elements=["b"], name="p")

    assert b.colocation_groups() == [b"loc:@p/a"]


def test_imported_constants_are_known_before_the_graph_runs():
    def build():
        tf.constant([2, 3], name="shape")

    (sizes,) = tf.import_graph_def(exported(build), return_elements=["shape:0"])

    assert tf.zeros(sizes).shape.as_list() == [2, 3]


def test_a_loop_is_closed():
    graph_def = tf.GraphDef()
    for name, op, inputs, attrs in (
        ("zero", "Const", [], {"dtype": 3, "value": tf.make_tensor_proto(0)}),
        ("go", "Const", [], {"dtype": 10, "value": tf.make_tensor_proto(False)}),
        ("enter", "Enter", ["zero"], {"T": 3, "frame_name": b"loop"}),
        ("merge", "Merge", ["enter", "next"], {"T": 3, "N": 2}),
        ("switch", "Switch", ["merge", "go"], {"T": 3}),
        ("next", "NextIteration", ["switch:1"], {"T": 3}),
        ("exit", "Exit", ["switch"], {"T": 3}),
    ):
        node = graph_def.node.add(name=name, op=op, input=inputs)
        for key, value in attrs.items():
            if isinstance(value, bytes):
                node.attr[key].s = value
            elif key == "N":
                node.attr[key].i = value
            elif isinstance(value, int):
                node.attr[key].type = value
            else:
                node.attr[key].tensor.CopyFrom(value)

    merge, following = tf.import_graph_def(graph_def, return_elements=["merge", "next"], name="")

    assert merge.inputs[1] is following.outputs[0]
    assert merge in following.outputs[0].consumers()
    assert list(merge.node_def.input) == ["enter", "next"]


def test_a_function_library_is_carried_along(graph):
    graph_def = exported(product)
    graph_def.library.function.add().signature.name = "f"

    tf.import_graph_def(graph_def)

    assert [function.signature.name for function in graph.as_graph_def().library.function] == ["f"]


def broken(change):
    graph_def = exported(product)
    change({node.name: node for node in graph_def.node}, graph_def)
    return graph_def


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda n, g: n["y"].input.__setitem__(0, "nowhere"), "Node 'y': Unknown input node 'nowhere'"),
        (lambda n, g: n["y"].input.__setitem__(0, "x:1"), "Connecting to invalid output 1 of source node x"),
        (lambda n, g: n["y"].input.__setitem__(0, "y"), "cycle through the nodes 'y' and 'y'"),
        (lambda n, g: n["y"].input.pop(1), "mentions 1 inputs; op MatMul takes 2"),
        (lambda n, g: setattr(n["y"], "op", "MatMull"), "Node 'y': Op type not registered 'MatMull'"),
        (lambda n, g: n["y"].attr["T"].Clear(), "Node 'y':.*attr 'T'"),
        (lambda n, g: setattr(n["y"].attr["T"], "placeholder", "T"), "Node 'y': attr 'T' is the placeholder 'T'"),
        (lambda n, g: setattr(n["x"].attr["dtype"], "type", 3), "Node 'y': Input 0 of node y was passed int32"),
        (lambda n, g: g.node.add().CopyFrom(n["x"]), "two nodes with the name 'x'"),
    ],
)
def test_a_graph_def_that_makes_no_graph_says_where(change, words):
    with pytest.raises(ValueError, match=words):
        tf.import_graph_def(broken(change))


def test_arguments_of_the_wrong_kind_are_refused():
    with pytest.raises(TypeError, match="graph_def must be a GraphDef proto"):
        tf.import_graph_def("x")
    with pytest.raises(TypeError, match="return_elements must be a list of strings"):
        tf.import_graph_def(tf.GraphDef(), return_elements=[7])
    with pytest.raises(TypeError, match="input_map must be a dictionary"):
        tf.import_graph_def(tf.GraphDef(), input_map={7: 1})
    with pytest.raises(ValueError, match="Requested return_element 'z' not found"):
        tf.import_graph_def(exported(product), return_elements=["z"])
