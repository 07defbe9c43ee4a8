"""How soon the dashboard shows something with ten thousand runs: first paint, and the first page of runs, in Chromium.

    PYTHONPATH=tests python benchmarks/first_paint.py [--runs 10000] [--rounds 5]

A browser with an empty cache opens the page of runs, and then the overview, of a service in a process of its own. Times
are the browser's, in milliseconds from the address. No part of bench.py: it needs Chromium, and compares with nobody.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from support.browser import chromium, missing
from support.many_runs import fill
from support.task_processes import CLI
from tenfold.cli.children import Children

if TYPE_CHECKING:
    from support.browser import Browser

#: What the overview and the page of runs must come to: their rows.
READY = {"runs": "document.querySelectorAll('#runs tbody tr').length === 50", "": "document.querySelector('main a')"}
#: Milliseconds that the first paint may take, as the median of the rounds.
LIMIT = 1000.0
_START_S = 60.0


def measure(browser: Browser, url: str, ready: str) -> tuple[float, float]:
    """Milliseconds to the first paint with content, and until `ready` holds."""
    browser.open("about:blank")
    browser.forget_cache()
    browser.open(url)
    browser.until(ready)
    rows = browser.execute("return performance.now()")
    paint = "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
    return float(browser.execute(paint)), float(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    if (why := missing()) is not None:
        sys.exit(why)
    slowest = 0.0
    with tempfile.TemporaryDirectory() as temporary, Children() as children:
        folder = Path(temporary)
        database = str(folder / "control.db")
        fill(database, asked.runs)
        children.start("control", [*CLI, "control", "--port", "0", "--database", database])
        url = children.wait_for_line("control", r"(http://127\.0\.0\.1:\d+)", _START_S)[1]
        with chromium(folder / "chromium") as browser:
            for page, ready in READY.items():
                times = [measure(browser, f"{url}/#/{page}", ready) for _ in range(asked.rounds)]
                paints, rows = zip(*times, strict=True)
                slowest = max(slowest, statistics.median(paints))
                told = [f"{statistics.median(each):.0f} ms (at most {max(each):.0f})" for each in (paints, rows)]
                print(f"{page or 'overview'}: first paint {told[0]}, rows {told[1]}, {asked.runs:,} runs")
    return 0 if slowest < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
