"""Clusters, tasks, leases, sessions and events as the control service tells them. Times are ISO 8601 in UTC.

Of answers.py's kind; made by client.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenfold.control.answers import Answer, answer


@answer
class Condition(Answer):
    """One thing that is true of an object or not, and why."""

    type: str
    status: bool
    reason: str
    message: str


@answer
class Device(Answer):
    """A device of a task, as `DeviceAttributes` describes it."""

    name: str
    device_type: str = "CPU"
    memory_limit: int = 0
    incarnation: str | None = None
    physical_device_desc: str = ""


@answer
class PeerFigures(Answer):
    """What a task has sent to another task and received from it."""

    task: str
    bytes_sent: int
    bytes_received: int


@answer
class QueueFigures(Answer):
    """How full a queue of a task is; no capacity: it has no bound."""

    name: str
    size: int
    capacity: int | None = None


@answer
class TableFigures(Answer):
    """A table of a task, or its part of one. What only embedding variables have is None for a lookup table."""

    name: str
    #: EmbeddingVariable, or the op that makes the lookup table.
    kind: str
    #: Ids or keys, those that wait for admission included.
    rows: int
    waiting: int | None = None
    #: Since the task has the table.
    evicted: int | None = None
    #: Of rows with all slots, ids and initial values; and what of it counts for the limits of the task's state.
    bytes: int
    quota_bytes: int | None = None
    #: Ids that were looked up, and those of them that had weights of their own by then.
    lookups: int | None = None
    found: int | None = None


@answer
class Table(Answer):
    """A table with all its parts; its figures are the sums of TableFigures."""

    #: Without the `/part_0` of a part.
    name: str
    kind: str
    #: On how many tasks there is a part; of a lookup table each has one of its own.
    parts: int
    rows: int
    #: `rows` without `waiting`.
    admitted: int | None
    waiting: int | None
    evicted: int | None
    bytes: int
    quota_bytes: int | None
    lookups: int | None
    found: int | None
    #: `found` of `lookups`, from 0 to 1.
    hit_rate: float | None
    #: The task with the most rows, as in ps/0, and how many times the mean of the parts it has; None for one part.
    largest: str | None
    unevenness: float | None


@answer
class Tables(Answer):
    """The tables of all tasks of a cluster or a run."""

    #: The largest first.
    tables: tuple[Table, ...]
    #: How many parts of tables are not in the list.
    left_out: int
    rows: int
    bytes: int
    #: The parameter server with the most bytes of tables, and how many times the mean of all it has; None for one.
    largest: str | None
    unevenness: float | None


@answer
class SessionFigures(Answer):
    """An open session as its master sees it, of any client."""

    handle: str
    #: "ipv4:127.0.0.1:1234"; empty for a client in the task's own process.
    client: str = ""
    #: Seconds since it was opened, and since it was last used.
    age: float
    idle: float
    steps: int
    steps_per_second: float | None = None
    #: Steps that run now.
    running: int


@answer
class TaskFigures(Answer):
    """What a task said of itself last. What it does not know is None."""

    #: Memory of the task's process, and what of it others share.
    resident_bytes: int | None = None
    shared_bytes: int | None = None
    #: Processor time, and page faults without a disk, since the process began.
    cpu_seconds: float | None = None
    minor_faults: int | None = None
    threads: int | None = None
    #: Initialized variables.
    variables: int | None = None
    variable_bytes: int | None = None
    #: Of all its tables, embedding variables and lookup tables; the largest of them, and how many others there are.
    table_rows: int | None = None
    table_bytes: int | None = None
    tables: tuple[TableFigures, ...] = ()
    tables_left_out: int | None = None
    #: Steps that had a part on this task.
    steps: int | None = None
    #: Open sessions of the task's master.
    sessions: int | None = None
    #: In all, to clients too; by shared memory as by sockets.
    bytes_sent: int | None = None
    bytes_received: int | None = None
    #: Kernels that have computed for long and still do.
    long_kernels: int | None = None
    #: The sessions of its master that were used last.
    open_sessions: tuple[SessionFigures, ...] = ()
    #: The peer tasks with the most traffic, the fullest queues.
    peers: tuple[PeerFigures, ...] = ()
    queues: tuple[QueueFigures, ...] = ()
    updated: str


@answer
class Drain(Answer):
    """The task takes no new work, and ends once its running steps have, or `grace` seconds are over."""

    grace: float
    reason: str


@answer
class Task(Answer):
    """A task of a cluster."""

    #: /job:worker/replica:0/task:1
    name: str
    uid: str
    version: int
    #: missing | ready | lost | stopped | finished
    state: str
    conditions: tuple[Condition, ...] = ()
    cluster: str
    job: str
    index: int
    #: It is in this state since then, for that reason.
    since: str
    reason: str
    address: str | None
    incarnation: str | None
    devices: tuple[Device, ...]
    exit_code: int | None
    #: Seconds since the last renewal; None without a live lease.
    last_heartbeat_age: float | None
    #: Set while the task is being drained.
    drain: Drain | None = None
    #: It accepts anyone who reaches its port, as it says itself.
    insecure: bool = False
    #: The newest; None where another replica of the service has them.
    figures: TaskFigures | None = None


@answer
class Job(Answer):
    """The tasks of one job."""

    name: str
    uid: str
    version: int
    state: str
    conditions: tuple[Condition, ...] = ()
    cluster: str
    size: int
    #: State → tasks in it.
    counts: Mapping[str, int]
    missing_tasks: tuple[str, ...]
    tasks: tuple[Task, ...]


@answer
class Jobs(Answer):
    """The jobs of one cluster, with their tasks."""

    cluster: str
    version: int
    jobs: tuple[Job, ...]
    #: None where no task tells of one.
    tables: Tables | None = None


@answer
class Cluster(Answer):
    """What is declared of a cluster, and how it stands."""

    name: str
    uid: str
    version: int
    #: waiting | ready | degraded | stopped | finished
    state: str
    conditions: tuple[Condition, ...] = ()
    created: str
    #: Job → number of tasks.
    jobs: Mapping[str, int]
    #: Whether parameter servers end once every worker, and the chief, has finished.
    stop_with_workers: bool
    complete: bool
    counts: Mapping[str, int]
    missing_tasks: tuple[str, ...]
    #: Job → index, as text → last known address.
    spec: Mapping[str, Mapping[str, str]]


@answer
class Service(Answer):
    """The control service itself: whom it accepts, and how."""

    version: str
    #: Anyone who reaches it is accepted.
    insecure: bool
    #: It asks for a token; it speaks HTTPS, and alone.
    tokens: bool
    tls: bool
    #: Where other services with the same database are.
    services: tuple[str, ...]
    #: How many runs its database had when it started.
    runs_found: int


@answer
class LeaseStatus(Answer):
    """A lease, live or ended. Times are in seconds."""

    id: str
    state: str
    cluster: str
    task: str
    ttl: float
    heartbeat: float
    expires_in: float | None
    spec_version: int | None = None
    complete: bool | None = None
    #: How it ended: finished | stopped | lost | missing.
    outcome: str | None = None
    reason: str | None = None
    exit_code: int | None = None
    #: Set once the task is to end.
    drain: Drain | None = None


@answer
class Release(Answer):
    """A task that has left."""

    task: Task
    spec_version: int


@answer
class SessionStatus(Answer):
    """A session at the service."""

    name: str
    uid: str
    version: int
    state: str
    conditions: tuple[Condition, ...] = ()
    cluster: str
    job: str
    index: int
    #: The task whose master it is at, and that master's grpc:// address.
    master: str
    target: str
    graph_version: int
    created: str
    #: Seconds since its last use.
    idle: float


@answer
class Event(Answer):
    """Something that happened."""

    #: Its place among all events; `events(after=id)` goes on from here.
    id: int
    time: str
    #: cluster | task | run | checkpoint | session
    kind: str
    #: What became of `object`, e.g. ready, lost, FAILED, written, closed.
    action: str
    object: str
    message: str
    cluster: str | None
    run: str | None
    data: Mapping[str, Any]
