"""Addresses of tasks, "host:port" or "[v6]:port": how they are split, and where a task that has one listens. Pure."""

from __future__ import annotations

import ipaddress

from tenfold_core import errors
from tenfold_core.loopback import is_loopback

#: Added to what is said of an address of IPv6 without brackets, in which nobody can tell host and port apart.
_BRACKETS = " An IPv6 address stands in brackets, as [::1]:2222."


def split_address(address: str, *, least_port: int = 1) -> tuple[str, int]:
    """("host", port) of "host:port"; the brackets of an IPv6 address stay. Raises ValueError if it is not one; port 0
    passes where `least_port` is 0."""
    host, colon, port = address.rpartition(":")
    wrong = not colon or not host or "://" in address or not port.isdecimal() or not least_port <= int(port) <= 65535
    if wrong or _lacks_brackets(host):
        hint = _BRACKETS if "://" not in address and _lacks_brackets(host) else ""
        raise ValueError(f"{address!r} is not HOST:PORT with a port from {least_port} to 65535{hint and '.' + hint}")
    return host, int(port)


def split_named_address(address: str, what: str) -> tuple[str, int]:
    """("host", port) of "host:port". Raises InvalidArgumentError naming `what` and the address."""
    try:
        return split_address(address, least_port=0)
    except ValueError:
        hint = _BRACKETS if _lacks_brackets(address.rpartition(":")[0]) else ""
        raise errors.invalid_argument(
            f'The address {address!r} of {what} is not "host:port" with a port from 0 to 65535.{hint}'
        ) from None


def join_address(host: str, port: int) -> str:
    """ "host:port", an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def bind_address(host: str, port: int) -> str:
    """Where a task known as `host`:`port` listens: there if only this machine reaches it, else on every interface.

    For a name that is every address of IPv6 and IPv4, since it may stand for either; a system without IPv6 listens on
    those that it has (http2/listening.py).
    """
    if host == "localhost":
        # The name may stand for two addresses, and a free port would be another one on each.
        host = "127.0.0.1"
    if is_loopback(host):
        return f"{host}:{port}"
    return f"0.0.0.0:{port}" if _is_ipv4(host) else f"[::]:{port}"


def _lacks_brackets(host: str) -> bool:
    return ":" in host and not (host.startswith("[") and host.endswith("]"))


def _is_ipv4(host: str) -> bool:
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True
