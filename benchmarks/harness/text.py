"""Figures as text: times, rates, and a row as the terminal shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def time_text(us: float) -> str:
    return f"{us:.3g} µs" if us < 1000 else f"{us / 1e3:.3g} ms" if us < 1e6 else f"{us / 1e6:.3g} s"


def times_text(ratio: float) -> str:
    """How many times as fast, to two digits."""
    return f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:,.0f}"


def rate_text(row: Mapping[str, Any], us: float) -> str:
    """A rate in the case's own unit: 1.3 GB/s, 83 ns/op, 313 steps/s."""
    work, unit = row["work"], row["unit"]
    if unit == "B":
        return f"{work / us / 1e3:.3g} GB/s"
    if unit == "FLOP":
        return f"{work / us / 1e3:.3g} GFLOP/s"
    if unit == "op":
        return f"{1e3 * us / work:.3g} ns/op"
    return f"{1e6 * work / us:,.0f} {unit}s/s"


def usage_text(figure: Mapping[str, Any]) -> str:
    """What a step used on one side, and what its first one took."""
    first = f", first step {figure['first_s']:.2f} s" if figure.get("first_s") else ""
    cpu, peak = time_text(figure["cpu_us"]), f"peak {figure['peak_mib']:.0f} MiB"
    return f"{figure['faults']:.3g} page faults and {cpu} of processor time a step, {peak}{first}"


def row_text(row: Mapping[str, Any]) -> str:
    within = f" within {row['difference']:.1g}" if row["results"] == "equal" and row["difference"] else ""
    lines = [f"  {row['case']}  [{row['topology']}; results {row['results']}{within}]"]
    for name, figure in row["figures"].items():
        ratio = "  ".join(f"{value:.3g}x of {peer}" for peer, value in row["ratios"].get(name, {}).items())
        lines.append(
            f"    {name:24} p50 {time_text(figure['p50_us']):>9}  p99 {time_text(figure['p99_us']):>9}  "
            f"{rate_text(row, figure['p50_us']):>16}  {ratio}"
        )
        if name in row.get("baseline", {}):
            lines.append(f"    {'':24} {row['baseline'][name]:.3g}x of the baseline")
        if row.get("floor_us"):
            share = row["floor_us"] / figure["p50_us"]
            lines.append(f"    {'':24} {share:.0%} of the floor, {time_text(row['floor_us'])}")
        if "faults" in figure:
            lines.append(f"    {'':24} {usage_text(figure)}")
        if name in row["verdicts"]:
            lines.append(f"    {'':24} {row['verdicts'][name]}")
    for name, value in row.get("memory_mib", {}).items():
        lines.append(f"    {name:24} {value:g} MiB  {row['verdicts'].get(name, '')}")
    for name, text in row.get("readings", {}).items():
        lines.append(f"    {name:24} {text}")
        lines += [f"    {'':24} {row['verdicts'][name]}" for _ in [0] if name in row["verdicts"]]
    if "peak_mib" in row:
        lines.append(f"    peak MiB: {row['peak_mib']}")
    lines += [f"    {name:24} failed: {why[:300]}" for name, why in row["failures"].items()]
    return "\n".join(lines)
