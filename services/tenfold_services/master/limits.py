"""Every count and time of the master that a peer could drive up, in one frozen dataclass, read once and passed down.

The worker's are in ../limits.py. A count that is reached is refused with ResourceExhaustedError.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tenfold_core.env_settings import FromEnvironment


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
    #: Registering the parts of a client graph.
    register_seconds: float = 60.0
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
