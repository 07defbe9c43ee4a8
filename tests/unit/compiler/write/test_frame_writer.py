"""Where lines stand: what is cleared in the block that made it or behind the one that read it last, how often a long
frame looks whether it shall stop, and which guard's nodes stand together."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_compiler.write import codegen, frame_writer
from tenfold_core import dtypes
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.worker.execution import StepIO

TASK = "/job:localhost/replica:0/task:0"
F32, I32, BOOL = dtypes.float32, dtypes.int32, dtypes.bool_


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that were compiled, with their indents."""
    found: list[str] = []

    def compiled(text: str, *others: Any, **named: Any) -> Any:
        found.extend(text.strip("\n").splitlines())
        return builtins.compile(text, *others, **named)

    monkeypatch.setattr(codegen, "compile", compiled, raising=False)
    return found


def run(part: PartBuilder, feeds: dict[str, Any]) -> dict[str, Any]:
    program = compile_program(part.graph_def, TASK, ResourceManager())
    given = {feed.key: np.asarray(feeds[feed.key], feed.numpy_dtype) for feed in program.compiled.transfers.feeds}
    execution: Any = program.start(StepIO(given, lambda *_: None))
    while execution.ready:
        execution.advance()
    found: dict[str, Any] = execution.fetched()
    return found


def test_what_a_turn_s_head_made_is_cleared_behind_the_branch_that_reads_it_last(texts: list[str]) -> None:
    """for i in range(2): w = v * v; v = -w if p else v"""
    part = PartBuilder()
    x, p = part.feed("x"), part.feed("p", BOOL)
    frame: dict[str, Any] = {"frame_name": "f", "parallel_iterations": 1}
    part.const("zero", 0, I32)
    part.const("two", 2, I32)
    part.const("one", 1, I32)
    for name, source, kind in (("i", "zero", I32), ("v", "x", F32)):
        part.node("Enter", f"{name}_enter", [source], T=kind, is_constant=False, **frame)
        part.node("Merge", name, [f"{name}_enter", f"{name}_next"], T=kind, N=2)
    for name, kind in (("two", I32), ("one", I32), ("p", BOOL)):
        part.node("Enter", f"{name}_in", [name], T=kind, is_constant=True, **frame)
    part.node("Less", "less", ["i", "two_in"], T=I32)
    part.node("LoopCond", "goes_on", ["less"])
    part.node("Mul", "w", ["v", "v"], T=F32)
    for name, kind in (("i", I32), ("v", F32), ("w", F32)):
        part.node("Switch", f"{name}_switch", [name, "goes_on"], T=kind)
    part.node("Add", "i_more", ["i_switch:1", "one_in"], T=I32)
    for name in ("v", "w"):
        part.node("Switch", f"{name}_if", [f"{name}_switch:1", "p_in"], T=F32)
    part.node("Neg", "taken", ["w_if:1"], T=F32)
    part.node("Merge", "chosen", ["v_if", "taken"], T=F32, N=2)
    part.node("NextIteration", "i_next", ["i_more"], T=I32)
    part.node("NextIteration", "v_next", ["chosen"], T=F32)
    part.node("Exit", "exit", ["v_switch"], T=F32)
    y = part.fetch("exit")

    assert [run(part, {x: 3.0, p: taken})[y] for taken in (True, False)] == [-81.0, 3.0]
    begin = texts.index(" for turn in turns:")
    assert texts[begin : begin + 15] == [
        " for turn in turns:",
        "  v3 = k3(v2, v2)",
        "  v11 = k11(v8, c9_0)",
        "  if not v11: break",
        "  v25 = k25(v8, c23_0)",
        "  v8 = None",
        "  if b4_4:",
        "   v20 = k20(v3)",
        "  v3 = None",
        "  v21 = v2 if not b4_4 else v20",
        "  v2 = v20 = None",
        "  v2, v8 = v21, v25",
        "  v21 = v25 = None",
        "  if stop: return",
        " else: no_more_turns()",
    ]
    program = compile_program(part.graph_def, TASK, ResourceManager()).compiled
    assert program.generated is not None
    ends = program.generated.node_at_line[begin + 4]
    assert program.part.nodes[ends].name == "less", "an error of the line that ends the loop is that of its condition"


def test_what_runs_when_a_loop_ends_finds_what_its_last_turn_has_made(texts: list[str]) -> None:
    """while (w := v * v) < limit: v = v + 1; then -w"""
    part = PartBuilder()
    x, limit = part.feed("x"), part.feed("limit")
    frame: dict[str, Any] = {"frame_name": "f", "parallel_iterations": 1}
    part.const("one", 1.0)
    part.node("Enter", "v_enter", ["x"], T=F32, is_constant=False, **frame)
    part.node("Merge", "v", ["v_enter", "v_next"], T=F32, N=2)
    for name in ("one", "limit"):
        part.node("Enter", f"{name}_in", [name], T=F32, is_constant=True, **frame)
    part.node("Mul", "w", ["v", "v"], T=F32)
    part.node("Less", "less", ["w", "limit_in"], T=F32)
    part.node("LoopCond", "goes_on", ["less"])
    for name in ("v", "w"):
        part.node("Switch", f"{name}_switch", [name, "goes_on"], T=F32)
    part.node("Add", "more", ["v_switch:1", "one_in"], T=F32)
    part.node("NextIteration", "v_next", ["more"], T=F32)
    part.node("Neg", "minus", ["w_switch"], T=F32)
    part.node("Exit", "exit", ["minus"], T=F32)
    y = part.fetch("exit")

    assert [run(part, {x: 1.0, limit: most})[y] for most in (10.0, 0.5)] == [-16.0, -1.0]
    assert " for turn in turns:" in texts


def test_a_loop_may_read_a_variable_before_its_first_turn(texts: list[str]) -> None:
    """while v < limit: v = v * 2"""
    part = PartBuilder()
    x = part.feed("x")
    frame: dict[str, Any] = {"frame_name": "f", "parallel_iterations": 1}
    part.node("VariableV2", "limit", dtype=F32, shape=[])
    part.const("ten", 10.0)
    part.const("two", 2.0)
    part.node("Assign", "set", ["limit", "ten"], T=F32)
    part.node("Enter", "limit_in", ["limit", "^set"], T=F32, is_constant=True, **frame)
    part.node("Enter", "two_in", ["two"], T=F32, is_constant=True, **frame)
    part.node("Enter", "v_enter", ["x"], T=F32, is_constant=False, **frame)
    part.node("Merge", "v", ["v_enter", "v_next"], T=F32, N=2)
    part.node("Less", "less", ["v", "limit_in"], T=F32)
    part.node("LoopCond", "goes_on", ["less"])
    part.node("Switch", "v_switch", ["v", "goes_on"], T=F32)
    part.node("Mul", "twice", ["v_switch:1", "two_in"], T=F32)
    part.node("NextIteration", "v_next", ["twice"], T=F32)
    part.node("Exit", "exit", ["v_switch"], T=F32)
    y = part.fetch("exit")

    assert run(part, {x: 3.0})[y] == 12.0
    read = next(place for place, text in enumerate(texts) if text.endswith(".value"))
    assert read < texts.index(" for turn in turns:")


@pytest.mark.parametrize(("count", "looks"), [(60, 0), (61, 1)])
def test_a_long_frame_looks_whether_it_shall_stop(texts: list[str], count: int, looks: int) -> None:
    part = PartBuilder()
    keys = {part.feed("x"): 2.0, part.feed("p", BOOL): True}
    part.node("Switch", "switch", ["x", "p"], T=F32)
    part.node("Square", "yes", ["switch:1"], T=F32)
    part.node("Merge", "merge", ["switch:0", "yes"], T=F32, N=2)
    source = "merge"
    for number in range(count):
        part.node("Neg", f"n{number}", [source], T=F32)
        source = f"n{number}"
    y = part.fetch(source)

    assert run(part, keys)[y] == 4.0 * (-1) ** count
    assert sum("if stop" in text for text in texts) == looks
    assert not any("turns" in text for text in texts), "there is no loop"


def test_a_frame_looks_whether_it_shall_stop_whichever_branch_is_taken(
    texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_writer, "STOP_EVERY", 2)
    part = PartBuilder()
    keys = {part.feed("x"): 3.0, part.feed("p", BOOL): True}
    part.node("Switch", "switch", ["x", "p"], T=F32)
    part.node("Square", "square", ["switch:1"], T=F32)
    part.node("Neg", "minus", ["square"], T=F32)
    part.node("Merge", "merge", ["switch:0", "minus"], T=F32, N=2)
    y = part.fetch("merge")

    assert run(part, keys)[y] == -9.0
    assert [text for text in texts if text.strip().startswith("if")] == [" if b1_4:", " if stop: return"] * 2
