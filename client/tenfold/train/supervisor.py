"""`Supervisor`: the older class for sessions that restore, write checkpoints and stop their threads.

Works with session_manager.py and coordinator.py; supervisor_ops.py finds its ops in the graph, the threads that it
starts are in supervisor_services.py. Programs that must survive a lost task by themselves use
monitored_session.py instead, or basic_loops.py. Follows TF 1.15's training/supervisor.py.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.graph import get_default_graph
from tenfold.graph.collections import GraphKeys
from tenfold.ops import variables as variables_module
from tenfold.train import meta_graph, supervisor_services, training_util
from tenfold.train.coordinator import Coordinator, LooperThread
from tenfold.train.session_manager import SessionManager
from tenfold.train.supervisor_ops import (
    USE_DEFAULT,
    default_global_step,
    default_local_init_op,
    default_saver,
    default_summary_op,
    given_or_made,
    increments_beside,
)
from tenfold_protos import event_pb2

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from tenfold.graph.graph import Graph
    from tenfold.session.session import Session
    from tenfold_protos.config_pb2 import ConfigProto, RunOptions


class Supervisor:
    """Makes a session ready, runs services during training, and stops all of them together.

    The chief restores or initialises, and writes to `logdir`: summaries and the step rate every
    `save_summaries_secs`, checkpoints every `save_model_secs` (0 switches either off). The others wait for it. Missing
    arguments are taken from the graph's collections or created, and the graph is finalized. With a saver that was made
    for increments (`Saver(incremental_save_restore=True)`) those in `logdir` are restored, too.

    Raises ValueError if a worker's variable has no device.
    """

    USE_DEFAULT = USE_DEFAULT

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: Any = USE_DEFAULT,
        ready_for_local_init_op: Any = USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = USE_DEFAULT,
        init_feed_dict: Mapping[Any, Any] | None = None,
        local_init_op: Any = USE_DEFAULT,
        logdir: str | None = None,
        summary_op: Any = USE_DEFAULT,
        saver: Any = USE_DEFAULT,
        global_step: Any = USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: SessionManager | None = None,
        summary_writer: Any = USE_DEFAULT,
        init_fn: Callable[[Session], Any] | None = None,
        local_init_run_options: RunOptions | None = None,
    ) -> None:
        self._graph = get_default_graph() if graph is None else graph
        with self._graph.as_default():
            self._ready_op = given_or_made(
                ready_op, GraphKeys.READY_OP, variables_module.report_uninitialized_variables
            )
            self._ready_for_local_init_op = given_or_made(
                ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP, None
            )
            self._init_op = given_or_made(init_op, GraphKeys.INIT_OP, variables_module.global_variables_initializer)
            self._local_init_op = given_or_made(local_init_op, GraphKeys.LOCAL_INIT_OP, default_local_init_op)
            self._saver = given_or_made(saver, GraphKeys.SAVERS, default_saver)
            self._summary_op = given_or_made(summary_op, GraphKeys.SUMMARY_OP, default_summary_op)
            self._global_step = given_or_made(global_step, GraphKeys.GLOBAL_STEP, default_global_step)
            #: For session managers; without increments nothing, which those of a program's own need not know.
            self._with_increments = increments_beside(self._saver)
        self._init_feed_dict, self._init_fn = init_feed_dict, init_fn
        self._meta_graph_def = meta_graph.create_meta_graph_def(
            graph_def=self._graph.as_graph_def(add_shapes=True),
            saver_def=self._saver.saver_def if self._saver else None,
        )
        self._is_chief, self._coord = is_chief, Coordinator()
        self._stop_grace_secs = stop_grace_secs
        #: All five None in a worker, which writes nothing.
        self._logdir: str | None = None
        self._save_summaries_secs: float | None = None
        self._save_model_secs: float | None = None
        self._save_path: str | None = None
        self._summary_writer: Any = None
        #: False from `stop` to the next session: a second `stop`, as in TensorFlow's guides, writes nothing more.
        self._writer_open = True
        self._graph_added_to_summary = False
        if is_chief:
            self._logdir, self._save_summaries_secs, self._save_model_secs = (
                logdir,
                save_summaries_secs,
                save_model_secs,
            )
            if logdir:
                self._save_path = os.path.join(logdir, checkpoint_basename)
            if summary_writer is not USE_DEFAULT:
                self._summary_writer = summary_writer
            elif logdir:
                from tenfold.summary import FileWriter

                self._summary_writer = FileWriter(logdir)
        self._session_manager = session_manager or SessionManager(
            local_init_op=self._local_init_op,
            ready_op=self._ready_op,
            ready_for_local_init_op=self._ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options,
        )
        self._verify_setup()
        self._graph.finalize()

    def _verify_setup(self) -> None:
        """Raises ValueError for a worker's variable without a device: it would be local, and never initialised."""
        if self._is_chief:
            return
        for op in self._graph.get_operations():
            if op.type in ("Variable", "VariableV2") and not op.device:
                raise ValueError(f"When using replicas, all Variables must have their device set: {op}")

    # -- properties ----------------------------------------------------------------------------------------------------

    @property
    def is_chief(self) -> bool:
        return self._is_chief

    @property
    def session_manager(self) -> SessionManager:
        return self._session_manager

    @property
    def coord(self) -> Coordinator:
        """The coordinator that stops all threads of this supervisor."""
        return self._coord

    @property
    def init_op(self) -> Any:
        return self._init_op

    @property
    def init_feed_dict(self) -> Mapping[Any, Any] | None:
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        return self._ready_for_local_init_op

    @property
    def summary_writer(self) -> Any:
        return self._summary_writer

    @property
    def summary_op(self) -> Any:
        return self._summary_op

    @property
    def save_summaries_secs(self) -> float | None:
        return self._save_summaries_secs

    @property
    def global_step(self) -> Any:
        """The tensor or variable that counts steps; None without."""
        return self._global_step

    @property
    def saver(self) -> Any:
        return self._saver

    @property
    def save_model_secs(self) -> float | None:
        return self._save_model_secs

    @property
    def save_path(self) -> str | None:
        """The prefix of checkpoints, without the step."""
        return self._save_path

    # -- sessions ------------------------------------------------------------------------------------------------------

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: ConfigProto | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Session:
        """A session that is ready; starts services and queue runners. The caller closes it. Blocks."""
        self._coord.clear_stop()
        if self._summary_writer:
            self._summary_writer.reopen()
            self._writer_open = True
        if self._is_chief:
            sess = self._session_manager.prepare_session(
                master,
                init_op=self._init_op,
                saver=self._saver,
                checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self._init_feed_dict,
                init_fn=self._init_fn,
                **self._with_increments,
            )
            if self._saver and self._logdir and self._saver.saver_def:
                from tenfold.train.shared_folders import check_shared_folder

                check_shared_folder(sess, self._logdir, self._saver.saver_def)
            self._write_graph()
            if start_standard_services:
                logging.info("Starting standard services.")
                self.start_standard_services(sess)
        else:
            sess = self._session_manager.wait_for_session(
                master, config=config, max_wait_secs=max_wait_secs, **self._with_increments
            )
        if start_standard_services:
            logging.info("Starting queue runners.")
            self.start_queue_runners(sess)
        return sess

    @contextlib.contextmanager
    def managed_session(
        self,
        master: str = "",
        config: ConfigProto | None = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Session]:
        """`prepare_or_wait_for_session` as a `with` block; its end stops the threads and closes the session.

        Raises what the block or a thread raised first; OutOfRangeError is a normal end.
        """
        sess: Session | None = None
        try:
            sess = self.prepare_or_wait_for_session(
                master=master, config=config, start_standard_services=start_standard_services
            )
            yield sess
        except Exception as error:
            if sess is None:
                # no session was made, so there is none to wait for or to return
                self.request_stop()
                raise
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if sess is not None:
                    # the first error was raised already; closing a session with a lost task may fail
                    with contextlib.suppress(Exception):
                        sess.close()

    def _write_graph(self) -> None:
        from tenfold.train.write_graph import write_graph

        if self._logdir:
            write_graph(self._graph.as_graph_def(add_shapes=True), self._logdir, "graph.pbtxt")
        if self._summary_writer and not self._graph_added_to_summary:
            self._summary_writer.add_graph(self._graph)
            self._summary_writer.add_meta_graph(self._meta_graph_def)
            self._graph_added_to_summary = True

    # -- threads -------------------------------------------------------------------------------------------------------

    def start_standard_services(self, sess: Session) -> list[LooperThread] | None:
        """Starts summaries, step rate and checkpoints; their threads, None without a log folder.

        Raises RuntimeError if this is not the chief.
        """
        if not self._is_chief:
            raise RuntimeError(
                "Only chief supervisor can start standard services. Because only chief supervisors can write events."
            )
        if not self._logdir:
            logging.warning("Standard services need a 'logdir' passed to the SessionManager")
            return None
        if self._global_step is not None and self._summary_writer:
            log = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._summary_writer.add_session_log(log, training_util.global_step(sess, self._global_step))
        threads: list[LooperThread] = []
        if self._save_summaries_secs and self._summary_writer:
            if self._summary_op is not None:
                threads.append(supervisor_services.SVSummaryThread(self, sess))
            if self._global_step is not None:
                threads.append(supervisor_services.SVStepCounterThread(self, sess))
        if self._saver and self._save_model_secs:
            threads.append(supervisor_services.SVTimerCheckpointThread(self, sess))
        for thread in threads:
            thread.start()
        return threads

    def start_queue_runners(self, sess: Session, queue_runners: Sequence[Any] | None = None) -> list[threading.Thread]:
        """Starts the runners (default: those of the collection QUEUE_RUNNERS); their threads."""
        if queue_runners is None:
            queue_runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
        with self._graph.as_default():
            return [
                thread
                for runner in queue_runners
                for thread in runner.create_threads(sess, coord=self._coord, daemon=True, start=True)
            ]

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """A started thread that calls `target` again and again, or every so many seconds, until the stop."""
        return LooperThread.loop(self._coord, timer_interval_secs, target, args, kwargs)

    def stop(
        self,
        threads: Iterable[threading.Thread] | None = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """Asks for a stop and waits for the threads; the session stays open. Raises as `Coordinator.join`."""
        self._coord.request_stop()
        try:
            self._coord.join(
                threads, stop_grace_period_secs=self._stop_grace_secs, ignore_live_threads=ignore_live_threads
            )
        finally:
            if close_summary_writer and self._summary_writer and self._writer_open:
                self._writer_open = False
                self._summary_writer.add_session_log(event_pb2.SessionLog(status=event_pb2.SessionLog.STOP))
                self._summary_writer.close()
                self._graph_added_to_summary = False

    def request_stop(self, ex: Any = None) -> None:
        """As `Coordinator.request_stop`."""
        self._coord.request_stop(ex=ex)

    def should_stop(self) -> bool:
        return self._coord.should_stop()

    def stop_on_exception(self) -> AbstractContextManager[None]:
        """As `Coordinator.stop_on_exception`."""
        return self._coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Blocks until a stop is requested."""
        self._coord.wait_for_stop()

    def summary_computed(self, sess: Session, summary: Any, global_step: int | None = None) -> None:
        """Writes a summary, a message or its bytes. Raises RuntimeError without a summary writer."""
        if not self._summary_writer:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self._global_step is not None:
            global_step = training_util.global_step(sess, self._global_step)
        self._summary_writer.add_summary(summary, global_step)

    # the names of TensorFlow's first releases
    PrepareSession = prepare_or_wait_for_session
    StartQueueRunners = start_queue_runners
    StartStandardServices = start_standard_services
    Stop = stop
    RequestStop = request_stop
    Loop = loop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop
    SummaryComputed = summary_computed
