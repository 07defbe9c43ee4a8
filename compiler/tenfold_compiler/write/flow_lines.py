"""How lines of code with branches name outputs, and what is tested of them. Used by flow_writer.py.

v5, v5_1    outputs of node 5
b5_4        what is tested of an output: see guards.py for the numbers
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.part.guards import ALIVE, TRUTH

if TYPE_CHECKING:
    from tenfold_compiler.part.guards import Edge, Literal


def name_of(edge: Edge) -> str:
    index, port = edge
    if port >= 0:
        return f"v{index}_{port}" if port else f"v{index}"
    return f"b{index}_{-port}"


def known_as(edge: Edge, value: str, count: int) -> str:
    """What is tested of a value."""
    if edge[1] == ALIVE:
        return f"{value} is not D"
    if (TRUTH - edge[1]) % 2:
        return f"case({value}, {count})"
    return f"not not {value}"


def test_of(literal: Literal) -> str:
    name = name_of(literal.edge)
    if literal.edge[1] <= TRUTH and (TRUTH - literal.edge[1]) % 2:
        return f"{name} == {literal.value}"
    return name if literal.value else f"not {name}"
