"""The least role for each route, and what the audit log calls what it does. One table, read top to bottom; a test
compares it with the app's routes. Used by middleware.py, before the request has been routed.

Reading needs `read`, all else has a row. What has none, a path that is no route among it, needs `admin`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from tenfold_core.access.roles import Role

#: Methods that change nothing.
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
#: Paths that need no token: probes, the description of the interface, and the dashboard, which asks for the token
#: itself and knows nothing before.
OPEN_PATHS = ("/healthz", "/readyz", "/openapi.json", "/docs", "/", "/runs/compare")
OPEN_FOLDERS = ("/ui/", "/docs/")


class RouteRole(NamedTuple):
    """What a request needs; `audited` is what it does, None for what comes all the time."""

    role: Role
    audited: str | None = None


_READ, _OPEN, _UNKNOWN = RouteRole(Role.READ), RouteRole(Role.NONE), RouteRole(Role.ADMIN, "unknown route")

#: (method, path) → what it needs. Those that come most often stand first.
TABLE: dict[tuple[str, str], RouteRole] = {
    ("POST", "/v1/sessions/{session}/steps"): RouteRole(Role.RUN_UNTRUSTED),
    ("POST", "/v2/models/{model}/infer"): RouteRole(Role.RUN),
    ("POST", "/v2/models/{model}/versions/{version}/infer"): RouteRole(Role.RUN),
    ("POST", "/v1/leases/{lease}:renew"): RouteRole(Role.REGISTER),
    ("POST", "/v1/runs/{run}/tasks/{job}/{index}:report"): RouteRole(Role.REGISTER),
    ("POST", "/v1/runs/{run}:report"): RouteRole(Role.REGISTER),
    # sessions: to run graphs; what those may that came with the lesser of the two roles, their master knows
    ("POST", "/v1/sessions"): RouteRole(Role.RUN_UNTRUSTED, "create session"),
    ("DELETE", "/v1/sessions/{session}"): RouteRole(Role.RUN_UNTRUSTED, "close session"),
    ("POST", "/v1/sessions/{session}/graph:extend"): RouteRole(Role.RUN_UNTRUSTED, "extend session"),
    ("POST", "/v1/sessions/{session}:trace"): RouteRole(Role.RUN, "trace session"),
    # tasks
    ("PUT", "/v1/clusters/{cluster}"): RouteRole(Role.REGISTER, "declare cluster"),
    ("PUT", "/v1/clusters/{cluster}/tasks/{job}/{index}"): RouteRole(Role.REGISTER, "register task"),
    ("POST", "/v1/clusters/{cluster}/tasks/{job}:claim"): RouteRole(Role.REGISTER, "claim task"),
    ("POST", "/v1/leases/{lease}:release"): RouteRole(Role.REGISTER, "release lease"),
    ("DELETE", "/v1/leases/{lease}"): RouteRole(Role.REGISTER, "release lease"),
    ("POST", "/v1/runs:join"): RouteRole(Role.REGISTER, "join run"),
    ("PUT", "/v1/runs/{run}/traces/{trace}/tasks/{job}/{index}"): RouteRole(Role.REGISTER, "send trace"),
    ("PUT", "/v1/runs/{run}/why/{asked}/tasks/{job}/{index}"): RouteRole(Role.REGISTER),
    ("PUT", "/v1/runs/{run}/tasks/{job}/{index}/output"): RouteRole(Role.REGISTER),
    # programs
    ("POST", "/v1/runs"): RouteRole(Role.RUN, "submit run"),
    ("POST", "/v1/runs/{run}:stop"): RouteRole(Role.RUN, "stop run"),
    ("PATCH", "/v1/runs/{run}"): RouteRole(Role.RUN, "edit run"),
    ("POST", "/v1/runs/{run}:trace"): RouteRole(Role.RUN, "trace run"),
    ("PUT", "/v1/packages/{name}"): RouteRole(Role.RUN, "upload package"),
    ("POST", "/v1/sweeps"): RouteRole(Role.RUN, "create sweep"),
    ("POST", "/v1/sweeps/{sweep}:cancel"): RouteRole(Role.RUN, "cancel sweep"),
    ("POST", "/v1/sweeps/{sweep}:resume"): RouteRole(Role.RUN, "resume sweep"),
    # what takes away from others
    ("DELETE", "/v1/clusters/{cluster}"): RouteRole(Role.ADMIN, "delete cluster"),
    ("DELETE", "/v1/clusters/{cluster}/tasks/{job}/{index}"): RouteRole(Role.ADMIN, "delete task"),
    ("POST", "/v1/clusters/{cluster}/tasks/{job}/{index}:end"): RouteRole(Role.ADMIN, "end task"),
    ("POST", "/v1/clusters/{cluster}/tasks/{job}/{index}:drain"): RouteRole(Role.ADMIN, "drain task"),
    ("DELETE", "/v1/runs/{run}"): RouteRole(Role.ADMIN, "delete run"),
    ("DELETE", "/v1/sweeps/{sweep}"): RouteRole(Role.ADMIN, "delete sweep"),
    # models run with the service's own rights
    ("PUT", "/v1/models/{model}"): RouteRole(Role.ADMIN, "register model"),
    ("DELETE", "/v1/models/{model}"): RouteRole(Role.ADMIN, "unload model"),
}
_PATTERNS = [(method, re.compile(re.sub(r"\{\w+\}", "[^/:]+", path)), row) for (method, path), row in TABLE.items()]


@lru_cache(maxsize=1024)
def needed(method: str, path: str) -> RouteRole:
    """What a request needs."""
    if method in SAFE_METHODS:
        return _OPEN if path in OPEN_PATHS or path.startswith(OPEN_FOLDERS) else _READ
    for its, pattern, row in _PATTERNS:
        if its == method and pattern.fullmatch(path):
            return row
    return _UNKNOWN
