"""`tenfold export`: runs for MLflow and for TensorBoard's HParams page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenfold.cli.artifacts import download
from tenfold.cli.runs import asking, control_option
from tenfold.cli.tokens import token_option

if TYPE_CHECKING:
    from tenfold_core.access.credentials import ShownToken


@click.command()
@control_option
@token_option
@click.option(
    "--mlflow", type=click.Path(file_okay=False), metavar="FOLDER", help="Write to the file store of MLflow there."
)
@click.option("--experiment", default="tenfold", show_default=True, help="The experiment's name in MLflow.")
@click.option("--hparams", type=click.Path(file_okay=False), metavar="FOLDER", help="Write event files there.")
@click.option("--artifacts", is_flag=True, help="Copy the files of the runs' output folders to MLflow's store, too.")
@click.option("--filter", "wanted", metavar="FILTER", help="All runs of which this holds, as of `tenfold runs`.")
@click.argument("names", metavar="[RUN…]", nargs=-1)
def export(
    control: str,
    token: ShownToken,
    mlflow: str | None,
    experiment: str,
    hparams: str | None,
    artifacts: bool,
    wanted: str | None,
    names: tuple[str, ...],
) -> None:
    """Write RUN, with its parameters and curves, where MLflow or TensorBoard's HParams page shows it."""
    from tenfold.exports import hparams as hparams_export
    from tenfold.exports import mlflow as mlflow_export
    from tenfold_core import errors

    if not (mlflow or hparams):
        raise click.UsageError("where to? give --mlflow FOLDER, --hparams FOLDER, or both")
    if bool(names) == bool(wanted):
        raise click.UsageError("which runs? give their names, or --filter")
    with asking(control, token) as client:
        runs = [client.run(name) for name in names] if names else client.runs(filter=wanted)
        for run in runs:
            progress = client.progress(run.name)
            if mlflow is not None:
                folder = mlflow_export.write_run(Path(mlflow), experiment, run, progress)
                if artifacts:
                    try:
                        download(client, run.name, client.artifacts(run.name), os.fspath(folder / "artifacts"))
                    except errors.NotFoundError:
                        click.echo(f"{run.name} has no output folder that the service can read", err=True)
            if hparams is not None:
                try:
                    hparams_export.write_run(Path(hparams), run, progress)
                except ImportError as error:
                    raise click.ClickException(
                        f"--hparams needs TensorBoard: pip install tensorboard ({error})"
                    ) from None
            click.echo(run.name)
