"""What the sessions of each peer take of a master together: how many there are, how many steps they run at once, and
what their partial runs hold.

A peer is the name that it was accepted by (its token, its user) at the address that it came from; this task's own
process is none, and is not counted. Used by master.py, which asks before it opens a session, and by master_session.py.
Pure.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class PeerUse:
    """Of one peer."""

    name: str
    #: Open, and being opened or closed.
    sessions: int = 0
    #: That its sessions run now, on the scheduled path.
    steps: int = 0
    #: Bytes that were fed to its partial runs, until these are over.
    partial_run_bytes: int = 0


class PeerTable:
    """The peers that have sessions."""

    def __init__(self) -> None:
        self._peers: dict[str, PeerUse] = {}

    def find(self, name: str) -> PeerUse | None:
        """The peer of that name; None for "", this process. A new one is not kept before it `enter`s."""
        return (self._peers.get(name) or PeerUse(name)) if name else None

    def enter(self, peer: PeerUse) -> None:
        """One session more."""
        self._peers[peer.name] = peer
        peer.sessions += 1

    def leave(self, peer: PeerUse) -> None:
        """One session less."""
        peer.sessions -= 1
        if not peer.sessions:
            self._peers.pop(peer.name, None)


def peer_name(who: str, address: str) -> str:
    """The name of a caller that was accepted as `who`, from "ipv4:10.0.0.7:4711"; "" for this process."""
    if not address:
        return ""
    host = address.rpartition(":")[0].partition(":")[2] or address
    return f"{who or 'somebody'} at {host}"
