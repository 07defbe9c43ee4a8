"""The protocol: all sides of a case are built, compared and warmed up, and then take turns, round after round.

A side's figure is the median over the rounds of a round's p50, a ratio is taken within a round (rows.py). Cases of one
topology share their processes (processes.py).
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.neighbours import neighbours
from harness.processes import Deployment, SideFailedError
from harness.rows import compare, hold_first, hold_flat, hold_steady, round_figures, row_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import numpy as np

    from harness.program import Case, Effort, Subject, Wish

#: Timed seconds of a round with busy neighbours at least: a core is lost and had for milliseconds at a time, and which
#: processes share one changes a few times a second.
_BUSY_S = 1.5


def measure_case(
    case: Case, deployments: Mapping[str, Deployment], effort: Effort, failures: dict[str, str], folder: Path
) -> list[dict[str, Any]]:
    """Builds, checks, warms up and measures one case on all sides that can: a row of the table, and a second one with
    busy neighbours if the case asks for them.
    """
    results: dict[str, dict[str, np.ndarray[Any, Any]]] = {}
    for name, deployment in deployments.items():
        for attempt in range(2):
            # A second try: TensorFlow's in-process session sometimes takes two of its own requests for one.
            try:
                if attempt:
                    deployment.restart()
                found = deployment.build(case, folder)
                deployment.run(case.warm_up_s * effort.warm_up_scale, effort.least_steps)
                results[name] = found
                break
            except SideFailedError as error:
                failures[name] = str(error)
    # TensorFlow is the reference wherever it takes part.
    order = sorted(results, key=lambda name: deployments[name].side.runtime != "tensorflow")
    held = {name: results[name] for name in order if results[name] or deployments[name].side.runtime != "peers"}
    agreement, worst = compare(held, case.rtol) if held else ("no side ran", 0.0)

    loads = (0, case.neighbours) if case.neighbours else (0,)
    rows: list[dict[str, Any]] = []
    sides = {name: deployment.side for name, deployment in deployments.items()}
    for load in loads:
        least = max(case.least_s, _BUSY_S if load else 0.0) if effort.thorough else 0.0
        with neighbours(load):
            rounds = _take_turns(
                results, deployments, replace(effort, seconds=max(effort.seconds, least)), case.metric, failures
            )
        row = row_of(case, rounds, sides, failures, agreement, worst)
        for name, figure in row["figures"].items():
            figure["first_s"] = deployments[name].first_s
        row["floor_us"] = 1e6 * min((each.floor_s for each in deployments.values() if each.floor_s), default=0.0)
        if not load:
            hold_first(row)
        else:
            row["case"] = f"{case.name}, {load} busy neighbours"
            hold_steady(row, rows[0])
        rows.append(row)
    return rows


def _take_turns(
    sides: Collection[str],
    deployments: Mapping[str, Deployment],
    effort: Effort,
    metric: str,
    failures: dict[str, str],
) -> dict[str, dict[int, dict[str, float]]]:
    """Side → round → figures. A single failed step costs a round; two failures, or a dead process, cost the row."""
    rounds: dict[str, dict[int, dict[str, float]]] = {name: {} for name in sides}
    for number in range(effort.rounds):
        for name in list(rounds):
            try:
                answers = deployments[name].run(effort.seconds, effort.least_steps)
                rounds[name][number] = round_figures(answers, metric)
            except SideFailedError as error:
                if name in failures or deployments[name].broken():
                    del rounds[name]
                failures[name] = str(error)
    return {name: values for name, values in rounds.items() if values}


def rows_of_cases(subject: Subject, effort: Effort, wish: Wish) -> Iterator[dict[str, Any]]:
    """Measures the cases of a subject, and gives each row as soon as it is there."""
    usable = wish.taken(subject.sides)
    cases = [case for case in subject.cases if wish.only in case.name]
    found: dict[str, dict[str, Any]] = {}
    folder = Path(tempfile.mkdtemp(prefix="tenfold-bench-"))
    try:
        together = (lambda case: case.name) if subject.fresh else (lambda case: case.topology)
        for key in dict.fromkeys(together(case) for case in cases):
            here = [case for case in cases if together(case) == key]
            wanted = [s for s in usable if any(case.takes(s) for case in here)]
            deployments: dict[str, Deployment] = {}
            try:
                for side in wanted:
                    deployments[side.name] = Deployment(side, here[0].topology, subject.module, wish.pythons, folder)
                for row in _rows_here(here, deployments, effort, folder):
                    found[row["case"]] = row
                    if row["flat_with"] in found:
                        hold_flat(row, found[row["flat_with"]])
                    yield row
            finally:
                for deployment in deployments.values():
                    deployment.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _rows_here(
    cases: Sequence[Case], deployments: Mapping[str, Deployment], effort: Effort, folder: Path
) -> Iterator[dict[str, Any]]:
    """The cases of one topology, on its running processes."""
    dead: dict[str, str] = {}
    for name, deployment in deployments.items():
        try:
            deployment.wait_ready()
        except SideFailedError as error:
            dead[name] = str(error)
    for case in cases:
        alive = {
            name: deployment
            for name, deployment in deployments.items()
            if name not in dead and case.takes(deployment.side)
        }
        failures = {n: why for n, why in dead.items() if case.takes(deployments[n].side)}
        rows = measure_case(case, alive, effort, failures, folder)
        yield from rows
        if case is cases[-1]:
            break  # its processes end: TensorFlow's session would wait two minutes for a queue runner that aggregates
        for deployment in alive.values():
            with contextlib.suppress(SideFailedError):
                deployment.close_case()
        for name in set(rows[-1]["failures"]) - set(dead):
            # A failure must not affect the next case: that side's processes are started again.
            try:
                deployments[name].restart()
            except SideFailedError as error:
                dead[name] = str(error)
