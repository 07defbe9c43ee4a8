"""`tenfold artifacts`: list what a run has left in its output folder, or download it."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import click

from tenfold.cli.runs import asking, control_option
from tenfold.cli.tables import age, plain_console, plain_table
from tenfold.cli.tokens import token_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.control import ControlClient
    from tenfold.control.run_answers import Artifact
    from tenfold_core.access.credentials import ShownToken


@click.command()
@control_option
@token_option
@click.option("--to", "folder", type=click.Path(file_okay=False), metavar="FOLDER", help="Download the files there.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.argument("name", metavar="RUN")
@click.argument("paths", metavar="[PATH…]", nargs=-1)
def artifacts(
    control: str, token: ShownToken, folder: str | None, as_json: bool, name: str, paths: tuple[str, ...]
) -> None:
    """List what RUN has left in its output folder, which its tasks find in TENFOLD_OUTPUT; with --to, download it.

    PATH is a file of the list, or a folder of it; without one it is all of them.
    """
    with asking(control, token) as client:
        there = client.artifacts(name)
        chosen = [each for each in there if not paths or any(_within(each.path, path) for path in paths)]
        for path in paths:
            if not any(_within(each.path, path) for each in there):
                raise click.ClickException(f"run {name} has no file or folder {path!r} in its output folder")
        if folder is not None:
            download(client, name, chosen, folder)
    if as_json:
        click.echo(json.dumps({"run": name, "artifacts": [each.json for each in chosen]}, indent=2))
    elif folder is None:
        now = datetime.now(UTC)
        rows = [(each.path, str(each.size), age(each.modified, now)) for each in chosen]
        plain_console().print(plain_table(("path", "bytes", "written"), rows))


def download(client: ControlClient, run: str, files: Sequence[Artifact], folder: str) -> None:
    """Downloads files of the run's output folder to the same places below `folder`, which is made. Raises OSError and
    what the service says."""
    for each in files:
        target = os.path.join(folder, *_parts(each.path))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        client.download_artifact(run, each.path, target)
        click.echo(f"{target}: {each.size} bytes", err=True)


def _within(path: str, wanted: str) -> bool:
    bare = wanted.rstrip("/")
    return path == bare or path.startswith(f"{bare}/")


def _parts(path: str) -> tuple[str, ...]:
    """The parts of a path that a service told, none of which leads out of the folder. Raises click.ClickException."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise click.ClickException(f"the control service lists {path!r}, which would lie outside the folder")
    return parts
