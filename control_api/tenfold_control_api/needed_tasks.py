"""Which tasks a graph needs that are not there: told at once, before a master waits for them. Pure.

Called by session_service.py. A node's device names its job and task; one that names only a job is placed on any task
of it, one that names none on the master's own. The placer decides for good; this looks at what no placer could do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_control_api.cluster import NEVER, TaskState
from tenfold_core.device import DeviceSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_control_api.cluster import Cluster, Task
    from tenfold_protos.graph_pb2 import GraphDef


def places(graph_def: GraphDef) -> frozenset[tuple[str, int | None]]:
    """(job, task index or None) that the graph's devices name. A device that is malformed is the placer's matter."""
    named = {node.device for node in graph_def.node}
    named.update(node.device for function in graph_def.library.function for node in function.node_def)
    found: set[tuple[str, int | None]] = set()
    for text in named - {""}:
        try:
            spec = DeviceSpec.from_string(text)
        except ValueError:
            continue
        if spec.job is not None:
            found.add((spec.job, spec.task))
    return frozenset(found)


def absent(cluster: Cluster, wanted: Iterable[tuple[str, int | None]]) -> list[Task]:
    """The tasks at these places that are not ready; of a job without an index all, where none of them is ready."""
    found: dict[str, Task] = {}
    for job, index in wanted:
        tasks = [task for key, task in cluster.tasks.items() if key[0] == job and (index is None or key[1] == index)]
        if not any(task.state is TaskState.READY for task in tasks):
            found.update((task.name, task) for task in tasks)
    return [task for task in cluster.tasks.values() if task.name in found]


def reason_text(task: Task, now: float) -> str:
    """`/job:worker/replica:0/task:1 is lost: ended by SIGKILL, 12 s ago`. `now` is wall-clock time."""
    if task.state is TaskState.MISSING and task.reason == NEVER:
        return f"{task.name} has never registered"
    return f"{task.name} is {task.state}: {task.reason}, {max(0.0, now - task.since):.0f} s ago"
