"""A master whose sessions and steps are spans of the client's, for processes that write traces (OpenTelemetry).

targets.py, and the control service for its own masters, pass each new master through `traced`; while traces are off it
comes back as it is. What the master's task does is told by the spans of that task, below these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tenfold_core import telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.session.master_interface import MasterInterface

    M = TypeVar("M", bound=MasterInterface)

#: Names of fetches that a span has at most, and their characters.
_FETCHES, _CHARACTERS = 10, 200


def traced(master: M, target: str) -> M:
    """`master` with spans around what a session asks of it, if traces are on. Its methods are replaced on this one
    object: a prepared step has none, so that steps go by `run_step`."""
    if not telemetry.is_on():
        return master
    create_session, run_step = master.create_session, master.run_step

    def create_session_in_span(*arguments: Any) -> Any:
        with telemetry.span("client CreateSession", "client", target=target):
            return create_session(*arguments)

    def run_step_in_span(handle: str, feeds: Any, fetches: Sequence[str], targets: Sequence[str], *more: Any) -> Any:
        names = ",".join([*fetches, *targets][:_FETCHES])[:_CHARACTERS]
        with telemetry.span("client RunStep", "client", target=target, session=handle, fetches=names):
            return run_step(handle, feeds, fetches, targets, *more)

    replaced: dict[str, Callable[..., Any]] = {
        "create_session": create_session_in_span,
        "run_step": run_step_in_span,
        "prepared_step": lambda *_: None,
    }
    for name, method in replaced.items():
        setattr(master, name, method)
    return master
