"""The control service's answers as values: the versioned cluster spec, a lease. Read-only; made from JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_core.cluster_spec import ClusterSpec


@dataclass(frozen=True, slots=True)
class Spec:
    """One version of a cluster's spec."""

    cluster: str
    version: int
    #: No declared task is missing or lost.
    complete: bool
    jobs: Mapping[str, int]
    #: job → index → last known address; tasks that never registered are left out.
    addresses: Mapping[str, Mapping[int, str]]
    #: Full task name → missing | ready | lost | stopped | finished.
    states: Mapping[str, str]
    missing_tasks: tuple[str, ...]
    #: Whether parameter servers end once every worker, and the chief, has finished.
    stop_with_workers: bool = False

    @staticmethod
    def from_json(answer: Mapping[str, Any]) -> Spec:
        return Spec(
            answer["cluster"],
            answer["version"],
            answer["complete"],
            dict(answer["jobs"]),
            {job: {int(i): address for i, address in tasks.items()} for job, tasks in answer["spec"].items()},
            {task["name"]: task["state"] for task in answer["tasks"]},
            tuple(answer["missing_tasks"]),
            bool(answer.get("stop_with_workers")),
        )

    @property
    def finished_tasks(self) -> tuple[str, ...]:
        """Names of the tasks that reported that they are done."""
        return tuple(task for task, state in self.states.items() if state == "finished")

    @property
    def lost_tasks(self) -> tuple[str, ...]:
        """Names of the tasks that were there and ended without having finished: lost or stopped."""
        return tuple(task for task, state in self.states.items() if state in ("lost", "stopped"))

    def cluster_spec(self) -> ClusterSpec:
        """The addresses known so far as a `ClusterSpec`; sparse while tasks are missing."""
        from tenfold_core.cluster_spec import ClusterSpec

        return ClusterSpec({job: dict(tasks) for job, tasks in self.addresses.items() if tasks})


@dataclass(frozen=True, slots=True)
class Lease:
    """A task's hold on its index: renewed every `heartbeat` seconds, over `ttl` seconds after the last renewal."""

    id: str
    cluster: str
    job: str
    index: int
    task: str
    incarnation: str
    ttl: float
    heartbeat: float
    spec_version: int
    #: False when this incarnation held the index already.
    fresh: bool
