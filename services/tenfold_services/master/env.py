"""What a server gives its master (which task it is, which tasks it can reach), and what that gives each session.

A MasterEnv is made by server.py, once for the server's own cluster and once for each session that brings a cluster of
its own; a SessionEnv by master.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_core.op_gradients import no_gradients

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tenfold_compiler.graph.device_set import DeviceSet
    from tenfold_compiler.graph.place import DevicesWithKernel
    from tenfold_core.op_gradients import OpGradients
    from tenfold_protos.cluster_pb2 import ClusterDef
    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_protos.tensorflow_server_pb2 import ServerDef
    from tenfold_services.cluster import ClusterWorkers
    from tenfold_services.finished import FinishedTasks
    from tenfold_services.interfaces import TaskName
    from tenfold_services.master.caller_steps import CallerSteps
    from tenfold_services.master.limits import MasterLimits
    from tenfold_services.worker.step_pool import GraphPool


@dataclass(frozen=True, slots=True)
class MasterEnv:
    """Constructor argument of master.Master."""

    task: TaskName  #: "/job:worker/replica:0/task:0"
    workers: ClusterWorkers
    #: Session options a client did not set (ServerDef.default_session_config).
    default_config: ConfigProto
    #: This worker under another name, in the cluster that a session brings; None where sessions cannot.
    join: Callable[[ClusterDef, TaskName], MasterEnv] | None = None
    #: What another task's server is told of such a cluster; None in the server's own.
    server_def: Callable[[TaskName], ServerDef] | None = None
    #: Ends what `join` began. Bounded; raises nothing.
    leave: Callable[[], Awaitable[None]] | None = None
    #: Where sessions put what their callers may run by themselves; None where there are no such callers.
    caller_steps: CallerSteps | None = None
    #: Where large graphs are worked on; None: where they come in.
    graph_pool: GraphPool | None = None
    #: The tasks that need not be waited for, and what asks another task for more of them (bounded; raises OpError).
    finished: FinishedTasks | None = None
    ask_finished: Callable[[TaskName], Awaitable[None]] | None = None
    #: The gradients of plain ops, for graphs that ask for the gradient of a function.
    gradients: OpGradients = no_gradients


@dataclass(frozen=True, slots=True)
class SessionEnv:
    """Constructor argument of master_session.MasterSession, handed on to what a session is made of."""

    handle: str  #: 16 hex digits
    master: MasterEnv
    config: ConfigProto  #: With the server's defaults.
    devices: DeviceSet
    devices_with_kernel: DevicesWithKernel
    limits: MasterLimits
