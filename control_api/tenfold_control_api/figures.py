"""The figures that tasks send with their heartbeats: their shape, and the newest ones of a task as they are kept.

leases.py keeps them in memory beside the lease: they are news, not a promise. Shown by views.py in `TaskView.figures`
and by core/task_metrics.py on `/metrics`. A task collects them in tenfold_services.figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

#: More than a task sends (tenfold_services.figures), so that a bound there may grow before the service is renewed.
_MOST_PEERS, _MOST_QUEUES, _MOST_SESSIONS, _MOST_TABLES = 256, 256, 256, 1024

Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=300)]


class _Told(BaseModel):
    #: A newer task may know more.
    model_config = ConfigDict(extra="ignore", frozen=True)


class PeerFigures(_Told):
    """Traffic between a task and another task."""

    task: Name
    bytes_sent: Count
    bytes_received: Count


class QueueFigures(_Told):
    """The fill level of a task's queue; without a capacity, the queue is unbounded."""

    name: Name
    size: Count
    capacity: Count | None = None


class TableFigures(_Told):
    """A table of a task, or its part of one: an embedding variable, or a lookup table, which knows fewer figures."""

    name: Name
    kind: Annotated[str, StringConstraints(max_length=100)] = Field(
        description="`EmbeddingVariable`, or the op that makes the lookup table."
    )
    rows: Count = Field(description="Ids or keys in the table, those that wait for admission included.")
    waiting: Count | None = Field(
        None, description="Ids that the table's filter has not admitted yet; null for a lookup table, as the next ones."
    )
    evicted: Count | None = Field(None, description="Ids that were evicted since the task has the table.")
    bytes: Count = Field(description="Memory of the rows with all slots, of their ids and of initial values.")
    quota_bytes: Count | None = Field(
        None, description="The part of `bytes` that counts for the limits of the task's state."
    )
    lookups: Count | None = Field(None, description="Ids that were looked up since then, each as often as it was.")
    found: Count | None = Field(None, description="Those of them that had weights of their own by then.")


Tables = Annotated[list[TableFigures], Field(max_length=_MOST_TABLES)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SessionFigures(_Told):
    """An open session as its master sees it: a TensorFlow client's, another program's, or one that was opened here."""

    handle: Name = Field(description="The master's name for it.")
    client: Annotated[str, Field(max_length=300)] = Field(
        "",
        description='The client that opened it, "ipv4:127.0.0.1:1234"; empty for a client in the task\'s own process.',
    )
    age: Seconds = Field(description="Seconds since it was opened.")
    idle: Seconds = Field(description="Seconds since it was last used.")
    steps: Count
    steps_per_second: Seconds | None = Field(
        None, description="Over the last two measurements, which are at least a second apart."
    )
    running: Count = Field(description="Active steps.")


class FiguresReport(_Told):
    """A task's report on itself, without the members that it does not know."""

    resident_bytes: Count | None = Field(None, description="Memory of the task's process.")
    shared_bytes: Count | None = Field(None, description="The part of it that is shared with other processes.")
    cpu_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None, description="Processor time since the process began."
    )
    minor_faults: Count | None = Field(None, description="Page faults without a disk since the process began.")
    threads: Count | None = None
    variables: Count | None = Field(None, description="Initialized variables.")
    variable_bytes: Count | None = None
    table_rows: Count | None = Field(None, description="Rows of all its tables.")
    table_bytes: Count | None = Field(None, description="Bytes of all its tables.")
    tables: Tables = Field([], description="Its largest tables: embedding variables and lookup tables.")
    tables_left_out: Count | None = Field(None, description="How many tables are not in that list.")
    steps: Count | None = Field(None, description="Steps that had a part on this task.")
    sessions: Count | None = Field(None, description="Open sessions of the task's master.")
    open_sessions: Annotated[list[SessionFigures], Field(max_length=_MOST_SESSIONS)] = Field(
        [], description="The most recently used sessions of the task's master."
    )
    bytes_sent: Count | None = Field(
        None, description="Total bytes sent, including to clients, through shared memory and sockets."
    )
    bytes_received: Count | None = None
    long_kernels: Count | None = Field(None, description="Long-running kernels that are still computing.")
    peers: Annotated[list[PeerFigures], Field(max_length=_MOST_PEERS)] = Field(
        [], description="The peer tasks with the most traffic."
    )
    queues: Annotated[list[QueueFigures], Field(max_length=_MOST_QUEUES)] = Field([], description="The fullest queues.")


class TaskFigures(FiguresReport):
    """A task's newest figures, and when they arrived."""

    updated: str


@dataclass(frozen=True, slots=True)
class NewestFigures:
    """A report as it came, and when, in wall-clock seconds."""

    report: FiguresReport
    updated: float
