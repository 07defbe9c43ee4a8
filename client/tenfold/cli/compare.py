"""`tenfold compare`: runs side by side, with their curves as text."""

from __future__ import annotations

import json
import string
from typing import TYPE_CHECKING, Any

import click

from tenfold.cli.runs import asking, control_option
from tenfold.cli.tables import plain_console
from tenfold.cli.text_chart import chart
from tenfold.cli.tokens import token_option
from tenfold_core.parameter_values import write_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenfold.cli.text_chart import Points
    from tenfold.control import Comparison
    from tenfold.control.run_answers import ComparedScalar, ComparedValue, Curve
    from tenfold_core.access.credentials import ShownToken

#: Rows of a chart, and its columns at most.
_ROWS, _COLUMNS = 10, 100
#: Scalars that are drawn where none is named; of all of them the newest values are shown.
_DRAWN = 4
#: Runs that have a letter each.
_MOST = len(string.ascii_uppercase)


@click.command()
@control_option
@token_option
@click.option("--scalar", "scalars", multiple=True, metavar="NAME", help="Only this scalar, as loss.")
@click.option("--json", "as_json", is_flag=True, help="Print what the control service says, as JSON.")
@click.argument("names", metavar="RUN RUN…", nargs=-1, required=True)
def compare(control: str, token: ShownToken, scalars: tuple[str, ...], as_json: bool, names: tuple[str, ...]) -> None:
    """Show runs side by side: parameters, first those in which they differ, results, and curves as text."""
    if len(names) > _MOST:
        raise click.UsageError(f"{len(names)} runs are named; up to {_MOST} fit. The dashboard compares up to 100.")
    with asking(control, token) as client:
        found = client.compare_runs(names, scalars=scalars)
    if as_json:
        click.echo(json.dumps(found.json, indent=2))
        return
    console = plain_console()
    for line in text_of(found, min(console.width, _COLUMNS), len(scalars) or _DRAWN):
        console.print(line, markup=False, soft_wrap=True)


def text_of(found: Comparison, width: int, drawn: int) -> Iterator[str]:
    """The lines of the comparison, in which a letter stands for each run."""
    marks = string.ascii_uppercase[: len(found.runs)]
    for mark, run in zip(marks, found.runs, strict=True):
        called = f" ({run.display_name})" if run.display_name else ""
        tags = f"  {', '.join(run.tags)}" if run.tags else ""
        yield f"{mark}  {run.name}{called} {run.state}{tags}"
    yield from _table("parameters", found.parameters, marks)
    yield from _table("results", [_newest(each) for each in found.scalars], marks)
    yield from _table("run", found.facts, marks)
    for scalar in found.scalars[:drawn]:
        points, unit = _points(scalar.curves)
        lines = chart(list(zip(marks, points, strict=True)), width, _ROWS)
        if lines:
            yield ""
            yield f"{scalar.name} by {unit}"
            yield from lines


def _newest(scalar: ComparedScalar) -> tuple[str, bool, list[Any]]:
    values = [float(f"{each:.6g}") if isinstance(each, float) else each for each in scalar.newest]
    return scalar.name, len(set(values)) > 1, values


def _table(title: str, rows: Sequence[ComparedValue | tuple[str, bool, list[Any]]], marks: str) -> Iterator[str]:
    """A column for each run; a row in which they differ is marked."""
    told = [row if isinstance(row, tuple) else (row.name, row.differs, list(row.values)) for row in rows]
    if not told:
        return
    cells = [[name, *("" if value is None else write_value(value) for value in values)] for name, _, values in told]
    heads = [title, *marks]
    widths = [max(len(row[at]) for row in (heads, *cells)) for at in range(len(heads))]
    yield ""
    yield "  " + "  ".join(f"{cell:<{size}}" for cell, size in zip(heads, widths, strict=True)).rstrip()
    for (_, differs, _), row in zip(told, cells, strict=True):
        text = "  ".join(f"{cell:<{size}}" for cell, size in zip(row, widths, strict=True)).rstrip()
        yield f"{'≠' if differs and len(marks) > 1 else ' '} {text}"


def _points(curves: Sequence[Curve | None]) -> tuple[list[Points], str]:
    """The points of each curve: by global step where all of them know it, else by seconds since each began."""
    known = [curve for curve in curves if curve is not None]
    by_step = all(step is not None for curve in known for step in curve.steps)
    found: list[Points] = []
    for curve in curves:
        if curve is None:
            found.append([])
            continue
        places = curve.steps if by_step else [moment - curve.times[0] for moment in curve.times]
        pairs = zip(places, curve.values, strict=True)
        found.append(
            [(float(place), value) for place, value in pairs if place is not None and not isinstance(value, str)]
        )
    return found, "step" if by_step else "seconds"
