"""`QueueRunner`: threads that fill a queue until it is closed or a Coordinator stops them.

Follows TF 1.15's training/queue_runner_impl.py. Queues are in ops/queues.py; tf.train.batch and its variants add
their runners to the collection QUEUE_RUNNERS, and sessions of monitored_session.py start them.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.graph import add_to_collection as _add_to_collection
from tenfold.graph import get_default_graph, get_default_session
from tenfold.graph.collections import GraphKeys
from tenfold_core import errors
from tenfold_protos import error_codes_pb2, queue_runner_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.session.session import BaseSession
    from tenfold.train.coordinator import Coordinator
    from tenfold_protos.queue_runner_pb2 import QueueRunnerDef


class QueueRunner:
    """Runs each of `enqueue_ops` again and again in a thread of its own.

    The threads end when the queue is closed (`queue_closed_exception_types`, default OutOfRangeError), the last of them
    runs `close_op`; when their coordinator stops, `cancel_op` wakes those that wait. Takes either a queue and its
    ops or a `queue_runner_def`; raises ValueError otherwise.
    """

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: tuple[type[errors.OpError], ...] | None = None,
        queue_runner_def: QueueRunnerDef | None = None,
        import_scope: str | None = None,
    ) -> None:
        if queue_runner_def is not None:
            if queue or enqueue_ops:
                raise ValueError("queue_runner_def and queue are mutually exclusive.")
            self._init_from_proto(queue_runner_def, import_scope)
        else:
            if not queue or not enqueue_ops:
                raise ValueError("Must provide queue and enqueue_ops.")
            if queue_closed_exception_types is not None and not (
                isinstance(queue_closed_exception_types, tuple)
                and queue_closed_exception_types
                and all(issubclass(each, errors.OpError) for each in queue_closed_exception_types)
            ):
                raise TypeError(
                    "queue_closed_exception_types, when provided, must be a tuple of tf.error types, "
                    f"but saw: {queue_closed_exception_types}"
                )
            self._queue, self._enqueue_ops = queue, list(enqueue_ops)
            self._close_op = queue.close() if close_op is None else close_op
            self._cancel_op = queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
            self._closed_types = queue_closed_exception_types or (errors.OutOfRangeError,)
        #: Guards the two that follow.
        self._lock = threading.Lock()
        #: Session → threads of this runner that still run in it.
        self._runs_per_session: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._exceptions_raised: list[BaseException] = []

    def _init_from_proto(self, definition: QueueRunnerDef, import_scope: str | None) -> None:
        graph = get_default_graph()

        def element(name: str) -> Any:
            return graph.as_graph_element(f"{import_scope}/{name}" if import_scope else name)

        self._queue = element(definition.queue_name)
        self._enqueue_ops = [element(name) for name in definition.enqueue_op_name]
        self._close_op = element(definition.close_op_name)
        self._cancel_op = element(definition.cancel_op_name)
        codes = definition.queue_closed_exception_types
        self._closed_types = tuple(type(errors.from_code(code, "")) for code in codes) or (errors.OutOfRangeError,)

    @property
    def queue(self) -> Any:
        return self._queue

    @property
    def enqueue_ops(self) -> list[Any]:
        return self._enqueue_ops

    @property
    def close_op(self) -> Any:
        return self._close_op

    @property
    def cancel_op(self) -> Any:
        return self._cancel_op

    @property
    def queue_closed_exception_types(self) -> tuple[type[errors.OpError], ...]:
        return self._closed_types

    @property
    def exceptions_raised(self) -> list[BaseException]:
        """Errors in threads without a coordinator."""
        return self._exceptions_raised

    @property
    def name(self) -> str:
        """The queue's name."""
        return str(self._queue.name)

    def _run(self, sess: BaseSession, enqueue_op: Any, coord: Coordinator | None) -> None:
        """Body of a thread."""
        last = False
        try:
            enqueue = self._enqueuer(sess, enqueue_op)
            while coord is None or not coord.should_stop():
                try:
                    enqueue()
                except self._closed_types:
                    last = self._leave(sess)
                    break
            else:
                self._leave(sess)
        except Exception as error:
            self._leave(sess)
            if coord is not None:
                # a coordinator that has joined waits for no thread; closing the session cancels what still waits
                if not coord.joined:
                    coord.request_stop(error)
                return
            logging.error("Exception in QueueRunner: %s", error)
            with self._lock:
                self._exceptions_raised.append(error)
            raise
        if last:
            self._quietly(sess, self._close_op)

    def _enqueuer(self, sess: BaseSession, enqueue_op: Any) -> Callable[[], Any]:
        """What a thread calls again and again; feeding runners have their own."""
        return sess.make_callable(enqueue_op)

    def _leave(self, sess: BaseSession) -> bool:
        """Counts this thread out; whether it was the last."""
        with self._lock:
            self._runs_per_session[sess] -= 1
            return self._runs_per_session[sess] == 0

    def _close_on_stop(self, sess: BaseSession, coord: Coordinator) -> None:
        coord.wait_for_stop()
        self._quietly(sess, self._cancel_op)

    @staticmethod
    def _quietly(sess: BaseSession, op: Any) -> None:
        """Runs `op`; the session may be gone already, which is no error at this point."""
        try:
            sess.run(op)
        except Exception as error:
            logging.debug("Ignored exception: %s", error)

    def create_threads(
        self, sess: BaseSession, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """A thread for each enqueue op, and with a coordinator one that cancels at the stop.

        An empty list if threads of this runner run in the session already.
        """
        with self._lock:
            if self._runs_per_session.get(sess, 0) > 0:
                return []
            self._runs_per_session[sess] = len(self._enqueue_ops)
            self._exceptions_raised = []
        threads = [
            threading.Thread(target=self._run, args=(sess, op, coord), name=f"QueueRunnerThread-{self.name}-{op.name}")
            for op in self._enqueue_ops
        ]
        if coord is not None:
            name = f"QueueRunnerThread-{self.name}-close_on_stop"
            threads.append(threading.Thread(target=self._close_on_stop, args=(sess, coord), name=name))
        for thread in threads:
            if coord is not None:
                coord.register_thread(thread)
            thread.daemon = daemon
            if start:
                thread.start()
        return threads

    def to_proto(self, export_scope: str | None = None) -> QueueRunnerDef | None:
        """This runner as a QueueRunnerDef; None if the queue is not in `export_scope`."""
        prefix = f"{export_scope}/" if export_scope else ""
        if not self.name.startswith(prefix):
            return None

        def stripped(name: str) -> str:
            return name[len(prefix) :] if name.startswith(prefix) else name

        return queue_runner_pb2.QueueRunnerDef(
            queue_name=stripped(self.name),
            enqueue_op_name=[stripped(op.name) for op in self._enqueue_ops],
            close_op_name=stripped(self._close_op.name),
            cancel_op_name=stripped(self._cancel_op.name),
            queue_closed_exception_types=[
                error_codes_pb2.Code.Name(each(None, None, "").error_code) for each in self._closed_types
            ],
        )

    @staticmethod
    def from_proto(queue_runner_def: QueueRunnerDef, import_scope: str | None = None) -> QueueRunner:
        """The runner that `queue_runner_def` describes, in the default graph."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Adds a runner to a collection of the default graph."""
    _add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Starts all runners of the collection in `sess` (default: the default session); their threads.

    Raises ValueError without a session, TypeError for anything but one. A monitored session has started them.
    """
    from tenfold.session.session import BaseSession

    if sess is None:
        sess = get_default_session()
        if sess is None:
            raise ValueError(
                "Cannot start queue runners: No default session is registered. Use `with sess.as_default()` or pass an "
                "explicit session to tf.start_queue_runners(sess=sess)"
            )
    if getattr(sess, "starts_queue_runners", False):
        return []
    if not isinstance(sess, BaseSession):
        raise TypeError(f"sess must be a `tf.Session` object. Given class: {type(sess)}")
    runners = get_default_graph().get_collection(collection)
    if not runners:
        logging.warning("`tf.train.start_queue_runners()` was called when no queue runners were defined.")
    with sess.graph.as_default():
        return [
            thread
            for runner in runners
            for thread in runner.create_threads(sess, coord=coord, daemon=daemon, start=start)
        ]
