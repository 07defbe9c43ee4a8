"""A job script for `sbatch`: text that a site's administrator can read and sign off. `tenfold render slurm` writes it.

The job asks for what all tasks need together; within it `tenfold run --on slurm` starts each task as a step.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tenfold.launchers.slurm import request_of, site_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.launchers.interface import Resources


def job_script(
    name: str,
    jobs: Mapping[str, int],
    resources: Mapping[str, Resources],
    options: Mapping[str, str],
    working_dir: str,
    command: Sequence[str],
    warning: int,
) -> str:
    """The script. `options` are the launcher's; `command` runs the program in the job; it is told `warning` seconds
    before the job's time is over."""
    asked = [f"--job-name={name}", *site_options(options), *request_of(jobs, resources)]
    asked += [f"--chdir={working_dir}", f"--output={name}-%j.out", "--open-mode=append"]
    # a job that is preempted, or whose node is lost, waits for its turn again
    asked += ["--requeue", f"--signal=B:TERM@{warning}"]
    lines = ["#!/bin/bash", *(f"#SBATCH {shlex.join([option])}" for option in asked), ""]
    lines += ["# the shell's place is taken, so that Slurm's signal reaches the run", f"exec {shlex.join(command)}"]
    return "\n".join(lines) + "\n"
