"""Every count and time of the master that a peer could drive up, in one frozen dataclass, read once and passed down.

The worker's are in ../limits.py. A count that is reached is refused with ResourceExhaustedError. `SetUpBudget` is the
time that one CreateSession may take: made once by master.py, passed to all that waits in it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar

from tenfold_core import errors
from tenfold_core.env_settings import FromEnvironment

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_protos.graph_pb2 import GraphDef

T = TypeVar("T")

#: Seconds that a call of CreateSession made late still gets, so that its error is that of the call.
_LEAST = 0.1


@dataclass(frozen=True, slots=True)
class MasterLimits(FromEnvironment):
    """Counts, and seconds, set by `TENFOLD_MASTER_SESSIONS` and so on. Tests make tighter ones."""

    prefix: ClassVar[str] = "TENFOLD_MASTER_"

    #: Sessions that one master keeps open.
    sessions: int = 4096
    #: Of them, those of one peer (peer_use.py): nobody takes all.
    sessions_per_peer: int = 2048
    #: At that limit, the session unused for longest is closed for a new one, if it was unused for so many seconds.
    idle_session_seconds: float = 3600.0
    #: Nodes of one session's graph.
    nodes: int = 500_000
    #: Run signatures whose client graph a session keeps; the one unused for longest goes first.
    client_graphs: int = 256
    #: Callables of one session.
    callables: int = 1024
    #: Partial runs of one session that are set up and not over.
    partial_runs: int = 1024
    #: Bytes of what was fed to partial runs that are not over, of all sessions of one peer.
    partial_run_bytes_per_peer: int = 1 << 30
    #: Steps of one session that run or wait at the same time.
    running_steps: int = 10_000
    #: Of all sessions of one peer.
    running_steps_per_peer: int = 20_000
    #: Clean-ups of finished steps that may be under way before a step waits for its own.
    background_calls: int = 1024
    #: Answers kept for a request that comes again, and the bytes that they may hold together.
    remembered_requests: int = 10_000
    remembered_answers: int = 256
    remembered_answer_bytes: int = 64 << 20

    #: CreateSession waits so long for the tasks of the cluster unless the session says operation_timeout_in_ms.
    create_session_seconds: float = 60.0
    #: … and at most so long, whatever the session says.
    longest_create_session_seconds: float = 3600.0
    #: Where the client has a deadline, its answer is on the way so long before it, or a tenth of it.
    answer_before_seconds: float = 0.5
    #: Between two attempts to reach a task that did not answer: first, and at most.
    first_retry_seconds: float = 0.05
    last_retry_seconds: float = 1.0
    #: One attempt to reach a task. Shorter than the whole wait, so that a task that starts late is seen.
    status_call_seconds: float = 5.0
    #: Still waiting is logged this often.
    log_wait_seconds: float = 5.0
    #: Registering the parts of a client graph; and more for each of their nodes.
    register_seconds: float = 60.0
    register_node_seconds: float = 0.02
    #: After a step failed, its other parts may take so long to stop before the error is reported anyway.
    abort_seconds: float = 2.0
    #: CleanupGraph, DeregisterGraph, DeleteWorkerSession, CleanupAll: one call.
    cleanup_seconds: float = 10.0
    #: A task that is out of reach when sessions close is asked again, for so long, to forget its half of them.
    forget_seconds: float = 3600.0
    #: Closing a session waits so long for its running steps to end.
    close_seconds: float = 5.0
    #: Asking a task after a failed step whether it has restarted.
    diagnose_seconds: float = 1.0
    #: ListDevices without a session waits so long for other tasks.
    list_devices_seconds: float = 5.0


DEFAULT_MASTER_LIMITS = MasterLimits()


class SetUpBudget:
    """Of one CreateSession, from its beginning. On the event loop's thread."""

    def __init__(self, seconds: float, graph_seconds: float | None = None) -> None:
        """`graph_seconds` are for work on the graph, beside the others; None: it takes of the same."""
        self.seconds, self._graph_seconds = seconds, graph_seconds
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + seconds

    @classmethod
    def of(cls, config: ConfigProto, patience: float | None, limits: MasterLimits) -> SetUpBudget:
        """By what the session's options say, and the client's own deadline in `patience` seconds, if it has one."""
        seconds = limits.create_session_seconds
        if config.operation_timeout_in_ms > 0:
            seconds = min(config.operation_timeout_in_ms / 1000, limits.longest_create_session_seconds)
            patience = seconds if patience is None else min(seconds, patience)
        if patience is None:
            return cls(seconds, limits.longest_create_session_seconds)
        # an answer that names the missing tasks must be there before the client's deadline
        return cls(min(seconds, patience - min(patience * 0.1, limits.answer_before_seconds)))

    def left(self) -> float:
        """Seconds that are left, and some for a call that is made late."""
        return max(_LEAST, self._deadline - self._loop.time())

    def is_over(self) -> bool:
        return self._loop.time() >= self._deadline

    async def place(self, graph_def: GraphDef, work: Awaitable[T]) -> T:
        """What `work` on the graph gives. Raises DeadlineExceededError when the time for it is over."""
        began, seconds = self._loop.time(), self.left() if self._graph_seconds is None else self._graph_seconds
        try:
            async with asyncio.timeout(seconds):
                result = await work
        except TimeoutError:
            text = f"CreateSession: the graph of {len(graph_def.node)} nodes was not placed within {seconds:.3g} s."
            raise errors.deadline_exceeded(text) from None
        if self._graph_seconds is not None:
            self._deadline += self._loop.time() - began
        return result
