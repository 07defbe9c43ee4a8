"""Tables for a terminal, and what stands in them: how `status`, `runs` and `submit` show states, ages and rows."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING

from tenfold.cli.colours import asked_for
from tenfold.state_styles import STYLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

#: Columns of what is not a terminal, unless COLUMNS says how many there are: as many as a line has.
_UNBOUNDED = 100_000


def shown_table(title: str | None, names: tuple[str, ...], rows: Sequence[tuple[str, ...]], width: int) -> Table:
    """A table without lines in at most `width` columns; its last column has what the others leave."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title=None if title is None else escape(title), title_justify="left")
    left = width
    for at, name in enumerate(names):
        widest = max((len(row[at]) for row in rows), default=0)
        # two columns between
        taken = max(widest, len(name))
        if at == len(names) - 1:
            taken = max(min(left, taken), len(name))
        left -= taken + 2
        table.add_column(name, no_wrap=True, overflow="ellipsis", width=taken)
    for row in rows:
        cells = [escape(cell) for cell in row]
        cells[1] = f"[{STYLES.get(row[1], 'default')}]{cells[1]}[/]"
        table.add_row(*cells)
    return table


def age(since: str, now: datetime) -> str:
    """How long ago that was: "12 s", "5 min", "3 h", "2 d"."""
    from tenfold.control.run_text import duration_text

    return duration_text(max(0.0, (now - datetime.fromisoformat(since)).total_seconds()))


def plain_table(names: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    """A table without lines, folded where it is too wide: nothing is left out."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def plain_console() -> Console:
    """A console for standard output, with colours where they are wanted (colours.py).

    Lines are cut at the width of the terminal. What a program or a file gets is whole, unless the variable COLUMNS says
    how wide it may be.
    """
    from rich.console import Console

    coloured = asked_for()
    console = Console(
        highlight=False, color_system=None if coloured is False else "auto", force_terminal=coloured or None
    )
    if not console.file.isatty():
        columns = os.environ.get("COLUMNS", "")
        console.width = int(columns) if columns.isdecimal() and int(columns) > 0 else _UNBOUNDED
    return console
