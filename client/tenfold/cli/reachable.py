"""Where a task that registers listens when nobody said so: where those can dial it that reach its control service.

A control service on loopback has a cluster on this machine alone, so the task stays on loopback as well. Else it
listens on the address of this machine from which the control service is reached, and registers that one. Used by
registered_task.py. `--bind` says where to listen, `--address` what others dial.
"""

from __future__ import annotations

import socket
import time
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from tenfold_core.loopback import is_loopback

if TYPE_CHECKING:
    from tenfold.cli.task_settings import TaskSettings

#: Seconds for the name of the control service to be known; it may be started after its tasks, as in containers.
PATIENCE_S, _PAUSE_S = 60.0, 0.5


def reachable(settings: TaskSettings, patience: float = PATIENCE_S) -> TaskSettings:
    """The settings with a place to listen, where neither that nor an address was given. Blocks while the control
    service's name is unknown, `patience` seconds at most; then raises ClickException."""
    if settings.control is None or settings.address is not None or settings.chose_bind:
        return settings
    url = settings.control.partition(",")[0].strip()
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    if not host or is_loopback(host):
        return settings
    deadline = time.monotonic() + patience
    while True:
        try:
            mine = local_address(host, port)
            break
        except OSError as error:
            if time.monotonic() >= deadline:
                raise click.ClickException(
                    f"cannot tell by which address others reach this machine: there is no way to the control service "
                    f"at {url} ({error.strerror or error}). Say it with --address HOST:PORT (TENFOLD_ADDRESS)."
                ) from None
            time.sleep(_PAUSE_S)
    return settings if is_loopback(mine) else replace(settings, bind=f"{mine}:0")


def local_address(host: str, port: int) -> str:
    """The address of this machine, in brackets if it is IPv6, from which `host` is reached.

    Sends nothing to it, but may ask DNS. Raises OSError if there is no way to it.
    """
    error: OSError | None = None
    for family, kind, number, _, place in socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM):
        with socket.socket(family, kind, number) as asking:
            try:
                # of a datagram socket this only chooses the way
                asking.connect(place)
            except OSError as refused:
                error = refused
                continue
            mine = str(asking.getsockname()[0]).partition("%")[0]
            return f"[{mine}]" if family == socket.AF_INET6 else mine
    raise error or OSError(f"{host} has no address")
