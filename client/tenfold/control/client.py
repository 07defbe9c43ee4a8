"""`ControlClient`: every path of the REST interface as a method. Blocking and thread-safe; errors are those of
tf.errors.

Over transport.py. Sessions come back as `RemoteSession`; a task that wants to stay registered uses `TaskRegistration`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

from tenfold.control.remote_session import RemoteSession, open_session
from tenfold.control.retry import DEFAULT_RETRY, RetryPolicy
from tenfold.control.run_calls import LONGEST_POLL, RunCalls, path_of
from tenfold.control.spec import Lease, Spec
from tenfold.control.transport import Transport
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_protos.config_pb2 import ConfigProto


class ControlClient(RunCalls):
    """A client of one control service.

    `timeout` bounds each request, in seconds (waits and steps have their own). Every method raises UnavailableError
    when the service cannot be reached, and the class of the problem's canonical code when it refuses;
    `problem_of(error)` has the rest of its answer.
    """

    def __init__(
        self, url: str, token: str | None = None, timeout: float = 30.0, *, retry: RetryPolicy = DEFAULT_RETRY
    ) -> None:
        self._transport = Transport(url, token, timeout, retry)

    @property
    def url(self) -> str:
        return self._transport.url

    def close(self) -> None:
        """Closes the connections. Sessions at the service stay open."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- clusters

    def declare_cluster(
        self, cluster: str, jobs: Mapping[str, int], *, stop_with_workers: bool | None = None
    ) -> dict[str, Any]:
        """Declares jobs and sizes; the same again changes nothing. Returns the cluster's JSON object.

        `stop_with_workers`: whether parameter servers end once every worker, and the chief, has finished; None leaves
        it as it is, false for a new cluster.
        """
        body: dict[str, Any] = {"jobs": dict(jobs)}
        if stop_with_workers is not None:
            body["stop_with_workers"] = stop_with_workers
        return self._transport.json("PUT", path_of("clusters", cluster), json=body)

    def clusters(self) -> list[dict[str, Any]]:
        """Every cluster's JSON object."""
        found: list[dict[str, Any]] = self._transport.json("GET", "/v1/clusters")["clusters"]
        return found

    def cluster(self, cluster: str) -> dict[str, Any]:
        """The cluster's JSON object. Raises NotFoundError."""
        return self._transport.json("GET", path_of("clusters", cluster))

    def spec(self, cluster: str) -> Spec:
        """The spec as it is now."""
        return Spec.from_json(self._transport.json("GET", path_of("clusters", cluster, "spec")))

    def poll_spec(self, cluster: str, *, after: int | None, until_complete: bool = False, wait: float) -> Spec:
        """One long-poll: the spec once it is above `after` (and complete), or as it is after `wait` seconds."""
        wait = max(0.0, min(wait, LONGEST_POLL))
        params = {"after": after, "complete": "true" if until_complete else None, "wait": f"{round(wait * 1000)}ms"}
        answer = self._transport.json(
            "GET", path_of("clusters", cluster, "spec"), params=params, timeout=self._transport.timeout + wait
        )
        return Spec.from_json(answer)

    def wait_for_spec(
        self, cluster: str, after: int | None = None, *, until_complete: bool = False, timeout: float = 60.0
    ) -> Spec:
        """Blocks until the spec's version is above `after` and, if asked, no task is missing or lost.

        Raises DeadlineExceededError after `timeout` seconds, naming the missing tasks.
        """
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            spec = self.poll_spec(cluster, after=after, until_complete=until_complete, wait=left)
            if (after is None or spec.version > after) and (spec.complete or not until_complete):
                return spec
            if time.monotonic() >= deadline:
                missing = ", ".join(spec.missing_tasks) or "none"
                text = (
                    f"cluster {cluster!r} was at version {spec.version} after {timeout:g} s; missing tasks: {missing}."
                )
                raise errors.DeadlineExceededError(None, None, text)

    def tf_config(self, cluster: str, job: str, index: int, *, wait: float = 0.0) -> dict[str, Any]:
        """What TF_CONFIG holds for one task. Waits up to `wait` seconds for unknown addresses, then raises
        UnavailableError naming them."""
        wait = max(0.0, min(wait, LONGEST_POLL))
        params = {"format": "tf_config", "job": job, "index": index, "wait": f"{round(wait * 1000)}ms"}
        return self._transport.json(
            "GET", path_of("clusters", cluster, "spec"), params=params, timeout=self._transport.timeout + wait
        )

    def job_status(self, cluster: str, job: str | None = None) -> dict[str, Any]:
        """The JSON object of one job, or `{"jobs": [...]}` of all: each task's state, since when, and why."""
        parts = ("clusters", cluster, "jobs") if job is None else ("clusters", cluster, "jobs", job)
        return self._transport.json("GET", path_of(*parts))

    def task_status(self, cluster: str, job: str, index: int) -> dict[str, Any]:
        """The JSON object of one task."""
        return self._transport.json("GET", path_of("clusters", cluster, "jobs", job, "tasks", str(index)))

    # -- tasks and leases

    def register_task(
        self,
        cluster: str,
        job: str,
        index: int,
        address: str,
        *,
        incarnation: str | int | None = None,
        devices: Sequence[Mapping[str, Any]] = (),
    ) -> Lease:
        """Takes an index. The same incarnation again gets its old lease; raises AlreadyExistsError while another one
        holds it, NotFoundError for an index that is not declared."""
        body = {"address": address, "incarnation": incarnation, "devices": [dict(device) for device in devices]}
        return _lease(self._transport.send("PUT", path_of("clusters", cluster, "tasks", job, str(index)), json=body))

    def claim_task(
        self,
        cluster: str,
        job: str,
        address: str,
        *,
        incarnation: str | int | None = None,
        devices: Sequence[Mapping[str, Any]] = (),
    ) -> Lease:
        """Takes the next free index. Raises ResourceExhaustedError when all are taken."""
        body = {"address": address, "incarnation": incarnation, "devices": [dict(device) for device in devices]}
        path = path_of("clusters", cluster, "tasks", job) + ":claim"
        # With an incarnation a repeated claim finds the lease that the first one got.
        return _lease(self._transport.send("POST", path, json=body, repeatable=incarnation is not None))

    def remove_task(self, cluster: str, job: str, index: int, *, reason: str | None = None) -> dict[str, Any]:
        """Takes a task off its index; its lease ends."""
        path = path_of("clusters", cluster, "tasks", job, str(index))
        return self._transport.json("DELETE", path, params={"reason": reason})

    def end_task(
        self,
        cluster: str,
        job: str,
        index: int,
        *,
        state: str,
        exit_code: int | None = None,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Tells that a task has ended: `finished`, `stopped` or `lost`. For who saw it end; its lease ends at once, and
        a task that still runs then ends by itself if it is finished or stopped. Without a live lease nothing changes.
        Returns the task's JSON object."""
        body = {"state": state, "exit_code": exit_code, "reason": reason}
        path = path_of("clusters", cluster, "tasks", job, str(index)) + ":end"
        return self._transport.json("POST", path, json=body, repeatable=True)

    def renew(
        self, lease_id: str, *, figures: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> dict[str, Any]:
        """One heartbeat, with the task's figures if there are any; the answer holds `spec_version`. Raises
        NotFoundError or FailedPreconditionError when it is over, InvalidArgumentError for figures of another form."""
        path = path_of("leases", lease_id) + ":renew"
        body = None if figures is None else {"figures": dict(figures)}
        return self._transport.json("POST", path, json=body, repeatable=True, timeout=timeout)

    def release(
        self,
        lease_id: str,
        *,
        state: str = "finished",
        exit_code: int | None = None,
        reason: str | None = None,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Leaves, `finished`, `stopped` or `lost`. Raises InvalidArgumentError for a finished task with an exit code
        other than 0: that one has failed."""
        body = {"state": state, "exit_code": exit_code, "reason": reason}
        path = path_of("leases", lease_id) + ":release"
        return self._transport.json("POST", path, json=body, repeatable=True, timeout=timeout)

    # -- sessions

    def create_session(
        self,
        cluster: str,
        graph_def: Any = None,
        *,
        job: str | None = None,
        index: int | None = None,
        config: ConfigProto | None = None,
        timeout: float = 120.0,
    ) -> RemoteSession:
        """Opens a session on a task's master (default: the first ready one of chief, master, worker, any). `graph_def`
        is a GraphDef, its bytes, or a Graph."""
        return open_session(self._transport, cluster, graph_def, job=job, index=index, config=config, timeout=timeout)

    def session(self, session_id: str) -> RemoteSession:
        """A session that is already open, e.g. one that another process created."""
        return RemoteSession(self._transport, session_id)

    def sessions(self) -> list[dict[str, Any]]:
        """Every open session's JSON object."""
        found: list[dict[str, Any]] = self._transport.json("GET", "/v1/sessions")["sessions"]
        return found


def _lease(response: Any) -> Lease:
    answer = response.json()
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
