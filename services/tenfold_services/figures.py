"""A task's figures, read where they are counted: memory, variables, tables, steps, sessions, traffic, queues, kernels.

Sent with each heartbeat (tenfold.control.registration) and served on the task's own port (tenfold.cli.metrics_port);
the members are those of `TaskFigures` of the control service. Nothing is asked of the event loop and no lock is taken
for more than a moment: a task that is busy still says how it is. Memory, faults and traffic are those of the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core.process_figures import process_figures
from tenfold_core.traffic import total_traffic, traffic_by_task
from tenfold_kernels.resources.figures import queue_figures, table_figures, variable_figures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .server import TaskServer

#: Peers that are told of, those with the most traffic: what one report and one scrape hold.
MOST_PEERS = 64
#: Open sessions that are told of, those that were used last.
MOST_SESSIONS = 32


def task_figures(server: TaskServer) -> dict[str, Any]:
    """The figures of a server as it is now, for JSON. Any thread; takes some 10 µs, 0.2 µs a variable, and 10 µs a
    table. Raises FailedPreconditionError before the server has started."""
    worker = server.worker
    sent, received = total_traffic()
    managers = {id(manager): manager for manager in worker.every_resources()}.values()
    return {
        **process_figures(),
        **variable_figures(managers),
        **table_figures(managers),
        "steps": worker.step_count.steps + server.caller_steps.steps,
        "sessions": len(server.master.open_sessions),
        "open_sessions": server.master.session_statuses(MOST_SESSIONS),
        "bytes_sent": sent,
        "bytes_received": received,
        "long_kernels": worker.pool.long,
        "peers": peer_figures(traffic_by_task(), server.task),
        "queues": queue_figures(managers),
    }


def peer_figures(traffic: Iterable[tuple[str, int, int]], task: str) -> list[dict[str, Any]]:
    """The peer tasks with the most traffic, by name; without `task` itself."""
    others = [each for each in traffic if each[0] != task and each[1] + each[2]]
    busiest = sorted(others, key=lambda peer: (-peer[1] - peer[2], peer[0]))[:MOST_PEERS]
    return [{"task": name, "bytes_sent": sent, "bytes_received": received} for name, sent, received in sorted(busiest)]
