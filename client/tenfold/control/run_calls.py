"""The calls of `/v1/runs` and `/v1/events`: submitting a program, how it goes, its logs, stopping and deleting it.

Of both clients; calls.py says how they become methods.
"""

from __future__ import annotations

import json
import tempfile
from typing import TYPE_CHECKING, Any

from tenfold.control.calls import call, stream
from tenfold.control.cluster_answers import Event
from tenfold.control.ending import poll, wait_for
from tenfold.control.problem import error_of
from tenfold.control.request import (
    Request,
    Stream,
    Work,
    each,
    nothing,
    one,
    pages,
    path_of,
)
from tenfold.control.run_answers import LogLine, ProgramOrders, Run, RunPlace, RunProgress, SupervisorOrders
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tenfold.control.event_stream import StreamEvent
    from tenfold.control.request import Requests

#: Seconds for a working directory to be uploaded.
_UPLOAD_S = 300.0


class RunCalls:
    """The part of the clients that is about runs."""

    @call
    def submit_run(
        self,
        /,
        entrypoint: Sequence[str],
        *,
        jobs: Mapping[str, int] | None = None,
        working_dir: str | None = None,
        submission_id: str | None = None,
        on: str | None = None,
        **options: Any,
    ) -> Request[Run]:
        """Runs a program as every task of a cluster, in the folder `working_dir` of the service's machine, or in an
        uploaded one (`package=`, see `upload_folder`). Returns the run.

        `on` is the launcher that starts the tasks: "local" (the default), "ssh", "slurm", …; with launcher_options and
        resources. `options` are the other members of the submission: package, environment, success, restarts, deadline,
        grace, stop_grace, guide_flags, as_tensorflow, and what the run is called: display_name, tags, notes,
        parameters, source. The same `submission_id` again gives the run that there is;
        raises AlreadyExistsError if that was submitted otherwise, PermissionDeniedError where runs are not allowed, and
        InvalidArgumentError if the folder or the package does not have the program's file.
        """
        body = {"entrypoint": list(entrypoint), "submission_id": submission_id, "working_dir": working_dir, **options}
        if jobs is not None:
            body["jobs"] = dict(jobs)
        if on is not None:
            body["launcher"] = on
        return Request("POST", "/v1/runs", one(Run), json=body, repeatable=submission_id is not None)

    @call
    def upload_folder(self, folder: str) -> Requests[str]:
        """Uploads a working directory (a path or a URL), unless the service has it; the `package` for `submit_run`.

        Version control, virtual environments and caches are left out. Raises NotADirectoryError.
        """
        from tenfold.runs.package import pack

        with tempfile.TemporaryFile() as file:
            name = yield from Work(lambda: pack(folder, file))
            path = path_of("packages", name)
            try:
                yield from Request("GET", path, nothing)
            except errors.NotFoundError:
                content = yield from Work(file.read)
                headers = {"Content-Type": "application/zip"}
                yield from Request("PUT", path, nothing, content=content, headers=headers, timeout=_UPLOAD_S)
        return name

    @call
    def runs(
        self,
        *,
        states: Sequence[str] = (),
        filter: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Requests[list[Run]]:
        """Runs, the newest first: `limit` of them, or all. `filter` is a text such as "tag=baseline and lr>0.01";
        `sort` is the name of a value, as "loss" or "-loss" (docs/rest.md, "Filters"), and runs without it come last.
        Raises InvalidArgumentError for a filter that is malformed."""
        params = {"state": list(states) or None, "filter": filter, "sort": sort}
        return (yield from pages("/v1/runs", "runs", Run, params, limit))

    @call
    def run(self, run: str) -> Request[Run]:
        """The run as it is now. Raises NotFoundError."""
        return Request("GET", path_of("runs", run), one(Run))

    @call
    def poll_run(self, run: str, *, after: int | None, wait: float) -> Request[Run]:
        """One long-poll: the run once its version is above `after` (None: once it has ended), or as it is after `wait`
        seconds."""
        return poll(Run, path_of("runs", run), after=after, wait=wait)

    @call
    def wait_for_run(self, run: str, *, after: int | None = None, timeout: float = 60.0) -> Requests[Run]:
        """Waits until the run's version is above `after`, or without it until the run has ended. Returns it. Raises
        DeadlineExceededError after `timeout` seconds, saying how it stands."""
        path = path_of("runs", run)
        return (yield from wait_for(Run, path, f"run {run}", after=after, timeout=timeout))

    @call
    def stop_run(self, run: str, *, reason: str | None = None) -> Request[Run]:
        """Asks a run to stop; does not wait for its end. Returns it."""
        body = {} if reason is None else {"reason": reason}
        return Request("POST", path_of("runs", run) + ":stop", one(Run), json=body, repeatable=True)

    @call
    def delete_run(self, run: str) -> Request[Run]:
        """Forgets a run that has ended, and its logs. Raises FailedPreconditionError for one that has not."""
        return Request("DELETE", path_of("runs", run), one(Run))

    @call
    def run_logs(self, run: str, *, tasks: Sequence[str] = (), tail: int = 200) -> Request[list[LogLine]]:
        """What the tasks wrote last, `tail` lines in order of time, of `tasks` ("worker/0") or all of them."""
        params = {"task": list(tasks) or None, "tail": tail}
        return Request("GET", path_of("runs", run, "logs"), each(LogLine, "lines"), params=params)

    @stream
    def follow_run_logs(self, run: str, *, tasks: Sequence[str] = (), tail: int = 200) -> Stream[LogLine]:
        """The last `tail` lines of the tasks' output, then each new line until the run has ended. A broken
        connection is opened again, and no line is repeated. Raises NotFoundError."""

        def read(event: StreamEvent) -> Iterable[LogLine] | None:
            if event.name == "end":
                return None
            return [LogLine.from_json(line) for line in json.loads(event.data)["lines"]]

        params = {"task": list(tasks) or None, "tail": tail, "follow": "true"}
        return Stream(path_of("runs", run, "logs"), params, read)

    @call
    def progress(self, run: str) -> Request[RunProgress]:
        """The run's curves by task: global step, scalars, checkpoints, what each task uses."""
        return Request("GET", path_of("runs", run, "progress"), one(RunProgress))

    @call
    def join_run(
        self,
        key: str,
        job: str,
        index: int | None,
        *,
        entrypoint: Sequence[str],
        process: Mapping[str, Any],
        jobs: Mapping[str, int] | None = None,
        working_dir: str | None = None,
        create: bool = True,
        timeout: float | None = None,
    ) -> Request[RunPlace]:
        """Lists a running program as a task of the active run with its `key`, or of a new one. Without `create` raises
        NotFoundError if no run is active."""
        body = {"key": key, "job": job, "index": index, "jobs": dict(jobs or {}), "entrypoint": list(entrypoint)}
        body |= {"process": dict(process), "working_dir": working_dir, "create": create}
        return Request("POST", "/v1/runs:join", one(RunPlace), json=body, repeatable=True, timeout=timeout)

    @call
    def report_task(
        self, run: str, job: str, index: int, report: Mapping[str, Any], *, timeout: float | None = None
    ) -> Request[ProgramOrders]:
        """News of a training from one of its programs. The answer says when the next one is due."""
        path = path_of("runs", run, "tasks", job, str(index)) + ":report"
        return Request("POST", path, one(ProgramOrders), json=dict(report), repeatable=True, timeout=timeout)

    @stream
    def events(
        self,
        *,
        after: int | None = None,
        kinds: Sequence[str] = (),
        cluster: str | None = None,
        run: str | None = None,
        actions: Sequence[str] = (),
        object: str | None = None,
    ) -> Stream[Event]:
        """What happens to clusters, tasks, runs and sessions, for ever: from now on, or after the event `after`;
        `actions` (what something became, as "lost") and `object` (its name) choose among them, too. A
        connection that breaks is made again, and nothing is given twice or left out; raises OutOfRangeError where the
        service has forgotten the place, for one that reads too slowly."""

        def read(event: StreamEvent) -> Iterable[Event]:
            content = json.loads(event.data)
            if event.name != "dropped":
                return [Event.from_json(content)]
            if content["code"] != "UNAVAILABLE":
                raise error_of(int(content["status"]), content, event.data)
            return []  # a service that stops; the next one goes on

        params = {"after": after, "kind": list(kinds) or None, "cluster": cluster, "run": run}
        params |= {"action": list(actions) or None, "object": object}
        return Stream("/v1/events", params, read)

    @call
    def report_run(self, run: str, report: Mapping[str, Any]) -> Request[SupervisorOrders]:
        """News of a run from its supervisor. The answer says whether it is to stop, and when the next one is due."""
        path = path_of("runs", run) + ":report"
        return Request("POST", path, one(SupervisorOrders), json=dict(report), repeatable=True)
