"""Functions of a graph's library: found, merged, instantiated, put in place, and called by the worker."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from support.functions import DEVICE, call, const, evaluate, function, graph, node
from support.programs import compile_program
from tenfold_compiler.graph import functions as functions_module
from tenfold_compiler.graph.function_library import FunctionLibrary
from tenfold_compiler.graph.functions import Functions
from tenfold_compiler.graph.lower import lower
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core import dtypes, errors
from tenfold_core.attr_value import to_proto
from tenfold_core.node_names import TensorName
from tenfold_kernels.registry import KernelNode, lookup
from tenfold_kernels.resources.state import ResourceManager
from tenfold_kernels.resources.waiting import Waiting
from tenfold_protos.attr_value_pb2 import AttrValue
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_protos.node_def_pb2 import NodeDef
from tenfold_services.worker.functions import FunctionRuntime

if TYPE_CHECKING:
    from tenfold_compiler.graph.node import Node
    from tenfold_protos.function_pb2 import FunctionDef

F32, I32, BOOL, RESOURCE = dtypes.float32, dtypes.int32, dtypes.bool_, dtypes.resource

TWICE = function("twice", ["x: float"], ["y: float"], [node("add", "Add", "x", "x", T=F32)], y="add:z:0")


def x(dtype: dtypes.DType = F32, name: str = "x") -> NodeDef:
    return node(name, "Placeholder", dtype=dtype)


def calls(name: str, function_name: str, *inputs: str, T: dtypes.DType = F32, device: str = "") -> NodeDef:
    count = sum(1 for each in inputs if not each.startswith("^"))
    return node(name, "PartitionedCall", *inputs, device=device, Tin=[T] * count, Tout=[T], f=call(function_name))


def type_attr(dtype: dtypes.DType) -> AttrValue:
    return to_proto(dtype, "type")


def lowered(*nodes: NodeDef, functions: tuple[FunctionDef, ...] = (TWICE,)) -> RuntimeGraph:
    return lower(RuntimeGraph.from_graph_def(graph(nodes, *functions)))


def of(built: RuntimeGraph, op: str) -> list[Node]:
    return [each for each in built.nodes.values() if each.op == op]


# -- the library ------------------------------------------------------------------------------------------------------


def test_a_function_may_come_twice_if_it_is_the_same() -> None:
    library = FunctionLibrary(graph([], TWICE).library).extended(graph([], TWICE).library)

    assert [each.signature.name for each in library.proto.function] == ["twice"]


def test_another_function_of_the_same_name_is_refused() -> None:
    other = function("twice", ["x: float"], ["y: float"], [], y="x")

    with pytest.raises(errors.InvalidArgumentError, match="'twice' because a different function with the same name"):
        FunctionLibrary(graph([], TWICE).library).extended(graph([], other).library)


def test_a_function_must_not_hide_an_op() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="'Add' because an op with the same name already exists"):
        FunctionLibrary(graph([], function("Add", [], [], [])).library)


def test_a_part_takes_the_functions_that_it_needs() -> None:
    body = [calls("c", "twice", "x")]
    outer = function("outer", ["x: float"], ["y: float"], body, y="c:output:0")
    library = FunctionLibrary(graph([], TWICE, outer, function("unused", [], [], [])).library)

    needed = library.reachable([calls("n", "outer", "a")])

    assert [each.signature.name for each in needed.function] == ["twice", "outer"]


# -- bodies -----------------------------------------------------------------------------------------------------------


def test_a_body_has_the_types_of_its_call() -> None:
    generic = function(
        "f", ["xs: N * T", "n: int32"], ["y: T"], [node("sum", "AddN", "xs:0", "xs:1", T="T", N="N")],
        attrs=["T", "N: int"], y="sum:sum:0",
    )  # fmt: skip
    functions = Functions(FunctionLibrary(graph([], generic).library))

    body = functions.body("f", {"T": type_attr(I32), "N": AttrValue(i=2)})

    assert (body.arg_types, body.output_types) == ((I32, I32, I32), (I32,))
    assert body.nodes[0].inputs == (TensorName("xs", 0), TensorName("xs", 1))
    assert [body.args[tensor] for tensor in body.nodes[0].inputs] == [0, 1]
    assert body.nodes[0].input_types == (I32, I32)
    assert functions.body("f", {"T": type_attr(I32), "N": AttrValue(i=2)}) is body


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        (function("f", ["x: float"], ["y: float"], [], y="nowhere:z:0"), "'nowhere:z:0' is no parameter"),
        (function("f", ["x: float"], ["y: float"], []), "what its output 'y' is"),
        (function("f", ["x: float"], ["y: int32"], [], y="x"), "a float, where it promises int32"),
        (
            function("f", ["x: float"], ["y: float"], [node("n", "Neg", "x", T="T")], y="n:y:0"),
            "needs attr 'T' of the call",
        ),
        (
            function("f", ["x: float"], ["y: float"], [node("n", "Neg", "x", T=I32)], y="n:y:0"),
            "takes x:0 as int32, which is float",
        ),
        (function("f", ["x: float"], ["y: float"], [], control=["gone"], y="x"), "control output 'gone'"),
        (
            function("f", ["x: float"], ["y: float"], [node("n", "Neg", "x", "^gone", T=F32)], y="n:y:0"),
            "waits for 'gone'",
        ),
        (
            function("f", ["x: float"], ["y: float"], [node("n", "Neg", "n:y:0", T=F32)], y="n:y:0"),
            "1 nodes in a cycle",
        ),
    ],
)
def test_a_wrong_body_is_explained(broken: FunctionDef, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as caught:
        lowered(x(), calls("c", "f", "x"), functions=(broken,))

    assert text in caught.value.message
    assert "{{node c" in caught.value.message


OUTPUT_TWO = [node("n", "Neg", "x", T=F32), node("m", "Neg", "n:y:1", T=F32)]


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ([node("n", "Neg", "x", T=F32), node("n", "Neg", "x", T=F32)], "it has 'n' twice"),
        ([node("n", "Neg", "x", T=F32), node("x", "Neg", "n:y:0", T=F32)], "it has 'x' twice"),
        (OUTPUT_TWO, "there is no 'n:1' in it"),
        ([node("n", "Neg", "x:1", T=F32)], "there is no 'x:1' in it"),
        ([node("n", "Neg", "x:a:b", T=F32)], "'x:a:b' is no parameter and no 'node:output:number' of it"),
        ([node("n", "Neg", "x", T=F32), node("m", "Neg", "n", T=F32)], "'n' is no parameter"),
        ([node("n", "Neg", "x", T=F32), node("m", "Neg", "n:z:0", T=F32)], "'n:z:0' is no parameter"),
        ([node("n", "Neg", "x", T=F32), node("m", "Neg", "n:y:0:0", T=F32)], "'n:y:0:0' is no parameter"),
        ([node("n", "Neg", "x", T=F32), node("m", "Neg", "n:y:1234567890", T=F32)], "'n:y:1234567890' is no parameter"),
        ([node("n", "Neg", "x", T=F32), node("m", "Neg", "n:y:123456789", T=F32)], "there is no 'n:123456789' in it"),
        ([node("n", "Neg", "x", "^m", T=F32), node("k", "NoOp", "^gone")], "node 'n' waits for 'm', which is not in"),
    ],
)
def test_each_edge_of_a_body_has_to_lead_somewhere(nodes: list[NodeDef], text: str) -> None:
    body = function("f", ["x: float"], ["y: float"], nodes, y="n:y:0")

    with pytest.raises(errors.InvalidArgumentError) as caught:
        Functions(FunctionLibrary(graph([], body).library)).body("f", {})

    assert caught.value.message.startswith("Function 'f' is wrong: ")
    assert text in caught.value.message


@pytest.mark.parametrize("edge", ["x", "x:0", "x:output", "x:output:0"])
def test_a_parameter_may_be_written_in_four_ways(edge: str) -> None:
    body = function("f", ["x: float"], ["y: float"], [node("n", "Neg", edge, "^x", T=F32)], y="n:y:0")

    found = Functions(FunctionLibrary(graph([], body).library)).body("f", {})

    assert found.nodes[0].inputs == (TensorName("x", 0),)
    assert found.nodes[0].control_inputs == ("x",)


def test_an_output_may_be_written_without_its_number_and_a_reference_taken_for_a_value() -> None:
    body = function(
        "f", [], ["y: float"],
        [node("v", "VariableV2", dtype=F32, shape=AttrValue(shape={})), node("n", "Neg", "v:ref", T=F32)], y="v:ref",
    )  # fmt: skip

    found = Functions(FunctionLibrary(graph([], body).library)).body("f", {})

    assert found.nodes[1].inputs == (TensorName("v", 0),)
    assert found.returns == (TensorName("v", 0),)


def nested(depth: int) -> AttrValue:
    """A function in an attribute of a function, and so on; the innermost has the "T" of the call."""
    value = AttrValue(placeholder="T")
    for number in range(depth):
        outer = AttrValue()
        target = outer.func if number % 2 else outer.list.func.add()
        target.name = "f"
        target.attr["a"].CopyFrom(value)
        value = outer
    return value


def innermost(value: AttrValue) -> AttrValue:
    while value.WhichOneof("value") in ("func", "list"):
        value = value.func.attr["a"] if value.WhichOneof("value") == "func" else value.list.func[0].attr["a"]
    return value


@pytest.mark.parametrize(("depth", "fits"), [(0, True), (1, True), (2, True), (4, True), (5, False)])
def test_attributes_are_filled_in_where_functions_have_them(
    depth: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions_module, "_MAX_ATTR_DEPTH", 4)
    made = node("n", "Neg", "x", T="T", _more=nested(depth))
    body = function("f", ["x: T"], ["y: T"], [made], attrs=["T"], y="n:y:0")
    functions = Functions(FunctionLibrary(graph([], body).library))

    if fits:
        found = functions.body("f", {"T": type_attr(F32)})
        assert innermost(found.nodes[0].node_def.attr["_more"]).type == 1
        assert innermost(body.node_def[0].attr["_more"]).placeholder == "T", "the library's own stays"
        again = functions.body("f", {"T": type_attr(I32), "_other": type_attr(F32)})
        assert innermost(again.nodes[0].node_def.attr["_more"]).type == 3
        assert functions.body("f", {"T": type_attr(F32), "_other": type_attr(F32)}) is found
    else:
        with pytest.raises(errors.InvalidArgumentError, match="attributes of node 'n' are nested more than 4 deep"):
            functions.body("f", {"T": type_attr(F32)})


def test_a_function_has_its_own_defaults_and_a_call_has_to_give_the_rest() -> None:
    body = function("f", ["x: float"], ["y: T"], [node("c", "Cast", "x", SrcT=F32, DstT="T")], attrs=["T"], y="c:y:0")
    body.signature.attr[0].default_value.type = 3
    functions = Functions(FunctionLibrary(graph([], body).library))

    assert functions.body("f", {}).output_types == (I32,)
    assert functions.body("f", {}).nodes[0].output_types == (I32,)
    assert functions.body("f", {"T": type_attr(F32)}).nodes[0].output_types == (F32,)
    body.node_def[0].attr["DstT"].placeholder = "U"
    with pytest.raises(errors.InvalidArgumentError, match="'c' needs attr 'U' of the call, which does not have it"):
        Functions(FunctionLibrary(graph([], body).library)).body("f", {})


def test_an_operation_that_is_nowhere_is_named_with_its_function() -> None:
    body = function("f", ["x: float"], ["y: float"], [node("n", "Negg", "x")], y="n:y:0")

    with pytest.raises(errors.NotFoundError) as caught:
        Functions(FunctionLibrary(graph([], body).library)).body("f", {})

    assert "Op type not registered 'Negg' in this server, for node 'n' of function 'f'" in caught.value.message
    assert "Neg" in caught.value.message.partition("function 'f'")[2]


def test_an_operation_of_tensorflow_that_is_not_here_has_the_types_that_its_function_promises() -> None:
    """Outputs of a list, of a count of none, and one that a node takes; inputs from a parameter and a node."""
    lost = NodeDef(name="lost", op="XlaDot", input=["x:0", "n:y:0", "^k"])
    body = function(
        "f",
        ["x: N * int32"],
        ["p: M * double", "q: N * float", "r: bool"],
        [node("n", "Neg", "x:0", T=I32), node("k", "NoOp"), lost, node("s", "Neg", "lost:more:0", T=dtypes.int64)],
        attrs=["N: int", "M: int"],
        p="lost:a:0",
        q="lost:b:0",
        r="lost:c:0",
    )
    counts = {"N": to_proto(1, "int"), "M": to_proto(0, "int")}

    found = Functions(FunctionLibrary(graph([], body).library)).body("f", counts)

    (made,) = (each for each in found.nodes if each.name == "lost")
    assert made.op_def.is_stand_in
    assert made.input_types == (I32, I32)
    assert sorted(dtype.name for dtype in made.output_types) == ["bool", "float32", "int64"]
    assert [found.nodes[2].output_types[tensor.output] for tensor in found.returns] == [F32, BOOL]
    assert found.nodes[2].output_types[found.nodes[3].inputs[0].output] is dtypes.int64


def test_lists_of_tensors_are_numbered_one_after_the_other() -> None:
    body = function(
        "f",
        ["a: float", "x: N * float", "b: float"],
        ["p: N * float", "q: float"],
        [node("i", "IdentityN", "b:0", "x:0", "x:1", "a", T=AttrValue()), node("k", "NoOp")],
        attrs=["N: int"],
        control=["k"],
        p="i:output:1",
        q="i:output:3",
    )
    body.node_def[0].attr["T"].list.type.extend([1, 1, 1, 1])

    found = Functions(FunctionLibrary(graph([], body).library)).body("f", {"N": to_proto(2, "int")})

    assert found.args == {TensorName("a", 0): 0, TensorName("x", 0): 1, TensorName("x", 1): 2, TensorName("b", 0): 3}
    assert found.first_arg == {"a": 0, "x": 1, "b": 3}
    assert found.arg_types == (F32,) * 4
    assert found.output_types == (F32,) * 3
    assert found.returns == (TensorName("i", 1), TensorName("i", 2), TensorName("i", 3))
    assert found.control_returns == ("k",)


def test_a_missing_function_is_named() -> None:
    with pytest.raises(
        errors.NotFoundError, match=r"Function twixe is not defined; did you mean 'twice'\?\.(?s:.*)node c"
    ):
        lowered(x(), calls("c", "twixe", "x"))


def test_a_call_must_fit_its_function() -> None:
    with pytest.raises(
        errors.InvalidArgumentError, match=r"inputs \(int32\) and outputs \(int32\), the function \(float"
    ):
        lowered(x(I32), calls("c", "twice", "x", T=I32))


def test_the_number_of_nodes_is_bounded_with_bodies() -> None:
    """Thirty functions, each calling the one before twice: a billion nodes."""
    functions = [TWICE]
    for number in range(30):
        before = functions[-1].signature.name
        nodes = [calls("a", before, "x"), calls("b", before, "a:output:0")]
        functions.append(function(f"f{number}", ["x: float"], ["y: float"], nodes, y="b:output:0"))

    with pytest.raises(errors.ResourceExhaustedError, match="more than 1000 nodes"):
        lower(RuntimeGraph.from_graph_def(graph([x(), calls("c", "f29", "x")], *functions)), max_nodes=1000)


# -- in place ---------------------------------------------------------------------------------------------------------


def test_a_call_is_replaced_by_the_body_and_can_still_be_fetched() -> None:
    graph_def = graph([x(), calls("c", "twice", "x"), node("after", "Neg", "c", T=F32)], TWICE)

    values = evaluate(graph_def, ["c:0", "after:0"], {"x:0": np.float32(3)})

    assert [float(value) for value in values] == [6, -6]


def test_what_is_fed_for_a_call_reaches_its_consumers() -> None:
    graph_def = graph([x(), calls("c", "twice", "x"), node("after", "Neg", "c", T=F32)], TWICE)

    assert evaluate(graph_def, ["after:0"], {"c:0": np.float32(1)})[0] == -1


def test_an_op_may_be_the_function_itself() -> None:
    graph_def = graph([x(), node("c", "twice", "x"), node("after", "Neg", "c", T=F32)], TWICE)

    assert evaluate(graph_def, ["after:0"], {"x:0": np.float32(3)})[0] == -6


def test_devices_of_a_body() -> None:
    inner = function(
        "f", ["x: float"], ["y: float"],
        [node("own", "Neg", "x", T=F32, device="/device:GPU:0"), node("none", "Neg", "own:y:0", T=F32)], y="none:y:0",
    )  # fmt: skip
    built = lowered(
        x(),
        calls("c", "f", "x", device="/job:ps/task:1"),
        node("d", "f", "x", device="/job:ps/task:1"),
        functions=(inner,),
    )

    asked = {name: built.nodes[name].requested_device for name in ("c/own", "c/none", "d/own", "d/none")}
    assert asked == {
        "c/own": "/job:ps/task:1/device:GPU:0",
        "c/none": "/job:ps/task:1",
        "d/own": "/job:ps/task:1",
        "d/none": "/job:ps/task:1",
    }


def test_side_effects_of_a_call_happen_before_what_waits_for_it() -> None:
    """What no node reads runs too, if it is a control output; a constant in the body waits for the call's turn."""
    body = function(
        "f", ["x: float"], ["y: float"],
        [node("check", "NoOp"), node("dead", "Neg", "x", T=F32)], control=["check"], y="x",
    )  # fmt: skip
    built = lowered(
        x(), node("before", "NoOp"), calls("c", "f", "x", "^before"), node("after", "NoOp", "^c"), functions=(body,)
    )

    assert built.nodes["after"].control_inputs == ("c/check",)
    assert built.nodes["c/check"].control_inputs == ("before",)
    assert built.nodes["c"].control_inputs == ("c/check",)


def test_an_extended_graph_may_call_and_use_old_calls() -> None:
    first = lowered(x(), calls("c", "twice", "x"))

    second = lower(first.extend(graph([calls("d", "twice", "c")], TWICE)))

    assert second.nodes["d/add"].inputs == (TensorName("c/output", 0),) * 2
    assert second.nodes["c/add"] is first.nodes["c/add"]


def test_two_loops_of_one_body_run_in_frames_of_their_own() -> None:
    body = function(
        "f", ["x: float"], ["y: float"],
        [node("e", "Enter", "x", T=F32, frame_name="loop"), node("out", "Exit", "e:output:0", T=F32)], y="out:output:0",
    )  # fmt: skip

    built = lowered(x(), calls("c", "f", "x"), calls("d", "f", "x"), functions=(body,))

    assert [each.attrs["frame_name"] for each in of(built, "Enter")] == [b"c/loop", b"d/loop"]
    assert built.nodes["c/e"].node_def.attr["frame_name"].s == b"c/loop"


# -- branches and loops -----------------------------------------------------------------------------------------------

NEG = function("neg", ["x: float"], ["y: float"], [node("n", "Neg", "x", T=F32)], y="n:y:0")
SAME = function("same", ["x: float"], ["y: float"], [], y="x")
TEN = function("ten", ["x: float"], ["y: float"], [const("k", 10.0)], y="k:output:0")


@pytest.mark.parametrize("op", ["If", "StatelessIf"])
@pytest.mark.parametrize(("taken", "expected"), [(True, 6), (False, 10)])
def test_if(op: str, taken: bool, expected: float) -> None:
    branches = {"then_branch": call("twice"), "else_branch": call("ten")}
    chosen = node("if", op, "p", "x", Tcond=BOOL, Tin=[F32], Tout=[F32], **branches)
    graph_def = graph([x(), x(BOOL, "p"), chosen, node("after", "Identity", "if", T=F32)], TWICE, TEN)

    values = evaluate(graph_def, ["if:0", "after:0"], {"x:0": np.float32(3), "p:0": np.array(taken)}, ["if"])

    assert [float(value) for value in values] == [expected] * 2


@pytest.mark.parametrize("says", [True, False])
def test_a_client_may_ask_for_a_branch_as_it_is(says: bool) -> None:
    branches = {"then_branch": call("twice"), "else_branch": call("ten")}
    wish = {"_lower_using_switch_merge": AttrValue(b=says)}
    chosen = node("if", "If", "p", "x", Tcond=BOOL, Tin=[F32], Tout=[F32], **branches, **wish)

    built = lowered(x(), x(BOOL, "p"), chosen, functions=(TWICE, TEN))

    assert bool(of(built, "Switch")) is says
    assert bool(of(built, "If")) is not says


@pytest.mark.parametrize(("condition", "expected"), [(np.int32(2), 6), (np.int32(0), 10), (np.zeros(0, np.int32), 10)])
def test_an_if_of_a_number_runs_at_the_worker(condition: np.ndarray, expected: float) -> None:
    branches = {"then_branch": call("twice"), "else_branch": call("ten")}
    chosen = node("if", "If", "p", "x", Tcond=I32, Tin=[F32], Tout=[F32], **branches)

    graph_def = graph([x(), x(I32, "p"), chosen], TWICE, TEN)

    assert evaluate(graph_def, ["if:0"], {"x:0": np.float32(3), "p:0": condition})[0] == expected


@pytest.mark.parametrize(("index", "expected"), [(0, -3), (1, 3), (2, 10), (9, 10), (-1, 10)])
def test_case(index: int, expected: float) -> None:
    branches = [call("neg"), call("same"), call("ten")]
    chosen = node("case", "Case", "i", "x", branches=branches, Tin=[F32], Tout=[F32])
    graph_def = graph([x(), x(I32, "i"), chosen], NEG, SAME, TEN)

    assert evaluate(graph_def, ["case:0"], {"x:0": np.float32(3), "i:0": np.int32(index)})[0] == expected


LESS = function(
    "less", ["i: int32", "n: int32", "a: float"], ["r: bool"], [node("l", "Less", "i", "n", T=I32)], r="l:z:0"
)
STEP = function(
    "step", ["i: int32", "n: int32", "a: float"], ["o: int32", "m: int32", "b: float"],
    [const("one", 1), node("add", "Add", "i", "one:output:0", T=I32), calls("t", "twice", "a")],
    o="add:z:0", m="n", b="t:output:0",
)  # fmt: skip


@pytest.mark.parametrize("op", ["While", "StatelessWhile"])
@pytest.mark.parametrize("count", [0, 1, 30])
def test_while(op: str, count: int) -> None:
    loop = node(
        "w", op, "zero", "n", "x", T=[I32, I32, F32], cond=call("less"), body=call("step"), parallel_iterations=3
    )
    graph_def = graph([x(), x(I32, "n"), const("zero", 0), loop], LESS, STEP, TWICE)

    values = evaluate(graph_def, ["w:0", "w:2"], {"x:0": np.float32(1), "n:0": np.int32(count)})

    assert [float(value) for value in values] == [count, 2.0**count]
    built = lower(RuntimeGraph.from_graph_def(graph_def))
    assert {each.attrs["parallel_iterations"] for each in of(built, "Enter")} == {3}


def test_a_resource_goes_round_no_loop() -> None:
    args = ["i: int32", "v: resource"]
    cond = function("cond", args, ["r: bool"], [const("n", 3), node("l", "Less", "i", "n:output:0", T=I32)], r="l:z:0")
    read = node("read", "ReadVariableOp", "v", dtype=I32)
    body = function("body", args, ["o: int32", "w: resource"],
                    [read, node("add", "Add", "i", "read:value:0", T=I32), node("same", "Identity", "v", T=RESOURCE)],
                    o="add:z:0", w="same:output:0")  # fmt: skip
    handle = node("v", "VarHandleOp", dtype=I32, shape=())
    loop = node("w", "While", "zero", "v", T=[I32, RESOURCE], cond=call("cond"), body=call("body"))
    after = node("after", "ReadVariableOp", "w:1", dtype=I32)

    built = lowered(const("zero", 0), handle, loop, after, functions=(cond, body))

    constant = [each for each in of(built, "Enter") if each.attrs["is_constant"]]
    assert [each.inputs for each in constant] == [(TensorName("v", 0),)]
    assert len(of(built, "Merge")) == len(of(built, "Exit")) == 1
    assert built.nodes["after"].inputs == (TensorName("v", 0),)


DOWN = function("down", ["n: int32", "a: int32"], ["r: int32"], [], r="n")
ENDLESS = function("endless", ["n: int32", "a: int32"], ["r: int32"], [const("one", 1)], r="one:output:0")
MINUS = function(
    "minus",
    ["n: int32", "a: int32"],
    ["m: int32", "b: int32"],
    [const("one", 1), node("sub", "Sub", "n", "one:output:0", T=I32), node("add", "Add", "a", "n", T=I32)],
    m="sub:z:0",
    b="add:z:0",
)


def count_down(cond: str) -> NodeDef:
    return node("w", "While", "n", "zero", T=[I32, I32], cond=call(cond), body=call("minus"))


@pytest.mark.parametrize("count", [0, 3, 1000])
def test_a_while_that_counts_down_to_zero_runs_at_the_worker(count: int) -> None:
    """Its condition is a number, which LoopCond does not take; a long loop lets go of the thread in between."""
    graph_def = graph([x(I32, "n"), const("zero", 0), count_down("down")], DOWN, MINUS)

    values = evaluate(graph_def, ["w:0", "w:1"], {"n:0": np.int32(count)})

    assert [int(value) for value in values] == [0, count * (count + 1) // 2]


def meet(barrier: threading.Barrier) -> None:
    barrier.wait()


def test_an_endless_loop_at_the_worker_can_be_cancelled() -> None:
    runtime = FunctionRuntime(
        graph([], ENDLESS, MINUS).library,
        lambda body, functions: compile_program(body, "/job:x", ResourceManager(), functions=functions),
    )
    kernel_node = KernelNode(
        "w",
        "While",
        {"cond": call("endless"), "body": call("minus")},
        (I32, I32),
        (I32, I32),
        DEVICE,
        ResourceManager(),
        runtime,
    )

    waiting = lookup(kernel_node, "CPU")(kernel_node)(np.array(1, np.int32), np.array(0, np.int32))

    assert isinstance(waiting, Waiting)
    waiting.cancel()
    # Both of the runtime's threads come to the barrier: neither is held by the loop.
    idle = threading.Barrier(3, timeout=30)
    runtime.later(lambda: meet(idle))
    runtime.later(lambda: meet(idle))
    idle.wait()


# -- functions that call themselves -----------------------------------------------------------------------------------

FIB = function(
    "fib", ["n: int32"], ["r: int32"],
    [
        const("two", 2), node("small", "Less", "n", "two:output:0", T=I32),
        node("if", "If", "small:z:0", "n", Tcond=BOOL, Tin=[I32], Tout=[I32],
             then_branch=call("base"), else_branch=call("rec")),
    ],
    r="if:output:0",
)  # fmt: skip
BASE = function("base", ["n: int32"], ["r: int32"], [], r="n")
REC = function(
    "rec", ["n: int32"], ["r: int32"],
    [
        const("one", 1), const("two", 2),
        node("a", "Sub", "n", "one:output:0", T=I32), node("b", "Sub", "n", "two:output:0", T=I32),
        node("fa", "PartitionedCall", "a:z:0", Tin=[I32], Tout=[I32], f=call("fib")),
        node("fb", "PartitionedCall", "b:z:0", Tin=[I32], Tout=[I32], f=call("fib")),
        node("sum", "Add", "fa:output:0", "fb:output:0", T=I32),
    ],
    r="sum:z:0",
)  # fmt: skip


def test_a_function_may_call_itself() -> None:
    graph_def = graph([x(I32), calls("c", "fib", "x", T=I32)], FIB, BASE, REC)

    assert evaluate(graph_def, ["c:0"], {"x:0": np.int32(12)})[0] == 144


def test_a_function_that_only_calls_itself_ends_with_its_name() -> None:
    endless = function("endless", ["n: int32"], ["r: int32"], [node("f", "endless", "n")], r="f:r:0")

    with pytest.raises(
        errors.ResourceExhaustedError, match=r"(?s)Function 'endless' was called 50 deep.*node endless/f"
    ):
        evaluate(graph([x(I32), calls("c", "endless", "x", T=I32)], endless), ["c:0"], {"x:0": np.int32(1)})


# -- calls that name a device -----------------------------------------------------------------------------------------


def remote(target: str, function_name: str = "twice") -> NodeDef:
    return node("c", "RemoteCall", target, "x", Tin=[F32], Tout=[F32], f=call(function_name))


def test_a_remote_call_runs_its_body_on_the_target() -> None:
    built = lowered(x(), const("where", b"/job:worker/task:1/cpu:0"), remote("where"))

    assert not of(built, "RemoteCall")
    assert [each.requested_device for each in of(built, "Add")] == ["/job:worker/task:1/cpu:0"]


def test_a_remote_call_whose_target_a_step_says_stays_on_its_device() -> None:
    graph_def = graph([x(), x(dtypes.string, "where"), remote("where")], TWICE)
    here, there = (np.array(name.encode(), dtype=object) for name in (DEVICE, "/job:worker/task:1"))

    assert evaluate(graph_def, ["c:0"], {"x:0": np.float32(3), "where:0": here})[0] == 6
    with pytest.raises(errors.UnimplementedError, match="cannot run its function on '/job:worker/task:1'"):
        evaluate(graph_def, ["c:0"], {"x:0": np.float32(3), "where:0": there})


@pytest.mark.parametrize(
    ("cond", "body", "says"),
    [
        (["b: bool", "y: float"], ["y: float"], "Expected a single scalar.*got 2 tensors."),
        (["b: bool"], ["y: float", "z: float"], "While loop body returned 2 arguments. Expected: 1"),
    ],
)
def test_a_loop_whose_functions_give_too_much_says_so_in_its_step(cond: list[str], body: list[str], says: str) -> None:
    results = {each.split(":")[0]: "x" for each in cond} | {"b": "yes:output:0"}
    condition = function("cond", ["x: float"], cond, [const("yes", True)], **results)
    step = function("body", ["x: float"], body, [], **{each.split(":")[0]: "x" for each in body})
    loop = node("w", "While", "x", T=[F32], cond=call("cond"), body=call("body"))

    with pytest.raises(errors.InvalidArgumentError, match=says):
        evaluate(graph([x(), loop], condition, step), ["w:0"], {"x:0": np.float32(1)})


def test_a_gradient_that_the_client_gives_is_called() -> None:
    slope = function(
        "slope", ["x: float", "g: float"], ["dx: float"], [node("twice", "Add", "g", "g", T=F32)], dx="twice:z:0"
    )
    ask = node("d", "SymbolicGradient", "x", "x", Tin=[F32, F32], Tout=[F32], f=call("twice"))
    graph_def = graph([x(), ask], TWICE, slope)
    graph_def.library.gradient.add(function_name="twice", gradient_func="slope")

    assert evaluate(graph_def, ["d:0"], {"x:0": np.float32(4)})[0] == 8


def test_a_gradient_that_gives_too_much_is_refused() -> None:
    slope = function("slope", ["x: float", "g: float"], ["dx: float", "dy: float"], [], dx="x", dy="g")
    ask = node("d", "SymbolicGradient", "x", "x", Tin=[F32, F32], Tout=[F32], f=call("twice"))
    graph_def = graph([x(), ask], TWICE, slope)
    graph_def.library.gradient.add(function_name="twice", gradient_func="slope")

    with pytest.raises(errors.InvalidArgumentError, match=r"SymGrad expects to return 1 .* but get 2 .* instead"):
        lower(RuntimeGraph.from_graph_def(graph_def))


@pytest.mark.parametrize("depth", [40, 20_000])
def test_functions_that_double_are_counted_before_they_are_put_in_place(depth: int) -> None:
    nested = GraphDef()
    for level in range(depth):
        inner = f"f{level + 1}" if level + 1 < depth else "NoOp"
        nested.library.function.append(function(f"f{level}", [], [], [node("a", inner), node("b", inner)]))
    nested.node.add(name="call", op="f0")
    with pytest.raises(errors.ResourceExhaustedError, match="With the bodies of its functions"):
        lower(RuntimeGraph.from_graph_def(nested), max_nodes=10**6)
