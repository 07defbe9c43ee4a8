"""The calls of `/v1/runs`, for client.py: submitting a program, how it goes, its logs, stopping and deleting it."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tenfold.control.problem import error_of
from tenfold_core import errors
from tenfold_core.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tenfold.control.transport import Transport

#: A long-poll asks for at most this much at a time; the service bounds it too.
LONGEST_POLL = 30.0
#: Seconds for a working directory to be uploaded.
_UPLOAD_S = 300.0


def path_of(*parts: str) -> str:
    """The path of an object from its names."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


class RunCalls:
    """The part of ControlClient that is about runs."""

    _transport: Transport

    def submit_run(
        self,
        entrypoint: Sequence[str],
        *,
        jobs: Mapping[str, int] | None = None,
        working_dir: str | None = None,
        submission_id: str | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Has a program run as every task of a cluster on the service's machine, in the folder `working_dir` of it, or
        in an uploaded one (`package=`, see `upload_folder`). Returns the run's JSON object.

        `options` are the other members of the submission: package, environment, success, restarts, deadline, grace,
        stop_grace, guide_flags, as_tensorflow. The same `submission_id` again gives the run that there is; raises
        AlreadyExistsError if that was submitted otherwise, PermissionDeniedError where runs are not allowed.
        """
        body = {"entrypoint": list(entrypoint), "submission_id": submission_id, "working_dir": working_dir, **options}
        if jobs is not None:
            body["jobs"] = dict(jobs)
        return self._transport.json("POST", "/v1/runs", json=body, repeatable=submission_id is not None)

    def upload_folder(self, folder: str) -> str:
        """Uploads a working directory, unless the service has it; returns the `package` for `submit_run`. Blocks.

        Version control, virtual environments and caches are left out. Raises NotADirectoryError.
        """
        from tenfold.runs.package import pack

        with tempfile.TemporaryFile() as file:
            name = pack(Path(folder), file)
            path = path_of("packages", name)
            try:
                self._transport.json("GET", path)
            except errors.NotFoundError:
                headers = {"Content-Type": "application/zip"}
                self._transport.send("PUT", path, content=file.read(), headers=headers, timeout=_UPLOAD_S)
        return name

    def runs(self, *, states: Sequence[str] = (), limit: int | None = None) -> list[dict[str, Any]]:
        """The JSON objects of runs, the newest first: `limit` of them, or all."""
        found: list[dict[str, Any]] = []
        after: str | None = None
        while True:
            size = 1000 if limit is None else min(1000, limit - len(found))
            params: dict[str, Any] = {"state": list(states) or None, "limit": size, "after": after}
            page = self._transport.json("GET", "/v1/runs", params=params)
            found += page["runs"]
            after = page["next"]
            if after is None or (limit is not None and len(found) >= limit):
                return found

    def run(self, run: str) -> dict[str, Any]:
        """The run's JSON object. Raises NotFoundError."""
        return self._transport.json("GET", path_of("runs", run))

    def wait_for_run(self, run: str, *, after: int | None = None, timeout: float = 60.0) -> dict[str, Any]:
        """Blocks until the run's version is above `after`, or without it until the run has ended. Returns its JSON
        object. Raises DeadlineExceededError after `timeout` seconds, saying how it stands."""
        deadline = time.monotonic() + timeout
        while True:
            left = max(0.0, min(deadline - time.monotonic(), LONGEST_POLL))
            params = {"after": after, "ended": "true" if after is None else None, "wait": f"{round(left * 1000)}ms"}
            limit = self._transport.timeout + left
            found = self._transport.json("GET", path_of("runs", run), params=params, timeout=limit)
            if RunState(found["state"]).final or (after is not None and found["version"] > after):
                return found
            if time.monotonic() >= deadline:
                text = f"run {run} is {found['state']} after {timeout:g} s: {found['reason']}."
                raise errors.DeadlineExceededError(None, None, text)

    def stop_run(self, run: str, *, reason: str | None = None) -> dict[str, Any]:
        """Asks a run to stop; does not wait for its end. Returns its JSON object."""
        body = {} if reason is None else {"reason": reason}
        return self._transport.json("POST", path_of("runs", run) + ":stop", json=body, repeatable=True)

    def delete_run(self, run: str) -> dict[str, Any]:
        """Forgets a run that has ended, and its logs. Raises FailedPreconditionError for one that has not."""
        return self._transport.json("DELETE", path_of("runs", run))

    def run_logs(self, run: str, *, tasks: Sequence[str] = (), tail: int = 200) -> list[dict[str, str]]:
        """What the tasks wrote last, `tail` lines in order of time, of `tasks` ("worker/0") or all of them."""
        params = {"task": list(tasks) or None, "tail": tail}
        lines: list[dict[str, str]] = self._transport.json("GET", path_of("runs", run, "logs"), params=params)["lines"]
        return lines

    def follow_run_logs(self, run: str, *, tasks: Sequence[str] = (), tail: int = 200) -> Iterator[dict[str, str]]:
        """What the tasks wrote last, `tail` lines, and then each line as it comes, until the run has ended. Blocks
        between them. A connection that breaks is made again, and nothing is given twice. Raises NotFoundError."""
        path, params = path_of("runs", run, "logs"), {"task": list(tasks) or None, "tail": tail, "follow": "true"}
        for event in self._transport.events(path, params):
            if event.name == "end":
                return
            yield from json.loads(event.data)["lines"]

    def progress(self, run: str) -> dict[str, Any]:
        """The run's curves by task: global step, scalars, checkpoints, what each task uses."""
        return self._transport.json("GET", path_of("runs", run, "progress"))

    def report_task(
        self, run: str, job: str, index: int, report: Mapping[str, Any], *, timeout: float | None = None
    ) -> dict[str, Any]:
        """News of a training from one of its programs. The answer says when the next one is due."""
        path = path_of("runs", run, "tasks", job, str(index)) + ":report"
        return self._transport.json("POST", path, json=dict(report), repeatable=True, timeout=timeout)

    def events(
        self,
        *,
        after: int | None = None,
        kinds: Sequence[str] = (),
        cluster: str | None = None,
        run: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """What happens to clusters, tasks, runs and sessions, as JSON objects, for ever: from now on, or after the
        event `after`. Blocks between them. A connection that breaks is made again, and nothing is given twice or left
        out; raises OutOfRangeError where the service has forgotten the place, for one that reads too slowly."""
        params = {"after": after, "kind": list(kinds) or None, "cluster": cluster, "run": run}
        for event in self._transport.events("/v1/events", params):
            content = json.loads(event.data)
            if event.name != "dropped":
                yield content
            elif content["code"] != "UNAVAILABLE":  # a service that stops; the next one goes on
                raise error_of(int(content["status"]), content, event.data)

    def report_run(self, run: str, report: Mapping[str, Any]) -> dict[str, Any]:
        """News of a run from its supervisor. The answer says whether it is to stop, and when the next one is due."""
        return self._transport.json("POST", path_of("runs", run) + ":report", json=dict(report), repeatable=True)
