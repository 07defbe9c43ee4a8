"""How functions come to be: which regions are one function more, in what pieces lines are compiled, and what counts as
computing. Whole texts are in tests/golden."""

from __future__ import annotations

import builtins
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_compiler.part.regions import Region
from tenfold_compiler.write import codegen
from tenfold_compiler.write.codegen import generate
from tenfold_compiler.write.lines import Lines
from tenfold_core import dtypes
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, SEND_OPS
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    from tenfold_compiler.program import Program

TASK = "/job:localhost/replica:0/task:0"
FAR = "/job:worker/replica:0/task:0/device:CPU:0"
F32 = dtypes.float32


def node(index: int, op: str = "Neg", *kinds: dtypes.DType) -> Any:
    return SimpleNamespace(index=index, op=op, input_types=kinds)


class Writer:
    """Notes what it is to write."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def region(self, region: Region, schedule: Any, name: str) -> str:
        self.asked.append((region, schedule, name))
        return name


@pytest.mark.parametrize(("most", "is_written"), [(4, True), (3, False)])
def test_regions_that_wait_are_one_function_unless_they_are_few_or_large(
    monkeypatch: pytest.MonkeyPatch, most: int, is_written: bool
) -> None:
    monkeypatch.setattr(codegen, "MOST_NODES", most)
    regions = [Region(0, nodes=[node(0)]), Region(1, nodes=[node(1), node(2)]), Region(2, nodes=[node(3), node(4)])]
    schedules = [["never"], ["b", "c"], ["d"]]
    writer: Any = Writer()

    assert codegen._write_rest(writer, regions[1:], schedules) == ("rest" if is_written else None)  # type: ignore[arg-type]
    for few in ([], regions[:1]):
        assert codegen._write_rest(writer, few, schedules) is None  # type: ignore[arg-type]
    if is_written:
        ((whole, work, name),) = writer.asked
        assert (whole.index, [each.index for each in whole.nodes]) == (-1, [1, 2, 3, 4])
        assert (work, name) == (["b", "c", "d"], "rest")
    else:
        assert writer.asked == []


def test_what_hands_numbers_on_or_has_none_computes_nothing() -> None:
    for kinds, computes in (
        ((F32,), True),
        ((dtypes.int32, dtypes.float16), True),
        ((dtypes.complex64,), True),
        ((dtypes.int32, dtypes.bool_), False),
        ((), False),
    ):
        assert codegen._computes(node(0, "AddN", *kinds)) is computes
        for op in (*ALIAS_OPS, *SEND_OPS):
            assert not codegen._computes(node(0, op, *kinds))


@pytest.mark.parametrize(
    ("piece", "functions"), [(3, [1, 1, 1, 1]), (4, [1, 2, 1]), (5, [1, 2, 1]), (6, [2, 2]), (8, [3, 1]), (12, [4])]
)
def test_lines_are_compiled_in_pieces_and_keep_their_numbers(
    monkeypatch: pytest.MonkeyPatch, piece: int, functions: list[int]
) -> None:
    """Functions of four lines, two, two and four: a piece holds as many as have that many lines together."""
    compiled: list[int] = []

    def noted(text: str, *others: Any, **named: Any) -> Any:
        compiled.append(text.count("def "))
        return builtins.compile(text, *others, **named)

    monkeypatch.setattr(codegen, "compile", noted, raising=False)
    monkeypatch.setattr(codegen, "_PIECE", piece)
    lines = Lines()
    for number, count in enumerate((3, 1, 1, 3)):
        lines.begin(f"f{number}", "")
        for _ in range(count):
            lines.write("0")
    namespace: dict[str, Any] = {}
    codegen._compile(lines, namespace)

    assert compiled == functions
    found = [namespace[f"f{number}"].__code__ for number in range(4)]
    assert [code.co_firstlineno for code in found] == [1, 5, 7, 9]
    assert {code.co_filename for code in found} == {"<tenfold program>"}


def compiled(*waits: str) -> Program:
    """A part of one node that waits for nothing, and one for each of these that comes from elsewhere."""
    part = PartBuilder()
    part.feed("x")
    part.node("Neg", "minus", ["x"], T=F32)
    part.fetch("minus")
    for name in waits:
        part.recv(name, F32, FAR, 7)
        part.node("Neg", f"minus_{name}", [name], T=F32)
        part.fetch(f"minus_{name}")
    return compile_program(part.graph_def, TASK, ResourceManager()).compiled


def test_a_step_ticks_once_where_it_is_asked_for() -> None:
    program = compiled("a", "b")
    plain, ticking = generate(program), generate(program, ticks=True)
    assert "tick" not in plain.namespace
    assert ticking.namespace["tick"]() is None
    assert (len(plain.functions), plain.rest is not None, compiled("a").generated.rest) == (3, True, None)  # type: ignore[union-attr]
    first, *others = [function.__code__ for function in ticking.functions if function is not None]
    assert "tick" in first.co_names
    assert not any("tick" in code.co_names for code in others)


@pytest.mark.parametrize("waits_first", [True, False])
def test_what_stands_for_all_that_waits_ticks_where_it_stands_for_the_first_function(waits_first: bool) -> None:
    part = PartBuilder()
    if not waits_first:
        part.feed("x")
        part.node("Neg", "minus", ["x"], T=F32)
        part.fetch("minus")
    for name in ("a", "b"):
        part.recv(name, F32, FAR, 7)
        part.node("Neg", f"minus_{name}", [name], T=F32)
        part.fetch(f"minus_{name}")

    rest = generate(compile_program(part.graph_def, TASK, ResourceManager()).compiled, ticks=True).rest

    assert rest is not None
    assert ("tick" in rest.__code__.co_names) is waits_first


def test_generated_code_is_known_by_its_nodes_slots_and_functions() -> None:
    program = compiled("a", "b")
    generated = generate(program)
    names = [each.name for each in program.part.nodes]
    assert {names[index] for index in generated.slot_of} == {"x", "a", "b"}
    assert sorted(generated.slot_of.values()) == list(range(generated.slot_count))
    assert generated.computes
    assert generated.rest is not None
    functions = [*generated.functions, generated.rest]
    assert generated.codes == {function.__code__ for function in functions if function is not None}
    assert generated.namespace["__builtins__"] == {}
    assert {names[index] for index in generated.node_at_line.values()} >= {"minus", "minus_a", "minus_b"}
