"""An event as a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What an event can be about.
KINDS = ("cluster", "task", "run", "checkpoint", "session")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an object. `id` grows with every event, 0 until it is written."""

    kind: str
    #: What it became: the new state, `declared`, `attempt`, `stop-asked`, `written`, …
    action: str
    #: The object's name.
    object: str
    message: str
    #: Wall-clock seconds.
    time: float
    cluster: str | None = None
    run: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    id: int = 0
    #: Of a session: the principal that opened it.
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events somebody wants: every member that is set must fit."""

    kinds: frozenset[str] = frozenset()
    cluster: str | None = None
    run: str | None = None
    #: Whose sessions may be seen; None: everybody's.
    reader: str | None = None
    actions: frozenset[str] = frozenset()
    #: Its name.
    object: str | None = None

    def fits(self, event: Event) -> bool:
        return (
            (event.kind != "session" or self.reader in (None, event.owner))
            and (not self.kinds or event.kind in self.kinds)
            and (not self.actions or event.action in self.actions)
            and self.object in (None, event.object)
            and (self.cluster is None or event.cluster == self.cluster)
            and (self.run is None or event.run == self.run)
        )
