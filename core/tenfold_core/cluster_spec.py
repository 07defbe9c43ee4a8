"""`ClusterSpec`: which tasks make up a cluster, and where each of them listens.

Used by `tf.train.Server`, by the services (as job → index → address) and by the control service's client. Semantics
are TF 1.15's `training/server_lib.py`; malformed input fails here, at once, with the job and index named, instead of
later inside a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from tenfold_core import errors
from tenfold_core.address import split_named_address
from tenfold_protos import cluster_pb2

#: What `ClusterSpec(...)` takes: jobs to a dense list or a sparse {index: address}, a proto, or another spec.
ClusterLike: TypeAlias = "Mapping[str, Any] | cluster_pb2.ClusterDef | ClusterSpec"

#: Job → index → "host:port"; "" where the task has not registered.
Addresses: TypeAlias = dict[str, dict[int, str]]

_EXPECTED = (
    "`cluster` must be a dictionary mapping one or more job names to lists of network addresses, "
    "or a `ClusterDef` protocol buffer"
)


class ClusterSpec:
    """An immutable map job → task index → "host:port".

    Raises TypeError if `cluster` is of no accepted type or holds a name, index or address of a wrong type, and
    ValueError for a negative index, an empty address or an address that names a scheme. Never blocks: addresses
    are not resolved.
    """

    #: Every job in the order given, every index with a non-empty address; indices may be sparse.
    _tasks: dict[str, dict[int, str]]

    def __init__(self, cluster: ClusterLike) -> None:
        if isinstance(cluster, ClusterSpec):
            self._tasks = {job: dict(tasks) for job, tasks in cluster._tasks.items()}
        elif isinstance(cluster, cluster_pb2.ClusterDef):
            self._tasks = {job.name: _checked_tasks(job.name, dict(job.tasks)) for job in cluster.job}
        elif isinstance(cluster, Mapping):
            self._tasks = {}
            for job, tasks in cluster.items():
                name = _text(job)
                if name is None:
                    raise TypeError(f"Job name {job!r} must be bytes or unicode")
                self._tasks[name] = _checked_tasks(name, tasks)
        else:
            raise TypeError(f"{_EXPECTED}, but got {type(cluster).__name__}: {cluster!r}")

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def __eq__(self, other: object) -> bool:
        """True for a spec, or a dictionary of any shape that `ClusterSpec` takes, with the same tasks."""
        if isinstance(other, ClusterSpec):
            return self._tasks == other._tasks
        if isinstance(other, Mapping):
            try:
                return self._tasks == ClusterSpec(other)._tasks
            except (TypeError, ValueError):
                return False
        return NotImplemented

    # Equality follows content and TF's class is unhashable as well.
    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        as_dict = self.as_dict()
        return "ClusterSpec({" + ", ".join(f"{job!r}: {as_dict[job]!r}" for job in sorted(as_dict)) + "})"

    __repr__ = __str__

    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """Job → list of addresses if the indices are dense, otherwise {index: address}."""
        result: dict[str, list[str] | dict[int, str]] = {}
        for job, tasks in self._tasks.items():
            indices = sorted(tasks)
            if indices and indices[-1] + 1 == len(indices):
                result[job] = [tasks[index] for index in indices]
            else:
                result[job] = {index: tasks[index] for index in indices}
        return result

    def as_cluster_def(self) -> cluster_pb2.ClusterDef:
        """A `ClusterDef` of its own, jobs sorted by name so that equal specs serialise alike."""
        cluster_def = cluster_pb2.ClusterDef()
        for job in sorted(self._tasks):
            job_def = cluster_def.job.add(name=job)
            for index, address in sorted(self._tasks[job].items()):
                job_def.tasks[index] = address
        return cluster_def

    @property
    def jobs(self) -> list[str]:
        """Names of the jobs, in the order in which the spec was given."""
        return list(self._tasks)

    def num_tasks(self, job_name: str) -> int:
        """Number of tasks defined in `job_name`. Raises ValueError if there is no such job."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """Sorted indices of the tasks of `job_name`. Raises ValueError if there is no such job."""
        return sorted(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Address of one task. Raises ValueError if there is no such job or no such task in it."""
        tasks = self._job(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}; its tasks are {sorted(tasks)}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """Addresses by index; None where a sparse job has no such task. Raises ValueError for an unknown job."""
        tasks = self._job(job_name)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    def _job(self, job_name: str) -> dict[int, str]:
        try:
            return self._tasks[job_name]
        except (KeyError, TypeError):
            raise ValueError(f"No such job in cluster: {job_name!r}; its jobs are {sorted(self._tasks)}") from None


def addresses_of(cluster: ClusterLike | None) -> Addresses:
    """The addresses in a cluster of any form that ClusterSpec takes; unlike there, an address may be "".

    Raises InvalidArgumentError naming job and index of what is malformed.
    """
    if cluster is None:
        return {}
    if isinstance(cluster, ClusterSpec):
        cluster = cluster.as_cluster_def()
    jobs = (
        [(job.name, dict(job.tasks)) for job in cluster.job]
        if isinstance(cluster, cluster_pb2.ClusterDef)
        else cluster.items()
    )
    result: Addresses = {}
    for job, tasks in jobs:
        result[job] = {}
        for index, address in task_pairs(tasks) or ():
            if not isinstance(index, int) or index < 0 or not isinstance(address, str):
                raise errors.invalid_argument(
                    f'/job:{job} has the task {index!r}: {address!r}; an index and "host:port" are expected.'
                )
            if address:
                split_named_address(address, f"/job:{job}/task:{index}")
            result[job][index] = address
    return result


def task_pairs(tasks: object) -> list[tuple[Any, Any]] | None:
    """(index, address) of each task of a job, unchecked: a list numbers its addresses, a mapping has index → address.

    None for any other form. The one place that knows the forms of a job's tasks; what an index and an address may be is
    checked where they come in: by ClusterSpec, by a server (there an address may be missing), by the command line.
    """
    if isinstance(tasks, (list, tuple)):
        return list(enumerate(tasks))
    return list(tasks.items()) if isinstance(tasks, Mapping) else None


def _checked_tasks(job: str, tasks: object) -> dict[int, str]:
    """One job's tasks as {index: address}; errors name the job."""
    pairs = task_pairs(tasks)
    if pairs is None:
        raise TypeError(f"The tasks for job {job!r} must be a list or a dictionary from integers to strings.")
    result: dict[int, str] = {}
    for index, address in pairs:
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"Task index {index!r} of job {job!r} must be an integer")
        if index < 0:
            raise ValueError(f"Task index {index} of job {job!r} must not be negative")
        text = _text(address)
        if text is None:
            raise TypeError(f"Task address {address!r} of /job:{job}/task:{index} must be bytes or unicode")
        if not text or "://" in text:
            raise ValueError(f'Task address {text!r} of /job:{job}/task:{index} must be "host:port", without a scheme')
        result[index] = text
    return result


def _text(value: object) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return value if isinstance(value, str) else None
