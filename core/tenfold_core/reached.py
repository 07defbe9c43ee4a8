"""What can be reached from where, edge by edge: by passes that follow a graph, by functions that call each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

T = TypeVar("T", bound="Hashable")


def reached(start: Iterable[T], following: Callable[[T], Iterable[T]]) -> dict[T, None]:
    """These, and all that `following` leads to from them, at any distance, in the order in which they are met.

    `following` is called once for each. No recursion: how long a chain is may be up to a peer.
    """
    found = dict.fromkeys(start)
    left = list(found)
    while left:
        for each in following(left.pop()):
            if each not in found:
                found[each] = None
                left.append(each)
    return found
