"""Traces of a program of a run, when the control service asks for one in its answer to a report.

Used by program_report.py, on its thread: `order` starts a trace, `settle` sends it once its steps have run. The steps
are traced by tenfold.session.step_tracing.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from tenfold_core import errors

if TYPE_CHECKING:
    import threading

    from tenfold.control import ControlClient
    from tenfold.control.run_answers import TraceOrder
    from tenfold.runs.program_report import Place
    from tenfold.session.step_tracing import StepTracer

log = logging.getLogger(__name__)

#: Seconds between looks whether the traced steps have run, and for the upload.
_LOOK_S, _UPLOAD_S = 0.05, 30.0


class ProgramTracer:
    """The traces of one program, one after the other."""

    def __init__(self) -> None:
        #: What task of which run it is that traces.
        self._place: Place | None = None
        #: The trace that was ordered last, and what takes its steps until they are sent.
        self._id: str | None = None
        self._tracer: StepTracer | None = None

    def order(self, place: Place, wanted: TraceOrder | None) -> None:
        """Starts the trace that the service asks for; nothing without one, or for one that was ordered before."""
        if wanted is None or wanted.id == self._id:
            return
        from tenfold.session import step_tracing

        self._place, self._id = place, wanted.id
        self._tracer = step_tracing.start(wanted.steps, wanted.seconds, wanted.max_bytes)

    def settle(self, client: ControlClient, seconds: float, ending: threading.Event) -> None:
        """Waits for `seconds`, or until the program is `ending`; sends the trace as soon as it is complete, and at the
        latest when its time is over. Never raises."""
        until = time.monotonic() + seconds
        while (tracer := self._tracer) is not None and not ending.is_set() and time.monotonic() < until:
            if tracer.done.wait(_LOOK_S) or tracer.is_over:
                self.send(client)
        ending.wait(max(0.0, until - time.monotonic()))

    def send(self, client: ControlClient, timeout: float = _UPLOAD_S) -> None:
        """Sends what there is of a trace under way. Blocks for a while; never raises."""
        tracer, self._tracer = self._tracer, None
        place = self._place
        if tracer is None or self._id is None or place is None:
            return
        from tenfold.session import step_tracing

        step_tracing.stop(tracer)
        try:
            client.upload_trace(place.run, self._id, place.job, place.index, tracer.result(), timeout=timeout)
        except errors.OpError as error:
            log.info("the control service does not take the trace %s of this task: %s", self._id, error)
