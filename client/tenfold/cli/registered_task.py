"""A task that registers with a control service: it listens, registers or claims an index, and follows the cluster spec.

Called by task.py. The server is tenfold_services' BackgroundServer, the heartbeat tenfold.control's TaskRegistration;
this file passes the newest spec from the heartbeat to the server. It ends the process when the task has lost its index
or was told that it is over, and once the workers have finished where the spec sets stop_with_workers.
"""

from __future__ import annotations

import logging
import socket
import threading
import uuid
from typing import TYPE_CHECKING, Any

import click

from tenfold.cli.metrics_port import metrics_port
from tenfold.cli.reachable import reachable
from tenfold.cli.serving import GRACE_S, OTHER_PORT, announce, end_with_server
from tenfold.cli.signals import StopSignalError
from tenfold.cli.task_settings import TaskSettings, advertised_address
from tenfold.control import ControlClient, TaskRegistration
from tenfold.control.devices import devices_of
from tenfold.control.retry import NO_RETRY
from tenfold.server_gradients import gradient_of_op
from tenfold_core import errors
from tenfold_core.address import split_address
from tenfold_core.hosts import reserve_port
from tenfold_core.port_users import taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.cli.signals import StopSignals
    from tenfold.control import Spec
    from tenfold_core.access.credentials import ShownToken
    from tenfold_services.background import BackgroundServer

log = logging.getLogger(__name__)

#: Seconds to release the lease; the control service may be gone already.
RELEASE_S = 3.0
#: Seconds to read the spec once before the task listens.
LOOK_S = 2.0
#: Seconds for the first spec to come once the task is registered.
FIRST_SPEC_S = 60.0


class RegisteredTask:
    """Connects the heartbeat and the server. `on_spec`, `on_told` and `on_lost` run on threads of the heartbeat's."""

    def __init__(self, stop_with_workers: bool, end: Callable[[], None]) -> None:
        """`stop_with_workers`: the task ends with the workers, whatever the control service says of the cluster. `end`
        lets the main thread stop in the same order as Ctrl-C."""
        self._end = end
        self._lock = threading.Lock()
        self._stop_with_workers = stop_with_workers
        #: Set once it listens. Guarded by _lock.
        self._server: BackgroundServer | None = None
        #: The newest spec. Guarded by _lock.
        self._spec: Spec | None = None
        #: Set once the server has taken a spec, or none is awaited any more.
        self._knows = threading.Event()
        #: Why the index was lost for good.
        self.lost: str | None = None
        #: Grace and reason of a drain, once one was wished for.
        self.drain: tuple[float, str] | None = None

    def attach(self, server: BackgroundServer) -> None:
        """From now on specs go to `server`, beginning with the newest that has come."""
        with self._lock:
            self._server = server
            self._apply()
        end_with_server(server, self._end)

    def wait_for_spec(self) -> None:
        """Blocks until the server has taken a spec: before, its sessions would have no task but this one. Raises
        ClickException if none comes."""
        if not self._knows.wait(FIRST_SPEC_S):
            raise click.ClickException(f"the control service sent no cluster spec within {FIRST_SPEC_S:g} s")
        if self.lost is not None:
            raise click.ClickException(self.lost)

    def on_spec(self, spec: Spec) -> None:
        with self._lock:
            self._spec = spec
            self._apply()

    def on_lost(self, reason: str) -> None:
        self.lost = reason
        self._knows.set()
        self._end()

    def on_told(self, state: str, reason: str) -> None:
        click.echo(f"the control service says that this task is {state}: {reason}")
        self._knows.set()
        self._end()

    def on_drain(self, grace: float, reason: str) -> None:
        click.echo(f"this task is drained: {reason}; running steps get {grace:g} s")
        self.drain = grace, reason
        self._end()

    def _apply(self) -> None:
        if self._server is None or self._spec is None:
            return
        try:
            self._server.update_cluster(addresses(self._spec))
        except errors.OpError as error:
            log.warning("the cluster spec of version %d was not taken: %s", self._spec.version, error.message)
        else:
            self._server.declare_ended(self._spec.finished_tasks, self._spec.lost_tasks)
            self._server.end_with_workers(self._spec.stop_with_workers or self._stop_with_workers)
            self._knows.set()


def addresses(spec: Spec) -> dict[str, dict[int, str]]:
    """Every declared task's address, "" for one that has not registered: the server names it as missing."""
    return {
        job: {index: spec.addresses.get(job, {}).get(index, "") for index in range(size)}
        for job, size in spec.jobs.items()
    }


def serve_registered(settings: TaskSettings, token: ShownToken, stop: StopSignals) -> None:
    """Serves until `stop` ends. Raises ClickException if the index is lost, OpError if none can be had, and the error
    of a stop signal.

    With an index: listen, then register. Without one the index comes first, because a server's devices are named after
    it; a bound socket reserves the port meanwhile. Stopping: 1 release the lease · 2 let running steps end · 3 close.
    A drain: 2, 3, and then 1.
    """
    settings = reachable(settings)
    assert settings.control is not None
    joint = RegisteredTask(settings.stop_with_workers, stop.end)
    client = ControlClient(settings.control, token)
    server: BackgroundServer | None = None
    registration: TaskRegistration | None = None
    common: dict[str, Any] = {
        "incarnation": uuid.uuid4().hex[:16],
        "on_spec": joint.on_spec,
        "on_told": joint.on_told,
        "on_lost": joint.on_lost,
        "on_drain": joint.on_drain,
        "insecure": settings.insecure,
    }
    ending: dict[str, Any] = {"state": "finished", "exit_code": 0}
    try:
        if settings.index is None:
            with reserved_port(settings.bind) as reserved:
                bind = f"{split_address(settings.bind, least_port=0)[0]}:{reserved.getsockname()[1]}"
                address = advertised_address(settings, reserved.getsockname()[1], socket.gethostname())
                registration = TaskRegistration(client, settings.cluster_name, settings.job, None, address, **common)
                registration.start()
            server = listen(settings, registration.index, bind, token)
            registration.on_lease = server.hold_lease
            registration.update_devices(devices_of(server))
        else:
            server = listen(settings, settings.index, settings.bind, token)
            address = advertised_address(settings, server.port, socket.gethostname())
            registration = TaskRegistration(
                client,
                settings.cluster_name,
                settings.job,
                settings.index,
                address,
                devices=devices_of(server),
                on_lease=server.hold_lease,
                **common,
            )
            registration.start()
        registration.figures, registration.alive = server.figures, server.answers
        joint.attach(server)
        joint.wait_for_spec()
        with metrics_port(settings, registration.index, server, token.settings):
            announce(settings.job, registration.index, address)
            stop.wait()
            if joint.drain is not None:
                # the lease is kept meanwhile: nobody else takes the index while steps still run here
                grace, why = joint.drain
                server.stop(grace, why=f"is being drained ({why}): it takes no new work, another task does")
                ending = {"state": "stopped", "exit_code": 0, "reason": f"drained: {why}"[:500]}
    except StopSignalError as signal:
        ending = {"state": "stopped", "exit_code": stop.exit_code, "reason": f"stopped by {signal}"}
        raise
    except Exception as error:
        ending = {"state": "lost", "exit_code": 1, "reason": f"{type(error).__name__}: {error}"[:500]}
        raise
    finally:
        if registration is not None:
            registration.stop(timeout=RELEASE_S, **ending)
        if server is not None:
            server.stop(GRACE_S)
        client.close()
        if joint.lost is not None:
            raise click.ClickException(joint.lost)


def listen(settings: TaskSettings, index: int, bind: str, token: ShownToken) -> BackgroundServer:
    """A server that listens, and has the spec of the cluster as it is now.

    A client may dial a known address the moment that the port is open, without waiting for the task to be registered.
    """
    from tenfold_services.background import BackgroundServer
    from tenfold_services.server import TaskServer

    cluster = declared(settings, token)
    if index in cluster.get(settings.job, {}):
        # The spec's address of this task may be that of its previous process.
        cluster[settings.job][index] = ""
    server = BackgroundServer(
        TaskServer(
            cluster,
            settings.job,
            index,
            bind=bind,
            insecure=settings.insecure,
            gradients=gradient_of_op,
            access=token.settings,
            files=settings.files,
            link_port=settings.link_port,
        )
    )
    server.start()
    return server


def declared(settings: TaskSettings, token: ShownToken) -> dict[str, dict[int, str]]:
    """The cluster by one look at the control service; {} if it does not answer or knows no such cluster yet."""
    assert settings.control is not None
    with ControlClient(settings.control, token, LOOK_S, retry=NO_RETRY) as client:
        try:
            return addresses(client.spec(settings.cluster_name))
        except errors.OpError as error:
            log.info("the cluster is not known yet: %s", error.message)
            return {}


def reserved_port(bind: str) -> socket.socket:
    """As `reserve_port`, but raises ClickException."""
    try:
        return reserve_port(bind)
    except OSError as error:
        port = split_address(bind, least_port=0)[1]
        raise click.ClickException(
            f"cannot listen on {bind}: {taken(error, port)}. {OTHER_PORT}"
        ) from None
