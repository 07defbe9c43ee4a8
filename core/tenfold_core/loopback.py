"""Which hosts only this machine can reach: what may listen there needs no protection. Pure; never asks DNS.

The one list of such names: for the command line, servers, in-process sessions and the control service.
"""

from __future__ import annotations

import ipaddress

#: The usual spellings of this machine, as clients write them in a `Host` header.
HOSTS = ("localhost", "127.0.0.1", "::1", "[::1]")
#: Wildcard hosts: every interface. Fit to bind to, unfit to be told to others.
WILDCARDS = frozenset({"0.0.0.0", "::", "[::]", ""})
#: The spelling of a loopback host that is not an address.
_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})


def is_loopback(host: str) -> bool:
    """Whether `host`, a name or an address, maybe in brackets, is such. An unknown name counts as reachable."""
    if host.lower() in _NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def same_host(host: str) -> str:
    """One spelling for hosts that lead to the same listener on this machine: "localhost", else `host` in lower case."""
    host = host.lower()
    return "localhost" if host in _NAMES or host in HOSTS or host in WILDCARDS else host
