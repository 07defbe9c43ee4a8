"""The functions of a graph: merged, found, cut to need, and counted before they are put in place."""

from __future__ import annotations

import pytest

from support.functions import call, const, function, node
from tenfold_compiler.graph.function_library import FunctionLibrary
from tenfold_core import dtypes, errors, opdefs
from tenfold_protos.function_pb2 import FunctionDef, FunctionDefLibrary
from tenfold_protos.node_def_pb2 import NodeDef

F32 = dtypes.float32
CALLS = frozenset(("PartitionedCall",))


def library(*functions: FunctionDef, **gradients: str) -> FunctionDefLibrary:
    made = FunctionDefLibrary(function=functions)
    for name, gradient in gradients.items():
        made.gradient.add(function_name=name, gradient_func=gradient)
    return made


def calling(name: str, *called: str, **options: bool) -> FunctionDef:
    """A function that calls others, of no inputs."""
    nodes = [
        node(f"call{number}", "PartitionedCall", Tin=[], Tout=[F32], f=call(each)) for number, each in enumerate(called)
    ]
    return function(name, [], ["y: float"], [const("c", 1.0), *nodes], y="c:output:0", **options)  # type: ignore[arg-type]


def names(found: FunctionDefLibrary) -> tuple[list[str], list[str]]:
    return [each.signature.name for each in found.function], [each.function_name for each in found.gradient]


def test_a_library_is_true_if_it_has_functions() -> None:
    assert not FunctionLibrary()
    found = FunctionLibrary(library(calling("f")))
    assert found
    assert "f" in found
    assert "g" not in found
    assert found.find("g") is None


def test_what_is_merged_is_there_once_and_the_old_library_stays() -> None:
    old = FunctionLibrary(library(calling("f"), f="g"))

    merged = old.extended(library(calling("f"), calling("g"), f="g", g="f"))

    assert names(merged.proto) == (["f", "g"], ["f", "g"])
    assert names(old.proto) == (["f"], ["f"])
    assert old.extended(FunctionDefLibrary()) is old
    assert names(old.extended(library(g="f")).proto) == (["f"], ["f", "g"])
    assert names(old.extended(library(calling("h"))).proto) == (["f", "h"], ["f"])


def test_the_gradient_that_a_client_gives_is_found_and_may_not_change() -> None:
    found = FunctionLibrary(library(calling("f"), calling("g"), f="g"))

    assert (found.gradient_of("f"), found.gradient_of("g")) == ("g", "")
    with pytest.raises(errors.InvalidArgumentError) as caught:
        found.extended(library(f="h"))
    assert caught.value.message == (
        "Cannot assign gradient function 'h' to 'f' because it already has gradient function 'g'"
    )


def test_a_definition_is_a_functions_or_an_operations() -> None:
    found = FunctionLibrary(library(calling("f")))

    assert found.definition("f") is found.op_def("f")
    assert found.definition("Add") is opdefs.get("Add")
    assert found.definition("NoSuchOp") is None
    assert found.op_def("Add") is None
    definition = found.op_def("f")
    assert definition is not None
    assert [each.name for each in definition.outputs] == ["y"]


def test_a_signature_that_makes_no_sense_names_its_function() -> None:
    bad = calling("f")
    bad.signature.output_arg[0].type = 999  # type: ignore[assignment]

    with pytest.raises(errors.InvalidArgumentError, match="The signature of function 'f' is wrong: "):
        FunctionLibrary(library(bad)).op_def("f")


def test_a_part_takes_what_its_calls_may_need() -> None:
    nested = call("inner", g=node("", "PartitionedCall", f=call("deep")).attr["f"])
    listed = NodeDef(name="case", op="Case")
    listed.attr["branches"].list.func.extend([call("first"), call("second")])
    every = [calling(name) for name in ("unused", "deep", "inner", "own", "first", "second", "back", "f")]
    every[-1].node_def.append(NodeDef(name="direct", op="own"))
    found = FunctionLibrary(library(*every, own="back", unused="back", f="nowhere"))

    def reach(*nodes: NodeDef) -> tuple[list[str], list[str]]:
        return names(found.reachable(nodes))

    assert reach(node("a", "Add")) == ([], [])
    assert reach(node("a", "PartitionedCall", f=call("f"))) == (["own", "back", "f"], ["own", "f"])
    assert reach(node("a", "PartitionedCall", f=nested)) == (["deep", "inner"], [])
    assert reach(listed, NodeDef(name="x", op="missing")) == (["first", "second"], [])


@pytest.mark.parametrize(
    ("op", "found"),
    [
        (NodeDef(name="n", op="RandomUniform"), "RandomUniform"),
        (NodeDef(name="n", op="VarHandleOp"), "VarHandleOp"),
        (NodeDef(name="n", op="IteratorGetNext"), "IteratorGetNext"),
        (NodeDef(name="n", op="Add"), None),
        (NodeDef(name="n", op="Assert"), None),
        (NodeDef(name="n", op="StatefulPartitionedCall"), None),
        (NodeDef(name="n", op="TensorSliceDataset"), None),
        (NodeDef(name="n", op="NoSuchOp"), None),
    ],
)
def test_what_has_a_state_of_its_own(op: NodeDef, found: str | None) -> None:
    body = calling("f", "g", stateful=True)
    body.node_def.append(op)
    asked = node("a", "StatefulPartitionedCall", f=call("f"))

    assert FunctionLibrary(library(body, calling("g"))).stateful_op(asked) == found


def test_a_function_that_is_said_to_have_no_state_is_believed() -> None:
    body = calling("f")
    body.node_def.append(NodeDef(name="n", op="RandomUniform"))

    assert FunctionLibrary(library(body)).stateful_op(node("a", "PartitionedCall", f=call("f"))) is None


def test_nodes_are_counted_with_all_bodies() -> None:
    found = FunctionLibrary(library(calling("one"), calling("two", "one", "one"), calling("self", "self")))

    def least(*nodes: NodeDef) -> int:
        return found.least_nodes(nodes, CALLS)

    def called(name: str) -> NodeDef:
        return node("a", "PartitionedCall", f=call(name))

    assert least() == 0
    assert least(node("a", "Add"), node("b", "Add")) == 2
    assert least(called("one")) == 2, "the call itself may stay under its name"
    assert least(called("two")) == 1 + 3 + 2
    assert least(called("two"), called("one"), NodeDef(name="c", op="one")) == 6 + 2 + 2
    assert least(called("self")) == 1 + 2
    assert least(NodeDef(name="n", op="PartitionedCall"), called("missing")) == 2
    assert least(node("w", "While", cond=call("two"), body=call("two"))) == 1
    mapped = NodeDef(name="m", op="MapDataset")
    mapped.attr["f"].func.name = "two"
    assert least(mapped) == 1, "what is no call brings no body in"
