"""Every size, count and time that a peer controls has its limit here, in one frozen dataclass read once at the edge.

A server takes a `Limits` and passes it down; tests make tighter ones. Message sizes have no limit of their own, as
TensorFlow needs (a feed is as large as memory allows); counts and times have.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from tenfold_core.env_settings import FromEnvironment
from tenfold_core.memory_limits import memory
from tenfold_kernels.loop_turns import MOST_TURNS


@dataclass(frozen=True, slots=True)
class Limits(FromEnvironment):
    """Counts are refused with ResourceExhaustedError, times end in DeadlineExceededError or UnavailableError."""

    #: Of the variables that set a field, `TENFOLD_TASK_SESSIONS` and so on; but for those that are of the process.
    prefix: ClassVar[str] = "TENFOLD_TASK_"
    names: ClassVar[dict[str, str]] = {
        "tensor_bytes": "TENFOLD_TENSOR_BYTES",
        "file_bytes": "TENFOLD_FILE_BYTES",
        "files": "TENFOLD_FILES",
    }

    #: Seconds for one set-up call to a peer (GetStatus, CreateWorkerSession, RegisterGraph, CleanupGraph, …).
    setup_seconds: float = 30.0
    #: Seconds for DeleteWorkerSession, CleanupGraph: a dead peer must not hold up the end of a session.
    cleanup_seconds: float = 10.0
    #: While calls to a peer wait, it is asked for a sign of life this often …
    probe_every_seconds: float = 2.5
    #: … and is taken for dead when that sign does not come within so many seconds.
    probe_answer_seconds: float = 7.0
    #: Where it comes on another connection only, because a large message is under way on this one, the one here may
    #: take so many.
    probe_behind_seconds: float = 60.0

    #: Bytes that one tensor may take; 0: what TENFOLD_TENSOR_BYTES says, else half of the machine's memory. The limit
    #: belongs to the process: of several servers in it the last one to start decides.
    tensor_bytes: int = 0
    #: The folder, or the URL, below which the ops of graphs may open files; empty: anywhere but in the system's own
    #: places and in a home's hidden ones (`core/graph_files.py`). Of the process, as is …
    files: str = ""
    #: … what is read of a file, or of a record of it, into memory at once; 0: as much as a tensor may take.
    file_bytes: int = 0
    #: Sessions one worker keeps open.
    sessions: int = 4096
    #: Bytes that variables, and elements of queues, take together on the task; 0: seven eighths of the memory. And
    #: those of a session with containers of its own; 0: half of the memory. A server without a listener has its
    #: program's sessions alone, each of which may take all.
    state_bytes: int = 0
    state_bytes_per_session: int = 0
    #: Queues in the containers of the task, and in those of such a session.
    queues: int = 16_384
    #: Graphs one worker session keeps registered.
    graphs_per_session: int = 4096
    #: Graphs that masters without a session keep registered, as TensorFlow 1.4 does; the one unused for longest goes.
    graphs_without_session: int = 512
    #: Bytes of them together, about (`Program.size`); a larger graph is registered alone.
    graph_bytes_without_session: int = 128 << 20
    #: Nodes of one partition.
    nodes_per_graph: int = 1_000_000
    #: Steps whose rendezvous one worker keeps.
    steps: int = 65_536
    #: Steps that are over and whose late receivers get an error at once instead of waiting.
    finished_steps: int = 8_192
    #: Seconds after which a step that is not run and not waited for is forgotten.
    idle_step_seconds: float = 600.0
    #: Seconds after which a partial run without calls is ended.
    idle_partial_run_seconds: float = 3600.0
    #: Turns that the loops of one step may take on this task (tenfold_kernels/loop_turns.py): they need not end.
    loop_turns: int = MOST_TURNS
    #: Edges of one step that wait in a rendezvous, sent or asked for.
    keys_per_step: int = 1_000_000
    #: RPCs that one server works on at the same time; more are refused by gRPC itself.
    concurrent_rpcs: int = 16_384

    #: A program whose last runs took longer than this runs in the pool, so that the event loop stays alive.
    inline_nanoseconds: int = 1_000_000
    #: Threads of the pool that runs long programs and compiles graphs, but for …
    pool_threads: int = max(4, (os.cpu_count() or 1) + 2)
    #: … kernels that have computed for longer than this, or whose step is over: another thread takes the place of each.
    long_kernel_seconds: float = 2.0
    #: So many of them one task bears, and so many one session; beyond that, steps that need the pool are refused.
    long_kernels: int = 64
    long_kernels_per_session: int = 32

    #: Threads on which graphs read and write files, of which one session has half at most.
    file_threads: int = 32

    #: Bytes of an error message inside a gRPC status: peers refuse more than 16 KB of metadata.
    status_message_bytes: int = 7_168
    #: Seconds that stopping a server may take after the grace it was given.
    stop_seconds: float = 5.0
    #: Seconds for an attempt to tell the others that this task has finished, or for asking one of them which have.
    finished_seconds: float = 1.0
    #: Grace of running steps where a task ends because those that it serves have finished.
    last_steps_seconds: float = 2.0

    @property
    def most_state_bytes(self) -> int:
        """`state_bytes`, or what 0 means; 0 where the system does not tell."""
        return self.state_bytes or memory() // 8 * 7

    @property
    def most_state_bytes_per_session(self) -> int:
        """`state_bytes_per_session`, or what 0 means."""
        return self.state_bytes_per_session or memory() // 2


DEFAULT_LIMITS = Limits()
