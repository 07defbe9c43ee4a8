"""The calls of `/v1/clusters` and `/v1/leases`: declaring, the spec, how tasks are, taking and leaving a place.

Of both clients; calls.py says how they become methods.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tenfold.control.calls import call
from tenfold.control.cluster_answers import Cluster, Job, Jobs, LeaseStatus, Release, Task
from tenfold.control.request import LONGEST_POLL, Request, members, milliseconds, one, pages, path_of
from tenfold.control.spec import Lease, Spec
from tenfold.control.used import note_spec
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import httpx

    from tenfold.control.request import Requests


class ClusterCalls:
    """The part of the clients that is about clusters, tasks and leases."""

    # -- clusters

    @call
    def declare_cluster(
        self, cluster: str, jobs: Mapping[str, int], *, stop_with_workers: bool | None = None
    ) -> Request[Cluster]:
        """Declares jobs and sizes; the same again changes nothing. Returns the cluster.

        `stop_with_workers`: whether parameter servers end once every worker, and the chief, has finished; None leaves
        it as it is, false for a new cluster.
        """
        body: dict[str, Any] = {"jobs": dict(jobs)}
        if stop_with_workers is not None:
            body["stop_with_workers"] = stop_with_workers
        return Request("PUT", path_of("clusters", cluster), one(Cluster), json=body)

    @call
    def clusters(self, *, states: Sequence[str] = ()) -> Requests[list[Cluster]]:
        """Every cluster, by name; only those in one of the states, if any are given."""
        return (yield from pages("/v1/clusters", "clusters", Cluster, {"state": list(states) or None}))

    @call
    def delete_cluster(self, cluster: str, *, force: bool = False) -> Request[Cluster]:
        """Deletes a cluster and returns it. Raises FailedPreconditionError while tasks hold leases or sessions
        are open, unless forced: then their leases end and the sessions are closed. Processes and runs continue."""
        params = {"force": "true" if force else None}
        return Request("DELETE", path_of("clusters", cluster), one(Cluster), params=params)

    @call
    def cluster(self, cluster: str) -> Request[Cluster]:
        """The cluster as it is now. Raises NotFoundError."""
        return Request("GET", path_of("clusters", cluster), one(Cluster))

    @call
    def spec(self, cluster: str) -> Request[Spec]:
        """The spec as it is now."""
        return Request("GET", path_of("clusters", cluster, "spec"), _spec_for(self))

    @call
    def poll_spec(
        self,
        cluster: str,
        *,
        after: int | None,
        until_complete: bool = False,
        wait: float,
        timeout: float | None = None,
    ) -> Request[Spec]:
        """One long-poll: the spec once it is above `after` (and complete), or as it is after `wait` seconds. The answer
        may take `timeout` seconds beyond those."""
        wait = max(0.0, min(wait, LONGEST_POLL))
        params = {"after": after, "complete": "true" if until_complete else None, "wait": milliseconds(wait)}
        path = path_of("clusters", cluster, "spec")
        return Request("GET", path, _spec_for(self), params=params, wait=wait, timeout=timeout)

    @call
    def wait_for_spec(
        self, cluster: str, after: int | None = None, *, until_complete: bool = False, timeout: float = 60.0
    ) -> Requests[Spec]:
        """Waits until the spec's version is above `after` and, if asked, no task is missing or lost.

        Raises DeadlineExceededError after `timeout` seconds, naming the missing tasks.
        """
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            spec = yield from ClusterCalls.poll_spec.of(
                self, cluster, after=after, until_complete=until_complete, wait=left
            )
            if (after is None or spec.version > after) and (spec.complete or not until_complete):
                return spec
            if time.monotonic() >= deadline:
                missing = ", ".join(spec.missing_tasks) or "none"
                text = (
                    f"cluster {cluster!r} was at version {spec.version} after {timeout:g} s; missing tasks: {missing}."
                )
                raise errors.DeadlineExceededError(None, None, text)

    @call
    def tf_config(self, cluster: str, job: str, index: int, *, wait: float = 0.0) -> Request[dict[str, Any]]:
        """What TF_CONFIG holds for one task. Waits up to `wait` seconds for unknown addresses, then raises
        UnavailableError naming them."""
        wait = max(0.0, min(wait, LONGEST_POLL))
        params = {"format": "tf_config", "job": job, "index": index, "wait": milliseconds(wait)}
        return Request("GET", path_of("clusters", cluster, "spec"), members, params=params, wait=wait)

    @call
    def tasks(
        self, cluster: str, *, job: str | None = None, states: Sequence[str] = (), limit: int | None = None
    ) -> Requests[list[Task]]:
        """The cluster's tasks by job and index, or the first `limit` of them; only those of one job or in one of the
        states, if any are given. Fetched in pages: the way to list thousands. Raises NotFoundError."""
        params = {"job": job, "state": list(states) or None}
        return (yield from pages(path_of("clusters", cluster, "tasks"), "tasks", Task, params, limit))

    @call
    def jobs(self, cluster: str, *, complete: bool | None = None) -> Request[Jobs]:
        """The cluster's jobs and tasks: each task's state, since when, and why; `complete` chooses the jobs of which no
        task is missing, or the others. Raises NotFoundError."""
        params = {"complete": complete}
        return Request("GET", path_of("clusters", cluster, "jobs"), one(Jobs), params=params)

    @call
    def job(self, cluster: str, job: str) -> Request[Job]:
        """One of its jobs, in the same way."""
        return Request("GET", path_of("clusters", cluster, "jobs", job), one(Job))

    @call
    def job_status(self, cluster: str, job: str | None = None) -> Request[Any]:
        """What `job` gives, or `jobs` without one."""
        parts = () if job is None else (job,)
        return Request("GET", path_of("clusters", cluster, "jobs", *parts), one(Jobs if job is None else Job))

    @call
    def task_status(self, cluster: str, job: str, index: int) -> Request[Task]:
        """The task as it is now. Raises NotFoundError."""
        return Request("GET", path_of("clusters", cluster, "jobs", job, "tasks", str(index)), one(Task))

    # -- tasks and leases

    @call
    def register_task(
        self,
        cluster: str,
        job: str,
        index: int,
        address: str,
        *,
        incarnation: str | int | None = None,
        devices: Sequence[Mapping[str, Any]] = (),
        insecure: bool = False,
        lease: str | None = None,
    ) -> Request[Lease]:
        """Takes an index; raises AlreadyExistsError while another one holds it, NotFoundError for an index that is not
        declared. `insecure`: it accepts anyone who reaches its port. `lease`: made up by the task, 32 hexadecimal
        digits of `secrets`; with it the same incarnation may repeat and change its registration."""
        body = _registering(address, incarnation, devices, insecure, lease)
        return Request("PUT", path_of("clusters", cluster, "tasks", job, str(index)), _lease, json=body)

    @call
    def claim_task(
        self,
        cluster: str,
        job: str,
        address: str,
        *,
        incarnation: str | int | None = None,
        devices: Sequence[Mapping[str, Any]] = (),
        insecure: bool = False,
        lease: str | None = None,
    ) -> Request[Lease]:
        """Takes the next free index. Raises ResourceExhaustedError when all are taken. `lease` as in register_task."""
        body = _registering(address, incarnation, devices, insecure, lease)
        path = path_of("clusters", cluster, "tasks", job) + ":claim"
        # With an incarnation a repeated claim finds the lease that the first one got.
        return Request("POST", path, _lease, json=body, repeatable=incarnation is not None)

    @call
    def remove_task(self, cluster: str, job: str, index: int, *, reason: str | None = None) -> Request[Task]:
        """Takes a task off its index; its lease ends."""
        path = path_of("clusters", cluster, "tasks", job, str(index))
        return Request("DELETE", path, one(Task), params={"reason": reason})

    @call
    def end_task(
        self,
        cluster: str,
        job: str,
        index: int,
        *,
        state: str,
        exit_code: int | None = None,
        reason: str | None = None,
    ) -> Request[Task]:
        """Tells that a task has ended: `finished`, `stopped` or `lost`. For who saw it end; its lease ends at once, and
        a task that still runs then ends by itself if it is finished or stopped. Without a live lease nothing changes.
        Returns the task."""
        body = {"state": state, "exit_code": exit_code, "reason": reason}
        path = path_of("clusters", cluster, "tasks", job, str(index)) + ":end"
        return Request("POST", path, one(Task), json=body, repeatable=True)

    @call
    def drain_task(
        self, cluster: str, job: str, index: int, *, grace: float = 30.0, reason: str = "drained by request"
    ) -> Request[Task]:
        """Lets a task end: it takes no new work, running steps get `grace` seconds, its lease ends as `stopped`. It
        hears of it with its next heartbeat; returns the task as it is until then. Raises FailedPreconditionError for
        one without a live lease."""
        path = path_of("clusters", cluster, "tasks", job, str(index)) + ":drain"
        return Request("POST", path, one(Task), json={"grace": grace, "reason": reason}, repeatable=True)

    @call
    def renew(
        self, lease_id: str, *, figures: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> Request[LeaseStatus]:
        """One heartbeat, with the task's figures if there are any; the answer holds `spec_version`. Raises
        NotFoundError or FailedPreconditionError when it is over, InvalidArgumentError for figures of another form."""
        path = path_of("leases", lease_id) + ":renew"
        body = None if figures is None else {"figures": dict(figures)}
        return Request("POST", path, one(LeaseStatus), json=body, repeatable=True, timeout=timeout)

    @call
    def release(
        self,
        lease_id: str,
        *,
        state: str = "finished",
        exit_code: int | None = None,
        reason: str | None = None,
        timeout: float | None = None,
    ) -> Request[Release]:
        """Leaves, `finished`, `stopped` or `lost`. Raises InvalidArgumentError for a finished task with an exit code
        other than 0: that one has failed."""
        body = {"state": state, "exit_code": exit_code, "reason": reason}
        path = path_of("leases", lease_id) + ":release"
        return Request("POST", path, one(Release), json=body, repeatable=True, timeout=timeout)


def _spec_for(client: Any) -> Callable[[httpx.Response], Spec]:
    """Reads a spec, and notes that this process knows it from the client's service."""

    def read(response: httpx.Response) -> Spec:
        spec = Spec.from_json(members(response))
        note_spec(client._transport.peer, spec)
        return spec

    return read


def _registering(
    address: str,
    incarnation: str | int | None,
    devices: Sequence[Mapping[str, Any]],
    insecure: bool,
    lease: str | None,
) -> dict[str, Any]:
    body = {"address": address, "incarnation": incarnation, "devices": [dict(device) for device in devices]}
    # services of before do not know these members
    more = {"insecure": True if insecure else None, "lease": lease}
    return {**body, **{name: value for name, value in more.items() if value is not None}}


def _lease(response: httpx.Response) -> Lease:
    answer = members(response)
    lease, task = answer["lease"], answer["task"]
    return Lease(
        lease["id"],
        task["cluster"],
        task["job"],
        task["index"],
        task["name"],
        task["incarnation"],
        lease["ttl"],
        lease["heartbeat"],
        answer["spec_version"],
        response.status_code == 201,
    )
