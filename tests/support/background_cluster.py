"""A cluster of background servers in this process, on ports that the system chose."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@contextlib.contextmanager
def background_cluster(jobs: Mapping[str, int]) -> Iterator[dict[tuple[str, int], BackgroundServer]]:
    """The servers of so many tasks of each job, by (job, index); each knows the addresses of all."""
    with contextlib.ExitStack() as stack:
        empty = {job: dict.fromkeys(range(count), "") for job, count in jobs.items()}
        servers = {
            (job, index): stack.enter_context(BackgroundServer(TaskServer(empty, job, index)))
            for job, count in jobs.items()
            for index in range(count)
        }
        addresses = {
            job: {index: f"localhost:{servers[job, index].port}" for index in range(count)}
            for job, count in jobs.items()
        }
        for server in servers.values():
            server.update_cluster(addresses)
        yield servers
