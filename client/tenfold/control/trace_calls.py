"""The calls that tell where a session's nodes are and what steps did: placement and traces.

Of both clients; calls.py says how they become methods.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.control.calls import call
from tenfold.control.request import LONGEST_POLL, Request, from_program, members, milliseconds, path_of
from tenfold.control.trace_answers import Placement
from tenfold_core import open_inference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.control.request import Requests
    from tenfold_protos.trace_pb2 import ProgramTrace

#: Nodes of one page.
_PAGE = 10_000


class TraceCalls:
    """The part of the clients that is about placement and traces."""

    @call
    def placement(
        self, session: str, *, name: str = "", op: str | None = None, limit: int | None = None
    ) -> Requests[Placement]:
        """Where the nodes of a session's graph are, and why: all of them, or `limit`, whose names have `name` in them,
        of the op `op` if given; and how many nodes and bytes of variables are on each task. Raises NotFoundError, and
        UnimplementedError for a session at a TensorFlow server."""
        nodes: list[Any] = []
        after: str | None = None
        while True:
            size = _PAGE if limit is None else min(_PAGE, limit - len(nodes))
            params = {"limit": size, "after": after, "name": name or None, "op": op}
            page = yield from Request("GET", path_of("sessions", session, "placement"), members, params=params)
            nodes += page["nodes"]
            after = page["next"]
            if after is None or (limit is not None and len(nodes) >= limit):
                return Placement.from_json({**page, "nodes": nodes})

    @call
    def trace_run(
        self, run: str, *, steps: int = 1, tasks: Sequence[str] = (), wait: float = LONGEST_POLL
    ) -> Request[dict[str, Any]]:
        """Traces the next `steps` steps of each of the run's programs, or of those of `tasks` ("worker/0"), and gives
        one trace over all tasks for ui.perfetto.dev, as a JSON object: `traceEvents` and `metadata`. Waits for them for
        `wait` seconds; who did not come is in `metadata["missing"]`.

        Raises DeadlineExceededError, naming them, if nobody has run a step, FailedPreconditionError for a run that has
        ended, AbortedError while it is being traced already."""
        path, wait = path_of("runs", run) + ":trace", max(0.0, min(wait, LONGEST_POLL))
        body = {"steps": steps, "tasks": list(tasks)}
        return Request("POST", path, members, json=body, params={"wait": milliseconds(wait)}, wait=wait)

    @call
    def run_trace(self, run: str, trace: str) -> Request[dict[str, Any]]:
        """A trace that was made before (`metadata["trace"]` is its name). Raises NotFoundError once it is forgotten."""
        return Request("GET", path_of("runs", run, "traces", trace), members)

    @call
    def trace_session(
        self,
        session: str,
        *,
        fetches: Sequence[str] = (),
        feeds: Mapping[str, Any] | None = None,
        targets: Sequence[str] = (),
        timeout: float = 60.0,
    ) -> Request[dict[str, Any]]:
        """Runs a step of a session that was opened here, and gives its trace over all tasks as a JSON object; without
        the values. Raises the error of the step."""
        fed = ((name, np.asarray(value), True) for name, value in (feeds or {}).items())
        heads, parts = open_inference.write_tensors(fed)
        step = {
            "inputs": heads,
            "outputs": [{"name": name} for name in fetches],
            "targets": list(targets),
            "options": {"timeout_in_ms": max(1, round(timeout * 1000))},
        }
        text = json.dumps(step).encode()
        headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(text))}
        path = path_of("sessions", session) + ":trace"
        return Request("POST", path, members, content=b"".join([text, *parts]), headers=headers, wait=timeout)

    @call
    def upload_trace(
        self, run: str, trace: str, job: str, index: int, found: ProgramTrace, *, timeout: float | None = None
    ) -> Request[None]:
        """Sends a program's trace, which the answer to a report requested. Raises NotFoundError for a
        trace that no longer waits for it."""
        return from_program(run, ("traces", trace), job, index, found, timeout)
