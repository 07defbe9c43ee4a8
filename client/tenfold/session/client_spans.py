"""The spans of who has a session, a program or the control service: of its steps and of its opening (OpenTelemetry).

Opened by grpc_master.py, direct_master.py and, for prepared steps, base_session.py while somebody listens. What the
master's task does is in the spans of that task, below these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, TypeVar

    T = TypeVar("T")

_STEP = "client RunStep"


def opening(target: str) -> AbstractContextManager[Any]:
    """Over CreateSession at `target`; no span while nobody listens."""
    if telemetry.tracer is None:
        return telemetry.NO_SPAN
    return telemetry.span("client CreateSession", "client", target=target)


def step(target: str, handle: str, fetches: Sequence[str], targets: Sequence[str]) -> AbstractContextManager[Any]:
    """Over RunStep at `target`; no span while nobody listens."""
    if telemetry.tracer is None:
        return telemetry.NO_SPAN
    names = telemetry.wanted_names(fetches, targets)
    return telemetry.span(_STEP, "client", target=target, session=handle, fetches=names)


def prepared(
    run: Callable[[], T | None], target: str, handle: str, fetches: Sequence[str], targets: Sequence[str]
) -> T | None:
    """What `run()`, a prepared step, gives; no span where it gives None, which did not run. Only while somebody
    listens."""
    names = telemetry.wanted_names(fetches, targets)
    return telemetry.attempt(_STEP, run, "client", target=target, session=handle, fetches=names)
