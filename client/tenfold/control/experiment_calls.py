"""The calls of `/v1/runs` that compare runs: what each is called, and what was recorded of it.

Of both clients; calls.py says how they become methods.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING
from urllib.parse import quote

from tenfold.control.calls import call
from tenfold.control.request import Request, Work, nothing, one, pages, path_of, text
from tenfold.control.run_answers import Artifact, Comparison, Run
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx

    from tenfold.control.request import Requests

#: Bytes of a file that one request brings.
_PIECE = 8 << 20
#: Bytes of a file that one request sends: the service takes no more of what is not a package.
_SENT = 512 << 10


class ExperimentCalls:
    """The part of the clients that is about what runs are called, and how they compare."""

    @call
    def edit_run(
        self,
        run: str,
        *,
        display_name: str | None = None,
        tags: Sequence[str] | None = None,
        add_tags: Sequence[str] = (),
        remove_tags: Sequence[str] = (),
        notes: str | None = None,
        parameters: Mapping[str, bool | int | float | str | None] | None = None,
    ) -> Request[Run]:
        """Changes what a run is called, whether it has ended or not, and returns it. `tags` replaces all tags; a
        parameter that is None is removed if it was given before. What is left out stays. Raises NotFoundError, and
        PermissionDeniedError for another submitter's run."""
        body = {
            "display_name": display_name,
            "tags": None if tags is None else list(tags),
            "add_tags": list(add_tags),
            "remove_tags": list(remove_tags),
            "notes": notes,
            "parameters": None if parameters is None else dict(parameters),
        }
        return Request("PATCH", path_of("runs", run), one(Run), json=body)

    @call
    def run_diff(self, run: str) -> Request[str]:
        """How the files of the run's working directory differed from their commit, as Git prints it; empty where they
        did not, or where nothing is known. `run.source.diff_truncated` says whether its end is missing."""
        return Request("GET", path_of("runs", run, "diff"), text)

    @call
    def compare_runs(
        self, runs: Sequence[str], *, scalars: Sequence[str] = (), points: int | None = None
    ) -> Request[Comparison]:
        """Up to 100 runs side by side: parameters and other facts, first those in which they differ, and the curves of
        all scalars, or of those that are named, each with at most `points` points, the newest among them. Raises
        NotFoundError for a run that does not exist."""
        params = {"run": list(runs), "scalar": list(scalars) or None, "points": points}
        return Request("GET", "/v1/runs:compare", one(Comparison), params=params)

    @call
    def artifacts(self, run: str) -> Requests[list[Artifact]]:
        """The files that a run has left in its output folder (TENFOLD_OUTPUT), by path. Raises NotFoundError where the
        service has no such folder."""
        return (yield from pages("/".join((path_of("runs", run), "artifacts")), "artifacts", Artifact, {}))

    @call
    def download_artifact(self, run: str, path: str, file: str) -> Requests[int]:
        """Writes a file of the run's output folder to the path `file` of this machine, whose folder must be there, and
        returns its bytes. It appears as a whole or not at all. Raises NotFoundError, OSError, and DataLossError where
        the file changes its size meanwhile."""
        source = "/".join((path_of("runs", run, "artifacts"), *(quote(part, safe="") for part in path.split("/"))))
        beside = f"{file}.{secrets.token_hex(4)}"
        done, size = 0, 1
        try:
            yield from Work(lambda: _append(beside, b""))
            while done < size:
                part = {"Range": f"bytes={done}-{done + _PIECE - 1}"}
                try:
                    content, told = yield from Request("GET", source, _part, headers=part)
                except errors.OutOfRangeError:
                    if done:
                        raise
                    break  # an empty file has no byte 0
                if done and told != size:
                    text = f"{path} of run {run} changed from {size} to {told} bytes while it was read; ask again."
                    raise errors.DataLossError(None, None, text)
                size = told
                yield from Work(lambda content=content: _append(beside, content))  # type: ignore[misc]
                done += len(content)
            yield from Work(lambda: os.replace(beside, file))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
        return done


    @call
    def send_output(
        self, run: str, job: str, index: int, path: str, file: str, *, timeout: float | None = None
    ) -> Requests[int]:
        """Sends a file of a task's output folder to the run's, under the same `path`, and returns its bytes. For tasks
        on other machines than the service's. Raises OSError, FailedPreconditionError once the run has ended, and
        ResourceExhaustedError."""
        to = path_of("runs", run, "tasks", job, str(index), "output")
        headers = {"Content-Type": "application/octet-stream"}
        size = yield from Work(lambda: os.stat(file).st_size)
        done = 0
        while True:
            piece = yield from Work(lambda at=done: _piece(file, at, min(_SENT, size - at)))  # type: ignore[misc]
            params = {"path": path, "offset": done, "size": size}
            yield from Request("PUT", to, nothing, params=params, content=piece, headers=headers, timeout=timeout)
            done += len(piece)
            if done >= size:
                return done
            if not piece:
                raise OSError(f"{file} became shorter while it was sent")


def _piece(path: str, at: int, size: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(at)
        return file.read(size)


def _append(path: str, content: bytes) -> None:
    with open(path, "ab") as file:
        file.write(content)


def _part(response: httpx.Response) -> tuple[bytes, int]:
    """The part of a file, and how large the whole is."""
    _, _, size = response.headers.get("content-range", "").rpartition("/")
    return response.content, int(size) if size.isdecimal() else len(response.content)
