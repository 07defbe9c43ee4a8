"""`tenfold.control`: the Python client of the control service's REST interface, over httpx.

    with ControlClient("http://127.0.0.1:8080") as control:
        control.declare_cluster("default", {"ps": 1, "worker": 2})
        spec = control.wait_for_spec("default", until_complete=True, timeout=60)

`AsyncControlClient` has the same methods as coroutines. The interface itself is described in docs/rest.md; the service
is tenfold_control_api.
"""

from __future__ import annotations

from tenfold.control.client import AsyncControlClient, ControlClient
from tenfold.control.cluster_answers import (
    Cluster,
    Event,
    Job,
    Jobs,
    LeaseStatus,
    Service,
    SessionStatus,
    Table,
    Tables,
    Task,
)
from tenfold.control.model_answers import Model, ModelMetadata, TensorMetadata
from tenfold.control.problem import ControlProblem, problem_of
from tenfold.control.registration import TaskRegistration
from tenfold.control.remote_session import AsyncRemoteSession, RemoteSession
from tenfold.control.retry import RetryPolicy
from tenfold.control.run_answers import Comparison, LogLine, Progress, Run, RunProgress, RunTask
from tenfold.control.spec import Lease, Spec
from tenfold.control.sweep_answers import Sweep, SweepSummary, Trial
from tenfold.control.targets import cluster_spec, find_master
from tenfold.control.trace_answers import NodePlacement, Placement, TaskPlacement
from tenfold.control.why_answers import Why, WhyTask, WhyThread, WhyWait

__all__ = [
    "AsyncControlClient",
    "AsyncRemoteSession",
    "Cluster",
    "Comparison",
    "ControlClient",
    "ControlProblem",
    "Event",
    "Job",
    "Jobs",
    "Lease",
    "LeaseStatus",
    "LogLine",
    "Model",
    "ModelMetadata",
    "NodePlacement",
    "Placement",
    "Progress",
    "RemoteSession",
    "RetryPolicy",
    "Run",
    "RunProgress",
    "RunTask",
    "Service",
    "SessionStatus",
    "Spec",
    "Sweep",
    "SweepSummary",
    "Table",
    "Tables",
    "Task",
    "TaskPlacement",
    "TaskRegistration",
    "TensorMetadata",
    "Trial",
    "Why",
    "WhyTask",
    "WhyThread",
    "WhyWait",
    "cluster_spec",
    "find_master",
    "problem_of",
]
