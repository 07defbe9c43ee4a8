"""Tasks' figures as metrics for Prometheus, in its text format: the names, their kinds, and the lines of a scrape.

The control service adds them to its `/metrics` for all tasks (tenfold_control_api.scrape), a task serves its own on a
port (tenfold.cli.metrics_port). Written here and not by a library, because a task does without that, and a scrape of a
thousand tasks must be short: 0.5 µs a sample. The members are those of tenfold_services.figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    #: What a task tells, and under which labels (`labels`).
    Task = tuple[str, Mapping[str, Any]]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: Peers and queues of one task in a scrape: those with the most traffic, and the fullest; and its largest tables.
MOST_PARTS, MOST_TABLES = 16, 64
#: Samples in one piece of text.
_PIECE = 2000


class Metric(NamedTuple):
    """One family: its name, `gauge` or `counter`, what it is, and the member that has its value."""

    name: str
    kind: str
    help: str
    member: str


TASK_METRICS = (
    Metric("tenfold_task_resident_bytes", "gauge", "Memory of the task's process.", "resident_bytes"),
    Metric("tenfold_task_shared_bytes", "gauge", "Memory of the process that it shares.", "shared_bytes"),
    Metric("tenfold_task_cpu_seconds_total", "counter", "Processor time of the task's process.", "cpu_seconds"),
    Metric("tenfold_task_minor_faults_total", "counter", "Page faults without a disk.", "minor_faults"),
    Metric("tenfold_task_threads", "gauge", "Threads of the task's process.", "threads"),
    Metric("tenfold_task_variables", "gauge", "Initialized variables.", "variables"),
    Metric("tenfold_task_variable_bytes", "gauge", "Bytes of the task's variables.", "variable_bytes"),
    Metric("tenfold_task_tables_rows", "gauge", "Rows of the task's tables.", "table_rows"),
    Metric("tenfold_task_tables_bytes", "gauge", "Bytes of the task's tables.", "table_bytes"),
    Metric("tenfold_task_steps_total", "counter", "Steps that had a part on the task.", "steps"),
    Metric("tenfold_task_sessions", "gauge", "Open sessions of the task's master.", "sessions"),
    Metric("tenfold_task_sent_bytes_total", "counter", "Bytes sent to tasks and clients.", "bytes_sent"),
    Metric("tenfold_task_received_bytes_total", "counter", "Bytes received from them.", "bytes_received"),
    Metric("tenfold_task_long_kernels", "gauge", "Kernels that have computed for long.", "long_kernels"),
    Metric(
        "tenfold_task_heartbeat_age_seconds", "gauge", "Time since the task renewed its lease.", "heartbeat_age_seconds"
    ),
)
PEER_METRICS = (
    Metric("tenfold_task_peer_sent_bytes_total", "counter", "Bytes sent to a peer task.", "bytes_sent"),
    Metric("tenfold_task_peer_received_bytes_total", "counter", "Bytes received from a peer task.", "bytes_received"),
)
QUEUE_METRICS = (
    Metric("tenfold_task_queue_size", "gauge", "Elements in a queue of the task.", "size"),
    Metric("tenfold_task_queue_capacity", "gauge", "How many elements a bounded queue takes.", "capacity"),
)
TABLE_METRICS = (
    Metric("tenfold_task_table_rows", "gauge", "Rows of a table, or of the task's part of it.", "rows"),
    Metric("tenfold_task_table_waiting_rows", "gauge", "Those that its filter has not admitted yet.", "waiting"),
    Metric("tenfold_task_table_evicted_total", "counter", "Ids that were evicted.", "evicted"),
    Metric("tenfold_task_table_bytes", "gauge", "Memory of a table.", "bytes"),
    Metric("tenfold_task_table_quota_bytes", "gauge", "What of it counts for the task's limits.", "quota_bytes"),
    Metric("tenfold_task_table_lookups_total", "counter", "Ids that were looked up.", "lookups"),
    Metric("tenfold_task_table_found_total", "counter", "Those of them that had weights of their own.", "found"),
)
BUILD_INFO = Metric("tenfold_build_info", "gauge", "1, with the versions of Tenfold and of Python.", "")


def labels(**values: str) -> str:
    """`cluster="a",job="ps"`, with the values escaped."""
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in values.items())


def family(metric: Metric, samples: Sequence[tuple[str, float]]) -> str:
    """One metric's lines of a scrape; nothing without a sample."""
    return "".join(_family(metric, samples))


def families(tasks: Sequence[Task]) -> Iterator[str]:
    """The text of all families of these tasks in pieces, some of them empty: each takes a few milliseconds, and a
    caller with many tasks gives others their turn between.

    What a task does not tell has no sample.
    """
    for metric in TASK_METRICS:
        member = metric.member
        yield from _family(metric, [(who, value) for who, told in tasks if (value := told.get(member)) is not None])
    yield from _parts(PEER_METRICS, "peer", tasks, "peers", "task", ("bytes_sent", "bytes_received"))
    yield from _parts(QUEUE_METRICS, "queue", tasks, "queues", "name", ("size",))
    yield from _parts(TABLE_METRICS, "table", tasks, "tables", "name", ("bytes",), MOST_TABLES)


def _family(metric: Metric, samples: Sequence[tuple[str, float]]) -> Iterator[str]:
    name = metric.name
    if samples:
        yield f"# HELP {name} {metric.help}\n# TYPE {name} {metric.kind}\n"
    for start in range(0, len(samples), _PIECE):
        yield "".join([f"{name}{{{which}}} {value}\n" for which, value in samples[start : start + _PIECE]])


def _parts(
    metrics: Sequence[Metric],
    label: str,
    tasks: Sequence[Task],
    member: str,
    named: str,
    by: tuple[str, ...],
    most: int = MOST_PARTS,
) -> Iterator[str]:
    """Families with one label more than the task's, for the `most` largest of its parts `by` the sum of these members.
    Of two parts of one name the last counts: a series comes once."""
    columns: list[list[tuple[str, float]]] = [[] for _ in metrics]
    since = 0
    for who, told in tasks:
        parts = told.get(member) or ()
        if len(parts) > most:
            parts = sorted(parts, key=lambda part: -sum(part[each] for each in by))[:most]
        for name, part in {part[named]: part for part in parts}.items():
            which = f'{who},{label}="{_escaped(name)}"'
            for column, metric in zip(columns, metrics, strict=True):
                if (value := part[metric.member]) is not None:
                    column.append((which, value))
        since += len(parts)
        if since > _PIECE:
            since = 0
            yield ""
    for column, metric in zip(columns, metrics, strict=True):
        yield from _family(metric, column)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
