"""Manifests that run a program as every task of a cluster, with nothing of ours to drive it: a JobSet, a TrainJob of
Kubeflow Trainer v2 with its runtime, or plain Jobs. `tenfold render kubernetes` writes them. Pure.

The addresses are known before anything starts: pods of indexed Jobs have names of their own in a headless service. So
TF_CONFIG stands in the manifest, with the index of the task put in by Kubernetes, $(TENFOLD_INDEX). The end:

    JobSet, TrainJob  the success policy names the jobs that count; once they have succeeded the others are deleted, a
                      parameter server's pod among them. A task that fails takes all back to the checkpoint, together
    plain Jobs        parameter servers end by themselves when they hear that all workers have finished
                      (TENFOLD_STOP_WITH_WORKERS), and a Job is not started anew after exit code 0, as a pod of a
                      StatefulSet would be. A task that fails is started again by itself

The sources are the JobSet API (jobset.x-k8s.io/v1alpha2), the Trainer's (trainer.kubeflow.org/v1alpha1) and batch/v1.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tenfold.launchers.interface import LaunchRefusedError
from tenfold.launchers.kubernetes_objects import (
    RUN_LABEL,
    TASK_LABEL,
    Object,
    PodSettings,
    container,
    headless_service,
    job_labels,
    pod_spec,
    resources_of,
    secret_value,
    value,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.runs.plan import RunPlan

Kind = Literal["jobset", "trainjob", "plain"]
#: Which tasks have to end with exit code 0: every one but the parameter servers, or the chief, who else is worker 0.
Success = Literal["all", "chief"]

#: The job that the control plane of a job does not wait for.
_SERVERS = "ps"
_INDEX = "TENFOLD_INDEX"
_INDEX_FIELD = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
#: Seconds that finished jobs are kept, so that their logs can be read.
_KEPT_S = 86_400
#: What the Trainer looks for: the label of the job that `trainer` of a TrainJob is about, and its container's name.
_STEP, _TRAINER, _NODE = "trainer.kubeflow.org/trainjob-ancestor-step", "trainer", "node"
#: Characters of a name, so that those of pods, which add to it, are labels of DNS.
_LONGEST_NAME = 30


@dataclass(frozen=True, slots=True)
class Workload:
    """What is to run."""

    name: str
    plan: RunPlan
    settings: PodSettings
    success: Success = "all"
    #: JobSet, TrainJob: how often all tasks start again; plain: how often a task does.
    restarts: int = 3
    #: The Secret whose key `token` has the token that tasks show each other.
    token_secret: str = ""
    working_dir: str | None = None
    control: str | None = None


def manifests(workload: Workload, kind: Kind) -> list[Object]:
    """The objects, in the order in which they are created. Raises LaunchRefusedError for what Kubernetes cannot do."""
    name = workload.name
    if list(job_labels([name]).values()) != [name] or len(name) > _LONGEST_NAME:
        raise LaunchRefusedError(
            f"kubernetes: {name!r} is not a valid name: at most {_LONGEST_NAME} small letters, digits and dashes, "
            "and a letter first"
        )
    if kind == "plain":
        return _plain(workload)
    spec = _job_set(workload, trainer=kind == "trainjob")
    if kind == "jobset":
        return [
            {
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "metadata": {"name": name, "labels": _labels(workload)},
                "spec": {**spec, "ttlSecondsAfterFinished": _KEPT_S},
            }
        ]
    return _train_job(workload, spec)


def first_lines(workload: Workload, kind: Kind) -> list[str]:
    """What a reader has to know of the manifests."""
    secret = workload.token_secret
    trainer = "Kubeflow Trainer v2 (the runtime is cluster-wide)"
    needs = {"jobset": "JobSet", "trainjob": trainer, "plain": "nothing else"}
    return [
        f"Needs in the cluster: {needs[kind]}; an image with Tenfold and the program.",
        "The tasks show each other a token, which must be there first:",
        f"  kubectl create secret generic {secret} --from-literal=token=$(openssl rand -hex 32)",
    ]


# -- the three kinds


def _job_set(workload: Workload, *, trainer: bool) -> Object:
    """The spec of a JobSet."""
    plan = workload.plan
    labels = job_labels(list(plan.jobs))
    hosts = {
        job: [f"{workload.name}-{labels[job]}-0-{index}.{workload.name}" for index in range(size)]
        for job, size in plan.cluster.items()
    }
    counted = [labels[job] for job in _counted(workload)]
    replicated = []
    for job, size in plan.jobs.items():
        is_trained = trainer and job == _trained(plan)
        spec = _indexed(workload, job, size, hosts, container_name=_NODE if is_trained else "task", retries=0)
        template: Object = {"spec": spec}
        if is_trained:
            template["metadata"] = {"labels": {_STEP: _TRAINER}}
        replicated.append({"name": labels[job], "replicas": 1, "template": template})
    return {
        "network": {"enableDNSHostnames": True, "subdomain": workload.name, "publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": counted},
        "failurePolicy": {"maxRestarts": workload.restarts},
        "replicatedJobs": replicated,
    }


def _train_job(workload: Workload, spec: Object) -> list[Object]:
    plan, runtime = workload.plan, f"tenfold-{workload.name}"
    trained = _trained(plan)
    size = plan.jobs[trained]
    trainer: Object = {"numNodes": size, "image": workload.settings.image}
    if resources := resources_of(plan.resources.get(trained), workload.settings.gpu):
        trainer["resourcesPerNode"] = resources
    group = "trainer.kubeflow.org"
    return [
        {
            "apiVersion": f"{group}/v1alpha1",
            "kind": "ClusterTrainingRuntime",
            "metadata": {"name": runtime, "labels": {**_labels(workload), f"{group}/framework": "tenfold"}},
            "spec": {"mlPolicy": {"numNodes": size}, "template": {"spec": spec}},
        },
        {
            "apiVersion": f"{group}/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": workload.name, "labels": _labels(workload)},
            "spec": {
                "runtimeRef": {"apiGroup": group, "kind": "ClusterTrainingRuntime", "name": runtime},
                "trainer": trainer,
            },
        },
    ]


def _plain(workload: Workload) -> list[Object]:
    if workload.success == "chief":
        raise LaunchRefusedError(
            "kubernetes: plain Jobs have nobody who ends the others when the chief has finished; use --as jobset, or "
            "--success all"
        )
    plan, labels = workload.plan, job_labels(list(workload.plan.jobs))
    hosts = {
        job: [f"{workload.name}-{labels[job]}-{index}.{workload.name}" for index in range(size)]
        for job, size in plan.cluster.items()
    }
    found: list[Object] = [headless_service(workload.name, {RUN_LABEL: workload.name})]
    for job, size in plan.jobs.items():
        spec = _indexed(workload, job, size, hosts, retries=workload.restarts)
        spec["template"]["spec"]["subdomain"] = workload.name
        spec["ttlSecondsAfterFinished"] = _KEPT_S
        found.append(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": f"{workload.name}-{labels[job]}", "labels": _labels(workload)},
                "spec": spec,
            }
        )
    return found


# -- a job of tasks


def _indexed(
    workload: Workload,
    job: str,
    size: int,
    hosts: Mapping[str, Sequence[str]],
    *,
    retries: int,
    container_name: str = "task",
) -> Object:
    """The spec of an indexed Job: a pod for each task of `job`."""
    plan, ports = workload.plan, _ports(workload)
    cluster = {
        each: [f"{host}:{ports[each][index]}" for index, host in enumerate(names)] for each, names in hosts.items()
    }
    only = container(
        workload.settings,
        _arguments(plan, job, cluster),
        _environment(workload, job, cluster),
        plan.resources.get(job),
        name=container_name,
        ports=ports[job],
        working_dir=workload.working_dir,
    )
    spec: Object = {
        "completionMode": "Indexed",
        "completions": size,
        "parallelism": size,
        "backoffLimit": retries,
        "template": {
            "metadata": {"labels": {**_labels(workload), TASK_LABEL: job_labels([job])[job]}},
            "spec": pod_spec(workload.settings, only),
        },
    }
    if workload.success == "chief" and job == plan.chief[0] and size > 1:
        # worker 0 leads, and the others need not be waited for
        spec["successPolicy"] = {"rules": [{"succeededIndexes": str(plan.chief[1])}]}
    return spec


def _arguments(plan: RunPlan, job: str, cluster: Mapping[str, list[str]]) -> list[str]:
    """What follows pod_process.py's own options; the index of the task is put in by Kubernetes."""
    if plan.interpreter:
        raise LaunchRefusedError(f"kubernetes: options of Python ({' '.join(plan.interpreter)}) belong in the image")
    found = [_as_it_is(each) for each in plan.arguments(job, 0, cluster)]
    if plan.guide_flags:
        found[-1] = found[-1].removesuffix("0") + f"$({_INDEX})"
    return found


def _environment(workload: Workload, job: str, cluster: Mapping[str, list[str]]) -> list[Object]:
    config = json.dumps({"cluster": cluster, "task": {"type": job, "index": 0}})
    config = config.removesuffix("0}}") + f"$({_INDEX})}}}}"
    found = [
        # before all that has it in them
        {"name": _INDEX, "valueFrom": {"fieldRef": {"fieldPath": _INDEX_FIELD}}},
        value("TF_CONFIG", config),
        value("TENFOLD_TASK", f"{job}/$({_INDEX})"),
        value("TENFOLD_STOP_WITH_WORKERS", "1"),
        value("TENFOLD_SAVE_AT_SIGTERM", "1"),
        secret_value("TENFOLD_TOKEN", workload.token_secret, "token"),
    ]
    if workload.control is not None:
        found.append(value("TENFOLD_CONTROL", _as_it_is(workload.control)))
    return found


def _counted(workload: Workload) -> list[str]:
    """The jobs whose success ends the others."""
    if workload.success == "chief":
        return [workload.plan.chief[0]]
    return [job for job in workload.plan.jobs if job != _SERVERS]


def _trained(plan: RunPlan) -> str:
    """The job that a TrainJob's `trainer` is about."""
    return "worker" if "worker" in plan.jobs else plan.chief[0]


def _ports(workload: Workload) -> dict[str, range]:
    """Job → the ports of its tasks. All differ, so that pods may share a node's network."""
    found, first = {}, workload.settings.port
    for job, size in workload.plan.jobs.items():
        found[job] = range(first, first + size)
        first += size
    return found


def _labels(workload: Workload) -> dict[str, str]:
    return {RUN_LABEL: workload.name, "app.kubernetes.io/managed-by": "tenfold"}


def _as_it_is(text: str) -> str:
    """A text in which Kubernetes is to replace nothing."""
    return text.replace("$(", "$$(")
