"""A row of the table: agreement of results, figures, ratios and verdicts. Pure: no process, no clock.

Rows are plain data; they go into the JSON that report.py reads. text.py formats them.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.sides import TENFOLD, TENFOLD_COLD, baseline_name
from harness.text import time_text, times_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from harness.program import Case
    from harness.sides import Side
#: What a step used, and which round's figure stands in a row: a steady state's pages are those of the median.
_USED: Mapping[str, Callable[[Iterable[float]], float]] = {
    "faults": statistics.median,
    "cpu_us": statistics.median,
    "peak_mib": max,
}
#: Before a job's name: the part of "cpu_us" that its tasks used, "client" for the clients.
_JOB = "cpu_us of "
#: With busy neighbours a ratio keeps this share of what it is without.
STEADY = 0.8
#: How long the first step of a session may take: with warm caches, times TensorFlow's; with cold ones, in seconds.
FIRST, COLD_S = 1.5, 3.0


def compare(results: Mapping[str, Mapping[str, np.ndarray[Any, Any]]], rtol: float) -> tuple[str, float]:
    """Holds every side's results against the first side's: ("equal" or what differs, greatest difference).

    The difference is relative to the greatest element of the array. NaN agrees with NaN, and with nothing else.
    """
    names = list(results)
    if len(names) < 2:
        return "not compared: one side alone", 0.0
    reference, worst = results[names[0]], 0.0
    for name in names[1:]:
        if set(results[name]) != set(reference):
            return f"{name} gives {sorted(results[name])}, {names[0]} gives {sorted(reference)}", float("inf")
        for key, expected in reference.items():
            got = results[name][key]
            if got.shape != expected.shape or got.dtype != expected.dtype:
                return f"{key}: {got.dtype}{got.shape} against {expected.dtype}{expected.shape} on {name}", float("inf")
            if np.array_equal(got, expected, equal_nan=expected.dtype.kind in "fc"):
                continue
            scale = max(float(np.max(np.abs(expected), initial=0.0)), 1e-30)
            difference = float(np.max(np.abs(np.subtract(got, expected, dtype=np.float64)), initial=0.0)) / scale
            worst = max(worst, float("inf") if np.isnan(difference) else difference)
    return ("equal" if worst <= rtol else f"differs by {worst:.2g}"), worst


def round_figures(answers: Sequence[Mapping[str, Any]], metric: str) -> dict[str, float]:
    """One round of one side: microseconds at p50 and p99, or for a throughput microseconds per global step; and what
    all processes together used, page faults and processor time by step.
    """
    p99, steps = max(each["p99_us"] for each in answers), sum(each["steps"] for each in answers)
    used = [each["usage"] for each in answers]
    spent = {
        "faults": sum(each["faults"] for each in used) / steps,
        "cpu_us": 1e6 * sum(each["cpu_s"] for each in used) / steps,
        "peak_mib": sum(each["peak_mib"] for each in used),
        **{f"{_JOB}{job}": 1e6 * seconds / steps for job, seconds in used[0].get("by_job", {}).items()},
    }
    if metric == "latency":
        return {"p50_us": statistics.median(each["p50_us"] for each in answers), "p99_us": p99, **spent}
    window = max(each["end"] for each in answers) - min(each["start"] for each in answers)
    return {"p50_us": 1e6 * window / steps, "p99_us": p99, **spent}


def row_of(
    case: Case,
    rounds: Mapping[str, Mapping[int, Mapping[str, float]]],
    sides: Mapping[str, Side],
    failures: Mapping[str, str],
    agreement: str,
    worst: float,
) -> dict[str, Any]:
    """Statistics, ratios and verdicts of a case, as plain data."""
    figures: dict[str, dict[str, Any]] = {
        name: {
            "p50_us": statistics.median(each["p50_us"] for each in values.values()),
            "p99_us": statistics.median(each["p99_us"] for each in values.values()),
            "best_us": min(each["p50_us"] for each in values.values()),
            "rounds_us": [round(each["p50_us"], 3) for each in values.values()],
            **{
                what: round(choose(each[what] for each in values.values() if what in each), 1)
                for what, choose in _USED.items()
                if any(what in each for each in values.values())
            },
            "cpu_us_by_job": {
                key.removeprefix(_JOB): round(statistics.median(each[key] for each in values.values()), 1)
                for key in next(iter(values.values()))
                if key.startswith(_JOB)
            },
        }
        for name, values in rounds.items()
    }
    peers = [name for name in rounds if sides[name].runtime not in ("tenfold", "baseline")]
    theirs = [name for name in peers if sides[name].runtime != "peers"]
    counted = [name for name in theirs if not case.against or name in case.against]
    ratios: dict[str, dict[str, float]] = {}
    #: By side: how many times faster than the same side of the older checkout.
    baseline: dict[str, float] = {}
    for name in rounds:
        if sides[name].runtime == "tenfold":
            ratios[name] = {peer: _ratio(rounds[peer], rounds[name]) for peer in peers}
            if baseline_name(name) in rounds:
                baseline[name] = _ratio(rounds[baseline_name(name)], rounds[name])
    verdicts: dict[str, str] = {}
    for name, demand in case.demands.items():
        if name in figures and counted:
            reached = min(ratios[name][peer] for peer in counted)
            verdicts[name] = f"{'met' if reached >= demand else 'missed'}: {times_text(reached)}x of ≥ {demand:g}x"
        for peer, least in case.peers.items():
            if peer in ratios.get(name, {}):
                reached = ratios[name][peer]
                kept = "met" if reached >= least else "missed"
                _add_verdict(verdicts, name, f"{kept}: {times_text(reached)}x {peer} of ≥ {least:g}x")
    for name, limit in case.limits_us.items():
        if name in figures:
            taken = float(figures[name]["p50_us"])
            kept = "met" if taken <= limit else "missed"
            _add_verdict(verdicts, name, f"{kept}: {time_text(taken)} of ≤ {time_text(limit)}")
    _hold_usage(case, figures, sides, verdicts)
    return {
        "case": case.name,
        "topology": str(case.topology),
        "metric": case.metric,
        "work": case.work,
        "unit": case.unit,
        "demands": dict(case.demands),
        "limits_us": dict(case.limits_us),
        "stretch": case.stretch,
        "flat_with": case.flat_with,
        "flat_by": case.flat_by,
        "note": case.note,
        "results": agreement,
        "difference": worst,
        "figures": figures,
        "ratios": ratios,
        "baseline": baseline,
        "against": counted,
        "verdicts": verdicts,
        "failures": dict(failures),
    }


def hold_flat(row: dict[str, Any], other: Mapping[str, Any]) -> None:
    """Adds to `row` the verdict that Tenfold takes at most `flat_by` times as long for it as for `other`.

    The two were not measured in turn, so the best rounds are compared: other load on the machine disturbs those
    least.
    """
    for name in row["ratios"]:
        if name in other["figures"]:
            times = row["figures"][name]["best_us"] / other["figures"][name]["best_us"]
            limit = row["flat_by"]
            text = f"{'met' if times <= limit else 'missed'}: {times:.2f}x of ≤ {limit:g}x “{other['case']}”"
            _add_verdict(row["verdicts"], name, text)


def hold_first(row: dict[str, Any]) -> None:
    """Adds to `row` the verdicts about first steps: FIRST times TensorFlow's shortest, and COLD_S with cold caches."""
    theirs = [row["figures"][name]["first_s"] for name in row["against"] if row["figures"][name].get("first_s")]
    for name, figure in row["figures"].items():
        cold = name == TENFOLD_COLD.name
        if (cold or name == TENFOLD.name) and figure.get("first_s") and (theirs or cold):
            limit, taken = COLD_S if cold else FIRST * min(theirs), figure["first_s"]
            kept = "met" if taken <= limit else "missed"
            _add_verdict(row["verdicts"], name, f"{kept}: first step {taken:.2f} s of ≤ {limit:.2f} s")


def hold_steady(row: dict[str, Any], quiet: Mapping[str, Any]) -> None:
    """Adds to `row`, measured with busy neighbours, the verdict that each ratio is at least STEADY of its quiet one."""
    for name, ratios in row["ratios"].items():
        if name in row["demands"] and row["against"] and set(row["against"]) <= set(quiet["ratios"].get(name, {})):
            busy = min(ratios[peer] for peer in row["against"])
            share = busy / min(quiet["ratios"][name][peer] for peer in row["against"])
            text = f"{'met' if share >= STEADY else 'missed'}: {share:.2f} of ≥ {STEADY:g} of the quiet ratio"
            _add_verdict(row["verdicts"], name, text)


def _hold_usage(
    case: Case, figures: Mapping[str, Mapping[str, Any]], sides: Mapping[str, Side], verdicts: dict[str, str]
) -> None:
    """Adds the verdicts about page faults and memory, for the sides of Tenfold that have a demand."""
    theirs = [
        figure["peak_mib"]
        for name, figure in figures.items()
        if sides[name].runtime == "tensorflow" and "peak_mib" in figure
    ]
    for name in case.demands:
        figure = figures.get(name, {})
        if case.faults is not None and "faults" in figure:
            kept, taken = figure["faults"] <= case.faults, figure["faults"]
            _add_verdict(verdicts, name, f"{'met' if kept else 'missed'}: {taken:.3g} of ≤ {case.faults:g} page faults")
        if case.memory and theirs and "peak_mib" in figure:
            ours, limit = figure["peak_mib"], min(theirs)
            _add_verdict(verdicts, name, f"{'met' if ours <= limit else 'missed'}: {ours:.0f} of ≤ {limit:.0f} MiB")


def _add_verdict(verdicts: dict[str, str], name: str, text: str) -> None:
    verdicts[name] = f"{verdicts[name]}; {text}" if name in verdicts else text


def _ratio(peer: Mapping[int, Mapping[str, float]], ours: Mapping[int, Mapping[str, float]]) -> float:
    both = sorted(set(peer) & set(ours))
    return statistics.median(peer[number]["p50_us"] / ours[number]["p50_us"] for number in both)
