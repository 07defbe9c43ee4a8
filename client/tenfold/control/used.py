"""The control services that this process has asked for a cluster spec, so that its sessions on those tasks are known as
theirs. Written by cluster_calls.py, read by tenfold.runs.by_hand. Any thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold_core.loopback import same_host

if TYPE_CHECKING:
    from tenfold.control.exchange import Peer
    from tenfold.control.spec import Spec
    from tenfold_core.access.credentials import Shown

#: Services that are remembered; the oldest goes first.
_MOST = 16


@dataclass(frozen=True, slots=True)
class UsedService:
    """A cluster at a control service, with what is shown to it."""

    url: str
    cluster: str
    token: Shown = field(repr=False)


#: The cluster → the addresses of its tasks, the newest cluster last.
_used: dict[UsedService, frozenset[str]] = {}


def note_spec(peer: Peer, spec: Spec) -> None:
    """A client of `peer` was told this spec. Never blocks."""
    service = UsedService(",".join(peer.addresses.urls), spec.cluster, peer.token)
    addresses = frozenset(_key(address) for tasks in spec.addresses.values() for address in tasks.values())
    _used.pop(service, None)
    _used[service] = addresses
    while len(_used) > _MOST:
        del _used[next(iter(_used))]


def service_of(target: str) -> UsedService | None:
    """The service whose newest spec has a task at `target` ("grpc://host:port"); None without."""
    key = _key(target.removeprefix("grpc://").rstrip("/"))
    return next((service for service, addresses in reversed(list(_used.items())) if key in addresses), None)


def _key(address: str) -> str:
    host, _, port = address.rpartition(":")
    return f"{same_host(host)}:{port}"
