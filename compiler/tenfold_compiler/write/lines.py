"""The lines of generated functions, and the node that each belongs to: all writers of a part add to one `Lines`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenfold_compiler.part.part_graph import PartNode
    from tenfold_compiler.part.regions import Region


class Lines:
    """The text of one part. Functions follow each other."""

    def __init__(self) -> None:
        self.text: list[str] = []
        #: Where in it the functions begin.
        self.defs: list[int] = []
        #: Line → node index, for errors.
        self.node_at_line: dict[int, int] = {}
        #: What a line begins with.
        self.pad = " "

    def write(self, line: str, node: PartNode | None = None) -> None:
        """Adds a line to the function; an error in it is that of `node`."""
        if node is not None:
            self.node_at_line[len(self.text) + 1] = node.index
        self.text.append(self.pad + line)

    def begin(self, name: str, arguments: str) -> None:
        """Begins a function."""
        self.defs.append(len(self.text))
        self.text.append(f"def {name}({arguments}):")

    def indent(self) -> None:
        self.pad += " "

    def dedent(self) -> None:
        self.pad = self.pad[:-1]


class Heads:
    """Begins the functions of regions. The first that has something to do may begin with a tick."""

    def __init__(self, lines: Lines, ticks: bool) -> None:
        self._lines = lines
        #: Whether the next function begins with a tick.
        self._ticks = ticks
        #: Whether the function for all that waits stands for the region that ticks.
        self._rest_ticks = False

    def begin(self, name: str, region: Region) -> None:
        """Begins the function of a region."""
        self._lines.begin(name, "s, send, fetch, stop")
        if self._ticks:
            self._lines.write("tick()")
            self._ticks = False
            self._rest_ticks = bool(region.after or region.recvs)

    def begin_rest(self) -> None:
        """What follows is the function for all that waits."""
        self._ticks = self._rest_ticks
