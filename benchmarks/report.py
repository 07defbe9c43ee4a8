"""Turns the figures of bench.py into a dated report: machine, command, one table a subject, and two pictures.

    python benchmarks/report.py figures.json [--folder benchmarks/reports]

Every row is printed; the list of demands comes first and says which are missed. The pictures need matplotlib
(extra `bench`); without it the report has none and says why.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import HERE, doubts, rate_text, time_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: One colour a side, in all pictures.
COLOURS = {
    "tenfold": "#d1495b",
    "tenfold tcp": "#e58e73",
    "tenfold grpc": "#edc9a8",
    "tenfold unfused": "#e58e73",
    "tensorflow": "#2e4057",
    "tensorflow tuned": "#6f88a5",
    "tensorflow direct": "#66a182",
    "tensorflow direct tuned": "#a9cbb7",
}

#: Subjects that the picture of latencies shows.
SMALL_STEPS = ("null_step", "remote_null_step", "cross_task")


def rows_of(figures: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for subject in figures["subjects"]:
        for row in subject["rows"]:
            yield subject, row


def head(figures: Mapping[str, Any]) -> list[str]:
    machine = figures["machine"]
    effort = figures["subjects"][0]["effort"] if figures["subjects"] else {}
    lines = [
        f"# Benchmarks of {figures['date']}",
        "",
        f"`{figures['command']}` on {machine['cores']} cores of {machine['cpu']}, {machine['memory_gib']} GiB, "
        f"{machine['system']}, Python {machine['python']}; frequency governor: {machine.get('governor', 'unknown')}; "
        f"load {', '.join(str(each) for each in machine['load'])}; commit {figures.get('commit', 'unknown')}.",
        "",
        *(f"- **{doubt}.**" for doubt in figures.get("doubts", ())),
        *(f"- {runtime}: {text}" for runtime, text in figures["versions"].items() if text),
        "",
        f"The same program runs on every side, in processes of the side's own, in turn: {effort.get('rounds')} rounds "
        f"of {effort.get('seconds')} s of steps a side, after a warm-up. A time is the median over the rounds of a "
        "round's p50 (p99: of its p99); a ratio is the median of the rounds' ratios, above 1 where Tenfold is faster. "
        "Every process is pinned to one core, on all sides alike (client and its own server on the last core, ps:0 on "
        "the one before, and so on round), except where a topology says otherwise. `tuned` is TensorFlow with one "
        "thread a pool and without its graph rewriter; `direct` its session without a server, tuned with the "
        "single-threaded executor. A demand counts against the fastest TensorFlow side that takes part in it.",
        "",
    ]
    return lines


def ended_early(figures: Mapping[str, Any]) -> list[str]:
    found = [subject for subject in figures["subjects"] if subject.get("ended")]
    lines = [f"- {each['number']}. {each['title']}: {_one_line(each['ended'])}" for each in found]
    return ["## Subjects that ended early", "", *lines, ""] if lines else []


def demands(figures: Mapping[str, Any]) -> list[str]:
    missed: list[str] = []
    met: list[str] = []
    for subject, row in rows_of(figures):
        for side, verdict in row["verdicts"].items():
            line = f"| {subject['number']} | {row['case']} | {side} | {verdict} |"
            (missed if "missed" in verdict else met).append(line)
    table = ["| # | case | side | verdict |", "|---|---|---|---|"]
    lines = [f"## Demands: {len(met)} met, {len(missed)} missed", ""]
    for title, found in (("Missed", missed), ("Met", met)):
        if found:
            lines += [f"### {title}", "", *table, *found, ""]
    return lines


def against_baseline(figures: Mapping[str, Any]) -> list[str]:
    """This checkout against the older one, the worst row first."""
    found = [
        (ratio, subject["number"], row["case"], side)
        for subject, row in rows_of(figures)
        for side, ratio in row.get("baseline", {}).items()
    ]
    if not found:
        return []
    lines = [f"| {ratio:.3g}x | {number} | {case} | {side} |" for ratio, number, case, side in sorted(found)]
    return [
        f"## Against commit {figures['baseline']}",
        "",
        "Both checkouts took turns in the same rounds; above 1 this one is faster.",
        "",
        *("| times faster | # | case | side |", "|---|---|---|---|"),
        *(*lines, ""),
    ]


def subject_lines(subject: Mapping[str, Any]) -> list[str]:
    lines = [f"## {subject['number']}. {subject['title']}", ""]
    if before := subject.get("before"):
        line = f"Before it: load average {before['load']:g}, {before['cores']:g} cores in use."
        lines += [f"**{line} The machine is not ours alone.**" if doubts(before) else line, ""]
    if subject.get("ended"):
        lines += [f"**It ended early: {_one_line(subject['ended'])}**", ""]
    lines += [
        "| case | side | p50 | p99 | processor time | rate | times faster than |",
        "|---|---|---|---|---|---|---|",
    ]
    notes = []
    for row in subject["rows"]:
        label = row["case"] if row["results"] == "equal" else f"{row['case']} (**results: {row['results']}**)"
        for side, figure in row["figures"].items():
            ratios = ", ".join(f"{value:.3g}x {peer}" for peer, value in row["ratios"].get(side, {}).items())
            worked = time_text(figure["cpu_us"]) if "cpu_us" in figure else ""
            lines.append(
                f"| {label} | {side} | {time_text(figure['p50_us'])} | {time_text(figure['p99_us'])} | "
                f"{worked} | {rate_text(row, figure['p50_us'])} | {ratios} |"
            )
            label = ""
        for side, value in row.get("memory_mib", {}).items():
            lines.append(f"| {label} | {side} | {value} MiB | | | | |")
            label = ""
        for side, text in row.get("readings", {}).items():
            lines.append(f"| {label} | {side} | | | | {text} | |")
            label = ""
        notes += [f"- {row['case']}: {row['note']}" for _ in [0] if row["note"]]
        notes += [f"- {row['case']}: peak memory {row['peak_mib']} MiB" for _ in [0] if "peak_mib" in row]
        notes += [f"- {row['case']}, {side}: {_one_line(why)}" for side, why in row["failures"].items()]
    return [*lines, "", *notes, *([""] if notes else [])]


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)[:300]


def latency_picture(figures: Mapping[str, Any], path: Path) -> None:
    """Small steps, one line a case and side: a dot at p50 and a line up to p99, on a logarithmic axis."""
    import matplotlib.pyplot as plt

    places: dict[str, list[float]] = {}
    times: dict[str, list[Mapping[str, float]]] = {}
    ticks, names, place = [], [], 0
    for subject, row in rows_of(figures):
        present = [side for side in COLOURS if side in row["figures"]]
        if subject["module"] not in SMALL_STEPS or not present:
            continue
        ticks.append(place + (len(present) - 1) / 2)
        names.append(row["case"])
        for side in present:
            places.setdefault(side, []).append(place)
            times.setdefault(side, []).append(row["figures"][side])
            place += 1
        place += 1
    picture, axes = plt.subplots(figsize=(9, 0.17 * place + 1.4), layout="constrained")
    for side in (each for each in COLOURS if each in places):
        middles = [each["p50_us"] for each in times[side]]
        tails = [max(0.0, each["p99_us"] - each["p50_us"]) for each in times[side]]
        spans = [[0.0] * len(tails), tails]
        axes.errorbar(middles, places[side], xerr=spans, fmt="o", color=COLOURS[side], label=side, elinewidth=1)
    axes.set_yticks(ticks, names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("µs a step (dot: p50, line: up to p99)")
    axes.set_title("Latency of small steps")
    axes.grid(axis="x", which="both", alpha=0.25)
    axes.legend(fontsize="small")
    picture.savefig(path, dpi=110)
    plt.close(picture)


def _is_pull(module: str, case: str) -> bool:
    return module == "dense_pull" and re.fullmatch(r"pull \d+ MB", case) is not None


def transfer_picture(figures: Mapping[str, Any], path: Path) -> None:
    """Dense pulls: time and rate over size, both logarithmic in size."""
    import matplotlib.pyplot as plt

    curves: dict[str, list[tuple[float, float]]] = {}
    for subject, row in rows_of(figures):
        if _is_pull(subject["module"], row["case"]):
            for side, figure in row["figures"].items():
                curves.setdefault(side, []).append((row["work"] / 1e6, figure["p50_us"]))
    picture, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for side, points in curves.items():
        sizes, times = [size for size, _ in points], [us for _, us in points]
        left.plot(sizes, [us / 1e3 for us in times], "o-", color=COLOURS.get(side), label=side)
        right.plot(sizes, [size / us * 1e3 for size, us in points], "o-", color=COLOURS.get(side), label=side)
    for axes, what in ((left, "ms a step, p50"), (right, "GB/s")):
        axes.set_xscale("log")
        axes.set_xlabel("MB pulled from ps to worker")
        axes.set_ylabel(what)
        axes.grid(which="both", alpha=0.25)
    left.set_yscale("log")
    right.set_ylim(bottom=0)
    left.legend(fontsize="small")
    picture.suptitle("Dense pull of a variable that was just written")
    picture.savefig(path, dpi=110)
    plt.close(picture)


def pictures(figures: Mapping[str, Any], folder: Path, stem: str) -> list[str]:
    shown = [(subject["module"], row["case"]) for subject, row in rows_of(figures) if row["figures"]]
    wanted = []
    if any(module in SMALL_STEPS for module, _ in shown):
        wanted.append(("latency", "Latency of small steps", latency_picture))
    if any(_is_pull(module, case) for module, case in shown):
        wanted.append(("transfer", "Dense pull over size", transfer_picture))
    try:
        import matplotlib
    except ImportError:
        return ["No pictures: matplotlib is not installed (extra `bench`).", ""]
    matplotlib.use("Agg")
    lines = []
    for name, title, draw in wanted:
        draw(figures, folder / f"{stem}-{name}.png")
        lines += [f"![{title}]({stem}-{name}.png)", ""]
    return lines


def write(source: Path, folder: Path, stem: str | None = None) -> Path:
    """Writes `<date>.md`, its pictures and a copy of the figures into `folder`; the path of the page."""
    figures = json.loads(source.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    stem = stem or _free_stem(folder, figures["date"])
    page = folder / f"{stem}.md"
    lines = head(figures) + ended_early(figures) + demands(figures) + against_baseline(figures)
    lines += pictures(figures, folder, stem)
    for subject in figures["subjects"]:
        lines += subject_lines(subject)
    page.write_text("\n".join(lines).rstrip() + "\n")
    copy = folder / f"{stem}.json"
    if copy.resolve() != source.resolve():
        copy.write_text(source.read_text())
    return page


def _free_stem(folder: Path, date: str) -> str:
    """The date; with a number where there is a report of that day."""
    numbered = (date if number == 1 else f"{date}-{number}" for number in itertools.count(1))
    return next(stem for stem in numbered if not (folder / f"{stem}.md").exists())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write a dated report from the figures of bench.py.")
    parser.add_argument("figures", type=Path)
    parser.add_argument("--folder", type=Path, default=HERE / "reports")
    parser.add_argument("--name", help="of the page and its pictures (default: the date of the figures)")
    options = parser.parse_args(arguments)
    print(write(options.figures, options.folder, options.name))


if __name__ == "__main__":
    main()
