"""Compares outcomes: the text that a run prints, and the table of docs/conformance.md. Called by run.py.

A test counts if it passes against TensorFlow's own server and sends it at least one step; Tenfold's share is the
part of those that passes against a Tenfold server, without the tests that files.EXCLUDED leaves out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import files
from processes import FileResult, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Differences that are printed in full by a run, and reasons that the table names for a file.
SHOWN, REASONS = 60, 6


@dataclass(frozen=True, slots=True)
class Compared:
    counted: list[str]
    passed: list[str]
    #: Test → outcome with Tenfold, of the counted ones that differ.
    differ: dict[str, Outcome]
    excluded: dict[str, str]
    offline: int  #: pass with TensorFlow, but send nothing

    @property
    def share(self) -> float:
        return 100 * len(self.passed) / len(self.counted) if self.counted else 100.0


def compare(path: str, theirs: FileResult, ours: FileResult) -> Compared:
    counted, passed, differ, excluded, offline = [], [], {}, {}, 0
    for test, outcome in theirs.outcomes.items():
        if outcome.outcome != "pass":
            continue
        if not outcome.calls and "server_lib" not in path:
            offline += 1
            continue
        reason = next((rule.reason for rule in files.EXCLUDED if rule.covers(path, test)), None)
        if reason is not None:
            excluded[test] = reason
            continue
        counted.append(test)
        found = ours.outcomes.get(test, Outcome("unrun", ours.import_error))
        if found.outcome == "pass":
            passed.append(test)
        else:
            differ[test] = found
    return Compared(counted, passed, differ, excluded, offline)


def story(path: str, found: Mapping[str, FileResult]) -> str:
    """What a run prints of one file."""
    lines = [f"== {path}"]
    for server, result in found.items():
        count = Counter(outcome.outcome for outcome in result.outcomes.values())
        lines.append(f"   {server}: {dict(count)} {result.import_error}")
    if len(found) == 2:
        compared = compare(path, found["tensorflow"], found["tenfold"])
        lines.append(f"   {len(compared.passed)} of {len(compared.counted)} = {compared.share:.1f} %")
        differ = compared.differ
    else:
        results = next(iter(found.values())).outcomes
        differ = {test: outcome for test, outcome in results.items() if outcome.outcome not in ("pass", "skip")}
    for test, outcome in list(differ.items())[:SHOWN]:
        own = test.split(".", 1)[-1]
        lines.append(f"   {outcome.outcome:8s}{own}: {' '.join(outcome.message.split())[:300]}")
    return "\n".join(lines)


#: Lines that say where, not what.
_SAYS_WHERE = re.compile(r"Graph execution error:|From /job:\S+:$|Detected at node")


def reason(message: str) -> str:
    """The first line that says something, without what differs from test to test."""
    kind, colon, said = message.partition(": ")
    lines = (line.strip() for line in (said if colon else kind).splitlines())
    first = next((line for line in lines if line and not _SAYS_WHERE.match(line)), "no message")
    text = f"{kind}: {first}" if colon else first
    text = re.sub(r"^\w+(\.\w+)*\.(\w+Error)", r"\2", text)
    text = re.sub(r"\S*/tmp\S*", "…", text)
    text = re.sub(r"\{\{node [^}]*\}\}|'[^']{24,}'|0x[0-9a-f]+|\b\d+(\.\d+)?\b", "…", text)
    return text[:160]


def explanation(path: str, test: str) -> str:
    """The reason that files.EXPLAINED has for a test that does not pass; empty where its error says enough."""
    return next((rule.reason for rule in files.EXPLAINED if rule.covers(path, test)), "")


@dataclass(frozen=True, slots=True)
class Earlier:
    """Rows and reasons that a document had before, of files that were not run again."""

    rows: Mapping[str, str]
    details: Mapping[str, list[str]]

    @classmethod
    def read(cls, text: str) -> Earlier:
        rows = {found[1]: found[0] for found in re.finditer(r"(?m)^\| \*{0,2}`([^`]+)`\*{0,2}.*$", text)}
        details: dict[str, list[str]] = {}
        for section in re.split(r"(?m)^### ", text)[1:]:
            path, *lines = section.splitlines()
            details[path.strip("`")] = [line for line in lines if line.startswith("- ")]
        return cls(rows, details)

    def row(self, name: str) -> str:
        """Empty where there was none."""
        row = self.rows.get(name, "")
        return row if NOT_AGAIN in row else row.replace(" | ", f" {NOT_AGAIN} | ", 1)


#: Marks a row of an earlier run.
NOT_AGAIN = "†"


def part(text: str, title: str) -> str:
    """The part of a document that begins with the heading `title`; empty where it has none."""
    return next((part for part in re.split(r"(?m)^(?=# )", text) if part.startswith(f"{title}\n")), "")


def document(build: Path, before: str = "") -> str:
    """The part of docs/conformance.md, of every outcome kept under `build`; other files' rows stay as in `before`."""
    rows, details = [], []
    earlier = Earlier.read(before)
    for path in (*files.REQUIRED, *files.FURTHER):
        kept = [build / server / f"{Path(path).stem}.json" for server in ("tensorflow", "tenfold")]
        if not all(file.exists() for file in kept):
            row = earlier.row(Path(path).name)
            rows += [row] if row else []
            if row and path in earlier.details:
                details += [f"\n### `{path}`\n", *earlier.details[path]]
            continue
        theirs, ours = (FileResult.from_json(json.loads(file.read_text())) for file in kept)
        compared = compare(path, theirs, ours)
        mark = "**" if path in files.REQUIRED else ""
        rows.append(
            f"| {mark}`{Path(path).name}`{mark} | {len(compared.counted)} | {len(compared.passed)} | "
            f"{compared.share:.1f} % | {len(compared.excluded)} | {compared.offline} |"
        )
        if not compared.differ and not compared.excluded:
            continue
        details.append(f"\n### `{path}`\n")
        whys = {test: explanation(path, test) or reason(outcome.message) for test, outcome in compared.differ.items()}
        for why, count in Counter(whys.values()).most_common(REASONS):
            tests = [test.split(".", 1)[-1] for test in compared.differ if whys[test] == why]
            named = ", ".join(f"`{test}`" for test in tests[:4]) + (" …" if count > 4 else "")
            details.append(f"- {count}: {why} ({named})")
        details += [f"- left out: `{test.split('.', 1)[-1]}`: {why}" for test, why in compared.excluded.items()]
    return "\n".join([_HEAD, *rows, "\n## Differences\n" if details else "", *details, ""])


def replace_part(file: Path, title: str, text: str) -> None:
    """Writes the part of `file` that begins with the heading `title`; parts under other "# " headings stay."""
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    parts = {part.partition("\n")[0]: part for part in re.split(r"(?m)^(?=# )", before) if part.strip()}
    parts[title] = text
    file.write_text("\n".join(part.strip() + "\n" for part in parts.values()), encoding="utf-8")


TITLE = "# TensorFlow's own unit tests over the wire"

_HEAD = f"""{TITLE}

Unmodified test files of TensorFlow 2.21 and its own Python client, every default session pointed at a server in another
process with `isolate_session_state`: once a server of TensorFlow's, once a Tenfold server. A test counts if it passes
against TensorFlow's server and sends it at least one step, in graph mode; tests that run eagerly or send nothing say
nothing about a server. Tests that start servers of their own get Tenfold servers in the second run. The files in bold
are held to 95 %. A row with {NOT_AGAIN} is of an earlier run: its file was not run again with the others. Made by

    python tests/interop/conformance/run.py --sources <a checkout of TensorFlow 2.21> --report docs/conformance.md

| file | pass with TensorFlow's server | and with Tenfold's | share | left out | send nothing |
|---|---|---|---|---|---|"""
