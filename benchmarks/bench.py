"""All benchmarks in a row: `make bench`, or `python benchmarks/bench.py --quick`. Writes the figures, then the report.

    python benchmarks/bench.py [--quick] [--subjects null_step,executor] [--json figures.json] [--report FOLDER]

Every subject is a script of its own that can be run alone. Without TensorFlow (`make tf-env`) only Tenfold's figures
are taken, and the report says so. A subject that fails costs its own figures only; a run that is interrupted (Ctrl-C,
SIGTERM) keeps and reports those that it has.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import sys
import time
from pathlib import Path
from typing import NoReturn

import harness

#: Scripts, in the order of the report. Each has a SUBJECT.
SUBJECTS = (
    "null_step",
    "remote_null_step",
    "cross_task",
    "dense_pull",
    "dense_push",
    "null_replica",
    "executor",
    "training",
    "feed_fetch",
    "control_service",
    "foreign_client",
    "hello",
    "footprint",
    "kernels",
    "embeddings",
    "reporting",
    "gate",
    "input_pipelines",
    "peers",
    "programs",
)


def named(text: str) -> list[str]:
    """The subjects of a comma-separated list. Raises argparse's error for one that there is not."""
    names = [each.strip() for each in text.split(",") if each.strip()]
    if unknown := [name for name in names if name not in SUBJECTS]:
        raise argparse.ArgumentTypeError(f"there is no subject {unknown[0]!r}; there are {', '.join(SUBJECTS)}")
    return names


def raise_again(error: ImportError, *_: object) -> NoReturn:
    """The rows of a subject that could not be loaded: the report says so, and the others go on."""
    raise error


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the benchmarks and write a dated report.")
    harness.add_options(parser)
    parser.add_argument(
        "--subjects", type=named, default=list(SUBJECTS), help=f"some of {', '.join(SUBJECTS)} (default: all)"
    )
    parser.add_argument("--report", help="folder for a dated report with pictures, such as benchmarks/reports")
    options = parser.parse_args()
    record = harness.Record(options, harness.HERE / "reports" / "latest.json")
    started = time.monotonic()
    for name in options.subjects:
        try:
            subject = importlib.import_module(name).SUBJECT
        except ImportError as error:
            subject = harness.Subject("?", name, name, rows=functools.partial(raise_again, error))
        record.add(harness.measure(subject, record.effort, record.wish))
        if record.subjects[-1]["ended"] == harness.INTERRUPTED:
            break
    print(f"\n{time.monotonic() - started:.0f} s; figures in {record.path}")
    if options.report:
        import report

        assert record.path is not None
        print(f"report in {report.write(record.path, Path(options.report))}")
    ended = [each["module"] for each in record.subjects if each["ended"]]
    sys.exit(f"ended early: {', '.join(ended)}" if ended else 0)


if __name__ == "__main__":
    main()
