"""Addresses of tasks, "host:port" or "[v6]:port": how they are split, and where a task that has one listens. Pure."""

from __future__ import annotations

from tenfold_core import errors
from tenfold_core.loopback import is_loopback


def split_address(address: str, *, least_port: int = 1) -> tuple[str, int]:
    """("host", port) of "host:port". Raises ValueError if it is not one; port 0 passes where `least_port` is 0."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or "://" in address or not port.isdecimal() or not least_port <= int(port) <= 65535:
        raise ValueError(f"{address!r} is not HOST:PORT with a port from {least_port} to 65535")
    return host, int(port)


def split_named_address(address: str, what: str) -> tuple[str, int]:
    """("host", port) of "host:port". Raises InvalidArgumentError naming `what` and the address."""
    try:
        return split_address(address, least_port=0)
    except ValueError:
        raise errors.invalid_argument(
            f'The address {address!r} of {what} is not "host:port" with a port from 0 to 65535.'
        ) from None


def join_address(host: str, port: int) -> str:
    """ "host:port", an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def bind_address(host: str, port: int) -> str:
    """Where a task known as `host`:`port` listens: there if only this machine reaches it, else on every interface."""
    if host == "localhost":
        # The name may stand for two addresses, and a free port would be another one on each.
        host = "127.0.0.1"
    return f"{host}:{port}" if is_loopback(host) else f"0.0.0.0:{port}"
