"""Which hosts only this machine can reach: what may listen there needs no protection. Pure; never asks DNS.

Used by the command line (cli/settings.py) and by servers (tenfold_services/hosts.py).
"""

from __future__ import annotations

import ipaddress

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
