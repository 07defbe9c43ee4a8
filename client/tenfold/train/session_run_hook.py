"""`SessionRunHook`, the base class of hooks of a monitored session, and its arguments.

The order of the calls: `begin` (the graph may still grow), `after_create_session` (also after each recovery), then
around every step `before_run` and `after_run`, and `end` unless an exception ended the session. The hooks themselves
are in hooks.py and saving_hooks.py. Follows TF 1.15's training/session_run_hook.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.session.session import Session
    from tenfold.train.coordinator import Coordinator
    from tenfold_protos.config_pb2 import RunMetadata, RunOptions


class SessionRunArgs(NamedTuple):
    """What a hook adds to a step: anything that `Session.run` takes as fetches, feeds, and run options."""

    fetches: Any
    feed_dict: Mapping[Any, Any] | None = None
    options: RunOptions | None = None


class SessionRunValues(NamedTuple):
    """The results of the step: the values of the hook's own fetches, and the step's options and metadata."""

    results: Any
    options: RunOptions
    run_metadata: RunMetadata


class SessionRunContext:
    """One step, as its hooks see it."""

    def __init__(self, original_args: SessionRunArgs, session: Session) -> None:
        self._original_args, self._session = original_args, session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        """The arguments of the caller's `run`."""
        return self._original_args

    @property
    def session(self) -> Session:
        """The session behind the monitored one: a step on it runs without hooks."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        return self._stop_requested

    def request_stop(self) -> None:
        """Makes the monitored session's `should_stop()` true once this step is over."""
        self._stop_requested = True


class SessionRunHook:
    """Base class of hooks; each method may be left as it is."""

    def begin(self) -> None:
        """Called once, before the session is created. Ops may be added to the graph only here."""

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Called after a session is created, and again after it is recreated because a task was lost."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each step; what it returns is added to the step."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each step that succeeded."""

    def end(self, session: Session) -> None:
        """Called when the monitored session closes, unless an exception closes it."""
