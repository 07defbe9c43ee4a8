"""Where the tasks of a run are started, and what each needs: --on, -o, --cores, --memory and --gpus of `tenfold run`,
`submit` and `render`; and `tenfold launchers`, which lists what there is."""

from __future__ import annotations

import json
import re
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from tenfold.cli.tables import plain_console

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold.launchers import Resources

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def launch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options; the command gets `on`, `launcher_options` and `resources`, a Resources by job."""

    @wraps(command)
    def given(
        *arguments: Any,
        options: dict[str, str],
        cores: dict[str, int],
        memory: dict[str, int],
        gpus: dict[str, int],
        **others: Any,
    ) -> Any:
        return command(*arguments, launcher_options=options, resources=_resources(cores, memory, gpus), **others)

    for option in reversed(
        (
            click.option("--on", default="local", show_default=True, metavar="LAUNCHER", help="What starts the tasks."),
            click.option(
                "-o",
                "--option",
                "options",
                multiple=True,
                callback=_pairs,
                metavar="NAME=VALUE",
                help="An option of the launcher; `tenfold launchers` lists them.",
            ),
            click.option("--cores", callback=_by_job(_number), metavar="N", help=_EACH.format("Cores")),
            click.option("--memory", callback=_by_job(_bytes), metavar="SIZE", help=_EACH.format("Memory, as 4G,")),
            click.option("--gpus", callback=_by_job(_number), metavar="N", help=_EACH.format("GPUs")),
        )
    ):
        given = option(given)
    return given


def launch_arguments(on: str, options: Mapping[str, str], resources: Mapping[str, Resources]) -> list[str]:
    """The same on a command line."""
    found = [f"--on={on}", *(f"-o{name}={value}" for name, value in options.items())]
    for name, asked in (
        ("cores", {job: needed.cores for job, needed in resources.items() if needed.cores is not None}),
        ("memory", {job: needed.memory for job, needed in resources.items() if needed.memory is not None}),
        ("gpus", {job: needed.gpus for job, needed in resources.items() if needed.gpus}),
    ):
        if asked:
            found.append(f"--{name}={','.join(f'{job}={size}' for job, size in asked.items())}")
    return found


_EACH = "{} of each task; by job: worker=2,ps=1."


def _pairs(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
        found[name] = value
    return found


def _by_job(read: Callable[[str], int]) -> Callable[[click.Context, click.Parameter, str | None], dict[str, int]]:
    """ "worker=2,ps=1" → by job; a value alone is every job's, under ""."""

    def parse(context: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, int]:
        found: dict[str, int] = {}
        for item in (text or "").split(","):
            job, equals, value = item.strip().partition("=")
            if item.strip():
                found[job if equals else ""] = read(value if equals else job)
        return found

    return parse


def _number(text: str) -> int:
    if not text.isdecimal():
        raise click.BadParameter(f"{text!r} is not a number; write 2, or worker=2,ps=1")
    return int(text)


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMGT]?)(?:i?B)?", text, re.IGNORECASE)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a size; write 512M, or worker=4G,ps=1G")
    return int(match[1]) * _UNITS[match[2].upper()]


def byte_size(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """ "4G" → bytes; for an option that is one size."""
    return None if text is None else _bytes(text)


def _resources(cores: Mapping[str, int], memory: Mapping[str, int], gpus: Mapping[str, int]) -> dict[str, Resources]:
    from tenfold.launchers import Resources

    def of(found: Mapping[str, int], job: str) -> int | None:
        return found.get(job, found.get(""))

    jobs = {"ps", "chief", "worker", "evaluator", *cores, *memory, *gpus} - {""}
    if not (cores or memory or gpus):
        return {}
    return {job: Resources(of(cores, job), of(memory, job), of(gpus, job) or 0) for job in sorted(jobs)}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
@click.argument("name", metavar="[LAUNCHER]", required=False)
def launchers(as_json: bool, name: str | None) -> None:
    """List what can start the tasks of a run, and why what cannot be used here cannot; or show LAUNCHER's options."""
    from rich.table import Table

    from tenfold.launchers import LaunchRefusedError
    from tenfold.launchers.registry import launcher, names

    try:
        found = [launcher(each) for each in ([name] if name else names())]
    except LaunchRefusedError as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        shown = [
            {"name": each.name, "summary": each.summary, "missing": each.missing(), "options": dict(each.options)}
            for each in found
        ]
        click.echo(json.dumps(shown[0] if name else {"launchers": shown}, indent=2))
        return
    if name:
        click.echo(f"{found[0].name}: {found[0].summary}")
        click.echo(f"not usable here: {why}" if (why := found[0].missing()) else "usable here")
        for option, meaning in found[0].options.items():
            click.echo(f"  -o {option}=…  {meaning}")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("LAUNCHER", "STARTS THE TASKS AS", "HERE"):
        table.add_column(column, overflow="fold")
    for each in found:
        table.add_row(each.name, each.summary, each.missing() or "usable")
    plain_console().print(table)
