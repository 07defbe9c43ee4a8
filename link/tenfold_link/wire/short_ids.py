"""Numbers that stand for something longer in the frames of one link: a run signature, a plan of a graph.

The caller assigns them, says once what each means, and never uses one twice; the other end keeps the newest ones. So a
number that is forgotten is unknown, never mistaken. The caller forgets sooner than the other end does, so that the
meaning of a number in use need not be said again. Used by session/link_master.py, exchange/ and rpc/ of the services.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

T = TypeVar("T")

#: What one link's caller remembers, and what the other end does.
CALLER_KEEPS = 4096
OTHER_KEEPS = 4 * CALLER_KEEPS


class AssignedIds:
    """The caller's side. Any thread may use it: each step is a single operation of a dictionary."""

    __slots__ = ("_next", "_numbers")

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._next = itertools.count(1)

    def find(self, what: Hashable) -> int | None:
        """Its number; None: it has none, use `give` and say what it means."""
        return self._numbers.get(what)

    def give(self, what: Hashable) -> int:
        """A new number, never used before."""
        if len(self._numbers) >= CALLER_KEEPS:
            self._numbers.clear()
        number = self._numbers[what] = next(self._next)
        return number


class KnownIds(Generic[T]):
    """The other end's side: bounded, the oldest goes first."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, T] = {}

    def find(self, number: int) -> T | None:
        return self._known.get(number)

    def learn(self, number: int, meaning: T) -> None:
        """Replaces what the number meant before, if anything."""
        if number not in self._known and len(self._known) >= OTHER_KEEPS:
            del self._known[next(iter(self._known))]
        self._known[number] = meaning
