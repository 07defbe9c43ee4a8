"""`tensorflow.python.util.object_identity`: sets and dictionaries that tell their keys apart by identity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, MutableSet
from typing import Any


class ObjectIdentityDictionary(MutableMapping[Any, Any]):
    """A dictionary by identity of its keys, which it keeps alive."""

    def __init__(self) -> None:
        self._items: dict[int, tuple[Any, Any]] = {}

    def __getitem__(self, key: Any) -> Any:
        return self._items[id(key)][1]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._items[id(key)] = (key, value)

    def __delitem__(self, key: Any) -> None:
        del self._items[id(key)]

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._items.values())

    def __len__(self) -> int:
        return len(self._items)


class ObjectIdentitySet(MutableSet[Any]):
    """A set by identity, in the order in which its members came."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self._items = {id(item): item for item in items}

    def __contains__(self, item: object) -> bool:
        return id(item) in self._items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def add(self, value: Any) -> None:
        self._items[id(value)] = value

    def discard(self, value: Any) -> None:
        self._items.pop(id(value), None)
