"""Each request has a name: the caller's where it is a sane one. It stands in the answer, in problems and in the log."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

import pytest

from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings

from .conftest import running_app

if TYPE_CHECKING:
    import httpx


async def test_a_sane_name_is_taken(api: httpx.AsyncClient) -> None:
    answer = await api.get("/v1/clusters/none/jobs", headers={"X-Request-ID": "trace-1:2/3"})

    assert answer.headers["x-request-id"] == "trace-1:2/3"
    assert answer.json()["request_id"] == "trace-1:2/3"


@pytest.mark.parametrize("given", ["", "two words", "x" * 129, "línea", "a\tb"])
async def test_another_one_is_replaced(api: httpx.AsyncClient, given: str) -> None:
    answer = await api.get("/v1/clusters/none/jobs", headers={"X-Request-ID": given.encode()})

    assert re.fullmatch("[0-9a-f]{16}", answer.headers["x-request-id"])
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


async def test_two_requests_have_two_names(api: httpx.AsyncClient) -> None:
    names = {(await api.get("/v1/clusters")).headers["x-request-id"] for _ in range(2)}

    assert len(names) == 2


async def test_answers_of_every_layer_have_it(api: httpx.AsyncClient) -> None:
    for answer in (
        await api.head("/v1/clusters"),
        await api.get("/nowhere"),
        await api.get("/v1/clusters", headers={"Host": "elsewhere.example"}),
        await api.post("/v1/runs", content=b"{", headers={"Content-Type": "application/json"}),
        await api.put("/v1/clusters/c", content=b"x" * 2_000_000, headers={"Content-Type": "application/json"}),
    ):
        assert "x-request-id" in answer.headers, answer.text
        if answer.content:
            assert answer.json()["request_id"] == answer.headers["x-request-id"]


async def test_requests_are_logged_where_that_is_asked_for(
    api: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "tenfold_control_api.access"):
        await api.get("/v1/clusters/none/spec?wait=0s", headers={"X-Request-ID": "r1"})
        await api.get("/healthz")

    (record,) = [each for each in caplog.records if each.name == "tenfold_control_api.access"]
    assert re.fullmatch(r"GET /v1/clusters/none/spec 404 in \d+\.\d ms, from 127\.0\.0\.1", record.getMessage())
    fields = record.fields  # type: ignore[attr-defined]
    assert (fields["method"], fields["path"], fields["status"]) == ("GET", "/v1/clusters/none/spec", 404)


async def test_a_failure_inside_is_found_by_it(
    database: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(Settings(database=database))
    async with running_app(app) as api:

        async def broken() -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr(app.state.control.registry, "refreshed", broken)
        answer = await api.get("/v1/clusters", headers={"X-Request-ID": "r9"})

    assert answer.status_code == 500
    assert answer.json()["detail"].endswith("its log has more: r9.")
    assert "request GET /v1/clusters failed (r9)" in caplog.text
