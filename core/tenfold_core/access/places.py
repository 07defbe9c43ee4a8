"""Who may have a place while there are few left: connections of a port, by those who are known there and strangers.

A stranger is a connection that has shown nothing yet, and is not the same user's. Strangers have three quarters of the
places at most, those of one user or one address a quarter: so a known caller finds one. Where a place is short the
stranger goes that has been there longest, of those who have most: nothing is worked on for it. No I/O; one thread.
Used by the HTTP/2 server, services/rpc/grpcio_port.py, tunnels and the control service.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Key = TypeVar("Key")

#: Files that a process needs beside the connections of a port.
_OTHER_FILES = 256


def affordable(most: int) -> int:
    """`most` places, or as many as the files that this process may open allow, so that it keeps some for itself."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if files == resource.RLIM_INFINITY else min(most, max(1, files - _OTHER_FILES))


class Places(Generic[Key]):
    """The places of one port. A connection is any hashable."""

    def __init__(self, most: int, end: Callable[[Key], object]) -> None:
        """`end(connection)` has a stranger's ended that has to go; it need not call `leave`."""
        self.most, self._end = most, end
        #: Connection → its group, oldest first in each: strangers alone.
        self._strangers: dict[str, dict[Key, None]] = {}
        self._group: dict[Key, str] = {}
        self._known: set[Key] = set()

    def __len__(self) -> int:
        return len(self._known) + len(self._group)

    @property
    def strangers(self) -> int:
        """How many places they have."""
        return len(self._group)

    def enter(self, key: Key, group: str, *, known: bool) -> str | None:
        """A place for a connection of `group`, a user or an address; or why there is none. May end a stranger's."""
        why = self.refusal(group, known=known)
        if why is None:
            self.add(key, group, known=known)
        return why

    def refusal(self, group: str, *, known: bool) -> str | None:
        """Makes sure that there is a place for another connection of `group`; or says why there is none."""
        own = len(self._strangers.get(group, ()))
        if known:
            if len(self) >= self.most and not self._make_room(None):
                return f"there are {len(self)}"
        elif own >= max(1, self.most // 4):
            self._make_room(group)
        elif (self.strangers >= max(1, self.most * 3 // 4) or len(self) >= self.most) and not self._make_room(None):
            return f"there are {len(self)}, all of those who are known"
        return None

    def add(self, key: Key, group: str, *, known: bool) -> None:
        """Takes the place that `refusal` has found."""
        if known:
            self._known.add(key)
        else:
            self._strangers.setdefault(group, {})[key] = None
            self._group[key] = group

    def recognize(self, key: Key) -> None:
        """The stranger has shown who it is."""
        if key in self._group:
            self.leave(key)
            self._known.add(key)

    def leave(self, key: Key) -> None:
        """The connection is over. Twice is no error."""
        self._known.discard(key)
        group = self._group.pop(key, None)
        if group is not None:
            del self._strangers[group][key]
            if not self._strangers[group]:
                del self._strangers[group]

    def _make_room(self, group: str | None) -> bool:
        """Ends the oldest stranger of `group`, or of that which has most; whether there was one."""
        if group is None:
            if not self._strangers:
                return False
            group = max(self._strangers, key=lambda each: len(self._strangers[each]))
        key = next(iter(self._strangers[group]))
        self.leave(key)
        self._end(key)
        return True
