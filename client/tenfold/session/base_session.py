"""`BaseSession`: runs steps of a client's graph on a master.

It decides what to send and when: nothing before the first use, then the whole graph, then only new nodes. The parts
that need no master are pure (fetches.py, feeds.py, step_errors.py); the master is behind master_interface.py.
session.py adds the context managers. API, semantics and wording follow TF 1.15's client/session.py.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from tenfold.framework import errors
from tenfold.session import feeds as feeding
from tenfold.session import targets, tensor_handles
from tenfold.session.arguments import (
    check_options,
    checked_config,
    checked_graph,
    checked_target,
    step_timeout,
    with_timeout,
)
from tenfold.session.calls import Call, CallTable
from tenfold.session.devices import SessionDevice
from tenfold.session.fetches import FetchPlan, as_result
from tenfold.session.master_interface import PartialRunMaster, PreparingMaster
from tenfold.session.step_errors import Explained, explain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

    import numpy as np

    from tenfold.graph.graph import Graph
    from tenfold.session.master_interface import MasterInterface, PreparedStep
    from tenfold_protos import config_pb2
    from tenfold_protos.graph_pb2 import GraphDef


class BaseSession:
    """A connection of one graph to one master. Methods block and may be called from several threads."""

    def __init__(self, target: str | bytes | None = "", graph: Graph | None = None, config: Any = None) -> None:
        #: Set first, so that a constructor that raises leaves an object that can be collected.
        self._closed = False
        self._handle: str | None = None
        self._master: MasterInterface | None = None
        self._target = checked_target(target)
        targets.check_scheme(self._target)
        self._graph = checked_graph(graph)
        self._config = checked_config(config)
        if not self._target:
            # The server behind "" is the process's; a session there has its variables to itself, as in TensorFlow.
            self._config.isolate_session_state = True
        #: Held while the session is created or extended, so that two threads do not send the same nodes.
        self._extend_lock = threading.Lock()
        #: Guards the three fields that close() and the creating thread both change: _closed, _handle, _master.
        self._state_lock = threading.Lock()
        #: The version of the graph as the master counts it, and as this client counts it (nodes sent so far).
        self._remote_version = 0
        self._sent_version = 0
        self._calls = CallTable(self._graph)
        #: Handles that are gone, whose tensors are to be deleted.
        self._dead_handles: deque[str] = deque()
        #: The master, if it prepares steps.
        self._preparer: PreparingMaster | None = None

    @property
    def graph(self) -> Graph:
        """The graph launched in this session."""
        return self._graph

    @property
    def graph_def(self) -> GraphDef:
        """The graph as a GraphDef."""
        return self._graph.as_graph_def(add_shapes=self._config.graph_options.infer_shapes)

    @property
    def sess_str(self) -> bytes:
        """The target, as bytes, as TensorFlow gives it."""
        return self._target.encode()

    def as_default(self) -> AbstractContextManager[BaseSession]:
        """A context in which `tensor.eval()` and `operation.run()` of this thread use this session. It stays open."""
        from tenfold.graph.default_stack import default_session_stack

        return default_session_stack.pushed(self)

    def run(
        self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Runs one step and returns a structure like `fetches`, with values for tensors and None for operations.

        `fetches` is a tensor, an operation, a name of either, something that stands for a tensor, or nested lists,
        tuples, named tuples, dictionaries and attrs classes of these. `feed_dict` replaces the values of tensors for
        this step. `options` is a RunOptions, `run_metadata` a RunMetadata to be filled.

        Raises RuntimeError on a closed session or an empty graph, TypeError and ValueError for fetches and feeds that
        do not fit the graph, and an `OpError` when the step fails.
        """
        if options is None and run_metadata is None:
            call = self._calls.find(fetches, feed_dict)
            if call is None:
                self._check_usable()
                call = self._calls.make(fetches, feed_dict)
            if call is not None:
                return self._run_call(call, feed_dict.values() if feed_dict else ())
        self._check_usable()
        check_options(options, run_metadata)
        feeds = self._settled(feeding.resolve_feeds(self._graph, feed_dict))
        plan = FetchPlan(self._graph, fetches, self)
        return plan.build(self._run_plan(plan, feeds, options, run_metadata))

    def make_callable(self, fetches: Any, feed_list: Any = None, accept_options: bool = False) -> Callable[..., Any]:
        """A function that runs the same step each time: its arguments are the values of `feed_list`, in order.

        With `accept_options` it also takes `options=` and `run_metadata=`. Fetches and feed keys are looked up here,
        once. Raises as `run` does, and TypeError if `feed_list` is no list or tuple.
        """
        self._check_usable()
        if feed_list is not None and not isinstance(feed_list, (list, tuple)):
            raise TypeError(f"Argument `feed_list` must be a list or tuple. Received: feed_list={feed_list}")
        keys = tuple(feed_list or ())
        plan = FetchPlan(self._graph, fetches, self)
        call = self._calls.make_for(fetches, keys)

        def run_step(*values: Any, **keywords: Any) -> Any:
            if len(values) != len(keys):
                raise TypeError(f"This callable takes {len(keys)} feed values, but got {len(values)}")
            if call is not None and not keywords and call.is_current(self._graph):
                return self._run_call(call, values)
            self._check_usable()
            options, run_metadata = keywords.pop("options", None), keywords.pop("run_metadata", None)
            if keywords:
                raise TypeError(f"This callable got unexpected keyword arguments {sorted(keywords)}")
            if not accept_options and (options is not None or run_metadata is not None):
                raise TypeError("Options and metadata are accepted only after make_callable(accept_options=True)")
            check_options(options, run_metadata)
            feeds = self._settled(feeding.resolve_feeds(self._graph, dict(zip(keys, values, strict=True))))
            return plan.build(self._run_plan(plan, feeds, options, run_metadata))

        return run_step

    def _make_callable_from_options(self, callable_options: config_pb2.CallableOptions) -> Callable[..., list[Any]]:
        """A function of a CallableOptions message; its `callable(*values, run_metadata=None)` gives a list."""
        from tenfold.session.callables import from_options

        self._check_usable()
        return from_options(self, callable_options)

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> str:
        """Prepares a step that is run in parts with `partial_run`; `feeds` lists the keys that will be fed.

        Raises UnimplementedError if the master cannot run a step in parts, else as `run` does.
        """
        self._check_usable()
        fed = [tensor.name for tensor in feeding.feed_list_tensors(self._graph, feeds or [])]
        plan = FetchPlan(self._graph, fetches)
        with Explained(self._graph):
            master, handle = self._ensure_extended()
            return _in_parts(master).partial_run_setup(handle, fed, plan.names, plan.target_names, self._timeout(None))

    def partial_run(self, handle: str, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Feeds and fetches a part of the step prepared by `partial_run_setup`, whose handle is `handle`."""
        self._check_usable()
        feeds = feeding.resolve_feeds(self._graph, feed_dict)
        plan = FetchPlan(self._graph, fetches)
        if plan.operations:
            raise RuntimeError("partial_run() requires empty target_list.")
        with Explained(self._graph):
            master, session_handle = self._ensure_extended()
            values = _in_parts(master).partial_run(
                session_handle, handle, _read_only(feeds), plan.names, self._timeout(None)
            )
        return plan.build([as_result(value) for value in values])

    def list_devices(self) -> list[SessionDevice]:
        """The devices that this session can place nodes on: name, type, memory limit and incarnation."""
        self._check_open()
        with Explained(self._graph):
            master, handle = self._ensure_created()
            devices = master.list_devices(handle, self._timeout(None))
        return [SessionDevice.from_proto(device) for device in devices]

    def close(self) -> None:
        """Ends the session: its running steps end with CancelledError, its resources at the master are freed.

        A master that restarted or died has nothing left to close; that is no error. Idempotent.
        """
        with self._state_lock:
            if self._closed:
                return
            self._closed = True
            master, handle = self._master, self._handle
            self._master = self._handle = None
        self._calls.forget()
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
        # Collected while open: free what the master holds, but not from this thread, which may be the very one that
        # has to answer, and not when the process ends, which frees it too.
        if getattr(self, "_handle", None) is None or sys.is_finalizing():
            return
        closer = threading.Thread(target=_close_quietly, args=(self._master, self._handle), daemon=True)
        try:
            closer.start()
        except RuntimeError:
            return

    def _settled(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The feeds, with handles of tensors on the device that reads them; deletes tensors that nobody can name."""
        for name, handle, holder, mover in list(tensor_handles.moves(self._graph, feeds)):
            feeds |= feeding.resolve_feeds(self._graph, {name: str(self.run(mover, {holder: handle}))})
        deletions, deleters = tensor_handles.deletions(self._graph, self._dead_handles)
        if deleters:
            self.run(deleters, deletions)
        return feeds

    def _run_call(self, call: Call, values: Iterable[Any]) -> Any:
        """Runs one step without options: by itself where the master prepared it, else the usual way."""
        if self._closed:
            self._check_open()
        feeds = call.convert(values)
        # A graph that has grown is sent first, which the usual way does.
        if self._graph.version == self._sent_version:
            step = call.step or self._prepare(call)
            if step is not None:
                try:
                    fetched = step.run(feeds)
                except errors.OpError as error:
                    explained = explain(error, self._graph)
                    if explained is error:
                        raise
                    raise explained from None
                if fetched is not None:
                    return call.build(fetched)
                call.step = None
        results = self._run_plan(call.plan, dict(zip(call.feed_names, feeds, strict=True)), None, None)
        return call.plan.build(results)

    def _prepare(self, call: Call) -> PreparedStep | None:
        """What the master prepared for this call, if it did."""
        preparer, handle = self._preparer, self._handle
        if preparer is not None and handle is not None:
            plan = call.plan
            call.step = preparer.prepared_step(
                handle, call.feed_names, tuple(plan.names), tuple(plan.target_names), self._timeout(None)
            )
        return call.step

    def _run_plan(
        self,
        plan: FetchPlan,
        feeds: dict[str, np.ndarray],
        options: config_pb2.RunOptions | None,
        run_metadata: config_pb2.RunMetadata | None,
    ) -> list[Any]:
        """The values of `plan.tensors`. A tensor that is fed as well is not asked of the master."""
        wanted = [name for name in plan.names if name not in feeds] if feeds else plan.names
        values: list[Any] = []
        if wanted or plan.target_names:
            timeout = self._timeout(options)
            with Explained(self._graph):
                master, handle = self._ensure_extended()
                values, metadata = master.run_step(
                    handle,
                    _read_only(feeds),
                    wanted,
                    plan.target_names,
                    with_timeout(options, timeout),
                    timeout,
                )
            if run_metadata is not None:
                run_metadata.CopyFrom(metadata)
        if len(wanted) == len(plan.names):
            return [as_result(value) for value in values]
        returned = iter(values)
        return [feeds[name] if name in feeds else as_result(next(returned)) for name in plan.names]

    def _ensure_extended(self) -> tuple[MasterInterface, str]:
        """The master and a session there that knows every node of the graph."""
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
            with self._state_lock:
                self._check_open()
                if self._master is None:
                    self._master = targets.connect(self._target, self._config)
                master = self._master
            graph_def, version = self._new_nodes()
            handle, remote_version = master.create_session(graph_def, self._config, self._timeout(None))
            with self._state_lock:
                closed = self._closed
                if not closed:
                    self._handle = handle
            if closed:
                # close() came in between and did not know this handle.
                _close_quietly(master, handle)
                raise RuntimeError("Attempted to use a closed Session.")
            self._remote_version, self._sent_version = remote_version, version
            if isinstance(master, PreparingMaster):
                self._preparer = master
            return master, handle

    def _new_nodes(self) -> tuple[GraphDef, int]:
        """The nodes that the master does not know, and the version of the graph that includes them."""
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

    def _check_usable(self) -> None:
        self._check_open()
        if self._graph.version == 0:
            raise RuntimeError("The Session graph is empty. Add operations to the graph before calling run().")

    def _timeout(self, options: config_pb2.RunOptions | None) -> float | None:
        """Seconds from RunOptions, else from the session's config, else None."""
        return step_timeout(options, self._config)


def _in_parts(master: MasterInterface) -> PartialRunMaster:
    if not isinstance(master, PartialRunMaster):
        raise errors.UnimplementedError(
            None, None, "Partial runs are not implemented by a master of this process; use Session.run"
        )
    return master


def _read_only(feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: feeding.read_only(value) for name, value in feeds.items()}


def _close_quietly(master: MasterInterface, handle: str) -> None:
    """Closes a session that nobody can reach any more; what happens then is of no interest to anyone."""
    try:
        master.close_session(handle, 1.0)
    except Exception:
        return
    finally:
        master.close()
