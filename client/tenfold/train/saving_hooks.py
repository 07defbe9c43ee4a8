"""The hooks that write: checkpoints, summaries, the step rate, timelines. hooks.py exports them with the others.

Writers of event files are shared by folder (tenfold.summary's FileWriterCache). Follows TF 1.15's
training/basic_session_run_hooks.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.graph import get_collection, get_default_graph
from tenfold.graph.collections import GraphKeys
from tenfold.train import training_util
from tenfold.train.checkpoint_chain import increments_folder
from tenfold.train.checkpoint_management import checkpoint_exists
from tenfold.train.hook_timer import SecondOrStepTimer
from tenfold.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path
from tenfold_core.files import EVERYWHERE
from tenfold_protos import config_pb2, event_pb2, summary_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.session.session import BaseSession
    from tenfold.train.coordinator import Coordinator
    from tenfold.train.incremental_saver import IncrementalSaver
    from tenfold.train.scaffold import Scaffold


def global_step_read(hook: str) -> Any:
    """The tensor that reads the global step. Raises RuntimeError, naming the hook, if the graph has none."""
    read = training_util._get_or_create_global_step_read()
    if read is None:
        raise RuntimeError(f"Global step should be created to use {hook}.")
    return read


def _shared_writer(folder: str) -> Any:
    from tenfold.summary import FileWriterCache

    return FileWriterCache.get(folder)


class CheckpointSaverListener:
    """Base class of listeners that a CheckpointSaverHook calls; `after_save` may ask for a stop by True."""

    def begin(self) -> None:
        """Called once, before the session is created."""

    def before_save(self, session: BaseSession, global_step_value: int) -> None:
        """Called before each checkpoint."""

    def after_save(self, session: BaseSession, global_step_value: int) -> bool | None:
        """Called after each checkpoint; True asks for the training to stop."""
        return None

    def end(self, session: BaseSession, global_step_value: int) -> None:
        """Called at the end, after the last checkpoint."""


class CheckpointSaverHook(SessionRunHook):
    """Saves a checkpoint at the beginning, every `save_secs` or `save_steps`, and at the end.

    `incremental_save_secs` (DeepRec's): every so many seconds in between, an increment with what has changed, below
    `checkpoint_dir`; needs a scaffold with `incremental_save_restore=True`.
    Raises ValueError for both a saver and a scaffold, or unless exactly one period is given.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Scaffold | None = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
        incremental_save_secs: float | None = None,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._saver, self._scaffold = saver, scaffold
        self._checkpoint_dir = checkpoint_dir
        self._save_path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._incremental_timer = None if incremental_save_secs is None else SecondOrStepTimer(incremental_save_secs)
        self._incremental_save_path = os.path.join(increments_folder(checkpoint_dir), "incremental_model.ckpt")
        self._listeners = list(listeners or ())
        self._steps_per_run = 1

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        self._summary_writer = _shared_writer(self._checkpoint_dir)
        self._global_step_tensor = global_step_read("CheckpointSaverHook")
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: BaseSession, coord: Coordinator) -> None:
        from tenfold.train.meta_graph import create_meta_graph_def
        from tenfold.train.shared_folders import check_shared_folder
        from tenfold.train.write_graph import write_graph

        saver = self._get_saver()
        if self._incremental_timer is not None and self._incremental_saver() is None:
            raise ValueError(
                "incremental_save_secs needs a scaffold that is made for increments: "
                "tf.train.Scaffold(saver=tf.train.Saver(incremental_save_restore=True), incremental_save_restore=True)"
            )
        if getattr(saver, "saver_def", None):
            check_shared_folder(session, self._checkpoint_dir, saver.saver_def)
        step = session.run(self._global_step_tensor)
        graph = get_default_graph()
        graph_def = graph.as_graph_def(add_shapes=True)
        write_graph(graph_def, self._checkpoint_dir, "graph.pbtxt")
        meta_graph_def = create_meta_graph_def(graph_def=graph_def, saver_def=saver.saver_def if saver else None)
        self._summary_writer.add_graph(graph)
        self._summary_writer.add_meta_graph(meta_graph_def)
        # saves the initial values: a worker that restarts before the next checkpoint finds them
        self._save(session, step, unless_there=True)
        self._timer.update_last_triggered_step(step)
        if self._incremental_timer is not None:
            self._incremental_timer.update_last_triggered_step(step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._timer.should_trigger_for_step(run_values.results + self._steps_per_run):
            step = run_context.session.run(self._global_step_tensor)
            if self._timer.should_trigger_for_step(step):
                self._timer.update_last_triggered_step(step)
                self._save_changes_first(run_context.session, step)
                if self._save(run_context.session, step):
                    run_context.request_stop()
                return
        timer = self._incremental_timer
        if timer is not None and timer.should_trigger_for_step(run_values.results + self._steps_per_run):
            step = run_context.session.run(self._global_step_tensor)
            if timer.should_trigger_for_step(step) and step != self._timer.last_triggered_step():
                timer.update_last_triggered_step(step)
                self._save_changes(run_context.session, step)

    def _save_changes_first(self, session: BaseSession, step: int) -> None:
        """What has changed is saved before a whole checkpoint, which takes longer: who follows the training has it."""
        if self._incremental_timer is not None:
            is_saved = self._incremental_timer.last_triggered_step() == step
            self._incremental_timer.update_last_triggered_step(step)
            if not is_saved:
                self._save_changes(session, step)

    def _save_changes(self, session: BaseSession, step: int) -> None:
        logging.info("Saving changes for %d into %s.", step, self._incremental_save_path)
        saver = self._incremental_saver()
        assert saver is not None
        for listener in self._listeners:
            listener.before_save(session, step)
        saver.incremental_save(session, self._incremental_save_path, global_step=step)
        for listener in self._listeners:
            listener.after_save(session, step)

    def _incremental_saver(self) -> IncrementalSaver | None:
        return getattr(self._scaffold, "_incr_saver", None)

    def end(self, session: BaseSession) -> None:
        step = session.run(self._global_step_tensor)
        if step != self._timer.last_triggered_step():
            self._save_changes_first(session, step)
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: BaseSession, step: int, *, unless_there: bool = False) -> bool:
        """Saves; whether a listener asks for a stop.

        `unless_there`: does not write again what was just restored, since a kill meanwhile could damage it.
        """
        logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        for listener in self._listeners:
            listener.before_save(session, step)
        saver = self._get_saver()
        if not (unless_there and _holds(saver, f"{self._save_path}-{step}")):
            saver.save(session, self._save_path, global_step=step)
        log = event_pb2.SessionLog(status=event_pb2.SessionLog.CHECKPOINT, checkpoint_path=self._save_path)
        self._summary_writer.add_session_log(log, step)
        stop = False
        for listener in self._listeners:
            if listener.after_save(session, step):
                logging.info("A CheckpointSaverListener requested that training be stopped. listener: %s", listener)
                stop = True
        return stop

    def _get_saver(self) -> Any:
        if self._saver is not None:
            return self._saver
        if self._scaffold is not None:
            return self._scaffold.saver
        savers = get_collection(GraphKeys.SAVERS)
        if not savers:
            raise RuntimeError(
                f"No items in collection {GraphKeys.SAVERS}. Please add a saver to the collection or provide a saver "
                "or scaffold."
            )
        if len(savers) > 1:
            raise RuntimeError(
                f"More than one item in collection {GraphKeys.SAVERS}. Please indicate which one to use by passing it "
                "to the constructor."
            )
        self._saver = savers[0]
        return self._saver


def _holds(saver: Any, prefix: str) -> bool:
    """Whether the saver's newest checkpoint is `prefix`, and there."""
    known = getattr(saver, "last_checkpoints", None)
    known = known[-1:] if isinstance(known, list) else []
    return [os.path.abspath(each) for each in known] == [os.path.abspath(prefix)] and checkpoint_exists(prefix)


class StepCounterHook(SessionRunHook):
    """Writes and logs steps per second. Raises ValueError unless exactly one period is given."""

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
    ) -> None:
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided.")
        self._timer = SecondOrStepTimer(every_n_secs, every_n_steps)
        self._summary_writer, self._output_dir = summary_writer, output_dir
        self._last_global_step: int | None = None
        self._steps_per_run = 1

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = _shared_writer(self._output_dir)
        self._global_step_tensor = global_step_read("StepCounterHook")
        self._summary_tag = training_util.get_global_step().op.name + "/sec"

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        stale = run_values.results
        if self._timer.should_trigger_for_step(stale + self._steps_per_run):
            step = run_context.session.run(self._global_step_tensor)
            if self._timer.should_trigger_for_step(step):
                seconds, steps = self._timer.update_last_triggered_step(step)
                if seconds is not None and steps is not None:
                    self._log_and_record(steps, seconds, step)
        # the value fetched with a step may be from before or after its increment: read it again after the step
        if stale == self._last_global_step and run_context.session.run(self._global_step_tensor) == stale:
            logging.log_first_n(
                logging.WARN,
                "It seems that global step (tf.train.get_global_step) has not been increased. Current value (could be "
                "stable): %s vs previous value: %s. You could increase the global step by passing "
                "tf.train.get_global_step() to Optimizer.apply_gradients or Optimizer.minimize.",
                5,
                stale,
                self._last_global_step,
            )
        self._last_global_step = stale

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        rate = elapsed_steps / elapsed_time
        if self._summary_writer is not None:
            value = summary_pb2.Summary.Value(tag=self._summary_tag, simple_value=rate)
            self._summary_writer.add_summary(summary_pb2.Summary(value=[value]), global_step)
        logging.info("%s: %g", self._summary_tag, rate)


class SummarySaverHook(SessionRunHook):
    """Writes summaries every `save_steps` or `save_secs`, of `summary_op` or of the scaffold's.

    Raises ValueError unless exactly one of the two sources is given.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
        scaffold: Scaffold | None = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._summary_op, self._scaffold = summary_op, scaffold
        self._summary_writer, self._output_dir = summary_writer, output_dir
        self._timer = SecondOrStepTimer(save_secs, save_steps)

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = _shared_writer(self._output_dir)
        self._next_step: int | None = None
        self._global_step_tensor = global_step_read("SummarySaverHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        self._request_summary = self._next_step is None or self._timer.should_trigger_for_step(self._next_step)
        requests = {"global_step": self._global_step_tensor}
        if self._request_summary and (summary_op := self._get_summary_op()) is not None:
            requests["summary"] = summary_op
        return SessionRunArgs(requests)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._summary_writer is None:
            return
        step = run_values.results["global_step"] + 1
        if self._next_step is None or self._request_summary:
            step = run_context.session.run(self._global_step_tensor)
        if self._next_step is None:
            self._summary_writer.add_session_log(event_pb2.SessionLog(status=event_pb2.SessionLog.START), step)
        if self._request_summary:
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results.get("summary", ()):
                self._summary_writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: BaseSession | None = None) -> None:
        if self._summary_writer is not None:
            self._summary_writer.flush()

    def _get_summary_op(self) -> list[Any] | None:
        op = self._summary_op
        if op is None and self._scaffold is not None:
            op = self._scaffold.summary_op
        return op if op is None or isinstance(op, list) else [op]


class ProfilerHook(SessionRunHook):
    """Traces a step every `save_steps` or `save_secs`; each becomes `timeline-STEP.json` for chrome://tracing."""

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._output_file = os.path.join(output_dir, "timeline-{}.json")
        self._file_writer = _shared_writer(output_dir or os.curdir)
        self._show_dataflow, self._show_memory = show_dataflow, show_memory

    def begin(self) -> None:
        self._next_step: int | None = None
        self._global_step_tensor = global_step_read("ProfilerHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        self._request_summary = self._next_step is not None and self._timer.should_trigger_for_step(self._next_step)
        traced = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)
        options = traced if self._request_summary else None
        return SessionRunArgs({"global_step": self._global_step_tensor}, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        stale = run_values.results["global_step"]
        if self._next_step is None:
            # the first step is a warm-up; the timer starts with it
            self._timer.update_last_triggered_step(stale)
        step = stale + 1
        if self._request_summary:
            step = run_context.session.run(self._global_step_tensor)
            self._timer.update_last_triggered_step(step)
            self._save(step, run_values.run_metadata.step_stats)
            self._file_writer.add_run_metadata(run_values.run_metadata, f"step_{step}")
        self._next_step = step + 1

    def _save(self, step: int, step_stats: Any) -> None:
        from tenfold.profiler.timeline import Timeline

        path = self._output_file.format(step)
        logging.info("Saving timeline for %d into '%s'.", step, path)
        trace = Timeline(step_stats).generate_chrome_trace_format(
            show_dataflow=self._show_dataflow, show_memory=self._show_memory
        )
        with os_errors(path), EVERYWHERE.create(file_path(path)) as out:
            out.write(trace.encode())
