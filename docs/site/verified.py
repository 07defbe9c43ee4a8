"""When a page's code last ran and passed: one table, verified.json, which `make verify-docs` writes after the tests.

A row holds the date and a digest of the page's blocks, so a page says so where its blocks have changed since. A page
without a row has no code that is typed by a test; it shows when its file last changed.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path

TABLE = Path(__file__).with_name("verified.json")
_BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


def digest(text: str) -> str:
    """A digest of the fenced blocks of a page; prose does not count."""
    return hashlib.sha256("\n".join(_BLOCK.findall(text)).encode()).hexdigest()[:16]


def table() -> dict[str, dict[str, str]]:
    """Page below docs/ → {"date", "digest"}; empty before the first verification."""
    return json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}


def note(text: str, row: dict[str, str] | None, changed: str | None) -> str:
    """The line at the end of a page: `text` its Markdown, `row` of the table, `changed` the date of its last commit."""
    if row is not None and row["digest"] == digest(text):
        return f"The code on this page was last run, and passed, on {row['date']}."
    if row is not None:
        return f"The code on this page has changed since it was last run, on {row['date']}."
    last = f"Last changed on {changed}." if changed else ""
    return f"No test types all the code on this page. {last}".strip() if _BLOCK.search(text) else last


def last_changes(root: Path, docs: str = "docs") -> dict[str, str]:
    """Page below docs/ → date of the last commit that changed it; empty where there is no history."""
    command = ["git", "-C", str(root), "log", "--format=%x00%cs", "--name-only", "--", docs]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    found: dict[str, str] = {}
    for commit in done.stdout.split("\0")[1:] if done.returncode == 0 else []:
        date, *names = [line for line in commit.splitlines() if line]
        for name in names:
            found.setdefault(name.removeprefix(f"{docs}/"), date)
    return found
