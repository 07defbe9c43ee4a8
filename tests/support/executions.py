"""An execution that does what a test says, for the drivers and waiters of parts; and what it may want."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.parts import PartBuilder
from support.programs import compiled
from tenfold_compiler.write.region_schedule import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_compiler.part.part_graph import PartNode
    from tenfold_kernels.resources.waiting import Waiting


class FakeExecution:
    """Runs so many stretches; wants what it is told to before the first one."""

    def __init__(
        self, stretches: int = 1, wants: Sequence[Wanted] = (), takes: Callable[[], None] | None = None
    ) -> None:
        self.left, self.wants, self.waits_for = stretches, list(wants), len(wants)
        self.takes = takes
        self.had: list[Any] = []
        self.shapes = 7
        self.pairs: list[int] | None = None
        self.usual: frozenset[int] | None = None
        #: Whether each stretch was a careful one.
        self.careful: list[bool] = []

    @property
    def ready(self) -> bool:
        return not self.waits_for and self.left > 0

    @property
    def done(self) -> bool:
        return not self.waits_for and not self.left

    def take_wanted(self) -> Sequence[Wanted]:
        wanted, self.wants = self.wants, []
        return wanted

    def arrived(self, token: Any, value: Any, is_dead: bool) -> None:
        self.had.append((token, value, is_dead))
        self.waits_for -= 1

    def advance(self, careful: bool = False) -> None:
        self.left -= 1
        self.careful.append(careful)
        if self.takes is not None:
            self.takes()

    def fetched(self) -> dict[str, Any]:
        return {"fetch": self.had}


def tensor(key: str) -> Wanted:
    return Wanted(f"token of {key}", key)


def result(waiting: Waiting) -> Wanted:
    part = PartBuilder()
    part.const("dequeue", 1.0)
    node: PartNode = compiled(part).compiled.part.nodes[0]
    return Wanted("token of dequeue", "", waiting, node)
