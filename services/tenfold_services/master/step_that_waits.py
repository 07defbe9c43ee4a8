"""What steps on their caller's thread share that wait there: for other tasks (caller_cluster_steps.py), or for kernels
(caller_waiting_steps.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_services.interfaces import Value


class StepThatWaits:
    """A step as caller_steps.CallerStep, which no event loop's thread may run."""

    __slots__ = ("_ended", "wanted")

    may_wait = True

    def __init__(self) -> None:
        self._ended, self.wanted = False, ""

    def is_short(self, feeds: Sequence[Value]) -> bool:
        """Never for an event loop's thread: it waits."""
        return False

    def end(self) -> None:
        """See CallerStep."""
        self._ended = True

    def run_timed(self, feeds: Sequence[Value]) -> list[Value] | None:
        """See CallerStep; not for this."""
        return None
