"""The global step that a training ends with, read once more when its session closes or its program ends.

A step that fetches the global step beside its update sees it before or after, and a program may fetch it now and then
only: what was fetched last is one too few, or many. So where somebody reports on the process, a session that ends reads
it, without adding to the graph. Used by base_session.py and runs/program_report.py; decision 0139.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from tenfold.session import observing
from tenfold.session.fetches import FetchPlan
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.session.base_session import BaseSession

log = logging.getLogger(__name__)

#: Milliseconds that one read may take, and seconds that those at the end of a program may take together.
_READ_MS = 1000
_ALL_S = 2.0


def note(session: BaseSession, run: Callable[[FetchPlan, config_pb2.RunOptions], list[Any]]) -> None:
    """Tells the observer of the process the session's global step, if it has one and it is news.

    `run` runs a plan, uncounted. Blocks for a second at most; raises nothing: a session may end because its tasks are
    gone.
    """
    observer = observing.observer
    if observer is None or not observer.forget_session(session):
        return
    try:
        step = observing.global_step_of(session.graph)
        if step is None:
            return
        (value,) = run(FetchPlan(session.graph, step), config_pb2.RunOptions(timeout_in_ms=_READ_MS))
        observer.note_step(int(value))
    except Exception:
        log.debug("the global step could not be read at the end of a session", exc_info=True)


def note_open_sessions() -> None:
    """The same for the sessions that are still open where the program ends."""
    observer = observing.observer
    end = time.monotonic() + _ALL_S
    for session in [] if observer is None else list(observer.sessions):
        if time.monotonic() < end:
            session.note_last_step()
