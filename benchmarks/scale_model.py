#!/usr/bin/env python3
"""The tables and the model of docs/scale.md, from the figures that scale.py and control_load.py have written.

The model of a step's processor time is a line: what a step costs by itself, and what each further worker adds. It is
fitted to the measured points by least squares, weighted so that a relative error counts the same at each, and printed
beside them. Prints Markdown.

    python benchmarks/scale.py --json scale.json
    python benchmarks/scale_model.py scale.json [--control one.json …]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from scale import SERVERS, SERVERS_WORKERS, WORKERS, named

KINDS = ("null step", "dense 100 MB", "32 rows of 1 GB")
SIDES = ("tenfold", "tenfold tcp", "tensorflow")
#: Of the workers' job the first is the client's own process.
_FIRST = 1


def fitted(counts: list[int], times: list[float]) -> tuple[float, float]:
    """(fixed, per count) of the line through the points."""
    n, t = np.array(counts, float), np.array(times, float)
    (fixed, each), *_ = np.linalg.lstsq(np.stack([1 / t, n / t], axis=1), np.ones_like(t), rcond=None)
    return float(fixed), float(each)


def milliseconds(microseconds: float) -> str:
    value = microseconds / 1e3
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


class Rows:
    """The rows of a report by case."""

    def __init__(self, report: dict[str, Any]) -> None:
        self._rows = {row["case"]: row for subject in report["subjects"] for row in subject["rows"]}

    def figure(self, kind: str, workers: int, servers: int, side: str) -> dict[str, Any] | None:
        row = self._rows.get(named(kind, workers, servers))
        found: dict[str, Any] | None = None if row is None else row["figures"].get(side)
        return found

    def table(self, kind: str, places: list[tuple[int, int]]) -> list[str]:
        """Time a step and, in brackets, processor time over all processes."""
        lines = [f"| {kind} | {' | '.join(SIDES)} |", "|---|---|---|---|"]
        for workers, servers in places:
            cells = []
            for side in SIDES:
                figure = self.figure(kind, workers, servers, side)
                both = None if figure is None else (milliseconds(figure["p50_us"]), milliseconds(figure["cpu_us"]))
                cells.append("—" if both is None else f"{both[0]} ({both[1]})")
            lines.append(f"| {workers} worker{'s' * (workers > 1)}, {servers} ps | {' | '.join(cells)} |")
        return lines

    def model(self, side: str) -> list[str]:
        """The null step's processor time by who uses it, measured and as the line has it."""
        parts = {"client": ("client",), "ps": ("ps",), "client and ps": ("client", "ps")}
        counted = "; ".join(map(str, WORKERS))
        lines = [f"| {side}: null step | fixed, ms | each worker, ms | measured (model), {counted} workers |"]
        lines.append("|---|---|---|---|")
        for name, jobs in parts.items():
            points = []
            for workers in WORKERS:
                figure = self.figure(KINDS[0], workers, 1, side)
                if figure is not None:
                    points.append((workers, sum(figure["cpu_us_by_job"][job] for job in jobs)))
            counts, times = [n for n, _ in points], [t for _, t in points]
            fixed, each = fitted(counts, times)
            shown = "; ".join(f"{milliseconds(t)} ({milliseconds(fixed + each * n)})" for n, t in points)
            lines.append(f"| {name} | {milliseconds(fixed)} | {milliseconds(each)} | {shown} |")
        own = []
        for workers in WORKERS[1:]:
            figure = self.figure(KINDS[0], workers, 1, side)
            if figure is not None:
                own.append(milliseconds(figure["cpu_us_by_job"]["worker"] / (workers - _FIRST)))
        lines.append(f"| a worker's own | | | —; {'; '.join(own)} |")
        return lines


def control_table(paths: list[Path]) -> list[str]:
    """One row for each load of control services."""
    heads = (
        *("tasks", "services", "heartbeats a second", "all registered, s"),
        *("heartbeat p50, p99, ms", "listing p50, p99, ms", "cores of services"),
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for path in paths:
        found = json.loads(path.read_text())
        times = [f"{found[name]['p50_ms']:g}, {found[name]['p99_ms']:g}" for name in ("heartbeat", "listing")]
        cells = [found["tasks"], found["services"], found["tasks"] / found["every"], found["tasks_registered_s"]]
        lines.append(f"| {' | '.join(map(str, (*cells, *times, found['service_cores'])))} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("--control", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    rows = Rows(json.loads(options.report.read_text()))
    places = [*((workers, 1) for workers in WORKERS), *((SERVERS_WORKERS, servers) for servers in SERVERS)]
    for kind in KINDS:
        print("\n".join(rows.table(kind, places)), end="\n\n")
    for side in ("tenfold", "tensorflow"):
        print("\n".join(rows.model(side)), end="\n\n")
    if options.control:
        print("\n".join(control_table(options.control)))


if __name__ == "__main__":
    main()
