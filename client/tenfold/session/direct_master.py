"""A master in this process: calls go to it directly, feeds and fetches are arrays, nothing is serialised.

Wraps a `BackgroundServer` (tenfold_services.background), whose event loop runs in a thread of its own; a call submits
a coroutine to that loop and waits. A step that never leaves the server's task needs the loop only the first time
(`prepared_step`). targets.py makes one for every session whose target is a server of this process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tenfold.session import client_spans
from tenfold.session.master_interface import ANSWER_GRACE_SECONDS, CLOSE_SECONDS, SETUP_SECONDS, seconds_to_set_up
from tenfold_core import errors
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    import numpy as np

    from tenfold.session.master_interface import PreparedStep
    from tenfold_protos.config_pb2 import ConfigProto, RunMetadata, RunOptions
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.placement_pb2 import GetPlacementResponse
    from tenfold_services.background import BackgroundServer

T = TypeVar("T")


class DirectMaster:
    """The master of `server`, which runs in this process; `target` is how the session calls it, `shown` how its spans
    do. See MasterInterface."""

    def __init__(self, server: BackgroundServer, target: str = "", shown: str = "") -> None:
        self._server, self._target, self._shown = server, target, shown or target

    def create_session(self, graph_def: GraphDef, config: ConfigProto, timeout: float | None) -> tuple[str, int]:
        """See MasterInterface."""
        master = self._server.master
        with client_spans.opening(self._shown):
            return self._call(
                "CreateSession",
                lambda: master.create_session(graph_def, config, self._target),
                timeout or seconds_to_set_up(graph_def),
            )

    def extend_session(self, handle: str, graph_def: GraphDef, current_version: int, timeout: float | None) -> int:
        """See MasterInterface."""
        master = self._server.master
        return self._call(
            "ExtendSession",
            lambda: master.extend_session(handle, graph_def, current_version),
            timeout or seconds_to_set_up(graph_def),
        )

    def run_step(
        self,
        handle: str,
        feeds: Mapping[str, np.ndarray],
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions,
        timeout: float | None,
    ) -> tuple[list[np.ndarray], RunMetadata]:
        """See MasterInterface. `feeds` reach the kernels as they are, without a copy."""
        master = self._server.master
        with client_spans.step(self._shown, handle, fetches, targets):
            return self._call("RunStep", lambda: master.run_step(handle, feeds, fetches, targets, options), timeout)

    def partial_run_setup(
        self,
        handle: str,
        feeds: Sequence[str],
        fetches: Sequence[str],
        targets: Sequence[str],
        timeout: float | None,
    ) -> str:
        """See PartialRunMaster."""
        master = self._server.master
        return self._call("PartialRunSetup", lambda: master.partial_run_setup(handle, feeds, fetches, targets), timeout)

    def partial_run(
        self,
        handle: str,
        partial_run_handle: str,
        feeds: Mapping[str, np.ndarray],
        fetches: Sequence[str],
        timeout: float | None,
    ) -> list[np.ndarray]:
        """See PartialRunMaster. `feeds` reach the kernels as they are, without a copy."""
        master = self._server.master
        options = config_pb2.RunOptions()
        values, _ = self._call(
            "RunStep",
            lambda: master.run_step(handle, feeds, fetches, (), options, partial_run_handle=partial_run_handle),
            timeout,
        )
        return values

    def prepared_step(
        self,
        handle: str,
        feeds: tuple[str, ...],
        fetches: tuple[str, ...],
        targets: tuple[str, ...],
        timeout: float | None,
    ) -> PreparedStep | None:
        """See PreparingMaster. The step runs on the thread that asks for it, and calls other tasks itself.

        The server knows the session's own time-out.
        """
        return self._server.master.find_step(handle, feeds, fetches, targets)

    def close_session(self, handle: str, timeout: float | None) -> None:
        """See MasterInterface."""
        master = self._server.master
        self._call("CloseSession", lambda: master.close_session(handle), timeout or CLOSE_SECONDS)

    def list_devices(self, handle: str, timeout: float | None) -> list[DeviceAttributes]:
        """See MasterInterface."""
        master = self._server.master
        return self._call("ListDevices", lambda: master.list_devices(handle), timeout or SETUP_SECONDS)

    def placement(self, handle: str, timeout: float | None) -> GetPlacementResponse:
        """See ExplainingMaster."""
        master = self._server.master
        return self._call("GetPlacement", lambda: master.placement(handle), timeout or SETUP_SECONDS)

    def step_waits(self, handle: str, timeout: float) -> list[str]:
        """See WaitTellingMaster."""
        return self._server.step_waits(handle, timeout)

    def reset(self, containers: Sequence[str], timeout: float | None) -> None:
        """See MasterInterface."""
        master = self._server.master
        self._call("Reset", lambda: master.reset(containers), timeout or SETUP_SECONDS)

    def close(self) -> None:
        """See MasterInterface. There is no connection: running steps end when the session is closed."""

    def _call(self, method: str, start: Callable[[], Coroutine[Any, Any, T]], timeout: float | None) -> T:
        """Runs one coroutine on the server's loop and waits. Ctrl-C and the deadline cancel it."""
        deadline = None if timeout is None else timeout + ANSWER_GRACE_SECONDS
        try:
            return self._server.call(start, deadline)
        except TimeoutError:
            raise errors.DeadlineExceededError(
                None,
                None,
                f"{method} on the server of this process ({self._server.target or 'no listener'}) was not answered "
                f"within {timeout:g} s",
            ) from None
