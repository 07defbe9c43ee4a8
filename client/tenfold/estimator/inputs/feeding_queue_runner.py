"""A queue runner whose enqueue ops are fed by Python functions. Used by feeding_functions.py.

Follows TF 1.15's estimator/inputs/queues/feeding_queue_runner.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.train.queue_runner import QueueRunner
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    FeedFn = Callable[[], Mapping[Any, Any]]


class FeedingQueueRunner(QueueRunner):
    """A QueueRunner; before each enqueue, `feed_fns[i]()` gives what the op is fed with, and ends it by
    OutOfRangeError. Raises ValueError unless there are as many functions as ops.
    """

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: Any = None,
        cancel_op: Any = None,
        feed_fns: Sequence[FeedFn | None] | None = None,
        queue_closed_exception_types: tuple[type[errors.OpError], ...] | None = None,
    ) -> None:
        closed = queue_closed_exception_types or (errors.OutOfRangeError, errors.CancelledError)
        super().__init__(queue, enqueue_ops, close_op, cancel_op, queue_closed_exception_types=closed)
        if feed_fns is not None and len(feed_fns) != len(self._enqueue_ops):
            raise ValueError("If feed_fns is not None, it must have the same length as enqueue_ops.")
        self._feeds = dict(zip(self._enqueue_ops, feed_fns or (), strict=False))

    def _enqueuer(self, sess: Any, enqueue_op: Any) -> Callable[[], Any]:
        feed = self._feeds.get(enqueue_op)
        if feed is None:
            return super()._enqueuer(sess, enqueue_op)
        placeholders: list[Any] = []
        enqueue: Callable[..., Any] | None = None

        def fed() -> None:
            nonlocal enqueue
            values = feed()
            if enqueue is None:
                # the placeholders are the same each time: they are looked up once
                placeholders.extend(values)
                enqueue = sess.make_callable(enqueue_op, placeholders)
            enqueue(*(values[key] for key in placeholders))

        return fed
