"""The least role of a request: by method and path, and of what has no row."""

from __future__ import annotations

import pytest

from tenfold_control_api.route_roles import RouteRole, needed
from tenfold_core.access.roles import Role


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/docs", "/", "/ui/app.js", "/docs/x"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_probes_and_pages_are_everybodys(method: str, path: str) -> None:
    assert needed(method, path) == RouteRole(Role.NONE)


@pytest.mark.parametrize("path", ["/metrics", "/v1/clusters", "/ui", "/docsx", "/healthz/x", "/v1/nothing"])
def test_looking_needs_to_read(path: str) -> None:
    assert needed("GET", path) == RouteRole(Role.READ)


@pytest.mark.parametrize(
    ("method", "path", "role", "audited"),
    [
        ("POST", "/v1/sessions/s/steps", Role.RUN_UNTRUSTED, None),
        ("POST", "/v2/models/m/infer", Role.RUN, None),
        ("POST", "/v2/models/m/versions/2/infer", Role.RUN, None),
        ("POST", "/v1/leases/l:renew", Role.REGISTER, None),
        ("POST", "/v1/runs/r/tasks/worker/0:report", Role.REGISTER, None),
        ("POST", "/v1/runs/r:report", Role.REGISTER, None),
        ("POST", "/v1/sessions", Role.RUN_UNTRUSTED, "create session"),
        ("DELETE", "/v1/sessions/s", Role.RUN_UNTRUSTED, "close session"),
        ("POST", "/v1/sessions/s/graph:extend", Role.RUN_UNTRUSTED, "extend session"),
        ("POST", "/v1/sessions/s:trace", Role.RUN, "trace session"),
        ("PUT", "/v1/clusters/c", Role.REGISTER, "declare cluster"),
        ("DELETE", "/v1/clusters/c", Role.ADMIN, "delete cluster"),
        ("PUT", "/v1/clusters/c/tasks/worker/0", Role.REGISTER, "register task"),
        ("DELETE", "/v1/clusters/c/tasks/worker/0", Role.ADMIN, "delete task"),
        ("POST", "/v1/clusters/c/tasks/worker/0:end", Role.ADMIN, "end task"),
        ("POST", "/v1/clusters/c/tasks/worker/0:drain", Role.ADMIN, "drain task"),
        ("POST", "/v1/runs", Role.RUN, "submit run"),
        ("DELETE", "/v1/runs/r", Role.ADMIN, "delete run"),
        ("PUT", "/v1/models/m", Role.ADMIN, "register model"),
    ],
)
def test_what_changes_something_has_its_row(method: str, path: str, role: Role, audited: str | None) -> None:
    assert needed(method, path) == RouteRole(role, audited)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/clusters/c"),
        ("PATCH", "/v1/sessions/s"),
        ("POST", "/v1/sessions/a/b/steps"),
        ("POST", "/v1/sessions/a:b/steps"),
        ("POST", "/v1/sessions//steps"),
        ("POST", "/v1/sessions/s/steps/1"),
        ("POST", "/x/v1/sessions/s/steps"),
        ("POST", "/healthz"),
        ("DELETE", "/ui/app.js"),
    ],
)
def test_what_has_no_row_needs_an_admin(method: str, path: str) -> None:
    assert needed(method, path) == RouteRole(Role.ADMIN, "unknown route")
