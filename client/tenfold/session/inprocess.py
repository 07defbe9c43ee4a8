"""The servers of this process, so that a session with one of them as its target skips the network.

train/server_lib.py registers each server it starts; targets.py looks here before it opens a channel. The empty target
means one server shared by the whole process, of job "localhost", without a network listener, started on first use; and
another for sessions that ask for other devices.
TensorFlow does the same with its LocalMaster and DirectSession.
"""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING

from tenfold.server_gradients import gradient_of_op
from tenfold_core.loopback import same_host
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_services.background import BackgroundServer

_SCHEME = "grpc://"
#: Seconds that the shared server's steps get at interpreter exit.
_EXIT_GRACE = 0.5

_lock = threading.Lock()
#: host:port → the server that listens there. Only servers that run.
_servers: dict[str, BackgroundServer] = {}
#: (number of CPU devices, which GPUs) → the server behind the empty target. Each session there has its own variables.
_shared: dict[tuple[int, object], BackgroundServer] = {}


def register(target: str, server: BackgroundServer) -> None:
    """Makes sessions of `target` ("grpc://host:port") use `server` without a network."""
    with _lock:
        _servers[_address(target)] = server


def unregister(target: str) -> None:
    """Forgets `target`. Unknown targets are no error."""
    with _lock:
        _servers.pop(_address(target), None)


def find(target: str) -> BackgroundServer | None:
    """The server of this process that `target` names, or None. Never blocks on a server."""
    with _lock:
        return _servers.get(_address(target))


def running() -> list[BackgroundServer]:
    """The servers of this process, each once: those with a target before the shared ones. Never blocks on a server."""
    # without the lock, which is held while a shared server starts
    return list(dict.fromkeys((*list(_servers.values()), *list(_shared.values()))))


def shared_server(config: ConfigProto | None = None) -> BackgroundServer:
    """The server behind `Session("", config=config)`. Blocks while the first caller starts it.

    Raises InvalidArgumentError for GPUs that are not there.
    """
    from tenfold_services.worker.devices import cpu_count, gpu_options

    cpus, gpus = cpu_count(config), gpu_options(config)
    with _lock:
        if (cpus, gpus) not in _shared:
            from tenfold_services.background import BackgroundServer
            from tenfold_services.server import TaskServer

            devices = config_pb2.ConfigProto(device_count={"CPU": cpus})
            if gpus.count is not None:
                devices.device_count["GPU"] = gpus.count
            devices.gpu_options.visible_device_list = gpus.visible
            devices.gpu_options.per_process_gpu_memory_fraction = gpus.memory_fraction
            server = BackgroundServer(
                TaskServer(None, "localhost", 0, bind=None, config=devices, gradients=gradient_of_op)
            )
            server.start()
            if not _shared:
                atexit.register(stop_shared_server)
            _shared[cpus, gpus] = server
        return _shared[cpus, gpus]


def physical_gpus() -> tuple[tuple[int, str], ...]:
    """(memory in bytes, description) of each GPU that this process sees. Opens no session."""
    from tenfold_services.worker.devices import found_gpus

    return found_gpus()


def stop_shared_server() -> None:
    """Stops the servers behind `Session("")`; their variables are lost and the next use starts another one."""
    with _lock:
        servers = list(_shared.values())
        _shared.clear()
    if servers:
        atexit.unregister(stop_shared_server)
    for server in servers:
        server.stop(_EXIT_GRACE)


def _address(target: str) -> str:
    """The key of a target: loopback spellings become "localhost"."""
    host, separator, port = target.removeprefix(_SCHEME).rpartition(":")
    if not separator:
        return target
    return f"{same_host(host)}:{port}"


def _forget_all() -> None:
    """After a fork the servers' threads do not exist in the child; it reaches the parent's servers over the network."""
    global _lock
    _lock = threading.Lock()
    _servers.clear()
    _shared.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
