"""In which order a queue's elements leave it, and how a batch is made of them: what tells the kinds of queues apart.

Used by queues.py, which holds the lock; nothing here waits. An element is a tuple of read-only arrays, one a
component. Follows fifo_queue.cc, padding_fifo_queue.cc, random_shuffle_queue_op.cc and priority_queue.cc.
"""

from __future__ import annotations

import heapq
import secrets
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from tenfold_kernels.philox import Philox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Element: TypeAlias = tuple[Array, ...]

_MASK64 = (1 << 64) - 1


class Store(Protocol):
    """The elements of one queue."""

    #: A batch is taken as a whole, not element by element as they come: else it would not be in order.
    takes_whole_batches: bool

    def __len__(self) -> int: ...

    def available(self, closed: bool) -> int:
        """How many may be taken now."""
        ...

    def put(self, element: Element) -> None: ...

    def take(self) -> Element:
        """The next one. Only when some are available."""
        ...

    def put_back(self, elements: Sequence[Element]) -> None:
        """Undoes so many `take`s; `elements` are in the order in which they were taken."""
        ...


class FifoStore:
    """First in, first out."""

    takes_whole_batches = False

    def __init__(self) -> None:
        self._elements: deque[Element] = deque()

    def __len__(self) -> int:
        return len(self._elements)

    def available(self, closed: bool) -> int:
        return len(self._elements)

    def put(self, element: Element) -> None:
        self._elements.append(element)

    def take(self) -> Element:
        return self._elements.popleft()

    def put_back(self, elements: Sequence[Element]) -> None:
        self._elements.extendleft(reversed(elements))


class ShuffleStore:
    """A random one of those that are there; some stay behind until the queue is closed, to be mixed with others.

    The same seeds give the same order as TensorFlow's; without seeds (both 0) the order is anyone's guess.
    """

    takes_whole_batches = False

    def __init__(self, min_after_dequeue: int, seed: int, seed2: int) -> None:
        self.min_after_dequeue, self.seeds = min_after_dequeue, (seed, seed2)
        if seed == 0 and seed2 == 0:
            seed, seed2 = secrets.randbits(64), secrets.randbits(64)
        self._elements: list[Element] = []
        self._numbers = Philox(seed & _MASK64, (seed2 & _MASK64) << 64).single()

    def __len__(self) -> int:
        return len(self._elements)

    def available(self, closed: bool) -> int:
        return len(self._elements) - (0 if closed else self.min_after_dequeue)

    def put(self, element: Element) -> None:
        self._elements.append(element)

    def take(self) -> Element:
        elements = self._elements
        index = next(self._numbers) % len(elements)
        taken, last = elements[index], elements.pop()
        if index < len(elements):
            elements[index] = last
        return taken

    def put_back(self, elements: Sequence[Element]) -> None:
        self._elements.extend(reversed(elements))


class PriorityStore:
    """The smallest first component first; equal ones in the order in which they came."""

    takes_whole_batches = True

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Element]] = []
        self._count = 0
        #: The number of each element that was taken and may come back: (priority, identity) would not keep the order.
        self._before = 0

    def __len__(self) -> int:
        return len(self._heap)

    def available(self, closed: bool) -> int:
        return len(self._heap)

    def put(self, element: Element) -> None:
        self._count += 1
        heapq.heappush(self._heap, (int(element[0]), self._count, element))

    def take(self) -> Element:
        return heapq.heappop(self._heap)[2]

    def put_back(self, elements: Sequence[Element]) -> None:
        for element in reversed(elements):
            self._before -= 1
            heapq.heappush(self._heap, (int(element[0]), self._before, element))


def batch(elements: Sequence[Element], types: Sequence[DType], shapes: Sequence[TensorShape]) -> tuple[Array, ...]:
    """One array per component, [N, ...]: N elements one after the other, smaller ones padded with zeros or b"".

    `shapes` matter for the dimensions that every element has to agree on, and for a batch of none.
    """
    batches = []
    for component, (dtype, shape) in enumerate(zip(types, shapes, strict=True)):
        arrays = [element[component] for element in elements]
        declared = shape.as_list()
        dims = [
            max((array.shape[axis] for array in arrays), default=0) if size is None else size
            for axis, size in enumerate(declared)
        ]
        out = np.empty((len(arrays), *dims), dtype=dtype.as_numpy_dtype)
        if None in declared:
            out[...] = b"" if dtype.name == "string" else 0
            for row, array in zip(out, arrays, strict=True) if dims else ():
                row[tuple(slice(size) for size in array.shape)] = array
        else:
            for index, array in enumerate(arrays):
                out[index] = array if array.ndim else array[()]
        batches.append(out)
    return tuple(batches)
