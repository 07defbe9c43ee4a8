"""What has to wait for something else: the bookkeeping of every order that is worked out in this compiler."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

T = TypeVar("T")


class Pending(Generic[T]):
    """Which of some items are ready at first, and which become so by what is done."""

    def __init__(self, items: Collection[T], before: Callable[[T], Iterable[T]]) -> None:
        """`before` gives what an item waits for, of which what is no item is ignored. One that waits for itself is
        never ready."""
        self._followers: dict[T, list[T]] = {item: [] for item in items}
        self._counts: dict[T, int] = {}
        for item in items:
            sources = [source for source in before(item) if source in self._followers]
            self._counts[item] = len(sources)
            for source in sources:
                self._followers[source].append(item)

    def first(self) -> list[T]:
        """The items that wait for nothing, in their order."""
        return [item for item, count in self._counts.items() if not count]

    def done(self, item: T) -> list[T]:
        """The items, in their order, that wait for nothing now that this one is done."""
        ready = []
        for follower in self._followers[item]:
            self._counts[follower] -= 1
            if not self._counts[follower]:
                ready.append(follower)
        return ready


def in_order(items: Collection[int], before: Callable[[int], Iterable[int]]) -> list[int]:
    """The items, each after what it waits for, of those that are ready always the smallest. Shorter if some wait for
    each other.
    """
    pending = Pending(items, before)
    ready = pending.first()
    heapq.heapify(ready)
    order = []
    while ready:
        order.append(heapq.heappop(ready))
        for item in pending.done(order[-1]):
            heapq.heappush(ready, item)
    return order
