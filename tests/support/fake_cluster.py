"""What the tests of the master share: a cluster of scripted workers without sockets, kernels or time.

Not used by the services themselves. A worker answers each call as its script says and else sensibly;
`check_consumed` fails on replies that were not asked for.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_protos import config_pb2, device_attributes_pb2
from tenfold_services.interfaces import Life, RunGraphResult, RunRequest
from tenfold_services.master.env import MasterEnv
from tenfold_services.master.limits import MasterLimits
from tenfold_services.master.master import Master

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef

DeviceProto = device_attributes_pb2.DeviceAttributes


def fake_device(task: str, device_type: str = "CPU", index: int = 0, incarnation: int = 1) -> DeviceAttributes:
    """`task` may be short: "/job:ps/task:0"."""
    full = task if "/replica:" in task else task.replace("/task:", "/replica:0/task:")
    name = f"{full}/device:{device_type}:{index}"
    return DeviceProto(name=name, device_type=device_type, incarnation=incarnation, memory_limit=1 << 28)


class Gate:
    """A reply that waits: `entered` is set once a worker waits there, `release` lets it go on."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self._released = asyncio.Event()
        #: The waiting call was cancelled.
        self.cancelled = asyncio.Event()

    def release(self) -> None:
        self._released.set()

    async def wait(self) -> None:
        self.entered.set()
        try:
            await self._released.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


class ScriptedWorker:
    """One task's worker. A reply is an exception to raise, a Gate to wait at, or a value to return."""

    def __init__(self, task: str, incarnation: int) -> None:
        self.task = task
        self.devices = [fake_device(task, incarnation=incarnation)]
        self.graphs: dict[str, GraphDef] = {}
        #: (method, the arguments that tests ask about), in order.
        self.calls: list[tuple[Any, ...]] = []
        self._replies: dict[str, deque[Any]] = defaultdict(deque)

    def reply(self, method: str, *replies: Any) -> None:
        """What the next calls of `method` do, one reply a call."""
        self._replies[method].extend(replies)

    def called(self, method: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == method]

    def check_consumed(self) -> None:
        left = {method: list(replies) for method, replies in self._replies.items() if replies}
        assert not left, f"{self.task}: replies that were not asked for: {left}"

    async def _answer(self, method: str, *arguments: Any, default: Any = None) -> Any:
        self.calls.append((method, *arguments))
        if not self._replies[method]:
            return default
        reply = self._replies[method].popleft()
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, Gate):
            await reply.wait()
            return default
        return reply

    async def get_status(self, timeout: float | None = None) -> list[DeviceAttributes]:  # noqa: ASYNC109 - the interface
        devices: list[DeviceAttributes] = await self._answer("get_status", default=self.devices)
        return devices

    async def create_worker_session(self, session_handle: str, server_def: Any, isolate: bool, master: Life) -> None:
        await self._answer("create_worker_session", session_handle, isolate, *master)

    async def delete_worker_session(self, session_handle: str) -> None:
        await self._answer("delete_worker_session", session_handle)

    async def register_graph(self, session_handle: str, graph_def: GraphDef, config: Any) -> str:
        handle = f"{self.task}#{len(self.graphs)}"
        self.graphs[handle] = graph_def
        result: str = await self._answer("register_graph", session_handle, handle, default=handle)
        return result

    async def deregister_graph(self, session_handle: str, graph_handle: str) -> None:
        await self._answer("deregister_graph", session_handle, graph_handle)

    async def run_graph(self, request: RunRequest) -> RunGraphResult:
        _, graph_handle, step_id, feeds, fetches, _ = request
        values = {key: np.float32(number) for number, key in enumerate(fetches)}
        answer: RunGraphResult = await self._answer(
            "run_graph", graph_handle, step_id, dict(feeds), list(fetches), default=RunGraphResult(values)
        )
        return answer

    async def recv_tensor(self, step_id: int, key: str) -> tuple[Any, bool]:
        raise errors.UnimplementedError(None, None, "scripted workers send nothing")

    async def cleanup_graph(self, step_id: int) -> None:
        await self._answer("cleanup_graph", step_id)

    async def cleanup_all(self, containers: Sequence[str]) -> None:
        await self._answer("cleanup_all", list(containers))


class FakeCluster:
    """Scripted workers by task name, as ClusterWorkers are; the first task is the master's own."""

    def __init__(self, *tasks: str) -> None:
        full = [task.replace("/task:", "/replica:0/task:") for task in tasks]
        self.by_task = {task: ScriptedWorker(task, number) for number, task in enumerate(full, 1)}
        self.own = full[0]

    def __getitem__(self, task: str) -> ScriptedWorker:
        """By short name."""
        return self.by_task[task.replace("/task:", "/replica:0/task:")]

    def tasks(self) -> list[str]:
        return sorted(self.by_task)

    def address(self, task: str) -> str:
        return f"host-of{task.replace('/', '-')}:2222"

    def worker(self, task: str) -> ScriptedWorker:
        return self.by_task[task]

    async def devices(
        self,
        task: str,
        *,
        refresh: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface
    ) -> list[DeviceAttributes]:
        return await self.by_task[task].get_status(timeout)

    def master(self, limits: MasterLimits | None = None) -> Master:
        """A master on the first task. Every op has a CPU kernel."""
        env = MasterEnv(self.own, self, config_pb2.ConfigProto())
        return Master(env, limits=limits or MasterLimits(), devices_with_kernel=lambda op, attrs: ("CPU",))

    def check_consumed(self) -> None:
        for worker in self.by_task.values():
            worker.check_consumed()
