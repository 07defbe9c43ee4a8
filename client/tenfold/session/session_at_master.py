"""A client's session at a master: created at the first use, extended by new nodes, closed once.

base_session.py runs steps in it. Nothing is sent before the first use, then the whole graph, then only what is new. The
master is behind master_interface.py; targets.py finds it.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from tenfold.runs import by_hand
from tenfold.session import targets
from tenfold.session.arguments import checked_config, checked_graph, checked_target, step_timeout
from tenfold.session.master_interface import PreparingMaster
from tenfold_core import errors, script_functions

if TYPE_CHECKING:
    from typing import Any

    from tenfold.graph.graph import Graph
    from tenfold.session.master_interface import MasterInterface
    from tenfold_protos import config_pb2
    from tenfold_protos.graph_pb2 import GraphDef


class SessionAtMaster:
    """The session of one graph at one master. Methods block and may be called from several threads."""

    def __init__(self, target: str | bytes | None, graph: Graph | None, config: Any) -> None:
        #: Set first, so that a constructor that raises leaves an object that can be collected.
        self._closed = False
        self._handle: str | None = None
        self._master: MasterInterface | None = None
        self._target = checked_target(target)
        targets.check_scheme(self._target)
        self._graph = checked_graph(graph)
        self._config = checked_config(config)
        if not self._target:
            # The target "" is the process's shared server; each session there has its own variables, as in TensorFlow.
            self._config.isolate_session_state = True
        #: Held while the session is created or extended, so that two threads do not send the same nodes.
        self._extend_lock = threading.Lock()
        #: Guards the three fields that close() and the creating thread both change: _closed, _handle, _master.
        self._state_lock = threading.Lock()
        #: The version of the graph as the master counts it, and as this client counts it (nodes sent so far).
        self._remote_version = 0
        self._sent_version = 0
        #: The master, if it prepares steps.
        self._preparer: PreparingMaster | None = None
        by_hand.note_session(self._target)

    # -- opening -----------------------------------------------------------------------------------------------------

    def _ensure_extended(self) -> tuple[MasterInterface, str]:
        """The master and a session there that has every node of the graph."""
        if self._handle is None:
            self._ensure_created()
        if self._graph.version == self._sent_version:
            return self._opened()
        with self._extend_lock:
            master, handle = self._opened()
            graph_def, version = self._new_nodes()
            if graph_def.node:
                self._remote_version = master.extend_session(
                    handle, graph_def, self._remote_version, self._timeout(None)
                )
            self._sent_version = version
            return master, handle

    def _ensure_created(self) -> tuple[MasterInterface, str]:
        """The master and a session there, created with the graph as it is now if there was none."""
        with self._extend_lock:
            if self._handle is not None:
                return self._opened()
            master = self._connected()
            graph_def, version = self._new_nodes()
            handle, remote_version = master.create_session(graph_def, self._config, self._timeout(None))
            with self._state_lock:
                closed = self._closed
                if not closed:
                    self._handle = handle
                    # before its first step: its graph may call functions of this process
                    script_functions.note_session(handle)
            if closed:
                # close() ran meanwhile, before there was this handle.
                _close_quietly(master, handle)
                raise RuntimeError("Attempted to use a closed Session.")
            self._remote_version, self._sent_version = remote_version, version
            if isinstance(master, PreparingMaster):
                self._preparer = master
            return master, handle

    def _connected(self) -> MasterInterface:
        """The master; found first, by the one thread that holds the extend lock. May block for long."""
        with self._state_lock:
            self._check_open()
            if self._master is not None:
                return self._master
        master = targets.connect(self._target, self._config)
        with self._state_lock:
            if not self._closed:
                self._master = master
                return master
        master.close()
        raise RuntimeError("Attempted to use a closed Session.")

    def _new_nodes(self) -> tuple[GraphDef, int]:
        """The nodes that the master does not have yet, and the version of the graph that includes them."""
        return self._graph._as_graph_def(self._sent_version, self._config.graph_options.infer_shapes)

    def _opened(self) -> tuple[MasterInterface, str]:
        with self._state_lock:
            self._check_open()
            assert self._master is not None
            assert self._handle is not None
            return self._master, self._handle

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")

    def _timeout(self, options: config_pb2.RunOptions | None) -> float | None:
        """Seconds from RunOptions, else from the session's config, else None."""
        return step_timeout(options, self._config)

    # -- closing -----------------------------------------------------------------------------------------------------

    def _mark_closed(self) -> tuple[MasterInterface | None, str | None] | None:
        """Closed from now on: the master and handle that are still to be closed. None if it was closed before."""
        with self._state_lock:
            if self._closed:
                return None
            self._closed = True
            left = self._master, self._handle
            self._master = self._handle = None
            if left[1] is not None:
                script_functions.forget_session(left[1])
            return left

    def _close_at_master(self, master: MasterInterface | None, handle: str | None) -> None:
        """Closes what `_mark_closed` returned. A master that restarted or died has nothing left to close."""
        if master is None:
            return
        try:
            if handle is not None:
                master.close_session(handle, self._timeout(None))
        except (errors.AbortedError, errors.UnavailableError):
            pass
        finally:
            master.close()

    def __del__(self) -> None:
        # Collected while open: free what the master holds. Not from this thread, which may be the master's own event
        # loop, and not when the process ends, which frees it anyway.
        if (handle := getattr(self, "_handle", None)) is None or sys.is_finalizing():
            return
        script_functions.forget_session(handle)
        closer = threading.Thread(target=_close_quietly, args=(self._master, self._handle), daemon=True)
        try:
            closer.start()
        except RuntimeError:
            return


def _close_quietly(master: MasterInterface, handle: str) -> None:
    """Closes a session that no object refers to any more; its errors are dropped."""
    try:
        master.close_session(handle, 1.0)
    except Exception:
        return
    finally:
        master.close()
