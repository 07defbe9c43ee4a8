"""Which life of each master opened a session here last, so that a former one is refused when it turns up again.

A process that stood still (SIGSTOP, a paused machine, a network that is back) may not know that another one has taken
its place in the cluster. Its updates would come on top of the other one's. Lives are told apart by the incarnations
that masters send with CreateWorkerSession; the one that is heard of later is the newer one. Used by sessions.py.
TensorFlow takes any incarnation for the newest.
"""

from __future__ import annotations

from tenfold_core import errors

#: Masters and former lives that are remembered: names come from peers. The oldest are forgotten.
MOST = 4096


class MasterLives:
    """A pure machine. Masters without a name, TensorFlow 1.4's, are not told apart."""

    def __init__(self, task: str) -> None:
        self._task = task
        #: The newest life of each master, the one heard of last at the end.
        self._newest: dict[str, int] = {}
        #: Lives that another one has followed.
        self._former: dict[tuple[str, int], None] = {}

    def check(self, master: str, incarnation: int) -> None:
        """Raises FailedPreconditionError for a former life. It is no AbortedError: trying again is of no use."""
        if (master, incarnation) in self._former:
            raise errors.failed_precondition(
                f"{master} was replaced: {self._task} has heard of a newer process in its place (incarnation "
                f"{self._newest.get(master, 0) % 2**64:016x}) and takes nothing from the former one (incarnation "
                f"{incarnation % 2**64:016x}). End this process."
            )

    def met(self, master: str, incarnation: int) -> None:
        """A life that `check` has passed is the newest one."""
        if not master:
            return
        before = self._newest.pop(master, None)
        self._newest[master] = incarnation
        if before is not None and before != incarnation:
            self._former[master, before] = None
        while len(self._newest) > MOST:
            del self._newest[next(iter(self._newest))]
        while len(self._former) > MOST:
            del self._former[next(iter(self._former))]
