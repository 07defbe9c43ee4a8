"""`BaseSession`: runs steps of a client's graph on a master.

session_at_master.py opens the session there and sends the graph. The parts that need no master are pure (fetches.py,
feeds.py, step_errors.py); the master is behind master_interface.py; session.py adds the context managers. API,
semantics and wording follow TF 1.15's client/session.py.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from tenfold.session import client_spans, last_step, observing, step_tracing, tensor_handles
from tenfold.session import feeds as feeding
from tenfold.session.arguments import check_options, with_timeout
from tenfold.session.calls import Call, CallTable
from tenfold.session.devices import SessionDevice
from tenfold.session.fetches import FetchPlan, as_result
from tenfold.session.master_interface import PartialRunMaster
from tenfold.session.session_at_master import SessionAtMaster
from tenfold.session.step_errors import Explained, explain
from tenfold.session.step_notices import notices
from tenfold_core import errors, telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

    import numpy as np

    from tenfold.graph.graph import Graph
    from tenfold.session.master_interface import MasterInterface, PreparedStep
    from tenfold_protos import config_pb2
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef


class BaseSession(SessionAtMaster):
    """A connection of one graph to one master. Methods block and may be called from several threads."""

    def __init__(
        self, target: str | bytes | None = "", graph: Graph | None = None, config: config_pb2.ConfigProto | None = None
    ) -> None:
        super().__init__(target, graph, config)
        self._calls = CallTable(self._graph)
        #: Handles that no object refers to any more, whose tensors a later step deletes.
        self._dead_handles: deque[str] = deque()

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
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: config_pb2.RunOptions | None = None,
        run_metadata: config_pb2.RunMetadata | None = None,
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
        feeds = self._move_handles(feeding.resolve_feeds(self._graph, feed_dict))
        plan = FetchPlan(self._graph, fetches, self)
        if plan.watch is not None and feeds and plan.watch.feeds_wanted:
            plan.watch.take_feeds((self._graph.get_tensor_by_name(name), value) for name, value in feeds.items())
        return plan.build(self._run_plan(plan, feeds, options, run_metadata))

    def make_callable(self, fetches: Any, feed_list: Any = None, accept_options: bool = False) -> Callable[..., Any]:
        """A function that runs the same step each time: its arguments are the values of `feed_list`, in order.

        With `accept_options` it also takes `options=` and `run_metadata=`. Fetches and feed keys are looked up here,
        once. Raises as `run` does, and TypeError if `feed_list` is not a list or tuple.
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
            feeds = self._move_handles(feeding.resolve_feeds(self._graph, dict(zip(keys, values, strict=True))))
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
        return [SessionDevice.from_proto(device) for device in self.device_attributes()]

    def device_attributes(self) -> list[DeviceAttributes]:
        """The same devices as the messages that their tasks describe them by."""
        self._check_open()
        with Explained(self._graph):
            master, handle = self._ensure_created()
            return master.list_devices(handle, self._timeout(None))

    def close(self) -> None:
        """Ends the session: its running steps end with CancelledError, its resources at the master are freed.

        A master that restarted or died has nothing left to close; that is no error. Idempotent.
        """
        if observing.observer is not None:
            self.note_last_step()
        left = self._mark_closed()
        if left is not None:
            self._calls.forget()
            self._close_at_master(*left)

    def note_last_step(self) -> None:
        """Tells who reports on this process which global step the session ends with. Blocks for a moment at most."""

        if not self._closed:
            last_step.note(self, lambda plan, options: self._run_plan(plan, {}, options, None))

    def _move_handles(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The feeds, each handle's tensor moved to the device that reads it; deletes tensors whose handles are gone."""
        for name, handle, holder, mover in list(tensor_handles.moves(self._graph, feeds)):
            feeds |= feeding.resolve_feeds(self._graph, {name: str(self.run(mover, {holder: handle}))})
        deletions, deleters = tensor_handles.deletions(self._graph, self._dead_handles)
        if deleters:
            self.run(deleters, deletions)
        return feeds

    def _run_call(self, call: Call, values: Iterable[Any]) -> Any:
        """Runs one step without options: the prepared step if the master has one, else by `_run_plan`."""
        if self._closed:
            self._check_open()
        feeds = call.convert(values)
        # A graph that has grown is sent first, which only `_run_plan` does.
        if self._graph.version == self._sent_version:
            step = call.step or self._prepare(call)
            if step is not None:
                may_wait = step.may_wait
                number = notices.begin(call.plan, self._master, self._handle or "") if may_wait else -1
                try:
                    fetched = step.run(feeds) if telemetry.tracer is None else self._run_in_span(step, feeds, call.plan)
                except errors.OpError as error:
                    explained = explain(error, self._graph)
                    if explained is error:
                        raise
                    raise explained from None
                finally:
                    if may_wait:
                        notices.end(number)
                if fetched is not None:
                    return call.build(fetched)
                call.step = None
        results = self._run_plan(call.plan, dict(zip(call.feed_names, feeds, strict=True)), None, None)
        return call.plan.build(results)

    def _run_in_span(self, step: PreparedStep, feeds: list[np.ndarray], plan: FetchPlan) -> list[np.ndarray] | None:
        """`step.run(feeds)` while somebody listens."""
        run = partial(step.run_in_spans, feeds)
        return client_spans.prepared(run, self._target, self._handle or "", plan.names, plan.target_names)

    def _prepare(self, call: Call) -> PreparedStep | None:
        """The step that the master prepared for this call; None without."""
        preparer, handle = self._preparer, self._handle
        # a prepared step is not traced
        if preparer is not None and handle is not None and not step_tracing.is_wanted():
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
        """The values of `plan.tensors`, by the master's `run_step`. A tensor that is fed as well is not fetched."""
        wanted = [name for name in plan.names if name not in feeds] if feeds else plan.names
        values: list[Any] = []
        if wanted or plan.target_names:
            timeout = self._timeout(options)
            with Explained(self._graph):
                master, handle = self._ensure_extended()
                fed, targets, asked = _read_only(feeds), plan.target_names, with_timeout(options, timeout)
                tracer = step_tracing.current
                number = notices.begin(plan, master, handle)
                try:
                    if tracer is None or not tracer.begins():
                        values, metadata = master.run_step(handle, fed, wanted, targets, asked, timeout)
                    else:
                        values, metadata = tracer.run(
                            lambda traced: master.run_step(handle, fed, wanted, targets, traced, timeout),
                            asked,
                            [*wanted, *targets],
                        )
                finally:
                    notices.end(number)
            if run_metadata is not None:
                run_metadata.CopyFrom(metadata)
        if len(wanted) == len(plan.names):
            return [as_result(value) for value in values]
        returned = iter(values)
        return [feeds[name] if name in feeds else as_result(next(returned)) for name in plan.names]

    def _check_usable(self) -> None:
        self._check_open()
        if observing.observer is not None:
            observing.observer.note_session(self)
        if self._graph.version == 0:
            raise RuntimeError("The Session graph is empty. Add operations to the graph before calling run().")


def _in_parts(master: MasterInterface) -> PartialRunMaster:
    if not isinstance(master, PartialRunMaster):
        raise errors.UnimplementedError(
            None, None, "Partial runs are not implemented by a master of this process; use Session.run"
        )
    return master


def _read_only(feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: feeding.read_only(value) for name, value in feeds.items()}
