"""The place in a cluster that a control service gives to a program which was told neither: TF_CONFIG, made on demand.

Read by distribute/cluster_resolver/tf_config.py where TF_CONFIG is not set, but TENFOLD_CONTROL and TENFOLD_JOB are.
The program registers as the next free task of that job (or TENFOLD_INDEX) with a port that is kept for it, and waits
until all others have registered. Its tf.train.Server takes over the port and the registration (server_lib.py).
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.runs.program_end import how_it_ended
from tenfold.runs.program_report import CONTROL
from tenfold_core import errors
from tenfold_core.access.credentials import shown_token
from tenfold_core.address import join_address, split_address
from tenfold_core.hosts import reserve_port
from tenfold_core.loopback import WILDCARDS, is_loopback
from tenfold_core.own_address import beyond_loopback, local_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.control import ControlClient, TaskRegistration

#: Seconds for one request; for the service to answer and the cluster to be declared; for all tasks to register.
_REQUEST_S, _REGISTER_S, _COMPLETE_S = 10.0, 60.0, 120.0
#: Seconds to give the place back when no server has taken it.
_RELEASE_S = 2.0
_TF_CONFIG = "TF_CONFIG"


@dataclass
class GivenPlace:
    """A task that is registered, and has no server yet."""

    registration: TaskRegistration
    client: ControlClient
    address: str
    #: Bound and not listening; None once the server has the port.
    port: socket.socket | None
    #: What TF_CONFIG holds.
    config: dict[str, Any]


_lock = threading.Lock()
_given: GivenPlace | None = None


def tf_config(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """What TF_CONFIG would hold; {} where the environment names no control service and job. From then on the
    environment has it as TF_CONFIG. Asked again in the same process it is the same.

    Blocks until all tasks of the cluster have registered, two minutes at most. Raises DeadlineExceededError naming
    those that have not, UnavailableError where there is no service, NotFoundError for a job or index that is not
    declared, ResourceExhaustedError or AlreadyExistsError where the places are taken, InvalidArgumentError for a
    malformed index or address.
    """
    global _given
    url, job = environment.get(CONTROL), environment.get("TENFOLD_JOB")
    if not url or not job:
        return {}
    with _lock:
        if _given is None:
            _given = _take(url, job, environment)
            os.environ[_TF_CONFIG] = json.dumps(_given.config)
            atexit.register(_give_back)
        return _given.config


def take_over(job: str, index: int) -> GivenPlace | None:
    """The place of this task, if it was given to this process: its port is free for the caller from now on, and the
    registration is the caller's to stop."""
    global _given
    with _lock:
        given = _given
        if given is None or given.port is None:
            return None
        task = given.config["task"]
        if (task["type"], task["index"]) != (job, index):
            return None
        given.port.close()
        given.port = None
        atexit.unregister(_give_back)
        return given


def _take(url: str, job: str, environment: Mapping[str, str]) -> GivenPlace:
    from tenfold.control import ControlClient, TaskRegistration

    cluster = environment.get("TENFOLD_CLUSTER_NAME") or "default"
    mine = _own_host(url)
    bind = environment.get("TENFOLD_BIND") or f"{mine or '127.0.0.1'}:0"
    wanted = environment.get("TENFOLD_INDEX")
    if wanted and not wanted.isdecimal():
        raise errors.InvalidArgumentError(None, None, f"TENFOLD_INDEX must be a number from 0, not {wanted!r}.")
    with contextlib.ExitStack() as undo:
        try:
            port = undo.enter_context(reserve_port(bind))
        except (OSError, ValueError) as error:
            raise errors.InvalidArgumentError(None, None, f"cannot listen on TENFOLD_BIND={bind}: {error}") from None
        host = split_address(bind, least_port=0)[0]
        if host in WILDCARDS:
            host = mine or socket.gethostname()
        address = environment.get("TENFOLD_ADDRESS") or join_address(host, port.getsockname()[1])
        client = undo.enter_context(ControlClient(url, shown_token(), _REQUEST_S))
        index = int(wanted) if wanted else None
        registration = TaskRegistration(client, cluster, job, index, address).start(_REGISTER_S)
        undo.callback(registration.stop, state="lost", exit_code=None, reason="its cluster was not complete in time")
        client.wait_for_spec(cluster, until_complete=True, timeout=_COMPLETE_S)
        config = client.tf_config(cluster, job, registration.index)
        undo.pop_all()
        return GivenPlace(registration, client, address, port, config)


def _own_host(url: str) -> str | None:
    """The address from which a control service beyond this machine is reached; None for one on it, or without a way to
    it: what follows says so."""
    place = beyond_loopback(url)
    if place is None:
        return None
    try:
        mine = local_address(*place)
    except OSError:
        return None
    return None if is_loopback(mine) else mine


def _give_back() -> None:
    """The program ends without a server at its place."""
    given = _given
    if given is not None and given.port is not None:
        given.port.close()
        state = {"succeeded": "finished", "stopped": "stopped"}.get(how_it_ended()["state"], "lost")
        given.registration.stop(state=state, exit_code=0 if state == "finished" else None, timeout=_RELEASE_S)
        given.client.close()


def _after_fork() -> None:
    """The heartbeat's thread is the parent's, and so is the place."""
    global _lock, _given
    if _given is not None and _given.port is not None:
        _given.port.close()
        atexit.unregister(_give_back)
    _lock, _given = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
