"""`tenfold tensorboard RUN`: TensorBoard on the event files of a run, where it is installed and the files are here.

The control service knows the folders: the programs of a run tell them (session/observing.py). TensorBoard takes this
process over, so that signals and its exit code are its own.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenfold.cli.runs import asking, control_option
from tenfold.cli.tokens import token_option

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tenfold_core.access.credentials import ShownToken

#: Characters that separate the folders in TensorBoard's own list of them.
_SEPARATORS = ",:"


@click.command(context_settings={"ignore_unknown_options": True})
@control_option
@token_option
@click.argument("name", metavar="RUN")
@click.argument("arguments", metavar="[-- ARGUMENTS]", nargs=-1, type=click.UNPROCESSED)
def tensorboard(control: str, token: ShownToken, name: str, arguments: tuple[str, ...]) -> None:
    """Start TensorBoard on what RUN wrote for it: scalars, histograms, images, its graph with devices.

    ARGUMENTS are TensorBoard's own, as in `tenfold tensorboard mnist-1 -- --port 6007`. It has to be installed here,
    and the event files have to be on this machine, or on a disk that it shares.
    """
    with asking(control, token) as client:
        run, progress = client.run(name), client.progress(name)
    hosts = {(task.job, task.index): task.host for task in run.tasks}
    told = {
        f"{task.job}-{task.index}": (hosts.get((task.job, task.index)), task.logdirs)
        for task in progress.tasks
        if task.logdirs
    }
    try:
        chosen = logdir_arguments(folders_here(name, told))
    except LookupError as error:
        raise click.ClickException(str(error)) from None
    if importlib.util.find_spec("tensorboard") is None:
        raise click.ClickException(
            f"TensorBoard is not installed for {sys.executable}: pip install tensorboard. The event files are in "
            f"{', '.join(sorted({folder for _, folders in told.values() for folder in folders}))}."
        )
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "tensorboard.main", *chosen, *arguments])


def folders_here(run: str, told: Mapping[str, tuple[str | None, Iterable[str]]]) -> dict[str, str]:
    """Task → its folder, of those that are on this machine, without those inside others. `told`: task → its host and
    its folders. Raises LookupError saying why there is none."""
    if not told:
        raise LookupError(
            f"run {run} has told of no event files. Programs write them with tf.summary.FileWriter, or with a "
            "MonitoredTrainingSession that has a checkpoint_dir."
        )
    found: dict[str, str] = {}
    for task, (_, folders) in told.items():
        for number, folder in enumerate(folders):
            others = [Path(each) for each in found.values()]
            if os.path.isdir(folder) and not any(Path(folder).is_relative_to(other) for other in others):
                found = {key: each for key, each in found.items() if not Path(each).is_relative_to(folder)}
                found[task if number == 0 else f"{task}-{number}"] = folder
    if not found:
        places = {f"{folder} on {host or 'an unknown host'}" for host, folders in told.values() for folder in folders}
        raise LookupError(
            f"the event files of run {run} are not on this machine ({socket.gethostname()}): they are in "
            f"{', '.join(sorted(places))}. Run this there, or copy them and start `tensorboard --logdir FOLDER`."
        )
    return found


def logdir_arguments(folders: Mapping[str, str]) -> list[str]:
    """TensorBoard's options for one folder, or for several by name. Raises LookupError for one that it cannot take."""
    if len(folders) == 1:
        return ["--logdir", *folders.values()]
    odd = [folder for folder in folders.values() if any(character in folder for character in _SEPARATORS)]
    if odd:
        raise LookupError(f"TensorBoard accepts no folder with a colon or a comma among others: {', '.join(odd)}")
    return ["--logdir_spec", ",".join(f"{name}:{folder}" for name, folder in folders.items())]
