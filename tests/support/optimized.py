"""A part after all passes of the optimizer, verified after each, and a step of what is compiled of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.verify_part import verify
from tenfold_compiler.node_kernels import Target
from tenfold_compiler.optimize import optimize
from tenfold_compiler.part.read_part import read_part
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.worker.execution import StepIO

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.parts import PartBuilder
    from tenfold_compiler.part.node_facts import Constants
    from tenfold_compiler.part.part_graph import PartGraph, PartNode
    from tenfold_services.worker.loaded_program import LoadedProgram

TASK = "/job:localhost/replica:0/task:0"


class Optimized:
    """A part after all passes, verified after each."""

    def __init__(self, builder: PartBuilder) -> None:
        self.part: PartGraph = read_part(builder.graph_def, TASK, 10_000)
        target = Target(TASK, ResourceManager(), 10_000)
        self.constants = target.constants(self.part)
        #: The passes after which it was verified.
        self.verified: list[str] = []
        #: By pass: how many nodes it took out.
        self.counts = optimize(self.part, self.constants, target.kernel, check=self._verify)

    def _verify(self, part: PartGraph, constants: Constants, after: str) -> None:
        verify(part, constants, after)
        self.verified.append(after)

    def node(self, name: str) -> PartNode:
        return next(n for n in self.part.nodes if n.name == name)

    def op(self, name: str) -> str:
        """What became of a node: its op, "constant", or "NoOp" for one that is gone."""
        node = self.node(name)
        return "constant" if node.index in self.constants else node.op

    def sources(self, name: str) -> list[str]:
        return [self.part.nodes[source].name for source, _ in self.node(name).inputs]

    def controls(self, name: str) -> list[str]:
        return [self.part.nodes[source].name for source in self.node(name).controls]


def run(program: LoadedProgram, feeds: Mapping[str, Any] | None = None) -> dict[str, Any]:
    execution = program.start(StepIO(feeds or {}, lambda key, value, is_dead: None))
    execution.advance()
    return execution.fetched()
