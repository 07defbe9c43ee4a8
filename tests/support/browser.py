"""A real Chromium for the tests of the dashboard and for its pictures, driven by selenium.

Tests wait for what the page shows by a MutationObserver in the page, with a deadline, and are skipped where there is
no Chromium. A browser gets a folder of its own, and talks to nobody but the page's service.
"""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Seconds for the page to show what it should.
PATIENCE = 60.0

_FLAGS = (
    *("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "disable-background-networking"),
    *("disable-component-update", "disable-sync", "disable-extensions", "no-first-run", "hide-scrollbars"),
)
#: Resolves once an expression holds; it is looked at after each change of the page.
_UNTIL = """
const done = arguments[arguments.length - 1];
const holds = () => { try { return (%s); } catch { return false; } };
if (holds()) { done(true); return; }
const look = () => { if (holds()) { watch.disconnect(); done(true); } };
const watch = new MutationObserver(look);
watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
addEventListener("hashchange", look);
"""


class Browser:
    """One page. `execute` is JavaScript that may `return`."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        driver.set_script_timeout(PATIENCE)
        driver.set_page_load_timeout(PATIENCE)

    def open(self, url: str) -> None:
        # another page first: a new part behind # alone would load nothing anew
        self._driver.get("about:blank")
        self._driver.get(url)

    def execute(self, script: str, *arguments: Any) -> Any:
        return self._driver.execute_script(script, *arguments)

    def execute_async(self, script: str) -> Any:
        """JavaScript that calls `done(value)` once it is."""
        return self._driver.execute_async_script(f"const done = arguments[arguments.length - 1]; {script}")

    def until(self, expression: str) -> None:
        """Waits until a JavaScript expression holds. Fails with what the page shows instead."""
        from selenium.common.exceptions import TimeoutException

        try:
            self._driver.execute_async_script(_UNTIL % expression)
        except TimeoutException:
            pytest.fail(f"the page never came to {expression}; it shows:\n{self.text()}")

    def until_shown(self, text: str, where: str = "main") -> None:
        """Waits until an element shows a text."""
        self.until(f"document.querySelector({where!r}).innerText.includes({text!r})")

    def text(self, where: str = "body") -> str:
        found: str = self.execute("return document.querySelector(arguments[0])?.innerText ?? ''", where)
        return found

    def press(self, label: str, where: str = "main") -> None:
        """Clicks the button with this label, once it is there."""
        button = f"[...document.querySelectorAll({where!r} + ' button')].find((b) => b.innerText === {label!r})"
        self.until(button)
        self._driver.execute_script(f"return {button}").click()

    def point(self, where: str, x: float, y: float, *, click: bool = False) -> None:
        """Moves the mouse to a place in an element, in pixels from its left upper corner, and clicks there."""
        shown = "const it = document.querySelector(arguments[0]); it.scrollIntoView({block: 'center'});"
        box = f"{shown} const box = it.getBoundingClientRect(); return [box.left, box.top]"
        left, top = self.execute(box, where)
        for kind in ("mouseMoved", *(("mousePressed", "mouseReleased") if click else ())):
            event = {"type": kind, "x": left + x, "y": top + y, "button": "left", "clickCount": int(click)}
            self._driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)

    def point_until(self, where: str, x: float, y: float, expression: str) -> None:
        """Moves the mouse there until a JavaScript expression holds: a page that is drawn anew misses a move."""
        from selenium.common.exceptions import TimeoutException

        deadline = time.monotonic() + PATIENCE
        self._driver.set_script_timeout(1)
        try:
            while time.monotonic() < deadline:
                self.point(where, x, y)
                with suppress(TimeoutException):
                    self._driver.execute_async_script(_UNTIL % expression)
                    return
        finally:
            self._driver.set_script_timeout(PATIENCE)
        pytest.fail(f"the page never came to {expression}; it shows:\n{self.text()}")

    def write(self, where: str, text: str, *, enter: bool = True) -> None:
        """Types into a field, and Enter."""
        self.until(f"document.querySelector({where!r})")
        self._driver.find_element("css selector", where).send_keys(text + "\n" * enter)

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """What the page sees as its window, and as the system's colours."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        colours = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [colours]})

    def forget_cache(self) -> None:
        """What was loaded is loaded again."""
        self._driver.execute_cdp_cmd("Network.clearBrowserCache", {})

    def complaints(self) -> list[str]:
        """What the browser wrote into its console since the last call: refused loads, errors of scripts."""
        return [entry["message"] for entry in self._driver.get_log("browser")]

    def picture(self, path: Path) -> None:
        self._driver.save_screenshot(str(path))


def missing() -> str | None:
    """Why there is no browser here; None where there is one."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"no {program} here (Debian has it in the packages chromium and chromium-driver)"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed (pip install -e '.[dev]')"
    return None


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """A browser whose profile is in `folder`."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*_FLAGS, f"user-data-dir={folder}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
