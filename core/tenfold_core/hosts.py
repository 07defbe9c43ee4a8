"""What addresses say about hosts: which are this machine's own, where a task may listen, what others can dial.

Pure; never asks DNS. Used by the services' server, which opens the port that is chosen here.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.address import join_address, split_address, split_named_address
from tenfold_core.loopback import WILDCARDS, is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping


def where_to_listen(task: str, bind: str | None, mine: str, protected: bool) -> tuple[str | None, int]:
    """Host and port for `bind`, "host:port"; port 0 there means that of the task's address `mine`. (None, 0) for None.

    Raises PermissionDeniedError for a host that others can reach unless it is `protected` (by a token, or because the
    user takes it upon himself), InvalidArgumentError for a malformed address.
    """
    if bind is None:
        return None, 0
    host, port = split_named_address(bind, "the listener")
    if not port and mine:
        port = split_named_address(mine, task)[1]
    if not protected and not is_loopback(host):
        raise errors.permission_denied(
            f"{task} refuses to listen on {host}:{port} without protection: a program that reaches that port may "
            "run code here. Set TENFOLD_TOKEN or TENFOLD_TOKEN_FILE (`tenfold token new` makes one), listen on "
            "127.0.0.1, or pass insecure=True (TENFOLD_INSECURE=1) on a network you trust."
        )
    return host, port


def address_to_dial(mine: str, host: str, port: int) -> str:
    """The address of a task that listens on `host` at `port`: `mine`, unless that leaves the port open; without it
    `host`, or this machine's name where it listens on every interface."""
    if mine and not mine.endswith(":0"):
        return mine
    name = mine.rpartition(":")[0]
    if not name:
        name = "localhost" if is_loopback(host) else socket.gethostname() if host in WILDCARDS else host
    return join_address(name, port)


def tasks_on_host(addresses: Mapping[str, Mapping[int, str]], job: str, index: int) -> int:
    """How many tasks of the cluster name the same host as this one does, itself included. Never asks DNS."""

    def host_of(address: str) -> str:
        host = address.rpartition(":")[0].lower()
        return "localhost" if is_loopback(host) else host

    mine = host_of(addresses.get(job, {}).get(index, ""))
    if not mine:
        return 1
    return sum(host_of(address) == mine for tasks in addresses.values() for address in tasks.values() if address)


def reserve_port(bind: str) -> socket.socket:
    """A bound socket that does not listen: it keeps a port ("host:port"; 0 is any) from others until it is closed.
    Raises ValueError for a malformed address, OSError where the port cannot be had."""
    host, port = split_address(bind, least_port=0)
    reserved = socket.socket(socket.AF_INET6 if host.startswith("[") else socket.AF_INET, socket.SOCK_STREAM)
    try:
        reserved.bind((host.strip("[]"), port))
    except OSError:
        reserved.close()
        raise
    return reserved
