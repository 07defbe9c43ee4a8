"""A job script for `sbatch`: text that a site's administrator can read and sign off. `tenfold render slurm` writes it.

The job asks for what its tasks need: together, or as a heterogeneous job with a component for each job of the cluster
where those need different things. Within it `tenfold run --on slurm` starts each task as a step.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from tenfold.launchers.slurm import components_of, request_of, site_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.launchers.interface import Resources

#: Numbers of a job array, as `sbatch --array` has them: 0-7, 1,3,5, 0-15:4%2.
ARRAY = re.compile(r"\d+(-\d+(:\d+)?)?(,\d+(-\d+(:\d+)?)?)*(%\d+)?")
#: What the program's arguments may have of an array.
_NUMBER = re.compile(r"\$(?:SLURM_ARRAY_TASK_ID\b|\{SLURM_ARRAY_TASK_ID\})")


def job_script(
    name: str,
    jobs: Mapping[str, int],
    resources: Mapping[str, Resources],
    options: Mapping[str, str],
    working_dir: str,
    command: Sequence[str],
    warning: int,
    *,
    array: str | None = None,
    settings: Sequence[Sequence[str]] = (),
    wait: bool = False,
) -> str:
    """The script. `options` are the launcher's; `command` runs the program in the job; it is told `warning` seconds
    before the job's time is over. `array`: a job for each of its numbers, which stands for $SLURM_ARRAY_TASK_ID in the
    command; `settings`: what is added to the command for each number from 0. `wait`: sbatch ends with the job, and its
    exit code."""
    # Slurm has no arrays of heterogeneous jobs
    components = components_of(jobs, resources) if array is None else [request_of(jobs, resources)]
    common = [f"--job-name={name}", *site_options(options)]
    # a job that is preempted, or whose node is lost, waits for its turn again
    ending = ["--requeue", f"--signal=B:TERM@{warning}"]
    of_script = [f"--chdir={options.get('folder', working_dir)}"]
    of_script += [f"--output={name}-{'%j' if array is None else '%A_%a'}.out", "--open-mode=append"]
    of_script += [] if array is None else [f"--array={array}"]
    of_script += ["--wait"] if wait else []
    lines = ["#!/bin/bash"]
    for number, needs in enumerate(components):
        if number:
            lines += ["#SBATCH hetjob"]
        asked = [*common, *needs, *([] if number else of_script), *ending]
        lines += [f"#SBATCH {shlex.join([option])}" for option in asked]
    if len(components) > 1:
        lines += ["", f"# components, in order: {', '.join(jobs)}; a component is what the tasks of one job need"]
    shown = shlex.join(command) if array is None else " ".join(_with_number(word) for word in command)
    if settings:
        lines += ["", "# the arguments of each number", 'case "$SLURM_ARRAY_TASK_ID" in']
        lines += [f"{at}) set -- {' '.join(map(_with_number, words))} ;;" for at, words in enumerate(settings)]
        lines += ["esac"]
        shown += ' "$@"'
    lines += ["", "# the shell's place is taken, so that Slurm's signal reaches the run", f"exec {shown}"]
    return "\n".join(lines) + "\n"


def _with_number(word: str) -> str:
    """A word for the shell, in which nothing stands for something else but the array's number."""
    return '"$SLURM_ARRAY_TASK_ID"'.join(shlex.quote(part) if part else "" for part in _NUMBER.split(word)) or "''"
