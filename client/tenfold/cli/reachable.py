"""Where a task that registers listens when nobody said so: where those can dial it that reach its control service.

A control service on loopback has a cluster on this machine alone, so the task stays on loopback as well. Else it
listens on the address of this machine from which the control service is reached, and registers that one
(tenfold_core.own_address). Used by registered_task.py. `--bind` says where to listen, `--address` what others dial; a
task that is told to listen on every interface registers that same address, too.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from tenfold_core.address import split_address
from tenfold_core.loopback import WILDCARDS, is_loopback
from tenfold_core.own_address import beyond_loopback, local_address

if TYPE_CHECKING:
    from tenfold.cli.task_settings import TaskSettings

#: Seconds for the name of the control service to be known; it may be started after its tasks, as in containers.
PATIENCE_S, _PAUSE_S = 60.0, 0.5


def reachable(settings: TaskSettings, patience: float = PATIENCE_S) -> TaskSettings:
    """The settings with a place to listen, where neither that nor an address was given, and with the host to register
    where it is to listen on every interface. Blocks while the control service's name is unknown, `patience` seconds at
    most; then raises ClickException."""
    if settings.control is None or settings.address is not None:
        return settings
    everywhere = split_address(settings.bind, least_port=0)[0] in WILDCARDS
    place = beyond_loopback(settings.control)
    if place is None or (settings.chose_bind and not everywhere):
        return settings
    deadline = time.monotonic() + patience
    while True:
        try:
            mine = local_address(*place)
            break
        except OSError as error:
            if time.monotonic() >= deadline:
                url = settings.control.partition(",")[0].strip()
                raise click.ClickException(
                    f"cannot tell by which address others reach this machine: there is no way to the control service "
                    f"at {url} ({error.strerror or error}). Say it with --address HOST:PORT (TENFOLD_ADDRESS)."
                ) from None
            time.sleep(_PAUSE_S)
    if is_loopback(mine):
        return settings
    return replace(settings, registers=mine) if everywhere else replace(settings, bind=f"{mine}:0")
