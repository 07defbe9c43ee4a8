"""The lines of generated functions, and the node that each belongs to: all writers of a part add to one `Lines`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenfold_compiler.part.part_graph import PartNode
    from tenfold_compiler.part.regions import Region


class Lines:
    """The text of one part. Functions follow each other."""

    def __init__(self, ticks: bool = False) -> None:
        """`ticks`: the first region that has something to do begins with a tick."""
        self.text: list[str] = []
        #: Where in it the functions begin.
        self.defs: list[int] = []
        #: Line → node index, for errors.
        self.node_at_line: dict[int, int] = {}
        #: What a line begins with.
        self._pad = " "
        #: Whether the next region's function begins with a tick, and whether that for all that waits does.
        self._ticks, self._rest_ticks = ticks, False

    def write(self, line: str, node: PartNode | None = None) -> None:
        """Adds a line to the function; an error in it is that of `node`."""
        if node is not None:
            self.node_at_line[len(self.text) + 1] = node.index
        self.text.append(self._pad + line)

    def begin(self, name: str, arguments: str) -> None:
        self.defs.append(len(self.text))
        self.text.append(f"def {name}({arguments}):")

    def begin_region(self, name: str, region: Region) -> None:
        self.begin(name, "s, send, fetch, stop")
        if self._ticks:
            self.write("tick()")
            self._ticks = False
            self._rest_ticks = bool(region.after or region.recvs)

    def begin_rest(self) -> None:
        """What follows is the function for all that waits: it ticks where it stands for the region that does."""
        self._ticks = self._rest_ticks

    def indent(self) -> None:
        self._pad += " "

    def dedent(self) -> None:
        self._pad = self._pad[:-1]
