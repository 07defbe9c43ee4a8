"""Barriers: values of one key come one component at a time; a key that has all of them can be taken.

A dictionary of incomplete keys before a priority queue of complete ones, ordered by when each key was first seen.
Used by cpu/data_flow_barrier.py. Follows barrier_ops.cc.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import invalid, scalar_object
from tenfold_kernels.resources.queue_stores import PriorityStore
from tenfold_kernels.resources.queues import Queue, shape_text
from tenfold_kernels.resources.quota import size_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.dtypes import DType
    from tenfold_kernels.resources.quota import Account

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_FIRST_INDEX = -(1 << 63)


class Barrier:
    """One barrier. Thread-safe; `take_many` may have to wait, nothing else does."""

    def __init__(
        self, name: str, types: Sequence[DType], shapes: Sequence[TensorShape], account: Account | None = None
    ) -> None:
        """`account` is charged for the values, of complete keys too; None: nobody counts them."""
        self.account = account
        self.name, self.types, self.shapes = name, tuple(types), tuple(shapes)
        self._lock = threading.Lock()
        #: First index of the keys that come next: all keys that are new in one insertion share it.
        self._index = _FIRST_INDEX
        #: Key → [index, component or None, …].
        self._incomplete: dict[bytes, list[Any]] = {}
        self._closed = self._cancelled = False
        queue_shapes = (TensorShape([]), TensorShape([]), *shapes)
        queue_types = (dtypes.int64, dtypes.string, *types)
        self._ready = Queue("PriorityQueue", f"{name}_queue", queue_types, queue_shapes, -1, PriorityStore(), account)

    @property
    def ready_size(self) -> int:
        return self._ready.size()

    @property
    def incomplete_size(self) -> int:
        return len(self._incomplete)

    def insert_many(self, component: int, keys: Array, values: Array) -> None:
        """Sets one component of some keys. Keys [N], values [N, ...].

        Raises CancelledError for new keys once closed, InvalidArgumentError for a component that is set already.
        """
        if keys.size and not values.size:
            shape = shape_text(TensorShape(values.shape))
            raise invalid(f"Tensors with no elements are not supported {self.name}: received shape {shape}")
        names = keys.reshape(-1).tolist()
        if names and (not values.ndim or len(values) != len(names)):
            text = f"{len(names)} keys need as many values, got shape {shape_text(TensorShape(values.shape))}"
            raise invalid(f"Barrier {self.name}: {text}")
        complete: list[tuple[Array, ...]] = []
        with self._lock:
            self._check_open(len(names))
            if self.account is not None:
                self.account.check(size_of((values,)))
            any_new = False
            try:
                for position, key in enumerate(names):
                    any_new |= self._insert(component, key, values[position, ...], position, complete)
            finally:
                self._index += any_new
                for element in complete:
                    self._ready.enqueue(element)
                if self._closed and not self._incomplete and not self._ready.is_closed:
                    self._ready.close()

    def _insert(self, component: int, key: bytes, value: Array, position: int, complete: list[Any]) -> bool:
        """Whether the key is new."""
        element = self._incomplete.get(key)
        is_new = element is None
        if element is None:
            if self._closed:
                raise _cancelled(
                    f"Barrier {self.name} is closed, but attempted to insert a brand new key: {key.decode()}.  "
                    f"Pending enqueues cancelled: {int(self._cancelled)}.  Insertion index: {position}.  "
                    f"Number of incomplete keys: {len(self._incomplete)}."
                )
            element = self._incomplete[key] = [self._index, *[None] * len(self.types)]
        if element[1 + component] is not None:
            raise invalid(f"Key {key.decode()} already has a value for component {component} in barrier {self.name}")
        element[1 + component] = value.copy()
        self._charge(element[1 + component :][:1], 1)
        if not any(part is None for part in element):
            del self._incomplete[key]
            # the queue counts them from now on
            self._charge(element[1:], -1)
            self._check_shapes(element[1:])
            complete.append((np.array(element[0], dtype=np.int64), scalar_object(key), *element[1:]))
        return is_new

    def _charge(self, values: Sequence[Array | None], sign: int) -> None:
        if self.account is not None:
            self.account.add(sign * size_of(value for value in values if value is not None))

    def _check_shapes(self, values: Sequence[Array]) -> None:
        for index, (value, shape) in enumerate(zip(values, self.shapes, strict=True)):
            if not shape.is_compatible_with(TensorShape(value.shape)):
                raise invalid(
                    f"Shape mismatch in tuple component {index + 2}. Expected {shape_text(shape)}, got "
                    f"{shape_text(TensorShape(value.shape))}"
                )

    def _check_open(self, inserted: int) -> None:
        if self._closed and (self._cancelled or (inserted and not self._incomplete)):
            raise _cancelled(
                f"Barrier {self.name} is closed.  Pending enqueues cancelled: {int(self._cancelled)}.  Number of new "
                f"insertions: {inserted}.  Number of incomplete keys: {len(self._incomplete)}."
            )

    def take_many(self, count: int, *, allow_small_batch: bool) -> Any:
        """(indices [N], keys [N], values [N, ...]…) of `count` complete keys, or a Waiting for them.

        Raises OutOfRangeError once closed without so many to come.
        """
        with self._lock:
            if self._closed:
                available = self._ready.size()
                if allow_small_batch:
                    count = min(count, available)
                else:
                    available += len(self._incomplete)
                if available < max(count, 1):
                    text = f"(requested {count}, total size {available})"
                    raise errors.out_of_range(
                        f"Barrier '{self.name}' is closed and has insufficient elements {text}"
                    )
        return self._ready.dequeue_many(count, allow_small=allow_small_batch)

    def close(self, *, cancel_pending_enqueues: bool) -> None:
        """No new keys from now on; `cancel_pending_enqueues` drops incomplete ones. Raises CancelledError."""
        with self._lock:
            if self._closed and (self._cancelled or not cancel_pending_enqueues):
                raise _cancelled(f"Barrier '{self.name}' is already closed.")
            self._closed, self._cancelled = True, cancel_pending_enqueues
            if cancel_pending_enqueues or not self._incomplete:
                for element in self._incomplete.values():
                    self._charge(element[1:], -1)
                self._incomplete.clear()
                if not self._ready.is_closed:
                    self._ready.close(cancel_pending_enqueues=cancel_pending_enqueues)


def _cancelled(text: str) -> errors.OpError:
    return errors.cancelled(text)
