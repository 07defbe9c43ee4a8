"""The master of one task: sessions by handle, and what concerns no single session.

Implements interfaces.MasterInterface; called by rpc/master_service.py and by in-process sessions. A client's session,
graph and steps are in master_session.py. Error texts follow TensorFlow's master.cc.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.framework import errors
from tenfold_kernels import registry
from tenfold_protos import config_pb2
from tenfold_services.graph.device_set import DeviceSet
from tenfold_services.master.device_finder import find_devices
from tenfold_services.master.limits import DEFAULT_MASTER_LIMITS, MasterLimits
from tenfold_services.master.master_session import CLOSED_BY_CLIENT, MasterSession
from tenfold_services.master.request_ids import RecentRequests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_protos.config_pb2 import CallableOptions, ConfigProto, RunMetadata, RunOptions
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_services.graph.place import DevicesWithKernel
    from tenfold_services.interfaces import MasterEnv, Value

_log = logging.getLogger("tenfold.master")


class Master:
    """The master service. All methods are coroutines of the server's event loop; sessions run beside each other."""

    def __init__(
        self,
        env: MasterEnv,
        *,
        limits: MasterLimits = DEFAULT_MASTER_LIMITS,
        devices_with_kernel: DevicesWithKernel = registry.devices_with_kernel,
    ) -> None:
        self._env = env
        self._limits = limits
        self._devices_with_kernel = devices_with_kernel
        self._sessions: dict[str, MasterSession] = {}
        #: Sessions that are being created; they count towards the limit.
        self._creating = 0
        self._requests: RecentRequests[tuple[list[Value], RunMetadata]] = RecentRequests(
            limits.remembered_requests, limits.remembered_answers, limits.remembered_answer_bytes, _size_of_answer
        )
        self._stopping = False
        #: Sessions that are being closed; owned here, because the client that asked may go away meanwhile.
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def session_handles(self) -> list[str]:
        return list(self._sessions)

    async def create_session(self, graph_def: GraphDef, config: ConfigProto) -> tuple[str, int]:
        """(session handle of 16 hex digits, graph version 0).

        Waits for every task that the session may use. Raises DeadlineExceededError naming those that did not answer,
        InvalidArgumentError for a graph that is malformed or cannot be placed, ResourceExhaustedError at the limit.
        """
        if self._stopping:
            raise errors.UnavailableError(None, None, f"The master of {self._env.task} is shutting down.")
        if len(self._sessions) + self._creating >= self._limits.sessions:
            raise errors.ResourceExhaustedError(
                None,
                None,
                f"The master of {self._env.task} has {len(self._sessions)} sessions open, which is its limit; "
                "close some first.",
            )
        merged = config_pb2.ConfigProto()
        merged.CopyFrom(self._env.default_config)
        merged.MergeFrom(config)
        if merged.cluster_def.job:
            raise errors.UnimplementedError(
                None,
                None,
                "ConfigProto.cluster_def: a session cannot bring a cluster of its own; the server's is used.",
            )
        self._creating += 1
        try:
            session = await self._create(graph_def, merged)
        finally:
            self._creating -= 1
        self._sessions[session.handle] = session
        return session.handle, session.graph_version

    async def _create(self, graph_def: GraphDef, config: ConfigProto) -> MasterSession:
        loop = asyncio.get_running_loop()
        seconds = config.operation_timeout_in_ms / 1000 or self._limits.create_session_seconds
        deadline = loop.time() + seconds
        found = await find_devices(self._env, config.device_filters, seconds, self._limits)
        devices = DeviceSet(found.devices, self._client_device(found.devices), found.excluded_tasks)
        session = MasterSession(
            secrets.token_hex(8), self._env, config, devices, self._devices_with_kernel, self._limits
        )
        session.load(graph_def)
        try:
            await session.create_worker_sessions(max(0.1, deadline - loop.time()))
            if self._stopping:
                raise errors.UnavailableError(None, None, f"The master of {self._env.task} is shutting down.")
        except BaseException:
            # Some workers have the session. Not awaited: the client may be gone already.
            self._close_in_background(session, "The session could not be created.")
            raise
        return session

    def _client_device(self, devices: Sequence[DeviceAttributes]) -> str:
        """Where feeds enter and fetches leave: the first CPU of this task."""
        for device in devices:
            if device.name.startswith(f"{self._env.task}/") and device.device_type == "CPU":
                return device.name
        raise errors.InternalError(None, None, f"{self._env.task} reports no CPU device of its own")

    async def extend_session(self, handle: str, graph_def: GraphDef, current_version: int) -> int:
        """The new graph version. Raises AbortedError on another `current_version` than the master's."""
        return self._session(handle).extend(graph_def, current_version)

    async def run_step(
        self,
        handle: str,
        feeds: Mapping[str, Value],
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions,
        request_id: int = 0,
    ) -> tuple[list[Value], RunMetadata]:
        """The fetched values in the order of `fetches`. A request_id other than 0 seen before gets the first answer."""
        session = self._session(handle)
        if request_id == 0:
            return await session.run_step(feeds, fetches, targets, options)
        return await self._requests.run(
            (handle, request_id), lambda: session.run_step(feeds, fetches, targets, options)
        )

    async def close_session(self, handle: str) -> None:
        """Cancels the session's steps and ends it. Bounded. AbortedError for a handle that is not known."""
        session = self._session(handle, " Possibly, this master has restarted.")
        del self._sessions[handle]
        await asyncio.shield(self._close_in_background(session, CLOSED_BY_CLIENT))

    async def list_devices(self, handle: str) -> list[DeviceAttributes]:
        """All devices of the session, the master's own task first; of the cluster for an empty handle.

        Without a session, tasks that do not answer within a few seconds are left out.
        """
        if handle:
            if handle not in self._sessions:
                raise errors.InvalidArgumentError(
                    None, None, f"Session {handle} is not found. Possibly, this master has restarted."
                )
            return self._sessions[handle].list_devices()
        found = list(await self._env.local_worker.get_status())
        others = [task for task in self._env.workers.tasks() if task != self._env.task]
        seconds = self._limits.list_devices_seconds

        async def one(task: str) -> list[DeviceAttributes]:
            async with asyncio.timeout(seconds):
                return await self._env.workers.devices(task, timeout=seconds)

        for answer in await asyncio.gather(*(one(task) for task in others), return_exceptions=True):
            if isinstance(answer, list):
                found.extend(answer)
            elif not isinstance(answer, (errors.OpError, TimeoutError)):
                raise answer
        return found

    async def reset(self, containers: Sequence[str]) -> None:
        """Closes all sessions and clears the containers (the default one if none is named) on every task."""
        await self._close_all(CLOSED_BY_CLIENT)

        async def one(task: str) -> None:
            try:
                async with asyncio.timeout(self._limits.cleanup_seconds):
                    await self._env.workers.worker(task).cleanup_all(list(containers))
            except (errors.OpError, TimeoutError) as e:
                _log.warning("Reset: %s could not be cleared: %s", task, e or "no answer in time")

        await asyncio.gather(*(one(task) for task in self._env.workers.tasks()))

    async def make_callable(self, handle: str, options: CallableOptions) -> int:
        """A callable's handle, from 1 on."""
        return await self._session(handle).make_callable(options)

    async def run_callable(
        self, handle: str, callable_handle: int, feeds: Sequence[Value]
    ) -> tuple[list[Value], RunMetadata]:
        """Runs a callable; feeds and fetched values in the order of its options."""
        return await self._session(handle).run_callable(callable_handle, feeds)

    async def release_callable(self, handle: str, callable_handle: int) -> None:
        """Forgets a callable. An unknown one is no error."""
        self._session(handle).release_callable(callable_handle)

    async def stop(self) -> None:
        """Refuses new sessions and closes all there are: running steps get CancelledError. Bounded; never raises."""
        self._stopping = True
        try:
            await self._close_all("Step was cancelled because the server is shutting down.")
        except Exception:
            _log.exception("Stopping the master of %s", self._env.task)

    async def _close_all(self, reason: str) -> None:
        sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            self._close_in_background(session, reason)
        if self._closing:
            await asyncio.wait(set(self._closing))

    def _close_in_background(self, session: MasterSession, reason: str) -> asyncio.Task[None]:
        closing = asyncio.create_task(session.close(reason), name=f"close:{session.handle}")
        self._closing.add(closing)
        closing.add_done_callback(self._on_closed)
        return closing

    def _on_closed(self, closing: asyncio.Task[None]) -> None:
        self._closing.discard(closing)
        if not closing.cancelled() and (error := closing.exception()) is not None:
            _log.error("%s failed", closing.get_name(), exc_info=error)

    def _session(self, handle: str, hint: str = "") -> MasterSession:
        session = self._sessions.get(handle)
        if session is None:
            raise errors.AbortedError(None, None, f"Session {handle} is not found.{hint}")
        return session


def _size_of_answer(answer: tuple[list[Any], Any]) -> int:
    """Bytes that keeping the answer would cost, strings included."""
    total = 0
    for value in answer[0]:
        if isinstance(value, np.ndarray):
            total += value.nbytes
            if value.dtype == object:
                total += sum(len(item) for item in value.flat if isinstance(item, bytes))
    return total
