"""`tenfold tables`: the embedding variables and lookup tables of a run or a cluster, by table and by task."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tenfold.cli.placement import size
from tenfold.cli.runs import asking, cluster_option, control_option
from tenfold.cli.tables import plain_console, shown_table
from tenfold.cli.tokens import token_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Group, RenderableType
    from rich.table import Table

    from tenfold.control import ControlClient
    from tenfold_core.access.credentials import ShownToken

#: What a column says of no table: it is left out then.
_NOTHING = {"", "0", "-"}
_THOUSANDS = ((10**12, "T"), (10**9, "G"), (10**6, "M"))


@click.command()
@control_option
@cluster_option
@token_option
@click.option("--session", metavar="SESSION", help="The cluster of this session, a name that `POST /v1/sessions` gave.")
@click.option("--parts", is_flag=True, help="Show each part of each table, with its task.")
@click.option("-n", "limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many, largest first.")
@click.option("--json", "as_json", is_flag=True, help="Print what the control service says, as JSON.")
@click.argument("run", required=False, metavar="[RUN]")
def tables(
    control: str,
    cluster_name: str,
    token: ShownToken,
    session: str | None,
    parts: bool,
    limit: int,
    as_json: bool,
    run: str | None,
) -> None:
    """Show the tables of RUN, or of a cluster's tasks: embedding variables and lookup tables.

    Of each: rows, ids that its filter has admitted and that wait, evicted ids, memory, the share of lookups that found
    weights, and how unevenly it is spread over the parameter servers: the largest part by the mean of all.
    """
    if run is not None and session is not None:
        raise click.UsageError("name RUN or --session, not both")
    with asking(control, token) as client:
        found = _ask(client, cluster_name, session, run)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    console = plain_console()
    console.print(rendered(found, console.width, limit, parts=parts))


def _ask(client: ControlClient, cluster: str, session: str | None, run: str | None) -> dict[str, Any]:
    """`of` what, the `tables` there, and what each of its `tasks` tells. Raises NotFoundError."""
    if run is not None:
        progress = client.progress(run)
        programs = [_task(task.json, task.figures, task.json) for task in progress.tasks]
        return {"of": f"run {progress.run}", "tables": progress.get("tables"), "tasks": _holding(programs)}
    if session is not None:
        cluster = client.session(session).status().cluster
    jobs = client.jobs(cluster)
    known = [(task, task["figures"]) for job in jobs["jobs"] for task in job["tasks"] if task.get("figures")]
    tasks = _holding([_task(task, figures, figures) for task, figures in known])
    return {"of": f"cluster {cluster}", "tables": jobs.get("tables"), "tasks": tasks}


def _task(task: Mapping[str, Any], figures: Mapping[str, Any], held: Mapping[str, Any]) -> dict[str, Any]:
    """A task's tables, and the rows and bytes of all that it has: services of before tell of none."""
    tables = held.get("tables", [])
    rows, nbytes = (
        sum(table[of] for table in tables) if (number := figures.get(f"table_{of}")) is None else int(number)
        for of in ("rows", "bytes")
    )
    left_out = int(figures.get("tables_left_out") or 0)
    told = {"count": len(tables) + left_out, "rows": rows, "bytes": nbytes, "tables": tables}
    return {"job": task["job"], "index": task["index"], **told}


def _holding(tasks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that have tables, and parameter servers."""
    return [task for task in tasks if task["count"] or task["job"] == "ps"]


def rendered(found: Mapping[str, Any], width: int, limit: int, *, parts: bool = False) -> Group:
    """What is printed in `width` columns: a line for each of the `limit` largest tables, or parts; then one for each
    task."""
    from rich.console import Group
    from rich.text import Text

    if found["tables"] is None:
        return Group(Text(f"No task of {found['of']} tells of a table."))
    shown = _by_part(found, width, limit) if parts else summary(found["of"], found["tables"], width, limit)
    names = ("task", "tables", "rows", "memory", "counted for its limit")
    rows = [
        (
            f"{task['job']}/{task['index']}",
            f"{task['count']:,}",
            count(task["rows"]),
            size(task["bytes"]),
            _charged(task),
        )
        for task in found["tasks"]
    ]
    return Group(shown, Text(), shown_table("by task", names, rows, width))


def _charged(task: Mapping[str, Any]) -> str:
    """What of a task's tables counts for the limit of its state, of those that it tells of."""
    return size(sum(table["quota_bytes"] or 0 for table in task["tables"]))


def summary(of: str, tables: Mapping[str, Any], width: int, limit: int) -> Group:
    """A line for each of the largest tables, how many are not shown, and how evenly all of them lie."""
    from rich.console import Group
    from rich.text import Text

    shown = tables["tables"][:limit]
    rows = [
        {
            **_figures(table, table["admitted"]),
            "uneven": "-" if table["unevenness"] is None else f"{table['unevenness']:.2f}",
            "parts": "" if table["parts"] == 1 else f"{table['parts']:,}",
            "table": _name(table),
        }
        for table in shown
    ]
    left = sum(table["parts"] for table in tables["tables"][limit:]) + tables["left_out"]
    told: list[RenderableType] = [_table(f"tables of {of}", rows, width)]
    if left:
        told.append(Text(f"… and {left:,} more parts of tables"))
    if tables["unevenness"] is not None:
        times = f"{tables['unevenness']:.2f} times the mean"
        told.append(Text(f"{tables['largest']} has the most bytes of tables: {times}"))
    return Group(*told)


def _by_part(found: Mapping[str, Any], width: int, limit: int) -> Group:
    from rich.console import Group
    from rich.text import Text

    parts = [(f"{task['job']}/{task['index']}", table) for task in found["tasks"] for table in task["tables"]]
    parts.sort(key=lambda part: (-part[1]["bytes"], part[1]["name"], part[0]))
    rows = [
        {
            **_figures(table, None if table["waiting"] is None else table["rows"] - table["waiting"]),
            "task": task,
            "table": _name(table),
        }
        for task, table in parts[:limit]
    ]
    left = sum(task["count"] for task in found["tasks"]) - len(rows)
    more = [Text(f"… and {left:,} more")] if left else []
    return Group(_table(f"parts of tables of {found['of']}", rows, width), *more)


def _table(title: str, rows: Sequence[Mapping[str, str]], width: int) -> Table:
    """The columns that say something of any table; names, which may be long, come last."""
    names = [name for name in rows[0] if not _NOTHING.issuperset(row[name] for row in rows)] if rows else ["table"]
    return shown_table(title, tuple(names), [tuple(row[name] for name in names) for row in rows], width)


def _name(table: Mapping[str, Any]) -> str:
    kind = table["kind"]
    return str(table["name"]) if kind == "EmbeddingVariable" else f"{table['name']} ({kind})"


def _figures(table: Mapping[str, Any], admitted: int | None) -> dict[str, str]:
    return {
        "rows": count(table["rows"]),
        # as many as there are rows, where none waits
        "admitted": count(admitted) if table["waiting"] else "-",
        "waiting": count(table["waiting"]),
        "evicted": count(table["evicted"]),
        "memory": size(table["bytes"]),
        "hit rate": f"{100 * table['found'] / table['lookups']:.1f} %" if table["lookups"] else "-",
    }


def count(number: int | None) -> str:
    """ "123,456", "12.3 M"; "-" for what is not known."""
    if number is None:
        return "-"
    unit = next(((least, name) for least, name in _THOUSANDS if number >= least), None)
    return f"{number:,}" if unit is None else f"{number / unit[0]:.1f} {unit[1]}"
