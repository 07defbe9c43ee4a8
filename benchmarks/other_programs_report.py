"""The page of what other_programs.py has measured: a row a program, the best first. Why one misses is added by hand."""

from __future__ import annotations

import statistics
import subprocess
import time
from typing import TYPE_CHECKING, Any

from harness import HERE, time_text
from harness.machine import commit, machine

if TYPE_CHECKING:
    from pathlib import Path


def line(row: dict[str, Any]) -> str:
    """A row as the terminal shows it."""
    if "cpu" not in row:
        return f"    -  {row['name']}: {row['ended']}"
    cpu, wall = row["cpu"], row["wall"]
    return (
        f"{cpu['ratio']:5.2f}  {row['name']}: {_time(cpu['tenfold'])} for {_time(cpu['tensorflow'])}, rounds "
        f"{cpu['least']:.2f} to {cpu['most']:.2f}; wall {wall['ratio']:.2f}; load {row['before']['load']:.1f}"
    )


def write(rows: dict[str, dict[str, Any]], folder: Path, pythons: dict[str, str]) -> Path:
    """Writes the page into `folder`, dated today, and returns its path."""
    path = folder / f"{time.strftime('%Y-%m-%d')}-other-programs.md"
    path.write_text("\n".join(_page(rows, pythons)) + "\n")
    return path


def _page(rows: dict[str, dict[str, Any]], pythons: dict[str, str]) -> list[str]:
    here = machine()
    timed = [row for row in rows.values() if "cpu" in row]
    missed = [row for row in timed if row["cpu"]["ratio"] > 1]
    loads = [row["before"]["load"] for row in timed] or [0.0]
    lines = [
        f"# Steps of other people's programs, {time.strftime('%Y-%m-%d')}",
        "",
        f"`python benchmarks/other_programs.py CHECKOUTS --report benchmarks/reports` on {here['cores']} cores of "
        f"{here['cpu']}, {here['memory_gib']} GiB, {here['system']}; commit {commit(HERE)}.",
        "",
        *(f"- {name}: {_versions(python, name)}" for name, python in pythons.items()),
        "",
        "Public TensorFlow 1 programs, as they lie, with made-up data of the real shape. Both sides run at once, on "
        "the same one core, and take turns: one is stopped while the other works. A time is processor time a training "
        "step, the process's with all its threads but without what the program itself computes between steps; median "
        "of the rounds. A ratio is Tenfold's over TensorFlow's within a round, its median, and the least and the most "
        "of the rounds: below 1 Tenfold takes less. The machine was busy with other work, its load "
        f"{min(loads):.1f} to {max(loads):.1f}: that is why processor time counts, and the ratio of the steps' wall "
        "times is only shown beside it.",
        "",
        f"**{len(timed) - len(missed)} of {len(timed)} cost no more than on TensorFlow 1.15**; median ratio "
        f"{statistics.median(row['cpu']['ratio'] for row in timed) if timed else 0:.2f}.",
        "",
        "| program | TensorFlow | Tenfold | ratio | rounds | by the wall |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(timed, key=lambda each: each["cpu"]["ratio"]):
        cpu = row["cpu"]
        ratio = f"{cpu['ratio']:.2f}"
        lines.append(
            f"| {row['name'].replace('+', '/', 1)} | {_time(cpu['tensorflow'])} | {_time(cpu['tenfold'])} "
            f"| {f'**{ratio}**' if cpu['ratio'] > 1 else ratio} "
            f"| {cpu['least']:.2f} to {cpu['most']:.2f} ({row['rounds']}) | {row['wall']['ratio']:.2f} |"
        )
    failed = [row for row in rows.values() if "cpu" not in row]
    if failed:
        lines += ["", "Not timed:", "", *(f"- {row['name'].replace('+', '/', 1)}: {row['ended']}" for row in failed)]
    return lines


def _versions(python: str, name: str) -> str:
    asked = f"import platform, numpy, {name} as tf; print(tf.__version__, 'NumPy', numpy.__version__, 'Python', "
    asked += "platform.python_version())"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, timeout=120)
    return done.stdout.strip().splitlines()[-1] if done.returncode == 0 else "unknown"


def _time(seconds: float) -> str:
    return time_text(1e6 * seconds)
