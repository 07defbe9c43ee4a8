"""A cluster's registry as a value: declared jobs, the task on every index, the version of the spec. Pure, no I/O.

Every verb (`declare`, `register`, `claim`, `end`, `deregister`) returns a new `Cluster` and leaves the old
one alone, so cluster_table.py can persist the new value first and publish it only once the database has it. The version
grows with every change that a watcher of the spec must see: sizes, addresses, and which tasks are there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tenfold_control_api.problems import ApiError
from tenfold_core.device import task_name
from tenfold_core.loopback import is_loopback
from tenfold_core.master_jobs import master_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
JOB_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?):(?P<port>\d{1,5})")


class TaskState(StrEnum):
    """The state of an index; the comments give each state as its task would report it."""

    MISSING = "missing"  # "no task has registered here"
    READY = "ready"  # "I hold a live lease"
    LOST = "lost"  # "my lease ran out, or I failed"
    STOPPED = "stopped"  # "I was told to stop before I was done"
    FINISHED = "finished"  # "I am done; do not wait for me"


#: Why an index is missing that no task has held.
NEVER = "no task has registered on this index yet"


@dataclass(frozen=True, slots=True)
class Drain:
    """An operator's wish that a task takes no new work, and ends once its running steps have, after `grace` seconds at
    the latest."""

    grace: float
    reason: str


@dataclass(frozen=True, slots=True)
class Task:
    """One index of one job. `since` is wall-clock time, for people; leases never use it."""

    job: str
    index: int
    state: TaskState = TaskState.MISSING
    since: float = 0.0
    reason: str = NEVER
    address: str | None = None
    incarnation: str | None = None
    devices: tuple[Mapping[str, Any], ...] = ()
    #: Set exactly while the state is READY.
    lease_id: str | None = None
    exit_code: int | None = None
    #: Told to the task with its next heartbeat; gone with its lease.
    drain: Drain | None = None
    #: It accepts anyone who reaches its port, as it says itself.
    insecure: bool = False
    #: Who registered it: the digest of a token, or a name (entry.registrar). None where that was not kept.
    registrar: str | None = None
    #: The process made up its lease itself, shows it when it registers again, and accepts what is made of it.
    own_lease: bool = False
    #: What views.py has made of this value, for as long as it lives.
    shown: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        return task_name(self.job, self.index)

    @property
    def absent(self) -> bool:
        """Whether the cluster still waits for it: missing, lost or stopped. A finished task is not absent."""
        return self.state in (TaskState.MISSING, TaskState.LOST, TaskState.STOPPED)

    def held_by(self, newcomer: Newcomer) -> bool:
        """Whether who registers is the process that holds this index: it shows the lease, which nobody else knows. The
        incarnation, which everybody may read, is not enough, except for who registered in the same way before, at the
        same address, and could not know of leases of its own: a release from before, or a program without one."""
        if self.state is not TaskState.READY or self.incarnation != newcomer.incarnation:
            return False
        if newcomer.lease is not None:
            return newcomer.lease == self.lease_id
        return not self.own_lease and self.registrar == newcomer.registrar and self.address == newcomer.address


@dataclass(frozen=True, slots=True)
class Registration:
    """The outcome of `register` and `claim`. `fresh` is False when the incarnation already held this index."""

    cluster: Cluster
    task: Task
    fresh: bool


@dataclass(frozen=True, slots=True)
class Newcomer:
    """What a registering task reports, and the lease id that it gets if it is accepted."""

    address: str
    incarnation: str
    lease_id: str
    devices: tuple[Mapping[str, Any], ...] = ()
    insecure: bool = False
    #: As Task's.
    registrar: str | None = None
    #: The lease that it shows: one that it holds, or has made up. `lease_id` is the same then.
    lease: str | None = None

    def __post_init__(self) -> None:
        match = _ADDRESS.fullmatch(self.address)
        if match is None or not 1 <= int(match["port"]) <= 65535:
            raise ApiError(
                "invalid-address",
                f"address {self.address!r} is not HOST:PORT with a port from 1 to 65535.",
                at=("address",),
            )

    def require_reachable(self, sender: str, here: str) -> None:
        """Raises INVALID_ARGUMENT for an address of loopback that another host sent: a host that dials it reaches
        itself. `sender` is the host that the request came from, `here` the one that it came to."""
        host = self.address.rpartition(":")[0]
        if is_loopback(host) and not is_loopback(sender) and sender != here:
            raise ApiError(
                "invalid-address",
                f"address {self.address} was sent by {sender}, which no other machine reaches by it. Start the task "
                f"with --address {sender}:PORT and --bind {sender}:PORT, or with --control alone, as is the default.",
                at=("address",),
            )


@dataclass(frozen=True, slots=True)
class Cluster:
    """One declared cluster. `tasks` holds exactly the declared indices."""

    name: str
    uid: str
    created: float
    version: int
    jobs: Mapping[str, int]
    tasks: Mapping[tuple[str, int], Task]
    #: Whether parameter servers end once every worker, and the chief, has finished.
    stop_with_workers: bool = False
    #: How many tasks are absent: asked with each heartbeat. Counted when it is first asked for.
    _absent: int | None = field(default=None, init=False, repr=False, compare=False)
    #: The value that this one was made of by changing one task, and that task's place: of ten thousand tasks one has
    #: changed. None where that is not known; forgotten once the value counts (`settle`).
    _made_of: tuple[Cluster, tuple[str, int]] | None = field(default=None, init=False, repr=False, compare=False)

    #: What views.py has made of this value, for as long as it lives.
    shown: list[bytes] = field(default_factory=list, init=False, repr=False, compare=False)

    # -- declaring

    @staticmethod
    def new(
        name: str, uid: str, jobs: Mapping[str, int], now: float, *, stop_with_workers: bool | None = None
    ) -> Cluster:
        """A cluster of version 1 with every task missing. Raises INVALID_ARGUMENT for a bad name."""
        if not CLUSTER_NAME.fullmatch(name):
            raise ApiError(
                "invalid-cluster-name",
                f"cluster name {name!r} is not allowed: letters, digits, '_', '.', '-', at most 63 of them.",
            )
        empty = Cluster(name, uid, now, 0, MappingProxyType({}), MappingProxyType({}))
        return empty.declare(jobs, now, stop_with_workers=stop_with_workers)

    def declare(self, jobs: Mapping[str, int], now: float, *, stop_with_workers: bool | None = None) -> Cluster:
        """Sets jobs and sizes, and `stop_with_workers` unless it is None; the same again changes nothing.

        Raises FAILED_PRECONDITION if a task that would be removed is ready: it must end before the cluster shrinks.
        """
        _check_jobs(jobs)
        stop = self.stop_with_workers if stop_with_workers is None else stop_with_workers
        if dict(jobs) == dict(self.jobs):
            if stop == self.stop_with_workers:
                return self
            return replace(self, version=self.version + 1, stop_with_workers=stop)
        kept = {key: task for key, task in self.tasks.items() if key[1] < jobs.get(key[0], 0)}
        alive = sorted(t.name for k, t in self.tasks.items() if k not in kept and t.state is TaskState.READY)
        if alive:
            raise ApiError(
                "tasks-alive",
                f"cluster {self.name!r} cannot be made smaller: {', '.join(alive)} would go but hold live leases. "
                "Release their leases or DELETE these tasks first.",
                task=alive[0],
            )
        tasks = {
            (job, i): kept.get((job, i)) or Task(job, i, since=now) for job, size in jobs.items() for i in range(size)
        }
        return replace(
            self,
            version=self.version + 1,
            jobs=MappingProxyType(dict(jobs)),
            tasks=MappingProxyType(tasks),
            stop_with_workers=stop,
        )

    # -- registering

    def register(self, job: str, index: int, newcomer: Newcomer, now: float) -> Registration:
        """Puts a task on an index. The process that holds it (Task.held_by) gets its old lease; another one is refused
        with ALREADY_EXISTS while the lease is live, and takes the index over afterwards. If all tasks had finished,
        this registration begins the next run."""
        task = self.task(job, index)
        if self._over:
            return self._next_run(now).register(job, index, newcomer, now)
        if task.state is TaskState.READY:
            if not task.held_by(newcomer):
                same = task.incarnation == newcomer.incarnation
                raise ApiError(
                    "task-taken",
                    f"{task.name} of cluster {self.name!r} is taken by {task.address} "
                    f"(incarnation {task.incarnation}), whose lease is alive. It becomes free when that task releases "
                    "its lease or stops renewing it."
                    + (" Who names the same incarnation shows its `lease`, too." if same else ""),
                    task=task.name,
                )
            if task.address != newcomer.address:
                task = replace(task, address=newcomer.address, since=now, reason="moved to a new address")
            # A task that claims an index knows its devices' names only then, and sends them in a second call.
            known = replace(task, devices=newcomer.devices or task.devices, insecure=newcomer.insecure)
            if known == self.task(job, index):
                return Registration(self, known, fresh=False)
            return Registration(self._with(known), known, fresh=False)
        reason = "registered" if task.incarnation is None else f"registered again; before: {task.reason}"
        ready = Task(
            job,
            index,
            TaskState.READY,
            now,
            reason[:500],
            newcomer.address,
            newcomer.incarnation,
            newcomer.devices,
            newcomer.lease_id,
            insecure=newcomer.insecure,
            registrar=newcomer.registrar,
            own_lease=newcomer.lease is not None,
        )
        return Registration(self._with(ready), ready, fresh=True)

    def claim(self, job: str, newcomer: Newcomer, now: float) -> Registration:
        """Puts a task on the next free index: one that it held before by address, else missing ones, else lost and
        stopped ones.
        Raises RESOURCE_EXHAUSTED when all are taken or finished. If all tasks of the cluster had finished, this claim
        begins the next run."""
        if self._over:
            return self._next_run(now).claim(job, newcomer, now)
        mine = list(self.job(job))
        for task in mine:
            if task.held_by(newcomer):
                return self.register(job, task.index, newcomer, now)
        free = sorted(
            (task for task in mine if task.absent),
            key=lambda t: (t.address != newcomer.address, t.state is not TaskState.MISSING, t.index),
        )
        if not free:
            held = ", ".join(f"task:{t.index} {t.state}" for t in mine[:20]) + (", …" if len(mine) > 20 else "")
            raise ApiError(
                "no-free-index",
                f"job {job!r} of cluster {self.name!r} has no free index: its size is {len(mine)} ({held}). "
                "Declare a larger size, or wait until a task releases its lease.",
            )
        return self.register(job, free[0].index, newcomer, now)

    @property
    def _over(self) -> bool:
        return all(task.state is TaskState.FINISHED for task in self.tasks.values())

    def _next_run(self, now: float) -> Cluster:
        """All tasks missing again: a parameter server of the next run must not end with the workers of the last one."""
        tasks = {
            key: Task(*key, since=now, reason=f"a new run of the cluster began; before: {task.reason}"[:500])
            for key, task in self.tasks.items()
        }
        return replace(self, version=self.version + 1, tasks=MappingProxyType(tasks))

    # -- leaving

    def end(
        self, job: str, index: int, state: TaskState, reason: str, now: float, exit_code: int | None = None
    ) -> Cluster:
        """The task is gone: FINISHED (done; the cluster no longer waits for it), STOPPED or LOST. Its last address
        stays visible until another one takes the index.

        Raises INVALID_ARGUMENT for a finished task with an exit code other than 0: that one has failed.
        """
        if state is TaskState.FINISHED and exit_code:
            raise ApiError(
                "failed-is-not-finished",
                f"{task_name(job, index)} ended with exit code {exit_code}, so it has not finished: its state is lost, "
                "or stopped if it was asked to stop.",
                at=("exit_code",),
            )
        task = self.task(job, index)
        ended = replace(task, state=state, since=now, reason=reason, lease_id=None, exit_code=exit_code, drain=None)
        return self._with(ended)

    def drain(self, job: str, index: int, drain: Drain) -> Cluster:
        """The task shall take no new work, and end. The same again changes nothing.

        Raises FAILED_PRECONDITION for a task without a live lease: nobody is there who could hear it.
        """
        task = self.task(job, index)
        if task.state is not TaskState.READY:
            raise ApiError(
                "nothing-to-drain",
                f"{task.name} of cluster {self.name!r} is {task.state} ({task.reason}): there is nobody to drain.",
                task=task.name,
            )
        return self if task.drain == drain else self._with(replace(task, drain=drain))

    def deregister(self, job: str, index: int, reason: str, now: float) -> Cluster:
        """Empties an index for an operator; the task becomes missing. Emptying an empty one changes nothing."""
        task = self.task(job, index)
        if task.state is TaskState.MISSING:
            return self
        return self._with(Task(job, index, TaskState.MISSING, now, reason))

    def require_idle(self) -> None:
        """Raises FAILED_PRECONDITION if a task is ready: the cluster must not vanish under it."""
        if alive := [task.name for task in self.tasks.values() if task.state is TaskState.READY]:
            raise ApiError(
                "tasks-alive",
                f"cluster {self.name!r} cannot be deleted: {', '.join(alive[:10])} hold live leases. Let them end, or "
                "add ?force=true.",
                task=alive[0],
            )

    def _with(self, task: Task) -> Cluster:
        place = (task.job, task.index)
        tasks = {**self.tasks, place: task}
        made = replace(self, version=self.version + 1, tasks=MappingProxyType(tasks))
        object.__setattr__(made, "_absent", self.absent - self.tasks[place].absent + task.absent)
        object.__setattr__(made, "_made_of", (self, place))
        return made

    def settle(self) -> None:
        """This is the newest value: what it was made of is no longer needed."""
        object.__setattr__(self, "_made_of", None)

    # -- looking

    @property
    def absent(self) -> int:
        """How many tasks are missing, lost or stopped."""
        if self._absent is None:
            object.__setattr__(self, "_absent", sum(task.absent for task in self.tasks.values()))
        assert self._absent is not None
        return self._absent

    def differing(self, old: Cluster | None) -> list[tuple[str, int]]:
        """The places whose tasks are others than in `old`, or are new."""
        if self._made_of is not None and self._made_of[0] is old:
            return [self._made_of[1]]
        before = {} if old is None else old.tasks
        return [place for place, task in self.tasks.items() if before.get(place) is not task]

    def dropped(self, old: Cluster | None) -> list[tuple[str, int]]:
        """The places of `old` that this cluster lacks."""
        if old is None or old.jobs == self.jobs:
            return []
        return [place for place in old.tasks if place not in self.tasks]

    def job(self, job: str) -> Iterator[Task]:
        """The tasks of a job by index. Raises NOT_FOUND naming the jobs that there are."""
        return (self.tasks[job, i] for i in range(self._size(job)))

    def _size(self, job: str) -> int:
        if job not in self.jobs:
            there = ", ".join(f"{name} ({size})" for name, size in self.jobs.items())
            raise ApiError("no-such-job", f"cluster {self.name!r} has no job {job!r}; its jobs are: {there}.")
        return self.jobs[job]

    def in_order(self, job: str | None, after: tuple[str, int] | None) -> Iterator[Task]:
        """All tasks, or those of a job, by job and index, behind a place. Raises NOT_FOUND as `job`."""
        for name in sorted(self.jobs) if job is None else [job]:
            size = self._size(name)
            if after is not None and name < after[0]:
                continue
            begin = after[1] + 1 if after is not None and name == after[0] else 0
            for index in range(max(0, begin), size):
                yield self.tasks[name, index]

    def task(self, job: str, index: int) -> Task:
        """The task on that index. Raises NOT_FOUND naming the indices that there are."""
        size = self._size(job)
        if not 0 <= index < size:
            raise ApiError(
                "no-such-task",
                f"job {job!r} of cluster {self.name!r} has size {size}: index {index} is not one of 0 to {size - 1}. "
                "PUT the cluster with a larger size to have it.",
                task=task_name(job, index),
            )
        return self.tasks[job, index]

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the tasks that are missing, lost or stopped, in declared order."""
        return tuple(task.name for task in self.tasks.values() if task.absent)

    @property
    def complete(self) -> bool:
        return not self.absent

    def addresses(self) -> dict[str, dict[int, str]]:
        """job → index → last known address; indices that were never held are left out."""
        spec: dict[str, dict[int, str]] = {job: {} for job in self.jobs}
        for task in self.tasks.values():
            if task.address is not None:
                spec[task.job][task.index] = task.address
        return spec

    def pick_master(self, job: str | None, index: int | None) -> Task:
        """The ready task whose master a session goes to: the named one, else the first one of chief, master, worker,
        any. Raises UNAVAILABLE naming the missing tasks and why."""
        if job is not None:
            candidates = [self.task(job, index)] if index is not None else list(self.job(job))
        else:
            candidates = sorted(self.tasks.values(), key=lambda t: master_order(t.job, t.index))
        for task in candidates:
            if task.state is TaskState.READY and task.drain is None:
                return task
        told = "; ".join(
            f"{t.name} is being drained: {t.drain.reason}" if t.drain else f"{t.name} is {t.state}: {t.reason}"
            for t in candidates[:10]
        )
        raise ApiError(
            "no-master",
            f"no task of cluster {self.name!r} can be the master of a session: {told or 'it has no tasks'}.",
            task=candidates[0].name if len(candidates) == 1 else None,
            missing_tasks=[t.name for t in candidates if t.absent],
        )


def _check_jobs(jobs: Mapping[str, int]) -> None:
    for job, size in jobs.items():
        if not JOB_NAME.fullmatch(job):
            raise ApiError(
                "invalid-jobs",
                f"job name {job!r} is not allowed: a letter, then letters, digits and '_', at most 63.",
                at=("jobs", job),
            )
        if size < 1:
            raise ApiError(
                "invalid-jobs",
                f"job {job!r} has size {size}; a job has at least one task. Leave the job out instead.",
                at=("jobs", job),
            )
    if not jobs:
        raise ApiError(
            "invalid-jobs", 'a cluster needs at least one job, for example {"ps": 1, "worker": 2}.', at=("jobs",)
        )
