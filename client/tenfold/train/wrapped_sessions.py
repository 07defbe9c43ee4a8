"""The layers of a monitored session: recovery, coordinator, hooks. Used by monitored_session.py alone.

Each layer has `run`, `should_stop` and `close`, calls the one below, and adds one thing. Follows TF 1.15's
training/monitored_session.py.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunValues
from tenfold_core import errors
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

    from tenfold.graph.graph import Graph
    from tenfold.train.coordinator import Coordinator
    from tenfold.train.session_creators import SessionCreator
    from tenfold.train.session_run_hook import SessionRunHook
    from tenfold_protos.config_pb2 import RunMetadata, RunOptions

#: The errors that mean that a task was lost and may restart.
LOST = (errors.AbortedError, errors.UnavailableError)

#: Seconds between attempts to create a session while a task is lost; the last one repeats.
_AGAIN_SECS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0)
#: Seconds after which a task that has not restarted is given up.
_GIVE_UP_SECS = 7200.0


class StepContext:
    """The argument of `run_step_fn`'s function."""

    def __init__(self, session: Any, run_with_hooks_fn: Callable[..., Any]) -> None:
        self._session, self._run_with_hooks_fn = session, run_with_hooks_fn

    @property
    def session(self) -> Any:
        """The plain session: steps on it run without hooks."""
        return self._session

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """A step with hooks, as `Session.run`."""
        return self._run_with_hooks_fn(*args, **kwargs)

    def request_stop(self) -> NoReturn:
        """Ends the monitored session's `with` block by StopIteration."""
        raise StopIteration("step_fn has requested the iterations to stop.")


class WrappedSession:
    """A layer that adds nothing yet."""

    def __init__(self, sess: Any) -> None:
        #: None once closed.
        self._sess = sess

    @property
    def graph(self) -> Graph:
        graph: Graph = self._sess.graph
        return graph

    @property
    def sess_str(self) -> Any:
        return self._sess.sess_str

    def should_stop(self) -> bool:
        """Whether this layer or one below asks for an end; true once closed."""
        if self._check_stop() or self._sess is None:
            return True
        return isinstance(self._sess, WrappedSession) and self._sess.should_stop()

    def _check_stop(self) -> bool:
        return False

    def close(self) -> None:
        """Closes the layers below; a task that is lost by now is only reported."""
        sess, self._sess = self._sess, None
        if sess is None:
            return
        try:
            sess.close()
        except LOST as error:
            logging.warning(
                "An error occurred when attempting to close the session. This may be due to a preemption in a "
                "connected worker or parameter server. Error: %s",
                error,
            )

    def abandon(self) -> None:
        """Closes a session that has lost a task, without further steps on the tasks that remain."""
        self.close()

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        return self._sess.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)

    def run_step_fn(
        self, step_fn: Callable[..., Any], raw_session: Any, run_with_hooks: Callable[..., Any] | None
    ) -> Any:
        """Calls `step_fn` with a context whose steps go through `run_with_hooks`, or through this layer."""
        return step_fn(StepContext(raw_session, run_with_hooks or self.run))


class RecoverableSession(WrappedSession):
    """Makes a new session when a task was lost, and runs the step again in it."""

    def __init__(self, sess_creator: SessionCreator) -> None:
        self._sess_creator = sess_creator
        super().__init__(self._create_session())

    def _create_session(self, *, again: bool = False) -> Any:
        """A session; waits for lost tasks. `again`: there was one before, so a wait that ran out is not a failure.

        Raises what creating raises for any other reason, and the last error once `_GIVE_UP_SECS` are over.
        """
        deadline = time.monotonic() + _GIVE_UP_SECS
        attempt = 0
        while True:
            try:
                return self._sess_creator.create_session()
            except (*LOST, errors.DeadlineExceededError) as error:
                if time.monotonic() > deadline or (isinstance(error, errors.DeadlineExceededError) and not again):
                    raise
                self._report("while a session was being created", error)
            time.sleep(_AGAIN_SECS[min(attempt, len(_AGAIN_SECS) - 1)])
            attempt += 1

    @staticmethod
    def _report(when: str, error: errors.OpError) -> None:
        logging.info(
            "An error was raised %s. This may be due to a preemption in a connected worker or parameter server. A new "
            "session will be created. Error: %s",
            when,
            error,
        )

    def _check_stop(self) -> bool:
        if self._sess is None:
            return True
        try:
            return bool(self._sess._check_stop())
        except LOST as error:
            self._report("while considering whether the session is complete", error)
            self._abandon()
            self._sess = self._create_session(again=True)
            return False
        except Exception:
            # the error itself is raised by the next step, or by closing
            return True

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        return self._until_not_lost(
            lambda: self._sess.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)
        )

    def run_step_fn(
        self, step_fn: Callable[..., Any], raw_session: Any, run_with_hooks: Callable[..., Any] | None
    ) -> Any:
        return self._until_not_lost(lambda: self._sess.run_step_fn(step_fn, raw_session, self._sess.run))

    def _until_not_lost(self, step: Callable[[], Any]) -> Any:
        while True:
            try:
                if self._sess is None:
                    self._sess = self._create_session(again=True)
                return step()
            except LOST as error:
                self._report("in a step", error)
                self._abandon()

    def _abandon(self) -> None:
        """Ends the lost session. Errors of it or its threads are dropped: their cause was reported already."""
        sess, self._sess = self._sess, None
        if sess is not None:
            with contextlib.suppress(Exception):
                sess.abandon()


class CoordinatedSession(WrappedSession):
    """Stops with its coordinator, and stops the coordinator's threads when it is closed."""

    def __init__(self, sess: Any, coord: Coordinator, stop_grace_period_secs: float = 120) -> None:
        super().__init__(sess)
        self._coord, self._stop_grace_period_secs = coord, stop_grace_period_secs

    def _check_stop(self) -> bool:
        self._coord.raise_requested_exception()
        return self._coord.should_stop()

    def close(self) -> None:
        self._coord.request_stop()
        try:
            self._coord.join(stop_grace_period_secs=self._stop_grace_period_secs, ignore_live_threads=True)
        finally:
            # the reason why the threads stopped is more useful than an error of closing
            with contextlib.suppress(Exception):
                super().close()

    def abandon(self) -> None:
        # First the session: the queues of the tasks that are left must stay open for the next one, and with a closed
        # session the queue runners cannot close them.
        with contextlib.suppress(Exception):
            super().close()
        self._coord.request_stop()
        self._coord.join(stop_grace_period_secs=self._stop_grace_period_secs, ignore_live_threads=True)

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        try:
            return self._sess.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)
        except LOST:
            raise
        except Exception as error:
            # if a queue runner found a task lost, that is the cause of this step's error
            try:
                self._coord.raise_requested_exception()
            except LOST:
                raise
            except Exception:
                raise error from None
            raise


class HookedSession(WrappedSession):
    """Calls the hooks around each step and merges what they ask for into it."""

    def __init__(self, sess: Any, hooks: Sequence[SessionRunHook]) -> None:
        super().__init__(sess)
        self._hooks, self._should_stop = hooks, False

    def _check_stop(self) -> bool:
        return self._should_stop

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._sess)
        options = config_pb2.RunOptions() if options is None else options
        # a tuple of what each asks for: the session remembers it, as it would not remember a dictionary by hook
        wanted = [fetches]
        feed_dict, places = self._ask_hooks(context, wanted, feed_dict, options)
        run_metadata = config_pb2.RunMetadata() if run_metadata is None else run_metadata
        # empty options are not passed on: a step without options is faster
        said = options if not isinstance(options, config_pb2.RunOptions) or options.ByteSize() else None
        values = self._sess.run(
            tuple(wanted), feed_dict=feed_dict, options=said, run_metadata=run_metadata if said is not None else None
        )
        nothing = SessionRunValues(None, options, run_metadata)
        for hook, place in zip(self._hooks, places, strict=True):
            got = nothing if place is None else SessionRunValues(values[place], options, run_metadata)
            hook.after_run(context, got)
        self._should_stop = self._should_stop or context.stop_requested
        return values[0]

    def _ask_hooks(
        self, context: SessionRunContext, wanted: list[Any], feed_dict: Any, options: RunOptions
    ) -> tuple[Any, list[int | None]]:
        """Adds the hooks' fetches and options to the given ones; the merged feeds, and each hook's place in `wanted`.

        Raises RuntimeError if two feed the same tensor.
        """
        hook_feeds: dict[Any, Any] = {}
        places: list[int | None] = []
        for hook in self._hooks:
            request = hook.before_run(context)
            place: int | None = None
            if request is not None:
                if request.fetches is not None:
                    place = len(wanted)
                    wanted.append(request.fetches)
                if request.feed_dict:
                    _refuse_common(hook_feeds, request.feed_dict, "Same tensor is fed by two hooks.")
                    hook_feeds.update(request.feed_dict)
                if request.options:
                    _merge_options(options, request.options)
            places.append(place)
        if not hook_feeds:
            return feed_dict, places
        if feed_dict:
            _refuse_common(feed_dict, hook_feeds, "Same tensor is fed by a SessionRunHook and user.")
            hook_feeds.update(feed_dict)
        return hook_feeds, places


def _refuse_common(one: Mapping[Any, Any], other: Mapping[Any, Any], message: str) -> None:
    common = [key for key in one if key in other]
    if common:
        raise RuntimeError(f"{message} Conflict(s): {common}")


def _merge_options(options: RunOptions, incoming: RunOptions) -> None:
    """What both ask for: the larger trace level and time limit, either switch."""
    options.trace_level = max(options.trace_level, incoming.trace_level)
    options.timeout_in_ms = max(options.timeout_in_ms, incoming.timeout_in_ms)
    options.inter_op_thread_pool = max(options.inter_op_thread_pool, incoming.inter_op_thread_pool)
    options.output_partition_graphs |= incoming.output_partition_graphs
    options.debug_options.debug_tensor_watch_opts.extend(incoming.debug_options.debug_tensor_watch_opts)
    if incoming.debug_options.reset_disk_byte_usage:
        options.debug_options.reset_disk_byte_usage = True
    options.report_tensor_allocations_upon_oom |= incoming.report_tensor_allocations_upon_oom


# TensorFlow's private names, by which programs with sessions of their own reach these layers.
_WrappedSession, _RecoverableSession = WrappedSession, RecoverableSession
_CoordinatedSession, _HookedSession = CoordinatedSession, HookedSession
