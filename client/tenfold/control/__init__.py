"""`tenfold.control`: the Python client of the control service's REST interface. Blocking, over httpx.

    with ControlClient("http://127.0.0.1:8080") as control:
        control.declare_cluster("default", {"ps": 1, "worker": 2})
        spec = control.wait_for_spec("default", until_complete=True, timeout=60)

The interface itself is described in docs/rest.md; the service is tenfold_control_api.
"""

from __future__ import annotations

from tenfold.control.client import ControlClient
from tenfold.control.problem import ControlProblem, problem_of
from tenfold.control.registration import TaskRegistration
from tenfold.control.remote_session import RemoteSession
from tenfold.control.retry import RetryPolicy
from tenfold.control.spec import Lease, Spec

__all__ = [
    "ControlClient",
    "ControlProblem",
    "Lease",
    "RemoteSession",
    "RetryPolicy",
    "Spec",
    "TaskRegistration",
    "problem_of",
]
