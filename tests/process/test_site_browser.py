"""The site that `make docs` has built, opened from the disk in a browser: search answers, nothing is from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.browser import chromium, missing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.browser import Browser

SITE = Path(__file__).resolve().parents[2] / "build" / "site"

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="`make docs` has not built the site"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


def test_search_answers_from_the_disk(browser: Browser) -> None:
    browser.resize(1280, 900)
    browser.open((SITE / "tutorials" / "index.html").as_uri())

    # by keys: a page that does not have the system's focus tells its scripts of none, and search begins with it
    browser.write("[data-md-component=search-query]", "SyncReplicasOptimizer", enter=False)

    browser.until("document.querySelectorAll('.md-search-result__item a').length > 0")
    found = browser.execute(
        "return [...document.querySelectorAll('.md-search-result__item a')].map((each) => each.href)"
    )
    assert any("reference/train.html" in link for link in found), found


@pytest.mark.parametrize("dark", [False, True])
def test_pages_load_nothing_from_elsewhere_and_follow_the_systems_colours(browser: Browser, dark: bool) -> None:
    browser.resize(1280, 900, dark=dark)
    browser.open((SITE / "tutorials" / "guide" / "1-server.html").as_uri())

    browser.until(f"document.body.dataset.mdColorScheme === '{'slate' if dark else 'default'}'")

    loaded = browser.execute("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert [name for name in loaded if not name.startswith(("file:", "data:", "blob:"))] == []
    assert browser.complaints() == []
