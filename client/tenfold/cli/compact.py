"""`tenfold compact FOLDER`: the newest checkpoint of a folder and its increments, as one whole checkpoint."""

from __future__ import annotations

import click


@click.command()
@click.option(
    "--output",
    metavar="PREFIX",
    help="The checkpoint's prefix; by default that of the folder's newest with the last increment's step.",
)
@click.argument("folder")
def compact(folder: str, output: str | None) -> None:
    """Make the newest checkpoint of FOLDER and the increments that follow it one whole checkpoint.

    No training may be saving there meanwhile. A checkpoint written to FOLDER becomes its newest one; increments stay.
    """
    from tenfold.train import checkpoint_chain, checkpoint_management
    from tenfold.train.checkpoint_compaction import compact as compact_chain
    from tenfold_core import errors
    from tenfold_core.file_names import parent

    try:
        state = checkpoint_management.get_checkpoint_state(folder)
        if state is None:
            raise click.ClickException(f"{folder} has no checkpoint: there is no file named checkpoint")
        full = state.model_checkpoint_path
        chain = checkpoint_chain.increments_after(full, folder)
        if not chain:
            raise click.ClickException(f"no increment follows {full}")
        step = checkpoint_chain.step_of(chain[-1])
        if output is None:
            if step is None:
                raise click.UsageError(f"{chain[-1]} has no step in its name: give --output PREFIX")
            named = checkpoint_chain.step_of(full)
            output = f"{full if named is None else full.rpartition('-')[0]}-{step}"
        if checkpoint_management.checkpoint_exists(output):
            raise click.ClickException(f"{output} is there already")
        compact_chain(full, chain, output)
        if parent(output).rstrip("/") == folder.rstrip("/"):
            checkpoint_management.update_checkpoint_state(folder, output, [*state.all_model_checkpoint_paths, output])
    except (errors.OpError, OSError, ValueError) as error:
        raise click.ClickException(getattr(error, "message", str(error))) from None
    click.echo(f"{output}: {full} and {len(chain)} increment{'s' if len(chain) > 1 else ''}")
