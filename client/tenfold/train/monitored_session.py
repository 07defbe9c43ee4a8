"""`MonitoredSession`, `SingularMonitoredSession`, `MonitoredTrainingSession`: sessions with hooks and recovery.

A session here consists of layers, outermost first: recovery, the coordinator of the queue runners, the hooks (all three
in wrapped_sessions.py), and the plain session that a creator made (session_creators.py). Follows TF 1.15's
training/monitored_session.py.
"""

from __future__ import annotations

import inspect
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

from tenfold.graph import get_collection, get_default_graph
from tenfold.graph.collections import GraphKeys
from tenfold.train import queue_runner
from tenfold.train.coordinator import Coordinator
from tenfold.train.scaffold import Scaffold
from tenfold.train.session_creators import ChiefSessionCreator, SessionCreator, WorkerSessionCreator
from tenfold.train.staged import warn_without_hook
from tenfold.train.wrapped_sessions import (
    CoordinatedSession,
    HookedSession,
    RecoverableSession,
    StepContext,
    WrappedSession,
)
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from tenfold.graph.graph import Graph
    from tenfold.session.session import BaseSession, Session
    from tenfold.train.session_run_hook import SessionRunHook
    from tenfold_protos.config_pb2 import ConfigProto, RunMetadata, RunOptions

#: The variable by which a launcher says that an engine may take back what it gives: SIGTERM, then a time to save.
SAVES_AT_SIGTERM = "TENFOLD_SAVE_AT_SIGTERM"
#: "Not given": stands for TensorFlow's default where None has a meaning of its own.
USE_DEFAULT: Any = object()


class _CoordinatedSessionCreator(SessionCreator):
    """Makes a session, starts the queue runners in it, and wraps it with coordinator and hooks."""

    def __init__(
        self, session_creator: SessionCreator, hooks: Sequence[SessionRunHook], stop_grace_period_secs: float
    ) -> None:
        self._session_creator, self._hooks = session_creator, hooks
        self._stop_grace_period_secs = stop_grace_period_secs
        #: The coordinator of the newest session; None before the first and after the end.
        self.coord: Coordinator | None = None
        self.tf_sess: Session | None = None

    def create_session(self) -> Any:
        self.tf_sess = self._session_creator.create_session()
        warn_without_hook(self._hooks)
        # OutOfRangeError is no clean stop here: the training loop must get it
        self.coord = Coordinator(clean_stop_exception_types=[])
        try:
            if get_collection(GraphKeys.QUEUE_RUNNERS):
                queue_runner.start_queue_runners(sess=self.tf_sess, coord=self.coord)
            for hook in self._hooks:
                hook.after_create_session(self.tf_sess, self.coord)
        except BaseException:
            # nobody has the session yet who could close it
            self.coord.request_stop()
            self.tf_sess.close()
            raise
        return CoordinatedSession(HookedSession(self.tf_sess, self._hooks), self.coord, self._stop_grace_period_secs)


class _MonitoredSession:
    """The common part of the two public classes: hooks, steps, and closing."""

    StepContext = StepContext
    #: Read by queue_runner.start_queue_runners: such a session has started its runners.
    starts_queue_runners = True

    def __init__(
        self,
        session_creator: SessionCreator | None,
        hooks: Sequence[SessionRunHook] | None,
        should_recover: bool,
        stop_grace_period_secs: float = 120,
    ) -> None:
        #: Whether the process was asked to end, and the session is to end in order.
        self._asked_to_stop = False
        self._graph_was_finalized = get_default_graph().finalized
        self._hooks = list(hooks or ())
        for hook in self._hooks:
            hook.begin()
        self._coordinated_creator = _CoordinatedSessionCreator(
            session_creator or ChiefSessionCreator(), self._hooks, stop_grace_period_secs
        )
        #: None once closed.
        self._sess: WrappedSession | None
        if should_recover:
            self._sess = RecoverableSession(self._coordinated_creator)
        else:
            self._sess = self._coordinated_creator.create_session()

    @property
    def graph(self) -> Graph | None:
        """The session's graph; None once closed."""
        session = self._tf_sess()
        return None if session is None else session.graph

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """One step with hooks, as `Session.run`. Blocks; after `should_stop()` it raises RuntimeError."""
        return self._open().run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """Calls `step_fn(step_context)`, again after a lost task, and returns its result.

        Raises ValueError unless that is the function's only argument. `step_context.request_stop()` raises
        StopIteration, which ends a `with` block without an error.
        """
        arguments = tuple(inspect.signature(step_fn).parameters)
        if arguments not in (("step_context",), ("self", "step_context")):
            raise ValueError(
                "`step_fn` may either have one `step_context` argument, or `self` and `step_context` arguments if it's "
                f"an instance method. Got {arguments} instead."
            )
        return self._open().run_step_fn(step_fn, self._tf_sess(), None)

    def should_stop(self) -> bool:
        """Whether a hook, the coordinator or the end of the input asked for an end; true once closed."""
        return self._sess is None or self._asked_to_stop or self._sess.should_stop()

    def _stop_at_sigterm(self) -> None:
        """From now on SIGTERM ends the training's loop, and so the hooks save; a second one ends the process. Only on
        the main thread, and where the program has no handler of its own."""
        if (
            threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
        ):
            return

        def stop(number: int, frame: object) -> None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._asked_to_stop = True
            if self._sess is None:
                os.kill(os.getpid(), signal.SIGTERM)

        signal.signal(signal.SIGTERM, stop)

    def close(self) -> None:
        """Ends hooks and session. Raises RuntimeError if it is closed already."""
        self._close_internal()

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if kind is not None and issubclass(kind, (errors.OutOfRangeError, StopIteration)):
            kind = None
        self._close_internal(kind)
        return kind is None

    def _open(self) -> WrappedSession:
        if self._sess is None:
            raise RuntimeError("Session is already closed.")
        return self._sess

    def _close_internal(self, kind: type[BaseException] | None = None) -> None:
        try:
            if kind is None and self._coordinated_creator.tf_sess is not None:
                for hook in self._hooks:
                    hook.end(self._coordinated_creator.tf_sess)
        finally:
            try:
                self._open().close()
            finally:
                self._sess = None
                self._coordinated_creator.tf_sess = None
                self._coordinated_creator.coord = None
                if not self._graph_was_finalized:
                    get_default_graph()._unsafe_unfinalize()

    def _is_closed(self) -> bool:
        return self._coordinated_creator.tf_sess is None

    def _tf_sess(self) -> Session | None:
        return self._coordinated_creator.tf_sess


class MonitoredSession(_MonitoredSession):
    """A session with hooks that is recreated when a task is lost (AbortedError, UnavailableError).

    Creating runs `begin` of every hook, then makes the session ready and starts the queue runners; it blocks until
    that is done. Leaving its `with` block ends the hooks and closes the session; OutOfRangeError and StopIteration
    end the block without an error.
    """

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        super().__init__(session_creator, hooks, should_recover=True, stop_grace_period_secs=stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """A session with hooks, created once: a lost task raises. For one process, or programs with their own recovery."""

    def __init__(
        self,
        hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path)
        super().__init__(creator, hooks, should_recover=False, stop_grace_period_secs=stop_grace_period_secs)

    def raw_session(self) -> BaseSession | None:
        """The session behind: steps on it run without hooks. None once closed."""
        return self._tf_sess()


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | None = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: Any = USE_DEFAULT,
    save_summaries_steps: Any = USE_DEFAULT,
    save_summaries_secs: Any = USE_DEFAULT,
    config: ConfigProto | None = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: Any = USE_DEFAULT,
    summary_dir: str | None = None,
    save_incremental_checkpoint_secs: float | None = None,
) -> MonitoredSession:
    """A MonitoredSession for one worker of distributed training.

    The chief restores the newest checkpoint of `checkpoint_dir` or initialises, and adds hooks that write checkpoints
    there (every 600 s by default), summaries and the step rate to `summary_dir` (default: the same; every
    100 steps). The others wait `max_wait_secs` for it and get `hooks` alone. None or 0 switches a saving off.

    Every `save_incremental_checkpoint_secs` (DeepRec's) the chief saves what has changed since the save before, and
    restores such increments with the checkpoint that they follow; a `scaffold` must then be made for them.
    """
    from tenfold.train import hooks as session_hooks

    save_summaries_steps, save_summaries_secs = _steps_or_secs(save_summaries_steps, save_summaries_secs, (100, None))
    save_checkpoint_steps, save_checkpoint_secs = _steps_or_secs(
        save_checkpoint_steps, save_checkpoint_secs, (None, 600)
    )
    incremental = save_incremental_checkpoint_secs or None
    scaffold = scaffold or Scaffold(incremental_save_restore=incremental is not None)
    creator: SessionCreator
    if not is_chief:
        creator = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return _saving_in_time(MonitoredSession(creator, hooks, stop_grace_period_secs))
    all_hooks = list(chief_only_hooks or ())
    creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    summary_dir = summary_dir or checkpoint_dir
    if summary_dir:
        if log_step_count_steps and log_step_count_steps > 0:
            all_hooks.append(session_hooks.StepCounterHook(log_step_count_steps, output_dir=summary_dir))
        if _positive(save_summaries_steps) or _positive(save_summaries_secs):
            all_hooks.append(
                session_hooks.SummarySaverHook(
                    save_summaries_steps, save_summaries_secs, output_dir=summary_dir, scaffold=scaffold
                )
            )
    if checkpoint_dir and (_positive(save_checkpoint_secs) or _positive(save_checkpoint_steps)):
        all_hooks.append(
            session_hooks.CheckpointSaverHook(
                checkpoint_dir,
                save_checkpoint_secs,
                save_checkpoint_steps,
                scaffold=scaffold,
                incremental_save_secs=incremental,
            )
        )
    return _saving_in_time(MonitoredSession(creator, [*all_hooks, *(hooks or ())], stop_grace_period_secs))


def _saving_in_time(session: MonitoredSession) -> MonitoredSession:
    """The session, which ends its loop at SIGTERM where a launcher has asked for that."""
    if os.environ.get(SAVES_AT_SIGTERM):
        session._stop_at_sigterm()
    return session


def _steps_or_secs(steps: Any, secs: Any, default: tuple[Any, Any]) -> tuple[Any, Any]:
    """The pair as given, None for the one that is missing; the default if neither was given."""
    if steps is USE_DEFAULT and secs is USE_DEFAULT:
        return default
    return (None if steps is USE_DEFAULT else steps), (None if secs is USE_DEFAULT else secs)


def _positive(number: float | None) -> bool:
    return number is not None and number > 0
