"""The cluster of the run whose task this process is: what "tenfold:///NAME" means in it.

A program that names its cluster is a client, and starts no server. As a task of `tenfold run` it gets both: the cluster
is the run's, as TF_CONFIG has it, and its task's server starts here when the program first asks for the cluster.
Asked by control/targets.py; cli/child.py says how a server starts.
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.master_jobs import MASTER_JOBS
from tenfold_core.run_states import SERVERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold_core.cluster_spec import ClusterSpec

#: Targets without a service of their own begin so.
_NAMELESS = "tenfold:///"


@dataclass(frozen=True, slots=True)
class RunCluster:
    """A run's cluster, and which task of it this process is."""

    spec: ClusterSpec
    job: str
    index: int

    @property
    def has_server(self) -> bool:
        """Whether this task is one of the cluster's; an evaluator is beside it."""
        return self.job in self.spec.jobs and self.index in self.spec.task_indices(self.job)

    def master(self, job: str | None, index: int | None) -> str:
        """The "grpc://host:port" of that task; without one this process's own, or the first that leads a run. Raises
        NotFoundError for a task that the run does not have."""
        if job is None or index is None:
            leaders = [(each, 0) for each in MASTER_JOBS if each in self.spec.jobs]
            job, index = (self.job, self.index) if self.has_server or not leaders else leaders[0]
        try:
            return f"grpc://{self.spec.task_address(job, index)}"
        except ValueError:
            there = ", ".join(f"{self.spec.num_tasks(each)} {each}" for each in self.spec.jobs)
            text = f"This run's cluster has no task {job}/{index}; it has {there}."
            raise errors.NotFoundError(None, None, text) from None


#: Starts the server of a task, and gives what waits for its end; None where this process has a server at that address.
#: Set before the program begins.
start: Callable[[RunCluster], Callable[[], None] | None] | None = None

_lock = threading.Lock()
#: Whether `start` has been called.
_started = False


def of_target(target: str, environment: Mapping[str, str] = os.environ) -> RunCluster | None:
    """What a session's target means in this process; None where it names a control service, or this is no task of a
    run."""
    from tenfold_core.cluster_spec import ClusterSpec

    if not target.startswith(_NAMELESS) or not environment.get("TENFOLD_TASK"):
        return None
    try:
        config = json.loads(environment.get("TF_CONFIG") or "{}")
        task, cluster = config["task"], ClusterSpec(config["cluster"])
        return RunCluster(cluster, str(task["type"]), int(task["index"]))
    except (KeyError, TypeError, ValueError):
        return None  # the program has a TF_CONFIG of its own


def serve(cluster: RunCluster) -> None:
    """Starts this task's server at the first call. Blocks until it listens. In a parameter server it blocks until the
    workers have finished, and then ends the program: raises SystemExit(0) on the main thread."""
    global _started
    with _lock:
        if _started or start is None or not cluster.has_server:
            return
        wait = start(cluster)
        _started = True
    if wait is not None and cluster.job == SERVERS:
        wait()
