"""All benchmarks in a row: `make bench`, or `python benchmarks/bench.py --quick`. Writes the figures, then the report.

    python benchmarks/bench.py [--quick] [--subjects null_step,executor] [--json figures.json] [--report FOLDER]

Every subject is a script of its own that can be run alone. Without TensorFlow (`make tf-env`) only Tenfold's figures
are taken, and the report says so.
"""

from __future__ import annotations

import argparse
import importlib
import time
import traceback
from pathlib import Path

import harness

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
    "footprint",
    "peers",
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the benchmarks and write a dated report.")
    harness.add_options(parser)
    parser.add_argument("--subjects", default=",".join(SUBJECTS), help="comma-separated scripts")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--sides", default="", help="comma-separated names of sides")
    parser.add_argument("--report", help="folder for a dated report with pictures, such as benchmarks/reports")
    options = parser.parse_args()
    pythons = harness.find_pythons(options.tensorflow, options.peers)
    effort = harness.effort_of(options.quick, options.rounds, options.seconds)
    figures = Path(options.json or harness.HERE / "reports" / "latest.json")
    if "tensorflow" not in pythons:
        print("TensorFlow is not installed beside this (make tf-env): only Tenfold is measured.")

    sides = [each for each in options.sides.split(",") if each]
    started, done = time.monotonic(), []
    for name in options.subjects.split(","):
        module = importlib.import_module(name)
        try:
            if hasattr(module, "SUBJECT"):
                done.append(harness.run_subject(module.SUBJECT, effort, pythons, options.only, sides))
            else:
                done.append(module.run(effort, pythons))
        except Exception:
            # One broken subject must not cost the others' figures; it is missing in the report, and said here.
            print(f"  {name} failed:\n{traceback.format_exc()}")
        harness.write_json(figures, pythons, done)
    print(f"\n{time.monotonic() - started:.0f} s; figures in {figures}")
    if options.report:
        import report

        print(f"report in {report.write(figures, Path(options.report))}")


if __name__ == "__main__":
    main()
