"""A row of the table: agreement of results, figures, ratios and verdicts. Pure: no process, no clock.

Rows are plain data; they go into the JSON that report.py reads. text.py formats them.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.sides import baseline_name
from harness.text import time_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.program import Case
    from harness.sides import Side
#: A case that is flat takes at most so many times what the other one takes.
FLAT = 1.1


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
    """One round of one side: microseconds at p50 and p99, or for a throughput microseconds per global step."""
    p99 = max(each["p99_us"] for each in answers)
    if metric == "latency":
        return {"p50_us": statistics.median(each["p50_us"] for each in answers), "p99_us": p99}
    window = max(each["end"] for each in answers) - min(each["start"] for each in answers)
    return {"p50_us": 1e6 * window / sum(each["steps"] for each in answers), "p99_us": p99}


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
        }
        for name, values in rounds.items()
    }
    peers = [name for name in rounds if sides[name].runtime not in ("tenfold", "baseline")]
    counted = [name for name in peers if not case.against or name in case.against]
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
            verdicts[name] = f"{'met' if reached >= demand else 'missed'}: {reached:.2g}x of ≥ {demand:g}x"
    for name, limit in case.limits_us.items():
        if name in figures:
            taken = float(figures[name]["p50_us"])
            text = f"{'met' if taken <= limit else 'missed'}: {time_text(taken)} of ≤ {time_text(limit)}"
            verdicts[name] = f"{verdicts[name]}; {text}" if name in verdicts else text
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
    """Adds to `row` the verdict that Tenfold takes no longer for it than for `other`, within FLAT.

    The two were not measured in turn, so the best rounds are compared: other load on the machine disturbs those
    least.
    """
    for name in row["ratios"]:
        if name in other["figures"]:
            times = row["figures"][name]["best_us"] / other["figures"][name]["best_us"]
            text = f"{'met' if times <= FLAT else 'missed'}: {times:.2f}x of ≤ {FLAT:g}x “{other['case']}”"
            row["verdicts"][name] = f"{row['verdicts'][name]}; {text}" if name in row["verdicts"] else text


def _ratio(peer: Mapping[int, Mapping[str, float]], ours: Mapping[int, Mapping[str, float]]) -> float:
    both = sorted(set(peer) & set(ours))
    return statistics.median(peer[number]["p50_us"] / ours[number]["p50_us"] for number in both)
