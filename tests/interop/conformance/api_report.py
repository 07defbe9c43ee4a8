"""The second table of docs/conformance.md: TensorFlow's unit tests of its API on Tenfold's client. Called by api.py.

A test counts if it tests public behaviour: not left out by api_files.EXCLUDED, and not skipped by itself (for want of
a GPU, or because it runs eagerly). Rows of files without kept outcomes stay as they were, marked as in report.py.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import api_files
from api_explained import EXPLAINED
from processes import FileResult, Outcome
from report import NOT_AGAIN, REASONS, Earlier, reason

if TYPE_CHECKING:
    from collections.abc import Iterable


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


#: Family → what the paths of its files have; the first that fits. A file of none of them is of the last family.
FAMILIES = {
    "tf.estimator": r"^tensorflow_estimator/|contrib/estimator/",
    "tf.data": r"/data/(kernel_tests|util|experimental)/|contrib/data/",
    "tf.saved_model": r"/saved_model/",
    "tf.image": (
        r"/(image_\w+|decode_(bmp|image|png)_op|draw_bounding_box_op|attention_ops|extract_image_patches_op)_test"
    ),
    "tf.signal": r"/signal/",
    "recurrent networks": r"contrib/rnn/|kernel_tests/rnn(_cell)?_test",
    "contrib.seq2seq": r"contrib/seq2seq/",
    "contrib.slim": r"contrib/slim/",
    "feature columns": r"/feature_column",
    "contrib.layers": r"contrib/layers/",
    "contrib.learn": r"contrib/learn/",
    "contrib.training": r"contrib/training/",
    "contrib.opt": r"contrib/opt/",
    "contrib, the rest": r"contrib/",
    "sessions, variables, control flow, summaries": "",
}

#: The family of the files that api_files.REQUIRED has.
TRAINING = "the training API"


def family_of(path: str) -> str:
    if path in api_files.REQUIRED:
        return TRAINING
    return next(family for family, pattern in FAMILIES.items() if re.search(pattern, path))


def document(build: Path, before: str = "", is_same_day: bool = False) -> str:
    """The part of docs/conformance.md, of every outcome kept under `build`; other files' rows stay as in `before`.

    They are marked as of an earlier run, unless that was on the same day.
    """
    earlier = Earlier.read(before)
    rows: dict[str, list[str]] = {}
    details: list[str] = []
    for path in api_files.ALL:
        kept = build / f"{api_files.kept_as(path)}.json"
        if kept.exists():
            found = count(path, FileResult.from_json(json.loads(kept.read_text())))
            row, told = _row(path, found), _details(path, found)
        else:
            name = _shown(path)
            row = earlier.rows.get(name, "") if is_same_day else earlier.row(name)
            told = earlier.details.get(f"{path}`, on the client", [])
        if row:
            rows.setdefault(family_of(path), []).append(row)
            details += [f"\n### `{path}`, on the client\n", *told] if told else []
    lines = [_HEAD, *(_sum(family, rows[family]) for family in (TRAINING, *FAMILIES) if family in rows)]
    lines.append(_sum("**all**", [row for family in rows.values() for row in family]))
    for family in (TRAINING, *FAMILIES):
        if family in rows:
            lines += [f"\n## {family[0].upper()}{family[1:]}\n" if family == TRAINING else f"\n## {family}\n"]
            lines += [_COLUMNS.format("file"), *rows[family]]
    return "\n".join([*lines, "\n## Failures on the client" if details else "", *details, ""])


def _shown(path: str) -> str:
    """The file's name, or its path where the name is another's."""
    name = Path(path).name
    return name if api_files.kept_as(path) == name.removesuffix(".py") else path


def _row(path: str, found: Counted) -> str:
    mark = "**" if path in api_files.REQUIRED else ""
    return (
        f"| {mark}`{_shown(path)}`{mark} | {found.counted} | {found.passed} | {found.share:.1f} % | "
        f"{len(found.excluded)} | {found.skipped} |"
    )


def _sum(family: str, rows: Iterable[str]) -> str:
    """A row for a family, of the rows of its files."""
    cells = [[int(row.split(" | ")[at].rstrip(" |")) for at in (1, 2, 4, 5)] for row in rows]
    counted, passed, excluded, skipped = (sum(column) for column in zip(*cells, strict=True))
    share = 100 * passed / counted if counted else 0.0
    return f"| {family} | {counted} | {passed} | {share:.1f} % | {excluded} | {skipped} |"


def _details(path: str, found: Counted) -> list[str]:
    told = [f"- the file does not import: {found.import_error}"] if found.import_error else []
    why_of = {test: _explanation(path, test) or reason(outcome.message) for test, outcome in found.failed.items()}
    for why, number in Counter(why_of.values()).most_common(REASONS):
        tests = [_own(test) for test, given in why_of.items() if given == why]
        named = ", ".join(f"`{test}`" for test in tests[:4]) + (" …" if number > 4 else "")
        told.append(f"- {number}: {why} ({named})")
    for why in dict.fromkeys(found.excluded.values()):
        tests = [_own(test) for test, given in found.excluded.items() if given == why]
        told.append(f"- left out: {', '.join(f'`{test}`' for test in tests)}: {why}")
    return told


def _explanation(path: str, test: str) -> str:
    return next((rule.reason for rule in EXPLAINED if rule.covers(path, test)), "")


def _own(test: str) -> str:
    return test.split(".", 1)[-1]


TITLE = "# TensorFlow's own unit tests of its API on Tenfold's client"

_COLUMNS = """| {} | public behaviour | pass | share | left out | skipped |
|---|---|---|---|---|---|"""

_HEAD = f"""{TITLE}

Unmodified test files of TensorFlow 1.15 and of its estimator's repository, whose imports are answered by Tenfold: the
client under test is ours, each session runs in the test's process. A test counts if it tests public behaviour in graph
mode; what is left out is named with its reason below, and a test that skips itself (no GPU, eager execution) says
nothing. The files in bold are the training API, held to 85 %. A row with {NOT_AGAIN} is of an earlier day: its file was
not run again with the others. Failed tests were run again, alone, after the faults were fixed. Made by

    python tests/interop/conformance/api.py --sources <a checkout of TensorFlow 1.15> \\
        --estimator <a checkout of TensorFlow's estimator 1.15> --report docs/conformance.md

{_COLUMNS.format("family")}"""
