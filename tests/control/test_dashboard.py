"""The dashboard as files: where they are, what the browser may do with them, and that nothing of them leads elsewhere.

What it shows is tried in a real browser: test_dashboard_browser.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import pytest

from tenfold_control_api.app import create_app
from tenfold_control_api.dashboard_files import FOLDER, files
from tenfold_control_api.service_settings import Settings

from .conftest import Masters, running_app

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

OURS = sorted(path for path in FOLDER.rglob("*") if path.is_file() and "vendor" not in path.parts)
VENDORED = sorted((FOLDER / "vendor").glob("*.*s"))
#: An address with a host, and what loads by itself.
ELSEWHERE = re.compile(r"(?:https?:|wss?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s\"'`)]*", re.IGNORECASE)
#: Names that look like addresses: of XML, of the project whose code it is.
NAMES = {"http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"}
LINKS = re.compile(r"""(?:src|href)="(/[^"#$]*)"|from "(\./[^"]+)\"""")


def test_the_page_and_all_that_it_names_is_there(tmp_path: Path) -> None:
    known = set(files())
    for path in OURS:
        for absolute, relative in LINKS.findall(path.read_text(encoding="utf-8")):
            url = absolute or urljoin(f"/ui/{path.relative_to(FOLDER).as_posix()}", relative)
            assert url in ("/", "/docs") or url.removeprefix("/ui/") in known, f"{path.name} names {url}"
    assert {path.relative_to(FOLDER).as_posix() for path in OURS} <= known


def test_modules_are_loaded_at_once_and_not_one_after_another() -> None:
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    modules = {path.name for path in OURS if path.suffix == ".js"} - {"main.js"}

    assert set(re.findall(r'rel="modulepreload" href="/ui/([^"]+)"', page)) == {*modules, "vendor/preact.js"}


@pytest.mark.parametrize("path", [*OURS, *VENDORED], ids=lambda path: path.name)
def test_no_address_leads_elsewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert set(ELSEWHERE.findall(text)) <= NAMES
    assert "@import" not in text
    assert path.suffix != ".css" or "url(" not in text


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_text_of_others_becomes_text_and_nothing_else(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    ways = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", 'style="')
    for way in ways:
        assert way not in text, f"{path.name} has {way}"


def test_what_is_vendored_has_its_licence_beside_it() -> None:
    assert [path.name for path in VENDORED] == ["preact.js", "uplot.css", "uplot.js"]
    for name, says in (("uplot", "MIT"), ("preact", "MIT"), ("htm", "Apache License")):
        assert says in (FOLDER / "vendor" / f"{name}.LICENSE").read_text(encoding="utf-8")


async def test_the_page_is_kept_by_the_browser_until_it_changes(api: httpx.AsyncClient) -> None:
    page = await api.get("/")
    again = await api.get("/", headers={"If-None-Match": f'"other", W/{page.headers["etag"]}'})
    other = await api.get("/", headers={"If-None-Match": '"other"'})

    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["cache-control"] == "no-cache"
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", page.headers["etag"])
    assert (other.status_code, other.content) == (200, page.content)


async def test_the_browser_is_told_to_load_from_here_alone(api: httpx.AsyncClient) -> None:
    for path in ("/", "/ui/main.js", "/ui/style.css", "/ui/icon.svg"):
        headers = (await api.get(path)).headers
        policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))

        assert policy["default-src"] == "'self'"
        assert (policy["frame-ancestors"], policy["base-uri"]) == ("'none'", "'none'")
        assert policy["require-trusted-types-for"] == "'script'"
        assert not [value for value in policy.values() if "unsafe" in value]
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["none.js", "../settings.py", "%2e%2e/settings.py", "vendor/", "", "vendor"])
async def test_a_file_that_is_not_there(api: httpx.AsyncClient, path: str) -> None:
    answer = await api.get(f"/ui/{path}")

    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")


async def test_an_address_of_the_page_compare(api: httpx.AsyncClient) -> None:
    answer = await api.get("/runs/compare", params={"run": ["a", "b//c&d"]})

    assert (answer.status_code, answer.headers["location"]) == (307, "/#/runs/compare?run=a&run=b%2F%2Fc%26d")


async def test_what_the_page_has_to_know(database: str) -> None:
    settings = Settings(database=database, token="a secret", allow_runs=True, tensorboard_url="http://tb.lan:6006")
    async with running_app(create_app(settings, Masters())) as api:
        known = await api.get("/ui/config.json")
        data = await api.get("/v1/runs")

    assert known.json() == {"runs": True, "models": False, "tensorboard": "http://tb.lan:6006"}
    assert data.status_code == 401


def test_a_link_to_tensorboard_is_one_of_the_web() -> None:
    with pytest.raises(ValueError, match="tensorboard_url is 'javascript:alert"):
        Settings(tensorboard_url="javascript:alert(1)")
