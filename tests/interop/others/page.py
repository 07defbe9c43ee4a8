"""The page of what became of other people's programs, docs/programs.md: written by run.py, read again by it.

A row a repository, and each program that does not run with its reason in a line. The rows of a page that is there stay:
where fewer of a repository's programs were tried this time than its row counts, the row changes by what those tell of
the programs that had not run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from others.outcomes import Outcome

_ROW = re.compile(r"^\| (\S+) \| (\d+) \| (\d+) \| (\d+) \|$", re.M)
_FAILS = re.compile(r"^- `(.+?)`: (.*)$", re.M)


@dataclass
class Row:
    """What is known of a repository's programs."""

    run: int = 0
    counted: int = 0
    not_counted: int = 0
    fails: dict[str, str] = field(default_factory=dict)
    """The programs that are counted and do not run, with their reasons."""

    @property
    def tried(self) -> int:
        return self.counted + self.not_counted


def rows_of(outcomes: dict[str, Outcome]) -> dict[str, Row]:
    """The row of each repository, by its name OWNER/NAME."""
    rows: dict[str, Row] = {}
    for path, each in sorted(outcomes.items()):
        name = path.replace("+", "/", 1)
        row = rows.setdefault(repository_of(name), Row())
        row.run += each.kind == "runs"
        row.counted += each.counts
        row.not_counted += not each.counts
        if each.counts and each.kind != "runs":
            row.fails[name] = each.why.replace("|", "/")
    return rows


def repository_of(name: str) -> str:
    return "/".join(name.split("/")[:2])


def read(page: str) -> dict[str, Row]:
    """The rows of a page that `document` wrote."""
    rows = {name: Row(int(run), int(counted), int(rest)) for name, run, counted, rest in _ROW.findall(page)}
    for name, why in _FAILS.findall(page):
        rows[repository_of(name)].fails[name] = why
    return rows


def merged(earlier: dict[str, Row], outcomes: dict[str, Outcome]) -> dict[str, Row]:
    """The earlier rows, with those of repositories of which as many programs or more were tried now."""
    rows = dict(earlier)
    for repository, now in rows_of(outcomes).items():
        before = earlier.get(repository)
        if before is None or now.tried >= before.tried:
            rows[repository] = now
            continue
        row = Row(before.run, before.counted, before.not_counted, dict(before.fails))
        for path, each in outcomes.items():
            name = path.replace("+", "/", 1)
            if repository_of(name) == repository and name in row.fails:
                del row.fails[name]
                row.run += each.kind == "runs"
                row.counted -= not each.counts
                row.not_counted += not each.counts
        rows[repository] = Row(row.run, row.counted, row.not_counted, row.fails | now.fails)
    return rows


def document(rows: dict[str, Row], named: int) -> str:
    """The page. `named`: how many programs the tables name; it tells if not all of them were tried."""
    run, counted = (sum(getattr(row, part) for row in rows.values()) for part in ("run", "counted"))
    tried = sum(row.tried for row in rows.values())
    untried = (
        f" The tables name {named} programs of these checkouts; {named - tried} were not tried."
        if named > tried
        else ""
    )
    lines = [
        "# Other people's programs",
        "",
        "Public TensorFlow 1 programs, unchanged, under `tenfold run --as-tensorflow` with made-up data: "
        f"{run} of {counted} run ({run / max(1, counted):.0%}). {tried - counted} more need "
        "what this machine does not have (another package, a download, Python 2) or do not run on TensorFlow 1.15 and "
        "are not counted. A training is stopped once its processes have computed for some seconds, and has run if it "
        f"raised nothing.{untried} Made by",
        "",
        "    python tests/interop/others/run.py <a folder of checkouts> --report docs/programs.md",
        "",
        "which keeps the rows of repositories that it does not try again.",
        "",
        "| repository | run | of | not counted |",
        "|---|---|---|---|",
        *(f"| {name} | {row.run} | {row.counted} | {row.not_counted} |" for name, row in sorted(rows.items())),
        "",
        "## What does not run",
        "",
        *(f"- `{name}`: {why}" for _, row in sorted(rows.items()) for name, why in sorted(row.fails.items())),
    ]
    return "\n".join(lines) + "\n"
