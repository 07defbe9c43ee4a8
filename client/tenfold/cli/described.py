"""What a run is called: --name, --tag, --notes and --param of `tenfold run`, `submit`, `sweep` and `edit`."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from tenfold_core.parameter_values import read_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.parameter_values import Value


def parameter_values(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, Value]:
    """ "lr=0.1" → {"lr": 0.1}."""
    found: dict[str, Value] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE, as lr=0.1")
        found[name] = read_value(value)
    return found


name_option = click.option("--name", "display_name", metavar="NAME", help="The run's display name.")
notes_option = click.option("--notes", metavar="TEXT", help="Notes about the run.")
parameters_option = click.option(
    "--param",
    "parameters",
    multiple=True,
    callback=parameter_values,
    metavar="NAME=VALUE",
    help="A parameter of the run, where its program records none.",
)


def described_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --name, --tag, --notes and --param; the command gets them as `described`, members of a submission."""

    @wraps(command)
    def given(
        *arguments: Any,
        display_name: str | None,
        tags: tuple[str, ...],
        notes: str | None,
        parameters: dict[str, Value],
        **others: Any,
    ) -> Any:
        members = {"display_name": display_name, "tags": list(tags), "notes": notes, "parameters": parameters}
        return command(*arguments, described={name: value for name, value in members.items() if value}, **others)

    tag = click.option("--tag", "tags", multiple=True, metavar="TAG", help="A word by which the run is found.")
    for option in (parameters_option, notes_option, tag, name_option):
        given = option(given)
    return given
