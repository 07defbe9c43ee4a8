"""`serve`: the control service as a process. Used by the `tenfold control` command.

Reads nothing from the environment itself: the command line passes everything in. Refuses to listen beyond loopback
without a token, because a graph is a program: a client that can run steps can run code.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import uvicorn
from sqlalchemy.exc import SQLAlchemyError

from tenfold_control_api.app import create_app
from tenfold_control_api.database import DatabaseError, shown
from tenfold_control_api.http1 import bounded_http
from tenfold_control_api.service_settings import Settings
from tenfold_core import collector, telemetry
from tenfold_core.access.tls import FreshContext
from tenfold_core.loopback import WILDCARDS, is_loopback
from tenfold_core.open_files import raise_limit
from tenfold_core.port_users import taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI

    from tenfold_control_api.masters import MasterFactory


log = logging.getLogger(__name__)


class InsecureBindError(ValueError):
    """A bind beyond loopback without a token."""


class ListenError(Exception):
    """The port cannot be had. The message says why, who has it, and what to do."""


class ControlServer(uvicorn.Server):
    """uvicorn, which ends long-polls before it waits for open requests, and prints where it listens. With certificates
    it speaks HTTPS alone."""

    def __init__(self, app: FastAPI, *, host: str, port: int, settings: Settings) -> None:
        """Raises InvalidArgumentError for certificates that cannot be used."""
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                http=bounded_http(settings, app.state.entry),
                ws="none",
                # longer than clients keep an idle connection (httpx: 5 s), else a step may go to one that is closing
                timeout_keep_alive=15,
                log_config=None,  # the process's logging is its own
                access_log=False,  # EdgeMiddleware has a better one
                lifespan="off",  # startup and shutdown run the lifespan, so that its errors are raised unchanged
                timeout_graceful_shutdown=max(1, round(settings.grace)),
                server_header=False,
            )
        )
        certificates = settings.access().credentials().certificates
        if certificates is not None:
            # uvicorn's own options read the files once
            self.config.load()
            self.config.ssl = FreshContext.of(lambda: certificates.server_context("http/1.1"), server=True)
        self._scheme = "http" if certificates is None else "https"
        self._app = app
        self._lifespan = contextlib.AsyncExitStack()
        #: Called with the real address once requests are accepted.
        self.on_started: Callable[[str], None] | None = None
        self.address = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """1 opens the database, starts sweepers · 2 listens. Raises DatabaseError, ListenError."""
        await self._lifespan.enter_async_context(self._app.router.lifespan_context(self._app))
        try:
            await super().startup(sockets or listening_sockets(self.config.host, self.config.port))
        except BaseException:
            await self._lifespan.aclose()
            raise
        if self.started:
            port = self.servers[0].sockets[0].getsockname()[1]
            host = self.config.host
            self.address = f"{self._scheme}://{f'[{host}]' if ':' in host else host}:{port}"
            control = self._app.state.control
            control.serve_at(control.settings.advertise or reachable(self.address))
            log.info("serving at %s", self.address)
            if self.on_started is not None:
                self.on_started(self.address)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """1 runs that end with the service · 2 ends waits · 3 open requests get `settings.grace` · 4 calls to masters,
        sweepers, database."""
        # it still listens: the supervisors report their ends
        await self._app.state.control.end_runs()
        self._app.state.control.begin_stop()
        await super().shutdown(sockets)
        await self._lifespan.aclose()


def listening_sockets(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen at each address of `host`, all on one port; port 0 takes a free one. Raises ListenError."""
    bound: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, (address, *_) in dict.fromkeys(found):
            # every address of IPv6 is every one of IPv4, too
            both = address == "::" and socket.has_dualstack_ipv6()
            made = socket.create_server((address, port), family=family, backlog=2048, dualstack_ipv6=both)
            bound.append(made)
            # what is accepted inherits it; asyncio sets it only where the protocol is named. Without it the second part
            # of an answer waits 40 ms for the client to acknowledge the first
            bound[-1].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            port = bound[-1].getsockname()[1]
    except OSError as error:
        for each in bound:
            each.close()
        hint = " End that process, or choose" if error.errno == errno.EADDRINUSE else " Choose"
        raise ListenError(
            f"the control service cannot listen on {host}:{port}: {taken(error, port)}.{hint} another port with --port "
            "(TENFOLD_HTTP_PORT); 0 takes a free one."
        ) from None
    return bound


def reachable(address: str) -> str:
    """`address` as a process of this machine dials it: a wildcard is where the service listens, not where it is."""
    return address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def check_bind(host: str, guarded: bool, insecure: bool) -> None:
    """Raises InsecureBindError for a listener beyond loopback that asks for no token and no certificate."""
    if is_loopback(host) or guarded or insecure:
        return
    raise InsecureBindError(
        f"refusing to listen on {host} without a token: a program that reaches the control service could run code on "
        "every task. Set TENFOLD_TOKEN_FILE or TENFOLD_TOKEN (clients send it as a bearer token; `tenfold token new` "
        "makes one) or TENFOLD_TLS_CERT, listen on 127.0.0.1, or pass --insecure if the network itself is closed."
    )


def answered_hosts(host: str, allowed: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The names that a service answers which listens on `host`: those that are allowed, and its own."""
    if allowed is None:
        return None
    own = [] if host in WILDCARDS else [host]
    if not is_loopback(host):
        own.append(socket.gethostname())
    return tuple(dict.fromkeys(name.lower() for name in (*allowed, *own)))


def serve(
    host: str = "127.0.0.1",
    port: int = 8080,
    database: str | None = None,
    *,
    token: str | None = None,
    token_file: str | None = None,
    insecure: bool = False,
    allow_runs: bool = False,
    models_folder: str | None = None,
    trainings_folder: str | None = None,
    settings: Settings | None = None,
    master_factory: MasterFactory | None = None,
    announce: Callable[[str], None] | None = None,
) -> int:
    """Runs the control service until SIGINT or SIGTERM; returns the exit code. Port 0 picks a free one.

    `announce` gets the address once requests are accepted (default: printed to stdout). `settings` gives the bounds
    (default: the environment's); token and allow_runs are taken from the other arguments, and the database, the
    folders of models and of trainings and the token file unless they are None. Raises InsecureBindError before anything
    is opened.
    """
    raise_limit()
    telemetry.start("tenfold-control")
    base = settings if settings is not None else Settings.from_environment()
    base = replace(base, token=token, token_file=token_file or base.token_file, insecure=insecure)
    guarded = base.has_tokens or base.tls_cert is not None
    check_bind(host, guarded, insecure)
    if allow_runs and not guarded and not is_loopback(host):
        raise InsecureBindError(
            f"refusing to start programs for everybody who reaches {host}: --allow-runs needs a token there "
            "(TENFOLD_TOKEN), also with --insecure."
        )
    if insecure and not base.has_tokens:
        log.warning("--insecure: anyone who reaches %s:%d may run code on every task.", host, port)
    final = replace(
        base,
        database=database or base.database,
        allowed_hosts=answered_hosts(host, base.allowed_hosts),
        answer_addresses=base.answer_addresses or not is_loopback(host),
        allow_runs=allow_runs,
        models_folder=models_folder or base.models_folder,
        trainings_folder=trainings_folder or base.trainings_folder,
    )
    server = ControlServer(create_app(final, master_factory), host=host, port=port, settings=final)
    server.on_started = announce if announce is not None else _print_address
    collector.settle()
    try:
        asyncio.run(server.serve())
    except KeyboardInterrupt:
        pass
    except (DatabaseError, SQLAlchemyError, OSError) as error:
        print(f"tenfold control: the database {shown(final.database)!r} cannot be used: {error}", file=sys.stderr)
        return 1
    except ListenError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0 if server.started else 1


def _print_address(address: str) -> None:
    print(f"control service at {address}", flush=True)
