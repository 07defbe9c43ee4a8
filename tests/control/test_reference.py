"""`/docs`: Swagger UI from this service alone, and what a browser makes of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from support.browser import chromium, missing
from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings

from .conftest import Masters, running_app

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import httpx

    from .conftest import Service


async def test_the_page_loads_from_here_alone(api: httpx.AsyncClient) -> None:
    page = await api.get("/docs")
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)

    policy = page.headers["content-security-policy"]
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "://" not in page.text + policy
    assert "<script>" not in page.text
    assert len(loaded) == 5
    for path in loaded:
        answer = await api.get(path)
        assert answer.status_code == 200, path
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert b"SwaggerUIBundle" in (await api.get("/docs/swagger-ui-bundle.js")).content
    assert (await api.get("/docs/other.js")).json()["type"] == "urn:tenfold:problem:no-such-route"


async def test_it_is_shown_without_the_token_as_the_description_is(database: str, masters: Masters) -> None:
    async with running_app(create_app(Settings(database=database, token="a secret"), masters)) as api:
        for path in ("/docs", "/docs/start.js", "/docs/dark.css", "/openapi.json"):
            assert (await api.get(path)).status_code == 200
        assert (await api.get("/v1/clusters")).status_code == 401


@pytest.mark.thorough
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
@pytest.mark.timeout(240)
def test_a_browser_shows_the_operations_and_tries_one(start_service: Callable[..., Service], tmp_path: Path) -> None:
    service = start_service()
    with chromium(tmp_path / "profile") as browser:
        browser.open(f"{service.url}/docs#/probes/healthz")

        browser.until_shown("Run a step", "#swagger-ui")
        browser.press("Try it out", "#swagger-ui")
        browser.press("Execute", "#swagger-ui")
        browser.until_shown('"status": "ok"', "#swagger-ui")
        complaints = browser.complaints()
        elsewhere = browser.execute(
            "return performance.getEntriesByType('resource').map((e) => e.name)"
            ".filter((url) => !url.startsWith(location.origin) && !url.startsWith('data:'))"
        )

    assert not elsewhere
    assert not complaints
