"""Queues: elements go in, elements come out, and an attempt that cannot go on waits in line.

A synchronous machine under one lock. Two lines of attempts, first come first served: enqueues (a graceful close stands
in line with them) and dequeues; after every change `_advance` lets the first of each line go on as long as something
moves. Batches go in and out element by element, as room and elements come, so that a batch may be larger than the
queue; what a cancelled or failed batch had taken goes back to where it came from. Kinds differ in their store
(queue_stores.py). Used by cpu/data_flow_queue.py, barriers.py and readers. Follows queue_base.cc and fifo_queue.cc.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from tenfold_core import errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import invalid
from tenfold_kernels.resources.queue_stores import Array, Element, Store, batch
from tenfold_kernels.resources.quota import size_of
from tenfold_kernels.resources.waiting import ELEMENTS, ROOM, Lack, Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_kernels.resources.quota import Account

#: The capacity of a queue that declares none.
UNBOUNDED = (1 << 31) - 1
#: Bytes by which a queue has to have grown or shrunk before its account is charged: small elements come and go.
_CHARGED_BY = 64 << 10


class _Move(Enum):
    """What an attempt could do."""

    NOTHING = 0
    #: Some of it; it stays in line.
    SOME = 1
    #: All of it, or it has failed.
    ALL = 2


class _Attempt:
    """One enqueue, close or dequeue under way. Its queue's lock guards it."""

    __slots__ = ("allow_small", "error", "left", "outputs", "source", "taken", "try_", "waiting")

    def __init__(self, try_: Callable[[_Attempt], _Move], left: int = 1) -> None:
        self.try_ = try_
        #: Elements still to go in or to come out.
        self.left = left
        #: Enqueue: the components, one element or a batch. Immutable.
        self.source: tuple[Array, ...] = ()
        #: Dequeue of several: what came out so far.
        self.taken: list[Element] = []
        self.allow_small = False
        self.outputs: Any = None
        self.error: errors.OpError | None = None
        #: None while its caller is still on the stack.
        self.waiting: Waiting | None = None

    def claim(self) -> bool:
        """Whether its step still wants it; called right before the last element moves."""
        return self.waiting is None or self.waiting.claim()

    @property
    def given_up(self) -> bool:
        return self.waiting is not None and not self.waiting.is_open


_Line: TypeAlias = "OrderedDict[_Attempt, None]"


class Queue:
    """One queue. Thread-safe; no method blocks: what has to wait is returned as a Waiting."""

    def __init__(
        self,
        kind: str,
        name: str,
        types: Sequence[DType],
        shapes: Sequence[TensorShape] | None,
        capacity: int,
        store: Store,
        account: Account | None = None,
    ) -> None:
        """`kind` is "FIFOQueue" and the like, for errors. `shapes` None: elements may have any. `account` is charged
        for the elements; None: nobody counts them."""
        self.account = account
        #: Bytes of elements that the account does not know of yet, or still counts.
        self._uncharged = 0
        self.kind, self.name = kind, name
        self.types, self.shapes = tuple(types), None if shapes is None else tuple(shapes)
        self.capacity = UNBOUNDED if capacity < 0 else capacity
        #: Touched with the lock held only.
        self.store = store
        self._lock = threading.Lock()
        self._closed = False
        #: Who waits, first come first served. Ordered sets: thousands of steps may leave at once.
        self._enqueues: _Line = OrderedDict()
        self._dequeues: _Line = OrderedDict()

    def size(self) -> int:
        """Elements that are in the queue now."""
        with self._lock:
            return len(self.store)

    @property
    def is_closed(self) -> bool:
        return self._closed

    # -- what steps ask for: outputs, or a Waiting for them ----------------------------------------------------------

    def enqueue(self, element: Element) -> Waiting | None:
        """Puts one element in. Raises InvalidArgumentError for a wrong shape, CancelledError once closed,
        ResourceExhaustedError where what is kept takes too much."""
        self._check(element, batched=False)
        self._check_room(element)
        attempt = _Attempt(self._try_enqueue)
        attempt.source = element
        result: Waiting | None = self._submit(attempt, self._enqueues)
        return result

    def enqueue_many(self, components: tuple[Array, ...]) -> Waiting | None:
        """Puts the slices of the components in, one after the other, as there is room."""
        self._check(components, batched=True)
        self._check_room(components)
        count = components[0].shape[0]
        if not count:
            return None
        attempt = _Attempt(self._try_enqueue_many, count)
        attempt.source = components
        result: Waiting | None = self._submit(attempt, self._enqueues)
        return result

    def dequeue(self) -> Any:
        """The next element, a tuple if it has several components. Raises OutOfRangeError once closed and empty."""
        return self._submit(_Attempt(self._try_dequeue), self._dequeues)

    def dequeue_many(self, count: int, *, allow_small: bool = False) -> Any:
        """The next `count` elements as one batch; what is left, once closed, with `allow_small`."""
        shapes = self._shapes_of_batches()
        if not count:
            return self._as_outputs(batch((), self.types, shapes))
        attempt = _Attempt(self._try_dequeue_many, count)
        attempt.allow_small = allow_small
        return self._submit(attempt, self._dequeues)

    def dequeue_at_once(self, limit: int) -> Any:
        """What may be taken now, at most `limit` elements, as one batch: never a Waiting, maybe none."""
        shapes = self._shapes_of_batches()
        with self._lock:
            taken = [self._take() for _ in range(min(limit, self.store.available(self._closed)))]
            finished = self._advance()
        _deliver(finished)
        return self._as_outputs(batch(taken, self.types, shapes))

    def _shapes_of_batches(self) -> tuple[TensorShape, ...]:
        """The shapes of the components, which batches need. Raises InvalidArgumentError if the queue declares none."""
        if self.shapes is None:
            raise invalid(f"{self.kind}'s DequeueMany and DequeueUpTo require the components to have specified shapes.")
        return self.shapes

    def close(self, *, cancel_pending_enqueues: bool = False) -> Waiting | None:
        """No element goes in after those that wait already; with `cancel_pending_enqueues` not even those."""
        if not cancel_pending_enqueues:
            result: Waiting | None = self._submit(_Attempt(self._try_close), self._enqueues)
            return result
        cancelled: list[Waiting] = []
        with self._lock:
            self._closed = True
            for attempt in self._enqueues:
                if attempt.waiting is not None and attempt.waiting.claim():
                    cancelled.append(attempt.waiting)
            self._enqueues.clear()
            finished = self._advance()
        for waiting in cancelled:
            waiting.deliver(error=errors.cancelled("Enqueue operation was cancelled"))
        _deliver(finished)
        return None

    # -- the lines ---------------------------------------------------------------------------------------------------

    def _submit(self, attempt: _Attempt, line: _Line) -> Any:
        """The attempt's outputs if it could be served at once, else a Waiting. Raises its error."""
        with self._lock:
            line[attempt] = None
            finished = self._advance()
            at_once = attempt in finished
            if at_once:
                finished.remove(attempt)
            else:
                attempt.waiting = Waiting(lambda: self._leave(attempt, line))
                lack = self._lack_of_elements if line is self._dequeues else self._lack_of_room
                attempt.waiting.lack = partial(lack, attempt)
        _deliver(finished)
        if not at_once:
            return attempt.waiting
        if attempt.error is not None:
            raise attempt.error
        return attempt.outputs

    def _lack_of_elements(self, attempt: _Attempt) -> Lack:
        """Without the lock: it is read for people, and a number may be one off."""
        there, taken = len(self.store), len(attempt.taken)
        text = f"there are {there} elements, too few for it"
        return Lack(ELEMENTS, self.name, there + taken, attempt.left + taken, text)

    def _lack_of_room(self, attempt: _Attempt) -> Lack:
        there = len(self.store)
        return Lack(ROOM, self.name, there, self.capacity, f"it holds {there} of {self.capacity} elements")

    def _leave(self, attempt: _Attempt, line: _Line) -> None:
        """The attempt's step has ended: `Waiting.cancel`."""
        with self._lock:
            if attempt in line:
                del line[attempt]
                self._undo(attempt)
            finished = self._advance()
        _deliver(finished)

    def _undo(self, attempt: _Attempt) -> None:
        if attempt.taken:
            self.store.put_back(attempt.taken)
            for element in attempt.taken:
                self._charge(element, 1)
            attempt.taken = []

    # -- the store, with what it takes ---------------------------------------------------------------------------------

    def _put(self, element: Element) -> None:
        self.store.put(element)
        self._charge(element, 1)

    def _take(self) -> Element:
        element = self.store.take()
        self._charge(element, -1)
        return element

    def _charge(self, element: Element, sign: int) -> None:
        account = self.account
        if account is not None:
            self._uncharged += sign * size_of(element)
            if not -_CHARGED_BY < self._uncharged < _CHARGED_BY:
                account.add(self._uncharged)
                self._uncharged = 0

    def _check_room(self, components: Element) -> None:
        if self.account is not None:
            self.account.check(size_of(components) + self._uncharged)

    def _advance(self) -> list[_Attempt]:
        """Serves both lines as far as it goes; those served, for `_deliver` without the lock."""
        finished: list[_Attempt] = []
        moved = True
        while moved:
            moved = self._serve(self._enqueues, finished)
            moved = self._serve(self._dequeues, finished) or moved
        return finished

    def _serve(self, line: _Line, finished: list[_Attempt]) -> bool:
        moved = False
        while line:
            attempt = next(iter(line))
            if not attempt.given_up:
                move = attempt.try_(attempt)
                if move is not _Move.ALL:
                    return moved or move is _Move.SOME
                if attempt.outputs is not _GIVEN_UP:
                    finished.append(attempt)
            else:
                self._undo(attempt)
            moved = True
            del line[attempt]
        return moved

    def _ended(self, attempt: _Attempt, outputs: Any = None, error: errors.OpError | None = None) -> _Move:
        """The attempt has its result, unless its step has just given it up."""
        attempt.outputs, attempt.error = outputs, error
        return _Move.ALL

    def _lost(self, attempt: _Attempt) -> _Move:
        self._undo(attempt)
        attempt.outputs = _GIVEN_UP
        return _Move.ALL

    # -- one attempt's turn ------------------------------------------------------------------------------------------

    def _try_enqueue(self, attempt: _Attempt) -> _Move:
        if not self._closed and len(self.store) >= self.capacity:
            return _Move.NOTHING
        if not attempt.claim():
            return self._lost(attempt)
        if self._closed:
            return self._ended(attempt, error=self._closed_error())
        self._put(attempt.source)
        return self._ended(attempt)

    def _try_enqueue_many(self, attempt: _Attempt) -> _Move:
        if self._closed:
            return self._ended(attempt, error=self._closed_error()) if attempt.claim() else self._lost(attempt)
        count, move = attempt.source[0].shape[0], _Move.NOTHING
        while len(self.store) < self.capacity:
            if attempt.left == 1 and not attempt.claim():
                return self._lost(attempt)
            index = count - attempt.left
            self._put(tuple(component[index, ...] for component in attempt.source))
            attempt.left -= 1
            if not attempt.left:
                return self._ended(attempt)
            move = _Move.SOME
        return move

    def _try_close(self, attempt: _Attempt) -> _Move:
        if not attempt.claim():
            return self._lost(attempt)
        if self._closed:
            text = f"Queue '{self.name}' is already closed."
            return self._ended(attempt, error=errors.cancelled(text))
        self._closed = True
        return self._ended(attempt)

    def _try_dequeue(self, attempt: _Attempt) -> _Move:
        there = self.store.available(self._closed) > 0
        if not there and not self._closed:
            return _Move.NOTHING
        if not attempt.claim():
            return self._lost(attempt)
        if not there:
            return self._ended(attempt, error=self._insufficient(1))
        return self._ended(attempt, self._as_outputs(self._take()))

    def _try_dequeue_many(self, attempt: _Attempt) -> _Move:
        store = self.store
        if self._closed and len(store) < attempt.left:
            wanted, there = attempt.left, len(store)
            attempt.left += len(attempt.taken)
            self._undo(attempt)
            if attempt.allow_small and len(store):
                attempt.left = len(store)
            elif attempt.claim():
                return self._ended(attempt, error=self._insufficient(wanted, there))
            else:
                return self._lost(attempt)
        move = _Move.NOTHING
        if store.takes_whole_batches and len(store) < attempt.left:
            return move
        for _ in range(store.available(self._closed)):
            if attempt.left == 1 and not attempt.claim():
                return self._lost(attempt)
            attempt.taken.append(self._take())
            attempt.left -= 1
            if not attempt.left:
                assert self.shapes is not None
                return self._ended(attempt, self._as_outputs(batch(attempt.taken, self.types, self.shapes)))
            move = _Move.SOME
        return move

    def _as_outputs(self, components: Element) -> Any:
        """Components as a Compute returns outputs: one by itself, several as a tuple."""
        return components[0] if len(self.types) == 1 else components

    # -- checks and texts --------------------------------------------------------------------------------------------

    def _check(self, components: tuple[Array, ...], *, batched: bool) -> None:
        if batched and not all(component.ndim for component in components):
            raise invalid("EnqueueMany needs components with a 0th dimension.")
        count = components[0].shape[0] if batched else 0
        for index, component in enumerate(components):
            if self.shapes is not None:
                wanted = self.shapes[index]
                if batched:
                    wanted = TensorShape([count]).concatenate(wanted)
                if not wanted.is_compatible_with(TensorShape(component.shape)):
                    raise invalid(
                        f"Shape mismatch in tuple component {index}. Expected {shape_text(wanted)}, got "
                        f"{shape_text(TensorShape(component.shape))}"
                    )
            elif batched and component.shape[0] != count:
                raise invalid(
                    "All input tensors must have the same size in the 0th dimension. Component "
                    f"{index} has {component.shape[0]}, and should have {count}"
                )

    def _closed_error(self) -> errors.OpError:
        return errors.cancelled(f"{self.kind} '{self.name}' is closed.")

    def _insufficient(self, wanted: int, there: int = 0) -> errors.OpError:
        return errors.out_of_range(
            f"{self.kind} '{self.name}' is closed and has insufficient elements "
            f"(requested {wanted}, current size {there})"
        )


#: In place of the outputs of an attempt whose step ended at the last moment.
_GIVEN_UP = object()


def shape_text(shape: TensorShape) -> str:
    """`[2,?]`, as TensorShape::DebugString writes it."""
    if shape.ndims is None:
        return "<unknown>"
    return "[" + ",".join("?" if size is None else str(size) for size in shape.as_list()) + "]"


def shapes_text(shapes: Sequence[TensorShape] | None) -> str:
    """`[[2], [?]]`."""
    return "[" + ", ".join(map(shape_text, shapes or ())) + "]"


def types_text(types: Sequence[DType]) -> str:
    """`[float, int32]`."""
    return "[" + ", ".join(dtype.op_name for dtype in types) + "]"


def _deliver(finished: list[_Attempt]) -> None:
    for attempt in finished:
        if attempt.waiting is not None:
            attempt.waiting.deliver(attempt.outputs, attempt.error)
