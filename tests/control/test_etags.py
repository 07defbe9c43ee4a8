"""`ETag` and `If-None-Match` on what is asked again and again: 304 while nothing has changed, and only then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.task_processes import PATIENCE
from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings

from .conftest import declare, register, running_app

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from .conftest import Masters, Service


@pytest.mark.parametrize(
    "path",
    [
        "/v1/clusters",
        "/v1/clusters/default",
        "/v1/clusters/default/spec",
        "/v1/clusters/default/jobs",
        "/v1/clusters/default/tasks?state=missing",
        "/v1/sessions",
        "/v1/runs",
        "/v1/service",
        "/v2",
        "/openapi.json",
    ],
)
async def test_what_has_not_changed_is_304_without_a_body(api: httpx.AsyncClient, path: str) -> None:
    await declare(api, worker=1)

    first = await api.get(path)
    tag = first.headers["etag"]
    again = await api.get(path, headers={"If-None-Match": tag})
    head = await api.head(path)

    assert first.status_code == 200
    assert first.headers["cache-control"] == "private, no-cache"
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", tag)


async def test_a_change_is_told(api: httpx.AsyncClient) -> None:
    await declare(api, worker=1)
    old = (await api.get("/v1/clusters/default/spec")).headers["etag"]
    await register(api, "worker", 0)

    new = await api.get("/v1/clusters/default/spec", headers={"If-None-Match": f'"other", {old}'})

    assert (new.status_code, new.json()["version"]) == (200, 2)
    assert new.headers["etag"] != old


async def test_who_may_not_read_learns_nothing_of_the_tag(database: str, masters: Masters) -> None:
    async with running_app(create_app(Settings(database=database, token="a secret"), masters)) as api:
        tag = (await api.get("/v1/clusters", headers={"Authorization": "Bearer a secret"})).headers["etag"]

        refused = await api.get("/v1/clusters", headers={"If-None-Match": tag})

        assert (refused.status_code, "etag" in refused.headers) == (401, False)


async def test_problems_streams_and_probes_have_no_tag(api: httpx.AsyncClient) -> None:
    answers = [await api.get("/v1/clusters/none"), await api.get("/healthz"), await api.post("/v1/sessions", json={})]
    stream = await api.head("/v1/events", headers={"Accept": "text/event-stream"})

    assert all("etag" not in answer.headers for answer in [*answers, stream])
    assert stream.headers["cache-control"] == "no-store"


def test_over_a_socket_too(start_service: Callable[..., Service]) -> None:
    """A 304 has no length, and the connection goes on after it."""
    import httpx

    with httpx.Client(base_url=start_service().url, timeout=PATIENCE) as client:
        tag = client.get("/v1/clusters").headers["etag"]
        answers = [client.get("/v1/clusters", headers={"If-None-Match": tag}) for _ in range(3)]
        last = client.get("/v1/clusters")

    assert [answer.status_code for answer in answers] == [304, 304, 304]
    assert last.json() == {"clusters": [], "next": None}
