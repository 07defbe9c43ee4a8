"""Tasks in this process that are reached through proxies alone.

    client ── CallProxy ──► worker ── CallProxy ──► ps         and, where there are links,
    client ── FrameProxy ─► worker ── FrameProxy ─► ps

Each task knows the others by their proxies' addresses, and clients are given the worker's. What is left at the tasks
once all sessions are closed is told by `left_over`.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING
from unittest import mock

from support.faults.call_proxy import CallProxy
from support.faults.frame_proxy import FrameProxy
from support.moments import PATIENCE
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Tasks by the names that tests give them.
TWO_TASKS = {"worker": ("worker", 0), "ps": ("ps", 0)}
THREE_TASKS = {**TWO_TASKS, "other": ("ps", 1)}
#: Seconds that a caller waits for what never comes, where a test tries that; and what makes tasks as impatient.
HURRIED_SECONDS = 1.0
HURRIED = dict.fromkeys(
    (
        "TENFOLD_MASTER_STATUS_CALL_SECONDS",
        "TENFOLD_MASTER_CLEANUP_SECONDS",
        "TENFOLD_MASTER_REGISTER_SECONDS",
        "TENFOLD_MASTER_LIST_DEVICES_SECONDS",
        "TENFOLD_TASK_SETUP_SECONDS",
        "TENFOLD_TASK_CLEANUP_SECONDS",
    ),
    str(HURRIED_SECONDS),
)


def only_ps() -> ConfigProto:
    """The configuration of a session with a ps that runs nodes of tasks of that job alone."""
    config = ConfigProto(device_filters=["/job:ps"])
    config.graph_options.place_pruned_graph = True
    return config


class ProxiedCluster:
    """The servers and the proxies before them, by name."""

    def __init__(
        self,
        servers: Mapping[str, BackgroundServer],
        calls: Mapping[str, CallProxy],
        frames: Mapping[str, FrameProxy],
    ) -> None:
        self.servers, self.calls, self.frames = servers, calls, frames

    @property
    def target(self) -> str:
        """The worker's, behind its proxy."""
        return f"grpc://{self.calls['worker'].address}"

    def settle(self) -> None:
        """Closes the sessions that are left at the masters, and waits until no task has to be told of any."""
        for server in self.servers.values():
            server.call(lambda server=server: _settle(server), PATIENCE)

    def left_over(self) -> dict[str, int]:
        """What the tasks still keep of sessions and steps, by "ps: steps" and so on; {} where there is nothing."""
        found: dict[str, int] = {}
        for name, server in self.servers.items():
            told = server.call(lambda server=server: _left_over(server), PATIENCE)
            found |= {f"{name}: {what}": count for what, count in told.items() if count}
        return found

    def lent(self) -> int:
        """Blocks of shared memory that the tasks have lent to those that have opened a link to them."""
        links = [link for server in self.servers.values() for link in server.server._port.links.links]
        return sum(link._arena.taken for link in links if link._arena is not None)

    def clear(self) -> None:
        """Whatever happened before: all pass, and nothing is left."""
        for proxy in (*self.calls.values(), *self.frames.values()):
            proxy.script.clear()
        self.settle()
        self.sweep()

    def cut_links(self) -> None:
        """Ends all links."""
        for proxy in self.frames.values():
            proxy.cut()

    def sweep(self) -> None:
        """What the tasks do about steps that nobody ended, as if it were that late."""
        for server in self.servers.values():
            server.call(lambda server=server: _sweep(server), PATIENCE)


async def _settle(server: BackgroundServer) -> None:
    for handle in [each.handle for each in server.master.open_sessions]:
        await server.master.close_session(handle)
    await server.master._closing.settled()
    await server.master._left._loops.settled(PATIENCE)


async def _sweep(server: BackgroundServer) -> None:
    server.server.worker.steps.sweep(time.monotonic() + server.server.limits.idle_step_seconds + 1)


async def _left_over(server: BackgroundServer) -> dict[str, int]:
    worker, master = server.server.worker, server.master
    return {
        "sessions": len(master.open_sessions),
        "sessions at the worker": sum(1 for session in worker._sessions if session.handle),
        "graphs": sum(len(session.graphs) for session in worker._sessions),
        "steps": len(worker.steps),
        "runs": worker.running,
    }


@contextlib.contextmanager
def proxied_cluster(
    environment: Mapping[str, str], tasks: Mapping[str, tuple[str, int]] = TWO_TASKS
) -> Iterator[ProxiedCluster]:
    """A cluster in this environment, which clients of this process are in as well."""
    jobs: dict[str, list[str]] = {}
    for job, _ in tasks.values():
        jobs.setdefault(job, []).append("")
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict("os.environ", environment))
        servers = {name: stack.enter_context(BackgroundServer(TaskServer(jobs, *task))) for name, task in tasks.items()}
        frames = {name: stack.enter_context(FrameProxy()) for name in tasks}
        calls = {
            name: stack.enter_context(CallProxy(server.port, {"OpenLink": frames[name].rewrite}))
            for name, server in servers.items()
        }
        addresses: dict[str, dict[int, str]] = {}
        for name, (job, index) in tasks.items():
            addresses.setdefault(job, {})[index] = calls[name].address
        for server in servers.values():
            server.update_cluster(addresses)
        yield ProxiedCluster(servers, calls, frames)
