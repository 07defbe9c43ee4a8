"""`Session` and `InteractiveSession`: `BaseSession` as the default session of a block, or of a whole program.

base_session.py runs steps; this file adds the context managers and `Session.reset`. Follows TF 1.15's
client/session.py.
"""

from __future__ import annotations

import logging
import threading
import warnings
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tenfold.session import targets
from tenfold.session.base_session import BaseSession
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from tenfold.graph.graph import Graph

__all__ = ["BaseSession", "InteractiveSession", "Session"]

_log = logging.getLogger("tenfold")

#: Seconds that closing may take while an exception leaves a `with` block.
_CLOSE_SECONDS_ON_ERROR = 30.0


class Session(BaseSession):
    """Runs operations of a graph on the master that `target` names.

    `with tf.Session(target) as sess:` makes it and its graph the defaults of the block and closes it at the end.
    """

    def __init__(
        self, target: str | bytes | None = "", graph: Graph | None = None, config: config_pb2.ConfigProto | None = None
    ) -> None:
        super().__init__(target, graph, config)
        #: What `__enter__` entered; None outside a `with` block.
        self._entered: ExitStack | None = None

    def __enter__(self) -> Session:
        if self._entered is not None:
            raise RuntimeError(
                "Session context managers are not re-entrant. Use `Session.as_default()` if you want to enter a "
                "session multiple times."
            )
        stack = ExitStack()
        stack.enter_context(self.graph.as_default())
        stack.enter_context(self.as_default())
        self._entered = stack
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._entered = self._entered, None
        try:
            if stack is not None:
                stack.__exit__(kind, error, trace)
        finally:
            if error is None:
                self.close()
            else:
                self._close_in_time()

    def _close_in_time(self) -> None:
        """Closes without delaying or replacing the exception that ends the block."""

        def close() -> None:
            try:
                self.close()
            except Exception as failure:
                _log.error("The session could not be closed: %s", failure)

        closer = threading.Thread(target=close, name="session-close", daemon=True)
        closer.start()
        closer.join(_CLOSE_SECONDS_ON_ERROR)

    @staticmethod
    def reset(target: str | bytes | None, containers: Sequence[str | bytes] | None = None, config: Any = None) -> None:
        """Closes every session of the master at `target` and clears resource containers on all tasks it knows.

        `containers` names them; None or an empty list means the default container. Variables in them lose their
        values. `config` may set `operation_timeout_in_ms`. Blocks; raises an `OpError` if the master cannot be reached.
        """
        names = [name.decode() if isinstance(name, bytes) else name for name in containers or ()]
        settings = config if isinstance(config, config_pb2.ConfigProto) else config_pb2.ConfigProto()
        milliseconds = settings.operation_timeout_in_ms
        master = targets.connect(target.decode() if isinstance(target, bytes) else target or "", settings)
        try:
            master.reset(names, milliseconds / 1000 if milliseconds > 0 else None)
        finally:
            master.close()


class InteractiveSession(BaseSession):
    """A session that is its thread's default from construction until `close()`, for shells and notebooks."""

    _count_lock = threading.Lock()
    #: Interactive sessions not closed yet, in all threads.
    _active_session_count = 0

    def __init__(
        self, target: str | bytes | None = "", graph: Graph | None = None, config: config_pb2.ConfigProto | None = None
    ) -> None:
        settings = config_pb2.ConfigProto()
        if isinstance(config, config_pb2.ConfigProto):
            settings.CopyFrom(config)
        elif config is None:
            settings.gpu_options.allow_growth = True
        else:
            settings = config
        if isinstance(settings, config_pb2.ConfigProto):
            # The graph of a shell is full of abandoned nodes; only those that a step needs have to be placeable.
            settings.graph_options.place_pruned_graph = True
        super().__init__(target, graph, settings)
        with InteractiveSession._count_lock:
            if InteractiveSession._active_session_count > 0:
                warnings.warn(
                    "An interactive session is already active. This can cause out-of-memory errors in some cases. You "
                    "must explicitly call `InteractiveSession.close()` to release resources held by the other "
                    "session(s).",
                    stacklevel=2,
                )
            InteractiveSession._active_session_count += 1
        self._explicitly_closed = False
        self._entered = ExitStack()
        _enter_anywhere(self._entered, self, graph)

    def close(self) -> None:
        """Closes the session; it is no longer the default one. Idempotent."""
        super().close()
        with InteractiveSession._count_lock:
            if getattr(self, "_explicitly_closed", True):
                return
            self._explicitly_closed = True
            InteractiveSession._active_session_count -= 1
        self._entered.close()


def _enter_anywhere(stack: ExitStack, session: InteractiveSession, graph: Graph | None) -> None:
    """Makes the session, and the graph if one was given, defaults that may be left in any order."""
    from tenfold.graph.default_stack import default_graph_stack, default_session_stack

    default_session_stack.stack.append(session)
    stack.callback(default_session_stack.remove, session)
    if graph is not None:
        default_graph_stack.stack.append(graph)
        stack.callback(default_graph_stack.remove, graph)
