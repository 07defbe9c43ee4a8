"""`TaskRegistration`: keeps one task registered. Registers or claims, renews the lease, reports new specs and a lost
index.

Used by the `tenfold task` command. Owns two threads: `control-heartbeat` renews the lease, `control-watch` waits for
the next spec in a long-poll, so that a change of the cluster arrives at once. Neither holds up the other: a long-poll
whose connection is dead at the other end keeps no renewal from leaving. Stopping is bounded.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, Self

from tenfold.control.problem import problem_of
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold.control.client import ControlClient
    from tenfold.control.spec import Lease, Spec

log = logging.getLogger(__name__)

#: While the service cannot be reached it is asked again this often.
_PAUSE = 0.5
#: An attempt to renew may take so much of the lease's time: several fit into it, and the first ones may be lost.
_ATTEMPTS = 4
#: Seconds for an answer to the long-poll beyond the wait that it asks for.
_WATCH_ANSWER = 10.0


class TaskRegistration:
    """One task's index in a cluster.

    `index` None claims the next free one. `on_spec(spec)` is called on the watching thread for the first spec and each
    newer one; on the heartbeat's `on_told(state, reason)` once, when somebody else said that the task has finished or
    is stopped, and `on_lost(reason)` once, when the index is lost for good: another incarnation holds it, or an
    operator removed the task. A lease that merely ran out (the machine slept, the network was away) is taken again
    without a call. While the service cannot be reached nothing is called either: the task continues with its current
    spec. `figures()` gives what goes to the service with each heartbeat, in the form of `TaskFigures`; `alive(seconds)`
    says whether the task is working, and may take that long to find out: while it is not, the lease is not renewed.
    `insecure` says that the task accepts any client. `on_lease(lease)` is called with each lease
    before it is requested, on the thread that does so: the service's credential for the task is derived from it, and
    nobody else has it. Both are called on the heartbeat's thread, and so is `on_drain(grace, reason)` once, when an
    operator wants the task to end; it must not block, and the lease is renewed until `stop`.
    """

    def __init__(
        self,
        client: ControlClient,
        cluster: str,
        job: str,
        index: int | None,
        address: str,
        *,
        incarnation: str | None = None,
        devices: Sequence[Mapping[str, Any]] = (),
        insecure: bool = False,
        on_lease: Callable[[str], None] | None = None,
        on_spec: Callable[[Spec], None] | None = None,
        on_told: Callable[[str, str], None] | None = None,
        on_lost: Callable[[str], None] | None = None,
        on_drain: Callable[[float, str], None] | None = None,
        figures: Callable[[], Mapping[str, Any]] | None = None,
        alive: Callable[[float], bool] | None = None,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._job = job
        self._index = index
        self._address = address
        self._devices, self._insecure = devices, insecure
        self._on_spec = on_spec
        self._on_told = on_told
        self._on_lost, self._on_drain = on_lost, on_drain
        #: Whether `on_drain` was called.
        self._drained = False
        #: May be set later, once there is something that has figures, and that works.
        self.figures, self.alive, self.on_lease = figures, alive, on_lease
        #: The lease that this task has made up, and holds or asks for.
        self._wanted = uuid.uuid4().hex
        self.incarnation = incarnation if incarnation is not None else uuid.uuid4().hex[:16]
        self._lease: Lease | None = None
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        #: The newest spec that `on_spec` was called with.
        self.spec: Spec | None = None

    @property
    def lease(self) -> Lease:
        """The present lease. Raises RuntimeError before `start`."""
        if self._lease is None:
            raise RuntimeError("the task is not registered: call start() first.")
        return self._lease

    @property
    def index(self) -> int:
        return self.lease.index

    @property
    def task(self) -> str:
        """The task's full name, /job:worker/replica:0/task:1."""
        return self.lease.task

    def start(self, timeout: float = 60.0) -> Self:
        """Registers, and keeps registered from now on. Blocks until the service answered; waits up to `timeout`
        seconds for it to come up and for the cluster to be declared, which may happen after the tasks have started.
        Raises AlreadyExistsError or ResourceExhaustedError at once when there is no free index."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                self._register()
                break
            except (errors.UnavailableError, errors.NotFoundError, errors.DeadlineExceededError) as error:
                waitable = not isinstance(error, errors.NotFoundError) or _kind(error) == "no-such-cluster"
                if not waitable or time.monotonic() + _PAUSE >= deadline or self._stopping.wait(_PAUSE):
                    raise
        for name, work in (("control-heartbeat", self._keep), ("control-watch", self._follow)):
            thread = threading.Thread(target=work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def update_devices(self, devices: Sequence[Mapping[str, Any]]) -> None:
        """Sends the service the task's devices: their names are known only once a claim has given the index.
        Blocks for one call; raises the service's refusal."""
        self._devices = devices
        self._register()

    def stop(
        self, *, state: str = "finished", exit_code: int | None = 0, reason: str | None = None, timeout: float = 5.0
    ) -> None:
        """Leaves: 1 the heartbeats end · 2 the lease is released as `state` · 3 the threads end. At most `timeout`
        seconds for each of the last two; an unreachable service is not an error; the lease then expires.
        Idempotent.
        """
        is_over = self._stopping.is_set()
        self._stopping.set()
        if self._lease is not None and not is_over:
            try:
                # The release grows the spec's version, which ends the long-poll.
                self._client.release(self._lease.id, state=state, exit_code=exit_code, reason=reason, timeout=timeout)
            except errors.OpError as error:
                log.info("%s could not release its lease: %s", self._lease.task, error)
        end = time.monotonic() + timeout
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, end - time.monotonic()))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.stop()
        else:
            state = "stopped" if issubclass(kind, KeyboardInterrupt) else "lost"
            self.stop(state=state, exit_code=None, reason=f"failed with {kind.__name__}")

    # -- the threads

    def _register(self) -> None:
        try:
            self._register_with(self._wanted)
        except errors.FailedPreconditionError as error:
            if _kind(error) != "lease-ended":
                raise
            # it ran out before the service was heard
            self._wanted = uuid.uuid4().hex
            self._register_with(self._wanted)

    def _register_with(self, lease: str) -> None:
        if self.on_lease is not None:
            self.on_lease(lease)
        # a service of before does not know one word or the other
        attempts = [(self._insecure, lease), (self._insecure, None), (False, None)]
        while True:
            insecure, shown = attempts.pop(0)
            try:
                self._register_as(insecure, shown)
            except errors.InvalidArgumentError:
                if not attempts:
                    raise
            else:
                self._insecure = insecure
                return

    def _register_as(self, insecure: bool, lease: str | None) -> None:
        known: dict[str, Any] = {"incarnation": self.incarnation, "devices": self._devices, "insecure": insecure}
        if lease is not None:
            known["lease"] = lease
        if self._index is None:
            self._lease = self._client.claim_task(self._cluster, self._job, self._address, **known)
            self._index = self._lease.index
        else:
            self._lease = self._client.register_task(self._cluster, self._job, self._index, self._address, **known)

    def _keep(self) -> None:
        """The heartbeat's thread."""
        due = time.monotonic()
        away = frozen = False
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            due = time.monotonic() + self.lease.heartbeat
            if self.alive is not None and not self.alive(self.lease.heartbeat):
                if not frozen and not self._stopping.is_set():
                    frozen = True
                    log.warning("%s does not renew its lease: its server does not answer.", self.lease.task)
                continue
            frozen = False
            try:
                self._renew()
                away = False
            except errors.OpError as error:
                if not self._stopping.is_set() and not away:
                    away = True
                    log.warning("%s: the control service is not there: %s", self.lease.task, error)
                due = time.monotonic() + min(_PAUSE, self.lease.heartbeat)
            except _EndedError as told:
                self._stopping.set()
                if self._on_told is not None:
                    self._on_told(*told.args)
            except _LostError as lost:
                self._stopping.set()
                if self._on_lost is not None:
                    self._on_lost(str(lost))

    def _follow(self) -> None:
        """The watching thread."""
        while not self._stopping.is_set():
            try:
                self._watch()
            except Exception as error:
                if self._stopping.is_set():
                    return  # the client may be closed already
                if not isinstance(error, errors.OpError):
                    raise
                log.info("%s could not ask for the cluster's spec: %s", self.lease.task, error)
                self._stopping.wait(min(_PAUSE, self.lease.heartbeat))

    def _renew(self) -> None:
        try:
            self._heartbeat()
        except (errors.NotFoundError, errors.FailedPreconditionError) as error:
            if self._stopping.is_set():
                return
            problem = problem_of(error)
            members = problem.members if problem is not None else {}
            outcome, reason = members.get("outcome"), str(members.get("reason"))
            if outcome == "missing":
                raise _LostError(f"{self.lease.task} was removed: {reason}") from error
            if outcome in ("finished", "stopped"):
                raise _EndedError(outcome, reason) from error
            log.warning("%s lost its lease and registers again: %s", self.lease.task, error)
            if self._wanted == self.lease.id:
                self._wanted = uuid.uuid4().hex  # else it is the one that was asked for without an answer
            try:
                self._register()
            except errors.AlreadyExistsError as taken:
                raise _LostError(str(taken.message)) from taken

    def _heartbeat(self) -> None:
        """Whatever is wrong with the figures, the heartbeat goes out."""
        figures: Mapping[str, Any] | None = None
        try:
            figures = None if self.figures is None else self.figures()
        except Exception as error:
            log.warning("%s has no figures: %s", self.lease.task, error)
        try:
            status = self._client.renew(self.lease.id, figures=figures, timeout=self.lease.ttl / _ATTEMPTS)
        except errors.InvalidArgumentError as error:
            if figures is None:
                raise
            log.warning("%s sends no figures any more, the control service refuses them: %s", self.lease.task, error)
            self.figures = None
            status = self._client.renew(self.lease.id, timeout=self.lease.ttl / _ATTEMPTS)
        if status.drain is not None and not self._drained and self._on_drain is not None:
            self._drained = True
            self._on_drain(status.drain.grace, status.drain.reason)

    def _watch(self) -> None:
        after = self.spec.version if self.spec is not None else None
        wait = self.lease.heartbeat
        try:
            spec = self._client.poll_spec(self._cluster, after=after, wait=wait, timeout=_WATCH_ANSWER)
        except errors.OutOfRangeError:
            # The service started over with an empty database: its versions began anew.
            spec = self._client.spec(self._cluster)
        if (after is None or spec.version != after) and not self._stopping.is_set():
            self.spec = spec
            if self._on_spec is not None:
                self._on_spec(spec)


class _EndedError(Exception):
    """Ends the heartbeat: somebody else said that the task is (state, why)."""


class _LostError(Exception):
    """Ends the heartbeat: the index is lost for good."""


def _kind(error: BaseException) -> str:
    problem = problem_of(error)
    return problem.kind if problem is not None else ""
