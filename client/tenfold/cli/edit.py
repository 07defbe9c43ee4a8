"""`tenfold edit`: change what a run is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tenfold.cli.described import name_option, notes_option, parameters_option
from tenfold.cli.runs import asking, control_option
from tenfold.cli.tokens import token_option

if TYPE_CHECKING:
    from tenfold_core.access.credentials import ShownToken
    from tenfold_core.parameter_values import Value


@click.command()
@control_option
@token_option
@name_option
@click.option("--tag", "add_tags", multiple=True, metavar="TAG", help="Add a tag.")
@click.option("--untag", "remove_tags", multiple=True, metavar="TAG", help="Remove a tag.")
@notes_option
@parameters_option
@click.argument("names", metavar="RUN…", nargs=-1, required=True)
def edit(
    control: str,
    token: ShownToken,
    display_name: str | None,
    add_tags: tuple[str, ...],
    remove_tags: tuple[str, ...],
    notes: str | None,
    parameters: dict[str, Value],
    names: tuple[str, ...],
) -> None:
    """Change what RUN is called: its name, tags, notes and parameters. The run may have ended."""
    with asking(control, token) as client:
        for each in names:
            client.edit_run(
                each,
                display_name=display_name,
                add_tags=add_tags,
                remove_tags=remove_tags,
                notes=notes,
                parameters=parameters,
            )
            click.echo(f"{each} is changed")
