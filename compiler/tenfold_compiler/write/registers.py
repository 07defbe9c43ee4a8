"""Which local variable holds which output of a node: `Registers` in straight code, `Names` where there are branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .flow_lines import name_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .slots import Edge


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
        """A variable for it."""
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
    """Each edge has a variable of its own, which the writer of branches clears."""

    def __init__(self, used: Iterable[Edge]) -> None:
        super().__init__(dict.fromkeys(used, 0))

    def held(self, edge: Edge) -> str:
        return name_of(edge)

    def take(self, edge: Edge) -> str:
        return name_of(edge)

    def give_back(self, edge: Edge) -> None:
        """Nothing is used again."""

    def free_after(self, node: int, edges: Iterable[Edge]) -> list[str]:
        return []
