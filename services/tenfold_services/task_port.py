"""The port of a task: gRPC for all clients and, asked for over it, links for other Tenfold processes.

Opened and closed by server.py; loads our HTTP/2 server, or gRPC's own library where TENFOLD_GRPC=grpcio asks for it,
only then: docs/decisions/0022-http2-without-grpc-core.md. What is served is in rpc/*_service*.py.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.port_users import taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.access.credentials import Credentials
    from tenfold_core.access.gate import Gate
    from tenfold_link.aio.listener import LinkListener
    from tenfold_link.aio.methods import LinkMethod, PeerLink
    from tenfold_link.link_settings import LinkSettings
    from tenfold_protos.why_pb2 import TaskAnswer
    from tenfold_services.http2.http2_settings import Http2Settings, Transport
    from tenfold_services.master.master import Master

    from .finished import FinishedTasks
    from .http2.handler import UnaryHandler
    from .http2.server import Http2Server
    from .interfaces import TaskName
    from .limits import Limits
    from .rpc.grpcio_port import GrpcioPort
    from .rpc.service import TableService
    from .worker.worker import Worker


def endpoints(master: Master, worker: Worker) -> Callable[[PeerLink], dict[int, LinkMethod]]:
    """What a task answers over each of its links: the steps of sessions, and the calls between workers."""
    from .rpc.link_master_service import MasterEndpoint
    from .rpc.link_worker_service import WorkerEndpoint

    def methods(link: PeerLink) -> dict[int, LinkMethod]:
        return {**MasterEndpoint(link, master).methods(), **WorkerEndpoint(link, worker).methods()}

    return methods


@dataclass(eq=False)
class TaskPort:
    """Where `task` listens: on `host`, at `port` (0: any free one, which `port` says once it is open). On one loop."""

    task: TaskName
    host: str
    port: int
    limits: Limits
    #: What serves gRPC on the port.
    transport: Transport
    http2: Http2Settings
    link_settings: LinkSettings
    #: Says who is accepted.
    gate: Gate
    #: Shown to other tasks; with certificates, callers beyond this machine speak TLS.
    credentials: Credentials
    #: What is served over gRPC, once the port is open; and what accepts links.
    services: tuple[TableService, ...] = field(default=(), init=False)
    links: LinkListener | None = field(default=None, init=False)
    _listener: Http2Server | GrpcioPort | None = field(default=None, init=False)

    @property
    def is_open(self) -> bool:
        """Whether it was opened; stays so once it is closed."""
        return self._listener is not None

    async def open(
        self,
        master: Master,
        worker: Worker,
        finished: FinishedTasks,
        not_ready: Callable[[], str],
        waits: Callable[[str], list[str]],
        why: Callable[[], TaskAnswer],
    ) -> None:
        """Serves from now on; `not_ready()` says why the task takes no new work, if it does not, `waits(handle)` what a
        session's steps wait for here, `why()` why nothing goes on. Raises UnknownError saying why the port, or the one
        for links, cannot be had."""
        from tenfold_link.aio.listener import LinkListener

        from .rpc.examine_service import examine_service
        from .rpc.master_service import master_service
        from .rpc.own_services import health_service, link_service, peer_service, placement_service
        from .rpc.worker_service import worker_service

        links = LinkListener(
            self.task,
            endpoints(master, worker),
            self.link_settings,
            self.host.strip("[]"),
            certificates=self.credentials.certificates,
        )
        self.services = (
            master_service(master, self.task, self._where),
            worker_service(worker, self._where),
            link_service(links, self._where),
            peer_service(finished, worker.incarnation, self._where),
            placement_service(master, self._where),
            examine_service(self.credentials, master.other_tasks, self._where, self.link_settings, waits, why),
            health_service(not_ready, self._where),
        )
        try:
            await self._listen()
        except OSError as error:
            hint = ""
            if error.errno == errno.EADDRINUSE:
                hint = " Another port: in the cluster spec, or where this task only listens (`tenfold task --bind`)."
            raise errors.unknown(
                f"Could not start gRPC server: {self.task} cannot listen on {self.host}:{self.port}: "
                f"{taken(error, self.port)}.{hint}"
            ) from None
        await self._open_links(links)
        self.links = links

    async def _listen(self) -> None:
        """Raises OSError where the port cannot be had, InvalidArgumentError where the transport cannot do it."""
        certificates = self.credentials.certificates
        if self.transport == "grpcio":
            if certificates is not None:
                raise errors.invalid_argument(
                    "TENFOLD_GRPC=grpcio does not serve TLS; leave TENFOLD_TLS_CERT or it out."
                )
            from .rpc.aio_handlers import serve

            concurrent = self.limits.concurrent_rpcs
            self._listener, self.port = await serve(
                self.services, self.host, self.port, concurrent, self.http2, self.gate
            )
            return
        from .http2.server import Http2Server

        def find(path: str) -> UnaryHandler | None:
            return next((handler for service in self.services if (handler := service.find(path)) is not None), None)

        server = Http2Server(find, self.http2, self.gate, certificates)
        self.port = await server.start(self.host, self.port)
        self._listener = server

    async def _open_links(self, links: LinkListener) -> None:
        """Raises UnknownError, with the gRPC port closed again, where the port for links cannot be had."""
        port = self.link_settings.port
        try:
            if port == self.port and self.link_settings.mode != "off":
                raise OSError(errno.EADDRINUSE, "the task itself serves gRPC there")
            await links.start()
        except OSError as error:
            assert self._listener is not None
            await self._listener.stop(0)
            self._listener = None
            why = "it serves gRPC there itself" if port == self.port else taken(error, port)
            raise errors.unknown(
                f"{self.task} cannot listen for links on {self.host}:{port}: {why}. Another port: `tenfold task "
                "--link-port` (TENFOLD_LINK_PORT), where 0 takes a free one; each task of a machine needs its own."
            ) from None

    async def close_links(self, reason: str) -> None:
        """First of closing. Raises nothing without links."""
        if self.links is not None:
            await self.links.stop(reason)

    async def close(self) -> None:
        """Calls that still run are cancelled."""
        if self._listener is not None:
            await self._listener.stop(0.1)

    def _where(self) -> str:
        return f"{self.task} at {self.host}:{self.port}"
