"""What a worker keeps per session: its registered graphs, its resource containers, its running steps.

`SessionTable` is a pure machine used by graph_manager.py and worker.py. The session with the handle "" always exists:
masters that never call CreateWorkerSession (TensorFlow 1.4) use it. Follows TensorFlow's session_mgr.cc and
worker_session.cc.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_kernels.resources.quota import BYTES_PER_SESSION, StateQuota
from tenfold_kernels.resources.state import ResourceManager

from ..limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_compiler.node_kernels import StatefulKernels

    from .loaded_program import LoadedProgram

#: Masters and former lives that are remembered: names come from peers. The oldest are forgotten.
MOST = 4096


@dataclass(slots=True)
class WorkerSession:
    """One session at one worker."""

    handle: str
    resources: ResourceManager
    master_task: str = ""
    master_incarnation: int = 0
    #: By handle; of the session "", the one unused for longest first.
    graphs: dict[str, LoadedProgram] = field(default_factory=dict)
    #: Kernels that keep something from step to step, shared by the session's graphs. The session "" belongs to several
    #: masters, whose node names may clash, and shares none.
    stateful: StatefulKernels = field(default_factory=dict)
    #: Steps of this session that run here now, in order; cancelled when the session ends.
    running: dict[Any, None] = field(default_factory=dict)

    def add_graph(self, program: LoadedProgram, limits: Limits) -> str:
        """A new graph handle. Raises ResourceExhaustedError over the limit.

        The session "" is never closed, and masters that use it forget to deregister: there the graphs that were unused
        for longest make room.
        """
        if not self.handle:
            size = sum(each.compiled.size for each in (program, *self.graphs.values()))
            while self.graphs and (
                len(self.graphs) >= limits.graphs_without_session or size > limits.graph_bytes_without_session
            ):
                size -= self.graphs.pop(next(iter(self.graphs))).compiled.size
        elif len(self.graphs) >= limits.graphs_per_session:
            raise limits.reached(
                "graphs_per_session", f"Session {self.handle!r} has {len(self.graphs)} graphs registered"
            )
        handle = secrets.token_hex(8)
        self.graphs[handle] = program
        return handle

    def graph(self, handle: str) -> LoadedProgram:
        """Raises AbortedError for an unknown handle: most likely this task restarted."""
        program = self.graphs.get(handle)
        if program is None:
            raise errors.aborted(f"Graph handle is not found: {handle}. Possibly, this worker just restarted.")
        if not self.handle:
            self.graphs[handle] = self.graphs.pop(handle)  # used last
        return program


class MasterLives:
    """Which life of each master opened a session here last, so that a former one is refused when it turns up again.

    A process that stood still (SIGSTOP, a paused machine, a network that is back) may not know that another one has
    taken its place; its updates would come on top of the other one's. Lives are told apart by their incarnations; the
    one that is heard of later is the newer one. TensorFlow takes any for the newest. Masters without a name, TensorFlow
    1.4's, are not told apart.
    """

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


class SessionTable:
    """All sessions of one worker."""

    def __init__(self, task: str, resources: ResourceManager, limits: Limits = DEFAULT_LIMITS) -> None:
        self._task, self._resources, self._limits = task, resources, limits
        self._sessions: dict[str, WorkerSession] = {"": WorkerSession("", resources)}
        self.lives = MasterLives(task)

    def __iter__(self) -> Iterator[WorkerSession]:
        return iter(list(self._sessions.values()))

    def create(self, handle: str, isolate: bool, master_task: str, master_incarnation: int) -> list[WorkerSession]:
        """Opens a session; returns the ones of the same master before its restart, dropped now.

        Raises InvalidArgumentError for an empty handle, AlreadyExistsError, ResourceExhaustedError over the limit,
        FailedPreconditionError for a master that another process has replaced.
        """
        if not handle:
            raise errors.invalid_argument("Session handle must be non-empty.")
        if handle in self._sessions:
            raise errors.already_exists(f"Session {handle} exists already on {self._task}.")
        self.lives.check(master_task, master_incarnation)
        self.lives.met(master_task, master_incarnation)
        stale = self.stale(master_task, master_incarnation)
        for session in stale:
            self.remove(session.handle)
        if len(self._sessions) >= self._limits.sessions:
            raise self._limits.reached("sessions", f"{self._task} has {len(self._sessions)} sessions open")
        resources = self._resources
        if isolate:
            # containers of its own, within the task's whole
            most, whole = self._limits.most_state_bytes_per_session, resources.quota
            quota = StateQuota(most, self._limits.queues, variable=BYTES_PER_SESSION, whole=whole)
            resources = ResourceManager(quota=quota)
        self._sessions[handle] = WorkerSession(handle, resources, master_task, master_incarnation)
        return stale

    def stale(self, master_task: str, master_incarnation: int) -> list[WorkerSession]:
        """Those that a master opened before it restarted; none of masters without a name."""
        of_master = [session for session in self if session.master_task == master_task != ""]
        return [session for session in of_master if session.master_incarnation != master_incarnation]

    def get(self, handle: str) -> WorkerSession:
        """Raises AbortedError for an unknown handle: most likely this task restarted."""
        session = self._sessions.get(handle)
        if session is None:
            raise errors.aborted(
                f'Session handle is not found: {handle}. Possibly this worker ("{self._task}") just restarted.'
            )
        return session

    def remove(self, handle: str) -> WorkerSession | None:
        """Forgets the session; None when there is none. The session "" stays."""
        session = self._sessions.pop(handle, None) if handle else None
        if session is not None and session.resources is not self._resources:
            session.resources.quota.close()
        return session
