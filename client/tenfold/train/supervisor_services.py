"""The threads that a chief's Supervisor runs beside the training: summaries, the step rate, checkpoints.

Each is a LooperThread of the supervisor's coordinator. Follows TF 1.15's training/supervisor.py.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from tenfold import logging
from tenfold.train import training_util
from tenfold.train.coordinator import LooperThread
from tenfold_protos import event_pb2, summary_pb2

if TYPE_CHECKING:
    from tenfold.session.session import Session
    from tenfold.train.coordinator import Coordinator


class Supervised(Protocol):
    """A supervisor, as its threads see it (supervisor.py)."""

    @property
    def coord(self) -> Coordinator: ...
    @property
    def summary_op(self) -> Any: ...
    @property
    def summary_writer(self) -> Any: ...
    @property
    def save_summaries_secs(self) -> Any: ...
    @property
    def global_step(self) -> Any: ...
    @property
    def saver(self) -> Any: ...
    @property
    def save_model_secs(self) -> Any: ...
    @property
    def save_path(self) -> Any: ...


class SVSummaryThread(LooperThread):
    """Runs the summary op every `save_summaries_secs`."""

    def __init__(self, sv: Supervised, sess: Session) -> None:
        super().__init__(sv.coord, sv.save_summaries_secs)
        self._sv, self._sess = sv, sess

    def run_loop(self) -> None:
        step: int | None = None
        if self._sv.global_step is not None:
            summary, step = self._sess.run([self._sv.summary_op, self._sv.global_step])
        else:
            summary = self._sess.run(self._sv.summary_op)
        if self._sv.summary_writer:
            logging.info("Recording summary at step %s.", step)
            self._sv.summary_writer.add_summary(summary, step)


class SVStepCounterThread(LooperThread):
    """Writes steps per second every `save_summaries_secs`."""

    def __init__(self, sv: Supervised, sess: Session, step_counter: Any = None) -> None:
        super().__init__(sv.coord, sv.save_summaries_secs)
        self._sv, self._sess = sv, sess
        self._last_time, self._last_step = 0.0, 0
        self._step_counter = sv.global_step if step_counter is None else step_counter
        self._summary_tag = f"{self._step_counter.op.name}/sec"

    def start_loop(self) -> None:
        self._last_time = time.monotonic()
        self._last_step = training_util.global_step(self._sess, self._step_counter)

    def run_loop(self) -> None:
        step, now = training_util.global_step(self._sess, self._step_counter), time.monotonic()
        added, elapsed = step - self._last_step, now - self._last_time
        self._last_step, self._last_time = step, now
        rate = added / elapsed if elapsed > 0 else float("inf")
        value = summary_pb2.Summary.Value(tag=self._summary_tag, simple_value=rate)
        if self._sv.summary_writer:
            self._sv.summary_writer.add_summary(summary_pb2.Summary(value=[value]), step)
        logging.log_first_n(logging.INFO, "%s: %g", 10, self._summary_tag, rate)


class SVTimerCheckpointThread(LooperThread):
    """Saves a checkpoint every `save_model_secs`."""

    def __init__(self, sv: Supervised, sess: Session) -> None:
        super().__init__(sv.coord, sv.save_model_secs)
        self._sv, self._sess = sv, sess

    def run_loop(self) -> None:
        logging.info("Saving checkpoint to path %s", self._sv.save_path)
        self._sv.saver.save(self._sess, self._sv.save_path, global_step=self._sv.global_step)
        if self._sv.summary_writer and self._sv.global_step is not None:
            step = training_util.global_step(self._sess, self._sv.global_step)
            log = event_pb2.SessionLog(status=event_pb2.SessionLog.CHECKPOINT, checkpoint_path=self._sv.save_path)
            self._sv.summary_writer.add_session_log(log, step)
