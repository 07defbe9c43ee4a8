"""Lines of parts with branches as they are written, and what their names are: each in the smallest part that has it."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_compiler.part.read_part import read_part
from tenfold_compiler.values import DEAD
from tenfold_compiler.write import codegen, flow_writer
from tenfold_compiler.write.flow_writer import names_of_branches
from tenfold_core import dtypes, errors
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.worker.execution import StepIO

if TYPE_CHECKING:
    from collections.abc import Iterator

TASK = "/job:localhost/replica:0/task:0"
FAR = "/job:worker/replica:0/task:0/device:CPU:0"
F32, I32, BOOL = dtypes.float32, dtypes.int32, dtypes.bool_


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that were compiled, without their indents."""
    found: list[str] = []

    def compiled(text: str, *others: Any, **named: Any) -> Any:
        found.extend(line.strip() for line in text.strip("\n").splitlines())
        return builtins.compile(text, *others, **named)

    monkeypatch.setattr(codegen, "compile", compiled, raising=False)
    return found


def run(part: PartBuilder, feeds: dict[str, Any], begin: Any = None) -> dict[str, Any]:
    program = compile_program(part.graph_def, TASK, ResourceManager())
    given = {feed.key: np.asarray(feeds[feed.key], feed.numpy_dtype) for feed in program.compiled.transfers.feeds}
    io = StepIO(given, lambda *_: None)
    execution = program.start(io) if begin is None else begin(program, io)
    while execution.ready:
        execution.advance()
    found: dict[str, Any] = execution.fetched()
    return found


def test_a_merge_of_one_value_is_that_value(texts: list[str]) -> None:
    part = PartBuilder()
    x, p = part.feed("x"), part.feed("p", BOOL)
    part.node("Switch", "s", ["x", "p"], T=F32)
    part.node("Merge", "m", ["s", "s:1"], T=F32, N=2)
    part.node("Neg", "no", ["s"], T=F32)
    part.node("Merge", "n", ["no", "s:1"], T=F32, N=2)
    one, other, index = part.fetch("m"), part.fetch("n"), part.fetch("m:1", I32)

    for taken in (True, False):
        found = run(part, {x: 2, p: taken})
        assert (found[one], found[other], found[index]) == (2, 2 if taken else -2, taken)

    assert "v3 = v0" in texts
    assert "v3_1 = i0 if not b1_4 else i1" in texts
    assert "v7 = v6 if not b1_4 else v0" in texts


@pytest.mark.parametrize("number", [-1, 0, 1, 2, 9])
@pytest.mark.parametrize("op", ["VariableV2", "Const"])
def test_a_switch_may_look_at_a_variable(op: str, number: int, texts: list[str]) -> None:
    part = PartBuilder()
    x = part.feed("x")
    if op == "VariableV2":
        part.node("VariableV2", "v", dtype=I32, shape=[])
        part.const("number", number, I32)
        part.node("Assign", "index", ["v", "number"], T=I32)
    else:
        part.const("index", number, I32)
    part.node("_SwitchN", "s", ["x", "index"], T=F32, num_outs=3)
    for port in range(3):
        part.const(f"by{port}", float(port + 2))
        part.node("Mul", f"m{port}", [f"s:{port}", f"by{port}"], T=F32)
    part.node("Merge", "m", ["m0", "m1", "m2"], T=F32, N=3)
    y = part.fetch("m")

    found = run(part, {x: 10})

    assert found[y] == 10 * (2 + (number if 0 <= number < 3 else 2))
    assert any("= case(" in text and text.endswith(", 3)") for text in texts)
    assert any(".value, 3)" in text for text in texts) is (op == "VariableV2")


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("inner", [True, False])
def test_what_a_branch_reads_of_a_variable_may_decide_a_branch_in_it(inner: bool, taken: bool) -> None:
    """if p: (x² if v else -x), otherwise x"""
    part = PartBuilder()
    x, p, q = part.feed("x"), part.feed("p", BOOL), part.feed("q", BOOL)
    part.node("VariableV2", "v", dtype=BOOL, shape=[])
    part.node("Assign", "assigned", ["v", "q"], T=BOOL)
    part.node("Switch", "read", ["assigned", "p"], T=BOOL)
    part.node("Switch", "s", ["x", "p"], T=F32)
    part.node("Switch", "t", ["s:1", "read:1"], T=F32)
    part.node("Neg", "no", ["t:0"], T=F32)
    part.node("Square", "yes", ["t:1"], T=F32)
    part.node("Merge", "both", ["no", "yes"], T=F32, N=2)
    part.node("Merge", "m", ["s:0", "both"], T=F32, N=2)
    y = part.fetch("m")

    assert run(part, {x: 3, p: taken, q: inner})[y] == ((9 if inner else -3) if taken else 3)


def counted(part: PartBuilder, *body: tuple[str, list[str], dict[str, Any]], result: str) -> str:
    """for i in range(4): v = body, with v first `x`; the key of what leaves."""
    frame: dict[str, Any] = {"frame_name": "f", "parallel_iterations": 1}
    part.const("zero", 0, I32)
    part.const("four", 4, I32)
    part.const("one", 1, I32)
    for name, source, kind in (("i", "zero", I32), ("v", "x", F32)):
        part.node("Enter", f"{name}_enter", [source], T=kind, is_constant=False, **frame)
        part.node("Merge", name, [f"{name}_enter", f"{name}_next"], T=kind, N=2)
    for name in ("four", "one"):
        part.node("Enter", f"{name}_in", [name], T=I32, is_constant=True, **frame)
    part.node("Less", "less", ["i", "four_in"], T=I32)
    part.node("LoopCond", "goes_on", ["less"])
    for name, kind in (("i", I32), ("v", F32)):
        part.node("Switch", f"{name}_switch", [name, "goes_on"], T=kind)
    part.node("Add", "i_more", ["i_switch:1", "one_in"], T=I32)
    for name, inputs, attrs in body:
        part.node(attrs.pop("op"), name, inputs, **attrs)
    part.node("NextIteration", "i_next", ["i_more"], T=I32)
    part.node("NextIteration", "v_next", [result], T=F32)
    part.node("Exit", "exit", ["v_switch"], T=F32)
    return part.fetch("exit")


def stack(part: PartBuilder) -> None:
    part.const("size", -1, I32)
    part.node("StackV2", "stack", ["size"], elem_type=F32)


PUSH = ("push", ["handle", "v_switch:1"], {"op": "StackPushV2", "T": F32})
TWICE = ("more", ["push", "push"], {"op": "Add", "T": F32})
HANDLE = {"op": "Enter", "T": dtypes.resource, "frame_name": "f", "parallel_iterations": 1, "is_constant": True}


def test_a_stack_from_outside_is_looked_up_before_the_first_turn(texts: list[str]) -> None:
    part = PartBuilder()
    x = part.feed("x")
    stack(part)
    y = counted(part, ("handle", ["stack"], dict(HANDLE)), (PUSH[0], PUSH[1], dict(PUSH[2])),
                (TWICE[0], TWICE[1], dict(TWICE[2])), result="more")  # fmt: skip

    assert run(part, {x: 3})[y] == 48
    bound = next(place for place, text in enumerate(texts) if " = b" in text)
    assert texts[bound + 1] == "for turn in some_of(turns):"
    name = texts[bound].partition(" = ")[0]
    pushed = next(place for place, text in enumerate(texts) if text.startswith(f"{name}("))
    value = texts[pushed].partition("(")[2].rstrip(")")
    assert texts[pushed + 1].endswith(f" = {value}"), "what is pushed is given on"
    assert "else: no_more_of(turns)" in texts
    assert "else: no_more_turns()" not in texts


def test_a_stack_of_each_turn_is_looked_up_in_it(texts: list[str]) -> None:
    part = PartBuilder()
    x = part.feed("x")
    part.const("size", -1, I32)
    frame: dict[str, Any] = {"frame_name": "f", "parallel_iterations": 1, "is_constant": True}
    y = counted(
        part,
        ("size_in", ["size"], {"op": "Enter", "T": I32, **frame}),
        ("handle", ["size_in", "^i_more"], {"op": "StackV2", "elem_type": F32}),
        (PUSH[0], PUSH[1], dict(PUSH[2])),
        ("pop", ["handle", "^push"], {"op": "StackPopV2", "elem_type": F32}),
        ("more", ["pop", "push"], {"op": "Add", "T": F32}),
        result="more",
    )

    assert run(part, {x: 3})[y] == 48
    assert not any(" = b" in text for text in texts)
    assert "for turn in turns:" in texts
    assert "else: no_more_turns()" in texts


def test_a_stack_of_a_part_whose_first_node_may_be_dead_is_looked_up_before_all_the_same(texts: list[str]) -> None:
    part = PartBuilder()
    part.recv("come", F32, FAR, 7)
    part.node("Neg", "minus", ["come"], T=F32)
    part.send("minus", F32, FAR, "edge_minus")
    part.feed("x")
    stack(part)
    counted(part, ("handle", ["stack"], dict(HANDLE)), (PUSH[0], PUSH[1], dict(PUSH[2])),
            (TWICE[0], TWICE[1], dict(TWICE[2])), result="more")  # fmt: skip

    compile_program(part.graph_def, TASK, ResourceManager())

    assert any(" = b" in text for text in texts)
    assert "for turn in some_of(turns):" in texts


# -- what lines call -------------------------------------------------------------------------------------------------


def names(most_turns: int = 5) -> dict[str, Any]:
    part = PartBuilder()
    part.feed("x")
    part.feed("p", BOOL)
    part.node("Switch", "s", ["x", "p"], T=F32)
    part.node("Merge", "two", ["s", "s:1"], T=F32, N=2)
    part.node("Merge", "three", ["s", "s:1", "s"], T=F32, N=3)
    return names_of_branches(read_part(part.graph_def, TASK, 1000), ["first;key", "second;key"], most_turns)


@pytest.mark.parametrize(
    ("value", "count", "case"),
    [(0, 3, 0), (2, 3, 2), (3, 3, 2), (99, 3, 2), (-1, 3, 2), (0, 1, 0), (1, 1, 0), (None, 3, 0), (DEAD, 3, 0)],
)
def test_a_number_of_no_case_means_the_last_one(value: Any, count: int, case: int) -> None:
    assert names()["case"](value, count) == case
    if isinstance(value, int):
        assert names()["case"](np.int32(value), count) == case


def test_the_index_of_each_input_of_the_largest_merge_is_there() -> None:
    found = names()

    assert [found[f"i{number}"] for number in range(3)] == [0, 1, 2]
    assert all(found[f"i{number}"].dtype == np.int32 for number in range(3))
    assert not any(found[f"i{number}"].flags.writeable for number in range(3))
    assert "i3" not in found
    assert found["D"] is DEAD
    part = read_part(PartBuilder().graph_def, TASK, 1000)
    assert "i0" not in names_of_branches(part, [], 5)


def test_a_dead_fetch_is_named_by_its_key() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="second"):
        names()["dead"](1)


def test_turns_of_a_function_are_counted_over_all_of_its_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    found = names(most_turns=5)
    turns: Iterator[None] = found["new_turns"]()
    monkeypatch.setattr(flow_writer, "MAX_ELEMENTS", 2)

    assert len(list(found["some_of"](turns))) == 2
    assert len(list(turns)) == 3
    with pytest.raises(errors.OpError, match="5") as ended:
        found["no_more_turns"]()
    with pytest.raises(type(ended.value), match="5"):
        found["no_more_of"](iter(()))


def test_a_loop_that_pushes_too_often_says_so_of_its_stack() -> None:
    found = names(most_turns=1 << 60)

    with pytest.raises(errors.OpError, match=f"A stack of a loop would have {flow_writer.MAX_ELEMENTS + 1} elements"):
        found["no_more_of"](iter([None, None]))


def test_only_tests_are_no_before_their_merge_has_said_so(texts: list[str]) -> None:
    part = PartBuilder()
    for name in ("a", "b"):
        part.recv(name, F32, FAR, 7)
    part.node("Neg", "minus", ["a"], T=F32)
    part.node("Merge", "any", ["minus", "b"], T=F32, N=2)
    part.node("Sqrt", "root", ["any"], T=F32)
    part.send("root", F32, FAR, "edge_root")

    compile_program(part.graph_def, TASK, ResourceManager())

    none = [text for text in texts if text.endswith(" = 0")]
    assert none
    assert all(text.startswith("b") for text in none)
    flag = none[0].partition(" = ")[0]
    assert [text for text in texts if text.endswith(f"; {flag} = 1")]
    assert f"if {flag}:" in texts
