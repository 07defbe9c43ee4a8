"""A task's figures, read where they are counted: memory, variables, steps, sessions, traffic, queues, long kernels.

Sent with each heartbeat (tenfold.control.registration) and served on the task's own port (tenfold.cli.metrics_port);
the members are those of `TaskFigures` of the control service. Nothing is asked of the event loop and no lock is taken
for more than a moment: a task that is busy still says how it is. Memory, faults and traffic are those of the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core.process_figures import process_figures
from tenfold_core.traffic import total_traffic, traffic_by_task
from tenfold_kernels.resources.queues import UNBOUNDED, Queue
from tenfold_kernels.resources.state import Variable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_kernels.resources.state import ResourceManager

    from .server import TaskServer

#: Peers and queues that are told of, those with the most traffic and the fullest: what one report and one scrape hold.
MOST_PEERS, MOST_QUEUES = 64, 32
#: Open sessions that are told of, those that were used last.
MOST_SESSIONS = 32


def task_figures(server: TaskServer) -> dict[str, Any]:
    """The figures of a server as it is now, for JSON. Any thread; takes some 10 µs and 0.2 µs a variable. Raises
    FailedPreconditionError before the server has started."""
    worker = server.worker
    sent, received = total_traffic()
    managers = {id(manager): manager for manager in worker.every_resources()}.values()
    return {
        **process_figures(),
        **variable_figures(managers),
        "steps": worker.step_count.steps + server.caller_steps.steps,
        "sessions": len(server.master.open_sessions),
        "open_sessions": server.master.session_statuses(MOST_SESSIONS),
        "bytes_sent": sent,
        "bytes_received": received,
        "long_kernels": worker.pool.long,
        "peers": peer_figures(traffic_by_task(), server.task),
        "queues": queue_figures(managers),
    }


def variable_figures(managers: Iterable[ResourceManager]) -> dict[str, int]:
    """How many initialized variables there are, and their bytes."""
    sizes = [variable.nbytes for each in managers for variable in each.every(Variable) if variable.is_initialized]
    return {"variables": len(sizes), "variable_bytes": sum(sizes)}


def queue_figures(managers: Iterable[ResourceManager]) -> list[dict[str, Any]]:
    """The fullest queues, by name; the capacity of one without a bound is None."""
    # of isolated sessions' queues of one name the fullest
    queues: dict[str, tuple[int, int]] = {}
    for queue in (queue for each in managers for queue in each.every(Queue)):
        found = (queue.size(), queue.capacity)
        queues[queue.name] = max(queues.get(queue.name, found), found)
    fullest = sorted(queues, key=lambda name: (-queues[name][0] / max(1, queues[name][1]), name))[:MOST_QUEUES]
    return [
        {"name": name, "size": size, "capacity": None if capacity == UNBOUNDED else capacity}
        for name in sorted(fullest)
        for size, capacity in [queues[name]]
    ]


def peer_figures(traffic: Iterable[tuple[str, int, int]], task: str) -> list[dict[str, Any]]:
    """The peer tasks with the most traffic, by name; without `task` itself."""
    others = [each for each in traffic if each[0] != task and each[1] + each[2]]
    busiest = sorted(others, key=lambda peer: (-peer[1] - peer[2], peer[0]))[:MOST_PEERS]
    return [{"task": name, "bytes_sent": sent, "bytes_received": received} for name, sent, received in sorted(busiest)]
