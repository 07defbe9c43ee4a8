"""What lines call values: `Registers` in straight code; where there are branches, each output has a name of its own.

v5, v5_1    outputs of node 5
b5_4        what is tested of an output: see part/guards.py for the numbers
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.part.guards import ALIVE, TRUTH, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_compiler.part.part_graph import Edge


class Registers:
    """Local variables, reused last in first out so that a new value pushes an old one out as soon as it can."""

    def __init__(self, last_use: dict[Edge, int]) -> None:
        self.last_use = last_use
        #: Which variable holds which live edge.
        self._holder: dict[Edge, str] = {}
        self._free: list[str] = []
        self._made = 0

    def held(self, edge: Edge) -> str | None:
        """The variable that holds it; None if none does."""
        return self._holder.get(edge)

    def take(self, edge: Edge) -> str:
        if self._free:
            name = self._free.pop()
        else:
            name = f"v{self._made}"
            self._made += 1
        self._holder[edge] = name
        return name

    def give_back(self, edge: Edge) -> None:
        """Nothing reads it."""
        self._free.append(self._holder.pop(edge))

    def free_after(self, node: int, edges: Iterable[Edge]) -> list[str]:
        """Frees what `node` reads last; returns the variables."""
        freed = []
        for edge in dict.fromkeys(edges):
            if self.last_use.get(edge) == node and edge in self._holder:
                freed.append(self._holder.pop(edge))
        self._free.extend(freed)
        return freed


class Names(Registers):
    """The names of outputs where there are branches. Their writer clears them."""

    def __init__(self, used: Iterable[Edge]) -> None:
        super().__init__(dict.fromkeys(used, 0))

    def held(self, edge: Edge) -> str:
        return name_of(edge)

    take = held

    def give_back(self, edge: Edge) -> None:
        """Nothing is used again."""

    def free_after(self, node: int, edges: Iterable[Edge]) -> list[str]:
        return []


def name_of(edge: Edge) -> str:
    index, port = edge
    if port >= 0:
        return f"v{index}_{port}" if port else f"v{index}"
    return f"b{index}_{-port}"


def known_as(edge: Edge, value: str, count: int) -> str:
    """What is tested of a value."""
    if edge[1] == ALIVE:
        return f"{value} is not D"
    return f"case({value}, {count})" if (TRUTH - edge[1]) % 2 else f"not not {value}"


def test_of(literal: Literal) -> str:
    name = name_of(literal.edge)
    if literal.edge[1] <= TRUTH and (TRUTH - literal.edge[1]) % 2:
        return f"{name} == {literal.value}"
    return name if literal.value else f"not {name}"
