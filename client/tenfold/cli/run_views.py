"""How runs look in a terminal: in a list, one with its tasks, and while they go on. For runs.py and status.py."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tenfold.cli.tables import age, plain_console, shown_table
from tenfold.state_styles import STYLES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rich.table import Table

    from tenfold.control import ControlClient
    from tenfold.control.displays import RunDisplay

#: Seconds for the last look at a run whose output has ended.
_LAST_LOOK_S = 3.0


def progress_of(run: dict[str, Any]) -> str:
    """ "step 1,200 (24%) · 85.3 steps/s · 45 s left"; of a run that has ended its step alone; empty where nothing is
    known."""
    from tenfold.control.run_text import left_text, progress_text
    from tenfold_core.run_states import is_final

    progress, ended = run["progress"], is_final(run["state"])
    return " · ".join(filter(None, (progress_text(progress, ended=ended), left_text(progress))))


def listed(found: list[dict[str, Any]], now: datetime, width: int, by: str | None = None) -> Table:
    """What `tenfold runs` prints in `width` columns: a line for each run; `by` is a parameter or a scalar that has a
    column of its own."""
    rows: list[tuple[str, ...]]
    rows = [
        (
            run["name"],
            run["state"],
            age(run["ended"] or run["started"] or run["created"], now),
            progress_of(run),
            " ".join(run["entrypoint"]),
        )
        for run in found
    ]
    columns: tuple[str, ...] = ("run", "state", "since", "progress", "program")
    if by is not None:
        columns = (*columns[:3], by, *columns[3:])
        rows = [(*row[:3], value_of(run, by), *row[3:]) for row, run in zip(rows, found, strict=True)]
    return shown_table(None, columns, rows, width)


def value_of(run: dict[str, Any], name: str) -> str:
    """A parameter of the run, else the newest value of a scalar, else one of its members, as text; empty without."""
    from tenfold.control.run_text import number_text
    from tenfold_core.parameter_values import write_value

    bare = name.removeprefix("param.").removeprefix("metric.")
    if not name.startswith("metric.") and bare in run.get("parameters", {}):
        return write_value(run["parameters"][bare])
    values = (run["progress"] or {}).get("values", {})
    return number_text(values[bare]) if bare in values else str(run.get(name) or "")


def show(run: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from tenfold.control.run_text import examples_text, scalars_text

    console = plain_console()
    console.print(f"{run['name']} is [{STYLES[run['state']]}]{run['state']}[/]: {escape(run['reason'])}")
    for label, text in described(run):
        console.print(f"{label:<10}{escape(text)}", soft_wrap=True)
    console.print(f"program   {escape(' '.join(run['entrypoint']))}", soft_wrap=True)
    console.print(f"attempt   {run['attempt']}, {run['restarts_used']} of {run['restarts']['limit']} restarts used")
    if run["progress"] is not None:
        progress = run["progress"]
        told = filter(None, (progress_of(run), examples_text(progress), scalars_text(progress)))
        console.print(f"progress  {escape(' · '.join(told))}", soft_wrap=True)
        if run["progress"]["checkpoint"]:
            console.print(f"saved     {escape(run['progress']['checkpoint'])}", soft_wrap=True)
    console.print(f"created   {run['created']}   started {run['started'] or '-'}   ended {run['ended'] or '-'}")
    table = Table(box=None, pad_edge=False)
    for column in ("task", "state", "exit", "process", "started", "ended"):
        table.add_column(column, no_wrap=True)
    for task in run["tasks"]:
        code = task["signal"] or ("" if task["exit_code"] is None else str(task["exit_code"]))
        times = [(each or "")[11:19] for each in (task["started"], task["ended"])]
        name, state = f"{task['job']}/{task['index']}", f"[{STYLES[task['state']]}]{task['state']}[/]"
        table.add_row(name, state, code, str(task["pid"] or ""), *times)
    console.print(table)
    for task in run["tasks"]:
        if (error := task["error"]) is not None:
            where = "".join(f", {each} {error[each]}" for each in ("node", "task") if error.get(each))
            console.print(f"{task['job']}/{task['index']}: {error['type']}{where}: {escape(error['message'] or '')}")


def described(run: dict[str, Any]) -> list[tuple[str, str]]:
    """What the run is called and what was recorded of it, a labelled line each; nothing of what is not known."""
    from tenfold_core.parameter_values import write_value

    source = run.get("source")
    changed = "" if source is None or not source["dirty"] else ", with changes"
    versions = ", ".join(f"{name} {version}" for name, version in run.get("versions", {}).items())
    lines = (
        ("name", run.get("display_name")),
        ("tags", ", ".join(run.get("tags", ()))),
        ("notes", run.get("notes")),
        ("params", "  ".join(f"{name}={write_value(each)}" for name, each in run.get("parameters", {}).items())),
        ("seed", None if run.get("seed") is None else str(run["seed"])),
        (
            "source",
            None if source is None else f"{source['commit'][:12]} on {source['branch'] or 'no branch'}{changed}",
        ),
        ("versions", versions),
    )
    return [(label, text) for label, text in lines if text]


def display_of_run() -> RunDisplay:
    from tenfold.control.displays import LineDisplay, TerminalDisplay

    console = plain_console()
    return TerminalDisplay(console=console) if console.is_terminal else LineDisplay()


@contextmanager
def moving_line(client: ControlClient, name: str) -> Iterator[None]:
    """In a terminal the run's progress stands below what is printed meanwhile. The run has to end."""
    from tenfold.control.displays import TerminalDisplay
    from tenfold_core import errors

    console = plain_console()
    if not console.is_terminal:
        yield
        return

    def look_on() -> None:
        # who prints the output is told of errors as well
        with suppress(errors.OpError):
            for run in client.run_updates(name):
                display.show(run)

    with TerminalDisplay(console=console) as display:
        watcher = threading.Thread(target=look_on, name="run-progress", daemon=True)
        watcher.start()
        yield
        watcher.join(_LAST_LOOK_S)
