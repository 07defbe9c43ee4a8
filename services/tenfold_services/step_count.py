"""How many steps a task has run a part of, whoever ran it: its worker, or a caller's thread in its process.

Counted by worker/graph_manager.py, and of callers by master/caller_steps.py, per session; read by figures.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class StepCount:
    """Of one task. Any thread adds to `of_worker`; as with tenfold_core.traffic, a lost count does no harm."""

    __slots__ = ("of_callers", "of_worker")

    def __init__(self) -> None:
        self.of_worker = 0
        #: Tells of the steps that ran on callers' threads, which count for themselves: that costs a short step less.
        self.of_callers: Callable[[], int] | None = None

    @property
    def steps(self) -> int:
        return self.of_worker + (0 if self.of_callers is None else self.of_callers())
