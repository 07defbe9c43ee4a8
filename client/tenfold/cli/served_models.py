"""`tenfold model register | list`: the models that a control service serves. model.py has the group."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import click

from tenfold.cli.runs import asking, control_option
from tenfold.cli.tokens import token_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold.control.model_answers import Following, Model
    from tenfold_core.access.credentials import ShownToken


@click.command()
@control_option
@token_option
@click.option("--path", metavar="FOLDER", help="Its folder within the service's models folder; default: its name.")
@click.option(
    "--follows",
    metavar="FOLDER",
    help="Follow the training with this checkpoint_dir, a folder within the service's folder of trainings.",
)
@click.option("--cluster", default="default", show_default=True, help="The cluster that runs it.")
@click.option("--job", help="The job that runs it; without it the cluster's first master.")
@click.option("--index", type=click.IntRange(min=0), help="Which task of the job.")
@click.option("--tag", "tags", multiple=True, default=("serve",), show_default=True, help="Tags of the graph.")
@click.argument("name")
def register(
    control: str,
    token: ShownToken,
    path: str | None,
    follows: str | None,
    cluster: str,
    job: str | None,
    index: int | None,
    tags: tuple[str, ...],
    name: str,
) -> None:
    """Register the model NAME with a control service, and load it. With --follows it has the values that a training has
    saved, and takes in what it saves from then on."""
    with asking(control, token) as client:
        found = client.register_model(
            name, path=path, follows=follows, cluster=cluster, job=job, index=index, tags=tags
        )
    for line in lines_of(found, time.time()):
        click.echo(line)


@click.command("list")
@control_option
@token_option
@click.option("--json", "as_json", is_flag=True, help="Print what the control service says, as JSON.")
@click.argument("name", required=False)
def list_models(control: str, token: ShownToken, as_json: bool, name: str | None) -> None:
    """Show the models that a control service serves, or NAME alone: version, task, and of one that follows a training
    what it serves of it, how far behind it is, and why where something is wrong."""
    with asking(control, token) as client:
        found = client.models() if name is None else [client.model(name)]
    if as_json:
        click.echo(json.dumps([each.json for each in found], indent=2))
        return
    for each in found:
        for line in lines_of(each, time.time()):
            click.echo(line)
    if not found:
        click.echo("no models")


def lines_of(model: Model, now: float) -> Iterator[str]:
    """What is printed of a model at that time, in seconds since 1970."""
    where = f", version {model.version} on {model.master}" if model.state == "ready" else ""
    yield f"{model.name}: {model.state}{where}"
    if model.trouble:
        yield f"  not loaded: {model.trouble}"
    if model.following is not None:
        yield from _following(model.following, now)
    elif model.follows is not None:
        yield f"  follows {model.follows}"


def _following(following: Following, now: float) -> Iterator[str]:
    state = following.checkpoint if following.increment is None else f"{following.increment} of {following.checkpoint}"
    step = "" if following.global_step is None else f", global step {following.global_step:,}"
    yield f"  follows {following.folder}"
    yield f"  serves {state}{step}, {following.rows:,} rows, saved {max(0.0, now - following.saved_at):.1f} s ago"
    if following.behind_seconds:
        yield f"  {following.behind_seconds:.1f} s behind"
    if following.trouble:
        since = max(0.0, now - (following.trouble_since or now))
        yield f"  for {since:.0f} s nothing newer could be read: {following.trouble}"
