"""How many bytes this process has sent to whom and received from whom: by peer task, and all others in one sum.

Counted by links (tenfold_link.link_end) and by gRPC's ends (tenfold_services.rpc, .http2), where the bytes are known
anyway; read by tenfold_services.figures. What goes by shared memory counts as what goes by a socket. An end holds its
`Traffic` and adds to it, which takes some 20 ns and no lock: an addition to an attribute is not interrupted by other
threads of today's interpreters, and where one is, a lost count does no harm.
"""

from __future__ import annotations

import threading

#: Peers that are counted by name; the names come from the peers. Those of further ones are in the sum of all others.
MOST_PEERS = 1024


class Traffic:
    """Bytes sent to and received from one peer."""

    __slots__ = ("received", "sent")

    def __init__(self) -> None:
        self.sent = self.received = 0


#: With those that are no task, or do not say which: clients, TensorFlow's tasks that dial us.
OTHERS = Traffic()

_by_task: dict[str, Traffic] = {}
_lock = threading.Lock()


def traffic_with(peer: str) -> Traffic:
    """The traffic with a task by its full name, "/job:ps/replica:0/task:0"; OTHERS for a peer of another name."""
    found = _by_task.get(peer)
    if found is None:
        if not peer.startswith("/job:"):
            return OTHERS
        with _lock:
            if peer not in _by_task and len(_by_task) >= MOST_PEERS:
                return OTHERS
            found = _by_task.setdefault(peer, Traffic())
    return found


def total_traffic() -> tuple[int, int]:
    """Bytes sent and received in all."""
    every = [OTHERS, *list(_by_task.values())]
    return sum(each.sent for each in every), sum(each.received for each in every)


def traffic_by_task() -> list[tuple[str, int, int]]:
    """(task, bytes sent, bytes received) of each peer task, by name."""
    return [(task, each.sent, each.received) for task, each in sorted(_by_task.copy().items())]
