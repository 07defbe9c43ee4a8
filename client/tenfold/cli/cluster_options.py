"""Which tasks a run has, and how its program learns of them: the options that `run`, `submit` and `render` share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The tasks, and how the program is started."""

    #: Jobs that have tasks → how many, parameter servers first.
    jobs: dict[str, int]
    guide_flags: bool
    as_tensorflow: bool

    def arguments(self) -> list[str]:
        """The same on a command line."""
        found = [f"--ps={self.jobs.get('ps', 0)}", f"--workers={self.jobs.get('worker', 0)}"]
        found += ["--chief"] if "chief" in self.jobs else []
        found += ["--evaluator"] if "evaluator" in self.jobs else []
        found += ["--guide-flags"] if self.guide_flags else []
        return [*found, "--as-tensorflow"] if self.as_tensorflow else found


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options; the command gets `cluster`, a ClusterOptions."""

    @wraps(command)
    def given(
        *arguments: Any,
        ps: int,
        workers: int,
        chief: bool,
        evaluator: bool,
        guide_flags: bool,
        as_tensorflow: bool,
        **others: Any,
    ) -> Any:
        if workers + int(chief) == 0:
            raise click.UsageError("there is nobody to end the run: give --workers, or --chief")
        sizes = {"ps": ps, "chief": int(chief), "worker": workers, "evaluator": int(evaluator)}
        jobs = {job: size for job, size in sizes.items() if size}
        return command(*arguments, cluster=ClusterOptions(jobs, guide_flags, as_tensorflow), **others)

    flags = "Add --ps_hosts, --worker_hosts, --job_name and --task_index to the arguments."
    for option in reversed(
        (
            click.option("--ps", type=click.IntRange(min=0), default=1, show_default=True, help="Parameter servers."),
            click.option("--workers", type=click.IntRange(min=0), default=2, show_default=True, help="Workers."),
            click.option("--chief", is_flag=True, help="Add a task of its own for the chief, /job:chief/task:0."),
            click.option(
                "--evaluator", is_flag=True, help="Add a task for tf.estimator's evaluator, outside the cluster."
            ),
            click.option("--guide-flags", is_flag=True, help=flags),
            click.option("--as-tensorflow", is_flag=True, help="Make `import tensorflow` import Tenfold."),
        )
    ):
        given = option(given)
    return given
