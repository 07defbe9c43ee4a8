"""The controllers of the tests' Kubernetes cluster: Jobs (deadline, time to live, indexed pods), JobSets (success and
failure), and the garbage collector.

A second of a deadline is a second here, too. All of it is one thread, which looks at everything after each change.
"""

from __future__ import annotations

import contextlib
import copy
import threading
import time
from typing import TYPE_CHECKING, Any

from support.kube.store import StatusError, Store, now

if TYPE_CHECKING:
    from support.kube.store import Object

_INDEX = "batch.kubernetes.io/job-completion-index"
_LOOK_S = 0.2
_WAIT_S = 30.0


class Controllers:
    def __init__(self, store: Store) -> None:
        self._store = store
        #: Job's uid → when it began, monotonic.
        self._begun: dict[str, float] = {}
        self._over = False
        self._thread = threading.Thread(target=self._run, name="kube-controllers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        with self._store.changed:
            self._over = True
            self._store.changed.notify_all()
        self._thread.join(_WAIT_S)

    def _run(self) -> None:
        seen = -1
        while True:
            with self._store.changed:
                if self._store.version == seen:
                    self._store.changed.wait(_LOOK_S)
                if self._over:
                    return
                seen = self._store.version
            for job in self._store.list("jobs", None):
                self._job(job)
            for job_set in self._store.list("jobsets", None):
                self._job_set(job_set)
            self._collect()

    # -- Jobs

    def _job(self, job: Object) -> None:
        spec, status, metadata = job["spec"], job.get("status") or {}, job["metadata"]
        begun = self._begun.setdefault(metadata["uid"], time.monotonic())
        if _finished(job) is not None:
            if spec.get("ttlSecondsAfterFinished") == 0:
                self._store.remove("jobs", metadata["namespace"], metadata["name"], metadata["uid"])
            return
        deadline = spec.get("activeDeadlineSeconds")
        if deadline is not None and time.monotonic() > begun + deadline:
            self._end_job(job, "Failed", "DeadlineExceeded")
            return
        pods = self._pods_of(job)
        size = spec.get("completions", 1)
        done = {_index(pod) for pod in pods if _phase(pod) == "Succeeded"}
        failed = [pod for pod in pods if _phase(pod) == "Failed"]
        rules = (spec.get("successPolicy") or {}).get("rules") or []
        wanted = {int(each) for rule in rules for each in rule["succeededIndexes"].split(",")} or set(range(size))
        if wanted <= done:
            self._end_job(job, "Complete", "CompletionsReached")
        elif len(failed) > spec.get("backoffLimit", 6):
            self._end_job(job, "Failed", "BackoffLimitExceeded")
        else:
            there = done | {_index(pod) for pod in pods if _phase(pod) not in ("Succeeded", "Failed")}
            for index in range(min(size, spec.get("parallelism", 1))):
                if index not in there:
                    self._create_pod(job, index, len(failed))
        active = sum(_phase(pod) not in ("Succeeded", "Failed") for pod in pods)
        if not status.get("conditions") and (status.get("succeeded"), status.get("active")) != (len(done), active):
            current = self._store.list("jobs", metadata["namespace"])
            if any(each["metadata"]["uid"] == metadata["uid"] and _finished(each) is None for each in current):
                counted = {"startTime": now(), "succeeded": len(done), "failed": len(failed), "active": active}
                self._store.set_status("jobs", metadata["namespace"], metadata["name"], counted)

    def _create_pod(self, job: Object, index: int, retry: int) -> None:
        metadata, template = job["metadata"], copy.deepcopy(job["spec"]["template"])
        pod_metadata = template.setdefault("metadata", {})
        pod_metadata["name"] = f"{metadata['name']}-{index}-{retry}"
        pod_metadata.setdefault("labels", {})["job-name"] = metadata["name"]
        pod_metadata.setdefault("annotations", {})[_INDEX] = str(index)
        pod_metadata["ownerReferences"] = [_owner(job, "batch/v1", "Job")]
        template["spec"]["hostname"] = f"{metadata['name']}-{index}"
        # one of that name is about to go, or a quota does not let it in: later
        with contextlib.suppress(StatusError):
            self._store.create("pods", metadata["namespace"], {**template, "kind": "Pod", "apiVersion": "v1"})

    def _end_job(self, job: Object, kind: str, reason: str) -> None:
        metadata = job["metadata"]
        status = {"conditions": [{"type": kind, "status": "True", "reason": reason}]}
        self._store.set_status("jobs", metadata["namespace"], metadata["name"], status)
        self._delete_active(job)

    def _delete_active(self, job: Object) -> None:
        for pod in self._pods_of(job):
            if _phase(pod) not in ("Succeeded", "Failed") and not pod["metadata"].get("deletionTimestamp"):
                with contextlib.suppress(StatusError):  # its kubelet was quicker
                    self._store.delete("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])

    def _pods_of(self, job: Object) -> list[Object]:
        return [pod for pod in self._store.list("pods", job["metadata"]["namespace"]) if _is_owned(pod, job, True)]

    # -- JobSets

    def _job_set(self, job_set: Object) -> None:
        metadata, spec = job_set["metadata"], job_set["spec"]
        status = job_set.get("status") or {"restarts": 0}
        jobs = [job for job in self._store.list("jobs", metadata["namespace"]) if _is_owned(job, job_set, True)]
        if status.get("terminalState"):
            for job in jobs:
                if _finished(job) is None:
                    self._delete_active(job)
                    self._store.remove("jobs", metadata["namespace"], job["metadata"]["name"])
            return
        names = {f"{metadata['name']}-{each['name']}-0": each for each in spec["replicatedJobs"]}
        ends = {job["metadata"]["name"]: _finished(job) for job in jobs}
        counted = [f"{metadata['name']}-{each}-0" for each in spec["successPolicy"]["targetReplicatedJobs"]]
        if "Failed" in ends.values():
            if status["restarts"] < spec["failurePolicy"]["maxRestarts"]:
                status = {**status, "restarts": status["restarts"] + 1}
                for job in jobs:
                    self._delete_active(job)
                    self._store.remove("jobs", metadata["namespace"], job["metadata"]["name"])
            else:
                status = {**status, "terminalState": "Failed"}
            self._store.set_status("jobsets", metadata["namespace"], metadata["name"], status)
        elif all(ends.get(name) == "Complete" for name in counted):
            status = {**status, "terminalState": "Completed"}
            self._store.set_status("jobsets", metadata["namespace"], metadata["name"], status)
        elif any(self._store.list("pods", metadata["namespace"], f"job-name={each}") for each in names.keys() - ends):
            return  # those of the last attempt are about to end
        else:
            for name, each in names.items():
                if name not in ends:
                    self._create_job(job_set, name, each)

    def _create_job(self, job_set: Object, name: str, replicated: Object) -> None:
        template = copy.deepcopy(replicated["template"])
        template["spec"]["template"]["spec"]["subdomain"] = job_set["spec"]["network"]["subdomain"]
        body = {
            "kind": "Job",
            "apiVersion": "batch/v1",
            "metadata": {"name": name, "ownerReferences": [_owner(job_set, "jobset.x-k8s.io/v1alpha2", "JobSet")]},
            "spec": template["spec"],
        }
        self._store.create("jobs", job_set["metadata"]["namespace"], body)

    # -- owners

    def _collect(self) -> None:
        """Removes what names owners that are all gone."""
        uids = {
            each["metadata"]["uid"] for kind in ("jobs", "jobsets", "pods") for each in self._store.list(kind, None)
        }
        for kind in ("jobs", "pods", "secrets", "services"):
            for each in self._store.list(kind, None):
                owners = each["metadata"].get("ownerReferences")
                gone = owners and not any(owner["uid"] in uids for owner in owners)
                if gone and not each["metadata"].get("deletionTimestamp"):
                    with contextlib.suppress(StatusError):  # somebody else was quicker
                        self._store.delete(kind, each["metadata"]["namespace"], each["metadata"]["name"])


def _owner(of: Object, version: str, kind: str) -> Object:
    metadata = of["metadata"]
    return {"apiVersion": version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"], "controller": True}


def _is_owned(each: Object, owner: Object, controlled: bool) -> bool:
    references: list[dict[str, Any]] = each["metadata"].get("ownerReferences") or []
    return any(
        reference["uid"] == owner["metadata"]["uid"] and bool(reference.get("controller")) == controlled
        for reference in references
    )


def _finished(job: Object) -> str | None:
    conditions = (job.get("status") or {}).get("conditions") or []
    return next((each["type"] for each in conditions if each["type"] in ("Complete", "Failed")), None)


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase", "Pending"))


def _index(pod: Object) -> int:
    return int(pod["metadata"]["annotations"][_INDEX])
