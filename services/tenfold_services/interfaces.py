"""The seam between the tasks of a step: what a master, or a consumer of tensors, asks of a worker.

Implemented by worker/worker.py (in this process), rpc/grpc_worker.py and rpc/link_worker.py (another process), which
cluster.py finds; called by master/, worker/ and rpc/. Python values in and out: protobuf messages appear only where
they are the contract (GraphDef, ConfigProto, DeviceAttributes). Nouns are those of TensorFlow's distributed_runtime.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold_core import errors
    from tenfold_link.link_settings import LinkSettings
    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.link_pb2 import OpenLinkResponse
    from tenfold_protos.step_stats_pb2 import StepStats
    from tenfold_protos.tensorflow_server_pb2 import ServerDef

    from .exchange.plan import ExchangePlan, Sent

#: What travels on an edge: a numpy array (strings: object array of bytes; scalars 0-d; a DT_RESOURCE edge is a
#: 0-d object array or the ResourceHandle itself). A reference variable never crosses a task boundary:
#: Send reads it.
Value: TypeAlias = Any

#: A task's canonical name, "/job:ps/replica:0/task:0".
TaskName: TypeAlias = str

#: Tensors that come with the call for a run, in place of a push: (number of the key in the plan, value, is_dead).
Brought: TypeAlias = "Sequence[tuple[int, Value, bool]]"

#: A task and its incarnation.
Life: TypeAlias = tuple[TaskName, int]


@dataclass(frozen=True, slots=True)
class ExecOptions:
    """What one run of a registered graph should record. The defaults cost nothing."""

    record_timeline: bool = False
    record_costs: bool = False
    record_partition_graphs: bool = False
    #: The step takes its feeds and fetches in several calls (PartialRunSetup).
    is_partial: bool = False
    is_last_partial_run: bool = False


#: The options of almost every step; shared, so that a step allocates none.
DEFAULT_EXEC_OPTIONS = ExecOptions()


class RunRequest(NamedTuple):
    """What one run of a registered graph is asked for.

    `feeds` and `fetches` are named by *rendezvous keys* of client-terminated _Recv and _Send nodes:
    `send_device;%016x(incarnation);recv_device;tensor_name;0:0` (core/rendezvous_key.py: `make_key`).
    """

    session_handle: str
    graph_handle: str
    step_id: int
    feeds: Mapping[str, Value]
    fetches: Sequence[str]
    options: ExecOptions = DEFAULT_EXEC_OPTIONS


@dataclass(slots=True)
class RunGraphResult:
    """What one partition hands back: the fetched values by rendezvous key, and statistics if asked for.

    Ownership: arrays that outlive the step (variables, constants) were copied; the receiver owns every array.
    """

    values: dict[str, Value] = field(default_factory=dict)
    step_stats: StepStats | None = None
    #: The graph as it was registered, for a run with record_partition_graphs over gRPC.
    partition_graphs: list[GraphDef] = field(default_factory=list)
    #: Tensors that the caller consumes, of a run with a push plan: (number of the key in the plan, value, is_dead).
    answered: list[tuple[int, Value, bool]] = field(default_factory=list)


#: Told once how a run ended: (result, None) or (None, error).
Done: TypeAlias = "Callable[[RunGraphResult | None, errors.OpError | None], None]"


class RunningPart(Protocol):
    """A part's run under way, at this task or at another."""

    def cancel(self) -> object:
        """Stops the run; its `Done` hears of the end as usual."""


class WorkerInterface(Protocol):
    """One task's worker, seen by a master or by a consumer of its tensors.

    Every method raises OpError subclasses only. An error of the transport (refused, unreachable, peer died) is an
    UnavailableError that names the task and the reason; an error of a node carries the node, the task and the device,
    without the "From <task>:" prefix, which the master adds; only a consumer that reports its producer's error has
    put the producer's prefix there already. Cancelling the awaiting task cancels the work.
    """

    async def get_status(self, timeout: float | None = None) -> list[DeviceAttributes]:  # noqa: ASYNC109 - passed on to the RPC as its deadline
        """The task's devices with their incarnations. Bounded: `timeout` seconds, or the limits' set-up deadline."""

    async def create_worker_session(
        self, session_handle: str, server_def: ServerDef | None, isolate: bool, master: Life
    ) -> None:
        """Opens the session at this worker. `isolate` gives it resource containers of its own.

        Sessions of a master that has since restarted (same task, another incarnation) are dropped first.
        """

    async def delete_worker_session(self, session_handle: str) -> None:
        """Ends the session: running steps of it are cancelled, its graphs dropped. Unknown handles are no error."""

    async def register_graph(self, session_handle: str, graph_def: GraphDef, config: ConfigProto) -> str:
        """Compiles one partition, placed and pruned, all of it on this task; returns its graph handle (16 hex digits).

        Raises InvalidArgumentError, NotFoundError or UnimplementedError naming the node that cannot be compiled.
        """

    async def deregister_graph(self, session_handle: str, graph_handle: str) -> None:
        """Drops the graph. Steps under way keep their program. Raises AbortedError for an unknown handle."""

    async def run_graph(self, request: RunRequest) -> RunGraphResult:
        """Runs every node of the graph once.

        The caller leaves fed arrays unchanged until the step is over. The first error aborts the step on this task: its
        rendezvous answers that error to every receiver until `cleanup_graph`.
        """

    async def recv_tensor(self, step_id: int, key: str) -> tuple[Value, bool]:
        """(value, is_dead) of one edge, once. Waits until it is produced or the step is aborted, also before run_graph.

        Raises AbortedError when the key names another incarnation of the sending device (the worker restarted).
        The array is read-only or not shared; a local caller must not write to it.
        """

    async def cleanup_graph(self, step_id: int) -> None:
        """Forgets the step's rendezvous. Waiting receivers get AbortedError. Never fails for unknown steps."""

    async def cleanup_all(self, containers: Sequence[str]) -> None:
        """Clears resource containers on this task; none named means the default container."""


class PushWorker(WorkerInterface, Protocol):
    """Another task's worker with a link to it (rpc/link_worker.py): tensors can be pushed there."""

    #: "host:port".
    address: str

    @property
    def is_linked(self) -> bool:
        """Whether `push` works now."""

    async def connect(self) -> bool:
        """Opens the link if that is due, and names our task; whether `push` works then. Bounded."""

    def can(self, ability: str) -> bool:
        """Whether the task at the other end of the link has it (tenfold_core/protocol.py); False without a link."""

    async def ask_link(self, settings: LinkSettings) -> OpenLinkResponse:
        """A way in for one more link of this process. Bounded; raises OpError."""

    async def arrange(self, tasks: Sequence[TaskName]) -> list[TaskName]:
        """Those of `tasks` that this task can push to; it opens links to them."""

    def push(self, step_id: int, tensors: Sequence[Sent]) -> None:
        """Hands tensors to the task's rendezvous. Never blocks; raises UnavailableError without a link."""

    def start_plan(
        self, plan: ExchangePlan, step_id: int, brought: Brought, options: ExecOptions, done: Done
    ) -> RunningPart:
        """`run_graph` as `plan` says, which feeds nothing: `done` is called once, on the loop. Never blocks, raises
        nothing. What comes with the answer has been delivered when `done` is called."""
