"""SymbolicGradient without a gradient function of the client's: the body, differentiated node by node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from support.functions import call, const, evaluate, function, graph, node
from tenfold.server_gradients import gradient_of_op
from tenfold_compiler.graph import function_gradients
from tenfold_compiler.graph.function_gradients import FunctionGradients
from tenfold_compiler.graph.function_library import FunctionLibrary
from tenfold_compiler.graph.functions import Functions
from tenfold_compiler.graph.lower import lower
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core import dtypes, errors
from tenfold_protos.attr_value_pb2 import AttrValue

if TYPE_CHECKING:
    from typing import Any

    from tenfold_protos.attr_value_pb2 import NameAttrList
    from tenfold_protos.node_def_pb2 import NodeDef

F32, I32 = dtypes.float32, dtypes.int32

#: y = x² + exp(x), z = 3x
CURVE = function(
    "curve",
    ["x: float"],
    ["y: float", "z: float"],
    [
        node("square", "Mul", "x", "x", T=F32),
        node("exp", "Exp", "x", T=F32),
        node("sum", "Add", "square:z:0", "exp:y:0", T=F32),
        const("three", 3.0),
        node("line", "Mul", "x", "three:output:0", T=F32),
    ],
    y="sum:z:0",
    z="line:z:0",
)


def x(dtype: dtypes.DType = F32, name: str = "x") -> NodeDef:
    return node(name, "Placeholder", dtype=dtype)


def gradient(f: NameAttrList, *inputs: str, types: list[dtypes.DType], dys: int = 1) -> NodeDef:
    return node("d", "SymbolicGradient", *inputs, Tin=[*types, *[F32] * dys], Tout=types, f=f)


def test_a_body_is_differentiated() -> None:
    asked = gradient(call("curve"), "x", "dy", "dz", types=[F32], dys=2)
    fed = {"x:0": np.float32(2), "dy:0": np.float32(1), "dz:0": np.float32(10)}

    (got,) = evaluate(graph([x(), x(name="dy"), x(name="dz"), asked], CURVE), ["d:0"], fed)

    np.testing.assert_allclose(got, 4 + np.exp(2) + 30, rtol=1e-6)


def test_an_op_is_differentiated_without_any_library() -> None:
    f = call("MatMul", T=node("", "MatMul", T=F32).attr["T"])
    asked = gradient(f, "a", "b", "dy", types=[F32, F32])
    a, b, dy = (np.arange(4, dtype=np.float32).reshape(2, 2) + i for i in range(3))

    built = graph([x(name="a"), x(name="b"), x(name="dy"), asked])
    got = evaluate(built, ["d:0", "d:1"], {"a:0": a, "b:0": b, "dy:0": dy})

    np.testing.assert_array_equal(got[0], dy @ b.T)
    np.testing.assert_array_equal(got[1], a.T @ dy)


def test_functions_in_the_body_are_differentiated_in_turn_and_own_gradients_are_called() -> None:
    cube = function(
        "cube",
        ["x: float"],
        ["y: float"],
        [node("sq", "Square", "x", T=F32), node("m", "Mul", "sq:y:0", "x", T=F32)],
        y="m:z:0",
    )
    mine = function("mine", ["x: float"], ["y: float"], [node("n", "Neg", "x", T=F32)], y="n:y:0")
    # not the gradient of Neg, so that it can be told from it
    hundred = const("hundred", 100.0)
    slope = function("slope", ["x: float", "dy: float"], ["dx: float"], [hundred], dx="hundred:output:0")
    outer = function(
        "outer",
        ["x: float"],
        ["y: float"],
        [
            node("c", "PartitionedCall", "x", Tin=[F32], Tout=[F32], f=call("cube")),
            node("m", "mine", "x"),
            node("sum", "Add", "c:output:0", "m:y:0", T=F32),
        ],
        y="sum:z:0",
    )
    graph_def = graph(
        [x(), const("one", 1.0), gradient(call("outer"), "x", "one", types=[F32])], cube, mine, slope, outer
    )
    graph_def.library.gradient.add(function_name="mine", gradient_func="slope")

    assert evaluate(graph_def, ["d:0"], {"x:0": np.float32(2)})[0] == 12 + 100


def test_what_no_output_depends_on_gets_zeros() -> None:
    picked = function("picked", ["x: float", "n: int32", "b: bool"], ["y: float"], [], y="x")
    asked = gradient(call("picked"), "x", "n", "b", "dy", types=[F32, I32, dtypes.bool_])
    fed = {
        "x:0": np.ones(3, np.float32),
        "n:0": np.array([5, 6], np.int32),
        "b:0": np.array(True),
        "dy:0": np.full(3, 7, np.float32),
    }

    got = evaluate(
        graph([x(), x(I32, "n"), x(dtypes.bool_, "b"), x(name="dy"), asked], picked), ["d:0", "d:1", "d:2"], fed
    )

    assert [each.tolist() for each in got] == [[7.0] * 3, [0, 0], False]


def test_nothing_flows_through_an_op_without_gradient() -> None:
    stops = function("stops", ["x: float"], ["y: float"], [node("s", "Floor", "x", T=F32)], y="s:y:0")
    stopped = function("stopped", ["x: float"], ["y: float"], [node("s", "StopGradient", "x", T=F32)], y="s:output:0")
    for f in (stops, stopped):
        asked = gradient(call(f.signature.name), "x", "x", types=[F32])
        assert evaluate(graph([x(), asked], f), ["d:0"], {"x:0": np.float32(5)})[0] == 0


def test_a_sparse_gradient_becomes_a_dense_one() -> None:
    rows = function(
        "rows",
        ["x: float", "i: int32"],
        ["y: float"],
        [node("g", "Gather", "x", "i", Tparams=F32, Tindices=I32)],
        y="g:output:0",
    )
    asked = gradient(call("rows"), "x", "i", "dy", types=[F32, I32])
    fed = {"x:0": np.zeros(3, np.float32), "i:0": np.array([2, 2], np.int32), "dy:0": np.array([1, 5], np.float32)}

    (got,) = evaluate(graph([x(), x(I32, "i"), x(name="dy"), asked], rows), ["d:0"], fed)

    assert got.tolist() == [0, 0, 6]


def test_the_type_of_a_function_is_chosen_by_its_caller() -> None:
    twice = function("twice", ["x: T"], ["y: T"], [node("add", "Add", "x", "x", T="T")], attrs=["T: type"], y="add:z:0")
    f64 = node("", "Add", T=dtypes.float64).attr["T"]
    asked = node(
        "d",
        "SymbolicGradient",
        "x",
        "x",
        Tin=[dtypes.float64] * 2,
        Tout=[dtypes.float64],
        f=call("twice", T=f64),
    )

    (got,) = evaluate(graph([x(dtypes.float64), asked], twice), ["d:0"], {"x:0": np.float64(4)})

    assert (got, got.dtype) == (8, np.float64)


BRANCH = node("s", "Switch", "x", "c", T=F32)
REFUSED = [
    (
        function("f", ["x: float", "c: bool"], ["y: float"], [BRANCH], y="s:output_false:0"),
        errors.NotFoundError,
        "No gradient defined for op: Switch",
    ),
    (
        function(
            "f",
            ["x: float", "c: bool"],
            ["y: float"],
            [node("g", "SymbolicGradient", "x", "x", Tin=[F32, F32], Tout=[F32], f=call("curve"))],
            y="g:output:0",
        ),
        errors.InvalidArgumentError,
        "Can't take gradient of SymbolicGradient",
    ),
]


@pytest.mark.parametrize(("f", "kind", "says"), REFUSED)
def test_what_cannot_be_differentiated_is_named(f: object, kind: type[errors.OpError], says: str) -> None:
    asked = gradient(call("f"), "x", "c", "x", types=[F32, dtypes.bool_])
    built = graph([x(), x(dtypes.bool_, "c"), asked], f, CURVE)  # type: ignore[arg-type]

    with pytest.raises(kind, match=says) as caught:
        lower(RuntimeGraph.from_graph_def(built), gradients=gradient_of_op)
    assert "{{node d}}" in caught.value.message


def test_an_op_without_a_rule_is_refused() -> None:
    asked = graph([x(), gradient(call("Rank"), "x", "x", types=[F32])])
    with pytest.raises(errors.InvalidArgumentError, match="No gradient is defined for Rank"):
        lower(RuntimeGraph.from_graph_def(asked), gradients=gradient_of_op)


def test_what_an_op_lacks_is_said_of_the_node_that_asks() -> None:
    asked = graph([x(), gradient(call("Neg"), "x", "x", types=[F32])])
    with pytest.raises(errors.InvalidArgumentError, match="attr 'T' is missing") as caught:
        lower(RuntimeGraph.from_graph_def(asked), gradients=gradient_of_op)
    assert "{{node d}}" in caught.value.message
    assert "{{node op}}" not in caught.value.message


def test_a_rule_that_fails_on_a_peers_attributes_is_an_error_of_the_peer() -> None:
    def fails(operation: NodeDef) -> None:
        raise ZeroDivisionError("by nought")

    with pytest.raises(errors.InvalidArgumentError, match=r"gradient of op 'Neg' cannot be made .*: by nought"):
        lower(RuntimeGraph.from_graph_def(graph([x(), gradient(call("Neg"), "x", "x", types=[F32])])), gradients=fails)


def test_a_server_that_was_given_no_gradients_says_so() -> None:
    with pytest.raises(errors.NotFoundError, match="No gradient defined for op: Neg"):
        lower(RuntimeGraph.from_graph_def(graph([x(), gradient(call("Neg"), "x", "x", types=[F32])])))


def test_gradients_are_made_once_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_gradients, "MAX_GRADIENTS", 2)
    gradients = FunctionGradients(Functions(FunctionLibrary()), gradient_of_op)
    neg, square = (call(op, T=node("", op, T=F32).attr["T"]) for op in ("Neg", "Square"))

    assert gradients.of(neg) == gradients.of(neg)
    gradients.of(square)
    with pytest.raises(errors.ResourceExhaustedError, match="more than 2 different gradients"):
        gradients.of(call("Exp", T=node("", "Exp", T=F32).attr["T"]))


def test_a_value_that_several_nodes_read_gets_the_sum_of_all() -> None:
    """Its node is differentiated after each of them: a = x², b = a + x, y = a · b + a."""
    diamond = function(
        "diamond",
        ["x: float"],
        ["y: float", "back: float"],
        [
            node("a", "Square", "x", T=F32),
            node("b", "Add", "a:y:0", "x", T=F32),
            node("ab", "Mul", "a:y:0", "b:z:0", T=F32),
            node("sum", "Add", "ab:z:0", "a:y:0", T=F32),
        ],
        y="sum:z:0",
        back="x",
    )
    asked = gradient(call("diamond"), "x", "one", "ten", types=[F32], dys=2)
    built = graph([x(), const("one", 1.0), const("ten", 10.0), asked], diamond)

    # 4x³ + 3x² + 2x at 2, and what comes in for the output that is the argument itself
    assert evaluate(built, ["d:0"], {"x:0": np.float32(2)}) == [32 + 12 + 4 + 10]


def test_what_no_argument_reaches_needs_no_gradient() -> None:
    """TruncateMod has none: of constants nobody asks for it."""
    remainder = node("r", "TruncateMod", "seven:output:0", "four:output:0", T=F32)
    aside = function(
        "aside",
        ["x: float"],
        ["y: float"],
        [const("seven", 7.0), const("four", 4.0), remainder, node("m", "Mul", "x", "r:z:0", T=F32)],
        y="m:z:0",
    )
    along = function(
        "along",
        ["x: float"],
        ["y: float"],
        [const("four", 4.0), node("r", "TruncateMod", "x", "four:output:0", T=F32)],
        y="r:z:0",
    )

    def asked(name: str) -> Any:
        return graph([x(), const("one", 1.0), gradient(call(name), "x", "one", types=[F32])], aside, along)

    assert evaluate(asked("aside"), ["d:0"], {"x:0": np.float32(2)}) == [3.0]
    with pytest.raises(errors.NotFoundError, match="No gradient defined for op: TruncateMod"):
        evaluate(asked("along"), ["d:0"], {"x:0": np.float32(2)})


def test_gradients_are_called_after_what_they_are_of() -> None:
    gradients = FunctionGradients(Functions(FunctionLibrary()), gradient_of_op)
    neg, square = (call(op, T=node("", op, T=F32).attr["T"]) for op in ("Neg", "Square"))

    assert [gradients.of(f).name for f in (neg, square, neg)] == [
        "gradient of Neg (1)", "gradient of Square (2)", "gradient of Neg (1)"
    ]  # fmt: skip


def test_an_output_that_nothing_reads_gets_zeros() -> None:
    pair = function(
        "pair",
        ["x: float"],
        ["y: float"],
        [node("u", "Unpack", "x", T=F32, num=2), node("m", "Mul", "u:output:1", "u:output:1", T=F32)],
        y="m:z:0",
    )
    asked = gradient(call("pair"), "x", "dy", types=[F32])
    fed = {"x:0": np.array([[5, 7], [2, 3]], np.float32), "dy:0": np.array([1, 10], np.float32)}

    (got,) = evaluate(graph([x(), x(name="dy"), asked], pair), ["d:0"], fed)

    assert got.tolist() == [[0, 0], [4, 60]]


def made(gradients: FunctionGradients, functions: Functions, f: NameAttrList) -> Any:
    return functions.body(gradients.of(f).name, {})


def given(*functions: Any) -> tuple[FunctionGradients, Functions]:
    found = Functions(FunctionLibrary(graph([], *functions).library))
    return FunctionGradients(found, gradient_of_op), found


def shown(body: Any) -> list[str]:
    return [f"{each.name} = {each.op}({', '.join(map(str, each.inputs))})" for each in body.nodes]


def test_the_gradient_of_a_function_node_for_node() -> None:
    """Consumers first; names that are taken are passed over; what nothing needs has no gradient."""
    body = function(
        "f",
        ["x: float", "dy: float"],
        ["y: float"],
        [
            node("a", "Mul", "x", "dy", T=F32),
            node("unused", "Exp", "a:z:0", T=F32),
            node("b", "Add", "a:z:0", "x", T=F32),
        ],
        y="b:z:0",
    )
    gradients, functions = given(body)

    found = made(gradients, functions, call("f"))

    assert found.name == "gradient of f (1)"
    assert found.arg_types == (F32, F32, F32)
    assert found.output_types == (F32, F32)
    assert found.first_arg == {"x": 0, "dy": 1, "dy_1": 2}
    assert {str(tensor): number for tensor, number in found.args.items()} == {"x:0": 0, "dy:0": 1, "dy_1:0": 2}
    assert shown(found) == [
        "a = Mul(x:0, dy:0)",
        "unused = Exp(a:0)",
        "b = Add(a:0, x:0)",
        "Func/SymbolicGradient = SymbolicGradient(a:0, x:0, dy_1:0)",
        "Func/SymbolicGradient_1 = SymbolicGradient(x:0, dy:0, Func/SymbolicGradient:0)",
        "Func/AddN = AddN(Func/SymbolicGradient:1, Func/SymbolicGradient_1:0)",
    ]
    assert [str(each) for each in found.returns] == ["Func/AddN:0", "Func/SymbolicGradient_1:1"]
    assert found.control_returns == ()


def test_a_gradient_is_asked_for_on_the_device_of_its_node() -> None:
    body = function("f", ["x: float"], ["y: float"], [node("n", "Neg", "x", T=F32, device="/job:ps/task:0")], y="n:y:0")
    gradients, functions = given(body)

    (found,) = [each for each in made(gradients, functions, call("f")).nodes if each.op == "SymbolicGradient"]

    assert found.requested_device == "/job:ps/task:0"
    assert (found.attrs["Tin"], found.attrs["Tout"]) == ([F32, F32], [F32])


def test_zeros_of_every_type() -> None:
    body = function(
        "f",
        ["n: int32", "s: string", "r: resource", "b: bool", "d: double", "x: float"],
        ["y: float", "t: string"],
        [],
        y="x",
        t="s",
    )
    gradients, functions = given(body)

    found = made(gradients, functions, call("f"))

    assert found.output_types == (I32, dtypes.string, F32, dtypes.bool_, dtypes.float64, F32)
    assert shown(found) == [
        "Func/ZerosLike = ZerosLike(n:0)",
        "Func/Shape = Shape(s:0)",
        "Func/Const = Const()",
        "Func/Fill = Fill(Func/Shape:0, Func/Const:0)",
        "Func/ReadVariableOp = ReadVariableOp(r:0)",
        "Func/ZerosLike_1 = ZerosLike(Func/ReadVariableOp:0)",
        "Func/ZerosLike_2 = ZerosLike(b:0)",
        "Func/ZerosLike_3 = ZerosLike(d:0)",
    ]
    assert [str(each) for each in found.returns] == [
        "Func/ZerosLike:0", "Func/Fill:0", "Func/ZerosLike_1:0", "Func/ZerosLike_2:0", "Func/ZerosLike_3:0", "dy:0"
    ]  # fmt: skip


def test_the_gradient_of_a_variable_that_a_function_reads_has_the_variables_type() -> None:
    resource = dtypes.resource
    read = function(
        "read",
        ["r: resource", "x: float"],
        ["y: float"],
        [node("v", "ReadVariableOp", "r", dtype=F32), node("m", "Mul", "v:value:0", "x", T=F32)],
        y="m:z:0",
    )
    outer = function(
        "outer", ["r: resource", "x: float"], ["y: float"],
        [node("c", "PartitionedCall", "r", "x", Tin=[resource, F32], Tout=[F32], f=call("read"))], y="c:output:0",
    )  # fmt: skip
    gradients, functions = given(read, outer)

    found = made(gradients, functions, call("outer"))

    assert found.output_types == (F32, F32)
    (asked,) = [each for each in found.nodes if each.op == "SymbolicGradient"]
    assert asked.attrs["Tout"] == [F32, F32]
    assert gradients.of(call("read")).name == "gradient of read (2)"
    assert {gradients.of(call(name)).name for name in ("read", "outer")} == {
        "gradient of read (2)", "gradient of outer (1)"
    }  # fmt: skip


def test_a_function_whose_gradient_needs_its_own_is_refused() -> None:
    resource, double = dtypes.resource, dtypes.float64
    itself = function(
        "itself", ["r: resource", "x: double"], ["y: double"],
        [node("c", "PartitionedCall", "r", "x", Tin=[resource, double], Tout=[double], f=call("itself"))],
        y="c:output:0",
    )  # fmt: skip
    gradients, _ = given(itself)

    with pytest.raises(errors.InvalidArgumentError, match="The gradient of 'itself' needs itself to be made"):
        gradients.of(call("itself"))


def test_a_function_that_is_called_in_itself_with_other_attributes_has_a_gradient_for_each() -> None:
    resource = dtypes.resource
    leaf = function("leaf", ["r: resource", "x: float"], ["y: float"], [node("s", "Square", "x", T=F32)], y="s:y:0")
    apply = function(
        "apply", ["r: resource", "x: float"], ["y: float"],
        [node("c", "PartitionedCall", "r", "x", Tin=[resource, F32], Tout=[F32], f=AttrValue(placeholder="g"))],
        attrs=["g: func"], y="c:output:0",
    )  # fmt: skip
    twice = call("apply", g=AttrValue(func=call("apply", g=AttrValue(func=call("leaf")))))
    asked = node("d", "SymbolicGradient", "v", "x", "x", Tin=[resource, F32, F32], Tout=[F32, F32], f=twice)
    variable = node("v", "VarHandleOp", dtype=F32, shape=AttrValue(shape={}))

    built = lower(RuntimeGraph.from_graph_def(graph([x(), variable, asked], leaf, apply)), gradients=gradient_of_op)

    assert not [each.name for each in built.nodes.values() if each.op in ("SymbolicGradient", "PartitionedCall")]
    gradients, _ = given(leaf, apply)
    assert [gradients.of(f).name for f in (twice, call("apply", g=twice.attr["g"].func.attr["g"]), call("leaf"))] == [
        "gradient of apply (1)", "gradient of apply (2)", "gradient of leaf (3)"
    ]  # fmt: skip


def test_gradients_go_only_so_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_gradients, "_MAX_DEPTH", 3)
    resource = dtypes.resource
    bodies = []
    for level in range(4):
        inner = call(f"f{level - 1}")
        nodes = (
            [node("c", "PartitionedCall", "r", "x", Tin=[resource, F32], Tout=[F32], f=inner)]
            if level
            else [node("c", "Neg", "x", T=F32)]
        )
        bodies.append(
            function(f"f{level}", ["r: resource", "x: float"], ["y: float"], nodes,
                     y="c:output:0" if level else "c:y:0")
        )  # fmt: skip

    gradients, _ = given(*bodies)
    # Neg is the third of f1 and the fourth of f2
    assert gradients.of(call("f1")).name.startswith("gradient of f1")
    gradients, _ = given(*bodies)
    with pytest.raises(errors.ResourceExhaustedError, match="call each other more than 3 deep"):
        gradients.of(call("f2"))


@pytest.mark.parametrize("op", sorted(function_gradients._NO_GRADIENT_HERE))
def test_control_flow_has_no_gradient_of_its_own(op: str) -> None:
    def never(operation: NodeDef) -> None:
        raise AssertionError(operation)

    gradients = FunctionGradients(Functions(FunctionLibrary()), never)
    with pytest.raises(errors.NotFoundError, match=f"No gradient defined for op: {op}[.]"):
        gradients.of(call(op))


def test_what_is_differentiated_is_the_op_with_the_attributes_that_it_knows() -> None:
    built = RuntimeGraph.from_graph_def(
        graph([x(), node("n", "Neg", "x", T=F32, _mark=node("", "Neg", T=F32).attr["T"])])
    )
    f = function_gradients.differentiated(built.nodes["n"])
    assert (f.name, list(f.attr)) == ("Neg", ["T"])
    asked: list[NodeDef] = []

    def note(operation: NodeDef) -> None:
        asked.append(operation)

    f.attr["_mark"].b = True
    with pytest.raises(errors.InvalidArgumentError, match="No gradient is defined for Neg"):
        FunctionGradients(Functions(FunctionLibrary()), note).of(f)
    assert [(each.name, each.op, list(each.attr)) for each in asked] == [("op", "Neg", ["T"])]


def test_what_a_client_defines_is_called_with_the_attributes_of_the_function() -> None:
    mine = function("mine", ["x: T"], ["y: T"], [node("n", "Neg", "x", T="T")], attrs=["T: type"], y="n:y:0")
    slope = function("slope", ["x: T", "dy: T"], ["dx: T"], [], attrs=["T: type"], dx="dy")
    library = graph([], mine, slope).library
    library.gradient.add(function_name="mine", gradient_func="slope")
    gradients = FunctionGradients(Functions(FunctionLibrary(library)), gradient_of_op)
    of_floats = node("", "Neg", T=F32).attr["T"]

    found = gradients.of(call("mine", T=of_floats))

    assert (found.name, list(found.attr)) == ("slope", ["T"])
    assert not gradients.of(call("Neg", T=of_floats)).attr


def test_the_gradient_of_an_op_keeps_only_what_its_outputs_need() -> None:
    gradients, functions = given()

    found = made(gradients, functions, call("Square", T=node("", "Square", T=F32).attr["T"]))

    reached, stack = set(), [tensor.node for tensor in found.returns]
    at = {each.name: each for each in found.nodes}
    while stack:
        name = stack.pop()
        if name in at and name not in reached:
            reached.add(name)
            stack.extend(at[name].sources)
    assert reached == set(at)
    assert found.arg_types == (F32, F32)
    assert found.output_types == (F32,)
    assert sorted(found.args.values()) == sorted(found.first_arg.values()) == [0, 1]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_client_s_own_gradient_has_to_give_one_for_each_input(count: int) -> None:
    resource = dtypes.resource
    names = ["a", "b", "c"][:count]
    mine = function("mine", ["r: resource", "x: float"], ["y: float"], [], y="x")
    slope = function(
        "slope", ["r: resource", "x: float", "dy: float"], [f"{name}: float" for name in names], [],
        **dict.fromkeys(names, "dy"),
    )  # fmt: skip
    outer = function(
        "outer", ["r: resource", "x: float"], ["y: float"],
        [node("c", "PartitionedCall", "r", "x", Tin=[resource, F32], Tout=[F32], f=call("mine"))], y="c:output:0",
    )  # fmt: skip
    library = graph([], mine, slope, outer).library
    library.gradient.add(function_name="mine", gradient_func="slope")
    gradients = FunctionGradients(Functions(FunctionLibrary(library)), gradient_of_op)

    with pytest.raises(errors.InvalidArgumentError, match=rf"expects to return 2 tensor\(s\), but get {count} tensor"):
        gradients.of(call("outer"))
