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


def test_control_dependencies_around_an_import_hold_for_what_has_no_producer(graph):
    before = tf.no_op(name="before")

    with tf.control_dependencies([before]):
        x, w, y = tf.import_graph_def(exported(product), return_elements=["x", "w", "y"], name="")

    assert list(x.node_def.input) == ["^before"]
    assert list(w.node_def.input) == ["^before"]
    assert list(y.node_def.input) == ["x", "w", "^first"]


class TestColocation:
    """What is colocated with a node goes where that node goes: it is never moved from its variable."""

    def chain(self):
        a = tf.constant(1, name="a")
        with tf.colocate_with(a):
            tf.identity(a, name="b")
        tf.identity(a, name="free")

    def test_groups_get_the_prefix(self):
        b, c = tf.import_graph_def(exported(self.chain), return_elements=["b", "free"], name="p")

        assert b.colocation_groups() == [b"loc:@p/a"]
        assert c.colocation_groups() == [b"loc:@p/free"]

    def test_groups_follow_names_that_were_taken(self):
        tf.constant(7, name="a")

        (b,) = tf.import_graph_def(exported(self.chain), return_elements=["b"], name="")

        assert b.colocation_groups() == [b"loc:@a_1"]
        assert b.inputs[0].op.name == "a_1"

    def test_a_device_function_places_the_node_that_is_followed(self):
        asked = []

        def placed(op):
            asked.append(op.name)
            return "/job:ps/task:1" if op.type == "Const" else "/job:worker/task:0"

        with tf.device(placed):
            a, b, free = tf.import_graph_def(exported(self.chain), return_elements=["a", "b", "free"], name="")

        assert (a.device, b.device, free.device) == ("/job:ps/task:1", "/job:ps/task:1", "/job:worker/task:0")
        assert sorted(asked) == ["a", "free"]

    def test_a_training_on_one_machine_is_moved_to_a_cluster(self, graph):
        def build():
            v = tf.Variable(1.0, name="v")
            tf.train.GradientDescentOptimizer(0.1).minimize(v * v)

        with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")):
            tf.import_graph_def(exported(build), name="")

        on_ps = {op.name for op in graph.get_operations() if op.device == "/job:ps/task:0"}
        assert on_ps == {"v", "v/Assign", "v/read", "GradientDescent/update_v/ApplyGradientDescent"}
        assert {op.device for op in graph.get_operations() if op.name not in on_ps} == {"/job:worker/task:0"}

    def test_its_own_request_counts_only_where_no_other_node_is_named(self):
        graph_def = exported(self.chain)
        nodes = {node.name: node for node in graph_def.node}
        nodes["b"].device = "/job:elsewhere"
        nodes["free"].device = "/job:own"
        nodes["free"].attr["_class"].list.s.append(b"loc:@free")

        with tf.device("/job:w"):
            b, free = tf.import_graph_def(graph_def, return_elements=["b", "free"], name="")

        assert (b.device, free.device) == ("/job:w", "/job:own")

    @pytest.mark.parametrize("order", [1, -1])
    def test_a_node_that_follows_a_follower_finds_the_device(self, order):
        graph_def = tf.GraphDef()
        names = [f"n{number}" for number in range(1200)]
        for name, other in list(zip(names[1:], names, strict=False))[::order]:
            node = graph_def.node.add(name=name, op="NoOp")
            node.attr["_class"].list.s.append(b"loc:@" + other.encode())
        graph_def.node.add(name="n0", op="NoOp", device="/job:ps")

        tf.import_graph_def(graph_def, name="")

        assert {op.device for op in tf.get_default_graph().get_operations()} == {"/job:ps"}

    def test_a_circle_has_no_device(self):
        graph_def = tf.GraphDef()
        for name, other in ("ab", "bc", "ca"):
            node = graph_def.node.add(name=name, op="NoOp", device="/job:ps")
            node.attr["_class"].list.s.append(b"loc:@" + other.encode())

        with tf.device("/job:w"):
            tf.import_graph_def(graph_def, name="")

        assert {op.device for op in tf.get_default_graph().get_operations()} == {""}

    def test_an_unknown_node_is_named_before_anything_is_added(self, graph):
        tf.no_op(name="there")
        graph_def = exported(self.chain)
        graph_def.node[-1].attr["_class"].list.s.append(b"loc:@there")

        with pytest.raises(ValueError, match="Node 'free' expects to be colocated with unknown node 'there'"):
            tf.import_graph_def(graph_def, name="")

        assert [op.name for op in graph.get_operations()] == ["there"]


class TestTakenNames:
    """A name that the graph has is made unique; every reference within the GraphDef follows."""

    @pytest.mark.parametrize(("name", "prefix"), [("", ""), ("p/", "p/")])
    def test_an_import_can_be_repeated(self, graph, name, prefix):
        for _ in range(2):
            y, first = tf.import_graph_def(exported(product), return_elements=["y:0", "first"], name=name)

        assert (y.name, first.name) == (f"{prefix}y_1:0", f"{prefix}first_1")
        assert [tensor.name for tensor in y.op.inputs] == [f"{prefix}x_1:0", f"{prefix}w_1:0"]
        assert y.op.control_inputs == [first]

    def test_a_scope_with_nodes_is_taken_and_one_without_is_not(self):
        tf.no_op(name="x/inner")
        with tf.name_scope("w"):
            pass

        x, w = tf.import_graph_def(exported(product), return_elements=["x", "w"], name="")

        assert (x.name, w.name) == ("x_1", "w")

    def test_case_counts(self):
        tf.no_op(name="X")

        assert tf.import_graph_def(exported(product), return_elements=["x"], name="")[0].name == "x"

    def test_a_new_name_is_none_of_the_import(self):
        def build():
            for name in ("a", "a_1", "a_2/inner"):
                tf.no_op(name=name)

        tf.no_op(name="a")

        found = tf.import_graph_def(exported(build), return_elements=["a", "a_1", "a_2/inner"], name="")

        assert [op.name for op in found] == ["a_3", "a_1", "a_2/inner"]

    def test_names_asked_for_later_are_unique_too(self):
        for _ in range(2):
            tf.import_graph_def(exported(product), name="")

        assert tf.no_op(name="y").name == "y_2"

    def test_a_replaced_input_stays(self):
        ours = tf.ones([5, 2], name="x")

        y, x = tf.import_graph_def(exported(product), input_map={"x": ours}, return_elements=["y", "x"], name="")

        assert y.inputs[0] is ours
        assert x.name == "x_1"

    def test_loops_of_two_imports_run_each_for_itself(self):
        def build():
            turns = tf.placeholder_with_default(3, [], name="turns")
            tf.while_loop(lambda i: i < turns, lambda i: i + 1, [tf.constant(0)])

        graph_def = exported(build)
        results = [
            tf.import_graph_def(graph_def, {"turns": tf.constant(n)}, return_elements=["while/Exit:0"], name="")
            for n in (3, 5)
        ]

        with tf.Session() as session:
            assert session.run(results) == [[3], [5]]


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
