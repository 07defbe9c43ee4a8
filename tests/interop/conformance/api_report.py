"""The second table of docs/conformance.md: TensorFlow's unit tests of its API on Tenfold's client. Called by api.py.

A test counts if it tests public behaviour: not left out by api_files.EXCLUDED, and not skipped by itself (for want of
a GPU, or because it runs eagerly).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import api_files
from processes import FileResult, Outcome
from report import REASONS, reason


@dataclass(frozen=True, slots=True)
class Counted:
    """One file's outcomes, sorted."""

    passed: int
    failed: dict[str, Outcome]
    excluded: dict[str, str]
    skipped: int
    import_error: str

    @property
    def counted(self) -> int:
        return self.passed + len(self.failed)

    @property
    def share(self) -> float:
        return 100 * self.passed / self.counted if self.counted else 0.0

    @property
    def line(self) -> str:
        left_out = f"{len(self.excluded)} left out, {self.skipped} skipped"
        return f"{self.passed} of {self.counted} = {self.share:.1f} %, {left_out} {self.import_error}"


def count(path: str, result: FileResult) -> Counted:
    passed, skipped = 0, 0
    failed: dict[str, Outcome] = {}
    excluded: dict[str, str] = {}
    for test, outcome in result.outcomes.items():
        why = next((rule.reason for rule in api_files.EXCLUDED if rule.covers(path, test)), None)
        if outcome.outcome == "skip":
            skipped += 1
        elif why is not None:
            excluded[test] = why
        elif outcome.outcome == "pass":
            passed += 1
        else:
            failed[test] = outcome
    return Counted(passed, failed, excluded, skipped, result.import_error)


def document(build: Path) -> str:
    """The part of docs/conformance.md, of every outcome kept under `build`."""
    rows, details = [], []
    totals: Counter[str] = Counter()
    for path in api_files.ALL:
        kept = build / f"{api_files.kept_as(path)}.json"
        if not kept.exists():
            continue
        found = count(path, FileResult.from_json(json.loads(kept.read_text())))
        mark = "**" if path in api_files.REQUIRED else ""
        if mark:
            totals.update(counted=found.counted, passed=found.passed, excluded=len(found.excluded), skip=found.skipped)
        rows.append(
            f"| {mark}`{Path(path).name}`{mark} | {found.counted} | {found.passed} | {found.share:.1f} % | "
            f"{len(found.excluded)} | {found.skipped} |"
        )
        if not found.failed and not found.excluded and not found.import_error:
            continue
        details.append(f"\n### `{path}`, on the client\n")
        details += [f"- the file does not import: {found.import_error}"] if found.import_error else []
        reasons = Counter(reason(outcome.message) for outcome in found.failed.values())
        for why, number in reasons.most_common(REASONS):
            tests = [_own(test) for test, outcome in found.failed.items() if reason(outcome.message) == why]
            named = ", ".join(f"`{test}`" for test in tests[:4]) + (" …" if number > 4 else "")
            details.append(f"- {number}: {why} ({named})")
        for why, number in Counter(found.excluded.values()).items():
            tests = [_own(test) for test, given in found.excluded.items() if given == why]
            details.append(f"- left out: {', '.join(f'`{test}`' for test in tests)}: {why}" if number else "")
    share = 100 * totals["passed"] / totals["counted"] if totals["counted"] else 0.0
    total = (
        f"| **the files in bold** | **{totals['counted']}** | **{totals['passed']}** | **{share:.1f} %** | "
        f"{totals['excluded']} | {totals['skip']} |"
    )
    return "\n".join([_HEAD, *rows, total, "\n## Failures on the client\n" if details else "", *details, ""])


def _own(test: str) -> str:
    return test.split(".", 1)[-1]


TITLE = "# TensorFlow's own unit tests of its API on Tenfold's client"

_HEAD = f"""{TITLE}

Unmodified test files of TensorFlow 1.15, whose imports are answered by Tenfold: the client under test is ours, each
session runs in the test's process. A test counts if it tests public behaviour in graph mode; what is left out is named
with its reason below, and a test that skips itself (no GPU, eager execution) says nothing. The files in bold are the
training API, held to 85 %. Made by

    python tests/interop/conformance/api.py --sources <a checkout of TensorFlow 1.15> --report docs/conformance.md

| file | public behaviour | pass | share | left out | skipped |
|---|---|---|---|---|---|"""
