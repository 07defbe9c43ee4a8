"""The table and bar chart of programs in docs/speed.md, from the rows of a run. `programs.py --page`.

The table stands between two markers, and nothing else of the page is touched. A ratio is the smallest against any of
TensorFlow's sides that ran; torch's columns are of its eager and its compiled side.
The chart needs matplotlib (extra `bench`); without it the old one stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness import time_text, times_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

BEGIN, END = "<!-- programs: begin -->", "<!-- programs: end -->"
#: Its sides, in the order of their columns.
TORCH = ("torch", "torch compiled")
PAGE, CHART = "docs/speed.md", "images/programs.png"


def ratio_of(row: Mapping[str, Any]) -> tuple[str, float] | None:
    """The fastest side of TensorFlow and how many times as fast Tenfold is, or None where one of the two is missing."""
    found = row["ratios"].get("tenfold", {})
    peers = [name for name in found if name in row["against"]]
    return min(((name, found[name]) for name in peers), key=lambda pair: pair[1]) if peers else None


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines of Markdown: a row for each case that both sides ran."""
    columns = ("program", "TensorFlow", "Tenfold", "times TensorFlow", *(f"times {side}" for side in TORCH), "floor")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in rows:
        if (found := ratio_of(row)) is not None:
            theirs, ours = (time_text(row["figures"][side]["p50_us"] / row["work"]) for side in (found[0], "tenfold"))
            ratios = row["ratios"]["tenfold"]
            beside = [times_text(ratios[side]) if side in ratios else "" for side in TORCH]
            floor = row.get("floor_us", 0.0) / row["figures"]["tenfold"]["p50_us"]
            cells = (row["case"], theirs, ours, times_text(found[1]), *beside, f"{floor:.0%}" if floor else "")
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def replaced(text: str, lines: Sequence[str]) -> str:
    """`text` with `lines` between the markers. Raises ValueError if it has not both, in order."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} … {END} to write between")
    return "\n".join([f"{before}{BEGIN}", *lines, f"{END}{after}"])


def write(rows: Sequence[Mapping[str, Any]], root: Path) -> None:
    """Writes the page and the chart under `root`. Raises ValueError without the markers."""
    page = root / PAGE
    page.write_text(replaced(page.read_text(), list(_section(rows, page.parent))))


def _section(rows: Sequence[Mapping[str, Any]], folder: Path) -> Iterator[str]:
    if _draw(rows, folder / CHART) or (folder / CHART).exists():
        yield from (f"![How many times as fast as TensorFlow each program is]({CHART})", "")
    yield from table(rows)


def _draw(rows: Sequence[Mapping[str, Any]], path: Path) -> bool:
    """A bar a program, at 1 where both are as fast; False without matplotlib or anything to draw."""
    bars = [(row["case"], found[1]) for row in rows if (found := ratio_of(row)) is not None]
    try:
        import matplotlib
    except ImportError:
        return False
    if not bars:
        return False
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    picture, axes = plt.subplots(figsize=(8, 0.26 * len(bars) + 1), layout="constrained")
    colours = ["#d1495b" if ratio >= 1 else "#6f88a5" for _, ratio in bars]
    drawn = axes.barh([name for name, _ in bars], [ratio for _, ratio in bars], color=colours)
    axes.bar_label(drawn, [times_text(ratio) for _, ratio in bars], padding=3)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.margins(x=0.1)
    axes.invert_yaxis()
    axes.set_xlabel("times as fast as TensorFlow 2.21 (its fastest side)")
    picture.savefig(path, dpi=110)
    plt.close(picture)
    return True
