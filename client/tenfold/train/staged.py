"""`tf.staged` and `tf.make_prefetch_hook`: the next batches are made beside the step that trains on this one.

DeepRec's names, after its ops/prefetch.py. Between the part of a graph that reads a batch and the part that trains on
it stands a queue; threads that the hook starts fill it, each step takes from it. Where rows of a table are looked up
before the queue, they are as many updates old as batches wait in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import logging, nest
from tenfold.graph import add_to_collection, get_collection, name_scope
from tenfold.ops.queues import FIFOQueue
from tenfold.train.queue_runner import QueueRunner
from tenfold.train.session_run_hook import SessionRunHook
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold.session.session import BaseSession
    from tenfold.train.coordinator import Coordinator

__all__ = ["make_prefetch_hook", "staged"]

#: The collection of a graph with the runners that make_prefetch_hook starts.
_RUNNERS = ("prefetch_runners",)


def staged(
    features: Any,
    feed_dict: Mapping[Any, Any] | None = None,
    capacity: int = 1,
    num_threads: int = 1,
    num_clients: int = 1,
    timeout_millis: int = 300000,
    closed_exception_types: Sequence[int] = (errors.OUT_OF_RANGE,),
    ignored_exception_types: Sequence[int] = (),
    use_stage_subgraph_thread_pool: bool = False,
    stage_subgraph_thread_pool_id: int = 0,
    stage_subgraph_stream_id: int = 0,
    name: str | None = None,
) -> Any:
    """`features`, a structure of tensors, sparse tensors and None, as it was made ahead of the step that reads it.

    Up to `capacity` values wait, made by `num_threads` threads of a hook of `make_prefetch_hook`, without which a step
    waits for ever. With more than one thread they come in no fixed order. A code of `closed_exception_types` (of
    tf.errors) ends a thread: once all have ended and no value is left, a step raises OutOfRangeError. One of
    `ignored_exception_types` makes it continue. `feed_dict` maps tensors to tensors, whose values are fed for them in
    each making. `num_clients`, `timeout_millis` and options of thread pools are taken for programs that have them:
    a value waits for its step as long as the session lasts. Raises ValueError for fewer than one value or thread, or
    for features without a tensor.
    """
    if capacity < 1 or num_threads < 1:
        raise ValueError(f"tf.staged needs a capacity and num_threads of 1 or more, not {capacity} and {num_threads}")
    leaves = nest.flatten(features, expand_composites=True)
    tensors = [leaf for leaf in leaves if leaf is not None]
    if not tensors:
        raise ValueError(f"tf.staged needs features with at least one tensor, not {features!r}")
    closed, ignored = _errors(closed_exception_types), _errors(ignored_exception_types)
    taken, _ = stage_tensors(tensors, capacity, num_threads, closed, ignored, feed_dict, name or "prefetch")
    left = iter(taken)
    return nest.pack_sequence_as(
        features, [None if leaf is None else next(left) for leaf in leaves], expand_composites=True
    )


def stage_tensors(
    tensors: Sequence[Tensor],
    capacity: int,
    num_threads: int,
    closed: tuple[type[errors.OpError], ...] = (errors.OutOfRangeError,),
    ignored: tuple[type[errors.OpError], ...] = (),
    feeds: Mapping[Any, Any] | None = None,
    name: str = "prefetch",
) -> tuple[list[Tensor], Operation]:
    """Each of `tensors` as taken from a buffer, all by one op, and the op that puts them there; see `staged`."""
    with name_scope(name):
        queue = FIFOQueue(capacity, [tensor.dtype for tensor in tensors], name="buffer")
        enqueue = queue.enqueue(list(tensors))
        closed = (*closed, errors.CancelledError)
        add_to_collection(_RUNNERS, _PrefetchRunner(queue, [enqueue] * num_threads, closed, ignored, dict(feeds or {})))
        made = queue.dequeue()
    taken = [made] if len(tensors) == 1 else list(made)
    for tensor, each in zip(tensors, taken, strict=True):
        each.set_shape(tensor.get_shape())
    return taken, enqueue


def _errors(codes: Sequence[int]) -> tuple[type[errors.OpError], ...]:
    return tuple(type(errors.from_code(code, "")) for code in codes)


def make_prefetch_hook() -> SessionRunHook:
    """A hook of a monitored session whose threads make what `tf.staged` of the session's graph has taken over."""
    return _PrefetchHook()


def warn_without_hook(hooks: Iterable[SessionRunHook]) -> None:
    """Warns where the default graph takes values from buffers, and nobody among a session's `hooks` fills them."""
    if get_collection(_RUNNERS) and not any(isinstance(hook, _PrefetchHook) for hook in hooks):
        logging.warning(
            "The graph has tf.staged, or do_async_embedding is on, but tf.make_prefetch_hook() is not among the hooks "
            "of this session: a step that needs what they make waits for ever"
        )


class _PrefetchRunner(QueueRunner):
    """Fills the queue of one `staged`."""

    def __init__(
        self,
        queue: FIFOQueue,
        enqueue_ops: list[Any],
        closed: tuple[type[errors.OpError], ...],
        ignored: tuple[type[errors.OpError], ...],
        feeds: dict[Any, Any],
    ) -> None:
        super().__init__(queue, enqueue_ops, queue_closed_exception_types=closed)
        self._ignored, self._feeds = ignored, feeds

    def _enqueuer(self, sess: BaseSession, enqueue_op: Any) -> Callable[[], Any]:
        enqueue = self._fed(sess, enqueue_op) if self._feeds else sess.make_callable(enqueue_op)
        if not self._ignored:
            return enqueue

        def enqueue_unless_ignored() -> None:
            try:
                enqueue()
            except self._ignored:
                return

        return enqueue_unless_ignored

    def _fed(self, sess: BaseSession, enqueue_op: Any) -> Callable[[], Any]:
        """Steps of the making are two: one for the values that are fed, one that makes a value of them."""
        fed, values = list(self._feeds), list(self._feeds.values())

        def enqueue() -> None:
            sess.run(enqueue_op, feed_dict=dict(zip(fed, sess.run(values), strict=True)))

        return enqueue


class _PrefetchHook(SessionRunHook):
    """See make_prefetch_hook. The threads end with the session's coordinator, new ones fill a recovered session's."""

    def after_create_session(self, session: Any, coord: Coordinator) -> None:
        for runner in get_collection(_RUNNERS):
            runner.create_threads(session, coord, daemon=True, start=True)
