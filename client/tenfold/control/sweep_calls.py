"""The calls of `/v1/sweeps`: many runs of one program, each with a setting of its parameters.

Of both clients; calls.py says how they become methods.
"""

from __future__ import annotations

import collections.abc
from typing import TYPE_CHECKING, Any

from tenfold.control.calls import call
from tenfold.control.ending import poll, wait_for
from tenfold.control.request import Request, one, pages, path_of
from tenfold.control.sweep_answers import Sweep, SweepSummary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.control.request import Requests


class SweepCalls:
    """The part of the clients that is about sweeps."""

    @call
    def create_sweep(
        self,
        /,
        parameters: Mapping[str, Mapping[str, Any] | Sequence[bool | int | float | str]],
        program: Mapping[str, Any],
        *,
        name: str | None = None,
        **options: Any,
    ) -> Request[Sweep]:
        """Runs a program with many settings of its parameters. A parameter is the list of its values, or a range
        {"low", "high"} with "step" or "log"; `program` has the members of a run's submission. Returns the sweep.

        `options` are the other members of docs/rest.md: random ({"count", "seed"}; without it every combination
        runs), parallel, total_cores, total_memory, metric, goal, stop_early. The same `name` again gives the sweep
        that there is; raises AlreadyExistsError if that has another definition, InvalidArgumentError for parameters
        without a setting to run, PermissionDeniedError where runs are not allowed.
        """
        spaces = {
            each: dict(space) if isinstance(space, collections.abc.Mapping) else {"values": list(space)}
            for each, space in parameters.items()
        }
        body = {"name": name, "parameters": spaces, "program": dict(program), **options}
        return Request("POST", "/v1/sweeps", one(Sweep), json=body, repeatable=name is not None)

    @call
    def sweeps(self, *, states: Sequence[str] = ()) -> Requests[list[SweepSummary]]:
        """All sweeps, the newest first, without their trials."""
        return (yield from pages("/v1/sweeps", "sweeps", SweepSummary, {"state": list(states) or None}))

    @call
    def sweep(self, sweep: str) -> Request[Sweep]:
        """The sweep as it is now. Raises NotFoundError."""
        return Request("GET", path_of("sweeps", sweep), one(Sweep))

    @call
    def poll_sweep(self, sweep: str, *, after: int | None, wait: float) -> Request[Sweep]:
        """One long-poll: the sweep once its version is above `after` (None: once it has ended), or as it is after
        `wait` seconds."""
        return poll(Sweep, path_of("sweeps", sweep), after=after, wait=wait)

    @call
    def wait_for_sweep(self, sweep: str, *, after: int | None = None, timeout: float = 60.0) -> Requests[Sweep]:
        """Waits until the sweep's version is above `after`, or without it until the sweep has ended. Returns it.
        Raises DeadlineExceededError after `timeout` seconds, saying how it stands."""
        path = path_of("sweeps", sweep)
        return (yield from wait_for(Sweep, path, f"sweep {sweep}", after=after, timeout=timeout))

    @call
    def cancel_sweep(self, sweep: str, *, reason: str | None = None) -> Request[Sweep]:
        """Starts nothing more, and asks the active runs to stop; does not wait for their end. Returns the sweep."""
        body = {} if reason is None else {"reason": reason}
        return Request("POST", path_of("sweeps", sweep) + ":cancel", one(Sweep), json=body, repeatable=True)

    @call
    def resume_sweep(self, sweep: str) -> Request[Sweep]:
        """Starts what was not started because the sweep was cancelled. Returns it. Raises FailedPreconditionError while
        it is stopping."""
        return Request("POST", path_of("sweeps", sweep) + ":resume", one(Sweep), repeatable=True)

    @call
    def delete_sweep(self, sweep: str) -> Request[Sweep]:
        """Forgets a sweep that has ended; its runs remain. Raises FailedPreconditionError for one that has not."""
        return Request("DELETE", path_of("sweeps", sweep), one(Sweep))
