"""One task's share of a client graph: who runs it, and what it takes and gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenfold_services.interfaces import WorkerInterface


@dataclass(slots=True)
class Part:
    """One task's share of a client graph."""

    task: str
    #: Set when the graph is no longer a Cut.
    worker: WorkerInterface = field(init=False)
    #: Canonical tensor name → rendezvous key, of what the client feeds and fetches here. Only the master's own task has
    #: any: feeds enter and fetches leave there.
    feed_keys: dict[str, str] = field(default_factory=dict)
    fetch_keys: dict[str, str] = field(default_factory=dict)
    #: Rendezvous key → consuming task, of what this part sends to others.
    sends: dict[str, str] = field(default_factory=dict)
    #: The same for what it sends in the iterations of a loop, under a key of its own each time; never pushed.
    loop_sends: dict[str, str] = field(default_factory=dict)
    #: From register_graph; "" before.
    handle: str = ""
