"""`MasterInterface`: what a session needs from a master, in this process or over the network. Blocking.

Implemented by grpc_master.py (any server with TensorFlow's MasterService), link_master.py (a Tenfold server of another
process) and direct_master.py (a server of this process). Called by base_session.py and by the control service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from tenfold_protos.config_pb2 import ConfigProto, RunMetadata, RunOptions
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.placement_pb2 import GetPlacementResponse
    from tenfold_protos.why_pb2 import TaskAnswer

#: Seconds for a call that sets something up, where neither config nor caller gives a bound.
SETUP_SECONDS = 60.0
#: … and for each node of a graph that is sent with it: its master reads, checks and places them all.
_NODE_SECONDS = 0.02
#: Seconds for CloseSession: a server that hangs must not delay the end of a program.
CLOSE_SECONDS = 10.0
#: Seconds that the client waits beyond the server's deadline, because the server's answer names what was missing.
ANSWER_GRACE_SECONDS = 1.0

#: The error text of a step that ended because its session closed.
SESSION_CLOSED = "Step was cancelled by an explicit call to `Session::Close()`."


def seconds_to_set_up(graph_def: GraphDef) -> float:
    """How long CreateSession and ExtendSession with `graph_def` may take where nobody gives a bound."""
    return SETUP_SECONDS + _NODE_SECONDS * len(graph_def.node)


class MasterInterface(Protocol):
    """One master service.

    Every method blocks until the master answered, raises an `OpError` of the answer's class, and raises
    DeadlineExceededError after `timeout` seconds (None: the implementation's own bound for set-up calls, no bound for
    a step). Calls from several threads are allowed.
    """

    def create_session(self, graph_def: GraphDef, config: ConfigProto, timeout: float | None) -> tuple[str, int]:
        """Opens a session on the whole `graph_def`: its handle and the version of its graph.

        Raises UnavailableError or DeadlineExceededError, with the reason, if the master or a task cannot be reached.
        """
        ...

    def extend_session(self, handle: str, graph_def: GraphDef, current_version: int, timeout: float | None) -> int:
        """Adds the nodes of `graph_def`, all new, to the session's graph: the new version."""
        ...

    def run_step(
        self,
        handle: str,
        feeds: Mapping[str, np.ndarray],
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions,
        timeout: float | None,
    ) -> tuple[list[np.ndarray], RunMetadata]:
        """Runs one step: the values of `fetches` (tensor names), in that order, and what was recorded.

        `feeds` maps tensor names to read-only arrays, which the caller leaves unchanged until the call returns. The
        arrays returned belong to the caller.
        """
        ...

    def close_session(self, handle: str, timeout: float | None) -> None:
        """Closes the session; steps that it is running end with CancelledError."""
        ...

    def list_devices(self, handle: str, timeout: float | None) -> list[DeviceAttributes]:
        """Every device that the session can place nodes on, the master's own first."""
        ...

    def reset(self, containers: Sequence[str], timeout: float | None) -> None:
        """Closes all sessions of the master and clears `containers` (none named: the default one) on all tasks."""
        ...

    def close(self) -> None:
        """Gives up the connection. Calls still running end with CancelledError. Idempotent, does not block."""
        ...


class PreparedStep(Protocol):
    """One step of one session, looked up beforehand. Several threads may run it at once."""

    @property
    def may_wait(self) -> bool:
        """Whether it may wait for others; else it computes only."""
        ...

    def run(self, feeds: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Runs the step without options, within the session's own time-out; the fetched values.

        None: the step is not prepared any more and did not run; `run_step` runs it or says why not. `feeds` are as for
        `run_step`. An array returned that is read-only belongs to a variable or a peer, the others to the caller.
        Raises what `run_step` raises.
        """
        ...

    def run_in_spans(self, feeds: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """`run` within the spans of the master's task, if that is in this process; only while somebody listens."""
        ...


@runtime_checkable
class PreparingMaster(Protocol):
    """A master that prepares steps. Optional beside `MasterInterface`."""

    def prepared_step(
        self,
        handle: str,
        feeds: tuple[str, ...],
        fetches: tuple[str, ...],
        targets: tuple[str, ...],
        timeout: float | None,
    ) -> PreparedStep | None:
        """The step with feeds and fetches in this order; None while it is not prepared, or if it cannot be.

        `timeout` is that of every step of the session, in seconds, and part of the config that made it. Never waits.
        Called again before each later step while it returned None; such a step runs through `run_step`.
        """
        ...


@runtime_checkable
class ExplainingMaster(Protocol):
    """A master that tells where it placed the nodes of a session. Optional beside `MasterInterface`."""

    def placement(self, handle: str, timeout: float | None) -> GetPlacementResponse:
        """Each node's device and why. Raises UnimplementedError where the server cannot tell."""
        ...


@runtime_checkable
class WhyTellingMaster(Protocol):
    """A master whose task tells why nothing goes on there. Optional beside `MasterInterface`."""

    def why(self, timeout: float) -> TaskAnswer:
        """What steps wait for at the task, and where its threads are. Blocks for `timeout` seconds at most. Raises
        UnimplementedError where the server cannot tell, DeadlineExceededError and UnavailableError where it does not
        answer."""
        ...


@runtime_checkable
class PartialRunMaster(Protocol):
    """A master that can run a step in parts. Optional beside `MasterInterface`."""

    def partial_run_setup(
        self, handle: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], timeout: float | None
    ) -> str:
        """Prepares a step whose feeds arrive in parts: the handle of the partial run."""
        ...

    def partial_run(
        self,
        handle: str,
        partial_run_handle: str,
        feeds: Mapping[str, np.ndarray],
        fetches: Sequence[str],
        timeout: float | None,
    ) -> list[np.ndarray]:
        """Supplies some of the feeds and returns some of the fetches."""
        ...
