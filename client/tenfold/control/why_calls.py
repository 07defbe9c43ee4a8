"""The calls that ask why a run, a cluster or a session stands still.

Of both clients; calls.py says how they become methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.control.calls import call
from tenfold.control.request import Request, from_program, one, path_of
from tenfold.control.why_answers import Why

if TYPE_CHECKING:
    from tenfold_protos.why_pb2 import TaskAnswer


class WhyCalls:
    """The calls of the clients that explain why something is stuck."""

    @call
    def why_run(self, run: str) -> Request[Why]:
        """The suspect that blocks the run: asks all its programs, for at most 2 seconds, and follows their answers
        to it. Raises NotFoundError, FailedPreconditionError for a run that has ended."""
        return Request("GET", path_of("runs", run) + ":why", one(Why))

    @call
    def why_cluster(self, cluster: str = "default") -> Request[Why]:
        """The same for the tasks of a cluster, whose servers are asked. Of other callers' sessions it tells only that
        they wait or hold something. Raises NotFoundError."""
        return Request("GET", path_of("clusters", cluster) + ":why", one(Why))

    @call
    def why_session(self, session: str) -> Request[Why]:
        """The same for a session that was opened here, and nothing of others. Raises NotFoundError."""
        return Request("GET", path_of("sessions", session) + ":why", one(Why))

    @call
    def answer_why(
        self, run: str, asked: str, job: str, index: int, found: TaskAnswer, *, timeout: float | None = None
    ) -> Request[None]:
        """Sends a program's answer, which the answer to a report requested. Raises NotFoundError for a
        question that no longer waits for it."""
        return from_program(run, ("why", asked), job, index, found, timeout)
