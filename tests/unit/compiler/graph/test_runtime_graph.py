"""Building the runtime's graph from a GraphDef: what is accepted, and what a refusal says."""

from __future__ import annotations

import dataclasses

import pytest
from google.protobuf import text_format

from support.graph_text import parse_text, to_text
from support.verify_graph import verify
from tenfold_compiler.graph.node import assigned
from tenfold_compiler.graph.runtime_graph import MAX_NODES, RuntimeGraph
from tenfold_core import dtypes, errors
from tenfold_core.node_names import TensorName, parse_tensor_name
from tenfold_protos import graph_pb2
from tenfold_services.master.limits import MasterLimits

ADD = """
    a = Placeholder() dtype=float
    b = Const() dtype=float value=2.0
    sum = Add(a, b:0)
    done = NoOp(^sum)
"""


def raw(text: str) -> graph_pb2.GraphDef:
    """A GraphDef in protobuf's own text, for what `parse_text` would not let through."""
    return text_format.Parse(text, graph_pb2.GraphDef())


def refusal(graph_def: graph_pb2.GraphDef, **kwargs: int) -> errors.OpError:
    with pytest.raises(errors.OpError) as caught:
        RuntimeGraph.from_graph_def(graph_def, **kwargs)
    return caught.value


FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'
X = 'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }'


def test_nodes_are_looked_up_and_resolved() -> None:
    graph = verify(RuntimeGraph.from_graph_def(parse_text(ADD)), after="build")

    total = graph.nodes["sum"]
    assert total.inputs == (TensorName("a", 0), TensorName("b", 0))
    assert total.input_types == (dtypes.float32, dtypes.float32)
    assert total.output_types == (dtypes.float32,)
    assert graph.nodes["done"].control_inputs == ("sum",)
    assert [node.name for node in graph.consumers()["sum"]] == ["done"]


def test_defaults_are_filled_in() -> None:
    graph_def = parse_text("a = Placeholder() dtype=float\nm = MatMul(a, a)")
    assert "transpose_a" not in graph_def.node[1].attr

    assert RuntimeGraph.from_graph_def(graph_def).nodes["m"].attrs["transpose_a"] is False


def test_versions_are_kept() -> None:
    graph_def = parse_text(ADD)
    graph_def.versions.producer = 134

    assert RuntimeGraph.from_graph_def(graph_def).versions.producer == 134


def test_a_graph_that_is_extended_has_the_older_version() -> None:
    old, new = parse_text("a = NoOp()"), parse_text("b = NoOp()")
    old.versions.producer, new.versions.producer = 21, 134

    assert RuntimeGraph.from_graph_def(old).extend(new).versions.producer == 21
    assert RuntimeGraph.from_graph_def(new).extend(old).versions.producer == 21


def test_an_operation_that_went_before_the_graph_was_written_is_refused() -> None:
    graph_def = parse_text("x = Placeholder() dtype=float\na = TopK(x) k=1")
    graph_def.versions.producer = 6
    RuntimeGraph.from_graph_def(graph_def)

    graph_def.versions.producer = 7
    with pytest.raises(errors.UnimplementedError, match="Node 'a': Op TopK is not available in GraphDef version 7"):
        RuntimeGraph.from_graph_def(graph_def)


def test_an_operation_of_tensorflow_that_is_not_here_is_kept_with_the_types_of_its_neighbours() -> None:
    graph = RuntimeGraph.from_graph_def(
        raw(
            f'{X} node {{ name: "e" op: "EncodeProto" input: "x" attr {{ key: "n" value {{ i: 1 }} }} }} '
            'node { name: "s" op: "StringLength" input: "e:1" } node { name: "f" op: "EncodeProto" input: "e" }'
        )
    )

    node = graph.nodes["e"]
    assert node.op_def.is_stand_in
    assert node.attrs["n"] == 1
    assert ([t.name for t in node.input_types], [t.name for t in node.output_types]) == (
        ["float32"],
        ["variant", "string"],
    )
    assert [t.name for t in graph.nodes["f"].input_types] == ["variant"]
    later = graph.extend(raw('node { name: "g" op: "EncodeProto" input: ["e:1", "x"] }'))
    assert [t.name for t in later.nodes["g"].input_types] == ["string", "float32"]


def test_a_repeated_control_input_counts_once() -> None:
    graph = RuntimeGraph.from_graph_def(
        raw('node { name: "a" op: "NoOp" } node { name: "b" op: "NoOp" input: ["^a", "^a"] }')
    )

    assert graph.nodes["b"].control_inputs == ("a",)


@pytest.mark.parametrize(
    ("text", "node", "output"),
    [("a", "a", 0), ("a:1", "a", 1), ("scope/a:12", "scope/a", 12), ("a:b", "a:b", 0), (":3", "", 3), ("", "", 0)],
)
def test_tensor_names(text: str, node: str, output: int) -> None:
    assert parse_tensor_name(text) == TensorName(node, output)


@pytest.mark.parametrize(
    ("graph", "cls", "node", "text"),
    [
        (
            'node { name: "a" op: "Matmul" }',
            errors.NotFoundError,
            "a",
            "Op type not registered 'Matmul' in this server; did you mean 'MatMul'",
        ),
        ('node { name: "a" op: "_Recv" }', errors.InvalidArgumentError, "a", "op type '_Recv' is internal"),
        (
            f'{X} node {{ name: "a" op: "Neg" input: "xx" {FLOAT} }}',
            errors.InvalidArgumentError,
            "a",
            "Node 'a': Unknown input node 'xx'",
        ),
        (
            'node { name: "weights" op: "NoOp" } node { name: "a" op: "NoOp" input: "^wieghts" }',
            errors.InvalidArgumentError,
            "a",
            "Unknown input node '^wieghts'; did you mean 'weights'?",
        ),
        (
            f'{X} node {{ name: "a" op: "Neg" input: "x:1" {FLOAT} }}',
            errors.InvalidArgumentError,
            "a",
            "Connecting to invalid output 1 of source node x which has 1 outputs",
        ),
        (
            f'{X} node {{ name: "a" op: "Neg" input: "x" attr {{ key: "T" value {{ type: DT_INT32 }} }} }}',
            errors.InvalidArgumentError,
            "a",
            "Input 0 of node a was passed float from x:0 incompatible with expected int32",
        ),
        (
            f'{X} node {{ name: "a" op: "Assign" input: "x" input: "x" {FLOAT} }}',
            errors.InvalidArgumentError,
            "a",
            "was passed float from x:0 incompatible with expected float_ref",
        ),
        (
            f'{X} node {{ name: "a" op: "Add" input: "x" {FLOAT} }}',
            errors.InvalidArgumentError,
            "a",
            "has 1 inputs; Add takes 2 with these attributes (x, y)",
        ),
        (f'{X} node {{ name: "a" op: "NoOp" input: "x" }}', errors.InvalidArgumentError, "a", "NoOp takes 0"),
        ('node { name: "a" op: "Neg" }', errors.InvalidArgumentError, "a", "attr 'T' is missing"),
        (
            'node { name: "a" op: "Placeholder" attr { key: "dtype" value { i: 3 } } }',
            errors.InvalidArgumentError,
            "a",
            "attr 'dtype' holds a value of kind i",
        ),
        (
            'node { name: "a" op: "Placeholder" attr { key: "dtype" value { type: 77 } } }',
            errors.InvalidArgumentError,
            "a",
            "attr 'dtype'",
        ),
        (
            'node { name: "a" op: "Placeholder" attr { key: "dtype" value { placeholder: "T" } } }',
            errors.InvalidArgumentError,
            "a",
            "attr 'dtype' is the placeholder 'T'",
        ),
        (
            'node { name: "a" op: "AddN" attr { key: "N" value { i: 9000000000 } } ' + FLOAT + " }",
            errors.InvalidArgumentError,
            "a",
            "N",
        ),
        (
            'node { name: "a" op: "AddN" attr { key: "N" value { i: -1 } } ' + FLOAT + " }",
            errors.InvalidArgumentError,
            "a",
            "N",
        ),
        ('node { op: "NoOp" }', errors.InvalidArgumentError, None, "Illegal op name ''"),
        ('node { name: "a b" op: "NoOp" }', errors.InvalidArgumentError, "a b", "Illegal op name 'a b'"),
        ('node { name: "_a" op: "NoOp" }', errors.InvalidArgumentError, "_a", "Illegal op name '_a'"),
        (
            'node { name: "a" op: "NoOp" } node { name: "a" op: "NoOp" }',
            errors.InvalidArgumentError,
            "a",
            "is not unique",
        ),
        ('node { name: "a" op: "NoOp" device: "nonsense" }', errors.InvalidArgumentError, "a", "'nonsense'"),
        (
            f'{X} node {{ name: "b" op: "NoOp" }} node {{ name: "a" op: "Neg" input: ["^b", "x"] {FLOAT} }}',
            errors.InvalidArgumentError,
            "a",
            "All control inputs must follow all data inputs",
        ),
    ],
)
def test_what_is_wrong_is_said_and_where(graph: str, cls: type[errors.OpError], node: str | None, text: str) -> None:
    error = refusal(raw(graph))

    assert type(error) is cls
    assert text in error.message
    assert error.node_name == node


def test_a_cycle_is_shown() -> None:
    error = refusal(raw('node { name: "a" op: "NoOp" input: "^c" } node { name: "b" op: "NoOp" input: "^a" }'))
    assert "Unknown input node '^c'" in error.message

    error = refusal(
        raw(
            'node { name: "a" op: "NoOp" input: "^c" } node { name: "b" op: "NoOp" input: "^a" }'
            'node { name: "c" op: "NoOp" input: "^b" } node { name: "tail" op: "NoOp" input: "^c" }'
        )
    )
    assert isinstance(error, errors.InvalidArgumentError)
    assert "3 nodes in a cycle: " in error.message
    assert "tail" not in error.message


def test_a_node_that_feeds_itself_is_a_cycle() -> None:
    assert "1 nodes in a cycle: a -> a" in refusal(raw(f'node {{ name: "a" op: "Neg" input: "a" {FLOAT} }}')).message


LOOP = """
    start = Const() dtype=int32 value=0
    limit = Const() dtype=int32 value=10
    enter = Enter(start) frame_name='loop'
    enter_limit = Enter(limit) frame_name='loop' is_constant=true
    merge = Merge(enter, next) T=int32 N=2
    less = Less(merge, enter_limit)
    cond = LoopCond(less)
    switch = Switch(merge, cond)
    one = Const(^switch) dtype=int32 value=1
    add = Add(switch:1, one)
    next = NextIteration(add)
    exit = Exit(switch)
"""


def test_a_loop_is_no_cycle() -> None:
    graph = verify(RuntimeGraph.from_graph_def(parse_text(LOOP)), after="build")

    assert graph.nodes["merge"].inputs[1] == TensorName("next", 0)


def test_a_long_chain_does_not_recurse() -> None:
    lines = ["n0 = NoOp()", *(f"n{i} = NoOp(^n{i - 1})" for i in range(1, 3000))]

    assert len(RuntimeGraph.from_graph_def(parse_text("\n".join(lines))).nodes) == 3000


def test_extend_adds_nodes_that_may_use_the_old_ones() -> None:
    graph = RuntimeGraph.from_graph_def(parse_text(ADD))

    larger = graph.extend(raw(f'node {{ name: "neg" op: "Neg" input: "sum" {FLOAT} }}'))

    assert "neg" in larger.nodes
    assert "neg" not in graph.nodes
    assert larger.nodes["sum"] is graph.nodes["sum"]


def test_extend_refuses_a_name_that_is_taken() -> None:
    graph = RuntimeGraph.from_graph_def(parse_text(ADD))

    with pytest.raises(errors.InvalidArgumentError, match="includes node 'sum', which was created by a previous call"):
        graph.extend(raw('node { name: "sum" op: "NoOp" }'))


def test_nodes_of_one_absent_operation_have_each_their_own_types() -> None:
    graph = RuntimeGraph.from_graph_def(
        raw(
            f'{X} node {{ name: "n" op: "NoOp" }} node {{ name: "one" op: "EncodeProto" input: "x" }} '
            'node { name: "two" op: "EncodeProto" input: ["x", "x"] } '
            'node { name: "s" op: "StringLength" input: "two" }'
        )
    )
    assert [len(graph.nodes[name].input_types) for name in ("one", "two")] == [1, 2]
    assert [dtype.name for dtype in graph.nodes["two"].output_types] == ["string"]
    with pytest.raises(errors.UnimplementedError, match="EncodeProto"):
        graph.refuse_missing()
    RuntimeGraph.from_graph_def(parse_text(ADD)).refuse_missing()


def test_a_reference_is_taken_for_a_value_and_not_the_other_way_round() -> None:
    text = "v = VariableV2() dtype=float shape=[]\nc = Const() dtype=float value=1.0\n"
    graph = RuntimeGraph.from_graph_def(parse_text(text + "read = Neg(v)\nset = Assign(v, c)"))
    assert graph.tensor_type(TensorName("v", 0)).is_ref_dtype
    assert not graph.tensor_type(TensorName("read", 0)).is_ref_dtype
    with pytest.raises(errors.InvalidArgumentError, match="Input 0 of node set was passed float from c:0"):
        RuntimeGraph.from_graph_def(
            raw(
                'node { name: "c" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } } '
                f'node {{ name: "set" op: "Assign" input: ["c", "c"] {FLOAT} }}'
            )
        )
    with pytest.raises(IndexError):
        graph.tensor_type(TensorName("v", 1))


def test_a_pass_makes_another_graph_of_the_same_nodes() -> None:
    graph = RuntimeGraph.from_graph_def(parse_text(ADD))
    node = graph.nodes["sum"]
    placed = assigned(node, "/job:ps/replica:0/task:0/device:CPU:0")
    assert [getattr(placed, one.name) for one in dataclasses.fields(node) if one.name != "device"] == [
        getattr(node, one.name) for one in dataclasses.fields(node) if one.name != "device"
    ]
    assert placed.device == "/job:ps/replica:0/task:0/device:CPU:0"
    assert assigned(placed, placed.device) is placed
    other = graph.with_nodes([placed])
    assert dict(other.nodes) == {"sum": placed}
    assert (other.versions, other.library, other.outputs) == (graph.versions, graph.library, graph.outputs)


def test_a_graph_that_is_not_meant_for_this_reader_is_refused() -> None:
    graph_def = parse_text(ADD)
    graph_def.versions.min_consumer = 9999
    assert "min consumer version 9999" in refusal(graph_def).message
    graph = RuntimeGraph.from_graph_def(parse_text(ADD))
    with pytest.raises(errors.InvalidArgumentError, match="min consumer version 9999"):
        graph.extend(graph_def)


@pytest.mark.parametrize(
    ("taken", "text"),
    [("a:1", "Connecting to invalid output 1 of source node a"), ("nobody:1", "Unknown input node 'nobody'")],
)
def test_what_an_operation_that_is_not_here_takes_has_to_be_there(taken: str, text: str) -> None:
    graph = RuntimeGraph.from_graph_def(parse_text(ADD))
    with pytest.raises(errors.InvalidArgumentError, match=text):
        graph.extend(raw(f'node {{ name: "e" op: "EncodeProto" input: "{taken}" }}'))


def test_the_number_of_nodes_is_bounded() -> None:
    assert MasterLimits().nodes == MAX_NODES
    graph = RuntimeGraph.from_graph_def(parse_text(ADD), max_nodes=4)
    assert len(graph.extend(parse_text("more = NoOp()"), max_nodes=5).nodes) == 5
    with pytest.raises(errors.ResourceExhaustedError, match="would have 5 nodes"):
        graph.extend(parse_text("more = NoOp()"), max_nodes=4)
    error = refusal(parse_text(ADD), max_nodes=3)

    assert isinstance(error, errors.ResourceExhaustedError)
    assert "would have 4 nodes" in error.message


def test_text_form_shows_what_was_read() -> None:
    assert to_text(parse_text("a = Placeholder() dtype=float @/job:ps/task:0\nb = Neg(a)").node) == (
        "a = Placeholder() dtype=float @/job:ps/task:0\nb = Neg(a)"
    )


def test_what_lies_behind_nodes_takes_or_waits_for_something_of_them() -> None:
    graph = RuntimeGraph.from_graph_def(
        parse_text(
            "a = NoOp()\nb = Const(^a) dtype=float value=1.0\nc = Neg(b)\nd = NoOp(^c)\ne = NoOp()\nf = NoOp(^e, ^d)"
        )
    )

    assert graph.behind([]) == set()
    assert graph.behind(["e"]) == {"e", "f"}
    assert graph.behind(["b"]) == {"b", "c", "d", "f"}
    assert graph.behind(["a", "e"]) == set(graph.nodes)


def test_a_node_is_placed_as_it_is() -> None:
    node = RuntimeGraph.from_graph_def(parse_text("x = NoOp() @/job:ps")).nodes["x"]
    there = assigned(node, "/job:ps/replica:0/task:0/device:CPU:0")

    assert there.device == "/job:ps/replica:0/task:0/device:CPU:0"
    assert assigned(there, there.device) is there
    assert node.device == ""
    for field in dataclasses.fields(node):
        if field.name != "device":
            assert getattr(there, field.name) is getattr(node, field.name)
