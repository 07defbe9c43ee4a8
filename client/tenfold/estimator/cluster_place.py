"""Which task of which cluster an estimator runs as, by TF_CONFIG: read and checked once, for run_config.py.

A training cluster has exactly one `chief` (in older ones `master`, which evaluates as well); an `evaluator` is beside
the cluster and not in it. Follows TF 1.15's estimator/run_config.py, with its error messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold_core.cluster_spec import ClusterSpec

if TYPE_CHECKING:
    from collections.abc import Mapping


class TaskType:
    """The jobs that mean something to an estimator."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = "evaluator"


_LOCAL = ""


@dataclass(frozen=True)
class ClusterPlace:
    """A task and its cluster, in the words of RunConfig's properties."""

    cluster_spec: ClusterSpec
    task_type: str
    task_id: int
    master: str
    evaluation_master: str
    num_ps_replicas: int
    num_worker_replicas: int
    #: Number among all tasks of the cluster, the chief's is 0; None for an evaluator.
    global_id_in_cluster: int | None
    is_chief: bool
    service: Mapping[str, Any] | None


def read_place(tf_config: Mapping[str, Any]) -> ClusterPlace:
    """The place that TF_CONFIG describes; without a cluster, that of a program by itself.

    Raises ValueError for a cluster without a chief or with several, for a task that is not given or not in it, and
    TypeError for a `service` that is not an object.
    """
    service = tf_config.get("service")
    if service is not None and not isinstance(service, dict):
        raise TypeError(f'If "service" is set in TF_CONFIG, it must be a dict. Given {type(service)}')
    cluster = ClusterSpec(tf_config.get("cluster", {}))
    task = tf_config.get("task", {})
    if not cluster:
        return _alone(cluster, task, tf_config, service)
    chief = TaskType.MASTER if TaskType.MASTER in cluster.jobs else TaskType.CHIEF
    if chief == TaskType.MASTER and TaskType.CHIEF in cluster.jobs:
        raise ValueError("If `master` node exists in `cluster`, job `chief` is not supported.")
    task_type, task_id = _checked_task(cluster, task, chief)
    if task_type == TaskType.EVALUATOR:
        if chief == TaskType.MASTER:
            raise ValueError("If `master` node exists in `cluster`, task_type `evaluator` is not supported.")
        evaluates = tf_config.get("eval_session_master", _LOCAL)
        return ClusterPlace(ClusterSpec({}), task_type, task_id, _LOCAL, evaluates, 0, 0, None, False, service)
    return ClusterPlace(
        cluster_spec=cluster,
        task_type=task_type,
        task_id=task_id,
        master=_session_master(cluster, task_type, task_id, tf_config),
        evaluation_master=_LOCAL,
        num_ps_replicas=_size(cluster, TaskType.PS),
        num_worker_replicas=_size(cluster, TaskType.WORKER) + _size(cluster, chief),
        global_id_in_cluster=_global_id(cluster, task_type, task_id, chief),
        is_chief=task_type == chief,
        service=service,
    )


def _alone(
    cluster: ClusterSpec, task: Mapping[str, Any], tf_config: Mapping[str, Any], service: Mapping[str, Any] | None
) -> ClusterPlace:
    task_type, task_id = task.get("type", TaskType.WORKER), int(task.get("index", 0))
    if task_type != TaskType.WORKER:
        raise ValueError('If "cluster" is not set in TF_CONFIG, task type must be WORKER.')
    if task_id != 0:
        raise ValueError('If "cluster" is not set in TF_CONFIG, task index must be 0.')
    return ClusterPlace(
        cluster_spec=cluster,
        task_type=task_type,
        task_id=task_id,
        master=tf_config.get("session_master", _LOCAL),
        evaluation_master=tf_config.get("eval_session_master", _LOCAL),
        num_ps_replicas=0,
        num_worker_replicas=1,
        global_id_in_cluster=0,
        is_chief=True,
        service=service,
    )


def _checked_task(cluster: ClusterSpec, task: Mapping[str, Any], chief: str) -> tuple[str, int]:
    if chief not in cluster.jobs:
        raise ValueError(f'If "cluster" is set in TF_CONFIG, it must have one "{chief}" node.')
    if cluster.num_tasks(chief) > 1:
        raise ValueError(f'The "cluster" in TF_CONFIG must have only one "{chief}" node.')
    task_type, index = task.get("type"), task.get("index")
    if not task_type:
        raise ValueError('If "cluster" is set in TF_CONFIG, task type must be set.')
    if index is None:
        raise ValueError('If "cluster" is set in TF_CONFIG, task index must be set.')
    task_id = int(index)
    if task_id < 0:
        raise ValueError("Task index must be non-negative number.")
    if task_type == TaskType.EVALUATOR:
        return task_type, task_id
    source = "Note that these values may be coming from the TF_CONFIG environment variable."
    if task_type not in cluster.jobs:
        raise ValueError(f"{task_type} is not a valid task_type in the cluster_spec:\n{cluster}\n\n{source}")
    if task_id >= len(cluster.job_tasks(task_type)):
        raise ValueError(
            f"{task_id} is not a valid task_id for task_type {task_type} in the cluster_spec:\n{cluster}\n\n{source}"
        )
    return task_type, task_id


def _session_master(cluster: ClusterSpec, task_type: str, task_id: int, tf_config: Mapping[str, Any]) -> str:
    """The target of the task's own master; none in a cluster of one task, which needs no server."""
    told = tf_config.get("session_master")
    if told is not None:
        return str(told)
    if len(cluster.jobs) == 1 and cluster.num_tasks(cluster.jobs[0]) == 1:
        return _LOCAL
    return f"grpc://{cluster.job_tasks(task_type)[task_id]}"


def _size(cluster: ClusterSpec, job: str) -> int:
    return cluster.num_tasks(job) if job in cluster.jobs else 0


def _global_id(cluster: ClusterSpec, task_type: str, task_id: int, chief: str) -> int:
    """The chief first, parameter servers last, the other jobs between them by name."""
    ranks = {chief: 0, TaskType.PS: 2}
    before = 0
    for job in sorted(cluster.jobs, key=lambda job: (ranks.get(job, 1), job)):
        if job == task_type:
            break
        before += len(cluster.job_tasks(job))
    return before + task_id
