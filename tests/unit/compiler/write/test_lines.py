"""Lines of generated functions: whose each is, how deep it stands, and which function ticks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tenfold_compiler.part.regions import Region
from tenfold_compiler.write.lines import Lines


def test_lines_know_their_nodes_and_functions() -> None:
    lines = Lines()
    lines.begin("r0", "s")
    node: Any = SimpleNamespace(index=7)
    lines.write("a", node)
    lines.write("if b:")
    lines.indent()
    lines.write("c", node)
    lines.dedent()
    lines.write("d")
    lines.begin("r1", "s, t")
    lines.write("e")
    assert lines.text == ["def r0(s):", " a", " if b:", "  c", " d", "def r1(s, t):", " e"]
    assert lines.defs == [0, 5]
    assert lines.node_at_line == {2: 7, 4: 7}


RECV: Any = SimpleNamespace(index=0)


@pytest.mark.parametrize(
    ("region", "rest_ticks"),
    [(Region(0), False), (Region(0, after={1}), True), (Region(0, recvs=[RECV]), True)],
    ids=["waits for nothing", "after another", "receives"],
)
def test_the_first_function_ticks_and_the_one_that_stands_for_it(region: Region, rest_ticks: bool) -> None:
    lines = Lines(ticks=True)
    lines.begin_region("r0", region)
    lines.begin_region("r1", Region(1))
    lines.begin_rest()
    lines.begin_region("rest", Region(-1))
    head = "(s, send, fetch, stop):"
    tick = [" tick()"]
    assert lines.text == [f"def r0{head}", *tick, f"def r1{head}", f"def rest{head}", *(tick if rest_ticks else [])]


def test_without_ticks_nothing_ticks() -> None:
    lines = Lines()
    lines.begin_region("r0", Region(0, after={1}))
    lines.begin_rest()
    lines.begin_region("rest", Region(-1))
    assert not any("tick" in line for line in lines.text)


def test_blocks_stand_in_each_other() -> None:
    lines = Lines()
    for change in (lines.indent, lines.indent, lines.indent, lines.dedent, lines.dedent, lines.dedent):
        lines.write("x")
        change()
    lines.write("x")

    assert [len(line) for line in lines.text] == [2, 3, 4, 5, 4, 3, 2]
