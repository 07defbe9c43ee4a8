"""`tenfold run`: one training program as every task of a cluster on this machine, until its workers are done.

Each task is a process of its own with TF_CONFIG in its environment; its output is printed with the task's name in
front. What is started when, and when it is over, is decided in tenfold.runs. No server runs in this process: each
program starts its own `tf.train.Server`.
"""

from __future__ import annotations

import os

import click


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--ps", type=click.IntRange(min=0), default=1, show_default=True, help="Parameter servers.")
@click.option("--workers", type=click.IntRange(min=0), default=2, show_default=True, help="Workers.")
@click.option("--chief", is_flag=True, help="Add a task of its own for the chief, /job:chief/task:0.")
@click.option(
    "--guide-flags", is_flag=True, help="Add --ps_hosts, --worker_hosts, --job_name and --task_index to the arguments."
)
@click.option("--as-tensorflow", is_flag=True, help="Let `import tensorflow` give Tenfold.")
@click.option(
    "--restarts",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="How many times tasks that fail are started again, all together.",
)
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds that the others have to end by themselves after a failure.",
)
@click.argument("program", required=True)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(
    ps: int,
    workers: int,
    chief: bool,
    guide_flags: bool,
    as_tensorflow: bool,
    restarts: int,
    grace: float,
    program: str,
    arguments: tuple[str, ...],
) -> None:
    """Run PROGRAM (a file, or `-m MODULE`) as every task of a cluster on this machine.

    Each task finds the cluster and its own place in TF_CONFIG, on free ports of loopback. Ends when the workers and
    the chief have ended, and stops the parameter servers then; the exit code is that of the first task that failed,
    or 0. A parameter server that fails ends the run, unless --restarts lets it come back. After a worker's failure the
    others have --grace seconds to end, then they are stopped.
    """
    from tenfold.cli.children import Children
    from tenfold.cli.signals import stop_signals
    from tenfold.cli.up import prefixed
    from tenfold.runs.driver import RunDriver
    from tenfold.runs.plan import RunPlan, RunPolicy

    sizes = {"ps": ps, "chief": int(chief), "worker": workers}
    if workers + int(chief) == 0:
        raise click.UsageError("there is nobody to end the run: give --workers, or --chief")
    if program != "-m" and not os.path.isfile(program):
        raise click.UsageError(f"there is no program {program!r}: give a file, or -m MODULE")
    plan = RunPlan(
        {job: size for job, size in sizes.items() if size},
        (program, *arguments),
        guide_flags=guide_flags,
        as_tensorflow=as_tensorflow,
        policy=RunPolicy(restarts=restarts, grace=grace),
    )
    with Children(prefixed()) as children:
        driver = RunDriver(plan, children, say=lambda text: click.echo(text, err=True))
        with stop_signals(lambda signal: driver.stop(f"stopped by {signal.name}", 128 + signal)) as stop:
            verdict = driver.run()
    if stop.received is not None:
        click.echo(verdict.reason)
    raise SystemExit(verdict.exit_code)
