"""What is seen of a task's steps: how many there were, and their spans (OpenTelemetry).

Spans are made only while somebody listens: the steps of master/, master/caller_cluster_steps.py and
worker/graph_manager.py test `telemetry.tracer`, and run the same code in either case. What comes from other processes
is below their spans by metadata (rpc/service.py) and by links (tenfold_link/aio/serving.py). docs/opentelemetry.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core import telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.trace import Span

    from .exchange.plan import Push
    from .interfaces import Done, RunGraphResult, Value


class StepCount:
    """How many steps a task's worker has run a part of, under whatever name. Callers' threads count for themselves
    (master/caller_steps.py): that costs a short step less.

    Any thread adds to it; as with tenfold_core.traffic, a lost count does no harm.
    """

    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps = 0


def part(task: str, session: str, step_id: int) -> Span:
    """The span of a part of a step at `task`; `telemetry.end` ends it."""
    return telemetry.begin("worker RunGraph", task=task, session=session, step=f"{step_id:x}")


def ending(opened: Span, done: Done) -> Done:
    """`done`, which ends the span first."""

    def ended(result: RunGraphResult | None, error: Any) -> None:
        telemetry.end(opened, error)
        done(result, error)

    return ended


def noting(opened: Span, push: Push) -> Push:
    """`push`, of which the span has an event each time."""

    def noted(task: str, step_id: int, tensors: Any) -> None:
        opened.add_event("push", {"tenfold.task": task, "tenfold.tensors": len(tensors)})
        push(task, step_id, tensors)

    return noted


def on_callers_thread(
    run: Callable[[], list[Value] | None], task: str, session: str, fetches: str, part_id: int
) -> list[Value] | None:
    """What `run()` gives, within the span of the master's step; none where it gives None, which did not run. `part_id`
    is the number of a step that is one part of this task, whose span is below; 0 for others."""

    def run_part() -> list[Value] | None:
        opened = part(task, session, part_id)
        try:
            values = run()
        except BaseException as error:
            telemetry.end(opened, error)
            raise
        if values is not None:
            telemetry.end(opened, None)
        return values

    work = run_part if part_id else run
    return telemetry.attempt("master RunStep", work, task=task, session=session, fetches=fetches)
