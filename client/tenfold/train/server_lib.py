"""`tf.train.Server`: one task of a cluster, served from a thread of this process.

A thin layer over tenfold_services' BackgroundServer: it determines the task (ServerDef) and where it listens, and
registers the server with session/inprocess.py, so that sessions of this process reach it without a network. Follows TF
1.15's training/server_lib.py.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.runs import by_hand, given_place
from tenfold.runs.program_end import how_it_ended
from tenfold.server_gradients import gradient_of_op
from tenfold.session import inprocess
from tenfold_core import errors
from tenfold_core.access.credentials import shown_token
from tenfold_core.address import bind_address, split_address
from tenfold_core.cluster_spec import ClusterSpec
from tenfold_protos import config_pb2, tensorflow_server_pb2

if TYPE_CHECKING:
    from types import TracebackType

    from tenfold.runs.server_registration import ServerRegistration
    from tenfold_protos.tensorflow_server_pb2 import ServerDef

__all__ = ["ClusterSpec", "Server"]

#: Seconds that running steps get when the interpreter ends.
_EXIT_GRACE = 0.5
#: Seconds for a control service to answer whether servers stop with the workers.
_CONTROL_S = 5.0
#: DeepRec's, which name gRPC for the master and a faster way for tensors, as links are: taken, and the same as "grpc".
DEEPRECS_PROTOCOLS = ("grpc++", "star_server", "star_server_lite")


class Server:
    """One task: its devices, its master service and its worker service.

    `server_or_cluster_def` is a ServerDef, or a cluster in any form that ClusterSpec takes; the other arguments
    override it, and may be left out where the cluster allows only one value. The server runs until `stop()` or the end
    of the process, even if this object is dropped. Also a context manager that stops the server.

    `insecure=True` (or TENFOLD_INSECURE=1 in the environment) lets a task whose address is not a loopback one
    listen in the clear; without it such a server refuses to start. `link_port` (or TENFOLD_LINK_PORT) is where links
    over TCP from other machines come in, for firewalls; by default any free port.

    Raises TypeError or ValueError for a definition that is not complete or contradicts itself, NotFoundError for a
    protocol that is not served, and on starting an `OpError` saying why it cannot listen.
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: config_pb2.ConfigProto | None = None,
        start: bool = True,
        *,
        insecure: bool | None = None,
        link_port: int | None = None,
    ) -> None:
        self._server_def = make_server_def(server_or_cluster_def, job_name, task_index, protocol, config)
        if insecure is None:
            insecure = _is_set("TENFOLD_INSECURE")
        from tenfold_services.background import BackgroundServer
        from tenfold_services.server import TaskServer

        definition = self._server_def
        self._server = BackgroundServer(
            TaskServer(
                definition.cluster,
                definition.job_name,
                definition.task_index,
                bind=_bind_address(definition),
                config=definition.default_session_config,
                protocol=definition.protocol,
                insecure=insecure,
                gradients=gradient_of_op,
                link_port=link_port,
            )
        )
        self._started = False
        #: At the control service that TENFOLD_CONTROL names.
        self._registration: ServerRegistration | None = None
        if start:
            self.start()

    def start(self) -> None:
        """Starts listening. Blocks until the port is open. A second call does nothing.

        If TENFOLD_CONTROL names a control service, the task registers there (cluster TENFOLD_CLUSTER_NAME, `default`),
        and the program is listed as a run. That neither blocks nor fails.
        """
        if self._started:
            return
        # a place that a control service gave this program: its port was kept for the server until now
        given = given_place.take_over(self._server_def.job_name, self._server_def.task_index)
        self._server.start()
        self._started = True
        for target in self._targets():
            inprocess.register(target, self._server)
        definition = self._server_def
        cluster = ClusterSpec(definition.cluster)
        self._registration = by_hand.serve(definition.job_name, definition.task_index, cluster, self._server, given)
        # The atexit table keeps the server alive when this object is dropped, as TensorFlow's server stays alive.
        atexit.register(self._stop_at_exit)

    def join(self) -> None:
        """Blocks until the server has shut down, which is for ever unless another thread stops it.

        With TENFOLD_STOP_WITH_WORKERS=1 in the environment (`tenfold run` sets it) a parameter server shuts down once
        every worker, and the chief, has finished; a worker that joins, once the chief or the first worker has. The
        same holds if TENFOLD_CONTROL names a control service whose cluster (TENFOLD_CLUSTER_NAME) has it set.
        On the main thread the program ends then, with exit code 0: raises SystemExit(0). No TensorFlow program expects
        to continue after `join`, and many have code there that is meant for workers. On other threads it returns.
        """
        ended = self._server.join(with_workers=_is_set("TENFOLD_STOP_WITH_WORKERS") or _stops_by_control())
        if ended and threading.current_thread() is threading.main_thread():
            sys.exit(0)

    def stop(self, grace: float = 5.0) -> None:
        """Stops the server: running steps get `grace` seconds, then end with an error. Idempotent.

        The server tells the other tasks of the cluster that this one has finished, so that they do not wait for it.
        """
        self._stop(grace, finished=True)

    def _stop(self, grace: float, *, finished: bool) -> None:
        if not self._started:
            return
        self._started = False
        for target in self._targets():
            inprocess.unregister(target)
        atexit.unregister(self._stop_at_exit)
        if self._registration is not None:
            by_hand.leave(self._registration, finished)
        self._server.stop(grace, finished=finished)

    @property
    def server_def(self) -> ServerDef:
        """Which task this is and what cluster it belongs to."""
        return self._server_def

    @property
    def target(self) -> str:
        """The target with which a session reaches this server, "grpc://host:port"."""
        return self._server.target

    @staticmethod
    def create_local_server(config: config_pb2.ConfigProto | None = None, start: bool = True) -> Server:
        """A cluster of one task, `/job:local/task:0`, on a free port of this host."""
        # a fixed port of the environment is the one of the program's task
        return Server({"local": ["localhost:0"]}, protocol="grpc", config=config, start=start, link_port=0)

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop(5.0, finished=kind is None)

    def _targets(self) -> set[str]:
        """Every target that leads here: the open port, and the address in the cluster if it has that port."""
        definition = self._server_def
        address = ClusterSpec(definition.cluster).task_address(definition.job_name, definition.task_index)
        same_port = address.rpartition(":")[2] == self.target.rpartition(":")[2]
        return {self.target, f"grpc://{address}"} if same_port else {self.target}

    def _stop_at_exit(self) -> None:
        with contextlib.suppress(Exception):
            # a program that ended with an error may be started again: it has not finished
            self._stop(_EXIT_GRACE, finished=how_it_ended()["state"] == "succeeded")


def _is_set(variable: str) -> bool:
    """Whether a switch in the environment is on."""
    return os.environ.get(variable, "").lower() in ("1", "true", "yes")


def _stops_by_control() -> bool:
    """Whether a control service, if the environment names one, wants servers to stop with the workers. Bounded."""
    url = os.environ.get("TENFOLD_CONTROL")
    if not url:
        return False
    from tenfold.control import ControlClient
    from tenfold.control.retry import NO_RETRY

    name = os.environ.get("TENFOLD_CLUSTER_NAME") or "default"
    try:
        with ControlClient(url, shown_token(), _CONTROL_S, retry=NO_RETRY) as client:
            return client.spec(name).stop_with_workers
    except errors.OpError as error:
        logging.warning("The control service does not say whether to stop with the workers: %s", error.message)
        return False


def make_server_def(
    server_or_cluster_def: Any,
    job_name: str | None,
    task_index: int | None,
    protocol: str | None,
    config: config_pb2.ConfigProto | None,
) -> ServerDef:
    """The complete ServerDef. Raises as the constructor of `Server` does."""
    if config is not None and not isinstance(config, config_pb2.ConfigProto):
        raise TypeError(f'Argument `config` must be a tf.ConfigProto, but got "{type(config).__name__}"')
    definition = tensorflow_server_pb2.ServerDef()
    if isinstance(server_or_cluster_def, tensorflow_server_pb2.ServerDef):
        definition.CopyFrom(server_or_cluster_def)
        if job_name is not None:
            definition.job_name = job_name
        if task_index is not None:
            definition.task_index = task_index
        definition.protocol = protocol or definition.protocol or "grpc"
        cluster = ClusterSpec(definition.cluster)
    else:
        try:
            cluster = ClusterSpec(server_or_cluster_def)
        except TypeError as error:
            raise TypeError(
                "Could not convert `server_or_cluster_def` to a `tf.train.ServerDef` or `tf.train.ClusterSpec`: "
                f"{error}"
            ) from None
        if not cluster.jobs:
            raise ValueError(
                "The cluster has no jobs, so there is no task for this server to be. A cluster that is read from "
                "TF_CONFIG is empty where that is not set: `tenfold run` sets it for the programs that it starts."
            )
        if job_name is None:
            if len(cluster.jobs) != 1:
                raise ValueError(f"Must specify an explicit `job_name`. The cluster has the jobs {cluster.jobs}")
            job_name = cluster.jobs[0]
        if task_index is None:
            indices = cluster.task_indices(job_name)
            if len(indices) != 1:
                raise ValueError(f"Must specify an explicit `task_index`. Job {job_name!r} has the tasks {indices}")
            task_index = indices[0]
        definition.cluster.CopyFrom(cluster.as_cluster_def())
        definition.job_name = job_name
        definition.task_index = task_index
        definition.protocol = protocol or "grpc"
    # Raises ValueError, saying what there is, if the cluster has no such job or task.
    cluster.task_address(definition.job_name, definition.task_index)
    if definition.protocol in DEEPRECS_PROTOCOLS:
        definition.protocol = "grpc"
    if definition.protocol != "grpc":
        raise errors.NotFoundError(
            None, None, f"No server serves the protocol {definition.protocol!r}; the protocol served is 'grpc'"
        )
    if config is not None:
        definition.default_session_config.MergeFrom(config)
    return definition


def _bind_address(definition: ServerDef) -> str:
    """Where the task listens: its own address if that is a loopback one, else its port on all interfaces.

    Raises InvalidArgumentError for an address without a port.
    """
    address = ClusterSpec(definition.cluster).task_address(definition.job_name, definition.task_index)
    if definition.port:
        address = f"{address.rpartition(':')[0] or address}:{definition.port}"
    try:
        return bind_address(*split_address(address, least_port=0))
    except ValueError:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"The address {address!r} of /job:{definition.job_name}/task:{definition.task_index} must be "
            '"host:port" with a port number',
        ) from None
