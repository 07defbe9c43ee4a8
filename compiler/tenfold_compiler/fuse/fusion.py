"""What is decided of a part's fusion: groups of nodes that run as one, and the order in which all runs. Data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tenfold_kernels.fusion.loops import ScalarLoop
from tenfold_kernels.fusion.runs import FusedRun, fused, source_and_signature

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_compiler.part.loop_tree import Loop
    from tenfold_compiler.part.part_graph import Edge, PartNode
    from tenfold_kernels.fusion.cache import FusionCache


class Compilable(Protocol):
    """What else than a run of elementwise ops or a loop may be made one call: on a GPU, or what is remembered."""

    @property
    def source(self) -> tuple[str, str] | None:
        """(source, signature) of what is compiled; None where nothing is."""
        ...

    def build(self, fallback: Callable[..., Any], cache: FusionCache) -> Callable[..., Any]:
        """The call. Blocks while it compiles."""
        ...


@dataclass(slots=True, eq=False)
class Group:
    """Nodes that run as one. Never changed once `find_groups` has made it."""

    number: int
    #: In topological order.
    members: list[PartNode]
    run: FusedRun | ScalarLoop | Compilable
    #: Edges from outside, aliases looked through, by position in the call.
    inputs: list[Edge]
    #: Edges that nodes outside read, in the order of the call's results.
    outputs: list[Edge]
    cache: FusionCache
    #: What is compiled instead of members.
    loop: Loop | None = None
    #: Members, some of them in groups, of a stretch that is recorded.
    items: Sequence[PartNode | Group] = ()

    @property
    def key(self) -> int:
        """Names the group among nodes, whose names are their indices."""
        return -1 - self.number

    @property
    def source(self) -> tuple[str, str] | None:
        """(source, signature) of what is compiled; None where nothing is."""
        return source_and_signature(self.run) if isinstance(self.run, FusedRun) else self.run.source

    def build(self, fallback: Callable[..., Any], most_turns: int) -> Callable[..., Any]:
        """The group as one call; a loop's takes `most_turns`. Blocks while it compiles."""
        run = self.run
        if isinstance(run, ScalarLoop):
            return run.build(fallback, self.cache, most_turns)
        return fused(run, fallback, self.cache) if isinstance(run, FusedRun) else run.build(fallback, self.cache)


@dataclass(slots=True)
class Fusion:
    """The groups of a part, and the order in which nodes and groups run, by region."""

    groups: list[Group] = field(default_factory=list)
    schedule: list[list[PartNode | Group]] = field(default_factory=list)
    #: Per node of a part with control flow, instead of `schedule`: the nodes that must have run before it.
    before: list[list[int]] = field(default_factory=list)
