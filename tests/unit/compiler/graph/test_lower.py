"""What becomes of functional nodes, node for node: names, inputs, control edges, devices, and what a node lies beside.

Whether the results compute what they should: test_functions.py.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from support.functions import call, const, function, graph, node
from tenfold_compiler.graph import lowering
from tenfold_compiler.graph.lower import lower
from tenfold_compiler.graph.node import assigned
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core import dtypes, errors
from tenfold_core.attr_value import to_proto

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType
    from tenfold_protos.attr_value_pb2 import AttrValue
    from tenfold_protos.node_def_pb2 import NodeDef

F32, I32, BOOL = dtypes.float32, dtypes.int32, dtypes.bool_
PS = "/job:ps/task:0"


def beside(*names: str) -> AttrValue:
    return to_proto([f"loc:@{name}".encode() for name in names], "list(string)")


ON_DEVICES = [
    node("a", "Neg", "x", T=F32, device="/gpu:1", _class=beside("x")),
    node("b", "Neg", "a:y:0", T=F32, _class=beside("a", "elsewhere")),
]
IS_LESS = [const("t", 9.0), node("l", "Less", "x", "t:output:0", T=F32)]
SUM_OF_TWO = [node("s", "AddN", "x:0", "x:1", T=F32, N="N"), node("k", "NoOp", "^x")]
IN_A_FRAME = [node("e", "Enter", "x", T=F32, frame_name="f"), node("o", "Exit", "e:output:0", T=F32)]
INNER = node("in", "PartitionedCall", Tin=[], Tout=[F32], f=call("one"))
BODIES = [
    function("twice", ["x: float"], ["y: float"], [node("add", "Add", "x", "x", T=F32)], y="add:z:0"),
    function(
        "neg", ["x: float"], ["y: float"], [node("n", "Neg", "x", T=F32), node("k", "NoOp")], control=["k"], y="n:y:0"
    ),
    function("less", ["x: float"], ["y: bool"], IS_LESS, y="l:z:0"),
    function("both", ["x: float", "z: float"], ["a: float", "b: float"], [], a="z", b="x"),
    function("nothing", ["x: float"], [], [node("after", "NoOp", "^x")], control=["after"]),
    function("one", [], ["y: float"], [const("c", 1.0)], y="c:output:0"),
    function("outer", [], ["y: float"], [INNER], y="in:output:0"),
    function("devices", ["x: float"], ["y: float"], ON_DEVICES, y="b:y:0"),
    function("frame", ["x: float"], ["y: float"], IN_A_FRAME, y="o:output:0"),
    function(
        "many",
        ["x: N * float"],
        ["y: float"],
        SUM_OF_TWO,
        attrs=["N: int"],
        y="s:sum:0",
    ),
    function(
        "fresh",
        ["x: float", "z: float"],
        ["y: float", "u: float"],
        [const("t", 9.0), node("a", "Add", "x", "t:output:0", T=F32)],
        y="a:z:0",
        u="t:output:0",
    ),
    function(
        "ordered",
        ["x: float"],
        ["y: float"],
        [
            node("first", "NoOp"),
            const("then", 1.0, None, "^first"),
            node("last", "Add", "then:output:0", "x", "^first", "^x", "^first", T=F32),
        ],
        y="last:z:0",
    ),
    function(
        "none",
        ["z: float", "x: N * float"],
        ["y: float"],
        [node("n", "Neg", "z", T=F32, _class=beside("x"))],
        attrs=["N: int"],
        y="n:y:0",
    ),
    function("itself", ["x: float"], ["y: float"], [node("s", "itself", "x")], y="s:y:0"),
]


def given(name: str, dtype: DType = F32) -> NodeDef:
    return node(name, "Placeholder", dtype=dtype)


def branch(op: str, *inputs: str, of: DType = BOOL, device: str = "") -> NodeDef:
    attrs = {"Tcond": of, "Tin": [F32], "Tout": [F32], "then_branch": call("twice"), "else_branch": call("neg")}
    return node("if", op, *inputs, device=device, **attrs)


def called(function_name: str, *inputs: str, gives: int = 1, device: str = "", **attrs: AttrValue) -> NodeDef:
    types = {"Tin": [F32] * sum(1 for each in inputs if each[0] != "^"), "Tout": [F32] * gives}
    return node("c", "PartitionedCall", *inputs, device=device, **types, f=call(function_name, **attrs))


X, P, W, V = given("x"), given("p", BOOL), node("w", "NoOp"), node("v", "NoOp")
THREE = [call("twice"), call("neg"), call("twice")]
TYPES_OF_IF = {"Tcond": BOOL, "Tin": [F32], "Tout": [F32]}
LOOP = {"T": [F32], "cond": call("less"), "body": call("neg")}


def lines(built: RuntimeGraph) -> str:
    found = []
    for each in built.nodes.values():
        inputs = ", ".join([*map(str, each.inputs), *(f"^{name}" for name in each.control_inputs)])
        groups = [group.decode().removeprefix("loc:@") for group in each.attrs.get("_class") or ()]
        place = f" beside {' '.join(groups)}" if groups else ""
        frame = f" in {each.attrs['frame_name'].decode()}" if "frame_name" in each.attrs else ""
        device = f" @{each.requested_device}" if each.requested_device else ""
        found.append(f"{each.name} = {each.op}({inputs}){frame}{place}{device}")
    return "\n".join(found)


def lowered(*nodes: NodeDef) -> RuntimeGraph:
    return lower(RuntimeGraph.from_graph_def(graph(nodes, *BODIES)))


CASES = {
    "an If that waits, on a device": (
        [P, X, W, branch("If", "p", "x", "^w", device=PS)],
        """
        p = Placeholder()
        x = Placeholder()
        w = NoOp()
        if/switch_pred = Switch(p:0, p:0, ^w) @/job:ps/task:0
        if/pivot_f = Identity(if/switch_pred:0) @/job:ps/task:0
        if/pivot_t = Identity(if/switch_pred:1) @/job:ps/task:0
        if/x = Switch(x:0, p:0) beside x
        if/else/x = Identity(if/x:0, ^if/pivot_f) beside if/x
        if/else/n = Neg(if/else/x:0) @/job:ps/task:0
        if/else/k = NoOp(^if/pivot_f) @/job:ps/task:0
        if/then/x = Identity(if/x:1, ^if/pivot_t) beside if/x
        if/then/add = Add(if/then/x:0, if/then/x:0) @/job:ps/task:0
        if/output = Merge(if/then/add:0, if/else/n:0) @/job:ps/task:0
        if/branch_executed = Merge(if/pivot_t:0, if/pivot_f:0, ^if/else/k, ^if/then/add) @/job:ps/task:0
        if = Identity(if/output:0, ^if/branch_executed) @/job:ps/task:0
        """,
    ),
    "an If": (
        [P, X, branch("StatelessIf", "p", "x")],
        """
        p = Placeholder()
        x = Placeholder()
        if/switch_pred = Switch(p:0, p:0)
        if/pivot_f = Identity(if/switch_pred:0)
        if/pivot_t = Identity(if/switch_pred:1)
        if/x = Switch(x:0, p:0) beside x
        if/else/n = Neg(if/x:0)
        if/else/k = NoOp(^if/pivot_f)
        if/then/add = Add(if/x:1, if/x:1)
        if/output = Merge(if/then/add:0, if/else/n:0)
        if/branch_executed = Merge(if/pivot_t:0, if/pivot_f:0, ^if/else/k, ^if/then/add)
        if = Identity(if/output:0, ^if/branch_executed)
        """,
    ),
    "a Case": (
        [given("p", I32), X, node("case", "Case", "p", "x", Tin=[F32], Tout=[F32], branches=THREE)],
        """
        p = Placeholder()
        x = Placeholder()
        case/branch_index = _SwitchN(p:0, p:0)
        case/pivot_0 = Identity(case/branch_index:0)
        case/pivot_1 = Identity(case/branch_index:1)
        case/pivot_2 = Identity(case/branch_index:2)
        case/x = _SwitchN(x:0, p:0) beside x
        case/branch0/add = Add(case/x:0, case/x:0)
        case/branch1/n = Neg(case/x:1)
        case/branch1/k = NoOp(^case/pivot_1)
        case/branch2/add = Add(case/x:2, case/x:2)
        case/merge = Merge(case/branch0/add:0, case/branch1/n:0, case/branch2/add:0)
        case/branch_executed = Merge(case/pivot_0:0, case/pivot_1:0, case/pivot_2:0, ^case/branch0/add,
            ^case/branch1/k, ^case/branch2/add)
        case = Identity(case/merge:0, ^case/branch_executed)
        """,
    ),
    "a While that waits, on a device": (
        [X, W, V, node("while", "While", "x", "^w", "^v", device=PS, **LOOP, parallel_iterations=3)],
        """
        x = Placeholder()
        w = NoOp()
        v = NoOp()
        while/LoopControlInputs = NoOp(^w, ^v) @/job:ps/task:0
        while/enter = Enter(x:0, ^while/LoopControlInputs) in while @/job:ps/task:0
        while/merge = Merge(while/enter:0, while/next_iteration:0) @/job:ps/task:0
        while/cond/t = Const(^while/merge) @/job:ps/task:0
        while/cond/l = Less(while/merge:0, while/cond/t:0) @/job:ps/task:0
        while/LoopCond = LoopCond(while/cond/l:0) @/job:ps/task:0
        while/x_switch = Switch(while/merge:0, while/LoopCond:0) @/job:ps/task:0
        while/exit = Exit(while/x_switch:0) @/job:ps/task:0
        while/loop_body_control = Identity(while/x_switch:1) @/job:ps/task:0
        while/body/n = Neg(while/x_switch:1) @/job:ps/task:0
        while/body/k = NoOp(^while/loop_body_control) @/job:ps/task:0
        while/next_iteration = NextIteration(while/body/n:0, ^while/body/k) @/job:ps/task:0
        while/LoopExecuted = NoOp(^while/exit) @/job:ps/task:0
        while = Identity(while/exit:0, ^while/LoopExecuted) @/job:ps/task:0
        """,
    ),
    "a While": (
        [X, node("while", "StatelessWhile", "x", **LOOP)],
        """
        x = Placeholder()
        while/enter = Enter(x:0) in while beside x
        while/merge = Merge(while/enter:0, while/next_iteration:0) beside while/enter
        while/cond/t = Const(^while/merge)
        while/cond/l = Less(while/merge:0, while/cond/t:0)
        while/LoopCond = LoopCond(while/cond/l:0)
        while/x_switch = Switch(while/merge:0, while/LoopCond:0) beside while/merge
        while/exit = Exit(while/x_switch:0) beside while/x_switch
        while/loop_body_control = Identity(while/x_switch:1)
        while/body/n = Neg(while/x_switch:1)
        while/body/k = NoOp(^while/loop_body_control)
        while/next_iteration = NextIteration(while/body/n:0, ^while/body/k) beside while/enter
        while/LoopExecuted = NoOp(^while/exit)
        while = Identity(while/exit:0, ^while/LoopExecuted)
        """,
    ),
    "a call that waits, on a device": (
        [X, W, called("neg", "x", "^w", device=PS), node("y", "Neg", "c", T=F32)],
        """
        x = Placeholder()
        w = NoOp()
        y = Neg(c/output:0)
        c/x = Identity(x:0, ^w) beside x
        c/n = Neg(c/x:0) @/job:ps/task:0
        c/k = NoOp(^w) @/job:ps/task:0
        c/output = Identity(c/n:0) beside c/n
        c = Identity(c/output:0, ^c/k) @/job:ps/task:0
        """,
    ),
    "an op that is a function": (
        [X, W, node("c", "twice", "x", "^w", device=PS), node("y", "NoOp", "^c")],
        """
        x = Placeholder()
        w = NoOp()
        y = NoOp(^c/add)
        c/x = Identity(x:0, ^w) @/job:ps/task:0
        c/add = Add(c/x:0, c/x:0) @/job:ps/task:0
        c/output = Identity(c/add:0) beside c/add
        c = Identity(c/output:0, ^c/add) @/job:ps/task:0
        """,
    ),
    "a call of two results that are its inputs": (
        [X, given("z"), called("both", "x", "z", gives=2)],
        """
        x = Placeholder()
        z = Placeholder()
        c/output = Identity(z:0) beside z
        c/output_1 = Identity(x:0) beside x
        c = IdentityN(c/output:0, c/output_1:0)
        """,
    ),
    "a call of no result": (
        [X, called("nothing", "x", gives=0), node("y", "NoOp", "^c")],
        """
        x = Placeholder()
        y = NoOp(^c/after)
        c/x = Identity(x:0) beside x
        c/after = NoOp(^c/x)
        c = NoOp(^c/after)
        """,
    ),
    "a call without inputs in another": (
        [W, V, called("outer", "^w", "^v")],
        """
        w = NoOp()
        v = NoOp()
        c/input_control_node = NoOp(^w, ^v)
        c/output = Identity(c/in/c:0) beside c/in/c
        c = Identity(c/output:0, ^c/in/c)
        c/in/c = Const(^c/input_control_node)
        """,
    ),
    "devices and groups of a body": (
        [X, called("devices", "x", device=PS)],
        """
        x = Placeholder()
        c/a = Neg(x:0) beside x @/job:ps/task:0/device:GPU:1
        c/b = Neg(c/a:0) beside c/a elsewhere @/job:ps/task:0
        c/output = Identity(c/b:0) beside c/b
        c = Identity(c/output:0, ^c/b) @/job:ps/task:0
        """,
    ),
    "a frame of a body": (
        [X, called("frame", "x"), node("d", "frame", "x")],
        """
        x = Placeholder()
        c/e = Enter(x:0) in c/f
        c/o = Exit(c/e:0)
        c/output = Identity(c/o:0) beside c/o
        c = Identity(c/output:0, ^c/o)
        d/e = Enter(x:0) in d/f
        d/o = Exit(d/e:0)
        d/output = Identity(d/o:0) beside d/o
        d = Identity(d/output:0, ^d/o)
        """,
    ),
    "an argument that is a list": (
        [X, called("many", "x", "x", N=to_proto(2, "int"))],
        """
        x = Placeholder()
        c/x = Identity(x:0) beside x
        c/x_1 = Identity(x:0) beside x
        c/s = AddN(c/x:0, c/x_1:0)
        c/k = NoOp(^c/x)
        c/output = Identity(c/s:0) beside c/s
        c = Identity(c/output:0, ^c/s)
        """,
    ),
    "a group of a list that is empty": (
        [X, called("none", "x", N=to_proto(0, "int"))],
        """
        x = Placeholder()
        c/n = Neg(x:0)
        c/output = Identity(c/n:0) beside c/n
        c = Identity(c/output:0, ^c/n)
        """,
    ),
    "a call in a graph that has loops": (
        [X, node("e", "Enter", "x", T=F32, frame_name="g"), node("c", "neg", "e")],
        """
        x = Placeholder()
        e = Enter(x:0) in g
        c/n = Neg(e:0)
        c/k = NoOp(^e)
        c/output_control_node = NoOp(^c/k, ^c/n)
        c/output = Identity(c/n:0) beside c/n
        c = Identity(c/output:0, ^c/output_control_node)
        """,
    ),
    "a call of two arguments in a graph that has loops": (
        [
            X,
            node("e", "Enter", "x", T=F32, frame_name="g"),
            node("h", "Enter", "x", T=F32, frame_name="g"),
            node("c", "fresh", "e", "h"),
            node("d", "one"),
        ],
        """
        x = Placeholder()
        e = Enter(x:0) in g
        h = Enter(x:0) in g
        c/t = Const(^e)
        c/a = Add(e:0, c/t:0)
        c/output_control_node = NoOp(^c/a, ^c/t)
        c/output = Identity(c/a:0) beside c/a
        c/output_1 = Identity(c/t:0) beside c/t
        c = IdentityN(c/output:0, c/output_1:0, ^c/output_control_node)
        d/c = Const()
        d/output = Identity(d/c:0) beside d/c
        d = Identity(d/output:0, ^d/c)
        """,
    ),
    "who waits for several calls": (
        [X, W, node("a", "twice", "x"), called("neg", "x"), node("y", "NoOp", "^c", "^w", "^a", "^c")],
        """
        x = Placeholder()
        w = NoOp()
        y = NoOp(^c/k, ^w, ^a/add)
        a/add = Add(x:0, x:0)
        a/output = Identity(a/add:0) beside a/add
        a = Identity(a/output:0, ^a/add)
        c/n = Neg(x:0)
        c/k = NoOp()
        c/output = Identity(c/n:0) beside c/n
        c = Identity(c/output:0, ^c/k)
        """,
    ),
    "control edges in a body": (
        [X, W, called("ordered", "x", "^w")],
        """
        x = Placeholder()
        w = NoOp()
        c/x = Identity(x:0, ^w) beside x
        c/first = NoOp(^w)
        c/then = Const(^c/first)
        c/last = Add(c/then:0, c/x:0, ^c/first, ^c/x)
        c/output = Identity(c/last:0) beside c/last
        c = Identity(c/output:0, ^c/last)
        """,
    ),
    "a function that calls itself": (
        [X, called("itself", "x")],
        """
        x = Placeholder()
        c/output = Identity(c/s:0) beside c/s
        c = Identity(c/output:0, ^c/s)
        c/s = PartitionedCall(x:0)
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_becomes_of(name: str) -> None:
    nodes, expected = CASES[name]

    assert lines(lowered(*nodes)) == textwrap.dedent(expected).strip().replace("\n    ", " ")


def test_the_nodes_of_a_loop_have_its_frame_and_types() -> None:
    built = lowered(X, node("while", "While", "x", **LOOP, parallel_iterations=3)).nodes

    enter = built["while/enter"].attrs
    assert (enter["frame_name"], enter["parallel_iterations"], enter["is_constant"]) == (b"while", 3, False)
    of_floats = ("enter", "merge", "x_switch", "exit", "next_iteration", "loop_body_control")
    assert {built[f"while/{name}"].attrs["T"] for name in of_floats} == {F32}
    assert built["while/merge"].attrs["N"] == 2


def test_what_is_shipped_of_an_enter_of_a_body_is_as_in_the_body_but_for_its_frame() -> None:
    """A part is made of node_def: two calls that shipped one frame's name would meet in it."""
    built = lowered(X, called("frame", "x"), node("d", "frame", "x")).nodes

    for caller in ("c", "d"):
        enter = built[f"{caller}/e"]
        assert enter.attrs["frame_name"] == enter.node_def.attr["frame_name"].s == f"{caller}/f".encode()
        assert (enter.node_def.op, enter.node_def.attr["T"].type) == ("Enter", F32.as_datatype_enum)


def test_a_resource_that_goes_round_no_loop_has_a_constant_enter() -> None:
    resource = dtypes.resource
    body = function(
        "keep",
        ["r: resource", "x: float"],
        ["s: resource", "y: float"],
        [
            node("i", "Identity", "r", T=resource),
            node("n", "Neg", "x", T=F32),
        ],
        s="i:output:0",
        y="n:y:0",
    )
    swap = function("swap", ["r: resource", "q: resource"], ["s: resource", "t: resource"], [], s="q", t="r")
    same = function("same", ["r: resource"], ["s: resource"], [], s="r")
    conds = [
        function(f"sure{len(types)}", types, ["y: bool"], [const("c", True)], y="c:output:0")
        for types in (["r: resource"], ["r: resource", "x: float"])
    ]
    of_two = function("of_two", ["r: resource", "q: resource"], ["y: bool"], [const("c", True)], y="c:output:0")
    handles = [node(name, "VarHandleOp", dtype=F32, shape=to_proto([], "shape")) for name in "rq"]

    def built(*inputs: str, cond: str, body_name: str, types: list[DType]) -> RuntimeGraph:
        loop = node("while", "While", *inputs, T=types, cond=call(cond), body=call(body_name))
        return lower(RuntimeGraph.from_graph_def(graph([X, *handles, loop], body, swap, same, of_two, *conds)))

    kept = built("r", "x", cond="sure2", body_name="keep", types=[resource, F32])
    assert kept.nodes["while/enter"].attrs["is_constant"] is True
    assert kept.nodes["while/enter_1"].attrs["is_constant"] is False
    assert lines(kept).splitlines()[-1] == "while = IdentityN(r:0, while/exit:0, ^while/LoopExecuted)"
    assert sum(each.op == "Exit" for each in kept.nodes.values()) == 1
    swapped = built("r", "q", cond="of_two", body_name="swap", types=[resource, resource])
    assert sum(each.op == "Exit" for each in swapped.nodes.values()) == 2
    with pytest.raises(errors.InvalidArgumentError, match="The loop 'while' has no variable that could change"):
        built("r", cond="sure1", body_name="same", types=[resource])


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_limit_counts_all_names_that_are_taken(over: int) -> None:
    graph_def = graph([X, called("twice", "x")], *BODIES)
    most = len(lower(RuntimeGraph.from_graph_def(graph_def)).nodes) + over

    if over >= 0:
        assert len(lower(RuntimeGraph.from_graph_def(graph_def), max_nodes=most).nodes) == 4
    else:
        with pytest.raises(errors.ResourceExhaustedError) as caught:
            lower(RuntimeGraph.from_graph_def(graph_def), max_nodes=most)
        assert f"With the bodies of its functions the graph has more than {most} nodes" in caught.value.message
        assert "TENFOLD_MASTER_NODES" in caught.value.message


def test_what_is_plain_from_the_library_is_refused_before_a_node_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowering, "free_name", None)

    with pytest.raises(errors.ResourceExhaustedError, match="has more than 3 nodes"):
        lower(RuntimeGraph.from_graph_def(graph([X, called("neg", "x")], *BODIES)), max_nodes=3)


def test_bodies_may_add_only_so_many_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    graph_def = graph([X, called("twice", "x")], *BODIES)
    monkeypatch.setattr(lowering, "MAX_BODY_NODES", 2)
    assert len(lower(RuntimeGraph.from_graph_def(graph_def)).nodes) == 4
    monkeypatch.setattr(lowering, "MAX_BODY_NODES", 1)

    with pytest.raises(errors.ResourceExhaustedError) as caught:
        lower(RuntimeGraph.from_graph_def(graph_def))

    assert "has more than 3 nodes: its functions add more than 1." in caught.value.message


@pytest.mark.parametrize(
    ("asking", "shown"),
    [
        (
            node("c", "PartitionedCall", "p", Tin=[BOOL], Tout=[F32], f=call("twice")),
            "'c' (PartitionedCall) and function 'twice' do not fit: the node has inputs (bool) and outputs (float), "
            "the function (float) and (float).",
        ),
        (
            node("c", "PartitionedCall", "x", Tin=[F32], Tout=[F32, F32], f=call("twice")),
            "'c' (PartitionedCall) and function 'twice' do not fit: the node has inputs (float) and outputs "
            "(float, float), the function (float) and (float).",
        ),
        (
            node("c", "If", "p", "x", **TYPES_OF_IF, then_branch=call("less"), else_branch=call("neg")),
            "'c' (If) and function 'less' do not fit: the node has inputs (float) and outputs (float), the function "
            "(float) and (bool).",
        ),
        (
            node("c", "While", "p", T=[BOOL], cond=call("less"), body=call("neg")),
            "'c' (While) and function 'less' do not fit: the node has inputs (bool) and outputs (bool), the function "
            "(float) and (bool).",
        ),
        (
            node("c", "While", "x", T=[F32], cond=call("less"), body=call("less")),
            "'c' (While) and function 'less' do not fit: the node has inputs (float) and outputs (float), the function "
            "(float) and (bool).",
        ),
        (
            node("c", "RemoteCall", "t", "x", Tin=[F32], Tout=[BOOL], f=call("twice")),
            "'c' (RemoteCall) and function 'twice' do not fit: the node has inputs (float) and outputs (bool), the "
            "function (float) and (float).",
        ),
    ],
)
def test_a_function_has_to_fit_its_node(asking: NodeDef, shown: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as caught:
        lowered(X, P, const("t", "/cpu:0"), asking)

    assert shown.replace("'c'", "Node 'c'", 1) in caught.value.message
    assert caught.value.message.count("{{node c}}") == 1


def test_an_error_of_a_function_is_of_the_node_that_needs_it() -> None:
    with pytest.raises(errors.NotFoundError, match="Function nowhere is not defined") as caught:
        lowered(X, called("nowhere", "x"))

    assert caught.value.node_name == "c"
    assert "{{node c}}" in caught.value.message


@pytest.mark.parametrize(
    ("nodes", "op"),
    [
        ([X, P, branch("If", "p", "x")], "If"),
        ([X, node("if", "While", "x", **LOOP)], "While"),
        ([given("p", I32), X, node("if", "Case", "p", "x", Tin=[F32], Tout=[F32], branches=THREE)], "Case"),
    ],
)
def test_branches_and_loops_stay_where_that_is_asked(nodes: list[NodeDef], op: str) -> None:
    calls = [*nodes, called("twice", "x")]
    kept = lower(RuntimeGraph.from_graph_def(graph(calls, *BODIES)), control_flow=False)
    assert kept.nodes["if"].op == op
    assert kept.nodes["c"].op == "Identity", "a call does not"
    nodes[-1].attr["_lower_using_switch_merge"].b = False
    assert lowered(*nodes).nodes["if"].op == op
    nodes[-1].attr["_lower_using_switch_merge"].b = True
    assert lowered(*nodes).nodes["if"].op == "Identity"
    del nodes[-1].attr["_lower_using_switch_merge"]


def test_a_condition_that_is_no_bool_leaves_the_node_to_the_worker() -> None:
    number = function("number", ["x: float"], ["y: float"], [], y="x")
    loop = node("w", "While", "x", T=[F32], cond=call("number"), body=call("neg"))
    nodes = [X, given("p", F32), branch("If", "p", "x", of=F32), loop]

    built = lower(RuntimeGraph.from_graph_def(graph(nodes, number, *BODIES)))

    assert (built.nodes["if"].op, built.nodes["w"].op) == ("If", "While")


def test_a_target_that_is_no_constant_leaves_a_remote_call() -> None:
    def remote(*targets: NodeDef, source: str = "t") -> RuntimeGraph:
        return lowered(X, *targets, node("c", "RemoteCall", source, "x", Tin=[F32], Tout=[F32], f=call("twice")))

    assert remote(const("t", PS)).nodes["c/add"].requested_device == PS
    assert remote(const("t", PS)).nodes["c"].requested_device == ""
    assert remote(given("t", dtypes.string)).nodes["c"].op == "RemoteCall"
    assert remote(const("t", [PS, PS])).nodes["c"].op == "RemoteCall"


def test_a_graph_without_functions_is_itself() -> None:
    plain = RuntimeGraph.from_graph_def(graph([X]))

    assert lower(plain) is plain


def test_nodes_that_have_a_device_are_lowered_no_more() -> None:
    first = RuntimeGraph.from_graph_def(graph([X, called("itself", "x")], *BODIES))
    again = lower(lower(first).with_nodes(assigned(each, f"{PS}/cpu:0") for each in lower(first).nodes.values()))

    assert again.nodes["c/s"].op == "PartitionedCall"
    assert list(again.nodes) == ["x", "c/output", "c", "c/s"]
    assert {str(tensor): str(to) for tensor, to in again.outputs.items()} == {"c:0": "c/output:0"}


def test_a_stateful_function_that_stays_is_a_stateful_call() -> None:
    body = function("f", ["x: T"], ["y: T"], [node("s", "f", "x", T="T")], attrs=["T"], stateful=True, y="s:y:0")
    asking = node("c", "f", "x", T=to_proto(F32, "type"), _mark=to_proto(True, "bool"))

    stays = lower(RuntimeGraph.from_graph_def(graph([X, asking], body))).nodes["c/s"]

    assert stays.op == stays.node_def.op == "StatefulPartitionedCall"
    assert (stays.attrs["Tin"], stays.attrs["Tout"]) == ([F32], [F32])
    f = stays.node_def.attr["f"].func
    assert (f.name, list(f.attr), f.attr["T"].type) == ("f", ["T"], 1)
