"""The command line that all subjects share, the interpreters of the sides, and the record that a run leaves.

`main` runs one subject; bench.py runs many through `measure`. A subject that ends early keeps its rows until then.
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.machine import busy, commit, doubts, keep_caches, machine, versions
from harness.processes import HERE
from harness.program import QUICK, Effort, Wish
from harness.rounds import rows_of_cases
from harness.text import row_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.program import Subject

#: The reason of a subject that a signal ended.
INTERRUPTED = "interrupted"


def find_pythons(tensorflow: str | None, peers: str | None, baseline: str | None = None) -> dict[str, str]:
    """The interpreters: this one for Tenfold; for TensorFlow the one given, or that of `make tf-env`; the peers'; that
    of an older checkout of Tenfold, if one is given.
    """
    found = {"tenfold": Path(sys.executable)}
    if baseline:
        found["baseline"] = Path(baseline)
    for name, told, folder in (
        ("tensorflow", tensorflow, ".venv-tf"),
        ("tensorflow1", None, ".venv-tf1.15"),
        ("peers", peers, ".venv-peers"),
    ):
        found[name] = Path(told) if told else HERE.parent / folder / "bin" / "python"
    return {name: str(python) for name, python in found.items() if python.exists()}


def effort_of(quick: bool, rounds: int | None, seconds: float | None) -> Effort:
    effort = QUICK if quick else Effort()
    return replace(effort, rounds=rounds or effort.rounds, seconds=seconds or effort.seconds)


def measure(subject: Subject, effort: Effort, wish: Wish, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Measures one subject; its record, as plain data. An early end has its reason under "ended".

    Never raises what a subject raises, so that its other rows and the other subjects are kept.
    """
    say(f"\n{subject.number}. {subject.title}")
    started, before = time.monotonic(), busy()
    for doubt in doubts(before):
        say(f"  ! {doubt}")
    rows, ended = [], ""
    try:
        for row in subject.rows(effort, wish) if subject.rows else rows_of_cases(subject, effort, wish):
            rows.append(row)
            say(row_text(row))
    except KeyboardInterrupt:
        ended = INTERRUPTED
    except Exception as error:
        ended = f"{type(error).__name__}: {error}"
        say(traceback.format_exc())
    if ended:
        say(f"  ended early: {ended}")
    return {
        "number": subject.number,
        "module": subject.module,
        "title": subject.title,
        "effort": effort.__dict__,
        "before": before,
        "wall_s": round(time.monotonic() - started, 1),
        "ended": ended,
        "rows": rows,
    }


def main(subject: Subject) -> None:
    """The command line of one subject. Exits with 1 if it ended early."""
    parser = argparse.ArgumentParser(description=f"Benchmark {subject.number}: {subject.title}.")
    add_options(parser)
    options = parser.parse_args()
    record = Record(options)
    record.add(measure(subject, record.effort, record.wish))
    sys.exit(record.subjects[-1]["ended"] or 0)


class Record:
    """The record of a run, written again after each subject: the JSON that report.py reads."""

    def __init__(self, options: argparse.Namespace, path: Path | None = None) -> None:
        """Reads the options of add_options; prints what may disturb the figures."""
        self.wish = Wish(
            find_pythons(options.tensorflow, options.peers, options.baseline),
            options.only,
            tuple(each.strip() for each in options.sides.split(",") if each.strip()),
        )
        self.effort = effort_of(options.quick, options.rounds, options.seconds)
        #: Where it is written, if anywhere.
        self.path = Path(options.json) if options.json else path
        self.subjects: list[dict[str, Any]] = []
        self._doubts = keep_caches()
        for doubt in self._doubts:
            print(f"! {doubt}.")
        if "tensorflow" not in self.wish.pythons:
            print("! TensorFlow is not installed beside this (make tf-env): only Tenfold is measured.")
        # a run that a signal ends keeps its figures, too
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        self._head = {
            "date": time.strftime("%Y-%m-%d"),
            "command": command_line(sys.argv),
            "commit": commit(HERE),
            "machine": machine(),
            "versions": versions(self.wish.pythons) if self.path else {},
            "baseline": commit(Path(options.baseline).parent) if options.baseline else "",
            "doubts": self._doubts,
        }

    def add(self, subject: dict[str, Any]) -> None:
        self.subjects.append(subject)
        if self.path:
            whole = {**self._head, "subjects": self.subjects}
            self.path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")


def command_line(arguments: Sequence[str]) -> str:
    """The command without paths of this machine, which mean nothing to a reader."""
    words, skip = [Path(arguments[0]).name], False
    for word in arguments[1:]:
        place = word.partition("=")[0] in ("--json", "--peers", "--tensorflow", "--report", "--baseline")
        if not skip and not place:
            words.append(shlex.quote(word))
        skip = place and "=" not in word
    return " ".join(words)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the scripts of the subjects and bench.py have in common."""
    parser.add_argument("--quick", action="store_true", help="short rounds: a look, not a report")
    parser.add_argument("--rounds", type=int, help="A/B rounds; at least 5 for a report")
    parser.add_argument("--seconds", type=float, help="timed seconds per side and round")
    parser.add_argument("--tensorflow", help="interpreter with TensorFlow (default: that of `make tf-env`)")
    parser.add_argument("--peers", help="interpreter with torch and Ray (default: that of .venv-peers)")
    parser.add_argument("--baseline", help="interpreter of an older checkout's environment, measured beside this one")
    parser.add_argument("--json", help="write the figures here")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--sides", default="", help="comma-separated names of sides")
